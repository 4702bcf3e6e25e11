"""The columns of tables, DUTs with their variants and numbers of queues; and the looks of their lines in plots.

A column's index chooses its colour; dashes and markers distinguish the lines of a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.history.cell import Cell
from ...core.run import mark_of
from ...core.tcp.path import TrafficPath
from ..palette import SMALLEST, STRIDE, LineStyle, find_look

OLDER: dict[str, tuple[str, float]] = {
    "change": ("diamond-open", 1.0),
    "night": ("circle-open", 0.9),
    "month": ("triangle-down-open", 0.75),
    "year": ("square-open", 0.65),
}
"""Reason for showing an older night -> marker and opacity, which show its age without colour."""
RING = 4
"""Pixels by which a marker of another kind is larger, to be visible around one that it coincides with."""


@dataclass(frozen=True)
class Column:
    """One DUT, in one of its variants or in none, with one number of queues (None: unknown); fields as of Cell."""

    dut: str
    rx_queues: int | None
    simulated: bool
    variant: str | None = None
    over: TrafficPath | None = None
    emulated: bool = field(default=False, compare=False)

    def cell(self, load: Cell) -> Cell:
        """Cell of this column with this load."""
        return replace(load, **vars(self))

    @property
    def title(self) -> str:
        """The DUT, its variant, and the path that its runs went over."""
        return self.cell(Cell("", "", False, None)).dut_words

    @property
    def mark(self) -> str:
        return mark_of(self.simulated, self.emulated)

    @property
    def queues(self) -> str:
        return "" if self.rx_queues is None else f"{self.rx_queues}q"

    @property
    def name(self) -> str:
        return f"{self.title} {self.queues}".rstrip()

    def __str__(self) -> str:
        return self.name + (f" ({self.mark})" if self.mark else "")


def order_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Order DUTs, variants and WANs by their first appearance, numbers of queues ascending.

    A column is emulated if any of its cells is.
    """
    columns = list(columns)
    emulated = {column for column in columns if column.emulated}
    distinct = [replace(column, emulated=column in emulated) for column in dict.fromkeys(columns)]
    duts = list(dict.fromkeys((column.dut, column.simulated) for column in distinct))
    names = list(dict.fromkeys((column.variant, column.over) for column in distinct))

    def place(column: Column) -> tuple[int, int, int]:
        dut, name = (column.dut, column.simulated), (column.variant, column.over)
        return duts.index(dut), names.index(name), column.rx_queues or 0

    return tuple(sorted(distinct, key=place))


def column_of(cell: Cell) -> Column:
    return Column(cell.dut, cell.rx_queues, cell.simulated, cell.variant, cell.over, cell.emulated)


@dataclass(frozen=True)
class Looks:
    """Looks of the lines: a line looks the same in every plot, and no two lines of a plot look alike."""

    columns: tuple[Column, ...]
    places: dict[tuple[object, ...], int]
    """Load and direction -> index of the line among its DUT's."""
    stride: int = STRIDE

    def column(self, cell: Cell) -> int:
        return self.columns.index(column_of(cell))

    def of(self, cell: Cell, way: str = "") -> LineStyle:
        return find_look(self.column(cell), self.places.get((*_load(cell), way), 0), self.stride)

    def latest(self, cell: Cell, way: str = "", kind: str = "") -> dict[str, Any]:
        """The look as fields of a PlotLine. kind: suffix of the marker's name."""
        look = self.of(cell, way)
        size = look.size + (RING if kind else 0)
        return {"colour": look.hue, "marker": look.marker + kind, "dash": look.dash, "size": size}

    def older(self, cell: Cell, why: tuple[str, ...], way: str = "") -> dict[str, Any]:
        look, (marker, opacity) = self.of(cell, way), OLDER[why[0]]
        faint = {"size": SMALLEST, "width": 1.3, "opacity": opacity}
        return {"colour": look.hue, "marker": marker, "dash": look.older, **faint}


def find_looks(columns: tuple[Column, ...], ways: Mapping[Cell, Iterable[str]]) -> Looks:
    """Give every line a look. ways: directions of each cell; a line of all of them looks like the first one's."""
    places: dict[tuple[object, ...], int] = {}
    counts = {True: 0, False: 0}  # TCP and packets are never in one plot
    for cell, some in ways.items():
        for key in ((*_load(cell), way) for way in some):
            if key not in places:
                places[key] = counts[cell.tcp is None]
                counts[cell.tcp is None] += 1
                places.setdefault((*_load(cell), ""), places[key])
    return Looks(columns, places, max(STRIDE, *counts.values()))


def _load(cell: Cell) -> tuple[object, ...]:
    return (cell.tcp is not None, str(cell.mode), cell.bidir, cell.kind_words)
