"""Plots as lines over numbers; the page's library draws them, and matplotlib for the picture of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.history.cell import Cell
from .clean import clean

INK, SOFT, BAD = "--ink", "--soft", "--bad"
"""Colours of the page, by their names in page.css."""


@dataclass(frozen=True)
class PlotLine:
    """One line of a plot."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    texts: Sequence[str]
    """Text of each point, below the line's name."""
    cells: tuple[Cell, ...]
    """The cells that it belongs to; without a choice of figures it is drawn while one of them is chosen. The page needs
    at least one, a picture none."""
    colour: str | int | None = None
    """One of the page's, or the place of one in the palette; None: that of the first cell's DUT."""
    dash: str = "solid"
    bounds: Sequence[bool] | None = None
    """Which points are lower bounds and have open markers; None: no point has a marker."""
    apart: Sequence[float | None] = ()
    """Half of the interval of each point, where it is known."""
    words: Sequence[str] = ()
    """Figures beside the points, in a picture."""


@dataclass(frozen=True)
class PlotAxis:
    """An axis: logarithmic, with these ticks, where it has any; else linear."""

    title: str
    ticks: Sequence[tuple[float, str]] = ()
    span: tuple[float, float] | None = None
    """Its ends; None: as the lines need them."""


@dataclass(frozen=True)
class PlotFigure:
    """All lines of a plot."""

    x: PlotAxis
    y: PlotAxis
    lines: Sequence[PlotLine]
    title: str = ""
    """Name to choose it by where several share a place on the page; those do not follow the choice of cells."""

    def data(self, cells: Mapping[Cell, int]) -> dict[str, Any]:
        """The figure as plots.js reads it."""
        return {"x": vars(self.x), "y": vars(self.y), "lines": [_line(one, cells) for one in self.lines]}


def decades(form: Callable[[float], str], powers: range) -> list[tuple[float, str]]:
    """Ticks at 1, 2 and 5 of these powers of ten."""
    return [(step * 10.0**power, form(step * 10.0**power)) for power in powers for step in (1, 2, 5)]


def _line(line: PlotLine, cells: Mapping[Cell, int]) -> dict[str, Any]:
    return {
        "name": clean(line.name),
        "x": [short(value) for value in line.x],
        "y": [short(value) for value in line.y],
        "texts": [clean(text) for text in line.texts],
        "cells": [cells[cell] for cell in line.cells],
        "colour": line.colour,
        "dash": line.dash,
        "bounds": None if line.bounds is None else [int(bound) for bound in line.bounds],
        "apart": [short(value) for value in line.apart],
    }


def short(value: float | None, digits: int = 6, scale: float = 1.0) -> float | None:
    """Round to ``digits`` significant digits, by default more than any of these figures has."""
    return None if value is None else float(f"{scale * value:.{digits}g}")
