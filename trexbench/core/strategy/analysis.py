"""Samples -> what limits each direction: the strategy's verdict, and what is common to all strategies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..load.plan import Direction
from ..load.sample import Phase, Sample, find_setback
from ..load.windows import RunWindows, measured_windows
from ..verdict.model import Analysis, DirectionResult, Limit, RunWarning
from ..verdict.path import find_path
from ..verdict.settle import settle
from ..verdict.trials import find_trials
from ..verdict.warnings import find_warnings
from .base import Strategy


def analyse(plan: Strategy, samples: Sequence[Sample]) -> Analysis:
    """The verdict on a run, complete or not.

    Samples after a counter went backwards are left out, and a warning says so.
    """
    sound, setback = until_setback(plan, samples)
    measured = RunWindows(plan, sound)
    results = tuple(_judge(plan, measured, direction) for direction in plan.directions)
    stalls = tuple(stall for direction in plan.directions for stall in plan.find_stalls(measured, direction))
    warnings = (*find_warnings(measured, results, stalls), *plan.warnings(measured, results))
    return Analysis(results, warnings if setback is None else (setback, *warnings), stalls)


def _judge(plan: Strategy, measured: RunWindows, direction: Direction) -> DirectionResult:
    """One direction's verdict, with its totals and trials."""
    samples, windows = measured.samples, measured.sending(direction)
    seen = windows or [w for w in measured_windows(plan, samples, direction, plan.curve_phases) if w.sent]
    hold = [w for w in windows if w.phase is Phase.HOLD]
    first, last = (samples[at].reading.ports for at in (0, -1)) if samples else ({}, {})
    trials = find_trials(plan, samples, direction, find_path(measured, direction))
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


def until_setback(plan: Strategy, samples: Sequence[Sample]) -> tuple[Sequence[Sample], RunWarning | None]:
    """The samples up to the first counter that went backwards, and a warning if there is one."""
    for i, (before, after) in enumerate(pairwise(samples)):
        problem = find_setback(before, after, plan.ports)
        if problem is not None:
            text = f"{problem}: what was counted after {before.t_s:.1f} s is left out"
            return samples[: i + 1], RunWarning("counters-back", text)
    return samples, None
