"""Counters: ports, the whole, extended ones; packet groups."""

from __future__ import annotations

from dataclasses import asdict

from ..params import Params
from ..state.port import PortState, ServerPort
from ..wire import Json, bad_params
from .context import Context, Method, Table, of_port, refused

FCS_BYTES = 4
OWN = ("queue_full", "waited_ns", "preempted", "stolen_ns")
"""Fields of a port's load that TRex does not report."""
XSTATS = ("rx_good_packets", "tx_good_packets", "rx_good_bytes", "tx_good_bytes", "rx_errors", "tx_errors")
_OF_TAGGED_GROUPS = """
    enable_tpg disable_tpg update_tpg_tags clear_updated get_tpg_tags get_tpg_stats clear_tpg_stats get_tpg_tx_stats
    clear_tpg_tx_stats get_tpg_unknown_tags clear_tpg_unknown_tags
"""


def get_port_stats(ctx: Context, port: ServerPort, p: Params) -> Json:
    """TRex's own figures, the port's part of ``m_total_queue_full``, and what kept its sender from its core."""
    answer = ctx.stats.port_json(ctx.now_s, port.index, port.state == PortState.TX)
    load = asdict(ctx.stats.read(ctx.now_s).load.ports[port.index])
    return {**answer, **{name: load[name] for name in OWN if load[name] is not None}}


def get_port_xstats_names(ctx: Context, port: ServerPort, p: Params) -> Json:
    return {"xstats_names": list(XSTATS)}


def get_port_xstats_values(ctx: Context, port: ServerPort, p: Params) -> Json:
    """In the order of the names; bytes without FCS, as TRex's virtual drivers count them."""
    c = ctx.stats.read(ctx.now_s).counters[port.index]
    rx_bytes, tx_bytes = c.ibytes - FCS_BYTES * c.ipackets, c.obytes - FCS_BYTES * c.opackets
    return {"xstats_values": [c.ipackets, c.opackets, rx_bytes, tx_bytes, c.ierrors, c.oerrors]}


def get_pgid_stats(ctx: Context, p: Params) -> Json:
    pgids = p.array("pgids")
    asked = [pgids.uint32(index) for index in range(len(pgids.value))]
    return ctx.state.groups.to_json(asked, ctx.stats)


def get_tpg_status(ctx: Context, p: Params) -> Json:
    """Tagged packet groups, which the client asks for before it adds streams: there are none."""
    if (p.get("username") is None) == (p.get("port_id") is None):
        raise bad_params("name either 'username' or 'port_id'")
    data = {"acquired_ports": [], "rx_ports": [], "username": "-", "num_tpgids": 0, "num_tags": 0}
    return {"enabled": False, "data": data}


METHODS: Table = {
    "get_port_stats": of_port(get_port_stats),
    "get_global_stats": Method(lambda ctx, p: ctx.stats.global_json(ctx.now_s)),
    "get_port_xstats_names": of_port(get_port_xstats_names),
    "get_port_xstats_values": of_port(get_port_xstats_values),
    "get_active_pgids": Method(lambda ctx, p: {"ids": ctx.state.groups.ids()}),
    "get_pgid_stats": Method(get_pgid_stats),
    "get_tpg_status": Method(get_tpg_status),
    "get_tpg_state": Method(lambda ctx, p: 0),
    **dict.fromkeys(_OF_TAGGED_GROUPS.split(), refused("this server counts no tagged packet groups")),
}

# Reading counters changes nothing, so the calls of one frame may share one reading.
READ_ONLY = frozenset(name for name in METHODS if name.startswith("get_"))
