"""Looks at rates: where each goal's knee lies by them, and the rate to look at next.

benchmarks/search.py fixes the numbers: time, error and coverage of a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, exp, log
from typing import NamedTuple

import numpy as np

from ..load.plan import Direction, Plan
from ..load.sample import Phase, Sample, by_trial
from ..load.windows import RunWindows, Window, build_window, measured_windows
from ..verdict.belief import Belief, Flag, believe
from ..verdict.blame import misses
from ..verdict.evidence import AT_ONCE, standing_windows
from ..verdict.knee import find_knee
from ..verdict.path import find_path

LOST_IN_RAMP = 0.005
"""Share up to which loss in a window of the ramp may be frames on their way."""
IN_FLIGHT_S = 0.0001
"""Time whose traffic may be on its way at the end of a look, beyond that at its beginning."""
PATIENCE = 10
"""A look is at most this many times as long where the two ports' counters are not read at one instant; and after this
many looks in a row with hardly any frame returned, the DUT is taken to forward no more."""
SURE, STEADY = 0.75, 0.93
"""Probability with which the knee must lie in its interval; the second where no lossy rate is below a good one.

With 0.9 there, 91 and 93 % of the intervals of the worse of two goals hold the knee in place of 94 and 95 (plain DUTs,
noise of 1 and 0.2 %, 200 each), and a search takes 1 to 2 s less.
"""
STATED = 0.97
"""Probability of the interval that is stated where one is: 95 of 100 hold the knee (benchmarks/search.py)."""
HALF = 4
"""Steps from the middle of an interval to its ends: rates lie on a grid of an eighth of the width asked for."""


class Look(NamedTuple):
    """One look at a direction, or at several together; rates are shares of the targets."""

    windows: tuple[Window, ...]  # one of each direction
    asked: float  # the highest
    share: float  # the lowest offered load: the rate sent, or that asked for where they are within half of the width
    unreached: bool  # the generator never sent as much as was asked for here, neither in the ramp nor in any look
    together: bool  # all directions were asked for one share

    def lossy(self, goal: float) -> bool:
        """Test whether any direction lost more than this share."""
        return any(is_lossy(window, goal) for window in self.windows)


class GoalKnee(NamedTuple):
    """One goal's knee as shares of the target."""

    goal: float
    estimate: float
    low: float | None  # a good rate, None as long as there is none
    high: float | None  # a lossy rate
    between: tuple[float | None, float | None]  # low to high; wider, as far as the knee may lie, if the DUT varies
    sure: float  # probability that the knee lies in ``between``
    next_share: float | None


class GroupKnees(NamedTuple):
    """A group's knees by goal, and the share to look at next."""

    knees: tuple[GoalKnee, ...]
    next_share: float
    done: bool


def is_lossy(window: Window, goal: float) -> bool:
    """Test whether more than this share was lost; where it is less than what may be on its way, more than that."""
    return window.lost > max(goal * window.sent, IN_FLIGHT_S * window.sent_pps + window.skew)


def look_goes_on(look_s: float, finest: float, measured: RunWindows) -> bool:
    """Test whether the look of the last sample must last longer (_length_s)."""
    first, last = _ends_of_looks(measured.samples)[-1]
    return last.t_s - first.t_s < _length_s(look_s, finest, _skew_s(measured)) - look_s / 2


def _ends_of_looks(history: Sequence[Sample]) -> list[tuple[Sample, Sample]]:
    """The first and last sample of each look; its first sample at a new rate only lets that settle."""
    looks = by_trial(history, Phase.SEARCH).values()
    goes_on = [history[at[0]].asked_pps == history[at[0] - 1].asked_pps for at in looks]
    return [(history[at[0] - same], history[at[-1]]) for at, same in zip(looks, goes_on, strict=True)]


def _length_s(look_s: float, finest: float, skew_s: float) -> float:
    """Length of a look: long enough for the ports' skew to look like at most half of the finest share that counts."""
    return look_s * min(PATIENCE, max(1, ceil(skew_s / (finest / 2 * look_s))))


def _skew_s(measured: RunWindows) -> float:
    """The directions' greatest skew in warm-up and ramp, which is one for all looks."""
    return max(measured.skew_s(direction) for direction in measured.plan.directions)


def find_groups(strictest: float, measured: RunWindows) -> list[tuple[Belief, list[Direction]]]:
    """Group the directions whose knees are so close that all are searched at one share of their targets.

    Each group has where the ramp saw the lowest knee. strictest: of the goals.
    """
    groups = list[tuple[Belief, list[Direction]]]()
    alone = ((seen_by_ramp(strictest, measured, direction), [direction]) for direction in measured.plan.directions)
    for seen, directions in sorted(alone, key=lambda one: one[0].quantile(0.5)):
        if groups and seen.quantile((1 - STATED) / 2) < groups[-1][0].quantile((1 + STATED) / 2):
            lower, others = groups.pop()
            seen, directions = Belief.of_lowest((lower, seen)), [*others, *directions]
        groups.append((seen, directions))
    return groups


def seen_by_ramp(strictest: float, measured: RunWindows, direction: Direction) -> Belief:
    """The direction's knee as the ramp shows it; as likely above the target as not where it shows none."""
    target, path = measured.plan.offer(direction).target_pps, find_path(measured, direction)
    plan = replace(measured.plan, loss_threshold=max(strictest, LOST_IN_RAMP))
    ramp = measured_windows(plan, measured.samples, direction, (Phase.RAMP,), measured.skew_s(direction))
    standing = standing_windows(ramp)
    windows = [path.correct(w) for w in ramp if w.sent and w not in standing]
    if knee := find_knee(plan, windows, plan.step_pps(direction)):
        return Belief(knee.belief.rates / target, knee.belief.weights)
    good = max((w.sent_pps for w in windows if not w.is_bad(plan.loss_threshold)), default=0.0) / target
    return Belief(np.array([min(0.9 * good, 1.0), 1.0, 2.0]), np.ones(2))


