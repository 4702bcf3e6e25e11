"""Where a history of nights changed its level: lasting steps, and drift. Pure.

Judged as on the morning after each night, from the nights until then, at every night that may begin a new level:

1. at least two nights lie beyond the change, and all of them (of four or more: three in four) on the same side;
2. the difference exceeds the smallest effect worth reporting;
3. it is ``SCORE`` standard errors after three nights, more after two or after more: the baseline is
   winsorized, its noise shrunk towards prior knowledge, and the t statistic converted to a normal score (Wallace 1959),
   so that a short baseline needs a larger difference;
4. the DUT has not been at that level so often, or for so long, that a second mode of it would explain the return (and
   noise the nights that are only near that level).

What was found stays found: later nights add changes, and never withdraw one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import comb, erfc, prod

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

FIRST_NIGHTS = 5
"""Fewest nights before a change that show a DUT's noise."""
BASELINE, LATELY = 60, 20
"""The most nights from which a change is judged: before it, and since."""
EARLY_SCORE, SCORE, LATE_SCORE, DRIFT_SCORE = 3.9, 3.35, 4.5, 5.0
"""For a step two nights old, three, more: each test can give a false alarm, so the one after three nights decides, and
the others find only what is beyond doubt."""
REST_SCORE, AGREE = 2.0, 0.2
"""The score of a step without its farthest night; and the share of the step that a night must show to support it."""
SLOPE_SCORE = 2.0
"""The nights before a step are level if their slope has a lower score."""
PRIOR_WEIGHT = 3.0
"""The weight, in nights, of the assumed noise (half the smallest effect); CARRIED_WEIGHT: of a former level's noise."""
CARRIED_WEIGHT = 15.0
ENOUGH: Values = np.array([EARLY_SCORE, SCORE, *[LATE_SCORE] * (LATELY - 3)])
CHANCE = 1e-3
"""The nights prove nothing if the DUT's former behaviour explains them with more than this probability."""
NEAR = 0.8
"""A night that shows this share of the step counts as at the new level."""
MEDIAN_ERROR = 1.2533
"""The standard error of a median over that of a mean, for normally distributed values."""
SURPRISE = 0.05
"""Added to the nights at the new level, and twice to all: few nights cannot show that something is rare."""
EPISODES = 3
"""Visits to the new level, in the nights of the baseline, that make it a habit."""
REACH = 3.0
"""A night counts as no farther from its level than so many standard deviations."""
FAR = 4.0
"""The score from which on a single night is beyond the noise."""
SURE = 0.95
"""The probability that a change began within the nights that are stated for it."""


class Shape(str, Enum):
    STEP = "step"
    DRIFT = "drift"


@dataclass(frozen=True)
class LevelChange:
    """A change of level at the night of index ``at``, found after ``told`` nights. noise: of one night (a standard
    deviation); score: the difference in standard errors. A drift begins at ``at`` without a sharp edge.
    """

    at: int
    told: int
    before: float
    after: float
    noise: float
    score: float
    shape: Shape = Shape.STEP


@dataclass(frozen=True)
class Smallest:
    """The smallest effect worth reporting: a share of the level, but at least so much in the figure's own unit."""

    share: float
    absolute: float = 0.0

    def of(self, level: Values | float) -> Values:
        return np.maximum(self.share * np.abs(level), self.absolute)


@dataclass(frozen=True)
class _Baselines:
    """Count, level and noise of the nights before each index, and the weight of that noise in nights."""

    count: Values
    level: Values
    noise: Values
    weight: Values


