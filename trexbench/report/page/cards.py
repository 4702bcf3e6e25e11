"""The page's cards: each event with its small trend, what to type next, and where its documents are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from ...core.history.series import night_of
from ..commands import acknowledge, compare, doctor, run_again, show
from ..events import NightEvent
from .report import Report
from .sparks import draw_trend, span_of


@dataclass(frozen=True)
class Card:
    """An event as the page shows it."""

    event: NightEvent
    trend: str
    """SVG; empty where there is nothing to draw."""
    steps: tuple[tuple[str, str], ...]
    """Commands to type next, each below words that say what for."""
    documents: tuple[tuple[str, str], ...]
    """Names and addresses of the run before and of the latest, seen from the page."""


def cards_of(report: Report) -> list[Card]:
    """A card for each event, in their order."""
    span = span_of([event.group.first for event in report.events if event.group is not None])
    return [_card(report, event, span) for event in report.events]


def _card(report: Report, event: NightEvent, span: float) -> Card:
    if event.group is None:
        return Card(event, "", tuple(_after_failure(report, event)), ())
    first = event.group.first
    rows, since = [row for row in report.rows if row.complete and row.cell == first.cell], first.since or ""
    before = next((row for row in reversed(rows) if night_of(row) < since), None)
    latest = rows[-1] if rows and night_of(rows[-1]) >= since else None
    steps = [("see the latest run", show(latest, report.results))] if latest else []
    steps += [("compare before and now", compare(before, latest, report.results))] if before and latest else []
    if rows and (suite := rows[-1].suite):
        steps.append(("measure this cell again", run_again(suite, report.results, first.cell)))
    if first.worse and first.note is None:
        steps += [("or take it as known", command) for command in acknowledge(event.group, report.results)]
    named = (("document before", before), ("latest document", latest))
    known = [(words, row) for words, row in named if row is not None and report.below is not None]
    documents = tuple((words, f"./{report.below}{quote(row.path)}") for words, row in known)
    return Card(event, draw_trend(report.trends, first, span), tuple(steps), documents)


def _after_failure(report: Report, event: NightEvent) -> Iterator[tuple[str, str]]:
    if not event.cells:
        yield "run it again", run_again(event.suite, report.results)
    of_suite = (night for night in reversed(report.nights) if night.suite == event.suite)
    pairs = (pair for night in of_suite for pair in zip(night.cells, night.of, strict=True))
    cell = next((cell for record, cell in pairs if str(record) in event.cells[:1]), None)
    if cell is None:
        return
    if not cell.simulated:
        yield "check the bench", doctor(cell)
    what = "measure the first of them again" if len(event.cells) > 1 else "measure it again"
    yield what, run_again(event.suite, report.results, cell)
