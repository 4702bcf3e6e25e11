"""The summary table: modes in rows, DUTs and their queue counts in columns, a block each for uni and bidir."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.history.cell import EFFICIENCY, TCP_KIND, Cell
from ...core.history.levels import NEEDED_NIGHTS, Delta, Usual, find_delta
from ...core.history.night import CellRecord, CellState, Night
from ...core.history.rows import COST, RunRow, cells_of
from ...core.strategy.saturate import Saturate
from ...core.strategy.table import suffix_of
from ...core.units import format_pps, format_scaled, nominal
from ..groups import too_few
from ..words import NONE, format_change, format_count, format_figure, format_limit, format_whole, status_words
from .columns import Column, column_of, order_columns
from .tcp import mode_words

NO_REASON = "no reason was recorded"


@dataclass(frozen=True)
class GridCell:
    """One figure of the table. share: of one direction's line rate, so up to 2 for bidirectional runs; None: unknown.

    state: ``value``, ``failed`` or ``missing``; about: the figure in full, or why there is none. row: the run's; None
    where there is no figure. delta: against the baseline, where one is known. cost: the same of the cycles per packet,
    where the rate is a bound and they are beyond the noise.
    """

    state: str
    about: str
    row: RunRow | None = None
    best: bool = False
    delta: Delta | None = None
    cost: Delta | None = None

    @property
    def share(self) -> float | None:
        """None where the line's rate is not known, as of a virtual one."""
        return self.row.line_share if self.row is not None and self.row.line_rate_bps and self.is_rate else None

    @property
    def at_least(self) -> bool:
        return self.row is not None and self.row.at_least

    @property
    def is_rate(self) -> bool:
        """False where the figure is what packets cost at a given rate."""
        return self.row is not None and self.row.metric.bounded

    @property
    def value(self) -> float | None:
        """The figure in the unit of its metric."""
        return None if self.row is None else self.row.metric.of(self.row)

    @property
    def percent(self) -> str:
        """The rate itself where the line's is not known."""
        return self.rate if self.share is None else f"{'>= ' if self.at_least else ''}{percent_words(self.share)} %"

    @property
    def rate(self) -> str:
        if self.row is None or self.value is None:
            return "failed" if self.state == "failed" else NONE
        return f"{'>= ' * self.at_least}{format_figure(self.value, self.row.metric)}"

    @property
    def detail(self) -> str:
        """The uncertainty and the limit of a rate; of costs the rate that was forwarded."""
        if self.row is None:
            return ""
        if not self.is_rate:
            return f"at {format_pps(self.row.get('total_pps') or 0.0)} forwarded"
        return f"{_apart(self.row, ', ', 2)}limit: {self.row.limit}"

    @property
    def change(self) -> str:
        return change_text(self.delta)

    @property
    def change_words(self) -> str:
        """The baseline of the change, in words."""
        if self.delta is None or self.row is None:
            return ""
        return f"{delta_words(self.delta)} ({format_figure(self.delta.before, self.row.metric)})"


def change_text(delta: Delta | None) -> str:
    """The change against the baseline, signed; with a sign for the worse or the better where it is beyond the noise."""
    if delta is None:
        return ""
    sign = ("\u25bc " if delta.worse else "\u25b2 ") if delta.beyond else ""
    return f"{sign}{format_change(delta.share)}"


def delta_words(delta: Delta) -> str:
    """``worse than the median of 9 nights before``."""
    than = (
        "the level before the change" if delta.found else f"the median of {format_count(delta.nights, 'night')} before"
    )
    if not delta.found and delta.noise is None:
        short = f"; to judge it {too_few(delta.measured)}" if delta.measured < NEEDED_NIGHTS else ""
        return f"against {than}{short}"
    return f"{'worse' if delta.worse else 'better'} than {than}" if delta.beyond else f"within the noise of {than}"


NOT_RUN = GridCell("missing", "not measured")


def figure_of(row: RunRow) -> GridCell:
    """Return the figure that the run found; failed where it is not complete."""
    if not row.complete:
        return GridCell("failed", f"the run of {row.started} is {status_words(row)}")
    words = f"{'at least ' * row.at_least}{format_whole(row.metric.of(row), row.metric)} {_apart(row)}".rstrip()
    return GridCell("value", f"{words}, limit: {row.limit}, {row.started}", row)


def _apart(row: RunRow, end: str = "", digits: int = 4) -> str:
    """``+- 12.3 kpps``; empty where the figure has no uncertainty."""
    uncertainty = row.figure.uncertainty if row.figure is not None else 0.0
    return f"+- {format_scaled(uncertainty * row.metric.scale, row.metric.unit, digits)}{end}" if uncertainty else ""


def percent_words(share: float) -> str:
    """``97``, ``4.4``, ``0.02``."""
    percent = 100 * share
    if percent >= 9.95:
        return f"{percent:.0f}"
    return f"{percent:.1f}" if percent >= 0.95 or not percent else f"{percent:.2f}"


