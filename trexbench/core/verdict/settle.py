"""Rates that were held and drained, so that totals can be compared; and the tests that a claim of loss must pass.

Confirmation trials and latency loads are held. A claim is tested against the trials, and against the totals after the
drain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf, sqrt
from statistics import fmean, median, stdev
from typing import NamedTuple

from ..load.plan import MIN_OFFERED_PPS, Direction
from ..load.sample import CONFIRM_PHASES, Phase, Sample, by_trial
from ..load.windows import NOTHING_SHARE, RunWindows, Window, build_window
from ..units import format_pps, format_share
from .blame import BLAME_SHARE, blame, misses, nothing_came
from .evidence import MAX_RECHECKS, find_evidence, find_rechecks
from .knee import find_sustained
from .parts import Limit, Trial, Verdict
from .path import SIGMAS, alike, find_path

LEAST_MORE = 0.001
"""Share by which more frames may come back than were sent: hosts and switches announce themselves."""
FAR_MORE = 2.0
"""A DUT that loses no larger share at this many times a rate is not saturated at it (benchmarks/verdicts.py)."""


class HeldRate(NamedTuple):
    """One direction at one rate."""

    samples: Sequence[Sample]  # while sending
    last: Sample  # after the drain
    window: Window  # all frames from the start until drained, but rates, CPU and queue of the sending part
    late: Sequence[Window]  # of the second half of the sending part, one for each sample
    offered_pps: float


def find_held(samples: Sequence[Sample], direction: Direction, phases: tuple[Phase, ...], number: int) -> HeldRate:
    """The trial of this number, which must have been drained; phases: of sending, and of the drain after it."""
    inside = by_trial(samples, *phases)[number]
    return hold_of(direction, samples[inside[0] - 1 : inside[-1] + 1])


def hold_of(direction: Direction, samples: Sequence[Sample]) -> HeldRate:
    """The rate held between the first and the last of these samples, both taken in silence."""
    held = [sample for sample in samples[1:] if sample.asked_pps]
    sending, drained = (build_window(direction, part) for part in (samples[: len(held) + 1], (samples[0], samples[-1])))
    # The first sample includes the time that a start takes: the sent rate is that of the others, if there are any.
    sent_pps = build_window(direction, samples[1 if len(held) > 1 else 0 : len(held) + 1]).sent_pps
    window = sending._replace(
        end_s=drained.end_s,
        sent=drained.sent,
        received=drained.received,
        sent_pps=sent_pps,
        received_pps=sent_pps * drained.received / drained.sent if drained.sent else 0.0,
        ierrors=drained.ierrors,
        link_up=sending.link_up and drained.link_up,
    )
    late = [build_window(direction, pair) for pair in pairwise(samples[len(held) // 2 : len(held) + 1])]
    return HeldRate(held, samples[-1], window, late, held[0].asked_pps[direction])


def find_trials(measured: RunWindows, direction: Direction) -> tuple[Trial, ...]:
    """Drained trials. One passes if its loss, without the path's, is within the threshold; Trial.loss has both.

    None passes to which clearly more came back than was sent: that may hide lost frames.
    """
    trials, path, loss = [], find_path(measured, direction), measured.plan.loss_threshold
    for number in by_trial(measured.samples, Phase.CONFIRM_DRAIN):
        _, _, window, _, offered = find_held(measured.samples, direction, CONFIRM_PHASES, number)
        corrected, sent_pps = path.correct(window), window.sent_pps
        offered = sent_pps if misses(offered, sent_pps) or misses(sent_pps, offered) else offered
        kept = corrected.sent > 0 and corrected.excess(loss) <= 0 and not _has_more(corrected, loss)
        trials.append(Trial(number, offered, window.sent, window.received, window.loss, kept))
    return tuple(trials)


def _has_more(window: Window, loss: float) -> bool:
    return -window.lost > max(LEAST_MORE, loss) * window.sent


def settle(measured: RunWindows, direction: Direction, verdict: Verdict, trials: Sequence[Trial]) -> Verdict:
    """The verdict, corrected or withdrawn where the drain or the trials contradict it."""
    if verdict.limit not in (Limit.DUT, Limit.NONE, Limit.UNKNOWN) or not measured.plan.seeks_knee:
        return verdict
    confirmed = max((trial.offered_pps for trial in trials if trial.passed), default=0.0)
    path, loss = find_path(measured, direction), measured.plan.loss_threshold
    held = {t: path.correct(find_held(measured.samples, direction, CONFIRM_PHASES, t.number).window) for t in trials}
    lossy = [t for t, w in held.items() if not t.passed and w.excess(loss) > 0]
    failed = [t for t in lossy if blame(measured.plan, [held[t]])[0] is not Limit.GENERATOR_RX]
    if verdict.limit is not Limit.DUT:
        return _bounded(verdict, confirmed, failed)
    reason = _came_late(measured, direction, verdict) or (_only_carried(measured, direction) if trials else "")
    reason = reason or _carried_far_more(measured, direction, verdict)
    reason = reason or _more_came(measured, direction, verdict, held.values())
    if not confirmed:
        reason = reason or _lost_less(measured, direction, verdict, failed) or _none_without_loss(measured, failed)
    if reason:
        unknown = replace(verdict, limit=Limit.UNKNOWN, reasons=(reason,), goals=())
        return replace(unknown, maximum_pps=confirmed, low_pps=None, high_pps=None)
    came = inf
    if failed and failed[0] is trials[0]:  # the figure's own: what came through in it
        whole, late = held[failed[0]], find_held(measured.samples, direction, CONFIRM_PHASES, failed[0].number).late
        sent_pps = failed[0].offered_pps / (1 - loss)
        came, *came_late = (w.received / w.sent * sent_pps for w in (whole, *map(path.correct, late)) if w.sent)
        at_length = fmean(came_late or [inf])
        chance = SIGMAS * stdev(came_late) / sqrt(len(came_late)) if len(came_late) > 1 else 0.0
        # What was confirmed came in the first half only: the DUT polices the traffic, or slows down.
        if 2 * came - at_length >= confirmed > at_length + chance:
            confirmed, came = 0.0, at_length
    # RFC 2544: the fastest rate at which a trial lost none, unless only the tester's receiver failed a faster one.
    if confirmed and not loss and (failed or all(trial.passed for trial in trials)):
        came = confirmed
    elif came == inf:
        return verdict
    maximum = max(confirmed, min(verdict.maximum_pps, came))
    low = confirmed or maximum * (1 - loss)
    came_low = next(
        (t.received / t.sent * t.offered_pps for t in trials if t.passed and t.offered_pps == confirmed), None
    )
    goals = [replace(goal, maximum_pps=maximum, low_pps=low, received_pps=came_low) for goal in verdict.goals[:1]]
    good = min(verdict.last_good_pps or 0.0, confirmed) or None
    lowered = replace(verdict, maximum_pps=maximum, low_pps=low, last_good_pps=good)
    return replace(lowered, goals=(*goals, *verdict.goals[1:]))


def _bounded(verdict: Verdict, confirmed: float, failed: Sequence[Trial]) -> Verdict:
    """Lower a bound to what was confirmed, if a trial of it failed."""
    if not failed or confirmed >= verdict.maximum_pps:
        return verdict
    share, pps = format_share(failed[0].loss or 0.0), format_pps(failed[0].offered_pps)
    reasons = verdict.reasons if verdict.limit is Limit.UNKNOWN else ()
    reason = f"{share} of the frames were lost when {pps} was held: the DUT slowed down, or loss comes and goes"
    return replace(verdict, limit=Limit.UNKNOWN, reasons=(*reasons, reason), maximum_pps=confirmed, goals=())


def _came_late(measured: RunWindows, direction: Direction, verdict: Verdict) -> str:
    """Explain that missing frames were only late, as they had come back after the drain; empty if they were lost."""
    samples, evidence = measured.samples, find_evidence(measured, direction)
    drained = next((sample for sample in reversed(samples) if sample.phase is Phase.DRAIN), None)
    if drained is None or verdict.saturated_at_s is None:
        return ""
    after = [window for window in evidence.windows if window.begin_s >= verdict.saturated_at_s]
    claimed = sum(window.lost for window in after if window.is_bad(measured.plan.loss_threshold))
    whole, path = build_window(direction, (samples[0], drained)), evidence.path
    missing = path.correct(whole).lost
    # A short overload may leave most of its frames in rings; where far more came back than was sent, others send, too.
    if abs(missing) >= (1 - NOTHING_SHARE) * claimed:
        return ""
    return (
        f"{claimed} frames were missing while the traffic went on, and only {max(0, round(missing))} when it had "
        "stopped: the path delays frames, or a port's counters, by more than a window; use a longer `window:` in the "
        "plan"
    )


def _more_came(measured: RunWindows, direction: Direction, verdict: Verdict, trials: Iterable[Window]) -> str:
    """Explain that other frames may have hidden lost ones, as clearly more came back than was sent; else empty."""
    least_pps, windows = BLAME_SHARE * verdict.maximum_pps, find_evidence(measured, direction).windows
    more = [-w.lost - w.skew > least_pps * (w.end_s - w.begin_s) for w in windows]
    first = find_sustained(more, measured.plan.windows)
    seen = [w for w in trials if _has_more(w, measured.plan.loss_threshold)] if first is None else windows[first:]
    if not seen:
        return ""
    share, pps = format_share(-seen[0].lost / seen[0].sent), format_pps(seen[0].sent_pps)
    who = f"something else sends to port {direction.rx}"
    return f"{share} more frames came back than were sent at {pps}: {who}, and may hide what was lost"


def _only_carried(measured: RunWindows, direction: Direction) -> str:
    """Explain that loss set in at a new rate each time, and all were carried when held; empty where one was not."""
    holds, stalls = find_rechecks(measured, direction), find_evidence(measured, direction).stalls
    if len(stalls) < MAX_RECHECKS or not all(hold.carried for hold in holds):
        return ""
    # A DUT that forwards no more than these rates when offered more has its limit there: chance had them carried.
    most_pps = max(hold.window.asked_pps for hold in holds)
    above_pps = [w.received_pps for w in measured.sending(direction) if w.sent_pps > most_pps]
    if above_pps and median(above_pps) <= most_pps + measured.plan.step_pps(direction):
        return ""
    rates = ", ".join(format_pps(hold.window.asked_pps) for hold in holds)
    return (
        f"loss set in several times, and the DUT carried {rates} when these rates were held again: it stalls now and "
        "then, or the path's delay grows; use a longer --ramp-duration, or trexbench search"
    )


def _carried_far_more(measured: RunWindows, direction: Direction, verdict: Verdict) -> str:
    """Explain that a search's ramp carried far higher rates; empty where it did not."""
    loss, high_pps = measured.plan.loss_threshold, verdict.high_pps or inf
    if not by_trial(measured.samples, Phase.SEARCH):
        return ""
    windows = find_evidence(measured, direction).windows
    carried = [w.sent_pps for w in windows if w.sent_pps > FAR_MORE * high_pps and not w.is_bad(loss)]
    if len(carried) < measured.plan.windows:
        return ""
    return (
        f"the DUT carried {format_pps(max(carried))} in the ramp, and then no more than {format_pps(high_pps)}: it "
        "slowed down, polices the traffic, or the path's delay has grown"
    )


