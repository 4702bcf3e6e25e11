"""Counters: ports, the whole, extended ones; packet groups."""

from __future__ import annotations

from trexbench.stlserver.context import Context
from trexbench.stlserver.method import Method, Table
from trexbench.stlserver.params import Params
from trexbench.stlserver.port import TX
from trexbench.stlserver.wire import Json, cannot_execute

FCS_BYTES = 4
XSTATS = (
    "rx_good_packets",
    "tx_good_packets",
    "rx_good_bytes",
    "tx_good_bytes",
    "rx_errors",
    "tx_errors",
)
TPG_DISABLED = "Tagged Packet Group is not enabled."
TPG_DISABLED_ON_PORT = "Tagged Packet Group is not enabled on this port."


def get_port_stats(ctx: Context, p: Params) -> Json:
    port = ctx.port(p)
    return ctx.stats.port_json(ctx.now_s, port.index, port.state == TX)


def get_global_stats(ctx: Context, p: Params) -> Json:
    return ctx.stats.global_json(ctx.now_s)


def get_port_xstats_names(ctx: Context, p: Params) -> Json:
    ctx.port(p)
    return {"xstats_names": list(XSTATS)}


def get_port_xstats_values(ctx: Context, p: Params) -> Json:
    """In the order of the names; bytes without FCS, as TRex's virtual drivers count them."""
    c = ctx.stats.read(ctx.now_s).counters[ctx.port(p).index]
    rx_bytes, tx_bytes = c.ibytes - FCS_BYTES * c.ipackets, c.obytes - FCS_BYTES * c.opackets
    return {"xstats_values": [c.ipackets, c.opackets, rx_bytes, tx_bytes, c.ierrors, c.oerrors]}


def get_active_pgids(ctx: Context, p: Params) -> Json:
    return {"ids": {"flow_stats": [], "latency": ctx.box.groups.ids()}}


def get_pgid_stats(ctx: Context, p: Params) -> Json:
    pgids = [_uint(pgid) for pgid in p.array("pgids")]
    return ctx.stats.held(("pgids", *pgids), lambda: ctx.box.groups.to_json(pgids, ctx.stats.latency))


def _uint(value: Json) -> int:
    """As TRex's JSON library converts: null is zero, true one, fractions are cut off."""
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


def enable_tpg(ctx: Context, p: Params) -> Json:
    raise cannot_execute("Tagged Packet Group can be enabled only in software mode")


def tpg_of_user(ctx: Context, p: Params) -> Json:
    p.string("username")
    raise cannot_execute(TPG_DISABLED)


def tpg_of_port(ctx: Context, p: Params) -> Json:
    ctx.port(p)
    raise cannot_execute(TPG_DISABLED_ON_PORT)


def tpg_unknown_tags(ctx: Context, p: Params) -> Json:
    ctx.port(p)
    raise cannot_execute("Tagged Packet Group is not enabled or collecting on this port.")


def get_tpg_tags(ctx: Context, p: Params) -> Json:
    low, high = p.uint16("min_tag"), p.uint16("max_tag")
    if low >= high:
        raise cannot_execute(f"Min Tag = {low} must be smaller than Max Tag = {high}")
    raise cannot_execute(TPG_DISABLED)


METHODS: Table = {
    "get_port_stats": Method(get_port_stats),
    "get_global_stats": Method(get_global_stats),
    "get_port_xstats_names": Method(get_port_xstats_names),
    "get_port_xstats_values": Method(get_port_xstats_values),
    "get_active_pgids": Method(get_active_pgids),
    "get_pgid_stats": Method(get_pgid_stats),
    "get_tpg_status": Method(get_tpg_status),
    "get_tpg_state": Method(get_tpg_state),
    "enable_tpg": Method(enable_tpg),
    "disable_tpg": Method(tpg_of_user),
    "update_tpg_tags": Method(tpg_of_user),
    "clear_updated": Method(tpg_of_user),
    "get_tpg_tags": Method(get_tpg_tags),
    "get_tpg_stats": Method(tpg_of_port),
    "clear_tpg_stats": Method(tpg_of_port),
    "get_tpg_tx_stats": Method(tpg_of_port),
    "clear_tpg_tx_stats": Method(tpg_of_port),
    "get_tpg_unknown_tags": Method(tpg_unknown_tags),
    "clear_tpg_unknown_tags": Method(tpg_unknown_tags),
}

# Reading counters changes nothing, so the calls of one frame may share one reading.
READ_ONLY = frozenset(name for name in METHODS if name.startswith("get_"))
