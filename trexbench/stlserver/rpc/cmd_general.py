"""Methods about the server as a whole: versions, system, events, shutdown, counters."""

from __future__ import annotations

import contextlib
import platform
import socket
from dataclasses import asdict
from pathlib import Path

from ..engine import FCS_BYTES, MARKS, core_count, core_of
from ..state.port import PortState, ServerPort
from ..state.server_state import ServerState
from ..wire import Json, Params, bad_params, cannot_execute
from .methods import Method, Table, of_port, refused

API_NAME = "STL"
API_MAJOR, API_MINOR = 5, 1
VERSION: dict[str, Json] = {
    "version": "v3.08",
    "build_date": "Nov 20 2025",
    "build_time": "00:00:00",
    "built_by": "trexbench",
    "mode": API_NAME,
}
"""Version of the TRex that this server imitates; ``built_by`` tells the two apart."""
GLOBAL_CFG: dict[str, Json] = {"sched_max_stretch": 0.0, "process_at_cp": False, "do_mbuf_cache": False}


def api_sync_v2(ctx: ServerState, p: Params) -> Json:
    name, major, minor = p.string("name"), p.integer("major"), p.integer("minor")
    if name != API_NAME:
        raise cannot_execute(
            f"RPC configuration mismatch - server RPC configuration: '{API_NAME}', client RPC configuration: '{name}'"
        )
    if major != API_MAJOR or minor > API_MINOR:
        raise cannot_execute(f"RPC version mismatch: client {major}.{minor}, server {API_MAJOR}.{API_MINOR}")
    return {"api_h": ctx.api_handler}


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _port_info(port: ServerPort) -> Json:
    return {
        "index": port.index,
        "driver": port.info.driver,
        "description": port.info.name,
        "pci_addr": port.info.pci or "N/A",
        "numa": -1,
        "hw_mac": port.info.src_mac,
        "stack": "legacy",
        "rx": {"caps": ["flow_stats", "latency", "rx_bytes"], "counters": MARKS},
        "is_fc_supported": False,
        "is_led_supported": False,
        "is_link_supported": False,
        "is_prom_supported": True,
        "is_vxlan_supported": False,
        "is_ieee1588_supported": False,
        "is_virtual": not port.info.pci,
        "supp_speeds": [],
        "cores": [core_of(port.index)],
        **({"xdp_mode": port.info.mode} if port.info.mode else {}),
    }


def get_system_info(ctx: ServerState, p: Params) -> Json:
    return {
        "hostname": socket.gethostname(),
        "uptime": ctx.uptime,
        "dp_core_count": core_count(len(ctx.ports)),
        "dp_core_count_per_port": 1,
        "core_type": _cpu_model(),
        "is_multiqueue_mode": False,
        "advanced_per_stream_stats": True,  # marks are looked for in every frame, as by TRex in software mode
        "port_count": len(ctx.ports),
        "ports": [_port_info(port) for port in ctx.ports.values()],
    }


def publish_now(ctx: ServerState, p: Params) -> Json:
    p.uint32("key")
    p.boolean("baseline")
    ctx.events.outbox.append({})  # the barrier: in TRex's interactive mode it carries no key
    return {}


def get_utilization(ctx: ServerState, p: Params) -> Json:
    """Answer with the CPU history of each core, newest first; there are no packet buffer pools."""
    ctx.stats.read(ctx.now_s)
    threads = []
    for core, history in ctx.stats.cpu_history.items():
        ports = [port for port in ctx.ports.values() if core_of(port.index) == core]
        pair: list[int] = [port.index if port.state in PortState.ACTIVE else -1 for port in ports]
        threads.append({"history": list(history), "ports": [*pair, -1, -1][:2]})
    return {"cpu": threads, "mbuf_stats": {"cpu-socket-0": {}}}


