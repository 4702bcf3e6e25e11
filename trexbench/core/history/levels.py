"""A figure's levels over its nights: which one is usual, and each change as an event with a beginning and an end. Pure.

The usual level is the best one that no known change explains. Nights at it, before a loss and after its recovery, are
what later nights are compared with, and their scatter is the figure's noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import median

from .detect import BASELINE, FIRST_NIGHTS, MEDIAN_ERROR, LevelChange, Shape, find_changes, is_far, noise_of
from .known import Known, find_note
from .series import FigureSeries

MOST_MORE = 3
"""A night is suspicious if at most so many more like it make it a change."""


class Kind(str, Enum):
    """A kind of finding.

    recovery: the end of a regression; suspicion: one night, which more like it make a change; known: a change that
    somebody acknowledged; insufficient: too few nights to judge.
    """

    REGRESSION = "regression"
    SUSPICION = "suspicion"
    RECOVERY = "recovery"
    IMPROVEMENT = "improvement"
    KNOWN = "known"
    INSUFFICIENT = "insufficient"


@dataclass(frozen=True)
class Usual:
    """The nights of a figure's last stable level before the latest one, oldest first; BASELINE at most.

    left: the night in which a loss that stands began.
    """

    nights: tuple[str, ...]
    values: tuple[float, ...]
    left: str | None = None

    @property
    def level(self) -> float:
        return median(self.values)

    @property
    def noise(self) -> float | None:
        """The standard deviation of a night, in the figure's unit; None where too few nights tell it."""
        return noise_of(self.values)

    def before(self, night: str) -> Usual:
        """The nights before this one."""
        count = sum(one < night for one in self.nights)
        return replace(self, nights=self.nights[:count], values=self.values[:count])


@dataclass(frozen=True)
class Event:
    """A change of level. before, after: levels; begin, start, end: indexes of the first night before and after the
    change, and of the next level's.

    note: of the acknowledgement. loss: the regression that ended, of a recovery; the last one to this level, of a
    regression that is its relapse. more: so many nights like the last one make a suspicion a change.
    """

    kind: Kind
    change: LevelChange
    before: float
    after: float
    begin: int
    start: int
    end: int
    note: str | None = None
    loss: Event | None = None
    more: int = 0


@dataclass(frozen=True)
class Course:
    """A figure's events. standing: the regressions among them that have not ended."""

    events: tuple[Event, ...]
    standing: tuple[Event, ...]
    usual: Usual


def follow(series: FigureSeries, known: Sequence[Known] = ()) -> Course:
    """The course of a figure that has nights enough to be judged."""
    points = series.points
    values = [point.value for point in points]
    changes = find_changes(values, series.smallest)
    places = [change.at for change in changes]
    walk = _Walk(series, places, known, changes[0].before if changes else 0.0)
    # A drift has no edge: its first nights are those before it.
    steps = not changes or changes[0].shape is Shape.STEP
    walk.usual = list(range((places[0] if changes else len(points)) if steps else places[0] + FIRST_NIGHTS))
    for change, begin, end in zip(changes, [0, *places], [*places[1:], len(points)], strict=False):
        walk.take(change, begin, max(end, change.at + 1))  # a drift's first night may be that of the step before
    left = points[walk.standing[0].start].night if walk.standing else None
    nights = [points[at] for at in walk.usual if at < len(points) - 1 or walk.usual == [at]][-BASELINE:]
    usual = Usual(tuple(point.night for point in nights), tuple(point.value for point in nights), left)
    suspicion = _suspect(series, changes, walk)
    events = (*walk.events, *walk.standing, *([suspicion] if suspicion else []))
    return Course(events, tuple(walk.standing), usual)


