"""A report's data, and what is derived from them: shared by the page, the markdown and the tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from urllib.parse import quote

from ...core.dut.cycles import Cost
from ...core.history.causes import FindingGroup
from ...core.history.cell import Cell, by_given_rate
from ...core.history.levels import Usual
from ...core.history.night import Night
from ...core.history.regression import Finding
from ...core.history.rows import METRICS, Metric, RunRow
from ...core.history.series import night_of
from ...core.history.testers import FigureRatio
from ...core.result import RunResult
from ...core.run import Run
from ...core.tcp.result import TcpResult
from ..events import NightEvent
from ..run.costs import known_costs
from ..run.summary import RunSummary, summarise
from ..tcp.table import PublishedCell
from ..words import format_count
from .columns import Column, column_of, order_columns
from .grid import Grid, build_cost_grid, build_grid
from .older import Older
from .overlay import Curve, LatencyTable, find_curves, find_latency_table
from .tcp import TcpCell, WanRun, find_tcp_cells, find_wan_runs, mode_order, mode_words
from .trends import Trend, TrendChange, find_trends

_FIGURE = re.compile(r"\d[\d.,]*(?:e[+-]?\d+)?(?: [kMG](?=pps|bit))?")
"""A number with the prefix of its unit: warnings that differ only in these say the same."""


@dataclass(frozen=True)
class Warned:
    """A warning, and the runs that have it."""

    runs: tuple[tuple[str, str, int], ...]
    """Name of each run, the text as this run has it, and the number of its details on the page."""

    @property
    def text(self) -> str:
        """The warning's text, with the figures of the first run."""
        return self.runs[0][1]

    @property
    def differ(self) -> bool:
        return any(text != self.text for _, text, _ in self.runs)

    @property
    def count(self) -> str:
        """``8 runs, with other figures``."""
        names = format_count(len(dict.fromkeys(name for name, _, _ in self.runs)), "run")
        return f"{names}, with other figures" if self.differ else names