def find_changes(values: Sequence[float], smallest: Smallest) -> list[LevelChange]:
    """Every change of a history, oldest first; independent of the values' unit."""
    unit = 2.0 ** int(np.frexp(np.max(np.abs(values), initial=0.0))[1])
    history = np.asarray(values, dtype=np.float64) / unit  # so that squares do not overflow
    inside = Smallest(smallest.share, smallest.absolute / unit)
    changes: list[LevelChange] = []
    start, known = 0, None
    levels = np.full(len(history), np.nan)  # of the nights before ``start``
    with np.errstate(over="ignore"):
        while (found := _first_change(history, start, known, inside, levels)) is not None:
            changes.append(found)
            levels[start : found.at] = found.before
            start, known = (found.at if found.shape is Shape.STEP else found.told - 1), found.noise
    return [replace(one, before=one.before * unit, after=one.after * unit, noise=one.noise * unit) for one in changes]


def noise_of(values: Sequence[float]) -> float | None:
    """The standard deviation of nights of one level, far ones drawn in; None where fewer than FIRST_NIGHTS tell it."""
    if len(values) < FIRST_NIGHTS:
        return None
    nights = np.asarray(values, dtype=np.float64)
    middle = float(np.median(nights))
    reach = REACH * 1.4826 * float(np.median(np.abs(nights - middle)))
    return float(np.std(np.clip(nights, middle - reach, middle + reach), ddof=1))


def is_far(value: float, level: Sequence[float], least: float) -> bool:
    """True if one night differs by more than chance, and by ``least``, from the nights of a level."""
    noise, count = noise_of(level), len(level)
    away = abs(value - float(np.median(level))) if count else 0.0
    if noise is None or away < least or not away:
        return False
    return noise == 0 or float(_normal_score(away / (noise * (1 + 1 / count) ** 0.5), count - 1)) > FAR


