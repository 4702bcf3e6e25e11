"""Looks at rates: where each goal's knee lies by them, and the rate to look at next.

benchmarks/search.py fixes the numbers: time, error and coverage of a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp, log
from statistics import fmean, linear_regression
from typing import NamedTuple

from ..load.plan import Direction
from ..load.sample import Phase, Sample, by_trial
from ..load.windows import RunWindows, Window, build_window, measured_windows
from ..verdict.belief import LEAST, Belief, Bracket, LookResult, believe
from ..verdict.blame import misses
from ..verdict.evidence import AT_ONCE, STOOD
from ..verdict.knee import find_sustained
from ..verdict.path import find_path

LOST_IN_RAMP = 0.005
"""Share up to which loss in a window of the ramp may be frames on their way."""
IN_FLIGHT_S = 0.0001
"""Time whose traffic may be on its way at the end of a look, beyond that at its beginning."""
PATIENCE = 10
"""A look is at most this many times as long where the two ports' counters are not read at one instant; and after this
many looks in a row with hardly any frame returned, the DUT is taken to forward no more."""
SURE, STEADY = 0.75, 0.9
"""Probability with which the knee must lie in its interval; the second where no lossy rate is below a good one."""
STATED = 0.97
"""Probability of the interval that is stated where one is: 95 of 100 hold the knee (benchmarks/search.py)."""
HALF = 4
"""Steps from the middle of an interval to its ends: rates lie on a grid of an eighth of the width asked for."""


@dataclass(frozen=True)
class DirectionGroup:
    """Directions whose knees are so close that all are searched at one share of their targets."""

    directions: tuple[Direction, ...]
    low: float  # between low and high the ramp saw the knee, if bracketed
    high: float
    line: tuple[float, float]  # slope and offset of received over offered past the knee, where most was lost
    bracketed: bool

    def bracket(self, goal: float) -> Bracket:
        """Prior for this goal's knee, from the ramp: most likely where the line crosses that of the loss allowed."""
        slope, offset = self.line
        guess = offset / max(AT_ONCE, 1 - goal - slope)
        return Bracket(self.low, self.high, min(max(guess, self.low), self.high))


class LookPart(NamedTuple):
    """One direction in a look; rates are shares of the target."""

    window: Window
    asked: float
    sent: float  # the offered load: the rate sent, or that asked for where they are within half of the width
    unreached: bool  # the generator never sent as much as was asked for here, neither in the ramp nor in any look


class Look(NamedTuple):
    """One look: the group's directions, each at its own rate."""

    parts: Mapping[Direction, LookPart]

    @property
    def windows(self) -> Mapping[Direction, Window]:
        return {direction: part.window for direction, part in self.parts.items()}

    @property
    def share(self) -> float:
        """The lowest rate sent, at which all directions were looked at."""
        return min(part.sent for part in self.parts.values())

    @property
    def asked(self) -> float:
        """The highest rate asked for."""
        return max(part.asked for part in self.parts.values())

    @property
    def together(self) -> bool:
        """True if all directions were asked for one share."""
        return all(self.asked - part.asked <= AT_ONCE * self.asked for part in self.parts.values())

    @property
    def unreached(self) -> bool:
        return any(part.unreached for part in self.parts.values())

    @property
    def loss(self) -> float:
        """Share lost in the worst direction."""
        return max(part.window.lost / part.window.sent for part in self.parts.values())

    def of(self, direction: Direction) -> Look:
        return Look({direction: self.parts[direction]})

    def lossy(self, goal: float) -> bool:
        """Test whether any direction lost more than this share."""
        return any(is_lossy(part.window, goal) for part in self.parts.values())


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
    return window.lost > goal * window.sent + IN_FLIGHT_S * window.sent_pps + window.skew


def look_goes_on(look_s: float, width: float, measured: RunWindows) -> bool:
    """Test whether the look of the last sample must last longer (_length_s)."""
    history = measured.samples
    last = history[-1]
    first = next(i for i, s in enumerate(history) if s.phase is Phase.SEARCH and s.trial == last.trial)
    looked_s = last.t_s - history[_look_begun(history, first)].t_s
    return looked_s < _length_s(look_s, width, _skew_s(measured)) - look_s / 2


def _look_begun(history: Sequence[Sample], first: int) -> int:
    """Index of the sample from which a look counts: its first one only lets a new rate settle."""
    return first if history[first].asked_pps != history[first - 1].asked_pps else first - 1


