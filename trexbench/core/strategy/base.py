"""The interface of a strategy: what to offer next, what the samples say, and how long the run still takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from math import ceil
from typing import ClassVar

from ..load.plan import Direction, Plan, require
from ..load.sample import CONFIRM_PHASES, LATENCY_PHASES, Phase, Sample
from ..load.windows import RunWindows, Window, measured_windows
from ..units import format_share
from ..verdict.evidence import find_evidence
from ..verdict.parts import DirectionResult, RunWarning, Stall, Verdict

Rates = Mapping[Direction, float]
"""Frames per second to offer in each direction; empty: send nothing."""


@dataclass(frozen=True)
class LoadStep:
    """Rates to offer until a sample is taken at ``until_s`` on the run's clock."""

    phase: Phase
    offered_pps: Rates
    until_s: float
    trial: int = 0


@dataclass(frozen=True)
class Stage:
    """A scheduled phase (and trial), and its length."""

    phase: Phase
    length_s: float
    trial: int = 0


class Strategy(Plan, ABC):
    """A plan that decides the next step, as a pure function of the samples so far; the first of them is the baseline.

    A strategy is a frozen dataclass derived from this one, with an entry in core.strategy.kinds.
    """

    kind: ClassVar[str]  # name in documents, in suites and on the command line
    curve_phases: ClassVar[tuple[Phase, ...]]  # their windows are the curve of received over offered rate
    settles: ClassVar[bool] = False  # the first sample at each rate of a search only lets that rate settle

    @classmethod
    def check_installed(cls) -> None:
        """Raise ConfigError where a library is missing that only this strategy needs."""

    @abstractmethod
    def next_step(self, history: Sequence[Sample]) -> LoadStep | None:
        """The step after these samples; None when the run is complete."""

    @abstractmethod
    def conclude(self, history: RunWindows, direction: Direction) -> Verdict:
        """Find the limit of this direction, and its rate; the samples may end anywhere in the run."""

    def find_stalls(self, measured: RunWindows, direction: Direction) -> tuple[Stall, ...]:
        """Sustained loss that makes no verdict, as its rate was carried later."""
        return find_evidence(measured, direction).stalls

    def warnings(self, history: RunWindows, results: Sequence[DirectionResult]) -> Iterator[RunWarning]:
        """Yield the warnings that only this strategy has."""
        return iter(())

    def hints(self, results: Sequence[DirectionResult]) -> Iterator[str]:
        """Yield options of this strategy that would show more of these results."""
        return iter(())

    @cached_property
    @abstractmethod
    def schedule(self) -> tuple[Stage, ...]:
        """Expected stages in order: loss sets in, and the first trial confirms the rate before it."""

    @abstractmethod
    def words(self, target: str) -> Iterator[str]:
        """Describe the load after the warm-up, for the screen; target: the highest rates, in words."""

    @property
    def goals(self) -> tuple[float, ...]:
        """Shares of loss, each with a throughput of its own; the first is the loss threshold."""
        return (self.loss_threshold,)

    @property
    def rule(self) -> str:
        """Which loss counts, for the screen."""
        window_s = max(self.window_s, self.sample_s)
        loss = f"loss > {100 * self.loss_threshold:g} %"
        return f"saturated: {loss} in {self.windows} consecutive windows of {window_s:g} s"

    @property
    def duration_s(self) -> float:
        """Expected length of the whole run."""
        return sum(stage.length_s for stage in self.schedule)

    def time_left(self, phase: Phase, trial: int, in_phase_s: float) -> float:
        """Seconds to the expected end of the run, ``in_phase_s`` after the beginning of this phase."""
        at = self._stage_at(phase, trial)
        later = sum(stage.length_s for stage in self.schedule[at + 1 :])
        return max(0.0, self.schedule[at].length_s - in_phase_s if at >= 0 else 0.0) + later

    def sending_s(self, step: LoadStep) -> float:
        """Time for which the ports send without a break, if they start with this step, the first of its stage."""
        ahead = self.schedule[max(0, self._stage_at(step.phase, step.trial)) :]
        return sum(stage.length_s for stage in takewhile(lambda stage: stage.phase not in _SILENT, ahead))

    def length_s(self, phase: Phase) -> float:
        """Length of one stage of this phase; 0 where the plan has none."""
        return next((stage.length_s for stage in self.schedule if stage.phase is phase), 0.0)

    def without_latency(self) -> Strategy:
        """Return this plan for a generator that cannot time frames."""
        return self

    def _stage_at(self, phase: Phase, trial: int) -> int:
        """Index in the schedule, -1 before it begins; a trial beyond the expected ones counts as the last expected."""
        stages = [at for at, stage in enumerate(self.schedule) if stage.phase is phase]
        return next((at for at in stages if self.schedule[at].trial >= trial), stages[-1] if stages else -1)

    # used by the strategies

    def require_goals(self, goals: tuple[float, ...], width: float) -> tuple[float, ...]:
        """Return these goals, or the loss threshold if there are none; ConfigError where no search can find them."""
        require(0.0005 <= width <= 0.2, f"--width of {format_share(width)}", "use 0.05% to 20%")
        require(len(goals) <= 5, f"{len(goals)} goals", "name 1 to 5 shares")
        goals = goals or (self.loss_threshold,)
        for goal in goals:
            require(0 <= goal < 0.5, f"--loss of {100 * goal:g} %", "write shares from 0 to below 50%")
        return goals

    def begin(self, phase: Phase, history: Sequence[Sample], rates: Rates, trial: int = 0) -> LoadStep:
        """Begin a phase that holds these rates: its first step."""
        now_s = history[-1].t_s
        return LoadStep(phase, rates, self._until(now_s, self.length_s(phase), now_s), trial)

    def keep_rates(self, history: Sequence[Sample], length_s: float | None = None) -> LoadStep | None:
        """The next step of a phase that holds its rates, or the warm-up's first; None when it is over or silent."""
        last = history[-1]
        if last.phase is Phase.BASELINE:
            return self.begin(Phase.WARMUP, history, {offer.direction: offer.warmup_pps for offer in self.offers})
        until_s = self.go_on(history, length_s) if last.asked_pps else None
        return None if until_s is None else LoadStep(last.phase, last.asked_pps, until_s, last.trial)

    def go_on(self, history: Sequence[Sample], length_s: float | None = None) -> float | None:
        """Time of the current phase's next sample; None when the phase, of this length, is over."""
        last, begun_s = history[-1], phase_begun(history)
        length_s, elapsed_s = self.length_s(last.phase) if length_s is None else length_s, last.t_s - begun_s
        # Times are differences of floats: less than a microsecond left means over.
        if length_s - elapsed_s > 1e-6 and round(elapsed_s / self.sample_s) < self._ticks(length_s):
            return self._until(begun_s, length_s, last.t_s)
        return None

    def drain(self, history: Sequence[Sample], phase: Phase | None = None) -> LoadStep:
        """Send nothing until the last frame has come back. phase: in place of the drain of the current phase."""
        last = history[-1]
        return LoadStep(phase or _DRAINS.get(last.phase, Phase.DRAIN), {}, last.t_s + self.drain_s, last.trial)

    def _ticks(self, length_s: float) -> int:
        """Number of samples in a phase: a remainder of half a sample or less is part of the last one."""
        return max(1, ceil(length_s / self.sample_s - 0.5 - 1e-9))

    def _until(self, begun_s: float, length_s: float, now_s: float) -> float:
        """Time of the next sample: on a grid from the phase's beginning, so that lateness does not add up."""
        tick = round((now_s - begun_s) / self.sample_s) + 1
        return begun_s + (length_s if tick >= self._ticks(length_s) else tick * self.sample_s)

    def targets(self) -> Rates:
        return {offer.direction: offer.target_pps for offer in self.offers}

    def rates_at(self, shares: Mapping[Direction, float]) -> Rates:
        """Rates in frames per second for shares of the targets."""
        return {d: self.offer(d).within(share * self.offer(d).target_pps) for d, share in shares.items()}


def phase_begun(history: Sequence[Sample]) -> float:
    """Time at which the last sample's phase (and trial) began, which is that of the sample before its first one."""
    return history[max(0, phase_first(history) - 1)].t_s


def phase_first(history: Sequence[Sample]) -> int:
    """Index of the first sample of the last sample's phase (and trial), which no earlier phase has in common."""
    phase, trial = history[-1].phase, history[-1].trial
    return bisect_left(history, True, key=lambda sample: sample.phase is phase and sample.trial == trial)


def curve_windows(plan: Strategy, samples: Sequence[Sample], direction: Direction) -> list[Window]:
    """The windows of the curve of received over offered rate, sorted by the rate sent, and those of the hold."""
    curve = measured_windows(plan, samples, direction, plan.curve_phases)
    hold = () if Phase.HOLD in plan.curve_phases else measured_windows(plan, samples, direction, (Phase.HOLD,))
    return [*sorted(curve, key=lambda w: w.sent_pps), *hold]


_DRAINS = dict((CONFIRM_PHASES, LATENCY_PHASES))
_SILENT = (Phase.DRAIN, *_DRAINS.values())
