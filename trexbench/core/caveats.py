"""Reasons to doubt a run's numbers that follow from its samples: stored with the result, shown with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .blame import misses
from .knee import find_sustained
from .plan import Plan
from .sample import Phase, Sample
from .units import format_pps, format_share
from .verdict import Caveat, DirectionResult, Limit
from .windows import Window, judged_windows, measured_windows

FOREIGN_SHARE = 0.01
"""This much more received than sent, for as long as loss must last to count, is more than two ports' clocks explain."""
SEEN_PHASES = (Phase.WARMUP, Phase.RAMP, Phase.HOLD)


def find_caveats(plan: Plan, samples: Sequence[Sample], results: Sequence[DirectionResult]) -> tuple[Caveat, ...]:
    """All doubts, in the order of the directions."""
    found: list[Caveat] = []
    for result in results:
        found.extend(_of_windows(plan, judged_windows(plan, samples, result.direction), result))
        found.extend(_of_foreign_frames(plan, measured_windows(plan, samples, result.direction, SEEN_PHASES), result))
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
    if plan.kind == "ramp" and result.limit is Limit.DUT and windows and windows[0].begin_s == end:
        yield Caveat("bad-from-start", f"{name}: lossy from the first window on: this ramp has no good rate")
    if plan.kind == "ramp" and end is not None:
        yield from _of_recovery(plan, windows, result)
    if result.limit is not Limit.GENERATOR_TX:
        yield from _of_gaps(plan, before, result)


def _of_recovery(plan: Plan, windows: Sequence[Window], result: DirectionResult) -> Iterator[Caveat]:
    """Loss that lasted long enough to count, and yet was over later, at a higher rate."""
    after = [w for w in windows if w.sent and w.begin_s >= (result.saturated_at_s or 0.0)]
    good = [not w.is_bad(plan.loss_threshold) for w in after]
    first = find_sustained(good, plan.windows)
    if first is not None:
        best = max(w.sent_pps for w, kept in zip(after[first:], good[first:], strict=True) if kept)
        text = f"{result.direction}: the loss ended by itself; later it carried up to {format_pps(best)} without"
        yield Caveat("recovered", text)


def _of_gaps(plan: Plan, windows: Sequence[Window], result: DirectionResult) -> Iterator[Caveat]:
    """Windows in which the generator fell behind by more than its next rate change explains."""
    short = [w for w in windows if misses(w.asked_pps, w.sent_pps) and w.sent_pps < w.asked_pps - plan.step_pps]
    if short:
        text = f"{result.direction}: in {len(short)} of {len(windows)} windows the generator sent less than was asked"
        yield Caveat("generator-gaps", text)


def _of_foreign_frames(plan: Plan, windows: Sequence[Window], result: DirectionResult) -> Iterator[Caveat]:
    """More received than sent. One window proves nothing: a queue that empties and two clocks look the same."""
    flags = [w.lost < -FOREIGN_SHARE * w.sent for w in windows]
    if find_sustained(flags, plan.windows) is not None or result.received > (1 + plan.loss_threshold) * result.sent:
        name = result.direction
        text = f"{name}: more frames came back than were sent: something else sends to port {name.rx}"
        yield Caveat("foreign-frames", text)


def _of_trials(result: DirectionResult) -> Iterator[Caveat]:
    if result.limit is not Limit.DUT or not result.trials or result.trials[0].passed:
        return
    name, confirmed = result.direction, result.confirmed_pps
    if confirmed is None:
        lowest = format_pps(min(t.offered_pps for t in result.trials))
        text = f"{name}: held again, no rate down to {lowest} passed"
        yield Caveat("not-confirmed", text)
    else:
        yield Caveat(
            "confirmed-lower", f"{name}: held again, only {format_pps(confirmed)} kept under the loss threshold"
        )
