"""Follow a figure's levels over its nights: which one is usual, and what each change was. Pure.

The usual level is the best one that no known change explains. Later nights are compared with the nights at it (before a
loss and after its recovery), whose scatter is the figure's noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from .detect import (
    BASELINE,
    FIRST_NIGHTS,
    LATELY,
    MEDIAN_ERROR,
    LevelChange,
    Shape,
    find_changes,
    is_far,
    nights_of_change,
    noise_of,
)
from .finding import Finding, Kind
from .known import Known, find_note
from .rows import Metric, RunRow
from .series import FigureSeries, Point, night_of, series_of

NEEDED_NIGHTS = FIRST_NIGHTS + 2
"""Fewest nights to find a change in: FIRST_NIGHTS show the usual level and its noise, two more that it changed."""


@dataclass(frozen=True)
class Usual:
    """The nights of a figure's last stable level before the latest one, oldest first; BASELINE at most."""

    nights: tuple[str, ...]
    values: tuple[float, ...]
    loss: Finding | None = None
    """The first loss from it that stands."""
    at_least: bool = False
    """It is a lower bound."""

    @property
    def level(self) -> float:
        return median(self.values) if self.loss is None else self.loss.before

    @property
    def noise(self) -> float | None:
        """A night's standard deviation, in the figure's unit; None if there are too few nights."""
        return noise_of(self.values)

    def before(self, night: str) -> Usual:
        count = sum(usual < night for usual in self.nights)
        loss = self.loss if self.loss is not None and self.loss.since <= night else None
        return replace(self, nights=self.nights[:count], values=self.values[:count], loss=loss)


def follow(series: FigureSeries, known: Sequence[Known] = ()) -> tuple[Sequence[Finding], Sequence[Finding], Usual]:
    """Return a figure's changes, the regressions among them that still stand, and the usual level.

    The figure needs NEEDED_NIGHTS.
    """
    points = series.points
    changes = find_changes([point.value for point in points], series.smallest)
    places = [change.at for change in changes]
    walk = _LevelWalk(series, changes, known)
    for change, begin, end in zip(changes, [0, *places], [*places[1:], len(points)], strict=False):
        walk.take(change, begin, end)
    nights = [points[at] for at in walk.usual if at < len(points) - 1 or walk.usual == [at]][-BASELINE:]
    loss = next(iter(walk.standing), None)
    values = tuple(point.value for point in nights)
    usual = Usual(tuple(point.night for point in nights), values, loss, _is_bound(nights))
    return [*walk.changes, *walk.standing, *_suspect(changes, walk)], walk.standing, usual


def _is_bound(nights: Sequence[Point]) -> bool:
    """Test whether the level of these nights is a lower bound."""
    return 2 * sum(point.bound for point in nights) > len(nights)


class _LevelWalk:
    """Classifies one change after another."""

    def __init__(self, series: FigureSeries, changes: Sequence[LevelChange], known: Sequence[Known]) -> None:
        self.series, self.points, self.places = series, series.points, [change.at for change in changes]
        self.known = [note for note in known if note.is_about(series.cell, series.metric.name)]
        self.changes: list[Finding] = []  # all but regressions
        self.standing: list[Finding] = []  # regressions that have not ended
        self.lost: list[Finding] = []  # regressions that have ended
        self.usual: list[int] = []  # indexes of the nights at the reference level
        # A drift has no edge: its first nights are those before it.
        ends = [first.at if first.shape is Shape.STEP else first.at + FIRST_NIGHTS for first in changes[:1]]
        self._settle(range(*ends or [len(series.points)]))
        if changes:
            self.reference = changes[0].before

    def gain(self, now: float, before: float) -> float:
        return now - before if self.series.metric.better == "higher" else before - now

    def describe(self, kind: Kind, change: LevelChange, before: float, after: float, end: int) -> Finding:
        """Describe a change, to the level that ends at ``end``."""
        points, nights = self.points, self.points[change.at :]
        reported, last = points[min(change.reported, len(points)) - 1].night, points[end - 1].night
        bounds = _is_bound(points[change.at : end]), _is_bound([points[at] for at in self.usual])
        about = nights[0].night, reported, before, after, change.noise, change.before, change.shape, *bounds
        cell, metric = self.series.cell, self.series.metric
        return Finding(cell, metric, kind, len(nights), *about, start=change.at, end=end, last=last)

    def take(self, change: LevelChange, begin: int, end: int) -> None:
        """Classify a change between the level that began at ``begin`` and the one that ends at ``end``."""
        series, points = self.series, self.points
        first = change.at if change.shape is Shape.STEP else max(change.at, change.reported - FIRST_NIGHTS)
        nights = range(min(first, end - 1), end)
        now = median(points[at].value for at in nights)
        enough = float(series.smallest.of(self.reference))
        # the median of a return's first nights may be short of the level by chance
        chance = MEDIAN_ERROR * change.noise / len(nights) ** 0.5
        finding = self.describe(Kind.REGRESSION, change, self.reference, now, end)
        if change.shape is Shape.STEP:
            values = [point.value for point in points[begin:end]]
            early, late = nights_of_change(values, change.at - begin, change.before, now, change.noise)
            finding = replace(finding, between=(points[begin + early].night, points[begin + late].night))
        gain, returns = self.gain(now, self.reference), self.gain(change.after, change.before) > 0
        if note := find_note(self.known, [point.night for point in points], self.places, change.at):
            self.changes.append(replace(finding, kind=Kind.KNOWN, note=note))
            self._settle(nights)
        elif gain <= -enough - chance * returns:
            self._lose(finding, enough + chance)
        elif gain >= enough:
            if not _is_bound(points[: change.at][-FIRST_NIGHTS:]):  # else the DUT may have carried more than a bound
                self.changes.append(replace(finding, kind=Kind.IMPROVEMENT))
            self._settle(nights)
        else:
            self._recover(finding, 0)
            self.usual += nights

    def _settle(self, nights: Sequence[int]) -> None:
        """Take these nights for the usual level."""
        self.lost += self.standing
        self.standing, self.usual = [], list(nights)
        self.reference = median(self.points[at].value for at in nights)

    def _lose(self, finding: Finding, enough: float) -> None:
        """Add a loss, or take back in part those that stand."""
        self._recover(finding, sum(self.gain(finding.after, loss.before) <= -enough for loss in self.standing))
        last = self.standing[-1] if self.standing else None
        slide = last is not None and last.shape is finding.shape is Shape.DRIFT
        if last is None or (not slide and self.gain(finding.after, last.after) <= -enough):
            loss = self.last_loss(finding.after, enough)
            finding = replace(finding, before=last.after, before_at_least=last.at_least) if last else finding
            self.standing.append(replace(finding, loss=loss))
        else:
            lower = replace(last, after=finding.after, at_least=finding.at_least)
            self.standing[-1] = replace(lower, end=finding.end, last=finding.last)

    def _recover(self, finding: Finding, kept: int) -> None:
        """End the standing regressions but the first ``kept``."""
        ended, self.standing = self.standing[kept:], self.standing[:kept]
        self.lost += ended
        if ended:
            last = self.points[finding.start - 1].night
            end, lost = finding.start, ended[0]
            loss = replace(lost, kind=Kind.ENDED, nights=end - lost.start, end=end, last=last)
            loss = replace(loss, after=ended[-1].after, at_least=ended[-1].at_least)
            back = replace(finding, kind=Kind.RECOVERY, before=loss.after, before_at_least=loss.at_least)
            self.changes.append(replace(back, loss=loss))

    def last_loss(self, level: float, least: float) -> Finding | None:
        """Find the last regression that ended and had led to this level."""
        return next((loss for loss in reversed(self.lost) if abs(loss.after - level) < least), None)