@dataclass(frozen=True)
class GridRow:
    """mode: also with what tells the row from others of the mode. of: the cell of each figure."""

    mode: str
    cells: tuple[GridCell, ...]
    of: tuple[Cell, ...]


@dataclass(frozen=True)
class Block:
    """name: Unidirectional or Bidirectional, and the kind of run unless it is a ramp; of TCP that it is."""

    name: str
    rows: tuple[GridRow, ...]


@dataclass(frozen=True)
class Grid:
    """title: which runs it shows. loss_limit: in words."""

    title: str
    columns: tuple[Column, ...]
    blocks: tuple[Block, ...]
    loss_limit: str = "the limit"
    has_packets: bool = True
    has_tcp: bool = False
    has_saturate: bool = False

    @property
    def _cells(self) -> list[GridCell]:
        return [cell for block in self.blocks for row in block.rows for cell in row.cells]

    def marks(self, column: int) -> list[tuple[bool, str]]:
        """``(True, "2 slower")``: what differs in a column beyond the noise, and whether that is for the worse."""
        cells = [row.cells[column] for block in self.blocks for row in block.rows]
        rates = [one.delta for one in cells if one.delta is not None and one.is_rate]
        costs = [one.cost if one.is_rate else one.delta for one in cells]
        found = []
        for deltas, words in ((rates, ("slower", "faster")), (costs, ("dearer", "cheaper"))):
            for worse, word in zip((True, False), words, strict=True):
                count = sum(one is not None and one.beyond and one.worse is worse for one in deltas)
                found += [(worse, f"{count} {word}")] if count else []
        return found

    @property
    def unit(self) -> str:
        """Unit of the figures themselves."""
        metrics = [cell.row.metric for cell in self._cells if cell.row is not None]
        return " or ".join(dict.fromkeys(one.unit if one.bounded else one.name for one in metrics))

    @property
    def has_deltas(self) -> bool:
        return any(cell.delta is not None for cell in self._cells)

    @property
    def missing(self) -> tuple[tuple[str, int], ...]:
        """Why planned cells were not measured, and how many of them."""
        reasons = [one.about for one in self._cells if one.state == "missing" and one.about != NOT_RUN.about]
        return tuple((one, reasons.count(one)) for one in dict.fromkeys(reasons))


def build_grid(
    rows: Sequence[RunRow], night: Night | None, usual: Mapping[tuple[Cell, str], Usual] | None = None
) -> Grid:
    """The table of a night, or of every cell's latest run. rows: oldest first; usual: last stable levels."""
    paths = {record.path for record in night.cells} if night is not None else set()
    shown = [row for row in rows if row.path in paths] if night else list({row.cell: row for row in rows}.values())
    shown = [row for row in shown if row.cell.held_pps is None]
    found = _of_night(shown, night) if night is not None else {row.cell: figure_of(row) for row in shown}
    found = _compared(found, rows, usual or {})
    title = "the latest run of each cell" if night is None else f"{night.suite}, night of {night.night}"
    limits = sorted({row.loss_threshold for row in shown if row.loss_threshold is not None})
    loss_limit, kinds = " or ".join(map(format_limit, limits)) or "the limit", {cell.kind for cell in found}
    has = kinds != {TCP_KIND}, TCP_KIND in kinds, Saturate.kind in kinds
    return _changed_first(Grid(title, *_blocks(found), loss_limit, *has))


def build_cost_grid(rows: Sequence[RunRow], usual: Mapping[tuple[Cell, str], Usual] | None = None) -> Grid:
    """Cycles per packet at given rates: the latest run of every cell that has one; rates in rows."""
    latest = {row.cell: row for row in rows if row.cell.held_pps is not None}
    found = _compared({row.cell: figure_of(row) for row in latest.values()}, rows, usual or {})
    return _changed_first(Grid("the latest run of each cell", *_blocks(found)))


def _changed_first(grid: Grid) -> Grid:
    """The table with the columns of the DUTs that changed first: the most for the worse, then those for the better."""
    ranks: dict[str, tuple[int, float]] = {}
    for at, column in enumerate(grid.columns):
        rank = min((0 if worse else 1 for worse, _ in grid.marks(at)), default=2)
        cells = (row.cells[at] for block in grid.blocks for row in block.rows)
        beyond = [one for cell in cells for one in (cell.delta, cell.cost) if one is not None and one.beyond]
        most = max((abs(one.share) for one in beyond if one.worse is (rank == 0)), default=0.0)
        ranks[column.dut] = min((rank, -most), ranks.get(column.dut, (rank, -most)))
    order = sorted(range(len(grid.columns)), key=lambda at: ranks[grid.columns[at].dut])

    def placed(row: GridRow) -> GridRow:
        return replace(row, cells=tuple(row.cells[at] for at in order), of=tuple(row.of[at] for at in order))

    blocks = tuple(replace(block, rows=tuple(map(placed, block.rows))) for block in grid.blocks)
    return replace(grid, columns=tuple(grid.columns[at] for at in order), blocks=blocks)


