"""Plots as data, which the page's library draws, and matplotlib for a picture."""

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
"""Name of a scale -> factor and offset that convert a line's figures to it."""


@dataclass(frozen=True)
class PlotLine:
    """One line of a plot."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    """NaN is a gap."""
    texts: Sequence[str] | str
    """Text of each point, below the line's name; or a template for all, with figures in braces: by axis and scale
    (``{x}``, ``{y.share}``, with a sign ``{y.relative+}``) or by their name in ``more``."""
    cells: tuple[Cell, ...]
    """Cells that the line belongs to; it is drawn while one of them is chosen. A picture needs none."""
    colour: str | int | None = None
    """One of the page's, or an index in the palette; None: that of the first cell's DUT."""
    dash: str = "solid"
    """``none``: the points are not joined."""
    bounds: Sequence[bool] | None = None
    """Points that are lower bounds and have open markers; None: no markers, unless ``marker`` names one."""
    apart: Sequence[float | None] = ()
    """Half of each point's interval, where it is known."""
    words: Sequence[str] = ()
    """Figures beside the points, in a picture and in rows."""
    night: str = ""
    """Second line of the name."""
    beside: bool = False
    """The second line is shown only while an older night of the cell is drawn."""
    marker: str | None = None
    size: int = 9
    """Width of the markers, in pixels."""
    width: float = 1.5
    opacity: float = 1.0
    panel: int = 0
    """Index of the figure's panel; only lines of the first are in the legend."""
    tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Name of a control of the page -> values with which the line is drawn; none: while it is ticked."""
    scales: Scales = field(default_factory=dict)
    """By the axes' names."""
    more: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Further figures of the points, for ``texts``."""
    within: tuple[float, float] | None = None
    """Interval of a single point along the first axis."""
    key: int | None = None
    """Index of the figure's key that explains the markers."""
    marks: Sequence[PlotMark] = ()
    levels: Sequence[PlotLevel] = ()


@dataclass(frozen=True)
class PlotMark:
    """An event on a line, at ``x`` on the first axis."""

    x: float
    words: str
    """A sign and a word or two."""
    colour: str
    text: str
    """A sentence."""


@dataclass(frozen=True)
class PlotLevel:
    """A level of a line between two places on the first axis, in the line's figures."""

    begin: float
    end: float
    y: float
    noise: float
    """Half the width of the band around the level."""
    drawn: bool
    """False: only the band is."""


@dataclass(frozen=True)
class PlotAxis:
    """An axis: logarithmic if it has ticks, else linear."""

    title: str = ""
    ticks: Sequence[tuple[float, str]] = ()
    span: tuple[float, float] | None = None
    """Both ends; None: those of the lines."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Scale -> title, for an axis with several scales, of which the reader's unit chooses."""
    fit: bool = False
    """The axis need not begin at zero, and is logarithmic where its figures differ much."""
    switch: str = ""
    """Name of the control that makes it linear."""
    limit: float | None = None
    """A line across the plot at this value."""


@dataclass(frozen=True)
class PlotFigure:
    """A plot: its axes and lines."""

    x: PlotAxis
    y: PlotAxis
    lines: Sequence[PlotLine]
    title: str = ""
    """Name to choose it by where several share a place on the page."""
    follows: str = "ways"
    """The part of the reader's choice that the lines follow: ``ways`` and DUTs, ``cells``, ``duts``, or ``none``."""
    form: str = "stack"
    """``stack``: panels below each other; ``grid``: a small one per cell; ``rows``: side by side, a row per cell."""
    below: Sequence[PlotAxis] = ()
    """Vertical axes of the panels below the first; for ``rows`` horizontal ones of the panels beside it."""
    keys: Sequence[tuple[str, str]] = ()
    """Markers and their meanings."""
    cells: bool = False
    """The page puts the first cell's name, as far as the choice leaves it open, before a line's."""
    diagonal: str = ""
    """Name of a line at which both axes have the same value."""
    dated: bool = False
    """The first axis counts the page's nights."""

    def data(self, cells: Mapping[Cell, int], arrays: dict[Sequence[float | None], int]) -> dict[str, Any]:
        """The figure for plots.js. arrays: figures along the first axis, each sequence once."""
        return _values(self) | {"lines": [_line_values(line, cells, arrays) for line in self.lines]}


def decades(form: Callable[[float], str], powers: range) -> list[tuple[float, str]]:
    """Ticks at 1, 2 and 5 of these powers of ten."""
    return [(step * 10.0**power, form(step * 10.0**power)) for power in powers for step in (1, 2, 5)]


def _line_values(
    line: PlotLine, cells: Mapping[Cell, int], arrays: dict[Sequence[float | None], int]
) -> dict[str, Any]:
    values = _values(line) | {
        "cells": [cells[cell] for cell in line.cells],
        "texts": clean(line.texts) if isinstance(line.texts, str) else [clean(text) for text in line.texts],
        "x": arrays.setdefault(tuple(short(value) for value in line.x), len(arrays)),
        "y": [short(value) for value in line.y],
    }
    for name in ("bounds", "apart"):
        if name in values:
            values[name] = [short(value) for value in values[name]]
    return values


def _values(of: Any) -> dict[str, Any]:
    """Return the fields that are neither empty nor at their default as JSON values."""
    default = {field.name: field.default for field in fields(of)}
    set_ = {name: value for name, value in vars(of).items() if value != default[name] and value not in ((), [], {})}
    return {name: _plain(value) for name, value in set_.items()}


_PARTS = (PlotAxis, PlotMark, PlotLevel)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, _PARTS):
        return _values(value)
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (str, *_PARTS)):
        return [*map(_plain, value)]
    return value


def short(value: float | None, digits: int = 6, scale: float = 1.0) -> float | None:
    """Round to ``digits`` significant digits, by default more than any figure of a plot needs."""
    if value is None or isnan(value):
        return None
    rounded = float(f"{scale * value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded
