"""The knee, searched with the traffic never stopped: a short ramp brackets it, then rates are looked at one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from statistics import median
from typing import ClassVar, NamedTuple

from ..load.plan import MIN_OFFERED_PPS, Direction
from ..load.sample import Phase, Sample
from ..load.windows import RunWindows, Window, last_windows, once
from ..units import format_length, format_pps, format_share
from ..verdict.blame import blame, nothing_came, without_loss
from ..verdict.evidence import STOOD, stalls_of, standing_windows
from ..verdict.parts import NOT_FINISHED, DirectionResult, Goal, Limit, RunWarning, Stall, Verdict
from ..verdict.path import find_path
from .analysis import FAR_LOWER, TRIALS_LOWER, next_trial
from .base import LoadStep, Stage, Strategy
from .looks import (
    LOST_IN_RAMP,
    PATIENCE,
    GoalKnee,
    GroupKnees,
    Look,
    find_groups,
    is_lossy,
    look_at,
    look_goes_on,
    seek,
    seen_by_ramp,
    windows_of_looks,
)

MOST_LOOKS = 36
"""Looks at directions together after which a search ends, however wide its intervals still are. A goal takes a third of
them on a steady DUT (benchmarks/search.py)."""
MORE = 1.02
"""A DUT that carried this many times the interval's upper end in the ramp is not as it was then: noise of up to 3 %
makes 1.011 of it at most (test_search_faults.py)."""


@dataclass(frozen=True)
class Search(Strategy):
    """A ramp to the first sustained loss, then looks at rates until every goal's interval is narrow enough."""

    warmup_s: float = 2.0
    sample_s: float = 0.5
    window_s: float = 0.5
    bracket_s: float = 10.0  # ramp from zero to the target
    look_s: float = 1.0  # at one rate, counted
    settle_s: float = 0.1  # before a look at another rate, not counted
    width: float = 0.005  # to which each goal's interval is narrowed, as a share of the rate
    goals: tuple[float, ...] = ()  # shares of loss, each with a throughput of its own; the first is the loss threshold
    confirm_s: float = 5.0  # hold of the first goal's lower ends, after a drain; 0: none
    soak_s: float = 0.0  # the same where it is longer, for a DUT that slows when it is hot

    kind: ClassVar[str] = "search"
    seeks_knee: ClassVar[bool] = True
    curve_phases: ClassVar[tuple[Phase, ...]] = (Phase.RAMP, Phase.SEARCH)
    settles: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "goals", self.require_goals(self.goals, self.width))

    @cached_property
    def schedule(self) -> tuple[Stage, ...]:
        """Schedule a ramp to half of the target, as many looks as a steady DUT needs, and a trial that passes."""
        stages = Stage(Phase.WARMUP, self.warmup_s), Stage(Phase.RAMP, self.bracket_s / 2)
        looks = range(1, MOST_LOOKS // 3 * len(self.goals) + 1)
        searching = (Stage(Phase.SEARCH, self.look_s + self.settle_s, trial) for trial in looks)
        confirming = Stage(Phase.CONFIRM, self.held_s, 1), Stage(Phase.CONFIRM_DRAIN, self.drain_s, 1)
        return *stages, *searching, Stage(Phase.DRAIN, self.drain_s), *(confirming if self.held_s else ())

    @property
    def finest(self) -> float:
        """The smallest share that counts, of the rate or of lost frames."""
        return min(self.width, *(goal for goal in self.goals if goal), 1.0)

    @property
    def held_s(self) -> float:
        """Length of a trial of the rate found."""
        return max(self.confirm_s, self.soak_s)

    def step_pps(self, direction: Direction) -> float:
        return self.offer(direction).target_pps * max(self.window_s, self.sample_s) / self.bracket_s

    def sending_s(self, step: LoadStep) -> float:
        if step.phase is Phase.CONFIRM:
            return super().sending_s(step)
        return self.warmup_s + self.bracket_s + 2 * MOST_LOOKS * (PATIENCE * self.look_s + self.settle_s)

    def words(self, target: str) -> Iterator[str]:
        yield f"a ramp towards {target} in {format_length(self.bracket_s)} until frames are lost"
        goals = " and ".join(f"{100 * goal:g} %" for goal in self.goals)
        yield f"a search for the rate at {goals} loss, to within {100 * self.width:g} %"
        if self.held_s:
            yield f"{'soak' if self.soak_s > self.confirm_s else 'confirm'} {format_length(self.held_s)}"

    @property
    def rule(self) -> str:
        return f"a look of {self.look_s:g} s is bad if it loses more than the goal"

    def next_step(self, history: Sequence[Sample]) -> LoadStep | None:
        last = history[-1]
        if last.phase is Phase.RAMP:
            begun_s = next(s.t_s for s in reversed(history) if s.phase is Phase.WARMUP)
            at_target = last.t_s - begun_s >= self.bracket_s - 1e-6
            # Where nothing comes through the DUT may stand still for a while: higher rates will show it.
            stands = any(w.blank for d in self.directions for w in last_windows(self, history, d, 1))
            measured, strictest = RunWindows(self, history), min(self.goals)
            seen = (seen_by_ramp(strictest, measured, direction) for direction in self.directions)
            over = at_target or (not stands and all(belief.quantile(0.5) < 1 for belief in seen))
            return self._next_look(history) if over else self._rise(history, begun_s)
        if last.phase is Phase.SEARCH:
            if look_goes_on(self.look_s, self.finest, RunWindows(self, history)):
                return LoadStep(Phase.SEARCH, last.asked_pps, last.t_s + self.look_s, last.trial)
            return self._next_look(history)
        if (step := self.keep_rates(history)) is not None:
            return step
        if last.phase is Phase.WARMUP:
            return self._rise(history, last.t_s)
        if last.phase is Phase.CONFIRM:
            return self.drain(history)
        # Frames of a lossy look that still wait in queues would make up for some that the trial loses.
        return next_trial(self, history, self._tries, always=True)

    def _tries(self, verdict: Verdict) -> tuple[float, ...]:
        """The rates of a direction's trials: the lower end of its interval, and below."""
        lower = 0.0, self.width, 2 * self.width, max(3 * self.width, TRIALS_LOWER[-1])
        far = (FAR_LOWER,) if self.loss_threshold and lower[-1] < FAR_LOWER else ()
        return tuple(verdict.confirm_pps * (1 - share) for share in (*lower, *far))

    def _rise(self, history: Sequence[Sample], begun_s: float) -> LoadStep:
        until_s = self._until(begun_s, self.bracket_s, history[-1].t_s)
        share = min(1.0, (until_s - begun_s) / self.bracket_s)
        return LoadStep(Phase.RAMP, self.rates_at(dict.fromkeys(self.directions, share)), until_s)

    def _next_look(self, history: Sequence[Sample]) -> LoadStep:
        """Look at the next rates; stop sending when every direction's knees are found."""
        last, trial, measured = history[-1], history[-1].trial + 1, RunWindows(self, history)
        known = {direction: searched(measured, direction) for direction in self.directions}
        if all(search.group.done for search in known.values()) or trial > self._most_looks(measured):
            return self.drain(history)
        if any(search.stands for search in known.values()):
            return LoadStep(Phase.SEARCH, last.asked_pps, last.t_s + self.look_s, trial)
        rates = self.rates_at({direction: search.group.next_share for direction, search in known.items()})
        # Frames of the previous rate must have come back before a look at another one begins.
        settle_s = self.settle_s + max(measured.latency_s(direction) for direction in self.directions)
        length_s = self.look_s if rates == last.asked_pps else settle_s
        return LoadStep(Phase.SEARCH, rates, last.t_s + length_s, trial)

    def conclude(self, history: RunWindows, direction: Direction) -> Verdict:
        """Find the first goal's knee; where the DUT did not lose the frames, the rate carried."""
        known = searched(history, direction)
        looks, knees = known.looks, known.group.knees
        if not looks:
            return Verdict(Limit.NONE, ("the run ended before it looked at any rate",))
        target, path = self.offer(direction).target_pps, find_path(history, direction)
        first, *others = (_goal(knee, looks, target) for knee in knees)
        goals = (first, *(goal if goal.loss else goal.carried for goal in others))
        loss, windows = self.goals[0], [look.windows[0] for look in looks]
        carried = max((w.sent_pps for w in windows if not is_lossy(w, loss)), default=0.0)
        lossy_from = min((w.sent_pps for w in windows if is_lossy(w, loss)), default=None)
        bad = [look.windows[0] for look in looks if look.lossy(loss) or look.unreached]
        if not bad:
            return without_loss(self, windows, goals, carried)
        ramp = [path.correct(w) for w in history.judged(direction)]
        since_s = min([bad[0].begin_s, *(w.begin_s for w in ramp if w.is_bad(max(loss, LOST_IN_RAMP)))])
        deciding = self._deciding(looks, knees[0])
        limit, reasons = blame(self, deciding)
        if limit is not Limit.DUT:
            bounds = tuple(goal.carried for goal in goals)
            return Verdict(limit, reasons, carried, None, None, carried, lossy_from, since_s, bounds)
        least = [w for w in bad if w.asked_pps <= MIN_OFFERED_PPS]
        if first.low_pps is None and least:
            share, pps = sum(w.lost for w in least) / sum(w.sent for w in least), format_pps(MIN_OFFERED_PPS)
            reason = f"{format_share(share)} of the frames were lost even at {pps}, the lowest rate that is offered"
            return Verdict(Limit.UNKNOWN, (f"{reason}: look for what loses frames on the path",), 0.0)
        if 2 * sum(w.blank for w in deciding) > len(deciding) and _stopped_once([*ramp, *windows]):
            reason = nothing_came(min(w.sent_pps for w in deciding if w.blank))
            return Verdict(Limit.UNKNOWN, (reason,), carried)
        # The interval of a DUT that varies may end beyond every rate that was offered.
        ends, low, high = (first.low_pps, first.high_pps), knees[0].low, knees[0].high
        offered = low and low * target, high * target if high else lossy_from
        return Verdict(limit, reasons, first.maximum_pps, *ends, *offered, since_s, goals)

    def warnings(self, history: RunWindows, results: Sequence[DirectionResult]) -> Iterator[RunWarning]:
        """Report intervals that are wider than asked for when all looks are used up, or below the ramp's rates."""
        looked = max((sample.trial for sample in history.samples if sample.phase is Phase.SEARCH), default=0)
        for direction in self.directions if looked >= self._most_looks(history) else ():
            knees = searched(history, direction).group.knees
            if losses := " and ".join(f"{100 * knee.goal:g} %" for knee in knees if knee.next_share is not None):
                text = f"{direction}: {looked} looks did not find the rate at a loss of {losses} to within "
                text += f"{100 * self.width:g} %: it varies by more than that; use a larger --width"
                yield RunWarning(NOT_FINISHED, text)
        for result in results:
            # Frames that may be on their way, or hidden by the ports' skew, are no sign that none was lost.
            ramp = map(find_path(history, result.direction).correct, history.judged(result.direction))
            carried = [w.sent_pps for w in ramp if w.lost + w.skew <= self.goals[0] * w.sent]
            most_pps = max(carried, default=0.0)
            if result.limit is Limit.DUT and result.high_pps and most_pps > MORE * result.high_pps:
                text = f"{result.direction}: {format_pps(most_pps)} were carried in the ramp, at no more loss: the DUT "
                text += "slows down, polices the traffic, or carries less once it is overloaded"
                yield RunWarning("carried-more", text)

    def _deciding(self, looks: Sequence[Look], knee: GoalKnee) -> list[Window]:
        """The windows at the interval's upper end in which frames were lost, or not sent."""
        top = knee.high * (1 + self.width) if knee.high is not None else 1.0
        lossy = [look for look in looks if look.lossy(knee.goal) or look.unreached]
        return [look.windows[0] for look in lossy if look.share <= top] or [lossy[-1].windows[0]]

    def find_stalls(self, measured: RunWindows, direction: Direction) -> tuple[Stall, ...]:
        """Times in which the DUT stood still, in ramp and looks."""
        return tuple(stalls_of(direction, searched(measured, direction).standing, self.look_s))

    def _most_looks(self, measured: RunWindows) -> int:
        """Looks after which the search ends: twice as many where directions come to be searched one by one."""
        one_by_one = any(searched(measured, direction).one_by_one for direction in self.directions)
        return MOST_LOOKS * (2 if one_by_one else 1)


class Searched(NamedTuple):
    """A direction in a search."""

    looks: Sequence[Look]  # in which the DUT did not stand still
    standing: Sequence[Window]  # in which it did, of ramp and looks
    group: GroupKnees
    one_by_one: bool  # its group is no longer searched together
    stands: bool  # the DUT may only stand still for now: nothing came through in a late look, little in others


@once
def searched(measured: RunWindows, direction: Direction) -> Searched:
    """The direction's looks and knees: its group's while that is searched together, then those of its own loss.

    A direction whose own knees are found by then keeps them: at higher rates of the others it may lose more.
    """
    plan = measured.plan
    assert isinstance(plan, Search)
    seen, directions = next(group for group in find_groups(min(plan.goals), measured) if direction in group[1])
    every = windows_of_looks(plan.look_s, plan.finest, directions, measured)
    windows = {d: [*measured.judged(d), *(by[d] for by in every)] for d in directions}
    standing = {d: standing_windows(windows[d]) for d in directions}
    most_pps = {d: max((w.sent_pps for w in windows[d]), default=0.0) for d in directions}
    looks = [by for by in every if not any(window in standing[d] for d, window in by.items())]
    joined = [look_at(by, plan, most_pps, plan.width) for by in looks]
    own = [look_at({direction: by[direction]}, plan, most_pps, plan.width) for by in looks]
    together = list(takewhile(lambda look: look.together, joined))
    knees = seek(plan.goals, plan.width, seen, together)
    if len(directions) > 1 and knees.done:
        knees = seek(plan.goals, plan.width, seen, own[: len(together)])
        if not knees.done:
            knees = seek(plan.goals, plan.width, seen, own)
    late = (by.values() for by in reversed(every[-PATIENCE:]))
    row = list(takewhile(lambda windows: any(w.lost > STOOD * w.sent for w in windows), late))
    stands = len(row) < PATIENCE and any(w.blank for windows in row for w in windows)
    return Searched(own, standing[direction], knees, len(together) < len(joined), stands)


def _stopped_once(windows: Sequence[Window]) -> bool:
    """Test whether nothing came through for one time only, as of a DUT that restarts, and not again at such a rate."""
    blank = [window.blank for window in windows]
    first, last = blank.index(True), len(blank) - blank[::-1].index(True)
    return all(blank[first:last])


def _goal(knee: GoalKnee, looks: Sequence[Look], target_pps: float) -> Goal:
    """A group's knee as one direction's rates."""
    at_low = [look.windows[0].received_pps for look in looks if look.share == knee.low]
    low, high = (None if share is None else min(1.0, share) * target_pps for share in knee.between)
    if low is not None:  # a look is lossy beyond the ports' skew, which may have hidden as much again
        hidden = max(look.windows[0].skew / look.windows[0].sent for look in looks)
        low *= max(0.0, 1 - 2 * hidden)
    return Goal(knee.goal, knee.estimate * target_pps, low, high, knee.sure, median(at_low) if at_low else None)
