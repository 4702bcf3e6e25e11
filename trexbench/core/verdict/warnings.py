"""Warnings about a run's figures that follow from its samples: stored and shown with the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf

from ..load.plan import Plan
from ..load.sample import Phase
from ..load.windows import MEASURED_PHASES, RunWindows, Window, measured_windows
from ..units import format_pps, format_share
from .blame import BLAME_SHARE, misses
from .evidence import Evidence, find_evidence
from .knee import find_sustained
from .parts import DirectionResult, Limit, RunWarning, Stall

SEEN_PHASES = (Phase.WARMUP, Phase.RAMP, Phase.HOLD)
TAKEN_SHARE = 0.05
"""Share of a lab core's time in the deciding windows from which on others may have made the verdict: as large a share
may be missing of the rate."""


Words = tuple[str, str]
"""A warning's code and text, without the direction's name."""


def find_warnings(
    measured: RunWindows, results: Sequence[DirectionResult], stalls: Sequence[Stall]
) -> Iterator[RunWarning]:
    """Yield all warnings, in the order of the directions."""
    plan, samples = measured.plan, measured.samples
    for result in results:
        own = [stall for stall in stalls if stall.direction == result.direction]
        for code, text in _direction_warnings(measured, result, own):
            yield RunWarning(code, f"{result.direction}: {text}")
    read = [(s.reading.queue_full, s.reading.ports[port]) for s in samples for port in plan.tx_ports]
    if any(queue_full is None and port.queue_full is None for queue_full, port in read):
        yield RunWarning("no-queue-full", "the generator did not report queue_full: its limit may go unseen")
    if any(port.cpu_percent is None for _, port in read):
        yield RunWarning("no-cpu", "the generator did not report its CPU load: its limit may go unseen")
    for before, after in pairwise(samples):
        if after.phase in (*MEASURED_PHASES, Phase.SEARCH) and after.t_s - before.t_s > plan.gap_s:
            text = f"no sample was taken from {before.t_s:.1f} to {after.t_s:.1f} s: that time is left out"
            yield RunWarning("gap", text)


def _direction_warnings(measured: RunWindows, result: DirectionResult, stalls: Sequence[Stall]) -> Iterator[Words]:
    evidence = find_evidence(measured, result.direction)
    for stall in stalls:
        if stall.nothing_forwarded:
            when, why = f"a stall of {stall.length_s:.1f} s at {stall.begin_s:.1f} s", "nothing was forwarded"
            yield "stall", f"{when}: {why}; it did not last, and the rate was carried later"
        else:
            when = f"{stall.begin_s:.1f} to {stall.begin_s + stall.length_s:.1f} s are left out"
            why = f"{format_share(stall.lost / stall.sent)} was lost, but its first bad rate was carried later"
            yield "repeated", f"{when}: {why}"
    yield from _path_warnings(measured.plan, evidence)
    yield from _window_warnings(measured, evidence.windows, result)
    yield from _sender_warnings(measured.judged(result.direction))
    if evidence.path.lost >= 0:
        yield from _foreign_warnings(measured, result)
    yield from _core_warnings(measured, result)


def _core_warnings(measured: RunWindows, result: DirectionResult) -> Iterator[Words]:
    """Report time that others took of a lab's cores while the verdict was decided: it may be the machine's limit."""
    plan, at_s = measured.plan, result.saturated_at_s
    if at_s is None:  # no loss made the verdict
        return
    from_s, to_s = at_s - plan.window_s, at_s + plan.windows * plan.window_s
    if not plan.seeks_knee:
        held = [sample.t_s for sample in measured.samples if sample.phase is Phase.HOLD]
        from_s, to_s = held[0], held[-1]
    states = [(sample.t_s, sample.conditions.cores) for sample in measured.samples if sample.conditions is not None]
    before = [(t_s, cores) for t_s, cores in states if t_s <= from_s + plan.sample_s / 2]
    after = [(t_s, cores) for t_s, cores in states if t_s >= to_s - plan.sample_s / 2]
    if not before or not after or after[0][0] <= before[-1][0]:
        return
    (begin_s, first), (end_s, last) = before[-1], after[0]
    for role in (role for role in first if role in last):
        for code, who, taken_s in (
            ("stolen-time", "the hypervisor", last[role].stolen_s - first[role].stolen_s),
            ("foreign-load", "programs that have no part in the test", last[role].foreign_s - first[role].foreign_s),
        ):
            if (share := taken_s / (end_s - begin_s)) > TAKEN_SHARE:
                when = f"from {begin_s:.0f} to {end_s:.0f} s, which decide the verdict"
                yield code, f"{who} took {format_share(share)} of the {role}'s core {when}"


def _path_warnings(plan: Plan, evidence: Evidence) -> Iterator[Words]:
    """Report what happened to frames at every rate."""
    lost = evidence.path.lost
    rates = [w.sent_pps for w in evidence.windows if not w.is_bad(plan.loss_threshold)]
    if not rates:
        return
    where = f"at every rate from {format_pps(min(rates))} to {format_pps(max(rates))}"
    if lost > 0:
        text = f"{format_share(lost)} of the frames were lost {where}: a lossy path, not a limit"
        none = f"; by RFC 2544 its throughput, at a loss of at most {100 * plan.loss_threshold:g} %, is 0"
        yield "lossy-path", text + (none if lost > plan.loss_threshold else "")
    if lost < 0:
        text = f"{format_share(-lost)} more frames came back than were sent {where}: frames come twice"
        yield "duplicates", f"{text}, and count once"


def _window_warnings(measured: RunWindows, windows: Sequence[Window], result: DirectionResult) -> Iterator[Words]:
    plan, end = measured.plan, result.saturated_at_s
    before = [w for w in windows if end is None or w.begin_s < end]
    surely_carried_pps = result.low_pps or result.maximum_pps or inf
    bad = [w for w in before if w.is_bad(plan.loss_threshold) and w.sent_pps <= surely_carried_pps]
    if bad:
        share = sum(w.lost for w in bad) / sum(w.sent for w in before)
        low, high = (format_pps(end_of(w.sent_pps for w in bad)) for end_of in (min, max))
        lost = f"{len(bad)} of {len(before)} windows lost frames ({format_share(share)} of all)"
        yield "transient-loss", f"{lost}, at {low if low == high else f'{low} to {high}'}, but it did not last"
    nothing_good = bool(windows) and windows[0].begin_s == end and not result.last_good_pps  # of a search, either
    if plan.seeks_knee and result.limit is Limit.DUT and nothing_good:
        text = "frames were lost from the first window on; the rate follows from higher ones: lower --ramp-to, or use "
        text += "trexbench search"
        yield "bad-from-start", text
    if plan.seeks_knee and end is not None:  # sustained loss may yet have ended at a higher rate
        after = [w for w in windows if w.begin_s >= end]
        good = [w.excess(plan.loss_threshold) <= 0 for w in after]
        if (first := find_sustained(good, plan.windows)) is not None:
            best = format_pps(max(w.sent_pps for w in after[first:] if w.excess(plan.loss_threshold) <= 0))
            limit, begun = f"{100 * plan.loss_threshold:g} %", format_pps(after[0].sent_pps)
            words = f"later up to {best} were carried with loss <= {limit}"
            yield "recovered", f"frames were lost from {begun} on, yet {words}: the loss ended, or depends on the rate"
    # It counts where the generator fell behind by more than the next rate change explains.
    step_pps = plan.step_pps(result.direction)
    before = [w for w in measured.judged(result.direction) if end is None or w.begin_s < end]
    short = [w for w in before if misses(w.asked_pps, w.sent_pps) and w.sent_pps < w.asked_pps - step_pps]
    if short and result.limit is not Limit.GENERATOR_TX:
        yield "generator-gaps", f"in {len(short)} of {len(before)} windows the generator sent less than asked for"


def _sender_warnings(windows: Sequence[Window]) -> Iterator[Words]:
    """Report windows in which others had the sender's core and it sent less than asked, or more in the next one."""
    held_up_s = {
        w: max(w.held_up_s, before.held_up_s if w.sent_pps > w.asked_pps else 0.0)
        for before, w in pairwise((*windows[:1], *windows))
    }
    off = {w: abs(w.sent_pps / w.asked_pps - 1) for w in windows if w.asked_pps}
    # It catches up after pauses that are too short to explain what it did not send.
    if missed := [w for w in off if min(off[w], held_up_s[w] / (w.end_s - w.begin_s)) > BLAME_SHARE]:
        longest_ms = 1e3 * max(held_up_s[w] for w in missed)
        text = (
            f"in {len(missed)} of {len(windows)} windows other work held the sender's core (up to {longest_ms:.0f} ms)"
        )
        most = format_share(max(off[w] for w in missed))
        yield "sender-held-up", f"{text}: what it sent is off by up to {most}"


def _foreign_warnings(measured: RunWindows, result: DirectionResult) -> Iterator[Words]:
    """Report that clearly more was received than sent, in several windows: one may show an emptying queue or skew."""
    plan, windows = measured.plan, measured_windows(measured.plan, measured.samples, result.direction, SEEN_PHASES)
    more = result.received > (1 + plan.loss_threshold) * result.sent
    if more or find_sustained([misses(w.received, w.sent) for w in windows], plan.windows) is not None:
        others_pps = find_evidence(measured, result.direction).path.others_pps
        rate = f", {format_pps(others_pps)} all the time, which do not count" if others_pps else ""
        where = f"port {result.direction.rx}{rate}"
        yield "foreign-frames", f"more frames came back than were sent: something else sends to {where}"
