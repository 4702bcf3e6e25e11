"""The report's plots as PNG and SVG files: for each mode and direction its ramps or its legs of TCP, and the trend."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...core.history.rows import Cell, held_pps
from ...core.strategy.table import has_curve, suffix_of
from ..clean import clean
from ..palette import GREY, find_look
from ..run.picture import new_figure, render, watermark
from .columns import Column, column_of
from .overlay import Curve
from .picture_tcp import by_mode, draw_bars, draw_series, literal
from .picture_trend import draw_trend, has_course
from .report import Report
from .tcp import TcpCell, is_tcp, mode_words

FORMATS = ("png", "svg")


def draw_pictures(report: Report) -> Iterator[tuple[str, bytes]]:
    """File names and contents; plots without data are left out."""
    columns = report.columns
    taken: set[str] = set()

    def style(one: TcpCell) -> dict[str, Any]:
        return _style(columns, one.cell)

    def style_of(cell: Cell) -> dict[str, Any]:
        return _style(columns, cell)

    for group in dict.fromkeys(_group(one.cell) for one in report.trends if held_pps(one.cell.kind) is None):
        mode, bidir, kind = group
        stem = _stem(mode, bidir, kind, taken)
        curves = [curve for curve in report.curves if _group(curve.cell) == group]
        trends = [trend for trend in report.trends if _group(trend.cell) == group and trend.runs]
        curves.sort(key=lambda curve: columns.index(column_of(curve.cell)))
        trends.sort(key=lambda trend: columns.index(column_of(trend.cell)))
        way = "bidir" if bidir else "uni"
        title = (
            f"TCP, {mode_words(trends[0].cell)}" if trends and is_tcp(trends[0].cell) else f"{clean(mode, 60)}, {way}"
        )
        if curves and has_curve(kind):
            yield from _saved(f"ramps-{stem}", _overlay(curves, columns, title, _before_changes(report)))
        if has_course(trends):
            what = "mean" if is_tcp(trends[0].cell) else "maximum"
            heading = f"{title}: {what} rate of every run (open triangle: at least)"
            yield from _saved(f"trend-{stem}", draw_trend(trends, heading, lambda trend: style_of(trend.cell)))
    if report.tcp_cells:
        yield from _saved("tcp-bars", draw_bars(report.tcp_cells, style))
    for mode, cells in by_mode(report.tcp_cells):
        yield from _saved(f"tcp-{mode}", draw_series(cells, style))


def _group(cell: Cell) -> tuple[str, bool, str]:
    return cell.mode, cell.bidir, cell.kind


def _stem(mode: str, bidir: bool, kind: str, taken: set[str]) -> str:
    """A safe file name that no other picture has."""
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", mode).strip("-")[:60] or "unnamed"
    stem = "-".join(part for part in (safe, "bidir" if bidir else "uni", suffix_of(kind)) if part)
    while stem in taken:
        stem += "-2"
    taken.add(stem)
    return stem


def _saved(stem: str, figure: Figure) -> Iterator[tuple[str, bytes]]:
    for form in FORMATS:
        with rc_context({"svg.hashsalt": "trexbench", "svg.fonttype": "path"}):
            yield f"{stem}.{form}", render(figure, form, {"Title": stem})


def _figure(simulated: bool) -> tuple[Figure, Axes]:
    figure = new_figure(8.8, 5.2)
    if simulated:
        watermark(figure, 56)
    return figure, figure.subplots()


Before = Mapping[tuple[Cell, str], tuple[str, Curve]]


def _before_changes(report: Report) -> Before:
    """By cell and direction: the night before the newest change, and its curve."""
    return {
        (cell, curve.direction): (one.night, curve)
        for cell, some in report.older.items()
        for one in some
        if "change" in one.why
        for curve in one.curves
    }


def _overlay(curves: Sequence[Curve], columns: Sequence[Column], title: str, before: Before) -> Figure:
    figure, axes = _figure(any(curve.cell.simulated for curve in curves))
    older = {curve: before[key] for curve in curves if (key := (curve.cell, curve.direction)) in before}
    drawn = [*curves, *(curve for _, curve in older.values())]
    top = 100 * max(max(curve.offered_pps) / curve.line_rate_pps for curve in drawn)
    axes.plot([0, top], [0, top], color=GREY, linewidth=0.9, linestyle=":", label="no loss")
    for curve in curves:
        ways = [one.direction for one in curves if one.cell == curve.cell]
        style = _style(columns, curve.cell, ways.index(curve.direction))
        colour, scale = style["color"], 100 / curve.line_rate_pps
        name = column_of(curve.cell).name + (f", {curve.direction}" if curve.cell.bidir else "")
        _draw(axes, curve, name, **style | {"linewidth": 1.6, "markeredgecolor": "white", "markeredgewidth": 0.6})
        if curve in older:
            night, then = older[curve]
            thin: dict[str, Any] = {
                "linestyle": (0, (3, 2)),
                "linewidth": 1,
                "marker": "D",
                "markersize": 4,
                "markerfacecolor": "none",
            }
            _draw(axes, then, f"{name}, {night}, before the change", color=colour, **thin)
        mark = curve.knee_pps if curve.knee_pps is not None else curve.bound_pps
        if mark is not None:
            shape = "x" if curve.knee_pps is not None else ">"
            axes.plot([mark * scale], [mark * scale], marker=shape, markersize=10, color=colour, markerfacecolor="none")
    axes.set_xlabel("offered, % of line rate")
    axes.set_ylabel("received, % of line rate")
    _finish(axes, f"{title}: offered against received")
    return figure


def _draw(axes: Axes, curve: Curve, name: str, **style: Any) -> None:
    scale, every = 100 / curve.line_rate_pps, max(1, len(curve.offered_pps) // 8)
    offered, received = ([value * scale for value in side] for side in (curve.offered_pps, curve.received_pps))
    axes.plot(offered, received, label=literal(name), markevery=every, **style)


def _style(columns: Sequence[Column], cell: Cell, place: int = 0) -> dict[str, Any]:
    """place: among the lines of its DUT in the picture."""
    return find_look(columns.index(column_of(cell)), place).style


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=11, fontweight="bold", parse_math=False)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_ylim(bottom=0)
    legend = axes.legend(fontsize=8, framealpha=0.9)
    for text in legend.get_texts():
        text.set_parse_math(False)
