"""Samples -> where each direction saturates, and who is to blame. All judgement is here, none of it is I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median, stdev

from .blame import blame, generator_short, misses
from .caveats import find_caveats
from .knee import find_knee, find_sustained
from .plan import MIN_OFFERED_PPS, Direction, Plan
from .sample import CONFIRM_PHASES, LATENCY_PHASES, Phase, Sample, find_setback
from .units import format_pps, format_share
from .verdict import Analysis, Caveat, DirectionResult, Limit, Trial
from .windows import Window, build_window, judged_windows, last_windows

TRIAL_STEP = 0.03
"""Each confirmation trial after the first is this share of the last good rate lower."""
WARMUP_RETURN_SHARE = 0.5
"""Less than this coming back in the warm-up is a broken path, not a slow router."""


def analyse(plan: Plan, samples: Sequence[Sample]) -> Analysis:
    """The verdict over all samples of a run, whether it came to its end or not.

    What was read after a counter went backwards is left out, and a caveat says so.
    """
    sound, setback = _sound(plan, samples)
    results = tuple(_judge(plan, sound, d) for d in plan.directions)
    caveats = find_caveats(plan, sound, results)
    return Analysis(results, caveats if setback is None else (setback, *caveats))


def all_saturated(plan: Plan, samples: Sequence[Sample]) -> bool:
    """Every direction is saturated, and still lossy. Cheap while it is not so: asked after every sample."""
    tails = [last_windows(plan, samples, d, plan.windows) for d in plan.directions]
    if not all(len(t) == plan.windows and all(w.is_bad(plan.loss_threshold) for w in t) for t in tails):
        return False
    # These windows slide with the samples; the verdict's stand on a grid, and may still need another sample.
    return all(r.saturated_at_s is not None for r in analyse(plan, samples).directions)


def confirmation_rate(plan: Plan, samples: Sequence[Sample]) -> float | None:
    """The rate of the next confirmation trial: from the lowest last good rate downwards; None if none is due."""
    results = analyse(plan, samples).directions
    saturated = [r for r in results if r.limit is Limit.DUT]
    trial = samples[-1].trial
    if not saturated or (trial and all(r.trials[-1].passed for r in saturated if r.trials)):
        return None
    rate = min(r.maximum_pps for r in saturated) * (1 - TRIAL_STEP * trial)
    return rate if rate >= MIN_OFFERED_PPS else None


def find_throughput(plan: Plan, samples: Sequence[Sample]) -> float:
    """What every direction carried at once: confirmed where it was held again, else the last good rate; 0 if none."""
    results = analyse(plan, [s for s in samples if s.phase not in LATENCY_PHASES]).directions
    return min((r.maximum_pps if r.confirmed_pps is None else r.confirmed_pps for r in results), default=0.0)


def check_warmup(plan: Plan, samples: Sequence[Sample]) -> str | None:
    """Why the warm-up does not prove a working path, in one line; None when it does.

    Looks at its second half only, so that a DUT may wake up first.
    """
    warm = [i for i, s in enumerate(samples) if s.phase is Phase.WARMUP]
    if not warm:
        return None
    half = samples[warm[0] - 1 + len(warm) // 2 : warm[-1] + 1]
    for direction in plan.directions:
        window = build_window(direction, half)
        if window.sent == 0:
            return (
                f"nothing was sent on port {direction.tx} in the warm-up: the generator took the streams and "
                "sends no frames; look at its own log and the port's link"
            )
        if window.received < WARMUP_RETURN_SHARE * window.sent:
            return _nothing_back(plan, half, direction, window)
    return None


def _nothing_back(plan: Plan, half: Sequence[Sample], direction: Direction, window: Window) -> str:
    share = "nothing" if window.received <= 0 else f"only {format_share(window.received / window.sent)} of the frames"
    elsewhere = []
    expected = {d.rx for d in plan.directions}
    for port, last in half[-1].reading.ports.items():
        arrived = last.ipackets - half[0].reading.ports[port].ipackets
        if port != direction.rx and port not in expected and arrived > window.sent / 2:
            elsewhere.append(port)
    if elsewhere:
        return (
            f"{share} came back on port {direction.rx}, but the frames arrived on port {elsewhere[0]}: "
            "swap the cables or the DUT's routes"
        )
    return (
        f"{share} came back on port {direction.rx} of what port {direction.tx} sent: likely causes are a missing "
        "route or neighbour on the DUT, forwarding or a firewall there, a wrong destination MAC, or a link that is down"
    )


def _sound(plan: Plan, samples: Sequence[Sample]) -> tuple[Sequence[Sample], Caveat | None]:
    """The samples up to the first counter that went backwards, and the doubt that this casts."""
    for i, (before, after) in enumerate(pairwise(samples)):
        problem = find_setback(before, after, plan.ports)
        if problem is not None:
            text = f"{problem}: what was counted after {before.t_s:.1f} s is left out"
            return samples[: i + 1], Caveat("counters-back", text)
    return samples, None


def _judge(plan: Plan, samples: Sequence[Sample], direction: Direction) -> DirectionResult:
    # A window in which nothing was sent says nothing about loss: neither does it end a loss that lasts.
    windows = [w for w in judged_windows(plan, samples, direction) if w.sent]
    hold = [w for w in windows if w.phase is Phase.HOLD]
    whole = build_window(direction, samples) if len(samples) > 1 else None
    verdict = _of_ramp(plan, windows) if plan.kind == "ramp" else _of_saturated_line(plan, windows)
    return DirectionResult(
        direction=direction,
        limit=verdict.limit,
        at_least=verdict.limit is not Limit.DUT,
        maximum_pps=verdict.maximum_pps,
        first_bad_pps=verdict.first_bad_pps,
        uncertainty_pps=verdict.uncertainty_pps,
        max_received_pps=max((w.received_pps for w in windows), default=0.0),
        saturated_at_s=verdict.saturated_at_s,
        reasons=verdict.reasons,
        hold_loss=sum(w.lost for w in hold) / sum(w.sent for w in hold) if hold else None,
        sent=whole.sent if whole else 0,
        received=whole.received if whole else 0,
        trials=_trials(plan, samples, direction),
    )


@dataclass(frozen=True)
class _Verdict:
    """What only the kind of plan can tell; fields as in DirectionResult."""

    limit: Limit
    reasons: tuple[str, ...]
    maximum_pps: float = 0.0
    uncertainty_pps: float = 0.0
    first_bad_pps: float | None = None
    saturated_at_s: float | None = None


def _of_ramp(plan: Plan, windows: Sequence[Window]) -> _Verdict:
    knee = find_knee(plan, windows)
    if knee is None:
        return _unsaturated(plan, windows)
    limit, reasons = blame(plan, windows[knee.index : knee.index + plan.windows])
    uncertainty = knee.uncertainty_pps if limit is Limit.DUT else 0.0
    return _Verdict(limit, reasons, knee.maximum_pps, uncertainty, knee.first_bad_pps, windows[knee.index].begin_s)


def _of_saturated_line(plan: Plan, windows: Sequence[Window]) -> _Verdict:
    """What emerged of a line that was filled at once."""
    if not windows:
        return _Verdict(Limit.NONE, ("the run ended before it measured anything",))
    received = [w.received_pps for w in windows]
    spread = 2 * stdev(received) / len(received) ** 0.5 if len(received) > 1 else 0.0
    bad = find_sustained([w.is_bad(plan.loss_threshold) for w in windows], plan.windows)
    if bad is not None:
        limit, reasons = blame(plan, windows)
        offered = fmean(w.sent_pps for w in windows)
        reasons = (f"offered {format_pps(offered)}, {format_pps(fmean(received))} emerged", *reasons)
        return _Verdict(limit, reasons, fmean(received), spread, windows[bad].sent_pps, windows[bad].begin_s)
    limit, reasons = _limit_without_loss(plan, windows, windows)
    return _Verdict(
        limit,
        reasons or (f"no sustained loss of {format_pps(fmean(w.sent_pps for w in windows))} offered",),
        fmean(received),
        spread,
    )


def _unsaturated(plan: Plan, windows: Sequence[Window]) -> _Verdict:
    """A ramp in which no loss lasted: the rate carried without loss, and what kept it from being more."""
    if not windows:
        return _Verdict(Limit.NONE, ("the run ended before it measured anything",))
    good = [w for w in windows if not w.is_bad(plan.loss_threshold)]
    if not good:
        return _Verdict(Limit.NONE, ("no window was free of loss, and none was followed by enough others to judge",))
    limit, reasons = _limit_without_loss(plan, windows, windows[-plan.windows :])
    hold = [w.sent_pps for w in good if w.phase is Phase.HOLD]
    if limit is not Limit.NONE or not hold:
        return _carried(limit, reasons, max(w.sent_pps for w in good))
    return _carried(limit, reasons, median(hold))


def _carried(limit: Limit, reasons: tuple[str, ...], pps: float) -> _Verdict:
    return _Verdict(limit, reasons or (f"no sustained loss up to {format_pps(pps)}, the most that was offered",), pps)


def _limit_without_loss(plan: Plan, windows: Sequence[Window], tail: Sequence[Window]) -> tuple[Limit, tuple[str, ...]]:
    if not all(w.link_up for w in windows):
        return Limit.LINK, ("a link went down",)
    shortfall = generator_short(plan, tail)
    return (Limit.GENERATOR_TX, shortfall) if shortfall else (Limit.NONE, ())


def _trials(plan: Plan, samples: Sequence[Sample], direction: Direction) -> tuple[Trial, ...]:
    """Trials that came to their end. One passes when what was asked was sent, and no more of it lost than may be."""
    trials = []
    for number in sorted({s.trial for s in samples if s.phase is Phase.CONFIRM_DRAIN}):
        inside = [i for i, s in enumerate(samples) if s.trial == number and s.phase in CONFIRM_PHASES]
        held = [i for i in inside if samples[i].phase is Phase.CONFIRM]
        window = build_window(direction, samples[inside[0] - 1 : inside[-1] + 1])
        # Its first sample holds the moment that a start takes; where there are more, the sent rate is theirs.
        first = held[0] if len(held) > 1 else held[0] - 1
        sent_pps = build_window(direction, samples[first : held[-1] + 1]).sent_pps
        offered = samples[held[0]].asked_pps
        kept = window.loss is not None and window.loss <= plan.loss_threshold
        trials.append(
            Trial(number, offered, window.sent, window.received, window.loss, kept and not misses(offered, sent_pps))
        )
    return tuple(trials)
