"""The rates that were found are held once more and drained: every frame is accounted for, the DUT is read meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from ..load.plan import MIN_OFFERED_PPS
from ..load.sample import Phase, Sample
from ..verdict.model import DirectionResult, Limit
from .analysis import analyse
from .base import LoadStep, Strategy

TRIALS_LOWER = (0.03, 0.06)
"""Shares by which later confirmation trials are lower than a direction's first, after failures: a router that fails
twice is erratic over a wide band.
"""


def next_trial(
    plan: Strategy, history: Sequence[Sample], lower: Sequence[float], always: bool = False
) -> LoadStep | None:
    """The next confirmation trial after a drain, of each direction at its own rate; None if none is due.

    One is due as long as a direction that the DUT limits is not confirmed. lower: by these shares of its first trial's
    rate are a direction's further trials, after others that failed. always: a first trial is due whatever the limit.
    """
    trial = history[-1].trial if history[-1].phase is Phase.CONFIRM_DRAIN else 0
    if plan.length_s(Phase.CONFIRM) == 0 or trial > len(lower):
        return None
    results = analyse(plan, history).directions
    doubtful = [r for r in results if r.limit in (Limit.DUT, Limit.UNKNOWN) and r.confirmed_pps is None]
    due = results if always and not trial else doubtful
    if not any(_trial_pps(r, lower) >= MIN_OFFERED_PPS for r in due):
        return None
    rates = {
        r.direction: min(max(MIN_OFFERED_PPS, _trial_pps(r, lower)), plan.offer(r.direction).target_pps)
        for r in results
    }
    return plan.begin(Phase.CONFIRM, history, rates, trial + 1)


def _trial_pps(result: DirectionResult, lower: Sequence[float]) -> float:
    """The rate of a direction's next trial: lower after each that failed; where none can fail, what it carried."""
    if result.limit not in (Limit.DUT, Limit.UNKNOWN) or result.confirmed_pps is not None:
        return result.confirmed_pps or result.confirm_pps
    failed = len(result.trials)
    return result.trials[0].offered_pps * (1 - lower[failed - 1]) if failed else result.confirm_pps
