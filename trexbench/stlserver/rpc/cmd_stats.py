"""Counters: ports, the whole, extended ones; packet groups."""

from __future__ import annotations

from ..params import Params
from ..state.port import PortState, ServerPort
from ..wire import Json, cannot_execute
from .context import Context, Method, Table, of_port, refused

FCS_BYTES = 4
XSTATS = ("rx_good_packets", "tx_good_packets", "rx_good_bytes", "tx_good_bytes", "rx_errors", "tx_errors")
TPG_DISABLED = "Tagged Packet Group is not enabled."


def get_port_stats(ctx: Context, port: ServerPort, p: Params) -> Json:
    """TRex's own figures, and the port's part of ``m_total_queue_full``, which TRex tells for all ports only."""
    answer = ctx.stats.port_json(ctx.now_s, port.index, port.state == PortState.TX)
    return {**answer, "queue_full": ctx.stats.read(ctx.now_s).load.ports[port.index].queue_full}


def get_port_xstats_names(ctx: Context, port: ServerPort, p: Params) -> Json:
    return {"xstats_names": list(XSTATS)}


def get_port_xstats_values(ctx: Context, port: ServerPort, p: Params) -> Json:
    """In the order of the names; bytes without FCS, as TRex's virtual drivers count them."""
    c = ctx.stats.read(ctx.now_s).counters[port.index]
    rx_bytes, tx_bytes = c.ibytes - FCS_BYTES * c.ipackets, c.obytes - FCS_BYTES * c.opackets
    return {"xstats_values": [c.ipackets, c.opackets, rx_bytes, tx_bytes, c.ierrors, c.oerrors]}


def get_pgid_stats(ctx: Context, p: Params) -> Json:
    pgids = [_uint(pgid) for pgid in p.array("pgids").value]
    return ctx.state.groups.to_json(pgids, ctx.stats)


def _uint(value: Json) -> int:
    """Convert as TRex's JSON library does: null is zero, true one, fractions are cut off."""
    if isinstance(value, (str, list, dict)):
        raise cannot_execute("Value is not convertible to UInt.")
    number = int(value or 0)
    if not 0 <= number < 1 << 32:
        kind = "double" if isinstance(value, float) else "LargestInt" if number < 0 else "LargestUInt"
        raise cannot_execute(f"{kind} out of UInt range")
    return number


def get_tpg_status(ctx: Context, p: Params) -> Json:
    user = p.string("username", "")
    with_port = p.get("port_id") is not None
    if with_port:
        ctx.port(p)
    if user and with_port:
        raise cannot_execute("Should provide only one between port_id and username to get TPG status")
    if not user and not with_port:
        raise cannot_execute("Should provide at least one between port_id and username to get TPG status")
    data = {"acquired_ports": [], "rx_ports": [], "username": "-", "num_tpgids": 0, "num_tags": 0}
    return {"enabled": False, "data": data}


def get_tpg_state(ctx: Context, p: Params) -> Json:
    p.string("username")
    return 0


def get_tpg_tags(ctx: Context, p: Params) -> Json:
    low, high = p.uint16("min_tag"), p.uint16("max_tag")
    if low >= high:
        raise cannot_execute(f"Min Tag = {low} must be smaller than Max Tag = {high}")
    raise cannot_execute(TPG_DISABLED)


METHODS: Table = {
    "get_port_stats": of_port(get_port_stats),
    "get_global_stats": Method(lambda ctx, p: ctx.stats.global_json(ctx.now_s)),
    "get_port_xstats_names": of_port(get_port_xstats_names),
    "get_port_xstats_values": of_port(get_port_xstats_values),
    "get_active_pgids": Method(lambda ctx, p: {"ids": ctx.state.groups.ids()}),
    "get_pgid_stats": Method(get_pgid_stats),
    "get_tpg_status": Method(get_tpg_status),
    "get_tpg_state": Method(get_tpg_state),
    "get_tpg_tags": Method(get_tpg_tags),
    "enable_tpg": refused("Tagged Packet Group can be enabled only in software mode"),
    **dict.fromkeys(
        ("disable_tpg", "update_tpg_tags", "clear_updated"),
        refused(TPG_DISABLED, lambda ctx, p: p.string("username")),
    ),
    **dict.fromkeys(
        ("get_tpg_stats", "clear_tpg_stats", "get_tpg_tx_stats", "clear_tpg_tx_stats"),
        refused("Tagged Packet Group is not enabled on this port.", Context.port),
    ),
    **dict.fromkeys(
        ("get_tpg_unknown_tags", "clear_tpg_unknown_tags"),
        refused("Tagged Packet Group is not enabled or collecting on this port.", Context.port),
    ),
}

# Reading counters changes nothing, so the calls of one frame may share one reading.
READ_ONLY = frozenset(name for name in METHODS if name.startswith("get_"))
