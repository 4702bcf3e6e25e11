"""The small trend of a card: a figure in shares of its usual level, its noise, and where it changed. SVG of numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from ...core.history.regression import Finding
from .report import Report
from .sparks import LEAST, MOST
from .trends import Trend

WIDTH, HEIGHT, EDGE = 360, 100, 8
"""Dimensions in its own units; the page stretches it to the card."""
NIGHTS, BEFORE = 60, 20
"""So many nights are drawn; more where the change is older, then with so many before it."""
DEVIATIONS, THINNEST = 2, 0.002
"""The half width of the band in deviations of a night, and at least, as a share."""


def span_of(findings: Sequence[Finding]) -> float:
    """The share at the upper and lower edge of all trends, so that a small change looks small beside a large one."""
    return min(max([LEAST, *(1.2 * abs(one.share) for one in findings if one.share is not None)]), MOST)


def draw_trend(report: Report, finding: Finding, span: float) -> str:
    """Draw the figure of a finding; nothing for a single night, or a usual level of 0."""
    trend = next((one for one in report.trends if one.cell == finding.cell), None)
    usual = None if trend is None else trend.usual(finding.metric)
    if trend is None or usual is None or not usual.level:
        return ""
    level, noise = usual.level, (usual.noise or 0.0) / abs(usual.level)
    shares = {trend.instants[row.path]: value / level - 1 for row, value in trend.values(finding.metric)}
    nights = sorted(shares)
    changes = [bisect_left(nights, one) for one in _changes(trend, finding)]
    first = max(0, min(len(nights) - NIGHTS, *(at - BEFORE for at in changes), len(nights)))
    points = [shares[night] for night in nights[first:]]
    if len(points) < 2:
        return ""
    return "".join(_svg(points, [at - first for at in changes if at > first], span, noise, finding.worse))


def _changes(trend: Trend, finding: Finding) -> Iterator[str]:
    """Nights at which the figure changed: of a recovery also that of the loss."""
    if finding.loss is not None and not finding.worse:
        yield finding.loss.first
    yield finding.since or ""


def _svg(points: Sequence[float], changes: Sequence[int], span: float, noise: float, worse: bool) -> Iterator[str]:
    def down(share: float) -> float:
        return HEIGHT / 2 - (HEIGHT / 2 - EDGE) * max(-1.0, min(1.0, share / span))

    def right(at: float) -> float:
        return EDGE + (WIDTH - 2 * EDGE) * at / max(1, len(points) - 1)

    half = max(DEVIATIONS * noise, THINNEST)
    top, bottom = down(half), down(-half)
    yield f'<svg class="trend" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
    yield f'<rect class="noise" x="0" y="{top:.1f}" width="{WIDTH}" height="{bottom - top:.1f}"/>'
    yield f'<path class="usual" d="M0,{down(0.0):.1f}H{WIDTH}"/>'
    for at in changes:
        yield f'<path class="change" d="M{right(at - 0.5):.1f},0V{HEIGHT}"/>'
    line = "L".join(f"{right(at):.1f},{down(share):.1f}" for at, share in enumerate(points))
    yield f'<path class="line" d="M{line}"/>'
    place = f"M{right(len(points) - 1):.1f},{down(points[-1]):.1f}h0"
    yield f'<path class="now {"bad" if worse else "good"}" d="{place}"/>'
    yield "</svg>"
