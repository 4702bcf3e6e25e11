"""The rate over the size of the buffers, and what bounds it: series and lines for picture and page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...core.tcp.bdp import LINE, LOSS, WINDOW, BdpRow
from ...core.tcp.result import TcpResult
from ...core.tcp.wan import Wan
from ...core.units import format_bits, format_time

STEPS = 32
"""Steps of a line that is curved on the axis of sizes."""
MARGIN = 1.6
"""Factor by which that axis extends beyond the sizes, on both sides."""
ABOVE = 1.12
"""Top of the axis of rates, as a multiple of the line's or of the fastest leg's."""


@dataclass(frozen=True)
class Bound:
    """The rate at a size of the buffers is bps + slope x size."""

    kind: str
    """LINE, WINDOW or LOSS."""
    label: str
    bps: float = 0.0
    slope: float = 0.0

    def points(self, span: tuple[float, float]) -> tuple[list[float], list[float]]:
        """Sizes and rates to draw it by: two where it is level."""
        steps = STEPS if self.slope else 1
        sizes = [span[0] * (span[1] / span[0]) ** (step / steps) for step in range(steps + 1)]
        return sizes, [self.bps + self.slope * size for size in sizes]


@dataclass(frozen=True)
class BdpPlot:
    """Rates of legs that differ in their buffers."""

    series: Mapping[str, Sequence[BdpRow]]
    """One for each congestion control, and for each way where there are several; smaller buffers first."""
    bounds: tuple[Bound, ...]
    sizes: tuple[int, ...]
    """In bytes, each once."""

    @property
    def span(self) -> tuple[float, float]:
        """Ends of the axis of sizes."""
        return self.sizes[0] / MARGIN, self.sizes[-1] * MARGIN

    @property
    def top_bps(self) -> float:
        lines = [bound.bps for bound in self.bounds if bound.kind == LINE]
        return ABOVE * max([*lines, *(row.rate_bps for rows in self.series.values() for row in rows)])


def find_plot(result: TcpResult, rows: Sequence[BdpRow]) -> BdpPlot | None:
    """The plot of the rows whose buffers are known; None where they do not differ."""
    known = sorted((row for row in rows if row.buffer_bytes), key=lambda row: row.buffer_bytes or 0)
    sizes = tuple(dict.fromkeys(row.buffer_bytes or 0 for row in known))
    if len(sizes) < 2:
        return None
    several = len({(row.kind.way, row.kind.version, row.sender) for row in known}) > 1
    series: dict[str, list[BdpRow]] = {}
    for row in known:
        series.setdefault(row.name if several else row.congestion, []).append(row)
    bounds = {one.label: one for one in _bounds(known, (result.setup.wan or Wan()).loss)}
    return BdpPlot(series, tuple(bounds.values()), sizes)


def _bounds(rows: Sequence[BdpRow], loss: float) -> Iterator[Bound]:
    """Window over round trip, by the rule of each receiver; the line; what losses allow, by congestion control."""
    slopes = {
        (row.window_predicted_bytes / row.buffer_bytes, row.round_trip_s)
        for row in rows
        if row.window_predicted_bytes and row.buffer_bytes and row.round_trip_s
    }
    for share, trip_s in sorted(slopes):
        what = f"{share:.2g} of the buffer over {format_time(trip_s)}"
        yield Bound(WINDOW, f"window / round trip: {what}", slope=8 * share / trip_s)
    for line in sorted({row.line_bps for row in rows if row.line_bps}):
        yield Bound(LINE, f"payload rate of the line: {format_bits(line)}", line)
    for name, bps, law in sorted({(row.congestion, row.loss_bps, row.loss_law) for row in rows if row.loss_bps}):
        yield Bound(LOSS, f"{name} at a loss of {100 * loss:g} %: {format_bits(bps)}, by {law}", bps)
