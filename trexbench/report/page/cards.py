"""The page's cards: each event with its small trend, commands to type next, and links to its documents.

Trends are SVG that holds numbers only; all have one scale, so that noise does not look like a change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ...core.history.finding import Finding
from ...core.history.levels import Usual
from ...core.history.series import judged_of, night_of
from ..commands import acknowledge, compare, doctor, run_again, show
from ..events import NightEvent
from .report import Report
from .trends import Trend

WIDTH, HEIGHT, EDGE = 360, 100, 8
"""Size of a trend in its own units; the page stretches it to the card."""
LEAST, MOST = 0.05, 0.3
"""Bounds of the trends' vertical span, as a share of the usual level to each side."""
NIGHTS, BEFORE = 60, 20
"""Nights drawn on a card; if the change is older, all since this many before it."""
DEVIATIONS, THINNEST = 2, 0.002
"""Half the width of the band of noise in standard deviations of a night, and its minimum as a share."""


@dataclass(frozen=True)
class Card:
    """An event, and what the page shows with it."""

    event: NightEvent
    trend: str
    """SVG; empty where there is nothing to draw."""
    steps: tuple[tuple[str, str], ...]
    """Commands to type next, each with its purpose."""
    documents: tuple[tuple[str, str], ...]
    """Names and relative addresses of the run before and of the latest."""


def cards_of(report: Report) -> list[Card]:
    """Make a card for each event, in their order."""
    events = [event.group.first for event in report.events if event.group is not None]
    # One span for all cards, so that a small change looks small beside a large one.
    span = min(max([LEAST, *(1.2 * abs(share) for one in events for share in _reach(report.trends, one))]), MOST)
    return [_card(report, event, span) for event in report.events]


def _reach(trends: Sequence[Trend], finding: Finding) -> Iterator[float]:
    """Yield the levels around the change and the latest figure, as differences from the usual level in its shares."""
    trend, usual = _trend_of(trends, finding)
    if trend is not None and usual is not None and usual.level:
        values = finding.before, finding.after, *(value for _, value in trend.values(finding.metric)[-1:])
        yield from (value / usual.level - 1 for value in values)


def _trend_of(trends: Sequence[Trend], finding: Finding) -> tuple[Trend | None, Usual | None]:
    trend = next((one for one in trends if one.cell == finding.cell), None)
    return trend, None if trend is None else trend.usual(finding.metric)


def _card(report: Report, event: NightEvent, span: float) -> Card:
    if event.group is None:
        return Card(event, "", tuple(_after_failure(report, event)), ())
    first = event.group.first
    rows = sorted(judged_of([row for row in report.rows if row.complete and row.cell == first.cell]), key=night_of)
    since = first.since
    before = next((row for row in reversed(rows) if night_of(row) < since), None)
    latest = rows[-1] if rows and night_of(rows[-1]) >= since else None
    steps = [("see the latest run", show(latest, report.results))] if latest else []
    steps += [("compare before and now", compare(before, latest, report.results))] if before and latest else []
    if rows and (suite := rows[-1].suite):
        steps.append(("measure this cell again", run_again(suite, report.results, first.cell, bool(rows[-1].tester))))
    if first.worse and first.note is None:
        steps += [("or take it as known", command) for command in acknowledge(event.group, report.results)]
    named = (("document before", before), ("latest document", latest))
    known = [(words, row) for words, row in named if row is not None and report.below is not None]
    documents = tuple((words, f"./{report.below}{quote(row.path)}") for words, row in known)
    return Card(event, draw_trend(report.trends, first, span), tuple(steps), documents)


def _after_failure(report: Report, event: NightEvent) -> Iterator[tuple[str, str]]:
    by_fleet = any(row.tester for row in report.rows if row.suite == event.suite)
    if not event.cells:
        yield "run it again", run_again(event.suite, report.results, by_fleet=by_fleet)
    of_suite = (night for night in reversed(report.nights) if night.suite == event.suite)
    pairs = (pair for night in of_suite for pair in zip(night.cells, night.of, strict=True))
    cell = next((cell for record, cell in pairs if str(record) in event.cells[:1]), None)
    if cell is None:
        return
    if not cell.simulated:
        yield "check the bench", doctor(cell)
    what = "measure the first of them again" if len(event.cells) > 1 else "measure it again"
    yield what, run_again(event.suite, report.results, cell, by_fleet)


def draw_trend(trends: Sequence[Trend], finding: Finding, span: float) -> str:
    """Draw a finding's figure over the nights; nothing for a single night, or a usual level of 0."""
    trend, usual = _trend_of(trends, finding)
    if trend is None or usual is None or not usual.level:
        return ""
    judged, values = {row.path for row in judged_of(trend.runs)}, trend.values(finding.metric)
    shares = {trend.instants[row.path]: value / usual.level - 1 for row, value in values if row.path in judged}
    nights = sorted(shares)
    lost = [finding.loss.since] if finding.loss is not None and not finding.worse else []
    changes = [bisect_left(nights, one) for one in (*lost, finding.since)]
    first = max(0, min(len(nights) - NIGHTS, *(at - BEFORE for at in changes), len(nights)))
    points = [shares[night] for night in nights[first:]]
    if len(points) < 2:
        return ""
    noise = max(DEVIATIONS * (usual.noise or 0.0) / usual.level, THINNEST)
    return "".join(_draw(points, [at - first for at in changes if at > first], span, noise, finding.worse))


def _draw(points: Sequence[float], changes: Sequence[int], span: float, noise: float, worse: bool) -> Iterator[str]:
    def down(share: float) -> float:
        return HEIGHT / 2 - (HEIGHT / 2 - EDGE) * max(-1.0, min(1.0, share / span))

    def right(at: float) -> float:
        return EDGE + (WIDTH - 2 * EDGE) * at / max(1, len(points) - 1)

    top, bottom = down(noise), down(-noise)
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none"'
    yield f'<svg class="trend" {box} aria-hidden="true">'
    yield f'<rect class="noise" x="0" y="{top:.1f}" width="{WIDTH}" height="{bottom - top:.1f}"/>'
    yield f'<path class="usual" d="M0,{down(0.0):.1f}H{WIDTH}"/>'
    for at in changes:
        yield f'<path class="change" d="M{right(at - 0.5):.1f},0V{HEIGHT}"/>'
    line = "L".join(f"{right(at):.1f},{down(share):.1f}" for at, share in enumerate(points))
    yield f'<path class="line" d="M{line}"/>'
    place = f"M{right(len(points) - 1):.1f},{down(points[-1]):.1f}h0"
    yield f'<path class="now {"bad" if worse else "good"}" d="{place}"/>'
    yield "</svg>"
