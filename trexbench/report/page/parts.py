"""Sections of the page by load: each a heading, a plot if it has one, and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...core import result as packets
from ...core.tcp import result as tcp
from ...core.tcp.bdp import LINE, LOSS, WINDOW, BdpRow
from ...core.tcp.wan import format_size
from ...core.units import format_bits, format_pps, format_share, nominal
from ..tcp.curves import BdpPlot
from ..words import format_bound, format_limit
from .plots import BAD, INK, SOFT, PlotAxis, PlotFigure, PlotLine
from .report import Report
from .searches import SizedDut, series_by_loss
from .sheet import Sheet
from .sheets_packets import search_sheet, size_sheet
from .sheets_tcp import process_sheet, published_sheet, tunnel_sheet, wan_sheet
from .wans import WanRun

_BOUNDS = {WINDOW: (INK, "solid"), LINE: (SOFT, "dash"), LOSS: (BAD, "dot")}
"""Colour and dash of what bounds the rate over a WAN."""


@dataclass(frozen=True)
class Part:
    """A section of the page."""

    name: str
    """Its place in the page's address."""
    link: str
    """Words that lead to it."""
    sheets: tuple[Sheet, ...]
    """Tables; the first gives the section its heading, those behind it are folded away."""
    words: str = ""
    figures: tuple[PlotFigure, ...] = ()
    """The section's plot, or several to choose one from."""
    caption: str = ""
    """Sentences below the plot."""


def parts_of(report: Report) -> tuple[Part, ...]:
    """The sections that have a table with a row, in the page's order."""
    every = (make(report) for makers in PARTS.values() for make in makers)
    return tuple(part for part in every if part.sheets[0].lines)


def wan_part(report: Report) -> Part:
    return Part(
        "wans",
        "WANs",
        (wan_sheet(report),),
        figures=tuple(_wan_figure(run, run.plot) for run in report.wans if run.plot is not None),
        caption="The mean rate of payload over the buffers of both hosts (the last number of tcp_rmem and tcp_wmem), "
        "with its 95 % interval; the solid line is what a window of that size allows over the round trip of the idle "
        "path. Open markers: the DUT was not the limit, or nothing shows that it was.",
    )


def _wan_figure(run: WanRun, plot: BdpPlot) -> PlotFigure:
    scale, unit = (1e-9, "Gbit/s") if plot.top_bps > 2e9 else (1e-6, "Mbit/s")
    lines = []
    for bound in plot.bounds:
        sizes, rates = bound.points(plot.span)
        told, style = [format_bits(bps) for bps in rates], _BOUNDS[bound.kind]
        lines.append(PlotLine(bound.label, sizes, [scale * bps for bps in rates], told, (run.cell,), *style))
    for number, (name, rows) in enumerate(plot.series.items()):
        measured = PlotLine(
            f"measured, {name}",
            [row.buffer_bytes or 0 for row in rows],
            [scale * row.rate_bps for row in rows],
            [_wan_words(row) for row in rows],
            (run.cell,),
            number,
            "dash" if number else "solid",
            [row.at_least for row in rows],
            [scale * (row.uncertainty_bps or 0.0) for row in rows],
        )
        lines.append(measured)
    across = PlotAxis("buffers of both hosts", [(size, format_size(size)) for size in plot.sizes], plot.span)
    return PlotFigure(across, PlotAxis(f"payload received, {unit}", (), (0, scale * plot.top_bps)), lines, run.title)


def _wan_words(row: BdpRow) -> str:
    apart = "" if row.uncertainty_bps is None else f" \u00b1 {format_bits(row.uncertainty_bps)}"
    rate = format_bound(row.rate_bps, row.at_least, "bit/s")
    return f"{rate}{apart} with buffers of {format_size(row.buffer_bytes or 0)}; {row.words}"