def shutdown(ctx: ServerState, p: Params) -> Json:
    user, force = p.string("user"), p.boolean("force")
    for port in ctx.ports.values():
        if port.owner is not None and port.owner.name != user and not force:
            raise cannot_execute(f"port {port.index} is owned by '{port.owner.name}' - specify 'force' for override")
    ctx.shutdown = True
    return {}


LOAD_FIELDS = ("queue_full", "waited_ns", "preempted", "stolen_ns")  # fields of a port's load that TRex does not report
XSTATS = ("rx_good_packets", "tx_good_packets", "rx_good_bytes", "tx_good_bytes", "rx_errors", "tx_errors")
_TAGGED_GROUP_METHODS = """
    enable_tpg disable_tpg update_tpg_tags clear_updated get_tpg_tags get_tpg_stats clear_tpg_stats get_tpg_tx_stats
    clear_tpg_tx_stats get_tpg_unknown_tags clear_tpg_unknown_tags
"""


def get_port_stats(ctx: ServerState, port: ServerPort, p: Params) -> Json:
    """Answer with TRex's figures and, beyond them, the load of the port's sender."""
    answer = ctx.stats.port_json(ctx.now_s, port.index, port.state == PortState.TX)
    load = asdict(ctx.stats.read(ctx.now_s).load[port.index])
    return {**answer, **{name: load[name] for name in LOAD_FIELDS if load[name] is not None}}


def get_port_xstats_values(ctx: ServerState, port: ServerPort, p: Params) -> Json:
    """Answer in the order of XSTATS; bytes without FCS, as TRex's virtual drivers count them."""
    c = ctx.stats.read(ctx.now_s).counters[port.index]
    rx_bytes, tx_bytes = c.ibytes - FCS_BYTES * c.ipackets, c.obytes - FCS_BYTES * c.opackets
    return {"xstats_values": [c.ipackets, c.opackets, rx_bytes, tx_bytes, c.ierrors, c.oerrors]}


def get_pgid_stats(ctx: ServerState, p: Params) -> Json:
    pgids = p.array("pgids")
    asked = [pgids.uint32(index) for index in range(len(pgids.value))]
    return ctx.groups.to_json(asked, ctx.stats)


def get_tpg_status(ctx: ServerState, p: Params) -> Json:
    """Answer that there are no tagged packet groups: the client asks before it adds streams."""
    if (p.get("username") is None) == (p.get("port_id") is None):
        raise bad_params("name either 'username' or 'port_id'")
    data = {"acquired_ports": [], "rx_ports": [], "username": "-", "num_tpgids": 0, "num_tags": 0}
    return {"enabled": False, "data": data}


METHODS: Table = {
    "api_sync_v2": Method(api_sync_v2, needs_api=False),
    "ping": Method(lambda ctx, p: {"ts": ctx.now_s}, needs_api=False),
    "get_version": Method(lambda ctx, p: VERSION, needs_api=False),
    "get_system_info": Method(get_system_info),
    "publish_now": Method(publish_now),
    "get_async_events": Method(lambda ctx, p: {"data": ctx.events.fetch(p.uint32("session_id"), ctx.now_s)}),
    "get_utilization": Method(get_utilization),
    "shutdown": Method(shutdown),
    "get_global_cfg": Method(lambda ctx, p: GLOBAL_CFG),
    "set_global_cfg": refused("this server has no such settings"),
    "get_port_stats": of_port(get_port_stats),
    "get_global_stats": Method(lambda ctx, p: ctx.stats.global_json(ctx.now_s)),
    "get_port_xstats_names": of_port(lambda ctx, port, p: {"xstats_names": list(XSTATS)}),
    "get_port_xstats_values": of_port(get_port_xstats_values),
    "get_active_pgids": Method(lambda ctx, p: {"ids": ctx.groups.ids()}),
    "get_pgid_stats": Method(get_pgid_stats),
    "get_tpg_status": Method(get_tpg_status),
    "get_tpg_state": Method(lambda ctx, p: 0),
    **dict.fromkeys(_TAGGED_GROUP_METHODS.split(), refused("this server counts no tagged packet groups")),
}
