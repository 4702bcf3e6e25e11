"""Plots of the trends: a small panel for each cell, nights shared by all of them, figures as small integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import nan
from typing import Any

from ...core.history.cell import Cell
from ...core.history.finding import Finding, Kind
from ...core.history.rows import Metric, RunRow
from ..clean import clean
from ..groups import change_words, finding_line
from ..palette import SMALLEST
from ..plots import BAD, GOOD, SOFT, PlotAxis, PlotFigure, PlotLevel, PlotLine, PlotMark
from .columns import Looks
from .plots_packets import BAND
from .trends import Trend, place_of

STEP = 1e-5
"""Resolution of a figure, as a share of its usual level."""
LONGEST_REASON = 300
FEW_NIGHTS = 31
"""Most nights that have a marker each; of more, only those that no line would show."""
SCALE: Mapping[str, tuple[float, str]] = {
    "pps": (1e-6, "Mpps"),
    "share": (100.0, "%"),
    "us": (1.0, "\u00b5s"),
    "bit/s": (1e-6, "Mbit/s"),
}
"""Unit of a metric -> factor and unit of its axis."""
Places = Mapping[str, int]
"""Night -> its index on the page."""
History = Sequence[tuple[int, RunRow | None, str]]
"""Indices of nights in order, each with its run, or with None and the reason why there is none."""


def nights_of(trends: Sequence[Trend]) -> dict[str, int]:
    """Number the nights, and the runs outside any by their start to the minute, in order."""
    instants = {at for trend in trends for at in (*trend.instants.values(), *dict(trend.failed))}
    texts = {short_instant(at) for at in instants}
    texts |= {short_instant(trend.instant_of_change(change)) for trend in trends for change in trend.changes}
    return {text: at for at, text in enumerate(sorted(texts))}


@lru_cache(maxsize=4096)
def short_instant(text: str) -> str:
    """Shorten a place on the time axis to a date, or an instant to the minute, in UTC."""
    return clean(text)[:16].replace("T", " ")


def history_of(trend: Trend, places: Places) -> History:
    runs = [(places[short_instant(trend.instants[row.path])], row, "") for row in trend.runs]
    lost = [(places[short_instant(at)], None, clean(why)[:LONGEST_REASON]) for at, why in trend.failed]
    return sorted([*runs, *lost], key=lambda one: (one[0], one[1] is not None))


def trend_data(trend: Trend, places: Places) -> dict[str, Any]:
    """Return the documents in the order of the lines' points, and the nights without one, with the reason."""
    history = history_of(trend, places)
    return {
        "x": [at for at, _, _ in history],
        "documents": [None if row is None else _document(row) for _, row, _ in history],
        "failed": [[at, why] for at, row, why in history if row is None],
    }


def _document(row: RunRow) -> str:
    # Without the run's night if that is the first folder: the script adds it.
    path, night = clean(row.path), short_instant(place_of(row))
    return path.removeprefix(night) if path.startswith(f"{night}/") else path


def trend_figures(
    trends: Sequence[Trend], metrics: Sequence[Metric], places: Places, looks: Looks, cells: Sequence[Cell]
) -> Iterator[PlotFigure]:
    """Yield a plot for each metric. cells: in the order of the table's rows."""
    modes = list(dict.fromkeys(str(cell.mode) for cell in cells))
    ordered = sorted(trends, key=lambda one: (one.cell.bidir, modes.index(str(one.cell.mode)), looks.column(one.cell)))
    histories = [(trend, history_of(trend, places)) for trend in ordered]
    for metric in metrics:
        unit = SCALE.get(metric.unit, (1.0, metric.unit))[1]
        titles = {"own": f"{metric.name}, {unit}", "relative": f"{metric.name}, % off usual level"}
        if unit == "Mpps":
            titles["share"] = f"{metric.name}, % of line rate"
        lines = [line for one in histories for line in _lines(*one, metric, places, looks)]
        y = PlotAxis(titles=titles, fit=True)
        yield PlotFigure(PlotAxis(), y, lines, metric.name, "cells", "grid", cells=True, dated=True)


