"""The report's plots as PNG and SVG files: for each mode and direction its ramps or its legs of TCP, and the trend."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from ...core.history.rows import METRICS, Cell, held_pps
from ...core.strategy.table import has_curve, suffix_of
from ..clean import clean
from ..run.picture import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, new_figure, render, watermark
from .grid import Column, column_of
from .overlay import Curve
from .picture_tcp import by_mode, draw_bars, draw_series, literal
from .report import Report
from .tcp import TcpCell, is_tcp, mode_words
from .trends import Trend

FORMATS = ("png", "svg")
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, "#222222", "#999933")
MARKERS = ("o", "s", "D", "^", "p", "*", "h", "P")
"""As page.js has them, so that a DUT looks the same in a picture and on the page."""
DASHES: tuple[Any, ...] = ("-", "--", (0, (8, 3)), "-.", (0, (5, 1)), (0, (8, 2, 2, 2)))
RATES = [metric.name for metric in METRICS if metric.bounded]


def draw_pictures(report: Report) -> Iterator[tuple[str, bytes]]:
    """File names and contents; plots without data are left out."""
    columns = report.columns
    taken: set[str] = set()

    def style(one: TcpCell) -> dict[str, Any]:
        return _style(columns, one.cell)

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
        if trends:
            yield from _saved(f"trend-{stem}", _trend(trends, columns, title))
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
        style = _style(columns, curve.cell)
        colour, scale = style["color"], 100 / curve.line_rate_pps
        name = column_of(curve.cell).name + (f", {curve.direction}" if curve.cell.bidir else "")
        first = curve.direction == next(c.direction for c in curves if c.cell == curve.cell)
        _draw(axes, curve, name, **style | {"linewidth": 1.6} | ({} if first else {"linestyle": ":"}))
        if curve in older:
            night, then = older[curve]
            thin: dict[str, Any] = {"linestyle": (0, (3, 2)), "linewidth": 1, "marker": "D", "markerfacecolor": "none"}
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
    axes.plot(offered, received, label=literal(name), markevery=every, markersize=4, **style)


def _trend(trends: Sequence[Trend], columns: Sequence[Column], title: str) -> Figure:
    figure, axes = _figure(any(trend.cell.simulated for trend in trends))
    tcp = is_tcp(trends[0].cell)
    for trend in trends:
        style = _style(columns, trend.cell)
        at = trend.instants()
        placed = ((_instant(at[row.started]), row) for row in sorted(trend.runs, key=lambda row: at[row.started]))
        rates = [
            (when, row.rate / 1e6 if tcp else 100 * row.line_share, row) for when, row in placed if when is not None
        ]
        points = [(when, rate, row.at_least) for when, rate, row in rates]
        axes.plot(*_sides(points), label=literal(column_of(trend.cell).name), **style | {"linewidth": 1, "marker": ""})
        dots = style | {"linestyle": "none", "markersize": 4}
        axes.plot(*_sides([point for point in points if not point[2]]), **dots)
        axes.plot(*_sides([point for point in points if point[2]]), **dots | {"marker": "^", "markerfacecolor": "none"})
        for change in trend.changes:
            when = _instant(at.get(change.at, change.at))
            if change.metric in RATES and when is not None:
                axes.axvline(when, color=RED if change.bad else GREEN, linestyle="--", linewidth=1.2)  # type: ignore[arg-type]
    failed = [when for trend in trends for at, _ in trend.failed if (when := _instant(at))]
    if failed:
        place = axes.get_xaxis_transform()
        axes.plot(failed, [0.02] * len(failed), "x", color=RED, transform=place, label="failed")  # type: ignore[arg-type]
    locator = AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set_ylabel("mean rate, Mbit/s" if tcp else "maximum rate, % of line rate")
    _finish(axes, f"{title}: {'mean' if tcp else 'maximum'} rate of every run (open triangle: at least)")
    return figure


def _style(columns: Sequence[Column], cell: Cell) -> dict[str, Any]:
    number = columns.index(column_of(cell))
    dash = DASHES[(number + number // len(COLOURS)) % len(DASHES)]
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)], "linestyle": dash}


def _sides(points: Sequence[tuple[datetime, float, bool]]) -> tuple[Any, Any]:
    return [when for when, _, _ in points], [value for _, value, _ in points]


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=11, fontweight="bold", parse_math=False)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_ylim(bottom=0)
    legend = axes.legend(fontsize=8, framealpha=0.9)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _instant(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).replace(tzinfo=None)
    except ValueError:
        return None
