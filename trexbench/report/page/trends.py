"""Cells over time: all figures of all runs, nights that failed, and changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from statistics import median

from ...core.history.night import Night, State
from ...core.history.rows import METRICS, Cell, Metric, RunRow, by_given_rate, cells_of
from ...core.history.series import like_the_last
from ..words import status_words
from .grid import cell_of, reason_of

NEEDED_FOR_NOISE = 5
"""Runs; fewer do not tell a cell's noise."""
NORMAL_MAD = 0.6745
"""The median absolute deviation of normal values, in standard deviations."""


@dataclass(frozen=True)
class Change:
    """A change that was found in a cell's history. at: the first run after it (``started``), or its night.

    before, after: levels, in the metric's unit; noise: a night's standard deviation. bad: for the worse. text: the
    finding in a sentence; reasons: what explains it. note: of the acknowledgement, None: there is none.
    """

    cell: Cell
    metric: str
    at: str
    text: str
    bad: bool
    before: float | None = None
    after: float | None = None
    note: str | None = None
    reasons: tuple[str, ...] = ()
    noise: float = 0.0


@dataclass(frozen=True)
class Usual:
    """A figure's usual level, and the noise of a night as a standard deviation, None: unknown; in the metric's unit."""

    level: float
    noise: float | None


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
    """One cell's history: runs under the last one's conditions, oldest first. failed: when and why it has no figure."""

    cell: Cell
    runs: tuple[RunRow, ...]
    failed: tuple[tuple[str, str], ...]
    changes: tuple[Change, ...]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of which any run has a figure."""
        return tuple(metric for metric in METRICS if any(metric.of(row) is not None for row in self.runs))

    def values(self, metric: Metric) -> list[tuple[RunRow, float]]:
        return [(row, value) for row in self.runs if (value := metric.of(row)) is not None]

    def instants(self) -> list[str]:
        """The runs' places on the time axis."""
        return [place_of(row) for row in self.runs]

    def instant_of_change(self, change: Change) -> str:
        return max((place_of(row) for row in self.runs if row.started == change.at), default=change.at)

    def middle(self, metric: Metric) -> float | None:
        known = [value for _, value in self.values(metric)]
        return median(known) if known else None

    def change_of(self, metric: Metric) -> Change | None:
        return next((change for change in self.changes if change.metric == metric.name), None)

    def usual(self, metric: Metric) -> Usual | None:
        """The level before its change, or else of all its runs; None where the metric has no figure."""
        known = [value for _, value in self.values(metric)]
        if not known:
            return None
        change = self.change_of(metric)
        level = median(known) if change is None or change.before is None else change.before
        return Usual(level, change.noise if change is not None and change.noise else _noise(known))


def _noise(values: Sequence[float]) -> float | None:
    """From the differences of successive nights, on which a change or a drift has little effect."""
    if len(values) < NEEDED_FOR_NOISE:
        return None
    return median(abs(b - a) for a, b in pairwise(values)) / (NORMAL_MAD * 2**0.5)


def find_trends(rows: Sequence[RunRow], nights: Iterable[Night], changes: Sequence[Change]) -> tuple[Trend, ...]:
    """In the order in which cells first appeared, given rates ascending; one that only ever failed has no runs.

    A night without cells, whose suite could not be read, counts as failed for all cells of that suite.
    """
    nights = list(nights)
    runs = cells_of(rows)
    failed: dict[Cell, dict[str, str]] = {}
    counted = {attempt.path for night in nights for cell in night.cells for attempt in cell.attempts}
    for night in nights:
        if not night.cells:
            for cell in {row.cell for row in rows if row.suite == night.suite}:
                failed.setdefault(cell, {})[instant_of(night.started, night.night)] = night.error or "not run"
        for record in night.cells:
            if record.state is not State.DONE:
                at = record.attempts[-1].started if record.attempts else night.started
                failed.setdefault(cell_of(record, night), {})[instant_of(at, night.night)] = reason_of(record, night)
    for row in rows:
        if not row.complete and row.path not in counted:
            failed.setdefault(row.cell, {})[instant_of(row.started, row.night)] = f"the run is {status_words(row)}"
    order = [*(row.cell for row in rows), *failed]
    return tuple(
        Trend(
            cell,
            tuple(like_the_last(runs.get(cell, ()))),
            tuple(sorted(failed.get(cell, {}).items())),
            tuple(change for change in changes if change.cell == cell),
        )
        for cell in by_given_rate(order)
    )
