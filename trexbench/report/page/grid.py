"""The summary table: modes in rows, DUTs and their queue counts in columns, a block each for uni and bidir."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.history.baseline import find_delta, metric_of
from ...core.history.cell import TCP_KIND, Cell
from ...core.history.levels import Usual
from ...core.history.night import CellRecord, CellState, Night
from ...core.history.rows import RunRow, cells_of
from ...core.strategy.saturate import Saturate
from ...core.strategy.table import suffix_of
from ...core.units import format_pps, nominal
from ..words import (
    format_limit,
)
from .columns import Column, column_of, order_columns
from .figures import NOT_RUN, GridCell, figure_of, percent_words

NO_REASON = "no reason was recorded"


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
    """title: which runs it shows. failures: cell and reason, in the table's order. loss_limit: in words."""

    title: str
    columns: tuple[Column, ...]
    blocks: tuple[Block, ...]
    failures: tuple[tuple[str, str], ...]
    loss_limit: str
    has_packets: bool = True
    has_tcp: bool = False
    has_saturate: bool = False

    def counts(self, column: int, worse: bool) -> int:
        """Figures of a column that differ from their baseline beyond the noise, to the worse or to the better."""
        deltas = (row.cells[column].delta for block in self.blocks for row in block.rows)
        return sum(one is not None and one.beyond and one.worse is worse for one in deltas)

    @property
    def unit(self) -> str:
        """Unit of the figures themselves."""
        cells = [cell for block in self.blocks for row in block.rows for cell in row.cells if cell.row is not None]
        units = dict.fromkeys("cycles/packet" if cell.is_cost else cell.row.rate_unit for cell in cells if cell.row)
        return " or ".join(units)

    @property
    def has_deltas(self) -> bool:
        return any(cell.delta is not None for block in self.blocks for row in block.rows for cell in row.cells)

    @property
    def missing(self) -> tuple[tuple[str, int], ...]:
        """Why planned cells were not measured, and how many of them."""
        cells = [cell for block in self.blocks for row in block.rows for cell in row.cells if cell.state == "missing"]
        reasons = [cell.about for cell in cells if cell.about != NOT_RUN.about]
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
    columns = order_columns(column_of(cell) for cell in found)
    blocks: list[Block] = []
    failures: list[tuple[str, str]] = []
    for kind, bidir in sorted({(cell.kind, cell.bidir) for cell in found}):
        loads = dict.fromkeys(cell.load for cell in found if (cell.kind, cell.bidir) == (kind, bidir))
        lines: list[GridRow] = []
        for load in loads:
            # in the table's order
            cells = [column.cell(load) for column in columns]
            lines += _rows_of(str(load.mode), cells, [found.get(cell, NOT_RUN) for cell in cells])
            failures += [
                (str(cell), found[cell].about) for cell in cells if cell in found and found[cell].state == "failed"
            ]
        blocks.append(Block(_block_name(kind, bidir), tuple(lines)))
    title = "the latest run of each cell" if night is None else f"{night.suite}, night of {night.night}"
    loss_limit = (
        " or ".join(map(format_limit, sorted({row.loss_threshold for row in shown if row.packet_rate is not None})))
        or "the limit"
    )
    kinds = {cell.kind for cell in found}
    return Grid(
        title,
        columns,
        tuple(blocks),
        tuple(failures),
        loss_limit,
        has_packets=kinds != {TCP_KIND},
        has_tcp=TCP_KIND in kinds,
        has_saturate=Saturate.kind in kinds,
    )


def build_cost_grid(rows: Sequence[RunRow], usual: Mapping[tuple[Cell, str], Usual] | None = None) -> Grid:
    """Cycles per packet at given rates: the latest run of every cell that has one; rates in rows."""
    latest = {row.cell: row for row in rows if row.cell.held_pps is not None}
    found = _compared({cell: figure_of(row) for cell, row in latest.items()}, rows, usual or {})
    columns = order_columns(column_of(cell) for cell in found)
    blocks: list[Block] = []
    for bidir in sorted({cell.bidir for cell in found}):
        rates = {cell.load: cell.held_pps or 0.0 for cell in found if cell.bidir is bidir}
        made: list[GridRow] = []
        for load in sorted(rates, key=lambda load: (str(load.mode), rates[load])):
            cells = [column.cell(load) for column in columns]
            name = f"{load.mode} at {nominal(format_pps(rates[load]))}"
            made += _rows_of(name, cells, [found.get(cell, NOT_RUN) for cell in cells])
        blocks.append(Block(_block_name("ramp", bidir), tuple(made)))
    return Grid("the latest run of each cell", columns, tuple(blocks), (), "the limit")


def _compared(
    found: Mapping[Cell, GridCell], rows: Sequence[RunRow], usual: Mapping[tuple[Cell, str], Usual]
) -> dict[Cell, GridCell]:
    """Every figure with its change against what was usual before."""
    histories = cells_of(rows)
    done: dict[Cell, GridCell] = {}
    for cell, one in found.items():
        if one.row is not None:
            metric = metric_of(one.row)
            level = usual.get((cell, metric.name))
            one = replace(one, delta=find_delta(one.row, histories.get(cell, ()), metric, level))
        done[cell] = one
    return done


def reason_of(record: CellRecord, night: Night) -> str:
    """Why a cell of a night has no figure."""
    if record.state is CellState.FAILED:
        return (record.attempts[-1].error if record.attempts else night.error) or NO_REASON
    return f"not measured: {night.error or 'the night did not end'}"


def _block_name(kind: str, bidir: bool) -> str:
    if kind == TCP_KIND:
        return "TCP, bidirectional" if bidir else "TCP"
    return ", ".join(filter(None, ("Bidirectional" if bidir else "Unidirectional", suffix_of(kind))))


def _rows_of(name: str, of: Sequence[Cell], cells: Sequence[GridCell]) -> Iterator[GridRow]:
    """One row for a mode; one for each traffic where its runs sent different traffic."""
    told = [one.row and one.row.traffic and _traffic_words(one.row, cell) for cell, one in zip(of, cells, strict=True)]
    traffics = list(dict.fromkeys(filter(None, told)))
    if len(traffics) < 2:
        yield GridRow(name, _with_best(cells), tuple(of))
        return
    for traffic in traffics:
        chosen = [one if words in (None, traffic) else NOT_RUN for words, one in zip(told, cells, strict=True)]
        yield GridRow(f"{name}, {traffic}", _with_best(chosen), tuple(of))


def _traffic_words(row: RunRow, cell: Cell) -> str:
    """Describe the traffic: packets by the beginning of each digest, TCP as it is; the path where no column has it."""
    short = re.sub("[0-9a-f]{9,}", lambda digest: digest[0][:8], row.traffic or "")
    sent = short if short.startswith("TCP") else f"traffic {short}"
    return ", ".join(filter(None, (sent, "" if cell.over else str(row.through or ""))))


def _of_night(rows: Iterable[RunRow], night: Night) -> Mapping[Cell, GridCell]:
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
            found[cell] = figure_of(row)
    return found


def _with_best(cells: Sequence[GridCell]) -> tuple[GridCell, ...]:
    """Mark the largest figure of a row, and those that read the same; none in a row of a single figure."""
    known = [cell.share for cell in cells if cell.share is not None]
    best = percent_words(max(known)) if len(known) > 1 else None
    return tuple(replace(cell, best=cell.share is not None and percent_words(cell.share) == best) for cell in cells)