def tunnel_part(report: Report) -> Part:
    return Part(
        "tunnels",
        "Tunnels",
        (tunnel_sheet(report), process_sheet(report)),
        "Each DUT's latest run: the mean rate of payload, what the processes that carry it took of one core (100 % is "
        "a core without time left), and the payload for each second of CPU that they took on all hosts together. The "
        "far end of the tunnel is the server, or the DUT.",
    )


def published_part(report: Report) -> Part:
    cpu = "; CPU of processes in % of one core" if any(one.published_cpu for one in report.published) else ""
    return Part(
        "published",
        "Published figures",
        (published_sheet(report),),
        f"What others have published of the same tests, and what was measured here, in Mbit/s{cpu}. A ratio of a line "
        "that was scaled down is to the same share of the published figure.",
    )


def search_part(report: Report) -> Part:
    return Part(
        "searches",
        "Searches",
        (search_sheet(report),),
        "The highest rate at which no more than a goal's share of the frames is lost: NDR (non-drop rate) of none at "
        "all, PDR (partial drop rate) of the share behind it. The interval: rates that were offered, the lower within "
        "the goal, the upper beyond it; wider where the DUT varies.",
    )


def size_part(report: Report) -> Part:
    return Part(
        "sizes",
        "Frame sizes",
        (size_sheet(report),),
        figures=(_size_figure(report.sized),) if report.sized else (),
        caption="Frames per second of all directions together over the frame size with FCS (RFC 2544, section 26.1). "
        "Dashed: line rate, the theoretical maximum. Open markers: at least so much. The vertical axis has a log "
        "scale. In the table the share is of one direction's line rate, so up to 200\u00a0% of both.",
    )


def _size_figure(duts: Sequence[SizedDut]) -> PlotFigure:
    """The throughput of each DUT, and each line rate once for all of its DUTs."""
    most: dict[tuple[tuple[float, ...], ...], PlotLine] = {}
    lines = []
    for dut in duts:
        plans = [run.plan for run in dut.results]
        sizes = tuple(plan.offers[0].mean_frame_bytes for plan in plans)
        rates = tuple(sum(offer.line_rate_pps for offer in plan.offers) for plan in plans)
        told = [f"{format_pps(pps)} at {size:g} B" for size, pps in zip(sizes, rates, strict=True)]
        ways = len(plans[0].directions)
        name = f"line rate (theoretical maximum) at {dut.speeds}{f', {ways} directions' * (ways > 1)}"
        cells = (*(most[sizes, rates].cells if (sizes, rates) in most else ()), dut.cell)
        most[sizes, rates] = PlotLine(name, sizes, rates, told, cells, SOFT, "dash")
        for number, (loss, points) in enumerate(series_by_loss(dut.rows).items()):
            found = PlotLine(
                f"{dut.name}, loss \u2264 {format_limit(loss)}",
                [point.frame_bytes for point in points],
                [point.total_pps for point in points],
                [
                    f"{format_bound(point.total_pps, bool(point.bounds))} at {point.frame_bytes:g} B, "
                    f"{format_share(point.total_pps / point.line_rate_pps)} of line rate"
                    for point in points
                ],
                (dut.cell,),
                dash="dot" if number else "solid",
                bounds=[bool(point.bounds) for point in points],
            )
            lines.append(found)
    every = sorted({size for line in most.values() for size in line.x})
    across = PlotAxis(
        "frame size with FCS, bytes", [(size, f"{size:g}") for size in every], (every[0] / 1.2, 1.2 * every[-1])
    )
    ticks = [step * 10.0**power for power in range(2, 10) for step in (1, 2, 5)]
    return PlotFigure(
        across, PlotAxis("", [(pps, nominal(format_pps(pps))) for pps in ticks]), [*most.values(), *lines]
    )


PARTS: dict[str, Sequence[Callable[[Report], Part]]] = {
    tcp.SCHEMA: (wan_part, tunnel_part, published_part),
    packets.SCHEMA: (search_part, size_part),
}
"""The sections of every load by the schema of its documents, as in results.loads."""