def _lines(trend: Trend, history: History, metric: Metric, places: Places, looks: Looks) -> Iterator[PlotLine]:
    """Yield the line, and if nights are many a second one for those that need a marker: bounds and lone points."""
    usual, unit = trend.usual(metric), SCALE.get(metric.unit, (1.0, metric.unit))[1]
    values = [None if row is None else metric.of(row) for _, row, _ in history]
    known = [value for value in values if value is not None]
    if not known or usual is None:
        return
    level, look = float(f"{usual.level:.6g}"), looks.latest(trend.cell)
    step = float(f"{STEP * (abs(level) or max(map(abs, known)) or 1.0):.6g}")
    bounds = [metric.bounded and row is not None and row.at_least for _, row, _ in history]
    few = len(known) <= FEW_NIGHTS
    relative = ", {y.relative+} %" if level and unit != "%" else ""
    line = PlotLine(
        "",
        [at for at, _, _ in history],
        [nan if value is None else round((value - level) / step) for value in values],
        f"{{y.own}} {unit}{relative}",
        (trend.cell,),
        width=1.2,
        bounds=bounds if any(bounds) else None,
        scales=_scales(trend, metric, level, step),
        marks=[_mark(trend, change, places) for change in trend.changes_of(metric)],
        levels=list(_levels(trend, history, metric, places, level, step, round(BAND * (usual.noise or 0.0) / step))),
        **look | {"size": SMALLEST, "marker": look["marker"] if few else None},
    )
    yield line
    alone = [
        at
        for at, value in enumerate(values)
        if value is not None
        and (
            {*values[max(0, at - 1) : at], *values[at + 1 : at + 2]} <= {None}
            or (bounds[at] and not all(bounds[max(0, at - 1) : at + 2]))
        )
    ]
    if alone and not few:
        few_x, few_y = ([every[at] for at in alone] for every in (line.x, line.y))
        own = replace(line, x=few_x, y=few_y, bounds=[bounds[at] for at in alone], dash="none", marker=look["marker"])
        yield replace(own, marks=(), levels=())


def _scales(trend: Trend, metric: Metric, level: float, step: float) -> dict[str, tuple[float, float]]:
    scale, unit = SCALE.get(metric.unit, (1.0, metric.unit))
    scales = {"own": (scale * step, scale * level)}
    if level and unit != "%":
        scales["relative"] = (100 * step / level, 0.0)
    last = trend.runs[-1]
    rate = metric.bounded and last.metric is metric and metric.of(last)
    if unit == "Mpps" and rate and last.line_share:
        line_rate = rate / last.line_share
        scales["share"] = (100 * step / line_rate, 100 * level / line_rate)
    return {name: (float(f"{factor:.6g}"), float(f"{offset:.6g}")) for name, (factor, offset) in scales.items()}


def _mark(trend: Trend, finding: Finding, places: Places) -> PlotMark:
    sign, colour = ("\u25bc", BAD) if finding.worse else ("\u25b2", GOOD)
    known = " (known)" if finding.kind is Kind.KNOWN else "?" if finding.kind is Kind.SUSPICION else ""
    is_ended = finding.kind is Kind.ENDED
    words = "recovered" if finding.kind is Kind.RECOVERY else f"{change_words(finding)}{known}{', ended' * is_ended}"
    at = places[short_instant(trend.instant_of_change(finding))]
    return PlotMark(at, f"{sign} {words}", SOFT if is_ended else colour, finding_line(finding))


def _levels(
    trend: Trend, history: History, metric: Metric, places: Places, level: float, step: float, half: int
) -> Iterator[PlotLevel]:
    """Yield the levels: before the first change and after each, or of all nights. half: half the band of noise."""
    runs, changes = [at for at, row, _ in history if row is not None], trend.steps_of(metric)
    starts = [max(runs[0], places[short_instant(trend.instant_of_change(change))]) for change in changes]
    values = [changes[0].before, *(change.after for change in changes)] if changes else [level]
    for (begin, end), value in zip(pairwise([runs[0], *starts, runs[-1]]), values, strict=True):
        if begin < end or runs[0] == runs[-1]:
            yield PlotLevel(begin, end, round((value - level) / step), half, bool(changes))