def windows_of_looks(
    look_s: float, finest: float, directions: Sequence[Direction], measured: RunWindows
) -> list[dict[Direction, Window]]:
    """The looks of the search so far, as on a sound path, without those cut short, with a gap, or with nothing sent."""
    plan, looked = measured.plan, list[dict[Direction, Window]]()
    paths = {direction: find_path(measured, direction) for direction in directions}
    skew_s = _skew_s(measured)
    length_s = _length_s(look_s, finest, skew_s)
    for ends in _ends_of_looks(measured.samples):
        if length_s - look_s / 2 < ends[1].t_s - ends[0].t_s < length_s + plan.gap_s:
            windows = {d: path.correct(build_window(d, ends, skew_s=skew_s)) for d, path in paths.items()}
            looked += [windows] if all(w.sent for w in windows.values()) else []
    return looked


def look_at(windows: Mapping[Direction, Window], plan: Plan, most_pps: Mapping[Direction, float], width: float) -> Look:
    """Judge these directions' windows of one time together. most_pps: the highest rates sent in any window."""
    asked, shares = list[float](), list[float]()
    for direction, window in windows.items():
        target_pps = plan.offer(direction).target_pps
        asked.append(window.asked_pps / target_pps)
        doubt = width / 2 + window.skew / window.sent  # as far as the counters can tell
        near = (1 - doubt) * asked[-1] <= window.sent_pps / target_pps <= (1 + doubt) * asked[-1]
        shares.append(asked[-1] if near else window.sent_pps / target_pps)
    unreached = any(misses(window.asked_pps, most_pps[direction]) for direction, window in windows.items())
    together = max(asked) - min(asked) <= AT_ONCE * max(asked)
    return Look(tuple(windows.values()), max(asked), min(shares), unreached, together)


def seek(goals: Sequence[float], width: float, seen: Belief, looks: Sequence[Look]) -> GroupKnees:
    """Find each goal's knee from these looks, and the share to look at next."""
    knees = tuple(_knee(seen, goal, looks, width) for goal in goals)
    open_ends = [knee.next_share for knee in knees if knee.next_share is not None]
    rest = min((knee.low for knee in knees if knee.low is not None), default=seen.quantile(0.5))
    share = open_ends[len(looks) % len(open_ends)] if open_ends else rest
    # The generator will send as much of what is asked for as it did in the look nearest to it.
    reached = [look for look in looks if not look.unreached]
    nearest = min(reached, key=lambda look: abs(look.share - share), default=None)
    kept = nearest.share / nearest.asked if nearest else 1.0
    return GroupKnees(knees, min(1.0, share / kept), not open_ends)


def _knee(seen: Belief, goal: float, looks: Sequence[Look], width: float) -> GoalKnee:
    tried = [Flag(look.share, look.lossy(goal)) for look in looks]
    belief = believe(seen, tried, width)
    middle = belief.quantile(0.5)
    low, high = _ends(tried, belief, width)
    # The highest rate that can be looked at: the target, or about what a generator sends that falls short of it.
    most = 1.0
    if any(look.unreached for look in looks):
        most = max(look.share for look in looks) * (1 - width / 2)
    if low is not None and low >= most:
        return GoalKnee(goal, low, low, None, (low, None), 1 - belief.below(low), None)
    next_share: float | None = _next_share(belief, tried, width)
    if low is None or high is None:
        return GoalKnee(goal, middle, low, high, (low, high), 0.0, next_share)
    steady = all(look.lossy for look in tried if look.rate > min(o.rate for o in tried if o.lossy))
    sure = belief.below(high) - belief.below(low)
    if sure >= (STEADY if steady else SURE) and high / low - 1 <= width * 1.001:
        next_share = None
    if steady:
        return GoalKnee(goal, middle, low, high, (low, high), sure, next_share)
    least, most = (belief.quantile((1 + sign * STATED) / 2) for sign in (-1, 1))
    return GoalKnee(goal, middle, low, high, (min(low, least), max(high, most)), STATED, next_share)


def _ends(tried: Sequence[Flag], belief: Belief, width: float) -> tuple[float | None, float | None]:
    """The pair of a good and a lossy rate within the width that most probably holds the knee; else the nearest ones."""
    middle = belief.quantile(0.5)
    good = sorted((look.rate for look in tried if not look.lossy and look.rate <= middle), reverse=True)
    lossy = sorted(look.rate for look in tried if look.lossy and look.rate >= middle)
    near = [(low, high) for low in good for high in lossy if high / low - 1 <= width * 1.001]
    if near:
        return max(near, key=lambda pair: belief.below(pair[1]) - belief.below(pair[0]))
    return (good[0] if good else None), (lossy[0] if lossy else None)


def _next_share(belief: Belief, tried: Sequence[Flag], width: float) -> float:
    """The end of an interval around the median beyond which the knee more probably lies; else the less tried end."""
    step = log(1 + width) / (2 * HALF)
    middle = belief.quantile(0.5)
    at = round(log(min(middle, 1.0)) / step)
    low, high = exp((at - HALF) * step), exp((at + HALF) * step)
    if high >= 1.0:
        low, high = min(low, exp(-2 * HALF * step)), 1.0
    below, above = belief.below(low), 1 - belief.below(high)
    if max(below, above) > (1 - SURE) / 2:
        return low if below >= above else high
    good = sum(low * (1 - AT_ONCE) <= look.rate <= middle and not look.lossy for look in tried)
    lossy = sum(middle <= look.rate <= high * (1 + AT_ONCE) and look.lossy for look in tried)
    return low if good <= lossy else high
