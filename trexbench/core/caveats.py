"""Reasons to doubt a run's numbers that follow from its samples: stored with the result, shown with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .plan import Plan
from .sample import Sample
from .units import format_pps, format_share
from .verdict import Caveat, DirectionResult, Limit
from .windows import Window, measured_windows

FOREIGN_FACTOR = 10
"""This many loss thresholds of *negative* loss in one window are more than two ports' clocks can explain."""


def find_caveats(plan: Plan, samples: Sequence[Sample], results: Sequence[DirectionResult]) -> tuple[Caveat, ...]:
    """All doubts, in the order of the directions."""
    found: list[Caveat] = []
    for result in results:
        windows = measured_windows(plan, samples, result.direction)
        found.extend(_of_windows(plan, windows, result))
        found.extend(_of_trials(result))
    if any(s.reading.queue_full is None for s in samples):
        found.append(Caveat("no-queue-full", "the generator did not report queue_full: its limit may go unseen"))
    if any(s.reading.cpu_percent is None for s in samples):
        found.append(Caveat("no-cpu", "the generator did not report its CPU load: its limit may go unseen"))
    return tuple(found)


def _of_windows(plan: Plan, windows: Sequence[Window], result: DirectionResult) -> Iterator[Caveat]:
    name, end = result.direction, result.saturated_at_s
    before = [w for w in windows if end is None or w.begin_s < end]
    bad = [w for w in before if w.is_bad(plan.loss_threshold)]
    if bad:
        share = sum(w.lost for w in bad) / sum(w.sent for w in before)
        text = (
            f"{name}: {len(bad)} of {len(before)} windows lost frames ({format_share(share)} of all) without it lasting"
        )
        yield Caveat("transient-loss", text)
    if any(w.loss is not None and w.loss < -FOREIGN_FACTOR * plan.loss_threshold for w in windows):
        text = f"{name}: more frames came back than were sent: something else sends to port {name.rx}"
        yield Caveat("foreign-frames", text)
    if plan.kind == "ramp" and result.limit is Limit.DUT and windows and windows[0].begin_s == end:
        yield Caveat("bad-from-start", f"{name}: lossy from the first window on: this ramp has no good rate")


def _of_trials(result: DirectionResult) -> Iterator[Caveat]:
    if not result.trials or result.trials[0].passed:
        return
    name, confirmed = result.direction, result.confirmed_pps
    if confirmed is None:
        lowest = format_pps(min(t.offered_pps for t in result.trials))
        text = f"{name}: held again, no rate down to {lowest} kept under the loss threshold"
        yield Caveat("not-confirmed", text)
    else:
        yield Caveat(
            "confirmed-lower", f"{name}: held again, only {format_pps(confirmed)} kept under the loss threshold"
        )
