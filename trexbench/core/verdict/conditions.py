"""Doubts that follow from what befell a lab's cores: its result may be that of the machine, not of the router."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from ..load.conditions import ROUND_TRIP, ConditionChange
from ..load.plan import Plan
from ..load.sample import CoreState, Phase, Sample
from ..load.windows import RunWindows
from ..units import format_scaled, format_share
from .model import DirectionResult, RunWarning

STOLEN_SHARE, FOREIGN_SHARE = 0.03, 0.05
"""Shares of a core's time in the deciding windows from which on others may have made the verdict."""


def find_condition_warnings(measured: RunWindows, results: Sequence[DirectionResult]) -> Iterator[RunWarning]:
    """Report changes within the run, and core time lost to others where it decided the verdict."""
    for _, changes in groupby(sorted(measured.changes, key=lambda one: one.what), key=lambda one: one.what):
        yield RunWarning("conditions-changed", _change_words(list(changes)))
    for result in results:
        if void := measured.left_out(result.direction):
            text = f"the loss from {void[0].begin_s:.0f} to {void[-1].end_s:.0f} s set in with that change"
            yield RunWarning("conditions-changed", f"{result.direction}: {text} and makes no verdict")
        yield from _lost_time(measured, result)


def _change_words(changes: Sequence[ConditionChange]) -> str:
    first, *later = changes
    if first.what == ROUND_TRIP:
        became = "slower" if first.for_worse else "faster"
        text = f"the way between the sender's and the router's core became {became}: a cache line's round trip went"
        text += f" from {first.before:.0f} to {first.after:.0f} ns"
    else:
        before, after = (format_scaled(hertz, "Hz", 3) for hertz in (first.before, first.after))
        text = f"the clock of the {first.what}'s core went from {before} to {after}"
    count = f"{len(later)} more change{'s' * (len(later) > 1)}"
    more = f", with {count} until {later[-1].end_s:.0f} s" if later else ""
    return f"at {first.end_s:.0f} s {text}{more}"


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
        stolen, foreign = _shares(first[role], last[role], end_s - begin_s)
        when = f"from {begin_s:.0f} to {end_s:.0f} s, which decide the verdict"
        if stolen > STOLEN_SHARE:
            text = f"the hypervisor took {format_share(stolen)} of the {role}'s core {when}"
            yield RunWarning("stolen-time", f"{result.direction}: {text}")
        if foreign > FOREIGN_SHARE:
            text = f"programs that have no part in the test took {format_share(foreign)} of the {role}'s core {when}"
            yield RunWarning("foreign-load", f"{result.direction}: {text}")


def _shares(first: CoreState, last: CoreState, span_s: float) -> tuple[float, float]:
    return (last.stolen_s - first.stolen_s) / span_s, (last.foreign_s - first.foreign_s) / span_s


def _deciding_span(plan: Plan, samples: Sequence[Sample], result: DirectionResult) -> tuple[float, float] | None:
    """Begin and end of the windows that make the verdict; None where no loss made it."""
    at_s = result.saturated_at_s
    if at_s is None:
        return None
    if plan.seeks_knee:
        return at_s - plan.window_s, at_s + plan.windows * plan.window_s
    held = [sample.t_s for sample in samples if sample.phase is Phase.HOLD]
    return held[0], held[-1]
