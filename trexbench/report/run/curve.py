"""The ramp as a curve of characters for a terminal: received over offered load.

Plotting libraries for terminals change their interface with every major version; this is a grid and a loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.result import RunResult
from ...core.strategy.base import curve_windows

COLUMNS, ROWS = 64, 16
MARKERS = "ox+*#@"
BOTH = "8"
"""The marker where those of several directions coincide."""

Curve = tuple[str, Sequence[float], Sequence[float]]


def draw_curve(result: RunResult) -> str:
    """Received over offered in Mpps, one marker per direction, dots on the line of no loss; empty without a ramp."""
    if not result.plan.seeks_knee:
        return ""
    curves: list[Curve] = []
    for direction in result.plan.directions:
        windows = [w for w in curve_windows(result.plan, result.samples, direction) if w.sent]
        offered, received = [w.sent_pps / 1e6 for w in windows], [w.received_pps / 1e6 for w in windows]
        curves.append((str(direction), offered, received))
    right = max((value for _, offered, _ in curves for value in offered), default=0.0)
    top = max((value for _, _, received in curves for value in received), default=0.0)
    if right <= 0 or top <= 0:
        return ""
    return _framed(_grid(curves, right, top), curves, right, top)


def _grid(curves: Sequence[Curve], right: float, top: float) -> list[list[str]]:
    grid = [[" "] * COLUMNS for _ in range(ROWS)]
    for column in range(COLUMNS):
        without_loss = (column + 0.5) / COLUMNS * right
        if without_loss <= top:
            grid[_place(without_loss, top, ROWS)][column] = "."
    for number, (_, offered, received) in enumerate(curves):
        marker = MARKERS[number % len(MARKERS)]
        for x, y in zip(offered, received, strict=True):
            row, column = _place(max(0.0, y), top, ROWS), _place(x, right, COLUMNS)
            grid[row][column] = marker if grid[row][column] in (" ", ".", marker) else BOTH
    return grid


def _place(value: float, most: float, places: int) -> int:
    return min(places - 1, int(value / most * places))


def _framed(grid: Sequence[Sequence[str]], curves: Sequence[Curve], right: float, top: float) -> str:
    lines = ["received, Mpps"]
    for row in range(ROWS - 1, -1, -1):
        label = f"{top * (row + 1) / ROWS:8.3f}" if row in (ROWS - 1, ROWS // 2 - 1) else " " * 8
        lines.append(f"{label} |{''.join(grid[row])}".rstrip())
    lines.append(f"   0.000 +{'-' * COLUMNS} {right:.3f} offered per direction")
    names = [f"{MARKERS[number % len(MARKERS)]} {name}" for number, (name, _, _) in enumerate(curves)]
    names += [f"{BOTH} several"] if len(curves) > 1 else []
    lines.append(" " * 10 + "   ".join([*names, ". no loss"]))
    return "\n".join(lines) + "\n"
