"""Cells over time: all figures of all runs, nights that failed, and changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from statistics import median

from ...core.history.cell import Cell, by_given_rate
from ...core.history.levels import Usual
from ...core.history.night import CellState, Night
from ...core.history.regression import Finding
from ...core.history.rows import METRICS, Metric, RunRow, cells_of
from ...core.history.series import like_the_last
from ...core.history.testers import FigureRatio, histories_of
from ..words import status_words
from .grid import reason_of


@dataclass(frozen=True)
class TrendChange:
    """A finding at its place in the cell's history."""

    finding: Finding
    """The finding; in place of a recovery, also the regression that it ended."""
    at: str
    """The first run after the change (``started``), or its night."""
    text: str
    """The finding in a sentence."""
    ended: bool = False
    """It has recovered since."""


def instant_of(started: str, night: str | None) -> str:
    """A place on the time axis: the date of the night, or the start of a run that belongs to none."""
    try:
        return date.fromisoformat(night).isoformat() if night else started
    except ValueError:
        return started


def place_of(row: RunRow) -> str:
    """A run's place on the time axis."""
    return instant_of(row.started, row.night)


@dataclass(frozen=True)
class Trend:
    """One cell's history: the runs that are judged, and those by hand like them, oldest first.

    failed: when and why it has no figure. levels: last stable ones, by cell and metric.
    """

    cell: Cell
    runs: tuple[RunRow, ...]
    failed: tuple[tuple[str, str], ...]
    changes: tuple[TrendChange, ...]
    levels: Mapping[tuple[Cell, str], Usual] = field(default_factory=dict)

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of which any run has a figure."""
        return tuple(metric for metric in METRICS.values() if any(metric.of(row) is not None for row in self.runs))

    def values(self, metric: Metric) -> list[tuple[RunRow, float]]:
        return [(row, value) for row in self.runs if (value := metric.of(row)) is not None]

    @cached_property
    def instants(self) -> Mapping[str, str]:
        """The runs' places on the time axis, by document."""
        return {row.path: place_of(row) for row in self.runs}

    def instant_of_change(self, change: TrendChange) -> str:
        at = (self.instants[row.path] for row in self.runs if row.started == change.at)
        return max(at, default=instant_of(change.at, change.finding.since))

    def middle(self, metric: Metric) -> float | None:
        known = [value for _, value in self.values(metric)]
        return median(known) if known else None

    def changes_of(self, metric: Metric) -> tuple[TrendChange, ...]:
        """The metric's changes, oldest first."""
        own = (change for change in self.changes if change.finding.metric.name == metric.name)
        return tuple(sorted(own, key=self.instant_of_change))

    def steps_of(self, metric: Metric) -> tuple[TrendChange, ...]:
        """The changes that its runs show."""
        return tuple(change for change in self.changes_of(metric) if not change.finding.elsewhere)

    def usual(self, metric: Metric) -> Usual | None:
        """The last stable level, else that of the nights before a change; None where the metric has no figure."""
        if level := self.levels.get((self.cell, metric.name)):
            return level
        known, changes = self.values(metric), self.steps_of(metric)
        known = [one for one in known if not changes or one[0].started < changes[0].at] or known
        nights, values = tuple(self.instants[row.path] for row, _ in known), tuple(value for _, value in known)
        return Usual(nights, values) if known else None


def find_trends(
    rows: Sequence[RunRow],
    nights: Iterable[Night],
    changes: Sequence[TrendChange],
    levels: Mapping[tuple[Cell, str], Usual] | None = None,
    ratios: Sequence[FigureRatio] = (),
) -> tuple[Trend, ...]:
    """In the order in which cells first appeared, given rates ascending; one that only ever failed has no runs.

    A night without cells, whose suite could not be read, counts as failed for all cells of that suite. ratios: by how
    much testers differ.
    """
    runs, counted = cells_of(rows), set[str | None]()
    failed: dict[Cell, dict[str, str]] = {}
    for night in nights:
        if not night.cells:
            for cell in {row.cell for row in rows if row.suite == night.suite}:
                failed.setdefault(cell, {})[instant_of(night.started, night.night)] = night.error or "not run"
        for cell, record in zip(night.of, night.cells, strict=True):
            counted |= {attempt.path for attempt in record.attempts}
            if record.state is not CellState.DONE:
                at = record.attempts[-1].started if record.attempts else night.started
                failed.setdefault(cell, {})[instant_of(at, night.night)] = reason_of(record, night)
    for row in rows:
        if not row.complete and row.path not in counted:
            failed.setdefault(row.cell, {})[place_of(row)] = f"the run is {status_words(row)}"
    return tuple(
        Trend(
            cell,
            _history_of(runs.get(cell, ()), ratios),
            tuple(sorted(failed.get(cell, {}).items())),
            tuple(change for change in changes if change.finding.cell == cell),
            levels or {},
        )
        for cell in by_given_rate([*(row.cell for row in rows), *failed])
    )


def _history_of(rows: Sequence[RunRow], ratios: Sequence[FigureRatio]) -> tuple[RunRow, ...]:
    """The runs that are judged, and those by hand under the same conditions."""
    if not rows:
        return ()
    judged = like_the_last(histories_of(rows, ratios)[0].rows)
    by_hand = [row for row in rows if not row.night] if judged[-1].night else []
    if not by_hand:
        return tuple(judged)
    return tuple(sorted([*judged, *like_the_last([*by_hand, judged[-1]])[:-1]], key=lambda row: row.started))
