"""Tables of the report, for the page, markdown and CSV."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..clean import clean
from ..sheet import Head, Item, Sheet, make_sheet, raw_of, row_of
from .grid import Grid, GridCell
from .parts import Part, parts_of
from .report import Report
from .sheets_nights import change_sheet, trend_sheet
from .sheets_packets import cost_sheet, curve_sheet, latency_sheet, older_sheet
from .sheets_tcp import leg_sheet, ping_sheet, tcp_sheet

DEEPEST, LONGEST = 3, 400
"""Most levels of facts that have a row each, and most letters of a fact."""


def sheets_of(report: Report, parts: Sequence[Part] | None = None) -> Iterator[Sheet]:
    """Yield every table of the report that has a row, in the page's order. parts: the report's, if made already."""
    sheets = (
        change_sheet(report.groups),
        grid_sheet("maximum-rate", "Maximum rate, % of line rate", report.grid, rates=False),
        grid_sheet("maximum-rate-absolute", "Maximum rate", report.grid, rates=True),
        grid_sheet("cycles-at-rates", "Cycles per packet at given rates", report.cost_grid, rates=True),
        *(make(report) for make in (tcp_sheet, leg_sheet, ping_sheet)),
        *(sheet for part in (parts_of(report) if parts is None else parts) for sheet in part.sheets),
        *(make(report) for make in (curve_sheet, older_sheet, cost_sheet, latency_sheet, trend_sheet, fact_sheet)),
    )
    return (_with_run_names(sheet, report) for sheet in sheets if sheet.lines)


def _with_run_names(sheet: Sheet, report: Report) -> Sheet:
    """Name runs without the mark of simulated ones if the page says that all are, and with a night that is not its own.

    CSV keeps the mark.
    """
    bare = report.all_simulated and sheet.heads[0].name in ("Run", "Cell", "DUT")
    dated = report.dated if sheet.heads[0].name == "Run" and sheet.heads[1].name != "Night" else {}
    lines = []
    for line in sheet.lines:
        name, *others = line.items
        if bare:  # all of these names end with the mark
            name = replace(name, text=name.text.removesuffix(" (simulated)").removesuffix(" simulated"))
        night = None if line.cell is None else dated.get(line.cell)
        if night is not None and name.raw == clean(line.cell):  # an older night's run has its own
            name = replace(name, text=f"{name.text}, {clean(night)}", raw=f"{name.raw}, {clean(night)}")
        lines.append(replace(line, items=(name, *others)))
    return replace(sheet, lines=tuple(lines))


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
                change = "" if cell.delta is None else raw_of(100 * cell.delta.share)
                items += [grid_item(cell, rates), *([Item(cell.change, change)] if grid.has_deltas else [])]
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
    rows = ((str(column), *fact) for column, run in report.latest.items() for fact in facts_of(run.dut.get("facts")))
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
