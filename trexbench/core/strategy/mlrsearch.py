"""FD.io's MLRsearch: its own library chooses the trials; each is sent and drained, and its totals are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple

from ..load.plan import MIN_OFFERED_PPS, Direction, require
from ..load.sample import Phase, Sample, by_trial
from ..load.windows import RunWindows, Window
from ..units import format_length, format_share
from ..verdict.blame import blame, limit_without_loss, misses, without_loss
from ..verdict.parts import Goal, Limit, Verdict
from ..verdict.settle import hold_of
from .base import LoadStep, Stage, Strategy

MISSING = "FD.io's MLRsearch is not installed", "pip install 'trexbench[mlrsearch]'"


class MlrTrial(NamedTuple):
    """One trial: every direction's totals from the silence before it to the silence after it."""

    load_pps: float  # of the first direction
    windows: dict[Direction, Window]  # their rates are those of the sending part

    @property
    def counts(self) -> tuple[int, int, int]:
        """Frames meant to be sent, sent, and lost, of the direction that fared worst."""
        return max((_counts(window) for window in self.windows.values()), key=_loss_ratio)

    def lossy(self, goal: float) -> bool:
        return _loss_ratio(self.counts) > goal


def _counts(window: Window) -> tuple[int, int, int]:
    """Frames meant to be sent, sent, and lost."""
    short = misses(window.asked_pps, window.sent_pps)
    meant = round(window.sent * window.asked_pps / window.sent_pps) if short and window.sent_pps else window.sent
    return meant, window.sent, max(0, window.lost)


def _loss_ratio(counts: tuple[int, int, int]) -> float:
    """Loss ratio as the library defines it: what was not sent is lost, too."""
    meant, sent, lost = counts
    return (lost + meant - sent) / meant if meant else 1.0


Bounds = tuple[float | None, ...]
"""A goal's lower bound, upper bound and conditional throughput, as loads; None where the library has none."""


class MlrOutcome(NamedTuple):
    """The load that the library wants to try next, None when its search is over; and its goals so far."""

    next_load: float | None
    bounds: tuple[Bounds, ...]


@dataclass(frozen=True)
class MlrSearch(Strategy):
    """MLRsearch with CSIT's settings."""

    warmup_s: float = 2.0
    sample_s: float = 0.5
    goals: tuple[float, ...] = ()  # goal loss ratios; the first is the loss threshold
    width: float = 0.005  # goal width, as a share of the load
    trial_s: float = 1.0  # goal final trial duration, of all trials
    sum_s: float = 21.0  # goal duration sum: length of the trials at a load that make it a bound
    exceed: float = 0.5  # goal exceed ratio: a load is an upper bound when a larger share of them lost too much

    kind: ClassVar[str] = "mlrsearch"
    seeks_knee: ClassVar[bool] = True
    curve_phases: ClassVar[tuple[Phase, ...]] = (Phase.SEARCH,)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "goals", self.require_goals(self.goals, self.width))
        require(0 < self.trial_s <= self.sum_s, f"trials of {self.trial_s:g} s", f"use up to {self.sum_s:g} s")
        require(0 <= self.exceed < 1, f"an exceed ratio of {self.exceed:g}", "it lies between 0 and 1")

    @classmethod
    def check_installed(cls) -> None:
        require(find_spec("MLRsearch") is not None, *MISSING)

    @cached_property
    def schedule(self) -> tuple[Stage, ...]:
        """Schedule the trials that a steady DUT needs: two bounds of each goal, and those on the way."""
        count = 20 + 15 * len(self.goals)
        trials = (Stage(Phase.SEARCH, self.trial_s + self.drain_s, number + 1) for number in range(count))
        return Stage(Phase.WARMUP, self.warmup_s), Stage(Phase.SEARCH, self.drain_s), *trials

    def sending_s(self, step: LoadStep) -> float:
        return self.warmup_s if step.phase is Phase.WARMUP else self.trial_s

    def words(self, target: str) -> Iterator[str]:
        goals = " and ".join(f"{100 * goal:g} %" for goal in self.goals)
        length, width = format_length(self.trial_s), f"{100 * self.width:g} %"
        yield f"MLRsearch up to {target}: trials of {length} for the rate at {goals} loss, to within {width}"

    @property
    def rule(self) -> str:
        share = f"{100 * self.exceed:g} %"
        return f"a load is bad if more than {share} of {self.sum_s:g} s of trials lose more than the goal"

    def next_step(self, history: Sequence[Sample]) -> LoadStep | None:
        last = history[-1]
        if (step := self.keep_rates(history, self.trial_s if last.phase is Phase.SEARCH else None)) is not None:
            return step
        if last.asked_pps:
            return self.drain(history, Phase.SEARCH)
        if last.phase is not Phase.SEARCH:
            return None
        outcome = replay(self, tuple(trial.counts for trial in trials_of(self, history)))
        if outcome.next_load is None:
            return None
        share = outcome.next_load / self.offers[0].target_pps
        rates = {offer.direction: share * offer.target_pps for offer in self.offers}
        return LoadStep(Phase.SEARCH, rates, self._until(last.t_s, self.trial_s, last.t_s), last.trial + 1)

    def conclude(self, history: RunWindows, direction: Direction) -> Verdict:
        """Find the first goal's conditional throughput; where the DUT did not lose the frames, the rate carried."""
        trials = trials_of(self, history.samples)
        if not trials:
            return Verdict(Limit.NONE, ("the run ended before its first trial did",))
        if find_spec("MLRsearch") is None:  # a stored run, looked at elsewhere
            return Verdict(Limit.NONE, (": ".join(MISSING),))
        outcome = replay(self, tuple(trial.counts for trial in trials))
        share = self.offer(direction).target_pps / self.offers[0].target_pps
        goals = tuple(_goal(loss, bounds, share) for loss, bounds in zip(self.goals, outcome.bounds, strict=True))
        loss, first, most = self.goals[0], goals[0], outcome.bounds[0][1] or 0.0
        good = [trial.windows[direction] for trial in trials if not trial.lossy(loss)]
        carried = max((w.sent_pps for w in good), default=0.0)
        lossy = [trial for trial in trials if trial.lossy(loss)]
        if not lossy:
            return without_loss(self, good, goals, carried)
        # Trials up to the upper bound made the verdict; far above it the sender may fall short, which limits nothing.
        ceiling = max(most, min(trial.load_pps for trial in lossy)) * (1 + self.width / 10)
        bad = [trial.windows[direction] for trial in lossy if trial.load_pps <= ceiling]
        since_s = min(w.begin_s for w in bad)
        lossy_from = min((w.sent_pps for w in bad if w.lost > loss * w.sent), default=None)
        limit, reasons = blame(self, bad) if any(w.sent for w in bad) else limit_without_loss(self, bad, bad)
        if limit is not Limit.DUT:
            bounds = tuple(_sent(goal, trials, direction) for goal in goals)
            return Verdict(limit, reasons, carried, None, None, carried, lossy_from, since_s, bounds)
        if not any(_loss_ratio(_counts(w)) > loss for w in bad):
            other = ("this direction lost nothing at the rates at which another did",)
            return Verdict(Limit.NONE, other, carried, last_good_pps=carried, goals=goals)
        if outcome.next_load is not None:
            reasons = (*reasons, "the run ended before MLRsearch did")
        if first.low_pps is None:
            none = f"no lower bound: no rate tried stayed within {format_share(loss)}"
            reasons = (f"{none}: look for what loses frames on the path", *reasons)
            return Verdict(Limit.UNKNOWN, reasons, saturated_at_s=since_s, goals=goals)
        ends = first.low_pps, first.high_pps
        return Verdict(limit, reasons, first.maximum_pps, *ends, first.low_pps, ends[1] or lossy_from, since_s, goals)