def nights_of_change(values: Sequence[float], at: int, before: float, after: float, noise: float) -> tuple[int, int]:
    """The first and the last index at which a step may have begun: SURE of the probability, and ``at`` itself.

    values: of the two levels alone, which are known; each index is as likely as another before they are seen.
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


def _first_change(
    history: Values, start: int, known: float | None, smallest: Smallest, levels: Values
) -> LevelChange | None:
    """The first change of the level that began at ``start``."""
    least = FIRST_NIGHTS if known is None else 2
    size = len(history) - start
    if size < least + 2:
        return None
    base = _baselines(history[start:], known, smallest)
    scores, effects = _scores(history[start:], base)
    possible = (scores >= ENOUGH) & (np.abs(effects) >= smallest.of(base.level)[:, None])
    possible[:least] = False
    drifts = _drifts(history[start:], base, smallest)
    ends = np.arange(size)[:, None] + np.arange(2, LATELY + 1)[None, :]
    for end in sorted({*ends[possible].tolist(), *drifts}):
        places = [int(p) for p in range(max(0, end - LATELY), end - 1) if possible[p, end - p - 2]]
        places = [p for p in places if _lasting(history, levels, start + p, start + end, base, p)]
        if places:
            place = max(places, key=lambda p: float(scores[p, end - p - 2]))
            return _as_step_or_drift(history, start, end, place, base, float(scores[place, end - place - 2]))
        if end in drifts:
            after = float(np.median(history[start + end - LATELY : start + end]))
            level, noise = float(base.level[BASELINE]), float(base.noise[BASELINE])
            return LevelChange(start, start + end, level, after, noise, drifts[end], Shape.DRIFT)
    return None


def _baselines(history: Values, known: float | None, smallest: Smallest) -> _Baselines:
    """Summarize the nights [p - BASELINE, p) for every index p."""
    size = len(history)
    padded = np.concatenate([np.full(BASELINE, np.nan), history])
    windows = np.sort(np.lib.stride_tricks.sliding_window_view(padded, BASELINE)[:size], axis=1)  # NaN last
    count = np.minimum(np.arange(size), BASELINE)
    middle = _middle(windows, count)
    distance = np.sort(np.abs(windows - middle[:, None]), axis=1)
    assumed = smallest.of(middle) / 2 if known is None else np.full(size, known)
    reach = REACH * np.maximum(1.4826 * _middle(distance, count), assumed)[:, None]
    clipped = np.clip(windows, middle[:, None] - reach, middle[:, None] + reach)
    there = ~np.isnan(clipped)
    filled = np.where(there, clipped, 0.0)
    level = np.divide(filled.sum(axis=1), count, out=np.zeros(size), where=count > 0)
    squares = (np.where(there, clipped - level[:, None], 0.0) ** 2).sum(axis=1)
    prior = PRIOR_WEIGHT if known is None else CARRIED_WEIGHT
    weight = prior + np.maximum(count - 1, 0)
    noise = np.sqrt((prior * assumed**2 + squares) / weight)
    return _Baselines(count.astype(np.float64), level, noise, weight)


def _middle(ascending: Values, count: NDArray[np.int_]) -> Values:
    """The median of the first ``count`` of each row; 0 where there are none."""
    rows = np.arange(len(ascending))
    low, high = np.maximum((count - 1) // 2, 0), np.maximum(count // 2, 0)
    high = np.minimum(high, np.maximum(count - 1, 0))
    return np.where(count > 0, (ascending[rows, low] + ascending[rows, high]) / 2, 0.0)


def _scores(history: Values, base: _Baselines) -> tuple[Values, Values]:
    """[index, nights since - 2]: score and effect of a change at this index, seen so many nights later; 0: not yet."""
    size = len(history)
    sums = np.concatenate([[0.0], np.cumsum(history - history[0])])
    nights = np.arange(2, LATELY + 1)
    ends = np.arange(size)[:, None] + nights[None, :]
    there = (ends <= size) & (base.count[:, None] >= 2)
    means = (sums[np.minimum(ends, size)] - sums[np.arange(size)][:, None]) / nights + history[0]
    effects = np.where(there, means - base.level[:, None], 0.0)
    error = base.noise[:, None] * np.sqrt(1 / nights[None, :] + 1 / np.maximum(base.count, 1)[:, None])
    ratio = np.divide(np.abs(effects), error, out=np.zeros_like(effects), where=error > 0)
    ratio[(error <= 0) & (effects != 0)] = np.inf
    return _normal_score(ratio, base.weight[:, None]), effects


def _normal_score(ratio: Values | float, freedom: Values | float) -> Values:
    """A t statistic of so many degrees of freedom as the score of a normal distribution."""
    return np.asarray((8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(freedom * np.log1p(ratio**2 / freedom)))


def _lasting(history: Values, levels: Values, place: int, end: int, base: _Baselines, at: int) -> bool:
    """True if the nights [place, end) agree, do not depend on one of them, and are no habit of the DUT.

    levels: of the nights up to the last change that was found, which explains those that it kept at the new level.
    """
    level, noise = float(base.level[at]), float(base.noise[at])
    since = history[place:end] - level
    effect = float(since.mean())
    way = 1.0 if effect > 0 else -1.0
    agree = int(np.count_nonzero(since * way > abs(effect) * AGREE))
    if agree < len(since) - len(since) // 4:
        return False
    ascending, baseline = np.sort(since * way), (noise, float(base.count[at]))
    if _score_of(ascending[:-1], *baseline) < REST_SCORE:
        return False
    before = history[max(0, place - BASELINE) : place]
    there = (before - level) * way > NEAR * abs(effect)
    former = levels[max(0, place - BASELINE) : place]
    asked = there[~(np.abs(former - level - effect) < np.abs(former - level))]
    rest = ascending[ascending <= NEAR * abs(effect)]
    by_mode = _chance_of_return(asked, len(since), len(since) - len(rest))
    score = _score_of(rest, *baseline)
    by_noise = erfc(score / 2**0.5) / 2 if score else 1.0  # no night left to explain
    visits = _visits((before - level) * way / abs(effect))
    by_habit = len(visits) >= EPISODES and len(since) <= 2 * max(visits)
    return by_mode * by_noise <= CHANCE and not by_habit


def _visits(shares: Values) -> list[int]:
    """The length of each visit to the new level, from the shares of the step that the nights show.

    It lasts until a night shows no step at all: a night that is only less near than others, by noise, does not end it.
    """
    visits: list[int] = []
    there = False
    for share in shares:
        if share > NEAR and not there:
            visits.append(0)
        there = share > (AGREE if there else NEAR)
        if there:
            visits[-1] += 1
    return visits


def _score_of(nights: Values, noise: float, count: float) -> float:
    """Their mean in standard errors, relative to a level measured over ``count`` nights."""
    mean = float(nights.mean()) if len(nights) else 0.0
    error = noise * (1 / max(len(nights), 1) + 1 / count) ** 0.5
    return mean / error if error > 0 else np.inf if mean > 0 else 0.0


def _chance_of_return(there: NDArray[np.bool_], nights: int, again: int) -> float:
    """The probability that a DUT that was ``there`` in these former nights is there in ``again`` of the next ones.

    The share of such nights is only estimated: hence a beta-binomial, not a binomial probability.
    """
    seen, count = float(there.sum()) + SURPRISE, len(there) + 2 * SURPRISE
    return comb(nights, again) * prod((seen + one) / (count + one) for one in range(again))


def _as_step_or_drift(history: Values, start: int, end: int, place: int, base: _Baselines, score: float) -> LevelChange:
    """The change as a step or a drift, whichever fits the nights around it better."""
    begin = max(0, place - BASELINE)
    shown = history[start + begin : start + end]
    edge = place - begin
    level, after = float(base.level[place]), float(np.median(shown[edge:]))
    step = float(((shown[:edge] - shown[:edge].mean()) ** 2).sum() + ((shown[edge:] - shown[edge:].mean()) ** 2).sum())
    nights = np.arange(len(shown))
    line = float(((shown - np.polyval(np.polyfit(nights, shown, 1), nights)) ** 2).sum())
    drifts = line < step and len(shown) - edge >= FIRST_NIGHTS
    drifts |= _was_drifting(history[start + max(0, place - BASELINE) : start + place], len(shown) - edge, after - level)
    shape = Shape.DRIFT if drifts else Shape.STEP
    at = start + (begin if drifts else place)
    return LevelChange(at, start + end, level, after, float(base.noise[place]), score, shape)


def _was_drifting(before: Values, nights: int, effect: float) -> bool:
    """Test whether the nights before had a slope that would have led at least a third as far in so many more nights."""
    count = len(before)
    if count < LATELY:
        return False
    middle = (count - 1) / 2
    slope, offset = np.polyfit(np.arange(count), before, 1)
    rest = before - (slope * np.arange(count) + offset)
    error = float(np.sqrt((rest**2).sum() / (count - 2) * 12 / count**3))
    way = 1.0 if effect > 0 else -1.0
    expected = float(slope) * (count + (nights - 1) / 2 - middle) * way
    return float(slope) * way >= SLOPE_SCORE * error and expected >= abs(effect) / 3


def _drifts(history: Values, base: _Baselines, smallest: Smallest) -> dict[int, float]:
    """The first end, and its score, at which the last nights differ from the first ones, without any step."""
    if len(history) < BASELINE + LATELY:
        return {}
    level = float(base.level[BASELINE])
    effects = np.abs(np.median(np.lib.stride_tricks.sliding_window_view(history, LATELY)[BASELINE:], axis=1) - level)
    error = MEDIAN_ERROR * float(base.noise[BASELINE]) * (1 / LATELY + 1 / BASELINE) ** 0.5
    far = np.flatnonzero((effects > 0) & (effects >= DRIFT_SCORE * error) & (effects >= 2 * smallest.of(level)))
    return {int(at) + BASELINE + LATELY: float(effects[at] / error) if error else np.inf for at in far[:1]}