@dataclass(frozen=True)
class Report:
    """All that is reported. rows, nights: oldest first. table: the night whose table is shown, None: the latest runs'.

    runs: each cell's latest run, which is shown in full; tcp: the same of TCP, where cells may share a run; others: of
    other loads. older: runs of earlier nights to compare it with, newest first. problems: documents that could not be
    read, and why. made: when, UTC. groups: the changes by their likely cause. judged: the verdict of the search for
    changes, in a sentence; None: there was none. usual: last stable levels, by cell and metric. published: cells of the
    table beside the figures of others, where its suite has any.
    """

    rows: Sequence[RunRow]
    nights: Sequence[Night] = ()
    table: Night | None = None
    runs: Mapping[Cell, RunResult] = field(default_factory=dict)
    older: Mapping[Cell, Sequence[Older]] = field(default_factory=dict)
    changes: Sequence[TrendChange] = ()
    groups: Sequence[FindingGroup] = ()
    usual: Mapping[tuple[Cell, str], Usual] = field(default_factory=dict)
    ratios: Sequence[FigureRatio] = ()
    """By how much testers differ."""
    problems: Sequence[tuple[str, str]] = ()
    title: str = "trexbench"
    made: str = ""
    judged: str | None = None
    remarks: Sequence[str] = ()
    tcp: Mapping[Cell, TcpResult] = field(default_factory=dict)
    others: Mapping[Cell, Run] = field(default_factory=dict)
    published: Sequence[PublishedCell] = ()
    events: Sequence[NightEvent] = ()
    """All that changed or failed, the worst first."""
    results: str = "results"
    """The directory of the results, as it was typed."""
    below: str | None = None
    """The address of the results directory, as seen from the page; None: nothing in it is linked."""
    pages: Sequence[tuple[str, str]] = ()
    """Pages of other nights, newest first: the night, and the file in the results directory."""

    def said(self, text: object) -> str:
        """The text without the mark of simulated cells, on a page that has no others and says so once."""
        words = str(text)
        for marked, name in self._marks.items() if "simulated" in words else ():
            words = words.replace(marked, name)
        return words

    @cached_property
    def _marks(self) -> Mapping[str, str]:
        """Marked names of cells and DUTs, each with its name alone; none on a page that has measured runs as well."""
        cells = {cell.unmarked for cell in {row.cell for row in self.rows}} if self.all_simulated else set()
        names = {str(one) for cell in cells for one in (cell, replace(cell, rx_queues=None))}
        duts = {str(column_of(one)) for cell in cells for one in (cell, replace(cell, rx_queues=None))}
        return {f"{name} simulated": name for name in names} | {f"{name} (simulated)": name for name in duts}

    @cached_property
    def grid(self) -> Grid:
        return build_grid(self.rows, self.table, self.usual)

    @cached_property
    def cost_grid(self) -> Grid:
        """Cycles per packet at the rates that were asked for (``trexbench efficiency``)."""
        return build_cost_grid(self.rows, self.usual)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """Curves of the runs that looked for a maximum."""
        runs = [(cell, run) for cell, run in self.runs.items() if cell.held_pps is None]
        return tuple(curve for cell, run in runs for curve in find_curves(cell, run))

    @cached_property
    def trends(self) -> tuple[Trend, ...]:
        return find_trends(self.rows, self.nights, self.changes, self.usual, self.ratios)

    @property
    def trend_nights(self) -> int:
        """The nights, or runs outside any, of the cell that has most of them."""
        return max((len(set(trend.instants.values())) for trend in self.trends), default=0)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of which any cell has figures, the rates first."""
        found = [metric for metric in METRICS.values() if any(metric in trend.metrics for trend in self.trends)]
        return tuple(sorted(found, key=lambda metric: not metric.bounded))

    @cached_property
    def costs(self) -> Mapping[Cell, tuple[Cost, ...]]:
        """The costs that have a figure, of every run that has any."""
        found = {cell: known_costs(self.runs[cell]) for cell in by_given_rate(self.runs)}
        return {cell: costs for cell, costs in found.items() if costs}

    @cached_property
    def latency(self) -> LatencyTable:
        return find_latency_table(self.runs)

    @cached_property
    def tcp_cells(self) -> tuple[TcpCell, ...]:
        """By DUT, in the order of the table's columns, each with its ways in one order."""
        places = {column: at for at, column in enumerate(self.columns)}
        found = find_tcp_cells(self.tcp)
        return tuple(sorted(found, key=lambda one: (places[column_of(one.cell)], mode_order(one.cell))))

    @cached_property
    def wans(self) -> tuple[WanRun, ...]:
        return find_wan_runs({one.cell: one.result for one in self.tcp_cells})

    @property
    def tcp_modes(self) -> Mapping[str, str]:
        """All modes of TCP that any cell has, and their words."""
        cells = sorted({trend.cell for trend in self.trends if trend.cell.tcp}, key=mode_order)
        return {str(cell.mode): mode_words(cell) for cell in cells}

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the table and of all cells; a DUT's place there is its colour on the page."""
        cells = [*(trend.cell for trend in self.trends), *self.runs, *self.tcp]
        return order_columns([*map(column_of, cells), *self.grid.columns, *self.cost_grid.columns])

    @property
    def has_packets(self) -> bool:
        return any(not trend.cell.tcp for trend in self.trends)

    @property
    def latest(self) -> Mapping[Column, Run]:
        """The latest run of each DUT with each number of queues."""
        latest = {column_of(cell): run for cell, run in sorted(self._every, key=lambda item: item[1].started)}
        return {column: latest[column] for column in (column_of(cell) for cell, _ in self._every)}

    def link_of(self, run: Run) -> str | None:
        """The address of the document of a run that is shown, as seen from the page; None: it is not linked."""
        cell = next(cell for cell, one in self._every if one is run)
        path = self._paths.get((cell, run.started))
        return None if self.below is None or path is None else self.below + quote(path)

    @cached_property
    def _paths(self) -> Mapping[tuple[Cell, str], str]:
        return {(row.cell, row.started): row.path for row in self.rows}

    @property
    def _every(self) -> list[tuple[Cell, Run]]:
        return [*self.runs.items(), *self.tcp.items(), *self.others.items()]

    @property
    def night(self) -> str:
        """Night of the table; without one the newest of all runs."""
        return self.table.night if self.table is not None else max(map(night_of, self.rows), default="")

    @cached_property
    def dated(self) -> Mapping[Cell, str]:
        """The night of each run that is shown and is not of the report's night, as where the newest one failed."""
        nights = {cell: night_of_run(run) for cell, run in self._every}
        return {cell: night for cell, night in nights.items() if night != self.night}

    @property
    def dated_words(self) -> str:
        of = format_count(len(self.dated), "cell")
        return f"The latest run of {of} is not of the night of {self.night}: it is shown with its own night"

    def named(self, cell: Cell) -> str:
        """The cell, with the night of its run if that is not the report's."""
        name = self.said(cell)
        return f"{name}, {self.dated[cell]}" if cell in self.dated else name

    @property
    def tcp_runs(self) -> tuple[tuple[TcpResult, tuple[str, ...]], ...]:
        """Each run of TCP once, with its warnings."""
        found = {id(run): run for run in self.tcp.values()}.values()
        return tuple((run, tuple(one.text for one in (*run.warnings, *run.analysis_warnings))) for run in found)

    @cached_property
    def summaries(self) -> Mapping[Cell, RunSummary]:
        return {cell: summarise(run) for cell, run in self.runs.items()}

    @cached_property
    def warned(self) -> tuple[Warned, ...]:
        """All warnings, each text once, those of most runs first.

        A run's details are numbered as on the page: runs, then those of TCP.
        """
        every: list[tuple[str, str, int]] = []
        for number, cell in enumerate(self.runs):
            every += [(self.named(cell), text, number) for text in self.summaries[cell].warnings]
        for number, (run, warnings) in enumerate(self.tcp_runs, len(self.runs)):
            cell = next(cell for cell, one in self.tcp.items() if one is run)
            every += [(self.said(f"{cell.dut_words}, TCP"), text, number) for text in warnings]
        alike: dict[str, list[tuple[str, str, int]]] = {}
        for one in every:
            alike.setdefault(_FIGURE.sub("#", one[1]), []).append(one)
        return tuple(Warned(tuple(some)) for some in sorted(alike.values(), key=lambda some: -len(some)))

    def warnings_of(self, run: int) -> list[int]:
        """Numbers, from 1, of the warnings that the run has whose details have this number."""
        return [at for at, one in enumerate(self.warned, 1) if any(number == run for _, _, number in one.runs)]

    @property
    def alarming(self) -> Finding | None:
        """The first change for the worse that is not acknowledged."""
        lasting = (one.finding for one in self.changes if not one.ended)
        return next((one for one in lasting if one.worse and one.note is None), None)

    @property
    def simulated(self) -> bool:
        return any(row.cell.simulated for row in self.rows) or any(night.simulated for night in self.nights)

    @property
    def emulated(self) -> str:
        """The sentence of the banner; empty: no processor was emulated."""
        words = "What is marked so was measured on an emulated processor and is comparable only with itself."
        return words if any(row.cell.emulated for row in self.rows) else ""

    @property
    def all_simulated(self) -> bool:
        nights = (night.simulated for night in self.nights if night.cells)
        return self.simulated and all(row.cell.simulated for row in self.rows) and all(nights)


def night_of_run(run: Run) -> str:
    """Return the run's night, as in the index: the suite's night, or the day on which the run began."""
    night = run.command.get("night")
    return night if isinstance(night, str) and night else run.started[:10]
