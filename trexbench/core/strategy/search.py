"""The knee, searched with the traffic never stopped: a short ramp brackets it, then rates are looked at one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import ClassVar

from ..load.plan import MIN_OFFERED_PPS, Direction, require
from ..load.sample import Phase, Sample
from ..load.windows import Measured, Window
from ..units import format_duration, format_pps, format_share
from ..verdict.blame import blame, limit_without_loss, misses
from ..verdict.model import Goal, Limit, Verdict
from .base import LoadStep, Stage, Strategy
from .confirm import next_trial
from .looks import LOOKS, LOST_IN_RAMP, Group, Knee, Look, find_groups, is_lossy, looks_of, seek

MOST_LOOKS = 40
"""A search ends after so many, however wide its intervals still are."""
FEWEST_LOOKS = 6
"""So many looks does a goal take where the DUT is steady."""


@dataclass(frozen=True)
class Search(Strategy):
    """A ramp that ends at the first loss that lasts, then looks at rates until every goal's interval is narrow enough.

    goals: shares of loss, each with a knee of its own; the first is the loss threshold. width: of an interval, as a
    share of the rate. bracket_s: of a ramp from zero to the target. look_s: how long a rate is looked at once;
    settle_s: how long it is sent before that, after a change. confirm_s: how long the first goal's lower ends are held
    at last, after a drain; 0: not at all.
    """

    warmup_s: float = 2.0
    sample_s: float = 0.5
    window_s: float = 0.5
    bracket_s: float = 10.0
    look_s: float = 1.0
    settle_s: float = 0.1
    width: float = 0.005
    goals: tuple[float, ...] = ()
    confirm_s: float = 5.0

    kind: ClassVar[str] = "search"
    suffix: ClassVar[str] = "search"
    seeks_knee: ClassVar[bool] = True
    curve_phases: ClassVar[tuple[Phase, ...]] = (Phase.RAMP, Phase.SEARCH)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0.0005 <= self.width <= 0.2, f"--width of {format_share(self.width)}", "use 0.05% to 20%")
        if not self.goals:
            object.__setattr__(self, "goals", (self.loss_threshold,))
        require(len(self.goals) <= 5, f"{len(self.goals)} goals", "name 1 to 5 shares")
        require(all(0 <= goal < 0.5 for goal in self.goals), "a goal of --loss", "a share lies between 0 and 50%")

    @cached_property
    def schedule(self) -> tuple[Stage, ...]:
        """The ramp to half of the target, as many looks as a steady DUT needs, and a trial that passes."""
        stages = Stage(Phase.WARMUP, self.warmup_s), Stage(Phase.RAMP, self.bracket_s / 2)
        looks = range(1, FEWEST_LOOKS * len(self.goals) + 1)
        searching = (Stage(Phase.SEARCH, self.look_s + self.settle_s, trial) for trial in looks)
        confirming = Stage(Phase.CONFIRM, self.confirm_s, 1), Stage(Phase.CONFIRM_DRAIN, self.drain_s, 1)
        return *stages, *searching, Stage(Phase.DRAIN, self.drain_s), *(confirming if self.confirm_s else ())

    def step_pps(self, direction: Direction) -> float:
        return self.offer(direction).target_pps * max(self.window_s, self.sample_s) / self.bracket_s

    def sending_s(self, step: LoadStep) -> float:
        if step.phase is Phase.CONFIRM:
            return super().sending_s(step)
        return self.warmup_s + self.bracket_s + MOST_LOOKS * (self.look_s + self.settle_s)

    def words(self, target: str) -> Iterator[str]:
        yield f"a ramp towards {target} in {format_duration(self.bracket_s)} until frames are lost"
        goals = ", ".join(format_share(goal) for goal in self.goals)
        yield f"a search for the rate at {goals} loss, to {format_share(self.width)}"
        if self.confirm_s:
            yield f"confirm {format_duration(self.confirm_s)}"

    def next_step(self, history: Sequence[Sample]) -> LoadStep | None:
        last = history[-1]
        if last.phase is Phase.BASELINE:
            return self.begin(Phase.WARMUP, history, self.warmup_rates())
        if last.phase is Phase.WARMUP:
            if (until_s := self.go_on(history)) is not None:
                return LoadStep(last.phase, last.asked_pps, until_s)
            return self._rise(history, last.t_s)
        if last.phase is Phase.RAMP:
            begun_s = next(s.t_s for s in reversed(history) if s.phase is Phase.WARMUP)
            at_target = last.t_s - begun_s >= self.bracket_s - 1e-6
            over = at_target or all(group.bracketed for group in self._groups(history))
            return self._next_look(history) if over else self._rise(history, begun_s)
        if last.phase is Phase.SEARCH:
            settling = last.asked_pps != history[-2].asked_pps
            if settling:
                return LoadStep(Phase.SEARCH, last.asked_pps, last.t_s + self.look_s, last.trial)
            return self._next_look(history)
        if last.phase is Phase.CONFIRM:
            until_s = self.go_on(history)
            step = None if until_s is None else LoadStep(last.phase, last.asked_pps, until_s, last.trial)
            return step or self.drain(Phase.CONFIRM_DRAIN, history)
        # Frames of a lossy look that still wait in queues would stand in for others that the trial loses.
        return next_trial(self, history, self.width, always=True)

    def _rise(self, history: Sequence[Sample], begun_s: float) -> LoadStep:
        until_s = self._until(begun_s, self.bracket_s, history[-1].t_s)
        return LoadStep(
            Phase.RAMP, self._rates(min(1.0, (until_s - begun_s) / self.bracket_s), self.directions), until_s
        )

    def _rates(self, share: float, directions: Iterable[Direction]) -> dict[Direction, float]:
        return {one: max(MIN_OFFERED_PPS, share * self.offer(one).target_pps) for one in directions}

    def _next_look(self, history: Sequence[Sample]) -> LoadStep:
        """Look at the next rates; stop sending when every group has found its knees."""
        last, trial = history[-1], history[-1].trial + 1
        groups = self._groups(history)
        found = [seek(self.goals, self.width, one, looks_of(self, self.look_s, one, history)) for one in groups]
        if all(one.done for one in found) or trial > MOST_LOOKS:
            return self.drain(Phase.DRAIN, history)
        rates: dict[Direction, float] = {}
        for group, one in zip(groups, found, strict=True):
            rates |= self._rates(one.next_share, group.directions)
        length_s = self.look_s if rates == last.asked_pps else self.settle_s
        return LoadStep(Phase.SEARCH, rates, last.t_s + length_s, trial)

    def conclude(self, history: Measured, direction: Direction) -> Verdict:
        """The first goal's knee; where the DUT is not what lost the frames, the rate carried."""
        samples = history.samples
        group = next(group for group in self._groups(samples) if direction in group.directions)
        looks = looks_of(self, self.look_s, group, samples)
        if not looks:
            return Verdict(Limit.NONE, ("the run ended before it looked at any rate",))
        knees = seek(self.goals, self.width, group, looks).knees
        goals = tuple(_goal(knee, looks, direction, self.offer(direction).target_pps) for knee in knees)
        loss, windows = self.goals[0], [look.windows[direction] for look in looks]
        carried = max((w.sent_pps for w, look in zip(windows, looks, strict=True) if not look.lossy(loss)), default=0.0)
        bad = [w for w, look in zip(windows, looks, strict=True) if look.lossy(loss)]
        if not bad:
            limit, reasons = limit_without_loss(self, windows, windows[-LOOKS:])
            most = f"no loss above {format_share(loss)} up to {format_pps(carried)}, the most that was offered"
            return Verdict(limit, reasons or (most,), carried, last_good_pps=carried, goals=goals)
        since_s, lossy_from = self._loss_begun(history, direction, bad[0]), min(w.sent_pps for w in bad)
        limit, reasons = blame(self, self._deciding(looks, knees[0], direction))
        if limit is not Limit.DUT:
            return Verdict(limit, reasons, carried, None, None, carried, lossy_from, since_s, goals)
        if not any(is_lossy(w, loss) for w in bad):
            other = ("this direction lost nothing at the rates at which another did",)
            return Verdict(Limit.NONE, other, carried, last_good_pps=carried, goals=goals)
        first = goals[0]
        ends = first.low_pps, first.high_pps
        return Verdict(limit, reasons, first.maximum_pps, *ends, first.low_pps, ends[1] or lossy_from, since_s, goals)

    def _deciding(self, looks: Sequence[Look], knee: Knee, direction: Direction) -> list[Window]:
        """The lossy windows at the interval's upper end; only those in which all was sent, if they are enough."""
        top = knee.high * (1 + self.width) if knee.high is not None else 1.0
        lossy = [look for look in looks if look.lossy(knee.goal)]
        bad = [look.windows[direction] for look in lossy if look.share <= top] or [lossy[-1].windows[direction]]
        sent = [w for w in bad if is_lossy(w, knee.goal) and not misses(w.asked_pps, w.sent_pps)]
        return sent if len(sent) >= LOOKS else bad

    def _groups(self, history: Sequence[Sample]) -> tuple[Group, ...]:
        return find_groups(self, min(self.goals), history)

    def _loss_begun(self, history: Measured, direction: Direction, first_bad: Window) -> float:
        """When frames were lost first: in the ramp, where that saw it."""
        lossy = (w.begin_s for w in history.judged(direction) if w.is_bad(LOST_IN_RAMP))
        return min([first_bad.begin_s, *lossy])


def _goal(knee: Knee, looks: Sequence[Look], direction: Direction, target_pps: float) -> Goal:
    """A group's knee as one direction's rates."""
    at_low = [look.windows[direction].received_pps for look in looks if look.share == knee.low]
    low, high = (None if share is None else share * target_pps for share in (knee.low, knee.high))
    return Goal(knee.goal, knee.estimate * target_pps, low, high, knee.sure, median(at_low) if at_low else None)
