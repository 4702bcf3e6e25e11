"""Doubts about a run's figures that follow from its samples: stored and shown with the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..load.plan import Plan
from ..load.sample import CONFIRM_PHASES, Phase, Sample
from ..load.windows import RunWindows, Window, find_gaps, find_spans
from ..units import format_pps, format_share
from .blame import BLAME_SHARE, misses
from .evidence import Evidence, find_evidence
from .knee import find_sustained
from .model import DirectionResult, Limit, RunWarning, Stall
from .settle import find_held

SEEN_PHASES = (Phase.WARMUP, Phase.RAMP, Phase.HOLD)
TAKEN_SHARE = 0.05
"""Share of a lab core's time in the deciding windows from which on others may have made the verdict: so much may be
missing of the rate."""
TAKERS = {
    "stolen-time": "the hypervisor",
    "foreign-load": "programs that have no part in the test",
}
"""Who took it, by the warning's code."""


def find_warnings(
    measured: RunWindows, results: Sequence[DirectionResult], stalls: Sequence[Stall]
) -> Iterator[RunWarning]:
    """All warnings, in the order of the directions."""
    plan, samples, ports = measured.plan, measured.samples, measured.plan.tx_ports
    for result in results:
        evidence = find_evidence(measured, result.direction)
        yield from (_of_stall(stall) for stall in stalls if stall.direction == result.direction)
        for begin_s, end_s in evidence.repeated:
            why = "the first bad rate was carried when it was held again, so the ramp was repeated from there"
            text = f"{result.direction}: {begin_s:.1f} to {end_s:.1f} s are left out: {why}"
            yield RunWarning("repeated", text)
        yield from _of_path(plan, evidence, result)
        yield from _of_windows(plan, evidence.windows, result)
        yield from _of_sender(evidence.windows, result)
        if not evidence.path.extra:
            yield from _of_foreign_frames(measured, result, evidence.path.foreign)
        yield from _of_trials(measured, result)
    if any(s.reading.queue_full is None and _unreported(s, ports, "queue_full") for s in samples):
        yield RunWarning("no-queue-full", "the generator did not report queue_full: its limit may go unseen")
    if any(_unreported(s, ports, "cpu_percent") for s in samples):
        yield RunWarning("no-cpu", "the generator did not report its CPU load: its limit may go unseen")
    for begin_s, end_s in find_gaps(plan, samples):
        yield RunWarning("gap", f"no sample was taken from {begin_s:.1f} to {end_s:.1f} s: that time is left out")
    for result in results:
        yield from _of_taken_time(measured, result)


def _unreported(sample: Sample, ports: Sequence[int], figure: str) -> bool:
    return any(getattr(sample.reading.ports[port], figure) is None for port in ports)


def _of_taken_time(measured: RunWindows, result: DirectionResult) -> Iterator[RunWarning]:
    """Report time of a lab's cores that others took where it decided the verdict: it may be that of the machine."""
    plan, at_s = measured.plan, result.saturated_at_s
    if at_s is None:  # no loss made the verdict
        return
    span = at_s - plan.window_s, at_s + plan.windows * plan.window_s
    if not plan.seeks_knee:
        held = [sample.t_s for sample in measured.samples if sample.phase is Phase.HOLD]
        span = held[0], held[-1]
    states = [(sample.t_s, sample.conditions.cores) for sample in measured.samples if sample.conditions is not None]
    before = [one for one in states if one[0] <= span[0] + plan.sample_s / 2]
    after = [one for one in states if one[0] >= span[1] - plan.sample_s / 2]
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


def _of_stall(stall: Stall) -> RunWarning:
    seen = "nothing was forwarded" if stall.nothing_forwarded else f"{format_share(stall.lost / stall.sent)} was lost"
    when = f"a stall of {stall.length_s:.1f} s at {stall.begin_s:.1f} s"
    return RunWarning("stall", f"{stall.direction}: {when}: {seen}; it did not last, and the rate was carried later")


def _of_path(plan: Plan, evidence: Evidence, result: DirectionResult) -> Iterator[RunWarning]:
    """Report what happened to frames at every rate."""
    path, name = evidence.path, result.direction
    rates = [w.sent_pps for w in evidence.sending if not w.is_bad(plan.loss_threshold)]
    if not rates or not (path.lost or path.extra):
        return
    where = f"at every rate from {format_pps(min(rates))} to {format_pps(max(rates))}"
    if path.lost:
        text = f"{name}: {format_share(path.lost)} of the frames were lost {where}: a path that loses, not a limit"
        limit = f"{100 * plan.loss_threshold:g} %"
        none = f"; by RFC 2544 its throughput, at a loss of at most {limit}, is 0"
        yield RunWarning("lossy-path", text + (none if path.lost > plan.loss_threshold else ""))
    if path.extra:
        text = f"{name}: {format_share(path.extra)} more frames came back than were sent {where}: frames come twice"
        if path.twice:
            text += f"; the knee is judged without {format_share(path.twice)}, which the tagged frames bear out"
        if path.doubtful:
            text += f"; the knee may be up to {format_share(path.doubtful)} too high"
        yield RunWarning("duplicates", text)


