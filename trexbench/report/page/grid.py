"""The summary table: modes in rows, DUTs and their queue counts in columns, a block each for uni and bidir."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.history.cell import EFFICIENCY, TCP_KIND, Cell
from ...core.history.levels import NEEDED_NIGHTS, Delta, Usual, find_delta
from ...core.history.night import CellRecord, CellState, Night
from ...core.history.rows import COST, Metric, RunRow, cells_of
from ...core.history.testers import FigureRatio, histories_of
from ...core.strategy.kinds import suffix_of
from ...core.strategy.saturate import Saturate
from ...core.units import format_pps, format_scaled, round_down
from ..groups import step_words, too_few
from ..sheet import raw_of
from ..words import NONE, format_count, format_figure, format_limit, format_whole, status_words
from .columns import Column, column_of, order_columns
from .tcp import mode_words

NO_REASON = "no reason was recorded"
LATEST = "the latest run of each cell"


@dataclass(frozen=True)
class GridCell:
    """One figure of the table: a rate or the cost of a packet."""

    state: str
    """``value``, ``failed`` or ``missing``."""
    about: str
    """The figure in full, or why there is none."""
    row: RunRow | None = None
    """The run's row; None: there is no figure."""
    best: bool = False
    delta: Delta | None = None
    """Change against the baseline, where one is known."""
    cost: Delta | None = None
    """Change of the cycles per packet, where the rate is a bound and this change is beyond the noise."""

    @property
    def share(self) -> float | None:
        """Sum of the directions' shares of their line rates: up to 2 for two; None: the line rate is unknown."""
        return self.row.line_share if self.row is not None and self.row.line_rate_bps and self.is_rate else None

    @property
    def at_least(self) -> bool:
        return self.row is not None and self.row.at_least

    @property
    def is_rate(self) -> bool:
        """False: the figure is the cost of packets at a given rate."""
        return self.row is not None and self.row.metric.bounded

    @property
    def value(self) -> float | None:
        """The figure in its metric's unit."""
        return None if self.row is None else self.row.metric.of(self.row)

    @property
    def percent(self) -> str:
        """The figure in percent of the line rate, or the rate itself where the line rate is unknown."""
        if self.share is None:
            return self.rate
        return f"{'>= ' * self.at_least}{percent_words(self.share, self.at_least)} %"

    @property
    def rate(self) -> str:
        if self.row is None or self.value is None:
            return "failed" if self.state == "failed" else NONE
        return f"{'>= ' * self.at_least}{format_figure(self.value, self.row.metric)}"

    @property
    def detail(self) -> str:
        """Uncertainty and limit of a rate; for a cost the rate forwarded."""
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
        """The change's baseline, in words."""
        if self.delta is None or self.row is None:
            return ""
        least = "at least " * self.delta.at_most
        return f"{delta_words(self.delta)} ({least}{format_figure(self.delta.before, self.row.metric)})"


def change_text(delta: Delta | None, metric: Metric = COST) -> str:
    """The change against the baseline, of a share in points; beyond the noise with an arrow, down for worse."""
    if delta is None:
        return ""
    sign = ("\u25bc " if delta.worse else "\u25b2 ") if delta.beyond else ""
    return f"{sign}{step_words(delta.share, delta.before, metric, '<=' * delta.at_most)}"


def raw_change(delta: Delta | None) -> str:
    """The change against the baseline as a raw figure, in percent."""
    return "" if delta is None else f"{'<=' * delta.at_most}{raw_of(100 * delta.share)}"


def delta_words(delta: Delta) -> str:
    """``worse than the median of 9 nights before``."""
    than = f"the median of {format_count(delta.nights, 'night')} before"
    than = "the level before the change" if delta.found else than
    if not delta.found and delta.noise is None:
        short = f"; to judge it {too_few(delta.measured)}" if delta.measured < NEEDED_NIGHTS else ""
        return f"against {than}{short}"
    return f"{'worse' if delta.worse else 'better'} than {than}" if delta.beyond else f"within the noise of {than}"


