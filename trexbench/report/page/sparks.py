"""The sparklines in the page's tables: all of a metric at one scale, so that noise does not look like a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from ...core.history.rows import Metric
from .trends import Trend

WIDTH, HEIGHT, EDGE = 150, 26, 3
"""Dimensions of a sparkline, in pixels."""
LEAST, MOST = 0.05, 0.3
"""The share of its usual level that a cell may at least, and at most, be away from it before its line is cut off."""

Dot = tuple[int, float]
"""A pixel column, and the mean share by which its figures are off the usual level."""


def sparks(trends: Sequence[Trend], metrics: Sequence[Metric]) -> Callable[[Trend, Metric], str]:
    """Draws a trend's sparkline as SVG, which holds numbers only; nothing for a single night or a usual level of 0."""
    nights = sorted({one for trend in trends for one in (*trend.instants.values(), *(at for at, _ in trend.failed))})
    columns = {night: _column(at, len(nights)) for at, night in enumerate(nights)}
    lines = {
        (trend.cell, metric.name): _line(trend, metric, columns)
        for metric in metrics
        if metric.bounded
        for trend in trends
    }
    spans = {
        metric.name: max(
            (abs(off) for (_, name), line in lines.items() if name == metric.name for _, off in line), default=0.0
        )
        for metric in metrics
    }

    def draw(trend: Trend, metric: Metric) -> str:
        line = lines.get((trend.cell, metric.name), [])
        if len(line) < 2:
            return ""
        failed = {columns[night] for night, _ in trend.failed} - {x for x, _ in line}
        change = next(reversed(trend.changes_of(metric)), None)
        where = None if change is None else columns.get(trend.instant_of_change(change))
        bad = change is not None and change.finding.worse
        return "".join(_svg(line, failed, min(max(spans[metric.name], LEAST), MOST), where, bad))

    return draw


def _column(at: int, count: int) -> int:
    return EDGE + round((WIDTH - 2 * EDGE) * at / max(1, count - 1))


def _line(trend: Trend, metric: Metric, columns: dict[str, int]) -> list[Dot]:
    usual = trend.usual(metric)
    if usual is None or not usual.level:
        return []
    level = usual.level
    shares = sorted((columns[trend.instants[row.path]], value / level - 1) for row, value in trend.values(metric))
    groups = [(x, [share for _, share in some]) for x, some in groupby(shares, key=lambda one: one[0])]
    return [(x, sum(some) / len(some)) for x, some in groups]


def _svg(line: Sequence[Dot], failed: set[int], span: float, change: int | None, bad: bool) -> Iterator[str]:
    """The line, broken where a night failed; a short bar at the edge where it is cut off."""
    yield f'<svg class="spark" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">'
    if change is not None:
        yield f'<path class="change{" bad" if bad else ""}" d="M{change},0V{HEIGHT}"/>'
    middle, path, before = HEIGHT / 2, "", -1
    for x, off in line:
        broken = before < 0 or any(before < one < x for one in failed)
        down = middle - (middle - EDGE) * max(-1.0, min(1.0, off / span))
        path += f"{'M' if broken else 'L'}{x},{down:.1f}" + ("h1" if broken else "")
        before = x
    yield f'<path d="{path}"/>'
    if cut := "".join(f"M{x - 1},{1 if off > 0 else HEIGHT - 1}h2" for x, off in line if abs(off) > span):
        yield f'<path class="cut" d="{cut}"/>'
    yield "</svg>"
