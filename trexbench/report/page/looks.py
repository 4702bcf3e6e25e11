"""Looks of the lines in the page's plots: colours tell DUTs, dashes and markers a DUT's lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.history.cell import Cell
from ..palette import SMALLEST, STRIDE, LineStyle, find_look
from .columns import Column, column_of

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
class Looks:
    """The look of each line: one in every plot and with every choice, and no two lines of a plot alike."""

    columns: tuple[Column, ...]
    places: dict[tuple[object, ...], int]
    """Place of a line among its DUT's, by its load and direction."""
    stride: int = STRIDE

    def column(self, cell: Cell) -> int:
        return self.columns.index(column_of(cell))

    def of(self, cell: Cell, way: str = "") -> LineStyle:
        place = self.places.get((*_load(cell), way), 0)
        return find_look(self.column(cell), place, self.stride)

    def latest(self, cell: Cell, way: str = "", kind: str = "") -> dict[str, Any]:
        """The look as fields of a PlotLine. kind: behind the marker's name."""
        look = self.of(cell, way)
        size = look.size + (RING if kind else 0)
        return {"colour": look.hue, "marker": look.marker + kind, "dash": look.dash, "size": size}

    def older(self, cell: Cell, why: tuple[str, ...], way: str = "") -> dict[str, Any]:
        look, (marker, opacity) = self.of(cell, way), OLDER[why[0]]
        return {
            "colour": look.hue,
            "marker": marker,
            "dash": look.older,
            "size": SMALLEST,
            "width": 1.3,
            "opacity": opacity,
        }


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
