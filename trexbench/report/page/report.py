"""A report's data and what is derived from them, for the page, the markdown and the tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from urllib.parse import quote

from ...core.dut.cycles import Cost
from ...core.history.causes import FindingGroup
from ...core.history.cell import Cell, by_given_rate
from ...core.history.finding import Finding, Kind
from ...core.history.levels import Usual
from ...core.history.night import Night
from ...core.history.rows import METRICS, Metric, RunRow
from ...core.history.series import night_of
from ...core.history.testers import FigureRatio
from ...core.result import RunResult
from ...core.run import Run
from ...core.tcp.result import TcpResult
from ..clean import clean
from ..events import NightEvent
from ..run.costs import known_costs
from ..run.summary import RunSummary, summarise
from ..sheet import Item, named
from ..tcp.table import PublishedCell
from ..words import format_count
from .columns import Column, column_of, order_columns
from .grid import Grid, build_cost_grid, build_grid
from .overlay import Curve, LatencyRow, Older, find_curves, find_latency_rows
from .tcp import TcpCell, WanRun, find_tcp_cells, find_wan_runs, mode_order, mode_words
from .trends import Trend, find_trends

_FIGURE = re.compile(r"\d[\d.,]*(?:e[+-]?\d+)?(?: [kMG](?=pps|bit))?")
"""A number with the prefix of its unit: warnings that differ only in these are the same."""


@dataclass(frozen=True)
class Warned:
    """A warning, and the runs that have it."""

    runs: tuple[tuple[str, str, int], ...]
    """Name of each run, its text of the warning, and the number of its details on the page."""

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
    """All that is reported; rows and nights are ordered oldest first."""

    rows: Sequence[RunRow]
    nights: Sequence[Night] = ()
    table: Night | None = None
    """The night whose table is shown; None: each cell's latest run."""
    runs: Mapping[Cell, RunResult] = field(default_factory=dict)
    """Each cell's latest run of packets, which is shown in full."""
    older: Mapping[Cell, Sequence[Older]] = field(default_factory=dict)
    """Runs of earlier nights to compare the latest with, newest first."""
    changes: Sequence[Finding] = ()
    groups: Sequence[FindingGroup] = ()
    """The changes by their likely cause."""
    usual: Mapping[tuple[Cell, str], Usual] = field(default_factory=dict)
    """Last stable levels, by cell and metric."""
    ratios: Sequence[FigureRatio] = ()
    """Differences between testers."""
    problems: Sequence[tuple[str, str]] = ()
    """Documents that could not be read, each with the reason."""
    title: str = "trexbench"
    made: str = ""
    """Time of making the report, UTC."""
    judged: str | None = None
    """The verdict on the changes in a sentence; None: they were not searched for."""
    remarks: Sequence[str] = ()
    tcp: Mapping[Cell, TcpResult] = field(default_factory=dict)
    """Each cell's latest run of TCP; cells may share a run."""
    others: Mapping[Cell, Run] = field(default_factory=dict)
    """Each cell's latest run of other loads."""
    published: Sequence[PublishedCell] = ()
    """Cells of the table beside published figures, if the suite has any."""
    events: Sequence[NightEvent] = ()
    """All that changed or failed, the worst first."""
    results: str = "results"
    """The directory of the results, as typed."""
    below: str | None = None
    """Address of the results directory relative to the page; None: nothing in it is linked."""
    pages: Sequence[tuple[str, str]] = ()
    """Pages of other nights, newest first: the night, and the file in the results directory."""

    def said(self, text: object) -> str:
        """Remove the mark of simulated cells from a text, on a page that has no others and says so once."""
        words = str(text)
        for marked, name in self._marks.items() if "simulated" in words else ():
            words = words.replace(marked, name)
        return words

    @cached_property
    def _marks(self) -> Mapping[str, str]:
        """Marked name of a cell or DUT -> its name, on a page of simulated runs only."""
        cells = {row.cell.unmarked for row in self.rows} if self.all_simulated else set()
        cells |= {replace(cell, rx_queues=None) for cell in cells}
        duts = {str(column_of(cell)) for cell in cells}
        return {f"{cell} simulated": str(cell) for cell in cells} | {f"{name} (simulated)": name for name in duts}

    @cached_property
    def grid(self) -> Grid:
        return build_grid(self.rows, self.table, self.usual, self.ratios)

    @cached_property
    def cost_grid(self) -> Grid:
        """Table of cycles per packet at given rates (``trexbench efficiency``)."""
        return build_cost_grid(self.rows, self.usual, self.ratios)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """Curves of the runs that sought a maximum."""
        runs = ((cell, run) for cell, run in self.runs.items() if cell.held_pps is None)
        return tuple(curve for cell, run in runs for curve in find_curves(cell, run))

    @cached_property
    def trends(self) -> tuple[Trend, ...]:
        return find_trends(self.rows, self.nights, self.changes, self.usual, self.ratios)

    @property
    def trend_nights(self) -> int:
        """Number of nights, or runs outside nights, of the cell that has most."""
        return max((len(set(trend.instants.values())) for trend in self.trends), default=0)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics of which any cell has figures, rates first."""
        known = [metric for metric in METRICS.values() if any(metric in trend.metrics for trend in self.trends)]
        return tuple(sorted(known, key=lambda metric: not metric.bounded))

    @cached_property
    def costs(self) -> Mapping[Cell, tuple[Cost, ...]]:
        """Costs that have a figure, by the cell of their run."""
        return {cell: costs for cell in by_given_rate(self.runs) if (costs := known_costs(self.runs[cell]))}

    @cached_property
    def latencies(self) -> tuple[LatencyRow, ...]:
        return tuple(row for cell, run in self.runs.items() for row in find_latency_rows(cell, run))

    @cached_property
    def tcp_cells(self) -> tuple[TcpCell, ...]:
        """Cells of TCP in the order of the table's columns, then of their modes."""
        places = {column: at for at, column in enumerate(self.columns)}
        cells = find_tcp_cells(self.tcp)
        return tuple(sorted(cells, key=lambda one: (places[column_of(one.cell)], mode_order(one.cell))))

    @cached_property
    def wans(self) -> tuple[WanRun, ...]:
        return find_wan_runs({one.cell: one.result for one in self.tcp_cells})

    @property
    def tcp_modes(self) -> Mapping[str, str]:
        """Mode of TCP that any cell has -> its words."""
        cells = sorted({trend.cell for trend in self.trends if trend.cell.tcp}, key=mode_order)
        return {str(cell.mode): mode_words(cell) for cell in cells}

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the table and of all cells; a column's index is its colour on the page."""
        cells = [*(trend.cell for trend in self.trends), *self.runs, *self.tcp]
        return order_columns([*map(column_of, cells), *self.grid.columns, *self.cost_grid.columns])

    @property
    def has_packets(self) -> bool:
        return any(not trend.cell.tcp for trend in self.trends)

    @property
    def latest(self) -> Mapping[Column, Run]:
        """Latest run of each column."""
        latest = {column_of(cell): run for cell, run in sorted(self._shown, key=lambda item: item[1].started)}
        return {column: latest[column] for column in (column_of(cell) for cell, _ in self._shown)}

    def link_of(self, run: Run) -> str | None:
        """Address of the document of a run that is shown, relative to the page; None: it is not linked."""
        cell = next(cell for cell, one in self._shown if one is run)
        path = self._paths.get((cell, run.started))
        return None if self.below is None or path is None else self.below + quote(path)

    @cached_property
    def _paths(self) -> Mapping[tuple[Cell, str], str]:
        return {(row.cell, row.started): row.path for row in self.rows}

    @property
    def _shown(self) -> list[tuple[Cell, Run]]:
        return [*self.runs.items(), *self.tcp.items(), *self.others.items()]

    @property
    def night(self) -> str:
        """Night of the table, or the newest of all runs if the table is of no night."""
        return self.table.night if self.table is not None else max(map(night_of, self.rows), default="")

    @cached_property
    def elsewhere(self) -> str:
        """Suites, each with the number of its cells that have a maximum rate but are not in the table."""
        shown = {cell for block in self.grid.blocks for row in block.rows for cell in row.planned}
        suites = {row.cell: row.suite for row in self.rows if row.cell.held_pps is None and row.cell not in shown}
        counts = Counter(suites.values()).items()
        return ", ".join(f"{suite or 'runs by hand'} ({format_count(count, 'cell')})" for suite, count in counts)

    @cached_property
    def dated(self) -> Mapping[Cell, str]:
        """Nights of the runs shown that are not of the report's night, for instance because that failed."""
        return {cell: night for cell, run in self._shown if (night := night_of_run(run)) != self.night}

    @property
    def dated_words(self) -> str:
        cells = format_count(len(self.dated), "cell")
        return f"For {cells} the latest run is not from the night of {self.night}: it is shown with its own night"

    def named(self, cell: Cell, name: str = "", night: str | None = None) -> Item:
        """Name of the cell, or this one, and of a night: this one, else that of the run shown if not the report's."""
        night = self.dated.get(cell) if night is None else night
        return self.marked(name or str(cell.unmarked), cell.mark, f", {clean(night)}" if night else "")

    def marked(self, name: str, mark: str, after: str = "") -> Item:
        """Make an item of a name; its text lacks the mark of simulated runs on a page that has no others."""
        whole = named(name, mark).text
        return Item(f"{clean(name) if self.all_simulated else whole}{after}", f"{whole}{after}")

    @property
    def tcp_runs(self) -> tuple[tuple[TcpResult, tuple[str, ...]], ...]:
        """Each run of TCP once, with its warnings."""
        runs = {id(run): run for run in self.tcp.values()}.values()
        return tuple((run, tuple(one.text for one in (*run.warnings, *run.analysis_warnings))) for run in runs)

    @cached_property
    def summaries(self) -> Mapping[Cell, RunSummary]:
        return {cell: summarise(run) for cell, run in self.runs.items()}

    @cached_property
    def warned(self) -> tuple[Warned, ...]:
        """All warnings, each text once, those of most runs first; runs are numbered as on the page."""
        every: list[tuple[str, str, int]] = []
        for number, cell in enumerate(self.runs):
            every += [(self.named(cell).text, text, number) for text in self.summaries[cell].warnings]
        for number, (run, warnings) in enumerate(self.tcp_runs, len(self.runs)):
            cell = next(cell for cell, one in self.tcp.items() if one is run)
            every += [(self.said(f"{cell.dut_words}, TCP"), text, number) for text in warnings]
        alike: dict[str, list[tuple[str, str, int]]] = {}
        for one in every:
            alike.setdefault(_FIGURE.sub("#", one[1]), []).append(one)
        return tuple(Warned(tuple(some)) for some in sorted(alike.values(), key=lambda some: -len(some)))

    def warnings_of(self, run: int) -> list[int]:
        """Numbers, from 1, of the warnings of the run with this number."""
        return [at for at, one in enumerate(self.warned, 1) if any(number == run for _, _, number in one.runs)]

    @property
    def alarming(self) -> Finding | None:
        """The first change for the worse that is not acknowledged."""
        lasting = (change for change in self.changes if change.kind is not Kind.ENDED)
        return next((change for change in lasting if change.worse and change.note is None), None)

    @property
    def simulated(self) -> bool:
        return any(row.cell.simulated for row in self.rows) or any(night.simulated for night in self.nights)

    @property
    def emulated(self) -> str:
        """Sentence of the banner; empty: no processor was emulated."""
        words = "Runs with this mark were measured on an emulated processor: compare them only with each other."
        return words if any(row.cell.emulated for row in self.rows) else ""

    @property
    def all_simulated(self) -> bool:
        nights = (night.simulated for night in self.nights if night.cells)
        return self.simulated and all(row.cell.simulated for row in self.rows) and all(nights)


def night_of_run(run: Run) -> str:
    """Return the run's night, as in the index: the suite's night, or the day on which the run began."""
    night = run.command.get("night")
    return night if isinstance(night, str) and night else run.started[:10]
