"""The columns of tables, DUTs with their variants and numbers of queues; and the looks of their lines in plots.

A column's place is its DUT's colour; dashes and markers distinguish a DUT's lines.
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
"""Marker of an older night by the reason for showing it, and how strong it is: what tells age without colour."""
RING = 4
"""Pixels by which a marker of another kind is larger, so that it is seen around one that it coincides with."""


@dataclass(frozen=True)
class Column:
    """One DUT, in one of its variants or in none, with one number of queues (None: unknown). over: as of Cell."""

    dut: str
    rx_queues: int | None
    simulated: bool
    variant: str | None = None
    over: TrafficPath | None = None
    emulated: bool = field(default=False, compare=False)

    def cell(self, load: Cell) -> Cell:
        """The column's cell with this load."""
        return replace(load, **vars(self))

    @property
    def title(self) -> str:
        """The DUT, its variant, and what its runs went through."""
        return self.cell(Cell("", "", False, None)).dut_words

    @property
    def mark(self) -> str:
        return mark_of(self.simulated, self.emulated)

    @property
    def queues(self) -> str:
        return "" if self.rx_queues is None else f"{self.rx_queues}q"

    def __str__(self) -> str:
        return f"{self.title} {self.queues}".rstrip() + (f" ({self.mark})" if self.mark else "")


def order_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """DUTs, their variants and WANs in their order of appearance, each with its numbers of queues ascending.

    One is emulated if any of its cells is.
    """
    columns = list(columns)
    emulated = {one for one in columns if one.emulated}
    every = [replace(one, emulated=one in emulated) for one in dict.fromkeys(columns)]
    duts = list(dict.fromkeys((column.dut, column.simulated) for column in every))
    names = list(dict.fromkeys((column.variant, column.over) for column in every))

    def place(one: Column) -> tuple[int, int, int]:
        return duts.index((one.dut, one.simulated)), names.index((one.variant, one.over)), one.rx_queues or 0

    return tuple(sorted(every, key=place))


def column_of(cell: Cell) -> Column:
    return Column(cell.dut, cell.rx_queues, cell.simulated, cell.variant, cell.over, cell.emulated)


@dataclass(frozen=True)
class Looks:
    """The look of each line: one in every plot and with every choice, and no two lines of a plot alike."""

    columns: tuple[Column, ...]
    places: dict[tuple[object, ...], int]
    """Place of a line among its DUT's, by its load and direction."""
    stride: int = STRIDE

    def column(self, cell: Cell) -> int:
        return self.columns.index(column_of(cell))

    def of(self, cell: Cell, way: str = "") -> LineStyle:
        return find_look(self.column(cell), self.places.get((*_load(cell), way), 0), self.stride)

    def latest(self, cell: Cell, way: str = "", kind: str = "") -> dict[str, Any]:
        """The look as fields of a PlotLine. kind: behind the marker's name."""
        look = self.of(cell, way)
        size = look.size + (RING if kind else 0)
        return {"colour": look.hue, "marker": look.marker + kind, "dash": look.dash, "size": size}

    def older(self, cell: Cell, why: tuple[str, ...], way: str = "") -> dict[str, Any]:
        look, (marker, opacity) = self.of(cell, way), OLDER[why[0]]
        faint = {"size": SMALLEST, "width": 1.3, "opacity": opacity}
        return {"colour": look.hue, "marker": marker, "dash": look.older, **faint}


def find_looks(columns: tuple[Column, ...], ways: Mapping[Cell, Iterable[str]]) -> Looks:
    """ways: the directions of each cell; a line of all of them looks like the first one's."""
    places: dict[tuple[object, ...], int] = {}
    counts = {True: 0, False: 0}
    for cell, some in ways.items():
        for key in ((*_load(cell), way) for way in some):
            if key not in places:
                places[key] = counts[cell.tcp is None]
                counts[cell.tcp is None] += 1
                places.setdefault((*_load(cell), ""), places[key])
    return Looks(columns, places, max(STRIDE, *counts.values()))


def _load(cell: Cell) -> tuple[object, ...]:
    """TCP and packets are never in one plot."""
    return (cell.tcp is not None, str(cell.mode), cell.bidir, cell.kind_words)
