"""The bandwidth-delay product of a run, its hosts' buffers, and what they allow, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ...core.tcp.bdp import BdpRow, find_product, find_rows
from ...core.tcp.laws import SENDABLE, window_rule
from ...core.tcp.model import Way
from ...core.tcp.result import TcpResult
from ...core.tcp.wan import format_size
from ...core.units import format_bits, format_share, format_time
from ..clean import clean
from ..words import NONE, lay_out, or_dash, text_of

_HEAD = ("buffers", "window", "seen", "cwnd", "predicted", "by", "measured", "+-", "ratio", "again", "limit")
_IN = " " * 8
_SYSCTLS = ("tcp_rmem", "tcp_wmem")


def bdp_lines(result: TcpResult) -> Iterator[str]:
    """The product, what was read of the hosts, a row for each kind of leg, and each one's verdict."""
    rows = find_rows(result)
    yield from _of_the_line(result, rows)
    yield from _of_hosts(result)
    groups: dict[str, list[BdpRow]] = {}
    for row in rows:
        groups.setdefault(_group(row), []).append(row)
    for name, ones in groups.items():
        heads = list(lay_out([_HEAD, *map(_row, ones)], "rrrrrlrrrrl"))
        yield from ("", f"{clean(name)}, in Mbit/s", *heads)
    yield ""
    for name, ones in groups.items():
        which = f"{name}, " if len(groups) > 1 else ""
        yield from (clean(f"{which}{_buffers(row)}: {row.words}") for row in ones)


def _of_the_line(result: TcpResult, rows: Sequence[BdpRow]) -> Iterator[str]:
    setup, product = result.setup, find_product(result)
    if setup.wan is not None:
        yield f"WAN     {setup.wan}{f', by {clean(setup.wan_by)}' if setup.wan_by else ''}"
    if setup.wan_asked is not None:
        share = format_share(product.scale) if product is not None else "a part"
        yield f"scaled  {setup.wan_asked} was asked for: rate and buffers are {share} of that"
    if product is not None:
        parts = f"{format_bits(product.rate_bps)} x {format_time(product.delay_s)}"
        yield f"BDP     {format_size(product.size_bytes)}: {parts} ({product.by})"
    trips = [row.round_trip_s for row in rows if row.round_trip_s is not None]
    if trips:
        yield f"ping    {format_time(trips[0])} round trip of the idle path, the median"
    if setup.wan is not None and setup.wan.loss:
        bounds = {row.congestion: (row.loss_bps, row.loss_law) for row in rows}
        for name, (bps, law) in bounds.items():
            most = (
                f"about {format_bits(bps)} in the long run, by {law}"
                if bps is not None
                else "no such bound: its rate does not follow from the loss"
            )
            yield clean(f"loss    {name}: {most}")


def _of_hosts(result: TcpResult) -> Iterator[str]:
    """Each host's settings as they were found, the sizes that were set, and how much of them is window."""
    found: dict[str, None] = {}
    chosen: dict[str, dict[str, None]] = {}
    for leg in result.legs:
        for host, program in leg.program.items():
            told = {name: text_of(program, name, "?") for name in _SYSCTLS if name in program}
            if leg.leg.buffer_bytes is None and told:
                found[f"{host:<7} {', '.join(f'{name} {sizes}' for name, sizes in told.items())}"] = None
            elif told:
                sizes = " and ".join(dict.fromkeys(one.rpartition(" ")[2] for one in told.values()))
                chosen.setdefault(host, {})[sizes] = None
    yield from map(clean, found)
    for host, sets in chosen.items():
        yield from wrap(
            clean(f"{host:<7} set to {', '.join(sets)} B at most, and restored"), 100, subsequent_indent=_IN
        )
    rules = {
        window_rule(leg.program[receiver]).why: None
        for leg in result.legs
        if (receiver := "client" if leg.leg.way is Way.REVERSE else "server") in leg.program
    }
    yield from (clean(f"window  {why}; of a send buffer {SENDABLE:g} can be on its way") for why in rules)


def _group(row: BdpRow) -> str:
    """Name what neighbouring rows have in common."""
    sender = [f"{row.sender} sends"] if row.kind.way is Way.BIDIR else []
    return ", ".join([f"{row.kind.way.value} IPv{row.kind.version}", *sender, row.congestion])


def _buffers(row: BdpRow) -> str:
    how, _, whose = row.buffer_by.partition(": ")
    told = f" ({whose})" if whose and how != "set" else ""
    return f"{or_dash(row.buffer_bytes, format_size)}, {how}{told}"


def _row(row: BdpRow) -> tuple[str, ...]:
    sizes = (row.buffer_bytes, row.window_predicted_bytes, row.window_bytes, row.cwnd_bytes)
    again = or_dash(row.retransmits, str)
    return (
        *(or_dash(size, format_size) for size in sizes),
        or_dash(row.predicted_bps, _mega),
        row.predicted_by or NONE,
        f"{'>= ' if row.at_least else ''}{_mega(row.rate_bps)}",
        or_dash(row.uncertainty_bps, _mega),
        or_dash(row.ratio, lambda ratio: f"{ratio:.2f}"),
        again,
        row.limit.value,
    )


def _mega(bps: float) -> str:
    return f"{bps / 1e6:.1f}"