def _suspect(changes: Sequence[LevelChange], walk: _LevelWalk) -> Iterator[Finding]:
    """Yield the last night if it is far from its level and a few more like it would be a change; its start counts."""
    *values, value = (point.value for point in walk.points)
    last, start, noise = len(values), changes[-1].start if changes else 0, changes[-1].noise if changes else None
    if start == last or (changes and changes[-1].reported > last):
        return
    level = median(values[start:])
    least = float(walk.series.smallest.of(level))
    from_bound = _is_bound(walk.points[start:last])
    if (from_bound and walk.gain(value, level) > 0) or not is_far(value, values[start:], least, noise):
        return  # the DUT may always have carried more than a bound
    for change in find_changes([*values, *[value] * (1 + FIRST_NIGHTS)], walk.series.smallest)[len(changes) :][:1]:
        first = min(change.at, last) if change.shape is Shape.STEP else last
        finding = walk.describe(Kind.SUSPICION, replace(change, at=first), level, value, last + 1)
        finding = replace(finding, before_at_least=from_bound)
        again = walk.last_loss(value, least) if walk.gain(value, level) < 0 else None
        ended = next((loss for loss in walk.standing if walk.gain(value, loss.before) > -least), None)
        yield replace(finding, loss=ended or again, more=change.reported - last - 1)


@dataclass(frozen=True)
class Delta:
    """One run's figure against its cell's baseline: the last stable level, or the median of the nights before."""

    share: float
    """Signed difference from the baseline, as a share of it."""
    beyond: bool
    """The difference is more than nights differ by chance."""
    worse: bool
    """The difference is for the worse, whether beyond the noise or not."""
    before: float
    """The baseline, in the metric's unit."""
    found: bool
    """A loss from the baseline stands."""
    nights: int
    """Number of nights in the baseline."""
    noise: float | None
    """A night's standard deviation as a share; None if there are too few nights to judge by."""
    measured: int
    """All nights with a figure, including the run's own."""
    at_most: bool = False
    """The baseline is a lower bound, and so the share an upper one."""


def find_delta(row: RunRow, rows: Sequence[RunRow], metric: Metric, usual: Usual | None = None) -> Delta | None:
    """Compare a run's figure with its baseline; None for a bound, or without former nights under its conditions.

    rows: the complete ones of the row's cell, oldest first. usual: the figure's last stable level, if it is known.
    """
    value, night = metric.of(row), night_of(row)
    if value is None or (metric.bounded and row.at_least):
        return None
    before = [other for other in rows if night_of(other) < night and bool(other.night) == bool(row.night)][-BASELINE:]
    (series,) = series_of(row.cell, [*before, row], [metric])
    points = series.points
    usual = None if usual is None else usual.before(night)
    if usual is None or not usual.nights:
        lately = [point for point in points if point.night < night and not point.bound][-LATELY:]
        usual = Usual(tuple(point.night for point in lately), tuple(point.value for point in lately))
    if not usual.nights or not usual.level:
        return None
    base, noise = usual.level, usual.noise if len(points) >= NEEDED_NIGHTS else None
    stands = usual.loss is not None
    least = float(series.smallest.of(base))
    far = abs(value - base) >= least if stands else noise is not None and is_far(value, usual.values, least)
    return Delta(
        share=(value - base) / abs(base),
        beyond=far and not (usual.at_least and value > base),
        worse=(value < base) == (metric.better == "higher"),
        before=base,
        found=stands,
        nights=len(usual.nights),
        noise=None if noise is None else noise / abs(base),
        measured=len(points),
        at_most=usual.at_least,
    )
