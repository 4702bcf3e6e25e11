"""Plot of the rate over the size of the buffers, and of what bounds it, for the page and a run's picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...core.history.cell import Cell
from ...core.tcp.bdp import BdpRow
from ...core.tcp.result import TcpResult
from ...core.tcp.wan import Wan, format_size
from ...core.units import format_bits, format_time
from ..plots import BAD, INK, SOFT, PlotAxis, PlotFigure, PlotLine
from ..words import format_bound

STEPS = 32
"""Points, less one, of a line that is curved on the logarithmic axis of sizes."""
MARGIN = 1.6
"""Factor by which the axis of sizes extends beyond them on both sides."""
ABOVE = 1.12
"""Top of the axis of rates, as a multiple of the line's rate or the fastest leg's."""


def find_plot(
    result: TcpResult, rows: Sequence[BdpRow], title: str = "", cell: Cell | None = None
) -> PlotFigure | None:
    """Plot the rows whose buffers are known; None where these do not differ.

    Each congestion control has a series, and each way where there are several. title: to choose the plot by.
    """
    known = sorted((row for row in rows if row.buffer_bytes), key=_size)
    sizes = list(dict.fromkeys(map(_size, known)))
    if len(sizes) < 2:
        return None
    several = len({(row.kind.way, row.kind.version, row.sender) for row in known}) > 1
    series: dict[str, list[BdpRow]] = {}
    for row in known:
        series.setdefault(row.name if several else row.congestion, []).append(row)
    top_bps = ABOVE * max([row.line_bps or 0.0 for row in known] + [row.rate_bps for row in known])
    scale, unit = (1e-9, "Gbit/s") if top_bps > 2e9 else (1e-6, "Mbit/s")
    cells, span = () if cell is None else (cell,), (sizes[0] / MARGIN, sizes[-1] * MARGIN)
    bounds = {line.name: line for line in _bounds(known, (result.setup.wan or Wan()).loss, span, scale, cells)}
    measured = [
        PlotLine(
            f"measured, {name}",
            [_size(row) for row in some],
            [scale * row.rate_bps for row in some],
            [_words(row) for row in some],
            cells,
            number,
            "dash" if number else "solid",
            [row.at_least for row in some],
            [scale * (row.uncertainty_bps or 0.0) for row in some],
        )
        for number, (name, some) in enumerate(series.items())
    ]
    return PlotFigure(
        PlotAxis("buffers of both hosts", [(size, format_size(size, chosen=True)) for size in sizes], span),
        PlotAxis(f"payload received, {unit}", span=(0.0, scale * top_bps)),
        [*bounds.values(), *measured],
        title,
        "none",
    )


def _size(row: BdpRow) -> int:
    return row.buffer_bytes or 0


def _words(row: BdpRow) -> str:
    apart = "" if row.uncertainty_bps is None else f" \u00b1 {format_bits(row.uncertainty_bps)}"
    rate = format_bound(row.rate_bps, row.at_least, "bit/s")
    return f"{rate}{apart} with buffers of {format_size(_size(row))}; {row.words}"


def _bounds(
    rows: Sequence[BdpRow], loss: float, span: tuple[float, float], scale: float, cells: tuple[Cell, ...]
) -> Iterator[PlotLine]:
    """Yield window over round trip by each receiver's rule, the line's rate, and each control's rate at a loss."""

    def bound(name: str, rates_bps: Mapping[float, float], colour: str, dash: str) -> PlotLine:
        rates, texts = [scale * bps for bps in rates_bps.values()], [format_bits(bps) for bps in rates_bps.values()]
        return PlotLine(name, list(rates_bps), rates, texts, cells, colour, dash)

    slopes = {
        (row.window_predicted_bytes / row.buffer_bytes, row.round_trip_s)
        for row in rows
        if row.window_predicted_bytes and row.buffer_bytes and row.round_trip_s
    }
    sizes = [span[0] * (span[1] / span[0]) ** (step / STEPS) for step in range(STEPS + 1)]
    for share, trip_s in sorted(slopes):
        what = f"window / round trip: {share:.2g} of the buffer over {format_time(trip_s)}"
        yield bound(what, {size: 8 * share / trip_s * size for size in sizes}, INK, "solid")
    for line in sorted({row.line_bps for row in rows if row.line_bps}):
        yield bound(f"payload rate of the line: {format_bits(line)}", dict.fromkeys(span, line), SOFT, "dash")
    for name, bps, law in sorted({(row.congestion, row.loss_bps, row.loss_law) for row in rows if row.loss_bps}):
        what = f"{name} at a loss of {100 * loss:g} %: {format_bits(bps)}, by {law}"
        yield bound(what, dict.fromkeys(span, bps), BAD, "dot")
