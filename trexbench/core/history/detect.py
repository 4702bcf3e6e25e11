"""Find where a history of nights changed its level: lasting steps, and drift. Pure.

A history is judged as on the morning after each night, from the nights until then: every night may begin a new level.
It is compared with the first nights of the level before, which a slow change leaves, too. There is a change if

1. at least two nights lie beyond it, three in four of them near the new level;
2. the difference reaches the smallest effect worth reporting;
3. it is ``SCORE`` standard errors: a t statistic as a normal score (Wallace 1959), so that few nights must show more;
4. the DUT was not near the new level so often that habit or noise would explain the nights.

A change once found stays found: later nights only add changes. Each constant names the table of
``benchmarks/detection.py`` that fixes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import comb
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

FIRST_NIGHTS, ASSUMED = 5, 3
"""Fewest nights before a change that show a DUT's noise; weight, in nights, of the noise assumed beforehand (half the
smallest effect), where it raises theirs; fixed by the false alarms of young histories of figures in coarse steps."""
BASELINE, LATELY = 60, 2 * FIRST_NIGHTS
"""Most nights by which a change is judged: before it (fixed by steps found), and since it, which is also the weight of
the noise that a new level inherits (fixed by false alarms where a night is like the one before, and by recoveries)."""
SCORE, ALONE = 3.7, 4.2
"""Score of a change, and of a single suspected night; fixed by false alarms, and false suspicions, against steps."""
NEAR, AGREE = 0.6, 0.75
"""Share of a step at which a night is near the new level; share of the nights that must be. Fixed by bad nights."""
CHANCE, SURPRISE = 1e-3, 0.2
"""The nights prove nothing if the DUT's former nights explain them with more than this probability; added to the count
of former nights near the new level, as few nights cannot show that something is rare. Fixed by DUTs of two modes."""
REACH = 3.0
"""Standard deviations from its level beyond which a night counts as no farther; fixed by single bad nights."""
SURE = 0.95
"""Probability that a change began within the nights stated for it."""
MEDIAN_ERROR, FROM_MEDIAN = 1.2533, 1.4826
"""Ratios for normal values: a median's standard error to a mean's; standard deviation to median distance."""


class Shape(str, Enum):
    STEP = "step"
    DRIFT = "drift"


@dataclass(frozen=True)
class LevelChange:
    """A change of level. A drift has no sharp edge."""

    at: int
    """Index of the night in which it began."""
    reported: int
    """Number of nights after which it was found."""
    before: float
    after: float
    noise: float
    """A night's standard deviation."""
    shape: Shape = Shape.STEP

    @property
    def start(self) -> int:
        """First night of the new level."""
        return self.at if self.shape is Shape.STEP else self.reported - 1


@dataclass(frozen=True)
class Smallest:
    """The smallest effect worth reporting: a share of the level, but at least ``absolute`` in the figure's own unit."""

    share: float
    absolute: float = 0.0

    def of(self, level: Values | float) -> Values:
        return np.maximum(self.share * np.abs(level), self.absolute)


