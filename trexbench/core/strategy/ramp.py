"""The load rises linearly: sustained loss marks the knee. Then that rate is confirmed, and latency measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from typing import ClassVar

from ..load.plan import LATENCY_LOADS, MIN_OFFERED_PPS, Direction, require
from ..load.sample import LATENCY_PHASES, Phase, Sample
from ..load.windows import Measured, Window, last_windows
from ..units import format_duration, format_pps
from ..verdict.blame import blame, limit_without_loss
from ..verdict.knee import find_knee
from ..verdict.model import Limit, Verdict
from .analysis import analyse
from .base import LoadStep, Rates, Stage, Strategy, phase_begun

MAX_TRIALS = 3
"""Confirmation trials after saturation, each at a lower rate than the one before."""
TRIAL_STEP = 0.03
"""Each confirmation trial after the first is lower by this share of the first one's rate."""


@dataclass(frozen=True)
class Ramp(Strategy):
    """A linear ramp, a hold at the target, confirmation, latency.

    ramp_s: from zero to the target. confirm_s: how long the rate found is held after the ramp to confirm it; 0: not at
    all. latency_s: how long each of LATENCY_LOADS is held at the end, with tagged frames; 0: not at all.
    stop_on_saturation: the ramp ends once every direction is saturated.
    """

    ramp_s: float = 600.0
    confirm_s: float = 10.0
    latency_s: float = 0.0
    stop_on_saturation: bool = False

    kind: ClassVar[str] = "ramp"
    suffix: ClassVar[str] = ""
    seeks_knee: ClassVar[bool] = True
    curve_phases: ClassVar[tuple[Phase, ...]] = (Phase.RAMP,)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.latency_s == 0 or self.latency_s >= 2 * self.sample_s,
            f"--latency of {self.latency_s:g} s is too short for a mean",
            f"use at least {2 * self.sample_s:g} s, or 0",
        )
        self.require_length(self.ramp_s, "--ramp-duration")

    def step_pps(self, direction: Direction) -> float:
        return self.offer(direction).target_pps * max(self.window_s, self.sample_s) / self.ramp_s

    @cached_property
    def schedule(self) -> tuple[Stage, ...]:
        stages = [Stage(Phase.WARMUP, self.warmup_s), Stage(Phase.RAMP, self.ramp_s), Stage(Phase.HOLD, self.hold_s)]
        stages.append(Stage(Phase.DRAIN, self.drain_s))
        if self.confirm_s:
            stages += [Stage(Phase.CONFIRM, self.confirm_s, 1), Stage(Phase.CONFIRM_DRAIN, self.drain_s, 1)]
        for load in range(1, len(LATENCY_LOADS) + 1) if self.latency_s else ():
            stages += [Stage(Phase.LATENCY, self.latency_s, load), Stage(Phase.LATENCY_DRAIN, self.drain_s, load)]
        return tuple(stages)

    def next_step(self, history: Sequence[Sample]) -> LoadStep | None:
        last = history[-1]
        if last.phase is Phase.RAMP and self.stop_on_saturation and self._all_saturated(history):
            return self.drain(Phase.DRAIN, history)
        if last.asked_pps and (until_s := self.go_on(history)) is not None:
            rates = self._rates_at(until_s - phase_begun(history)) if last.phase is Phase.RAMP else last.asked_pps
            return LoadStep(last.phase, rates, until_s, last.trial)
        if last.phase is Phase.BASELINE:
            return self.begin(Phase.WARMUP, history, self.warmup_rates())
        if last.phase is Phase.WARMUP:
            step = self.begin(Phase.RAMP, history, {})
            return LoadStep(Phase.RAMP, self._rates_at(step.until_s - last.t_s), step.until_s)
        if last.phase is Phase.RAMP and self.hold_s:
            return self.begin(Phase.HOLD, history, self.targets())
        if last.phase in (Phase.RAMP, Phase.HOLD):
            return self.drain(Phase.DRAIN, history)
        if last.phase is Phase.CONFIRM:
            return self.drain(Phase.CONFIRM_DRAIN, history)
        if last.phase is Phase.LATENCY:
            return self.drain(Phase.LATENCY_DRAIN, history)
        if last.phase is Phase.LATENCY_DRAIN:
            return self._next_load(history, last.trial + 1)
        return self._next_trial(history) or self._next_load(history, 1)

    def conclude(self, history: Measured, direction: Direction) -> Verdict:
        """The knee; without one, the rate carried without loss, and what limited it."""
        windows = history.sending(direction)
        knee = find_knee(self, direction, windows)
        if knee is None:
            return self._unsaturated(windows)
        limit, reasons = blame(self, windows[knee.index : knee.index + self.windows])
        bounds = (knee.last_good_pps, knee.first_bad_pps, windows[knee.index].begin_s)
        if limit is not Limit.DUT:
            return Verdict(limit, reasons, knee.last_good_pps, None, None, *bounds)
        return Verdict(limit, reasons, knee.maximum_pps, *knee.interval_pps, *bounds)

    def words(self, target: str) -> Iterator[str]:
        yield f"ramp to {target} in {format_duration(self.ramp_s)}"
        yield f"hold {format_duration(self.hold_s)}"
        if self.confirm_s:
            yield f"confirm {format_duration(self.confirm_s)}"
        if self.latency_s:
            loads = ", ".join(f"{100 * share:g}" for share in LATENCY_LOADS)
            yield f"latency at {loads} % of the throughput, {format_duration(self.latency_s)} each"

    def without_latency(self) -> Ramp:
        return replace(self, latency_s=0.0)

    def throughput(self, history: Sequence[Sample]) -> float:
        """The rate that all directions carried: confirmed where a trial passed, else what one would confirm; 0 if none."""
        results = analyse(self, [s for s in history if s.phase not in LATENCY_PHASES]).directions
        return min((r.confirm_pps if r.confirmed_pps is None else r.confirmed_pps for r in results), default=0.0)

    def _rates_at(self, elapsed_s: float) -> Rates:
        """The ramp's rates ``elapsed_s`` after its beginning."""
        share = elapsed_s / self.ramp_s
        return {
            offer.direction: min(max(MIN_OFFERED_PPS, share * offer.target_pps), offer.target_pps)
            for offer in self.offers
        }

    def _next_trial(self, history: Sequence[Sample]) -> LoadStep | None:
        """The next confirmation trial: from the lowest rate found downwards; None if none is due."""
        trial = history[-1].trial
        if self.confirm_s == 0 or trial >= MAX_TRIALS:
            return None
        saturated = [r for r in analyse(self, history).directions if r.limit is Limit.DUT]
        if not saturated or (trial and all(r.trials[-1].passed for r in saturated if r.trials)):
            return None
        rate = min(r.confirm_pps for r in saturated) * (1 - TRIAL_STEP * trial)
        if rate < MIN_OFFERED_PPS:
            return None
        return self.begin(Phase.CONFIRM, history, self._everywhere(rate), trial + 1)

    def _next_load(self, history: Sequence[Sample], first: int) -> LoadStep | None:
        """The next load of the latency, from number ``first`` on, that is high enough to be sent evenly."""
        if self.latency_s == 0:
            return None
        throughput = self.throughput(history)
        for load, share in enumerate(LATENCY_LOADS[first - 1 :], first):
            if share * throughput >= MIN_OFFERED_PPS:
                return self.begin(Phase.LATENCY, history, self._everywhere(share * throughput), load)
        return None

    def _everywhere(self, rate_pps: float) -> Rates:
        """The same rate in every direction, limited to the direction's target."""
        return {offer.direction: min(rate_pps, offer.target_pps) for offer in self.offers}

    def _all_saturated(self, history: Sequence[Sample]) -> bool:
        """Whether every direction is saturated, and still lossy. Cheap until then: it runs after every sample."""
        tails = [last_windows(self, history, d, self.windows) for d in self.directions]
        if not all(len(t) == self.windows and all(w.is_bad(self.loss_threshold) for w in t) for t in tails):
            return False
        # These windows move with the samples; the verdict's lie on a grid, and may need another sample.
        return all(r.saturated_at_s is not None for r in analyse(self, history).directions)

    def _unsaturated(self, windows: Sequence[Window]) -> Verdict:
        """The verdict without sustained loss."""
        if not windows:
            return Verdict(Limit.NONE, ("the run ended before it measured anything",))
        good = [w for w in windows if not w.is_bad(self.loss_threshold)]
        if not good:
            return Verdict(Limit.NONE, ("every window was lossy, and there were too few to judge",))
        limit, reasons = limit_without_loss(self, windows, windows[-self.windows :])
        hold = [w.sent_pps for w in good if w.phase is Phase.HOLD]
        carried = max(w.sent_pps for w in good) if limit is not Limit.NONE or not hold else median(hold)
        without_loss = (f"no sustained loss up to {format_pps(carried)}, the most that was offered",)
        return Verdict(limit, reasons or without_loss, carried)
