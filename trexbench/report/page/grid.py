"""The summary table: modes in rows, DUTs and their queue counts in columns, a block each for uni and bidir."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.history.baseline import Delta, Level, find_delta, metric_of
from ...core.history.night import CellRecord, Night, State
from ...core.history.regression import NEEDED_NIGHTS
from ...core.history.rows import TCP_KIND, Cell, RunRow, cells_of, held_pps
from ...core.strategy.saturate import Saturate
from ...core.strategy.table import suffix_of
from ...core.units import format_pps, format_scaled, nominal
from ..groups import too_few
from ..words import (
    NONE,
    format_bound,
    format_change,
    format_count,
    format_cycles,
    format_figure,
    format_limit,
    status_words,
)

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
    """One figure of the table. share: of one direction's line rate, so up to 2 for bidirectional runs; None: unknown.

    state: ``value``, ``failed`` or ``missing``; about: the figure in full, or why there is none. row: the run's; None
    where there is no figure. delta: against the baseline, where one is known.
    """

    state: str
    about: str
    row: RunRow | None = None
    best: bool = False
    delta: Delta | None = None

    @property
    def share(self) -> float | None:
        """None where the line's rate is not known, as of a virtual one."""
        return self.row.line_share if self.row is not None and self.row.line_rate_bps and not self.is_cost else None

    @property
    def at_least(self) -> bool:
        return self.row is not None and self.row.at_least and not self.is_cost

    @property
    def warnings(self) -> int:
        return self.row.warnings if self.row is not None else 0

    @property
    def traffic(self) -> str | None:
        """Its digest."""
        return self.row.traffic if self.row is not None else None

    @property
    def is_cost(self) -> bool:
        """Whether the figure is what packets cost at a given rate."""
        return self.row is not None and held_pps(self.row.cell.kind) is not None

    @property
    def metric(self) -> str:
        """The name of the figure that the run was made for."""
        return "" if self.row is None else metric_of(self.row).name

    @property
    def value(self) -> float | None:
        """The figure: of costs in cycles per packet, else in the unit of the rate."""
        return None if self.row is None else metric_of(self.row).of(self.row)

    @property
    def percent(self) -> str:
        """The rate itself where the line's is not known."""
        return self.rate if self.share is None else f"{'>= ' if self.at_least else ''}{_percent(self.share)} %"

    @property
    def rate(self) -> str:
        if self.row is None or self.value is None:
            return "failed" if self.state == "failed" else NONE
        return (
            format_cycles(self.value) if self.is_cost else format_bound(self.value, self.at_least, self.row.rate_unit)
        )

    @property
    def detail(self) -> str:
        """The uncertainty and the limit of a rate; of costs the rate that was forwarded."""
        if self.row is None:
            return ""
        if self.is_cost:
            return f"at {format_pps(self.row.total_pps)} forwarded"
        apart = f"+- {format_scaled(self.row.uncertainty, self.row.rate_unit, 2)}, " if self.row.uncertainty else ""
        return f"{apart}limit: {self.row.limit}"

    @property
    def change(self) -> str:
        """The change against the baseline, signed; with a sign for the worse or the better where it is beyond noise."""
        return change_text(self.delta)

    @property
    def change_words(self) -> str:
        """The baseline of the change, in words."""
        if self.delta is None or self.row is None:
            return ""
        return f"{delta_words(self.delta)} ({format_figure(self.delta.before, metric_of(self.row))})"


def change_text(delta: Delta | None) -> str:
    """The change against the baseline, signed; with a sign for the worse or the better where it is beyond the noise."""
    if delta is None:
        return ""
    sign = ("\u25bc " if delta.worse else "\u25b2 ") if delta.beyond else ""
    return f"{sign}{format_change(delta.share)}"


def delta_words(delta: Delta) -> str:
    """``worse than the median of 9 nights before``."""
    nights = format_count(delta.nights, "night")
    than = "the level before the change" if delta.found else f"the median of {nights} before"
    if not delta.found and delta.noise is None:
        short = f"; to judge it {too_few(delta.measured)}" if delta.measured < NEEDED_NIGHTS else ""
        return f"against {than}{short}"
    return f"{'worse' if delta.worse else 'better'} than {than}" if delta.beyond else f"within the noise of {than}"


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
        """Of the figures themselves."""
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
        reasons = [cell.about for cell in cells if cell.about != _NOT_RUN.about]
        return tuple((one, reasons.count(one)) for one in dict.fromkeys(reasons))