class _Level(NamedTuple):
    """A level as some nights show it; or in columns, the level before each of many nights."""

    nights: Values | float
    mean: Values | float
    noise: Values | float
    weight: Values | float
    """Degrees of freedom of the noise."""

    def scores(self, away: Values | float, nights: NDArray[np.int_] | int) -> Values:
        """Score the mean distance of so many nights from the level: a t statistic as a standard normal value."""
        freedom = self.weight
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            ratio = np.abs(away) / (self.noise * np.sqrt(1 / np.asarray(nights) + 1 / self.nights))
            return np.asarray((8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(freedom * np.log1p(ratio**2 / freedom)))


def find_changes(values: Sequence[float], smallest: Smallest) -> list[LevelChange]:
    """Find every change of a history, oldest first; independent of the values' unit."""
    unit = 2.0 ** int(np.frexp(np.max(np.abs(values), initial=0.0))[1])
    history = [value / unit for value in values]  # so that squares do not overflow
    inside = Smallest(smallest.share, smallest.absolute / unit)
    changes: list[LevelChange] = []
    while (change := _next_change(history, changes, inside)) is not None:
        changes.append(change)
    return [replace(one, before=one.before * unit, after=one.after * unit, noise=one.noise * unit) for one in changes]


def noise_of(values: Sequence[float]) -> float | None:
    """Return the standard deviation of nights of one level, outliers drawn in; None for fewer than FIRST_NIGHTS."""
    return float(_level_of(values).noise) if len(values) >= FIRST_NIGHTS else None


def is_far(value: float, nights: Sequence[float], least: float, noise: float | None = None) -> bool:
    """Test whether a night differs from those of a level by more than chance, and by ``least``.

    noise: of the level before; without it, FIRST_NIGHTS must show it.
    """
    if not nights or (noise is None and len(nights) < FIRST_NIGHTS):
        return False
    base = _level_of(nights) if noise is None else _level_of(nights, noise, LATELY)
    away = value - median(nights)
    return abs(away) >= least and bool(base.scores(away, 1) >= ALONE)


def nights_of_change(values: Sequence[float], at: int, before: float, after: float, noise: float) -> tuple[int, int]:
    """Return the first and last index at which a step may have begun: SURE of the probability, and ``at`` itself.

    values: of the two levels alone, whose means are known. A priori every index is equally likely.
    """
    if noise <= 0:
        return at, at
    far = [(np.minimum(np.abs(np.asarray(values) - level), REACH * noise) / noise) ** 2 for level in (before, after)]
    cost = np.concatenate([[0.0], np.cumsum(far[0] - far[1])])[1:-1]  # of a step at index 1, 2, ...
    weight = np.exp(-(cost - cost.min()) / 2)
    likely = np.argsort(-weight, kind="stable")
    enough = int(np.searchsorted(np.cumsum(weight[likely]), SURE * weight.sum())) + 1
    places = [at, *(likely[:enough] + 1).tolist()]
    return min(places), max(places)


def _level_of(nights: Sequence[float], assumed: float = 0.0, weight: float = 0.0) -> _Level:
    """Estimate a level. assumed: the noise known beforehand, with the weight of so many nights."""
    middle = median(nights)
    reach = REACH * max(FROM_MEDIAN * median([abs(night - middle) for night in nights]), assumed)
    drawn_in = [min(max(night, middle - reach), middle + reach) for night in nights]
    mean, freedom = fmean(drawn_in), weight + len(nights) - 1
    squares = weight * assumed**2 + sum([(night - mean) ** 2 for night in drawn_in])
    return _Level(len(nights), mean, (squares / freedom) ** 0.5 if freedom else 0.0, freedom)


def _next_change(history: Sequence[float], changes: Sequence[LevelChange], smallest: Smallest) -> LevelChange | None:
    """Find the first change after the last of ``changes``."""
    start, least = (changes[-1].start, 2) if changes else (0, FIRST_NIGHTS)
    size = len(history) - start
    if size < least + 2:
        return None
    parts = [history[start : start + count] for count in range(1, min(size, BASELINE) + 1)]
    if changes:
        levels = [_level_of(part, changes[-1].noise, LATELY) for part in parts]
    else:
        levels = [*map(_level_of, parts)]
        for at, half in enumerate([float(smallest.of(level.mean)) / 2 for level in levels]):
            if levels[at].noise < half:
                levels[at] = _level_of(parts[at], half, ASSUMED)
    of_night = np.minimum(np.arange(size - 1), len(levels) - 1)
    columns, since = _Level(*np.asarray(levels)[of_night].T[:, :, None]), np.arange(1, LATELY + 1)
    nights = np.concatenate([history[start + 1 :], np.full(LATELY - 1, np.nan)])
    apart = np.lib.stride_tricks.sliding_window_view(nights, LATELY) - columns.mean
    away, squares = (np.cumsum(apart**power, axis=1) / since for power in (1, 2))
    # The nights since may scatter more than those before.
    known = LATELY if changes else 1
    scatter = (known * columns.noise**2 + since * (squares - away**2)) / (known + since - 1)
    scores = columns._replace(noise=np.sqrt(np.fmax(columns.noise**2, scatter))).scores(away, since)
    possible = (scores >= SCORE) & (np.abs(away) >= smallest.of(columns.mean))
    possible[: least - 1] = possible[:, 0] = False
    mornings = [(row + column, -float(scores[row, column]), row) for row, column in np.argwhere(possible).tolist()]
    for last, _, row in sorted(mornings):
        place, end, base = start + row + 1, start + last + 2, levels[of_night[row]]
        if _is_lasting(history, changes, place, end, base):
            return _as_step_or_drift(history, max(start + bool(changes), place - BASELINE), place, end, base)
    return None


def _is_lasting(history: Sequence[float], changes: Sequence[LevelChange], place: int, end: int, base: _Level) -> bool:
    """Test whether the nights [place, end) agree on a level that is not a habit of the DUT.

    If it is one that the DUT was found to leave once, only the nights since count as a habit: it may return.
    """
    since, begin = np.asarray(history[place:end]), max(0, place - BASELINE)
    level = float(since.mean())
    near = int(np.count_nonzero((since - base.mean) / (level - base.mean) > NEAR))
    if near < AGREE * len(since):
        return False

    def is_same(former: float) -> bool:
        return abs(former - level) < abs(former - float(base.mean))

    left = sum(is_same(change.before) and not is_same(change.after) for change in changes)
    former = history[max(begin, changes[-1].start if left == 1 else 0) : place]
    there = (np.asarray(former) - base.mean) / (level - base.mean) > NEAR
    habit = (np.count_nonzero(there) + SURPRISE) / (place - begin + 2 * SURPRISE)
    return bool(comb(len(since), near) * habit**near <= CHANCE)


def _as_step_or_drift(history: Sequence[float], begin: int, place: int, end: int, base: _Level) -> LevelChange:
    """Describe the change as a step or a drift, whichever fits the nights [begin, end) better."""
    shown = np.asarray(history[begin:end])
    nights = np.arange(len(shown))
    rest = shown - np.polyval(np.polyfit(nights, shown, 1), nights)
    parts = np.split(shown, [place - begin])
    shape = Shape.DRIFT if rest @ rest < sum(len(part) * part.var() for part in parts) else Shape.STEP
    at, after = begin if shape is Shape.DRIFT else place, median(history[place:end])
    return LevelChange(at, end, float(base.mean), after, float(base.noise), shape)