def _length_s(look_s: float, width: float, skew_s: float) -> float:
    """Length of a look: long enough for the ports' skew to look like at most half of the width."""
    return look_s * min(PATIENCE, max(1, ceil(skew_s / (width / 2 * look_s))))


def _skew_s(measured: RunWindows) -> float:
    """The directions' greatest skew in warm-up and ramp, which is one for all looks."""
    return max(measured.skew_s(direction) for direction in measured.plan.directions)


def find_groups(strictest: float, measured: RunWindows) -> tuple[DirectionGroup, ...]:
    """Group the directions by where the ramp bracketed their knees. strictest: of the goals."""
    groups: list[DirectionGroup] = []
    alone = (_group_of_one(strictest, measured, direction) for direction in measured.plan.directions)
    for group in sorted(alone, key=lambda group: group.low):
        if groups and group.bracketed == groups[-1].bracketed and group.low < groups[-1].high:
            last = groups.pop()
            line = min(last.line, group.line, key=lambda line: line[1] + line[0] * last.high)
            both = (*last.directions, *group.directions)
            group = DirectionGroup(both, last.low, max(last.high, group.high), line, group.bracketed)
        groups.append(group)
    return tuple(groups)


def _group_of_one(strictest: float, measured: RunWindows, direction: Direction) -> DirectionGroup:
    """One direction, and where the ramp saw its knee."""
    plan, target = measured.plan, measured.plan.offer(direction).target_pps
    skew_s, path = measured.skew_s(direction), find_path(measured, direction)
    ramp = measured_windows(plan, measured.samples, direction, (Phase.RAMP,), skew_s)
    standing = standing_windows(ramp)
    windows = [path.correct(w) for w in ramp if w.sent and w not in standing]
    floor = max(strictest, LOST_IN_RAMP)
    # Less than asked alone is no limit: the generator is at its own where more is asked and hardly more is sent.
    risen = [True, *(b.sent_pps - a.sent_pps > (b.asked_pps - a.asked_pps) / 2 for a, b in pairwise(windows))]
    short = [misses(w.asked_pps, w.sent_pps) and not up for w, up in zip(windows, risen, strict=False)]
    first = find_sustained([w.is_bad(floor) or s for w, s in zip(windows, short, strict=True)], plan.windows)
    if first is None:
        low = max((w.sent_pps for w in windows if not w.is_bad(floor)), default=0.0) / target
        return DirectionGroup((direction,), max(low * 0.9, LEAST), 1.0, (0.0, 1.0), False)
    past = windows[first + 1 : first + plan.windows] or windows[first : first + 1]
    high = past[0].sent_pps / target
    low = windows[first - 1].sent_pps / target if first else high / 16
    sent, received = [w.sent_pps / target for w in past], [w.received_pps / target for w in past]
    rises = sent[-1] > sent[0] * 1.001  # it does not where the generator cannot send more
    line = linear_regression(sent, received) if rises else (0.0, fmean(received))
    return DirectionGroup((direction,), min(low, high * 0.99), high, (line[0], line[1]), True)


def standing_windows(ramp: Sequence[Window]) -> list[Window]:
    """Windows in which nothing was forwarded, though something was at the higher rates that followed."""
    nothing = [window.blank for window in ramp]
    return [window for at, window in enumerate(ramp) if nothing[at] and not all(nothing[at:])]


def looks_of(look_s: float, width: float, group: DirectionGroup, measured: RunWindows) -> list[Look]:
    """The looks of the search so far, as on a sound path, without those cut short, with a gap, or with nothing sent."""
    plan, history, looked = measured.plan, measured.samples, list[dict[Direction, Window]]()
    paths = {direction: find_path(measured, direction) for direction in group.directions}
    skew_s = _skew_s(measured)
    length_s = _length_s(look_s, width, skew_s)
    for indexes in by_trial(history, Phase.SEARCH).values():
        ends = history[_look_begun(history, indexes[0])], history[indexes[-1]]
        if length_s - look_s / 2 < ends[1].t_s - ends[0].t_s < length_s + plan.gap_s:
            windows = {d: path.correct(build_window(d, ends, skew_s=skew_s)) for d, path in paths.items()}
            looked += [windows] if all(w.sent for w in windows.values()) else []
    ramp = {d: measured_windows(plan, history, d, (Phase.RAMP,)) for d in paths}
    most = {d: max(w.sent_pps for w in (*ramp[d], *(windows[d] for windows in looked))) for d in paths if looked}
    return [
        Look({d: _part(window, plan.offer(d).target_pps, most[d], width) for d, window in windows.items()})
        for windows in looked
    ]


