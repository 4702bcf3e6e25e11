"""The rate over the size of the buffers, and what bounds it: series and lines for picture and page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.tcp.bdp import LINE, LOSS, WINDOW, BdpRow
from ...core.tcp.model import Way
from ...core.tcp.result import TcpResult
from ...core.units import format_bits, format_time


@dataclass(frozen=True)
class Bound:
    """kind: LINE, WINDOW or LOSS. The rate at a size of the buffers is bps + slope x size."""

    kind: str
    label: str
    bps: float = 0.0
    slope: float = 0.0

    def at(self, size_bytes: float) -> float:
        return self.bps + self.slope * size_bytes


def sized_rows(rows: Sequence[BdpRow]) -> list[BdpRow]:
    """Return the rows whose buffers are known; none where they do not differ."""
    known = [row for row in rows if row.buffer_bytes]
    return known if len({row.buffer_bytes for row in known}) > 1 else []


def sorted_series(rows: Sequence[BdpRow]) -> dict[str, list[BdpRow]]:
    """A series for each congestion control, and for each way where there are several; smaller buffers first."""
    ways = {(row.kind.way, row.kind.version, row.sender) for row in rows}
    series: dict[str, list[BdpRow]] = {}
    for row in sorted(rows, key=lambda row: row.buffer_bytes or 0):
        way = f"{row.kind.way.value} IPv{row.kind.version}, " if len(ways) > 1 else ""
        sender = f"{row.sender} sends, " if row.kind.way is Way.BIDIR else ""
        series.setdefault(f"{way}{sender}{row.congestion}", []).append(row)
    return series


def find_bounds(result: TcpResult, rows: Sequence[BdpRow]) -> list[Bound]:
    """Window over round trip, by the rule of each receiver; the line; what losses allow, by congestion control.

    Of those that would be called the same there is one.
    """
    slopes = {
        (row.window_predicted_bytes / row.buffer_bytes, row.round_trip_s)
        for row in rows
        if row.window_predicted_bytes and row.buffer_bytes and row.round_trip_s
    }
    found = [
        Bound(
            WINDOW,
            f"window / round trip: {share:.2g} of the buffer over {format_time(trip_s)}",
            slope=8 * share / trip_s,
        )
        for share, trip_s in sorted(slopes)
    ]
    for line in sorted({row.line_bps for row in rows if row.line_bps}):
        found.append(Bound(LINE, f"payload rate of the line: {format_bits(line)}", line))
    laws = {(row.congestion, row.loss_bps, row.loss_law) for row in rows if row.loss_bps}
    loss = result.setup.wan.loss if result.setup.wan is not None else 0.0
    for name, bps, law in sorted(laws):
        found.append(Bound(LOSS, f"{name} at a loss of {100 * loss:g} %: {format_bits(bps)}, by {law}", bps))
    return list({one.label: one for one in found}.values())
