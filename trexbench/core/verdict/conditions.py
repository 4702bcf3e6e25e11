"""Doubts that follow from what befell a lab's cores: its result may be that of the machine, not of the router."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..load.plan import Plan
from ..load.sample import Phase, Sample
from ..load.windows import RunWindows
from ..units import format_share
from .model import DirectionResult, RunWarning

TAKEN_SHARE = 0.05
"""Share of a core's time in the deciding windows from which on others may have made the verdict."""
TAKERS = {
    "stolen-time": "the hypervisor",
    "foreign-load": "programs that have no part in the test",
}
"""Who took it, by the warning's code."""


def find_condition_warnings(measured: RunWindows, results: Sequence[DirectionResult]) -> Iterator[RunWarning]:
    """Report core time lost to others where it decided the verdict."""
    for result in results:
        yield from _lost_time(measured, result)


def _lost_time(measured: RunWindows, result: DirectionResult) -> Iterator[RunWarning]:
    span = _deciding_span(measured.plan, measured.samples, result)
    if span is None:
        return
    states = [(sample.t_s, sample.conditions.cores) for sample in measured.samples if sample.conditions is not None]
    before = [one for one in states if one[0] <= span[0] + measured.plan.sample_s / 2]
    after = [one for one in states if one[0] >= span[1] - measured.plan.sample_s / 2]
    if not before or not after or after[0][0] <= before[-1][0]:
        return
    (begin_s, first), (end_s, last) = before[-1], after[0]
    for role in first.keys() & last.keys():
        when = f"from {begin_s:.0f} to {end_s:.0f} s, which decide the verdict"
        stolen_s, foreign_s = last[role].stolen_s - first[role].stolen_s, last[role].foreign_s - first[role].foreign_s
        for (code, who), taken_s in zip(TAKERS.items(), (stolen_s, foreign_s), strict=True):
            if (share := taken_s / (end_s - begin_s)) > TAKEN_SHARE:
                text = f"{who} took {format_share(share)} of the {role}'s core {when}"
                yield RunWarning(code, f"{result.direction}: {text}")


def _deciding_span(plan: Plan, samples: Sequence[Sample], result: DirectionResult) -> tuple[float, float] | None:
    """Begin and end of the windows that make the verdict; None where no loss made it."""
    at_s = result.saturated_at_s
    if at_s is None:
        return None
    if plan.seeks_knee:
        return at_s - plan.window_s, at_s + plan.windows * plan.window_s
    held = [sample.t_s for sample in samples if sample.phase is Phase.HOLD]
    return held[0], held[-1]