def _of_windows(plan: Plan, windows: Sequence[Window], result: DirectionResult) -> Iterator[RunWarning]:
    name, end = result.direction, result.saturated_at_s
    before = [w for w in windows if end is None or w.begin_s < end]
    bad = [w for w in before if w.is_bad(plan.loss_threshold)]
    if bad:
        share = sum(w.lost for w in bad) / sum(w.sent for w in before)
        text = f"{len(bad)} of {len(before)} windows lost frames ({format_share(share)} of all), but it did not last"
        yield RunWarning("transient-loss", f"{name}: {text}")
    nothing_good = bool(windows) and windows[0].begin_s == end and not result.last_good_pps  # nor did a search find any
    if plan.seeks_knee and result.limit is Limit.DUT and nothing_good:
        yield RunWarning("bad-from-start", f"{name}: lossy from the first window on: this ramp found no good rate")
    if plan.seeks_knee and end is not None:  # loss that lasted long enough to count, yet ended at a higher rate
        after = [w for w in windows if w.sent and w.begin_s >= end]
        good = [w.excess(plan.loss_threshold) <= 0 for w in after]
        if (first := find_sustained(good, plan.windows)) is not None:
            best = max(w.sent_pps for w, kept in zip(after[first:], good[first:], strict=True) if kept)
            text = f"{name}: the loss ended by itself; later up to {format_pps(best)} were carried without loss"
            yield RunWarning("recovered", text)
    # The generator fell behind by more than the next rate change explains.
    step_pps = plan.step_pps(name)
    short = [w for w in before if misses(w.asked_pps, w.sent_pps) and w.sent_pps < w.asked_pps - step_pps]
    if short and result.limit is not Limit.GENERATOR_TX:
        text = f"{name}: in {len(short)} of {len(before)} windows the generator sent less than was asked"
        yield RunWarning("generator-gaps", text)


def _of_sender(windows: Sequence[Window], result: DirectionResult) -> Iterator[RunWarning]:
    """Report windows in which others had the sender's core, and it did not send what was asked; or more in the next."""
    held_up_s = {
        w: max(w.held_up_s, before.held_up_s if w.sent_pps > w.asked_pps else 0.0)
        for before, w in pairwise((*windows[:1], *windows))
    }
    off = {w: abs(w.sent_pps / w.asked_pps - 1) for w in windows if w.asked_pps}
    # It catches up with pauses that are too short to explain what it did not send.
    if missed := [w for w in off if min(off[w], held_up_s[w] / (w.end_s - w.begin_s)) > BLAME_SHARE]:
        longest_ms = 1e3 * max(held_up_s[w] for w in missed)
        text = f"in {len(missed)} of {len(windows)} windows others had the sender's core (at most {longest_ms:.0f} ms)"
        most = format_share(max(off[w] for w in missed))
        yield RunWarning("sender-held-up", f"{result.direction}: {text}: what it sent is off by up to {most}")


def _of_foreign_frames(measured: RunWindows, result: DirectionResult, known: bool) -> Iterator[RunWarning]:
    """More received than sent, by as much as a sender's lack. One window proves nothing: an emptying queue, or two
    clocks, look the same.
    """
    plan, samples, (tx, rx) = measured.plan, measured.samples, result.direction
    sent, received = [s.reading.ports[tx].opackets for s in samples], [s.reading.ports[rx].ipackets for s in samples]
    spans = find_spans(plan, samples, result.direction, SEEN_PHASES)
    flags = [misses(received[b] - received[a], sent[b] - sent[a]) for a, b in spans]
    if (
        known
        or find_sustained(flags, plan.windows) is not None
        or result.received > (1 + plan.loss_threshold) * result.sent
    ):
        name = result.direction
        text = f"{name}: more frames came back than were sent: something else sends to port {name.rx}"
        yield RunWarning("foreign-frames", text)


def _of_trials(measured: RunWindows, result: DirectionResult) -> Iterator[RunWarning]:
    if result.limit not in (Limit.DUT, Limit.UNKNOWN) or not result.trials:
        return
    name, confirmed = result.direction, result.confirmed_pps
    if result.trials[0].passed:
        asked_pps = find_held(measured.samples, name, CONFIRM_PHASES, result.trials[0].number).offered_pps
        if misses(asked_pps, result.trials[0].offered_pps):
            sent = format_pps(result.trials[0].offered_pps)
            text = f"{name}: held again to confirm it, the generator sent {sent} of {format_pps(asked_pps)}"
            yield RunWarning("confirmed-lower", text)
    elif confirmed is None:
        lowest = format_pps(min(t.offered_pps for t in result.trials))
        text = f"{name}: held again to confirm it, no rate down to {lowest} passed"
        yield RunWarning("not-confirmed", text)
    else:
        text = f"{name}: held again to confirm it, only {format_pps(confirmed)} stayed under the loss threshold"
        yield RunWarning("confirmed-lower", text)