class _Walk:
    """Goes from change to change. events: without the regressions that stand, and those that ended (lost).

    usual: indexes of the nights at the reference level.
    """

    def __init__(self, series: FigureSeries, places: list[int], known: Sequence[Known], reference: float) -> None:
        self.series, self.places, self.reference = series, places, reference
        self.known = [one for one in known if one.is_about(series.cell, series.metric.name)]
        self.events: list[Event] = []
        self.standing: list[Event] = []
        self.lost: list[Event] = []
        self.usual: list[int] = []

    def gain(self, now: float, before: float) -> float:
        return now - before if self.series.metric.better == "higher" else before - now

    def take(self, change: LevelChange, begin: int, end: int) -> None:
        """Say what this change, and the level that it leads to, are. begin: of the level before; end: of this one."""
        series, points = self.series, self.series.points
        first = change.at if change.shape is Shape.STEP else max(change.at, change.told - FIRST_NIGHTS)
        nights = range(min(first, end - 1), end)
        now = median(points[at].value for at in nights)
        enough = float(series.smallest.of(self.reference))
        # the median of a return's first nights may be short of the level by chance
        returns = (change.after > change.before) is (series.metric.better == "higher")
        chance = MEDIAN_ERROR * change.noise / len(nights) ** 0.5
        event = Event(Kind.REGRESSION, change, self.reference, now, begin, change.at, end)
        note = find_note(self.known, [point.night for point in points], self.places, change.at)
        if note is not None:
            self._settle(replace(event, kind=Kind.KNOWN, note=note), nights)
        elif self.gain(now, self.reference) <= -enough - chance * returns:
            self._lose(event, enough + chance)
        elif self.gain(now, self.reference) >= enough:
            bounds = [point.bound for point in points[: change.at]][-FIRST_NIGHTS:]
            proven = 2 * sum(bounds) <= len(bounds)  # the DUT may have carried more than a bound
            self._settle(replace(event, kind=Kind.IMPROVEMENT) if proven else None, nights)
        else:
            self._recover(event, 0)
            self.usual += nights

    def _settle(self, event: Event | None, nights: Sequence[int]) -> None:
        """Take these nights for the usual level."""
        self.events += [event] if event else []
        self.lost += self.standing
        self.standing, self.usual = [], list(nights)
        self.reference = median(self.series.points[at].value for at in nights)

    def _lose(self, event: Event, enough: float) -> None:
        """Add a loss, or take back in part those that stand."""
        kept = [one for one in self.standing if self.gain(event.after, one.before) <= -enough]
        if len(kept) < len(self.standing):
            self._recover(event, len(kept))
        last = self.standing[-1] if self.standing else None
        slide = last is not None and {last.change.shape, event.change.shape} == {Shape.DRIFT}
        if last is None or (not slide and self.gain(event.after, last.after) <= -enough):
            level = last.after if last else self.reference
            again = (one for one in reversed(self.lost) if abs(one.after - event.after) < enough)
            self.standing.append(replace(event, before=level, loss=next(again, None)))
        else:
            self.standing[-1] = replace(last, after=event.after, end=event.end)

    def _recover(self, event: Event, kept: int) -> None:
        """End the regressions but the first ``kept``."""
        ended, self.standing = self.standing[kept:], self.standing[:kept]
        self.lost += ended
        if ended:
            first = replace(ended[0], after=ended[-1].after, end=event.start)
            self.events.append(replace(event, kind=Kind.RECOVERY, before=first.after, loss=first))


def _suspect(series: FigureSeries, changes: Sequence[LevelChange], walk: _Walk) -> Event | None:
    """The last night, if it is far from its level and a few more like it would be a change."""
    points = series.points
    values, last = [point.value for point in points], len(points) - 1
    start = changes[-1].at if changes else 0
    if start == last or (changes and changes[-1].told > last):
        return None
    # A short level borrows the noise of the usual one.
    level = median(values[start:last])
    around = values[start:last]
    if len(around) < FIRST_NIGHTS:
        around += [values[at] - walk.reference + level for at in walk.usual if at < start]
    least = float(series.smallest.of(level))
    if not is_far(values[last], around, least):
        return None
    for more in range(1, MOST_MORE + 1):
        further = find_changes([*values, *[values[last]] * more], series.smallest)
        if len(further) > len(changes):
            change = replace(further[len(changes)], at=last)
            event = Event(Kind.SUSPICION, change, level, values[last], start, last, last + 1, more=more)
            lost = walk.lost if walk.gain(values[last], level) < 0 else []
            again = next((one for one in reversed(lost) if abs(one.after - values[last]) < least), None)
            ended = next((one for one in walk.standing if walk.gain(values[last], one.before) > -least), None)
            return replace(event, loss=ended or again)
    return None