def build_grid(
    rows: Sequence[RunRow], night: Night | None, levels: Mapping[tuple[Cell, str], Level] | None = None
) -> Grid:
    """The table of a night, or without a night of every cell's latest run. rows: oldest first; levels: see Level."""
    paths = {record.path for record in night.cells} if night is not None else set()
    shown = [row for row in rows if row.path in paths] if night else list({row.cell: row for row in rows}.values())
    shown = [row for row in shown if held_pps(row.cell.kind) is None]
    found = _of_night(shown, night) if night is not None else {row.cell: _figure(row) for row in shown}
    found = _compared(found, rows, levels or {})
    columns = order_columns(column_of(cell) for cell in found)
    blocks: list[Block] = []
    failures: list[tuple[str, str]] = []
    for kind, bidir in sorted({(cell.kind, cell.bidir) for cell in found}):
        modes = dict.fromkeys(cell.mode for cell in found if (cell.kind, cell.bidir) == (kind, bidir))
        lines: list[GridRow] = []
        for mode in modes:
            # in the table's order
            cells = [Cell(c.dut, mode, bidir, c.rx_queues, kind, c.simulated, c.variant) for c in columns]
            lines += _rows_of(mode, cells, [found.get(cell, _NOT_RUN) for cell in cells])
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


def build_cost_grid(rows: Sequence[RunRow], levels: Mapping[tuple[Cell, str], Level] | None = None) -> Grid:
    """Cycles per packet at given rates: the latest run of every cell that has one; rates in rows."""
    latest = {row.cell: row for row in rows if held_pps(row.cell.kind) is not None}
    found = _compared({cell: _figure(row) for cell, row in latest.items()}, rows, levels or {})
    columns = order_columns(column_of(cell) for cell in found)
    blocks: list[Block] = []
    for bidir in sorted({cell.bidir for cell in found}):
        lines = {
            (c.mode, c.kind): None
            for c in sorted(found, key=lambda c: (c.mode, held_pps(c.kind) or 0.0))
            if c.bidir is bidir
        }
        made: list[GridRow] = []
        for mode, kind in lines:
            cells = [Cell(c.dut, mode, bidir, c.rx_queues, kind, c.simulated, c.variant) for c in columns]
            made += _rows_of(
                f"{mode} at {nominal(format_pps(held_pps(kind) or 0.0))}",
                cells,
                [found.get(c, _NOT_RUN) for c in cells],
            )
        blocks.append(Block(_block_name("ramp", bidir), tuple(made)))
    return Grid("the latest run of each cell", columns, tuple(blocks), (), "the limit")


def _compared(
    found: Mapping[Cell, GridCell], rows: Sequence[RunRow], levels: Mapping[tuple[Cell, str], Level]
) -> dict[Cell, GridCell]:
    """Every figure with its change against what was usual before."""
    histories = cells_of(rows)
    done: dict[Cell, GridCell] = {}
    for cell, one in found.items():
        if one.row is not None:
            level = levels.get((cell, one.metric))
            one = replace(one, delta=find_delta(one.row, histories.get(cell, ()), metric_of(one.row), level))
        done[cell] = one
    return done


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
        return "TCP, bidirectional" if bidir else "TCP"
    return ", ".join(filter(None, ("Bidirectional" if bidir else "Unidirectional", suffix_of(kind))))


def _rows_of(name: str, of: Sequence[Cell], cells: Sequence[GridCell]) -> Iterator[GridRow]:
    """One row for a mode; one for each traffic where its runs sent different traffic."""
    traffics = list(dict.fromkeys(cell.traffic for cell in cells if cell.traffic is not None))
    if len(traffics) < 2:
        yield GridRow(name, _with_best(cells), tuple(of))
        return
    for traffic in traffics:
        chosen = [cell if cell.traffic in (None, traffic) else _NOT_RUN for cell in cells]
        yield GridRow(f"{name}, {_traffic_words(traffic)}", _with_best(chosen), tuple(of))


def _traffic_words(traffic: str) -> str:
    """Of packets the beginning of each digest; of TCP it is in words already."""
    short = re.sub("[0-9a-f]{9,}", lambda found: found[0][:8], traffic)
    return short if short.startswith("TCP") else f"traffic {short}"


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
    return GridCell("value", words, row)


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