def _blocks(found: Mapping[Cell, GridCell]) -> tuple[tuple[Column, ...], tuple[Block, ...]]:
    """The columns, and the blocks of rows; modes in their order of appearance, given rates ascending."""
    columns = order_columns(column_of(cell) for cell in found)
    blocks: dict[tuple[str, bool], list[GridRow]] = {}
    for load in sorted(dict.fromkeys(cell.load for cell in found), key=_order):
        blocks.setdefault((load.kind, load.bidir), []).extend(_rows_of(load, columns, found))
    return columns, tuple(Block(_block_name(*key), tuple(rows)) for key, rows in blocks.items())


def _order(load: Cell) -> tuple[object, ...]:
    return load.kind, load.bidir, *(() if load.held_pps is None else (str(load.mode), load.held_pps))


def _block_name(kind: str, bidir: bool) -> str:
    if kind == TCP_KIND:
        return "TCP, bidirectional" if bidir else "TCP"
    suffix = "" if kind == EFFICIENCY else suffix_of(kind)
    return ", ".join(filter(None, ("Bidirectional" if bidir else "Unidirectional", suffix)))


def _compared(
    found: Mapping[Cell, GridCell], rows: Sequence[RunRow], usual: Mapping[tuple[Cell, str], Usual]
) -> dict[Cell, GridCell]:
    """Every figure with its change against what was usual before."""
    histories = cells_of(rows)

    def compared(cell: Cell, one: GridCell) -> GridCell:
        if (row := one.row) is None:
            return one
        history, metrics = histories.get(cell, ()), (row.metric, COST)
        delta, cost = (find_delta(row, history, metric, usual.get((cell, metric.name))) for metric in metrics)
        dearer = one.at_least and cost is not None and cost.beyond
        return replace(one, delta=delta, cost=cost if dearer else None)

    return {cell: compared(cell, one) for cell, one in found.items()}


def reason_of(record: CellRecord, night: Night) -> str:
    """Why a cell of a night has no figure."""
    if record.state is CellState.FAILED:
        return (record.attempts[-1].error if record.attempts else night.error) or NO_REASON
    return f"not measured: {night.error or 'the night did not end'}"


def _rows_of(load: Cell, columns: Sequence[Column], found: Mapping[Cell, GridCell]) -> Iterator[GridRow]:
    """One row for a load; one for each traffic where its runs sent different traffic."""
    of = tuple(column.cell(load) for column in columns)
    cells = [found.get(cell, NOT_RUN) for cell in of]
    name = mode_words(load) if load.held_pps is None else f"{load.mode} at {nominal(format_pps(load.held_pps))}"
    told = [one.row and one.row.traffic and _traffic_words(one.row, cell) for cell, one in zip(of, cells, strict=True)]
    traffics = list(dict.fromkeys(filter(None, told)))
    if len(traffics) < 2:
        yield GridRow(name, _with_best(cells), of)
        return
    for traffic in traffics:
        chosen = [one if words in (None, traffic) else NOT_RUN for words, one in zip(told, cells, strict=True)]
        yield GridRow(f"{name}, {traffic}", _with_best(chosen), of)


def _traffic_words(row: RunRow, cell: Cell) -> str:
    """Describe the traffic: packets by the beginning of each digest, TCP as it is; the path where no column has it."""
    short = re.sub("[0-9a-f]{9,}", lambda digest: digest[0][:8], row.traffic or "")
    sent = short if short.startswith("TCP") else f"traffic {short}"
    return ", ".join(filter(None, (sent, "" if cell.over else str(row.through or ""))))


def _of_night(rows: Sequence[RunRow], night: Night) -> Mapping[Cell, GridCell]:
    by_path = {row.path: row for row in rows}
    found: dict[Cell, GridCell] = {}
    for cell, record in zip(night.of, night.cells, strict=True):
        row = by_path.get(record.path or "")
        if record.state is not CellState.DONE:
            state = "failed" if record.state is CellState.FAILED else "missing"
            found[cell] = GridCell(state, reason_of(record, night))
        elif row is None:
            found[cell] = GridCell("failed", f"its document {record.path or ''} cannot be read")
        else:
            found[replace(cell, emulated=row.cell.emulated)] = figure_of(row)
    return found


def _with_best(cells: Sequence[GridCell]) -> tuple[GridCell, ...]:
    """Mark the largest figure of a row, and those that read the same; none in a row of a single figure."""
    known = [cell.share for cell in cells if cell.share is not None]
    best = percent_words(max(known)) if len(known) > 1 else None
    return tuple(replace(cell, best=cell.share is not None and percent_words(cell.share) == best) for cell in cells)
