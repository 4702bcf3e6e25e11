"""Where what a lab's result depends on changed within a run: the way between its cores, and their clocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from .sample import Conditions, Sample

ALIKE = 1.5
"""Round trips that differ by no more than this factor belong to the same way; its noise is a fifth of that."""
LASTS = 3
"""Readings in a row that make a change: a single one may have been disturbed."""
SAME_CLOCK, CLOCK_LASTS = 1.03, 10
"""ALIKE and LASTS for clocks. Load from elsewhere moves them to and fro within seconds: that is no change yet."""
SETTLED = 9
"""The level of a run's begin is the median of so many readings, of which single ones may have been disturbed."""
ROUND_TRIP = "round-trip"

Points = Sequence[tuple[float, float]]
"""Times of readings, and what was read."""


@dataclass(frozen=True)
class ConditionChange:
    """A lasting change between two readings. what: ROUND_TRIP, or the role of the core whose clock changed."""

    what: str
    begin_s: float
    end_s: float
    before: float
    after: float

    @property
    def for_worse(self) -> bool:
        return (self.after > self.before) == (self.what == ROUND_TRIP)


def find_changes(samples: Sequence[Sample]) -> list[ConditionChange]:
    """Every lasting change of a run, in the order of time."""
    read = [(sample.t_s, sample.conditions) for sample in samples if sample.conditions is not None]
    roles = dict.fromkeys(role for _, conditions in read for role in conditions.cores)
    found = list(_changes(ROUND_TRIP, _round_trips(read), ALIKE, LASTS))
    for role in roles:
        cores = ((t_s, conditions.cores.get(role)) for t_s, conditions in read)
        clocks = [(t_s, core.clock_hz) for t_s, core in cores if core is not None and core.clock_hz is not None]
        found += _changes(role, clocks, SAME_CLOCK, CLOCK_LASTS)
    return sorted(found, key=lambda change: change.end_s)


def round_trip_ns(samples: Sequence[Sample], at_s: float | None) -> float | None:
    """The round trip at this time of the run, or None: over all of it; None where it was never measured."""
    points = _round_trips([(sample.t_s, sample.conditions) for sample in samples if sample.conditions is not None])
    if not points:
        return None
    changes = list(_changes(ROUND_TRIP, points, ALIKE, LASTS)) if at_s is not None else []
    first = max((change.end_s for change in changes if change.begin_s < (at_s or 0.0)), default=0.0)
    last = min((change.begin_s for change in changes if change.begin_s >= (at_s or 0.0)), default=points[-1][0])
    return median(value for t_s, value in points if first <= t_s <= last)


def _round_trips(read: Sequence[tuple[float, Conditions]]) -> Points:
    return [(t_s, one.round_trip_ns) for t_s, one in read if one.round_trip_ns is not None]


def _changes(what: str, points: Points, factor: float, lasts: int) -> Iterator[ConditionChange]:
    values = [value for _, value in points]
    level, towards = median(values[:SETTLED]) if values else 0.0, 0
    for i, value in enumerate(values):
        side = (value > factor * level) - (value * factor < level)
        towards = side if side * towards <= 0 else towards + side
        if abs(towards) == lasts <= i:
            first, before = i - lasts + 1, level
            level, towards = median(values[first : i + 1]), 0
            yield ConditionChange(what, points[first - 1][0], points[first][0], before, level)