def _part(window: Window, target_pps: float, most_pps: float, width: float) -> LookPart:
    """most_pps: the highest rate sent in any window."""
    asked, sent = window.asked_pps / target_pps, window.sent_pps / target_pps
    doubt = width / 2 + window.skew / window.sent  # as far as the counters can tell
    near = (1 - doubt) * asked <= sent <= (1 + doubt) * asked
    return LookPart(window, asked, asked if near else sent, misses(window.asked_pps, most_pps))


def find_standing(looks: Sequence[Look]) -> list[Look]:
    """Looks in which the DUT stood still: at this rate or a higher one it forwarded frames in a later look."""
    return [
        look
        for at, look in enumerate(looks)
        if look.loss > STOOD and any(later.share >= look.share and later.loss < STOOD for later in looks[at + 1 :])
    ]


def seek(goals: Sequence[float], width: float, group: DirectionGroup, looks: Sequence[Look]) -> GroupKnees:
    """Find each goal's knee from these looks, and the share to look at next."""
    knees = tuple(_knee(group.bracket(goal), goal, looks, width) for goal in goals)
    open_ends = [knee.next_share for knee in knees if knee.next_share is not None]
    rest = min((knee.low for knee in knees if knee.low is not None), default=group.low)
    share = open_ends[len(looks) % len(open_ends)] if open_ends else rest
    # The generator will send as much of what is asked for as it did in the look nearest to it.
    reached = [look for look in looks if not look.unreached]
    nearest = min(reached, key=lambda look: abs(look.share - share), default=None)
    kept = nearest.share / nearest.asked if nearest else 1.0
    return GroupKnees(knees, min(1.0, share / kept), not open_ends)


def _knee(bracket: Bracket, goal: float, looks: Sequence[Look], width: float) -> GoalKnee:
    tried = [LookResult(look.share, look.lossy(goal)) for look in looks]
    belief = believe(bracket, tried, width)
    middle = belief.median
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
    steady = all(look.lossy for look in tried if look.share > min(o.share for o in tried if o.lossy))
    sure = belief.between(low, high)
    if sure >= (STEADY if steady else SURE) and high / low - 1 <= width * 1.001:
        next_share = None
    if steady:
        return GoalKnee(goal, middle, low, high, (low, high), sure, next_share)
    least, most = (belief.quantile((1 + sign * STATED) / 2) for sign in (-1, 1))
    return GoalKnee(goal, middle, low, high, (min(low, least), max(high, most)), STATED, next_share)


def _ends(tried: Sequence[LookResult], belief: Belief, width: float) -> tuple[float | None, float | None]:
    """The pair of a good and a lossy rate within the width that most probably holds the knee; else the nearest ones."""
    middle = belief.median
    good = sorted((look.share for look in tried if not look.lossy and look.share <= middle), reverse=True)
    lossy = sorted(look.share for look in tried if look.lossy and look.share >= middle)
    near = [(low, high) for low in good for high in lossy if high / low - 1 <= width * 1.001]
    if near:
        return max(near, key=lambda pair: belief.between(*pair))
    return (good[0] if good else None), (lossy[0] if lossy else None)


def _next_share(belief: Belief, tried: Sequence[LookResult], width: float) -> float:
    """The end of an interval around the median beyond which the knee more probably lies; else the less tried end."""
    step = log(1 + width) / (2 * HALF)
    at = round(log(min(belief.median, 1.0)) / step)
    low, high = exp((at - HALF) * step), exp((at + HALF) * step)
    if high >= 1.0:
        low, high = min(low, exp(-2 * HALF * step)), 1.0
    below, above = belief.below(low), 1 - belief.below(high)
    if max(below, above) > (1 - SURE) / 2:
        return low if below >= above else high
    good = sum(low * (1 - AT_ONCE) <= look.share <= belief.median and not look.lossy for look in tried)
    lossy = sum(belief.median <= look.share <= high * (1 + AT_ONCE) and look.lossy for look in tried)
    return low if good <= lossy else high
