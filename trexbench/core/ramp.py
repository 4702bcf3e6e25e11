"""What to send next: a pure function of the plan and of the samples so far."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from .analysis import all_saturated, confirmation_rate, find_throughput
from .plan import LATENCY_LOADS, MIN_OFFERED_PPS, Plan
from .sample import LATENCY_PHASES, Phase, Sample

MAX_TRIALS = 3
"""Confirmation trials after saturation, each at a lower rate than the one before."""


@dataclass(frozen=True)
class Step:
    """Offer ``offered_pps`` per direction (0.0: silence) and take a sample at ``until_s`` on the run's clock."""

    phase: Phase
    offered_pps: float
    until_s: float
    trial: int = 0


def next_step(plan: Plan, samples: Sequence[Sample]) -> Step | None:
    """The step after these samples; None when the run is complete. The first sample is the baseline."""
    last = samples[-1]
    begun = _phase_begun(samples)
    elapsed = last.t_s - begun
    if last.phase is Phase.BASELINE:
        return _warmup(plan, last.t_s, last.t_s)
    if last.phase is Phase.WARMUP:
        if _left(plan.warmup_s, elapsed, plan):
            return _warmup(plan, begun, last.t_s)
        return _ramp(plan, last.t_s, last.t_s) if plan.kind == "ramp" else _hold(plan, last.t_s, last.t_s)
    if last.phase is Phase.RAMP:
        if plan.stop_on_saturation and all_saturated(plan, samples):
            return Step(Phase.DRAIN, 0.0, last.t_s + plan.drain_s)
        if _left(plan.ramp_s, elapsed, plan):
            return _ramp(plan, begun, last.t_s)
        return _hold(plan, last.t_s, last.t_s) if plan.hold_s else Step(Phase.DRAIN, 0.0, last.t_s + plan.drain_s)
    if last.phase is Phase.HOLD:
        if _left(plan.hold_s, elapsed, plan):
            return _hold(plan, begun, last.t_s)
        return Step(Phase.DRAIN, 0.0, last.t_s + plan.drain_s)
    if last.phase is Phase.CONFIRM:
        if _left(plan.confirm_s, elapsed, plan):
            return _confirm(plan, last.asked_pps, begun, last.t_s, last.trial)
        return Step(Phase.CONFIRM_DRAIN, 0.0, last.t_s + plan.drain_s, last.trial)
    if last.phase is Phase.LATENCY:
        if _left(plan.latency_s, elapsed, plan):
            return _load(plan, last.asked_pps, begun, last.t_s, last.trial)
        return Step(Phase.LATENCY_DRAIN, 0.0, last.t_s + plan.drain_s, last.trial)
    if last.phase is Phase.LATENCY_DRAIN:
        return _next_load(plan, samples, last.trial + 1)
    return _next_trial(plan, samples) or _next_load(plan, samples, 1)


def _next_trial(plan: Plan, samples: Sequence[Sample]) -> Step | None:
    last = samples[-1]
    if plan.kind != "ramp" or plan.confirm_s == 0 or last.trial >= MAX_TRIALS:
        return None
    rate = confirmation_rate(plan, samples)
    return None if rate is None else _confirm(plan, rate, last.t_s, last.t_s, last.trial + 1)


def _next_load(plan: Plan, samples: Sequence[Sample], first: int) -> Step | None:
    """The next share of the throughput that is enough to be sent; a saturated line has none."""
    if plan.kind != "ramp" or plan.latency_s == 0:
        return None
    throughput, now_s = find_throughput(plan, samples), samples[-1].t_s
    for trial, share in enumerate(LATENCY_LOADS[first - 1 :], first):
        if share * throughput >= MIN_OFFERED_PPS:
            return _load(plan, share * throughput, now_s, now_s, trial)
    return None


def _phase_begun(samples: Sequence[Sample]) -> float:
    """When the last sample's phase (and trial) began: the time of the sample before its first one."""
    first = bisect_left(samples, _place(samples[-1]), key=_place)
    return samples[max(0, first - 1)].t_s


_ORDER = {phase: place for place, phase in enumerate(Phase)}


def _place(sample: Sample) -> tuple[bool, int, int]:
    """Samples are in this order, which spares walking over all of them."""
    return sample.phase in LATENCY_PHASES, sample.trial, _ORDER[sample.phase]


def _ticks(length_s: float, plan: Plan) -> int:
    """Samples in a phase: what is left after the last whole one, if half a sample or less, belongs to it."""
    return max(1, ceil(length_s / plan.sample_s - 0.5 - 1e-9))


def _left(length_s: float, elapsed_s: float, plan: Plan) -> bool:
    # A microsecond that is left is none: times are differences of floats.
    return length_s - elapsed_s > 1e-6 and round(elapsed_s / plan.sample_s) < _ticks(length_s, plan)


def _until(begun_s: float, length_s: float, now_s: float, plan: Plan) -> float:
    """The next tick of the phase's grid, the last one at its end; lateness of one does not add up over the others."""
    tick = round((now_s - begun_s) / plan.sample_s) + 1
    return begun_s + (length_s if tick >= _ticks(length_s, plan) else tick * plan.sample_s)


def _warmup(plan: Plan, begun_s: float, now_s: float) -> Step:
    return Step(Phase.WARMUP, plan.warmup_pps, _until(begun_s, plan.warmup_s, now_s, plan))


def _ramp(plan: Plan, begun_s: float, now_s: float) -> Step:
    until = _until(begun_s, plan.ramp_s, now_s, plan)
    offered = plan.target_pps * (until - begun_s) / plan.ramp_s
    return Step(Phase.RAMP, min(max(MIN_OFFERED_PPS, offered), plan.target_pps), until)


def _hold(plan: Plan, begun_s: float, now_s: float) -> Step:
    return Step(Phase.HOLD, plan.target_pps, _until(begun_s, plan.hold_s, now_s, plan))


def _confirm(plan: Plan, rate_pps: float, begun_s: float, now_s: float, trial: int) -> Step:
    return Step(Phase.CONFIRM, rate_pps, _until(begun_s, plan.confirm_s, now_s, plan), trial)


def _load(plan: Plan, rate_pps: float, begun_s: float, now_s: float, trial: int) -> Step:
    return Step(Phase.LATENCY, rate_pps, _until(begun_s, plan.latency_s, now_s, plan), trial)
