"""The summary table: modes in rows, DUTs and their queue counts in columns, a block each for uni and bidir."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.history.night import CellRecord, Night, State
from ...core.history.rows import TCP_KIND, Cell, RunRow
from ...core.strategy.table import suffix_of
from ...core.units import format_scaled
from ..words import NONE, format_bound, format_limit, status_words

NO_REASON = "no reason was recorded"


@dataclass(frozen=True)
class Column:
    """One DUT, in one of its variants or in none, with one number of queues (None: unknown)."""

    dut: str
    rx_queues: int | None
    simulated: bool
    variant: str | None = None

    @property
    def title(self) -> str:
        """The DUT and its variant."""
        return self.dut if self.variant is None else f"{self.dut} {self.variant}"

    @property
    def queues(self) -> str:
        return "" if self.rx_queues is None else f"{self.rx_queues}Q"

    @property
    def name(self) -> str:
        """The short name, for pictures that are marked as simulated as a whole."""
        return f"{self.title} {self.queues}".rstrip() + (" sim" if self.simulated else "")

    def __str__(self) -> str:
        return f"{self.title} {self.queues}".rstrip() + (" (simulated)" if self.simulated else "")


@dataclass(frozen=True)
class GridCell:
    """One figure of the table. share: of one direction's line rate, so up to 2 for bidirectional runs; None: no figure.

    state: ``value``, ``failed`` or ``missing``; about: the figure in full, or why there is none. traffic: its digest.
    """

    state: str
    about: str
    share: float | None = None
    pps: float | None = None
    at_least: bool = False
    best: bool = False
    warnings: int = 0
    traffic: str | None = None
    unit: str = "pps"

    @property
    def percent(self) -> str:
        """The rate itself where the line's is not known."""
        return self.rate if self.share is None else f"{'>= ' if self.at_least else ''}{_percent(self.share)} %"

    @property
    def rate(self) -> str:
        return self._nothing if self.pps is None else format_bound(self.pps, self.at_least, self.unit)

    @property
    def _nothing(self) -> str:
        return "failed" if self.state == "failed" else NONE


@dataclass(frozen=True)
class GridRow:
    mode: str
    cells: tuple[GridCell, ...]


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


def build_grid(rows: Sequence[RunRow], night: Night | None) -> Grid:
    """The table of a night, or without a night of every cell's latest run. rows: oldest first."""
    paths = {record.path for record in night.cells} if night is not None else set()
    shown = [row for row in rows if row.path in paths] if night else list({row.cell: row for row in rows}.values())
    found = _of_night(shown, night) if night is not None else {row.cell: _figure(row) for row in shown}
    columns = order_columns(column_of(cell) for cell in found)
    blocks: list[Block] = []
    failures: list[tuple[str, str]] = []
    for kind, bidir in sorted({(cell.kind, cell.bidir) for cell in found}):
        modes = dict.fromkeys(cell.mode for cell in found if (cell.kind, cell.bidir) == (kind, bidir))
        lines: list[GridRow] = []
        for mode in modes:
            # in the table's order
            cells = [Cell(c.dut, mode, bidir, c.rx_queues, kind, c.simulated, c.variant) for c in columns]
            lines += _rows_of(mode, [found.get(cell, _NOT_RUN) for cell in cells])
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
        title, columns, tuple(blocks), tuple(failures), loss_limit, kinds != {TCP_KIND}, has_tcp=TCP_KIND in kinds
    )


def order_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """DUTs and their variants in their order of appearance, each with its numbers of queues ascending."""
    every = list(dict.fromkeys(columns))
    duts = list(dict.fromkeys((column.dut, column.simulated) for column in every))
    names = list(dict.fromkeys(column.variant for column in every))
    return tuple(
        sorted(
            every,
            key=lambda one: (duts.index((one.dut, one.simulated)), names.index(one.variant), one.rx_queues or 0),
        )
    )


def column_of(cell: Cell) -> Column:
    return Column(cell.dut, cell.rx_queues, cell.simulated, cell.variant)


def cell_of(record: CellRecord, night: Night) -> Cell:
    return Cell(
        dut=record.dut,
        mode=record.mode,
        bidir=record.bidir,
        rx_queues=record.rx_queues,
        kind=record.kind,
        simulated=night.simulated,
        variant=record.variant,
    )


def reason_of(record: CellRecord, night: Night) -> str:
    """Why a cell of a night has no figure."""
    if record.state is State.FAILED:
        return (record.attempts[-1].error if record.attempts else night.error) or NO_REASON
    return f"not measured: {night.error or 'the night did not end'}"


_NOT_RUN = GridCell("missing", "not measured")


def _block_name(kind: str, bidir: bool) -> str:
    if kind == TCP_KIND:
        return "TCP, both ways at once" if bidir else "TCP"
    return ", ".join(filter(None, ("Bidirectional" if bidir else "Unidirectional", suffix_of(kind))))


def _rows_of(mode: str, cells: Sequence[GridCell]) -> Iterator[GridRow]:
    """One row for a mode; one for each traffic where its runs sent different traffic."""
    traffics = list(dict.fromkeys(cell.traffic for cell in cells if cell.traffic is not None))
    if len(traffics) < 2:
        yield GridRow(mode, _with_best(cells))
        return
    for traffic in traffics:
        chosen = [cell if cell.traffic in (None, traffic) else _NOT_RUN for cell in cells]
        yield GridRow(f"{mode}, traffic {traffic[:8]}", _with_best(chosen))


def _of_night(rows: Iterable[RunRow], night: Night) -> Mapping[Cell, GridCell]:
    by_path = {row.path: row for row in rows}
    found: dict[Cell, GridCell] = {}
    for record in night.cells:
        cell, row = cell_of(record, night), by_path.get(record.path or "")
        if record.state is not State.DONE:
            state = "failed" if record.state is State.FAILED else "missing"
            found[cell] = GridCell(state, reason_of(record, night))
        elif row is None:
            found[cell] = GridCell("failed", f"its document {record.path or ''} cannot be read")
        else:
            found[cell] = _figure(row)
    return found


def _figure(row: RunRow) -> GridCell:
    if not row.complete:
        return GridCell("failed", f"the run of {row.started} is {status_words(row)}")
    words = f"{'at least ' if row.at_least else ''}{format_scaled(row.rate, row.rate_unit)}"
    if row.uncertainty:
        words += f" +- {format_scaled(row.uncertainty, row.rate_unit)}"
    words += f", limit: {row.limit}, {row.started}"
    return GridCell(
        "value", words, _share(row), row.rate, row.at_least, False, row.warnings, row.traffic, unit=row.rate_unit
    )


def _share(row: RunRow) -> float | None:
    """None where the line's rate is not known, as of a virtual one."""
    return row.line_share if row.line_rate_bps else None


def _with_best(cells: Sequence[GridCell]) -> tuple[GridCell, ...]:
    """Mark the largest figure of a row, and those that read the same; none in a row of a single figure."""
    known = [cell.share for cell in cells if cell.share is not None]
    best = _percent(max(known)) if len(known) > 1 else None
    return tuple(replace(cell, best=cell.share is not None and _percent(cell.share) == best) for cell in cells)


def _percent(share: float) -> str:
    """``97``, ``4.4``, ``0.02``."""
    percent = 100 * share
    if percent >= 9.95:
        return f"{percent:.0f}"
    return f"{percent:.1f}" if percent >= 0.95 or not percent else f"{percent:.2f}"
