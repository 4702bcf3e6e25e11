"""Tables of the report, for the page, markdown and CSV; and the page's sections by load."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core import result as packets
from ...core.tcp import result as tcp
from ..clean import clean
from ..plots import PlotFigure
from ..run.sizes import size_figure
from ..sheet import Head, Item, Sheet, make_sheet, raw_of, row_of
from ..tcp.table import published_sheets
from .grid import Grid, GridCell, raw_change
from .report import Report
from .sheets_nights import change_sheet, trend_sheet
from .sheets_packets import cost_sheet, curve_sheet, find_sized, latency_sheet, older_sheet, search_sheet, sizes_sheet
from .sheets_tcp import leg_sheet, ping_sheet, process_sheet, tcp_sheet, tunnel_sheet, wan_sheet

DEEPEST, LONGEST = 3, 400
"""Most levels of facts that have a row each, and most letters of a fact."""


@dataclass(frozen=True)
class Part:
    """A section of the page."""

    name: str
    """Fragment of the section's address."""
    link: str
    """Text of links to the section."""
    sheets: tuple[Sheet, ...]
    """The first table gives the section its heading, the others are folded away."""
    words: str = ""
    figures: tuple[PlotFigure, ...] = ()
    """The section's plot, or several to choose one from."""
    caption: str = ""
    """Sentences below the plot."""


def parts_of(report: Report) -> tuple[Part, ...]:
    """Return the sections whose first table has a row, in the page's order."""
    return tuple(part for make in PARTS.values() for part in make(report) if part.sheets[0].lines)


def tcp_parts(report: Report) -> Sequence[Part]:
    return (
        Part(
            "wans",
            "WANs",
            (wan_sheet(report),),
            figures=tuple(run.plot for run in report.wans if run.plot is not None),
            caption="The mean rate of payload over the buffers of both hosts (the last number of tcp_rmem and "
            "tcp_wmem), with its 95 % interval; the solid line is what a window of that size allows over the round "
            "trip of the idle path. Open markers: the DUT was not the limit, or nothing shows that it was.",
        ),
        Part(
            "tunnels",
            "Tunnels",
            (tunnel_sheet(report), process_sheet(report)),
            "Each cell's latest run: the mean rate of payload, the share of a core that the processes carrying it used "
            "(100 % is a fully busy core), and the payload per second of CPU that they used on all hosts together. "
            "The far end of the tunnel is the server or the DUT.",
        ),
        Part(
            "published",
            "Published figures",
            tuple(published_sheets(report.published, report.marked)),
            "Figures that others published for the same tests, and those measured here, in Mbit/s. Where the "
            "line was scaled down the ratio is to the same share of the published figure.",
        ),
    )


def packet_parts(report: Report) -> Sequence[Part]:
    sized = find_sized(report.runs)
    return (
        Part(
            "searches",
            "Searches",
            (search_sheet(report),),
            "The highest rate whose loss stays within a goal: NDR (non-drop rate) allows none, PDR (partial drop rate) "
            "the share behind it. Both ends of the interval were offered: the lower met the goal, the upper did not. "
            "It is wider where the DUT varies.",
        ),
        Part(
            "sizes",
            "Frame sizes",
            (sizes_sheet(report, sized),),
            figures=(size_figure([(str(of), cells, runs) for of, cells, runs in sized]),) if sized else (),
            caption="Frames per second of all directions together over the frame size with FCS (RFC 2544, section "
            "26.1). Dashed: line rate, the theoretical maximum. Open markers: lower bounds. The vertical axis has a "
            "log scale. Shares of line rate are summed over the directions: up to 200\u00a0% for two.",
        ),
    )


PARTS: dict[str, Callable[[Report], Sequence[Part]]] = {tcp.SCHEMA: tcp_parts, packets.SCHEMA: packet_parts}
"""Schema of a load's documents, as in results.loads -> function that makes the load's sections."""


def sheets_of(report: Report, parts: Sequence[Part] | None = None) -> Iterator[Sheet]:
    """Yield every table of the report that has a row, in the page's order. parts: the report's, if made already."""
    sheets = (
        change_sheet(report.groups, report.marked),
        grid_sheet("maximum-rate", "Maximum rate, % of line rate", report.grid, rates=False),
        grid_sheet("maximum-rate-absolute", "Maximum rate", report.grid, rates=True),
        grid_sheet("cycles-at-rates", "Cycles per packet at given rates", report.cost_grid, rates=True),
        *(make(report) for make in (tcp_sheet, leg_sheet, ping_sheet)),
        *(sheet for part in (parts_of(report) if parts is None else parts) for sheet in part.sheets),
        *(make(report) for make in (curve_sheet, older_sheet, cost_sheet, latency_sheet, trend_sheet, fact_sheet)),
    )
    return (sheet for sheet in sheets if sheet.lines)


def grid_sheet(name: str, caption: str, grid: Grid, rates: bool) -> Sheet:
    """Table with a column for each column of the grid, and one for its changes where any is known."""
    heads = [Head("Traffic", words=True)]
    for column in grid.columns:
        heads.append(Head(clean(column), grid.unit if rates else "% of line rate"))
        heads += [Head(f"{clean(column)}, change", "%")] if grid.has_deltas else []
    lines = []
    for block in grid.blocks:
        for row in block.rows:
            items: list[Item | str] = [row.mode]
            for cell in row.cells:
                changes = [Item(cell.change, raw_change(cell.delta))] if grid.has_deltas else []
                items += [grid_item(cell, rates), *changes]
            lines.append(row_of(items, block=clean(block.name)))
    return make_sheet(heads, lines, name, caption, "Direction")


def grid_item(cell: GridCell, rates: bool) -> Item:
    """Item of a figure, in % of the line rate or in the figure's own unit."""
    text = cell.rate if rates else cell.percent
    value = cell.value if rates else None if cell.share is None else 100 * cell.share
    raw = "failed" if cell.state == "failed" else "" if value is None else raw_of(value, cell.at_least)
    return Item(text, raw, cell.state + (" bound" if cell.at_least else ""))


def fact_sheet(report: Report) -> Sheet:
    """Table of the facts that the latest run read back from each DUT."""
    rows = []
    for column, run in report.latest.items():
        name = report.marked(column.name, column.mark and f"({column.mark})")
        rows += [(name, *fact) for fact in facts_of(run.dut.get("facts"))]
    return make_sheet(":DUT; :Fact; :Value", rows, "facts", "Attested facts")


def facts_of(values: Any, before: str = "", depth: int = 1) -> Iterator[tuple[str, str]]:
    """Yield nested facts as ``interfaces / ix0 / mtu`` with their values; deeper levels as JSON."""
    for key, value in values.items() if isinstance(values, Mapping) else ():
        name = f"{before}{clean(key, 100)}"
        if isinstance(value, Mapping) and value and depth < DEEPEST:
            yield from facts_of(value, f"{name} / ", depth + 1)
        else:
            text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
            yield name, clean(text, LONGEST)
