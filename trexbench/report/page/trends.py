"""Cells over time: figures of all runs, nights that failed, and changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

from ...core.history.cell import Cell, by_given_rate
from ...core.history.finding import Finding
from ...core.history.levels import Usual
from ...core.history.night import CellState, Night
from ...core.history.rows import METRICS, Figure, Metric, RunRow, cells_of
from ...core.history.series import like_the_last
from ...core.history.testers import FigureRatio, histories_of
from ...core.means import bounded_median
from ..words import status_words
from .grid import reason_of


def instant_of(started: str, night: str | None) -> str:
    """Place on the time axis: the night's date, or the start of a run outside nights."""
    try:
        return date.fromisoformat(night).isoformat() if night else started
    except ValueError:
        return started


def place_of(row: RunRow) -> str:
    """Place of a run on the time axis."""
    return instant_of(row.started, row.night)


@dataclass(frozen=True)
class Trend:
    """One cell's history."""

    cell: Cell
    runs: tuple[RunRow, ...]
    """Runs that are judged, and those by hand under the same conditions, oldest first."""
    failed: tuple[tuple[str, str], ...]
    """Places on the time axis without a figure, each with the reason."""
    changes: tuple[Finding, ...]
    levels: Mapping[tuple[Cell, str], Usual] = field(default_factory=dict)
    """Last stable levels, by cell and metric."""

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics of which any run has a figure."""
        return tuple(metric for metric in METRICS.values() if any(metric.of(row) is not None for row in self.runs))

    def values(self, metric: Metric) -> list[tuple[RunRow, float]]:
        return [(row, value) for row in self.runs if (value := metric.of(row)) is not None]

    @cached_property
    def instants(self) -> Mapping[str, str]:
        """Document of a run -> place on the time axis."""
        return {row.path: place_of(row) for row in self.runs}

    def instant_of_change(self, change: Finding) -> str:
        """Place of the first run since the change on the time axis; the change's night if there is none."""
        own = () if change.elsewhere else self.instants.values()
        return min((place for place in own if place >= change.since), default=change.since)

    def middle(self, metric: Metric) -> Figure | None:
        """Median of all runs; a lower bound if the bounds among them could raise it."""
        if not (known := self.values(metric)):
            return None
        value, at_least = bounded_median((value, metric.bounded and row.at_least) for row, value in known)
        return Figure(value, at_least=at_least)

    def changes_of(self, metric: Metric) -> tuple[Finding, ...]:
        """Changes of the metric, oldest first."""
        own = (change for change in self.changes if change.metric == metric)
        return tuple(sorted(own, key=self.instant_of_change))

    def steps_of(self, metric: Metric) -> tuple[Finding, ...]:
        """Changes of the metric that the runs show."""
        return tuple(change for change in self.changes_of(metric) if not change.elsewhere)

    def usual(self, metric: Metric) -> Usual | None:
        """Last stable level, else that of all nights, too few for changes; None if the metric has no figure."""
        if level := self.levels.get((self.cell, metric.name)):
            return level
        known = self.values(metric)
        nights, values = tuple(self.instants[row.path] for row, _ in known), tuple(value for _, value in known)
        return Usual(nights, values) if known else None


def find_trends(
    rows: Sequence[RunRow],
    nights: Iterable[Night],
    changes: Sequence[Finding],
    levels: Mapping[tuple[Cell, str], Usual] | None = None,
    ratios: Sequence[FigureRatio] = (),
) -> tuple[Trend, ...]:
    """Find the histories of all cells in the order of their first appearance, given rates ascending.

    A cell that always failed has no runs. A night without cells, whose suite could not be read, counts as failed for
    all cells of that suite. ratios: differences between testers.
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
            tuple(change for change in changes if change.cell == cell),
            levels or {},
        )
        for cell in by_given_rate([*(row.cell for row in rows), *failed])
    )


def _history_of(rows: Sequence[RunRow], ratios: Sequence[FigureRatio]) -> tuple[RunRow, ...]:
    if not rows:
        return ()
    judged = like_the_last(histories_of(rows, ratios)[0].rows)
    by_hand = [row for row in rows if not row.night] if judged[-1].night else []
    if not by_hand:
        return tuple(judged)
    return tuple(sorted([*judged, *like_the_last([*by_hand, judged[-1]])[:-1]], key=lambda row: row.started))
