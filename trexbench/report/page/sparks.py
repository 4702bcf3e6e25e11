"""Small trends as SVG, which holds numbers only: in tables, and on cards with the noise and where the figure changed.

All of a metric have one scale, so that noise does not look like a change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from ...core.history.regression import Finding
from ...core.history.rows import Metric
from .trends import Trend

WIDTH, HEIGHT, EDGE = 150, 26, 3
"""Dimensions of a sparkline, in pixels."""
LEAST, MOST = 0.05, 0.3
"""The share of its usual level that a cell may at least, and at most, be away from it before its line is cut off."""
CARD_WIDTH, CARD_HEIGHT, CARD_EDGE = 360, 100, 8
"""Dimensions of a card's trend in its own units; the page stretches it to the card."""
NIGHTS, BEFORE = 60, 20
"""So many nights are drawn on a card; more where the change is older, then with so many before it."""
DEVIATIONS, THINNEST = 2, 0.002
"""The half width of the noise in deviations of a night, and at least, as a share."""

Dot = tuple[int, float]
"""A pixel column, and the mean share by which its figures are off the usual level."""


def shares_of(trend: Trend, metric: Metric) -> list[tuple[str, float]]:
    """Each figure's place in time, and the share by which it is off the usual level; none without such a level."""
    usual = trend.usual(metric)
    if usual is None or not usual.level:
        return []
    return [(trend.instants[row.path], value / usual.level - 1) for row, value in trend.values(metric)]


def sparks(trends: Sequence[Trend], metrics: Sequence[Metric]) -> Callable[[Trend, Metric], str]:
    """Return what draws a trend's sparkline; nothing for a single night or a usual level of 0."""
    nights = sorted({one for trend in trends for one in (*trend.instants.values(), *(at for at, _ in trend.failed))})
    columns = {
        night: EDGE + round((WIDTH - 2 * EDGE) * at / max(1, len(nights) - 1)) for at, night in enumerate(nights)
    }

    def dots(trend: Trend, metric: Metric) -> list[Dot]:
        some = sorted((columns[night], share) for night, share in shares_of(trend, metric))
        groups = [(x, [share for _, share in group]) for x, group in groupby(some, key=lambda one: one[0])]
        return [(x, sum(group) / len(group)) for x, group in groups]

    lines = {(trend.cell, one.name): dots(trend, one) for one in metrics if one.bounded for trend in trends}
    spans: dict[str, float] = {}
    for (_, name), line in lines.items():
        spans[name] = max([spans.get(name, 0.0), *(abs(off) for _, off in line)])

    def draw(trend: Trend, metric: Metric) -> str:
        line = lines.get((trend.cell, metric.name), [])
        if len(line) < 2:
            return ""
        failed = {columns[night] for night, _ in trend.failed} - {x for x, _ in line}
        change = next(reversed(trend.changes_of(metric)), None)
        where = None if change is None else columns.get(trend.instant_of_change(change))
        bad = change is not None and change.finding.worse
        return "".join(_spark(line, failed, min(max(spans[metric.name], LEAST), MOST), where, bad))

    return draw


def _spark(line: Sequence[Dot], failed: set[int], span: float, change: int | None, bad: bool) -> Iterator[str]:
    """The line, broken where a night failed; a short bar at the edge where it is cut off."""
    yield f'<svg class="spark" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">'
    if change is not None:
        yield f'<path class="change{" bad" if bad else ""}" d="M{change},0V{HEIGHT}"/>'
    path, before = "", -1
    for x, off in line:
        broken = before < 0 or any(before < one < x for one in failed)
        path += f"{'M' if broken else 'L'}{x},{_down(off, span, HEIGHT, EDGE):.1f}" + ("h1" if broken else "")
        before = x
    yield f'<path d="{path}"/>'
    if cut := "".join(f"M{x - 1},{1 if off > 0 else HEIGHT - 1}h2" for x, off in line if abs(off) > span):
        yield f'<path class="cut" d="{cut}"/>'
    yield "</svg>"


def _down(share: float, span: float, height: int, edge: int) -> float:
    """The place of a share between the edges; span: the share at both of them."""
    return height / 2 - (height / 2 - edge) * max(-1.0, min(1.0, share / span))


def span_of(findings: Sequence[Finding]) -> float:
    """The share at the upper and lower edge of all cards, so that a small change looks small beside a large one."""
    return min(max([LEAST, *(1.2 * abs(one.share) for one in findings if one.share is not None)]), MOST)


def draw_trend(trends: Sequence[Trend], finding: Finding, span: float) -> str:
    """Draw the figure of a finding for its card; nothing for a single night, or a usual level of 0."""
    trend = next((one for one in trends if one.cell == finding.cell), None)
    usual = None if trend is None else trend.usual(finding.metric)
    if trend is None or usual is None:
        return ""
    shares = dict(shares_of(trend, finding.metric))
    nights = sorted(shares)
    lost = [finding.loss.first] if finding.loss is not None and not finding.worse else []
    changes = [bisect_left(nights, one) for one in (*lost, finding.since or "")]
    first = max(0, min(len(nights) - NIGHTS, *(at - BEFORE for at in changes), len(nights)))
    points = [shares[night] for night in nights[first:]]
    if len(points) < 2:
        return ""
    half = max(DEVIATIONS * (usual.noise or 0.0) / abs(usual.level), THINNEST)
    return "".join(_card(points, [at - first for at in changes if at > first], span, half, finding.worse))


def _card(points: Sequence[float], changes: Sequence[int], span: float, half: float, worse: bool) -> Iterator[str]:
    """half: of the noise, as a share."""

    def down(share: float) -> float:
        return _down(share, span, CARD_HEIGHT, CARD_EDGE)

    def right(at: float) -> float:
        return CARD_EDGE + (CARD_WIDTH - 2 * CARD_EDGE) * at / max(1, len(points) - 1)

    top, bottom = down(half), down(-half)
    box = f'viewBox="0 0 {CARD_WIDTH} {CARD_HEIGHT}" preserveAspectRatio="none"'
    yield f'<svg class="trend" {box} aria-hidden="true">'
    yield f'<rect class="noise" x="0" y="{top:.1f}" width="{CARD_WIDTH}" height="{bottom - top:.1f}"/>'
    yield f'<path class="usual" d="M0,{down(0.0):.1f}H{CARD_WIDTH}"/>'
    for at in changes:
        yield f'<path class="change" d="M{right(at - 0.5):.1f},0V{CARD_HEIGHT}"/>'
    line = "L".join(f"{right(at):.1f},{down(share):.1f}" for at, share in enumerate(points))
    yield f'<path class="line" d="M{line}"/>'
    place = f"M{right(len(points) - 1):.1f},{down(points[-1]):.1f}h0"
    yield f'<path class="now {"bad" if worse else "good"}" d="{place}"/>'
    yield "</svg>"
