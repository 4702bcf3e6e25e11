"""The page's cards: each event with its small trend, what to type next, and where its documents are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote

from ...core.history.regression import Finding
from ...core.history.rows import RunRow
from ...core.history.series import night_of
from ..commands import acknowledge, compare, doctor, measure, run_again, show
from ..events import NightEvent
from .card_trend import draw_trend, span_of
from .report import Report


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
    firsts = [event.group.first for event in report.events if event.group is not None]
    span = span_of(firsts)
    return [_card(report, event, span) for event in report.events]


def _card(report: Report, event: NightEvent, span: float) -> Card:
    if event.group is None:
        return Card(event, "", tuple(_after_failure(report, event)), ())
    first = event.group.first
    before, latest = _runs_of(report, first)
    steps = [("see the latest run", show(latest, report.results))] if latest else []
    steps += [("compare before and now", compare(before, latest, report.results))] if before and latest else []
    again = measure(first.cell, latest.suite if latest else None, report.results)
    steps += [("measure this cell again", again)] if again else []
    if first.worse and first.note is None:
        steps += [("or take it as known", command) for command in acknowledge(event.group, report.results)]
    named = (("document before", before), ("latest document", latest))
    known = [(words, row) for words, row in named if row is not None and report.below is not None]
    documents = tuple((words, f"./{report.below}{quote(row.path)}") for words, row in known)
    return Card(event, draw_trend(report, first, span), tuple(steps), documents)


def _runs_of(report: Report, finding: Finding) -> tuple[RunRow | None, RunRow | None]:
    """The cell's last complete run before the change, and its latest one since."""
    rows = [row for row in report.rows if row.complete and row.cell == finding.cell]
    since = finding.since or ""
    before = [row for row in rows if night_of(row) < since]
    return before[-1] if before else None, rows[-1] if rows and night_of(rows[-1]) >= since else None


def _after_failure(report: Report, event: NightEvent) -> Iterator[tuple[str, str]]:
    if not event.cells:
        yield "run it again", run_again(event.suite, report.results)
    found = (
        cell
        for night in reversed(report.nights)
        for record, cell in zip(night.cells, night.of, strict=True)
        if night.suite == event.suite and str(record) in event.cells[:1]
    )
    for cell in islice(found, 1):
        if not cell.simulated:
            yield "check the bench", doctor(cell)
        if again := measure(cell, event.suite, report.results):
            yield "measure the first of them again" if len(event.cells) > 1 else "measure it again", again
