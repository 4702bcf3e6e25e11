"""Plots as lines over numbers; the page's library draws them, and matplotlib for the picture of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isnan
from typing import Any

from ..core.history.cell import Cell
from .clean import clean

INK, SOFT, BAD, GOOD = "--ink", "--soft", "--bad", "--good"
"""Colours of the page, by their names in page.css."""

Scales = Mapping[str, tuple[float, float]]
"""Name of a scale -> the factor and the sum that bring a line's figures there."""


@dataclass(frozen=True)
class PlotLine:
    """One line of a plot."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    """NaN: there is a gap."""
    texts: Sequence[str] | str
    """Text of each point, below the line's name. A single text is of all points: it names figures of theirs in braces,
    by axis and scale (``{x}``, ``{y.share}``, with a sign ``{y.relative+}``) or as in ``more``."""
    cells: tuple[Cell, ...]
    """The cells that it belongs to; without a choice of figures it is drawn while one of them is chosen. The page needs
    at least one, a picture none."""
    colour: str | int | None = None
    """One of the page's, or the place of one in the palette; None: that of the first cell's DUT."""
    dash: str = "solid"
    """None of its points are joined where it is ``none``."""
    bounds: Sequence[bool] | None = None
    """Which points are lower bounds and have open markers; None: no point has a marker, if ``marker`` names none."""
    apart: Sequence[float | None] = ()
    """Half of the interval of each point, where it is known."""
    words: Sequence[str] = ()
    """Figures beside the points, in a picture and in rows."""
    night: str = ""
    """Second line of its name."""
    beside: bool = False
    """It has that only where an older night of its cell is drawn, too."""
    marker: str | None = None
    size: int = 9
    """Width of the markers, in pixels."""
    width: float = 1.5
    opacity: float = 1.0
    panel: int = 0
    """Which of the figure's panels it is in; only of the first does a line have an entry in the legend."""
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Name of a control of the page -> its values with which the line is drawn; none: while it is ticked."""
    scales: Scales = field(default_factory=dict)
    """By the names that its axes have."""
    more: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Further figures of the points, for ``texts``."""
    within: tuple[float, float] | None = None
    """Interval of a single point along the first axis."""
    key: int | None = None
    """Which of the figure's keys tells what its markers are."""
    marks: Sequence[PlotMark] = ()
    levels: Sequence[PlotLevel] = ()


@dataclass(frozen=True)
class PlotMark:
    """An event of a line, at its place along the first axis."""

    x: float
    words: str
    """A sign and a word or two."""
    colour: str
    text: str
    """The event in a sentence."""


@dataclass(frozen=True)
class PlotLevel:
    """A level of a line from one place to another, in the figures that the line has. noise: half the band around it."""

    begin: float
    end: float
    y: float
    noise: float
    drawn: bool
    """False: only the band is."""


@dataclass(frozen=True)
class PlotAxis:
    """An axis: logarithmic, with these ticks, where it has any; else linear."""

    title: str = ""
    ticks: Sequence[tuple[float, str]] = ()
    span: tuple[float, float] | None = None
    """Its ends; None: as the lines need them."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Scale -> title, of an axis that has several: the reader's unit chooses."""
    fit: bool = False
    """It need not begin at zero; and has a log scale where its figures differ much."""
    switch: str = ""
    """Name of the control that makes it linear."""
    limit: float | None = None
    """A line across the plot at this value."""


@dataclass(frozen=True)
class PlotFigure:
    """All lines of a plot."""

    x: PlotAxis
    y: PlotAxis
    lines: Sequence[PlotLine]
    title: str = ""
    """Name to choose it by where several share a place on the page."""
    follows: str = "ways"
    """The part of the reader's choice that its lines follow: ``ways`` and DUTs, ``cells``, ``duts``, or ``none``."""
    form: str = "stack"
    """``stack``: panels below each other; ``grid``: a small one for each cell; ``rows``: side by side, a row a cell."""
    below: Sequence[PlotAxis] = ()
    """Vertical axes of the panels below the first; of rows horizontal ones of the panels beside it."""
    keys: Sequence[tuple[str, str]] = ()
    """Markers and what they mean."""
    cells: bool = False
    """The page puts what its choice leaves open of the first cell's name before a line's."""
    diagonal: str = ""
    """Name of a line at which both axes have the same value."""
    dated: bool = False
    """Its first axis counts the page's nights."""

    def data(self, cells: Mapping[Cell, int], arrays: dict[Sequence[float | None], int]) -> dict[str, Any]:
        """The figure as plots.js reads it. arrays: what lines have along their first axis, each once."""
        return _values(self) | {"lines": [_line(one, cells, arrays) for one in self.lines]}


def decades(form: Callable[[float], str], powers: range) -> list[tuple[float, str]]:
    """Ticks at 1, 2 and 5 of these powers of ten."""
    return [(step * 10.0**power, form(step * 10.0**power)) for power in powers for step in (1, 2, 5)]


def _line(line: PlotLine, cells: Mapping[Cell, int], arrays: dict[Sequence[float | None], int]) -> dict[str, Any]:
    kept = _values(line) | {
        "cells": [cells[cell] for cell in line.cells],
        "texts": clean(line.texts) if isinstance(line.texts, str) else [clean(text) for text in line.texts],
        "x": arrays.setdefault(tuple(short(value) for value in line.x), len(arrays)),
        "y": [short(value) for value in line.y],
    }
    for name in ("bounds", "apart"):
        if name in kept:
            kept[name] = [short(value) for value in kept[name]]
    return kept


def _values(of: Any) -> dict[str, Any]:
    """The fields that are not as they are by themselves, as JSON values."""
    default = {one.name: one.default for one in fields(of)}
    found = {name: value for name, value in vars(of).items() if value != default[name] and value not in ((), [], {})}
    return {name: _plain(value) for name, value in found.items()}


_PARTS = (PlotAxis, PlotMark, PlotLevel)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, _PARTS):
        return _values(value)
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (str, *_PARTS)):
        return [*map(_plain, value)]
    return value


def short(value: float | None, digits: int = 6, scale: float = 1.0) -> float | None:
    """Round to ``digits`` significant digits, by default more than any of these figures has."""
    if value is None or isnan(value):
        return None
    rounded = float(f"{scale * value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded
