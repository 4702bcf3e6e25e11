"""The ramp as a curve of characters for a terminal: received over offered load.

Plotting libraries for terminals change their interface with every major version; this is a grid and a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from ...core.result import RunResult
from ...core.strategy.base import curve_windows
from ..room import wrapped

COLUMNS, ROWS = 110, 16
_LEFT = 10
"""Columns left of the curve, for the axis and its labels."""
MARKERS = "ox+*#@"


def draw_curve(result: RunResult, width: int = 100) -> str:
    """Draw received over offered in Mpps, one marker per direction, dots on the line of no loss; empty without a ramp.

    Where directions coincide their markers alternate from column to column. width: most columns, from 40 on.
    """
    plan = result.plan
    if not plan.seeks_knee:
        return ""
    curves: dict[str, list[tuple[float, float]]] = {}
    for way in plan.directions:
        windows = curve_windows(plan, result.samples, way)
        curves[str(way)] = [(window.sent_pps / 1e6, window.received_pps / 1e6) for window in windows if window.sent]
    right, top = (max((point[at] for some in curves.values() for point in some), default=0.0) for at in (0, 1))
    if right <= 0 or top <= 0:
        return ""
    columns = max(20, min(COLUMNS, width - _LEFT))
    grid = [[" "] * columns for _ in range(ROWS)]
    for column in range(columns):
        if (without_loss := (column + 0.5) / columns * right) <= top:
            grid[_place(without_loss, top, ROWS)][column] = "."
    for number, points in enumerate(curves.values()):
        for offered, received in points:
            row, column = grid[_place(max(0.0, received), top, ROWS)], _place(offered, right, columns)
            if row[column] in " ." or column % len(curves) == number:
                row[column] = MARKERS[number % len(MARKERS)]
    return _framed(grid, [*curves], right, top)


def _place(value: float, most: float, places: int) -> int:
    return min(places - 1, int(value / most * places))


def _ticks(most: float, wanted: int) -> list[float]:
    """Return at most ``wanted`` multiples of 1, 2, 2.5 or 5 times a power of ten, up to ``most``."""
    power = 10.0 ** floor(log10(most / max(1, wanted)))
    step = next(one for one in (power * factor for factor in (1, 2, 2.5, 5, 10, 20)) if most / one < wanted + 1)
    return [step * number for number in range(1, int(most / step) + 1)]


def _framed(grid: Sequence[Sequence[str]], names: Sequence[str], right: float, top: float) -> str:
    labels = {_place(tick, top, ROWS): f"{tick:g}" for tick in _ticks(top, ROWS // 4)}
    lines = ["received, Mpps"]
    lines += [f"{labels.get(row, ''):>8} |{''.join(grid[row])}".rstrip() for row in range(ROWS - 1, -1, -1)]
    columns = len(grid[0])
    axis, below = ["-"] * columns, ""
    for tick in _ticks(right, columns // 12):
        place = _place(tick, right, columns)
        axis[place] = "+"
        below = f"{below}{f'{tick:g}':>{_LEFT + place + 1 - len(below)}}"
    lines += [f"{'0':>8} +{''.join(axis)}", below, "offered per direction, Mpps".rjust(_LEFT + columns)]
    entries = [f"{MARKERS[number % len(MARKERS)]} {name}" for number, name in enumerate(names)]
    # no line breaks at a no-break space
    legend = "   ".join(entry.replace(" ", "\u00a0") for entry in [*entries, ". no loss"])
    return "\n".join([*lines, *wrapped([f"{'':<{_LEFT}}{legend}"], _LEFT + columns)]) + "\n"