NOT_RUN = GridCell("missing", "not measured")


def figure_of(row: RunRow) -> GridCell:
    """Return the run's figure; ``failed`` if the run is not complete."""
    if not row.complete:
        return GridCell("failed", f"the run of {row.started} is {status_words(row)}")
    words = f"{'at least ' * row.at_least}{format_whole(row.metric.of(row), row.metric)} {_apart(row)}".rstrip()
    return GridCell("value", f"{words}, limit: {row.limit}, {row.started}", row)


def _apart(row: RunRow, end: str = "", digits: int = 4) -> str:
    """``+- 12.3 kpps``; empty if the figure has no uncertainty."""
    uncertainty = row.figure.uncertainty if row.figure is not None else 0.0
    return f"+- {format_scaled(uncertainty * row.metric.scale, row.metric.unit, digits)}{end}" if uncertainty else ""


def percent_words(share: float, bound: bool = False) -> str:
    """``97``, ``4.4``, ``0.02``. bound: a lower bound, which is not rounded up: ``99.6``."""
    percent = 100 * share
    places = 0 if percent >= 9.95 else 1 if percent >= 0.95 or not percent else 2
    return f"{round_down(percent, places or 1):g}" if bound else f"{percent:.{places}f}"


@dataclass(frozen=True)
class GridRow:
    """A row of the table, its figures in the order of the columns."""

    mode: str
    """The mode, and what distinguishes the row from others of the mode."""
    cells: tuple[GridCell, ...]
    of: tuple[Cell, ...]
    """Cell of each figure."""

    @property
    def planned(self) -> list[Cell]:
        """Cells that were measured, or should have been."""
        return [cell for cell, figure in zip(self.of, self.cells, strict=True) if figure != NOT_RUN]


@dataclass(frozen=True)
class Block:
    """Rows of one direction and kind of run, which ``name`` names."""

    name: str
    rows: tuple[GridRow, ...]


@dataclass(frozen=True)
class Grid:
    """The summary table."""

    title: str
    """Names the runs that it shows."""
    columns: tuple[Column, ...]
    blocks: tuple[Block, ...]
    loss_limit: str = "the limit"
    has_packets: bool = True
    has_tcp: bool = False
    has_saturate: bool = False

    @property
    def has_bidir(self) -> bool:
        return any(cell.bidir for block in self.blocks for row in block.rows for cell in row.of)

    @property
    def _cells(self) -> list[GridCell]:
        return [cell for block in self.blocks for row in block.rows for cell in row.cells]

    def marks(self, column: int) -> list[tuple[bool, str]]:
        """Count a column's changes beyond the noise: ``(True, "2 slower")``, True if for the worse."""
        cells = [row.cells[column] for block in self.blocks for row in block.rows]
        rates = [cell.delta for cell in cells if cell.is_rate]
        costs = [cell.cost if cell.is_rate else cell.delta for cell in cells]
        marks = []
        kinds = ((rates, True, "slower"), (rates, False, "faster"), (costs, True, "dearer"), (costs, False, "cheaper"))
        for deltas, worse, word in kinds:
            count = sum(delta is not None and delta.beyond and delta.worse is worse for delta in deltas)
            marks += [(worse, f"{count} {word}")] if count else []
        return marks

    @property
    def unit(self) -> str:
        """Unit of the figures."""
        metrics = [cell.row.metric for cell in self._cells if cell.row is not None]
        return " or ".join(dict.fromkeys(metric.unit if metric.bounded else metric.name for metric in metrics))

    @property
    def has_deltas(self) -> bool:
        return any(cell.delta is not None for cell in self._cells)

    @property
    def missing(self) -> tuple[tuple[str, int], ...]:
        """Reasons why planned cells were not measured, each with the number of cells."""
        missing = [cell.about for cell in self._cells if cell.state == "missing" and cell.about != NOT_RUN.about]
        return tuple(Counter(missing).items())


def build_grid(
    rows: Sequence[RunRow],
    night: Night | None,
    usual: Mapping[tuple[Cell, str], Usual] | None = None,
    ratios: Sequence[FigureRatio] = (),
) -> Grid:
    """Build the table of a night, or of every cell's latest run.

    rows: oldest first; usual: last stable levels; ratios: differences between testers.
    """
    rates = [row for row in rows if row.cell.held_pps is None]
    if night is None:
        title, shown = LATEST, list({row.cell: row for row in rates}.values())
        figures = {row.cell: figure_of(row) for row in shown}
    else:
        paths = {record.path for record in night.cells}
        title, shown = f"{night.suite}, night of {night.night}", [row for row in rates if row.path in paths]
        figures = _figures_of_night(shown, night)
    figures = _with_changes(figures, rows, usual or {}, ratios)
    limits = sorted({row.loss_threshold for row in shown if row.loss_threshold is not None})
    loss_limit, kinds = " or ".join(map(format_limit, limits)) or "the limit", {cell.kind for cell in figures}
    has = kinds != {TCP_KIND}, TCP_KIND in kinds, Saturate.kind in kinds
    return _changed_first(Grid(title, *_blocks(figures), loss_limit, *has))


def build_cost_grid(
    rows: Sequence[RunRow],
    usual: Mapping[tuple[Cell, str], Usual] | None = None,
    ratios: Sequence[FigureRatio] = (),
) -> Grid:
    """Build the table of cycles per packet at given rates, which are in rows, from each cell's latest run."""
    latest = {row.cell: row for row in rows if row.cell.held_pps is not None}
    figures = _with_changes({row.cell: figure_of(row) for row in latest.values()}, rows, usual or {}, ratios)
    return _changed_first(Grid(LATEST, *_blocks(figures)))


def _changed_first(grid: Grid) -> Grid:
    """Move the columns of DUTs that changed to the front, the worst first, then those that improved."""
    ranks: dict[str, tuple[int, float]] = {}
    for at, column in enumerate(grid.columns):
        rank = min((0 if worse else 1 for worse, _ in grid.marks(at)), default=2)
        cells = (row.cells[at] for block in grid.blocks for row in block.rows)
        deltas = [delta for cell in cells for delta in (cell.delta, cell.cost) if delta is not None and delta.beyond]
        most = max((abs(delta.share) for delta in deltas if delta.worse is (rank == 0)), default=0.0)
        ranks[column.dut] = min((rank, -most), ranks.get(column.dut, (rank, -most)))
    order = sorted(range(len(grid.columns)), key=lambda at: ranks[grid.columns[at].dut])

    def placed(row: GridRow) -> GridRow:
        return replace(row, cells=tuple(row.cells[at] for at in order), of=tuple(row.of[at] for at in order))

    blocks = tuple(replace(block, rows=tuple(map(placed, block.rows))) for block in grid.blocks)
    return replace(grid, columns=tuple(grid.columns[at] for at in order), blocks=blocks)


def _blocks(figures: Mapping[Cell, GridCell]) -> tuple[tuple[Column, ...], tuple[Block, ...]]:
    """Return columns and blocks of rows; modes in their order of appearance, given rates ascending."""
    columns = order_columns(column_of(cell) for cell in figures)
    blocks: dict[tuple[str, bool], list[GridRow]] = {}

    def order(load: Cell) -> tuple[object, ...]:
        return load.kind, load.bidir, *(() if load.held_pps is None else (str(load.mode), load.held_pps))

    for load in sorted(dict.fromkeys(cell.load for cell in figures), key=order):
        blocks.setdefault((load.kind, load.bidir), []).extend(_rows_of(load, columns, figures))
    return columns, tuple(Block(_block_name(*key), tuple(rows)) for key, rows in blocks.items())


def _block_name(kind: str, bidir: bool) -> str:
    if kind == TCP_KIND:
        return "TCP, bidirectional" if bidir else "TCP"
    suffix = "" if kind == EFFICIENCY else suffix_of(kind)
    return ", ".join(filter(None, ("Bidirectional" if bidir else "Unidirectional", suffix)))


def _with_changes(
    figures: Mapping[Cell, GridCell],
    rows: Sequence[RunRow],
    usual: Mapping[tuple[Cell, str], Usual],
    ratios: Sequence[FigureRatio],
) -> dict[Cell, GridCell]:
    histories, changed = cells_of(rows), dict(figures)
    for cell, figure in figures.items():
        if (row := figure.row) is not None:
            history: Sequence[RunRow] = histories.get(cell, ())
            if row.night and history:  # as the last one's tester would have measured it
                history = histories_of(history, ratios)[0].rows
            own = next((one for one in history if one.path == row.path), row)
            delta, cost = (find_delta(own, history, one, usual.get((cell, one.name))) for one in (row.metric, COST))
            dearer = figure.at_least and cost is not None and cost.beyond
            changed[cell] = replace(figure, delta=delta, cost=cost if dearer else None)
    return changed


def reason_of(record: CellRecord, night: Night) -> str:
    """Reason why a cell of a night has no figure."""
    if record.state is CellState.FAILED:
        return (record.attempts[-1].error if record.attempts else night.error) or NO_REASON
    return f"not measured: {night.error or 'the night did not end'}"


def _rows_of(load: Cell, columns: Sequence[Column], figures: Mapping[Cell, GridCell]) -> Iterator[GridRow]:
    """Yield a row for a load, or one for each traffic if its runs sent different traffic."""
    of = tuple(column.cell(load) for column in columns)
    cells = [figures.get(cell, NOT_RUN) for cell in of]
    name = mode_words(load) if load.held_pps is None else f"{load.mode} at {format_pps(load.held_pps, chosen=True)}"
    pairs = zip(of, cells, strict=True)
    sent = [figure.row and figure.row.traffic and _traffic_words(figure.row, cell) for cell, figure in pairs]
    traffics = list(dict.fromkeys(filter(None, sent)))
    if len(traffics) < 2:
        yield GridRow(name, _with_best(cells), of)
        return
    for traffic in traffics:
        chosen = [figure if words in (None, traffic) else NOT_RUN for words, figure in zip(sent, cells, strict=True)]
        yield GridRow(f"{name}, {traffic}", _with_best(chosen), of)


def _traffic_words(row: RunRow, cell: Cell) -> str:
    """Describe the traffic: packets by the first 8 digits of a digest, TCP as it is; the path if no column has it."""
    short = re.sub("[0-9a-f]{9,}", lambda digest: digest[0][:8], row.traffic or "")
    sent = short if short.startswith("TCP") else f"traffic {short}"
    return ", ".join(filter(None, (sent, "" if cell.over else str(row.through or ""))))


def _figures_of_night(rows: Sequence[RunRow], night: Night) -> dict[Cell, GridCell]:
    by_path = {row.path: row for row in rows}
    figures: dict[Cell, GridCell] = {}
    for cell, record in zip(night.of, night.cells, strict=True):
        row = by_path.get(record.path or "")
        if record.state is not CellState.DONE:
            state = "failed" if record.state is CellState.FAILED else "missing"
            figures[cell] = GridCell(state, reason_of(record, night))
        elif row is None:
            figures[cell] = GridCell("failed", f"its document {record.path or ''} cannot be read")
        else:
            figures[replace(cell, emulated=row.cell.emulated)] = figure_of(row)
    return figures


def _with_best(cells: Sequence[GridCell]) -> tuple[GridCell, ...]:
    """Mark the largest figure of a row, and those that read the same.

    None is marked of a single figure or of unlike lines, nor where a smaller one is a lower bound, which may be better.
    """
    known = [(cell.share, cell.row.line_rate_bps) for cell in cells if cell.share is not None and cell.row is not None]
    is_alike = len(known) > 1 and len({line for _, line in known}) == 1
    best = percent_words(max(known)[0]) if is_alike else None

    def reads_best(cell: GridCell) -> bool:
        return cell.share is not None and percent_words(cell.share) == best

    if any(cell.at_least and not reads_best(cell) for cell in cells):
        return tuple(cells)
    return tuple(replace(cell, best=reads_best(cell)) for cell in cells)
