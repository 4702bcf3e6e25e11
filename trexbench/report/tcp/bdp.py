"""The bandwidth-delay product of a run, its hosts' buffers, and what they allow, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.tcp.bdp import BdpRow, find_product, find_rows
from ...core.tcp.laws import SENDABLE, window_rule
from ...core.tcp.model import Way
from ...core.tcp.result import TcpResult
from ...core.tcp.wan import format_size
from ...core.units import format_bits, format_share, format_time
from ..clean import clean
from ..fit import format_sheet
from ..room import wrapped
from ..sheet import make_sheet
from ..words import NONE, or_dash, text_of

_HEADS = (
    "buffers; window^1; seen^1; cwnd^1; predicted [Mbit/s]; ::by; measured [Mbit/s]; +- [Mbit/s]^2; ratio^2; again^3; "
    "::limit"
)
_SYSCTLS = ("tcp_rmem", "tcp_wmem")


def bdp_lines(result: TcpResult, room: int | None = None) -> Iterator[str]:
    """The product, what was read of the hosts, a row for each kind of leg, and each one's verdict. room: as of fit."""
    rows = find_rows(result)
    yield from wrapped([*_of_the_line(result, rows), *map(clean, dict.fromkeys(_of_hosts(result)))], room)
    groups: dict[str, list[BdpRow]] = {}
    for row in rows:
        groups.setdefault(row.name, []).append(row)
    for name, ones in groups.items():
        yield from ("", f"{clean(name)}, in Mbit/s", *format_sheet(make_sheet(_HEADS, map(_row, ones)), room))
    yield ""
    for name, ones in groups.items():
        which = f"{name}, " if len(groups) > 1 else ""
        yield from wrapped([clean(f"{which}{_buffers(row)}: {row.words}") for row in ones], room)


def _of_the_line(result: TcpResult, rows: Sequence[BdpRow]) -> Iterator[str]:
    setup, product = result.setup, find_product(result)
    if setup.wan is not None:
        yield f"WAN     {setup.wan}{f', by {clean(setup.wan_by)}' if setup.wan_by else ''}"
    if setup.wan_asked is not None:
        yield f"scaled  {setup.wan_asked} was asked for: rate and buffers are {format_share(setup.scale)} of that"
    if product is not None:
        parts = f"{format_bits(product.rate_bps)} x {format_time(product.delay_s)}"
        yield f"BDP     {format_size(product.size_bytes)}: {parts} ({product.by})"
    if (trip_s := next((row.round_trip_s for row in rows if row.round_trip_s), None)) is not None:
        yield f"ping    {format_time(trip_s)} round trip of the idle path, the median"
    for row in {row.congestion: row for row in rows}.values() if setup.wan is not None and setup.wan.loss else ():
        most = "no such bound: its rate does not follow from the loss"
        if row.loss_bps is not None:
            most = f"about {format_bits(row.loss_bps)} in the long run, by {row.loss_law}"
        yield clean(f"loss    {row.congestion}: {most}")


def _of_hosts(result: TcpResult) -> Iterator[str]:
    """Each host's buffers as they were, and how much of them is window."""
    for leg in result.legs:
        for host, program in leg.program.items() if leg.leg.buffer_bytes is None else ():
            if sizes := [f"{name} {text_of(program, name, '?')}" for name in _SYSCTLS if name in program]:
                yield f"{host:<7} {', '.join(sizes)}"
    for leg in result.legs:
        if receiver := leg.program.get("client" if leg.leg.way is Way.REVERSE else "server"):
            yield f"window  {window_rule(receiver).why}; of a send buffer {SENDABLE:g} can be on its way"


def _buffers(row: BdpRow) -> str:
    how, _, whose = row.buffer_by.partition(": ")
    return f"{or_dash(row.buffer_bytes, format_size)}, {how}{f' ({whose})' if whose and how != 'set' else ''}"


def _row(row: BdpRow) -> tuple[str, ...]:
    sizes = (row.buffer_bytes, row.window_predicted_bytes, row.window_bytes, row.cwnd_bytes)
    return (
        *(or_dash(size, format_size) for size in sizes),
        or_dash(row.predicted_bps, mega),
        row.predicted_by or NONE,
        f"{'>= ' if row.at_least else ''}{mega(row.rate_bps)}",
        or_dash(row.uncertainty_bps, mega),
        or_dash(row.ratio, lambda ratio: f"{ratio:.2f}"),
        or_dash(row.retransmits, str),
        row.limit.value,
    )


def mega(bps: float) -> str:
    return f"{bps / 1e6:.1f}"