def _none_without_loss(measured: RunWindows, failed: Sequence[Trial]) -> str:
    """Explain that no rate was seen to lose nothing; empty where a share may be lost, which one trial can show."""
    if measured.plan.loss_threshold > 0 or not failed:
        return ""
    lowest = min(failed, key=lambda trial: trial.offered_pps)
    return (
        f"{lowest.sent - lowest.received} of {lowest.sent} frames were lost at {format_pps(lowest.offered_pps)}, the "
        "lowest rate that was held: no rate was seen to lose none; allow a share with --loss"
    )


def _lost_less(measured: RunWindows, direction: Direction, verdict: Verdict, failed: Sequence[Trial]) -> str:
    """Explain that the DUT is not saturated, as it lost no larger share at far higher rates; empty where it may be.

    failed: trials. The first loss of the ramp is judged where the rate before it is too low for a trial.
    """
    windows = find_evidence(measured, direction).windows
    held = [recheck.window for recheck in find_rechecks(measured, direction)]
    lossy = [(trial.offered_pps, trial.loss or 0.0) for trial in failed]
    if not lossy and verdict.confirm_pps < MIN_OFFERED_PPS:
        lossy = [(w.sent_pps, w.lost / w.sent) for w in windows if w.begin_s == verdict.saturated_at_s]
    for pps, share in lossy:
        if share > NOTHING_SHARE:
            return nothing_came(pps)
        most = share + alike(share)
        higher = [w.sent_pps for w in (*windows, *held) if w.sent_pps > FAR_MORE * pps and w.lost <= most * w.sent]
        if higher:
            return (
                f"{format_share(share)} of the frames were lost at {format_pps(pps)}, and no more at "
                f"{format_pps(max(higher))}: the DUT was not at its limit; look for what loses frames on the path"
            )
    return ""
