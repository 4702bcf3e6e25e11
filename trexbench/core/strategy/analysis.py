"""Analysis of a run: each direction's verdict, what all strategies have in common, and the next confirmation trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import median

from ..load.plan import MIN_OFFERED_PPS, Direction
from ..load.sample import CONFIRM_PHASES, Phase, Sample, find_setback
from ..load.windows import RunWindows, measured_windows
from ..units import format_pps
from ..verdict.blame import misses
from ..verdict.evidence import AT_ONCE, find_evidence
from ..verdict.parts import Analysis, DirectionResult, Limit, RunWarning, Verdict
from ..verdict.settle import find_held, find_trials, settle
from ..verdict.warnings import find_warnings
from .base import LoadStep, Strategy

TRIALS_LOWER = (0.03, 2 * 0.03)
"""Shares by which further confirmation trials are below the lower end of the knee's interval. With a third of these
shares 3 % of the rates of routers that vary by up to 3 % are not confirmed; with twice as much, intervals are a tenth
wider in the mean (benchmarks/truth.py)."""
FAR_LOWER = 0.5
"""Share by which a last trial is lower where loss is allowed. Without it, a DUT whose loss grows slowly with the rate,
or comes and goes, has no lower end that anything bears out: at a goal of 0.1 % and 1 ms between the ports, 0 of 12
intervals of ramps hold the limit, with it 12."""


def analyse(plan: Strategy, samples: Sequence[Sample]) -> Analysis:
    """Analyse a run, complete or not. Samples after a counter went backwards are left out, and a warning says so."""
    sound, setback = until_setback(plan, samples)
    measured = RunWindows(plan, sound)
    results = tuple(_judge(plan, measured, direction) for direction in plan.directions)
    stalls = tuple(stall for direction in plan.directions for stall in plan.find_stalls(measured, direction))
    of_trials = (warning for result in results for warning in _trial_warnings(plan, measured, result))
    warnings = (*find_warnings(measured, results, stalls), *of_trials, *plan.warnings(measured, results))
    return Analysis(results, warnings if setback is None else (setback, *warnings), stalls)


def _judge(plan: Strategy, measured: RunWindows, direction: Direction) -> DirectionResult:
    """One direction's verdict, with its totals and trials."""
    samples, windows = measured.samples, measured.sending(direction)
    seen = windows or [w for w in measured_windows(plan, samples, direction, plan.curve_phases) if w.sent]
    hold = [w for w in windows if w.phase is Phase.HOLD]
    first, last = (samples[at].reading.ports for at in (0, -1)) if samples else ({}, {})
    trials = find_trials(measured, direction)
    verdict = settle(measured, direction, plan.conclude(measured, direction), trials)
    return DirectionResult(
        **vars(verdict),
        direction=direction,
        at_least=verdict.limit is not Limit.DUT,
        max_received_pps=max((w.received_pps for w in seen), default=0.0),
        hold_loss=sum(w.lost for w in hold) / sum(w.sent for w in hold) if hold else None,
        sent=last[direction.tx].opackets - first[direction.tx].opackets if samples else 0,
        received=last[direction.rx].ipackets - first[direction.rx].ipackets if samples else 0,
        trials=trials,
    )


def _trial_warnings(plan: Strategy, measured: RunWindows, result: DirectionResult) -> Iterator[RunWarning]:
    """Report a rate that no trial confirmed, or only below the interval that the ramp or the looks showed."""
    if result.limit not in (Limit.DUT, Limit.UNKNOWN) or not result.trials:
        return
    held, pps, first = f"{result.direction}: held again to confirm it,", result.confirmed_pps, result.trials[0]
    asked_pps = find_held(measured.samples, result.direction, CONFIRM_PHASES, first.number).offered_pps
    if pps is None:
        lowest = format_pps(min(t.offered_pps for t in result.trials))
        yield RunWarning("not-confirmed", f"{held} no rate down to {lowest} passed")
    elif not first.passed and pps > result.maximum_pps * (1 + AT_ONCE):
        text = f"{format_pps(pps)} passed, but only {format_pps(result.maximum_pps)} came through at length"
        yield RunWarning("carried-more", f"{held} {text}: the DUT polices the traffic, or slows down")
    elif first.passed and misses(asked_pps, first.offered_pps):
        sent, asked = format_pps(first.offered_pps), format_pps(asked_pps)
        yield RunWarning("confirmed-lower", f"{held} the generator sent {sent} of {asked}")
    elif not first.passed and pps < plan.conclude(measured, result.direction).confirm_pps * (1 - AT_ONCE):
        yield RunWarning("confirmed-lower", f"{held} only {format_pps(pps)} stayed within the loss threshold")


def until_setback(plan: Strategy, samples: Sequence[Sample]) -> tuple[Sequence[Sample], RunWarning | None]:
    """The samples up to the first counter that went backwards, and a warning if there is one."""
    for i, (before, after) in enumerate(pairwise(samples)):
        problem = find_setback(before, after, plan.ports)
        if problem is not None:
            text = f"{problem}: what was counted after {before.t_s:.1f} s is left out"
            return samples[: i + 1], RunWarning("counters-back", text)
    return samples, None


def next_trial(
    plan: Strategy, history: Sequence[Sample], tries: Callable[[Verdict], Sequence[float]], always: bool = False
) -> LoadStep | None:
    """The next confirmation trial after a drain, with a rate for each direction; None if none is due.

    One is due as long as a direction that the DUT limits, or that lost frames in its hold, is not confirmed. tries:
    the rates of a direction's trials. always: a first trial is due whatever the limit.
    """
    trial = history[-1].trial if history[-1].phase is Phase.CONFIRM_DRAIN else 0
    if plan.length_s(Phase.CONFIRM) == 0:
        return None
    rates, due, measured = dict[Direction, float](), False, RunWindows(plan, history)
    for result in analyse(plan, history).directions:
        lossy = result.limit is Limit.NONE and _is_hold_lossy(plan, history, result.direction)
        unconfirmed = (lossy or result.limit in (Limit.DUT, Limit.UNKNOWN)) and result.confirmed_pps is None
        # after a failed trial, the result is what came through
        rest = tries(plan.conclude(measured, result.direction) if trial else result)[trial:]
        pps = result.confirmed_pps or next(iter(rest), 0.0)
        due |= pps >= MIN_OFFERED_PPS and ((unconfirmed and bool(rest)) or (always and not trial))
        rates[result.direction] = pps
    if not due:
        return None
    asked = {d: plan.offer(d).within(pps / _sent_of_asked(plan, history, d, pps)) for d, pps in rates.items()}
    return plan.begin(Phase.CONFIRM, history, asked, trial + 1)


def _is_hold_lossy(plan: Strategy, samples: Sequence[Sample], direction: Direction) -> bool:
    """Test whether the hold lost too much, without the path's share and stalls."""
    windows = find_evidence(RunWindows(plan, samples), direction).windows
    return sum(window.excess(plan.loss_threshold) for window in windows if window.phase is Phase.HOLD) > 0


def _sent_of_asked(plan: Strategy, samples: Sequence[Sample], direction: Direction, pps: float) -> float:
    """The factor by which a generator sends too much near this rate; 1 where the surplus alone fails no trial."""
    windows = measured_windows(plan, samples, direction, plan.curve_phases)
    near = sorted((w for w in windows if w.asked_pps), key=lambda w: abs(w.sent_pps - pps))[: plan.windows]
    # A median, as the generator may have caught up in one window.
    factor = median(w.sent_pps / w.asked_pps for w in near) if near else 1.0
    return factor if factor > 1 + plan.loss_threshold else 1.0