def trials_of(plan: MlrSearch, history: Sequence[Sample]) -> tuple[MlrTrial, ...]:
    """The trials that were sent and drained, in order; MLRsearch's load is the first direction's rate."""
    trials = []
    for number, indexes in by_trial(history, Phase.SEARCH).items():
        samples = history[indexes[0] - 1 : indexes[-1] + 1]
        if number and indexes[0] and len(samples) > 2 and not samples[-1].asked_pps:
            windows = {d: hold_of(d, samples).window for d in plan.directions}
            trials.append(MlrTrial(samples[1].asked_pps[plan.directions[0]], windows))
    return tuple(trials)


def _goal(loss: float, bounds: Bounds, share: float) -> Goal:
    low, high, throughput = (None if load is None else load * share for load in bounds)
    return Goal(loss, throughput or 0.0, low, high, None, throughput)


def _sent(goal: Goal, trials: Sequence[MlrTrial], direction: Direction) -> Goal:
    """The goal with no more than was sent in a trial that met it: loads are what was asked for."""
    most = max((trial.windows[direction].sent_pps for trial in trials if not trial.lossy(goal.loss)), default=0.0)
    return replace(goal, maximum_pps=min(goal.maximum_pps, most))


class _NotMeasured(Exception):
    """Raised where the library asks for a trial that was not sent yet; its argument is the load."""


class _RecordedTrials:
    """The library's measurer, which answers from the trials sent, in order."""

    def __init__(self, counts: Sequence[tuple[int, int, int]]) -> None:
        self._left = iter(counts)

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        from MLRsearch import MeasurementResult

        if (counts := next(self._left, None)) is None:
            raise _NotMeasured(intended_load)
        meant, sent, lost = counts
        return MeasurementResult(
            intended_duration, intended_load, offered_count=sent, loss_count=lost, intended_count=meant
        )


@lru_cache(maxsize=8)  # every step starts over, and every direction asks
def replay(plan: MlrSearch, counts: tuple[tuple[int, int, int], ...]) -> MlrOutcome:
    """Run the library's search, its trials answered from these counts (MlrTrial.counts)."""
    from MLRsearch import Config, GoalResult, MultipleLossRatioSearch, SearchGoal

    most = plan.offers[0].target_pps
    least = min(most / 2, MIN_OFFERED_PPS * max(most / offer.target_pps for offer in plan.offers))
    wanted = [
        SearchGoal(
            loss_ratio=loss,
            exceed_ratio=plan.exceed,
            relative_width=plan.width,
            initial_trial_duration=plan.trial_s,
            final_trial_duration=plan.trial_s,
            duration_sum=plan.sum_s,
            fail_fast=False,
        )
        for loss in plan.goals
    ]
    # Its time limit would include silence, and its warm-up would be no trial: the run has its own.
    config = Config(goals=wanted, min_load=least, max_load=most, search_duration_max=1e9, warmup_duration=None)
    search, next_load = MultipleLossRatioSearch(config), None
    try:
        search.search(_RecordedTrials(counts), debug=lambda text: None)
    except _NotMeasured as asked:
        next_load = asked.args[0]
    targets = [search.scaling.goal_to_final_target[goal] for goal in wanted]
    results = [GoalResult.from_bounds(search.database.get_relevant_bounds(target)) for target in targets]
    loads = [
        (result.relevant_lower_bound, result.relevant_upper_bound, result.conditional_throughput) for result in results
    ]
    bounds = (tuple(None if load is None else float(load) for load in three) for three in loads)
    return MlrOutcome(next_load, tuple(bounds))
