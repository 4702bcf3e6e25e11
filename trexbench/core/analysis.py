"""Samples -> where each direction saturates, and who is to blame. All judgement is here, none of it is I/O."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from .caveats import find_caveats
from .plan import MIN_OFFERED_PPS, Direction, Plan
from .sample import Phase, Sample
from .units import format_pps, format_share
from .verdict import Analysis, DirectionResult, Limit, Trial
from .windows import Window, build_window, last_windows, measured_windows

TX_MISS_SHARE = 0.01
"""Sent this much less than asked: the generator did not keep up."""
CPU_LIMIT_PERCENT = 85.0
RX_BLAME_SHARE = 0.01
"""The receiving port's own errors make up this much of the loss: the generator's receiver is to blame."""
TRIAL_STEP = 0.03
"""Each confirmation trial after the first is this share of the last good rate lower."""
WARMUP_RETURN_SHARE = 0.5
"""Less than this coming back in the warm-up is a broken path, not a slow router."""


def analyse(plan: Plan, samples: Sequence[Sample]) -> Analysis:
    """The verdict over all samples of a run, whether it came to its end or not."""
    results = tuple(_judge(plan, samples, d) for d in plan.directions)
    return Analysis(results, find_caveats(plan, samples, results))


def all_saturated(plan: Plan, samples: Sequence[Sample]) -> bool:
    """Every direction's last windows are all bad. Cheap: asked after every sample."""
    tails = [last_windows(plan, samples, d, plan.windows) for d in plan.directions]
    return all(len(t) == plan.windows and all(w.is_bad(plan.loss_threshold) for w in t) for t in tails)


def confirmation_rate(plan: Plan, samples: Sequence[Sample]) -> float | None:
    """The rate of the next confirmation trial: from the lowest last good rate downwards; None if none is due."""
    results = analyse(plan, samples).directions
    saturated = [r for r in results if r.limit is Limit.DUT]
    trial = samples[-1].trial
    if not saturated or (trial and all(r.trials[-1].passed for r in results if r.trials)):
        return None
    rate = min(r.maximum_pps for r in saturated) * (1 - TRIAL_STEP * trial)
    return rate if rate >= MIN_OFFERED_PPS else None


def check_warmup(plan: Plan, samples: Sequence[Sample]) -> str | None:
    """Why the warm-up does not prove a working path, in one line; None when it does.

    Looks at its second half only, so that a DUT may wake up first.
    """
    warm = [s for s in samples if s.phase is Phase.WARMUP]
    half = warm[(len(warm) - 1) // 2 :]
    if len(half) < 2:
        return None
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


def _judge(plan: Plan, samples: Sequence[Sample], direction: Direction) -> DirectionResult:
    windows = measured_windows(plan, samples, direction)
    bad = _sustained([w.is_bad(plan.loss_threshold) for w in windows], plan.windows)
    if bad is None:
        limit, reasons, maximum = _unsaturated(plan, windows)
    else:
        limit, reasons = _blame(plan, windows[bad : bad + plan.windows])
        maximum = windows[bad - 1].sent_pps if bad else 0.0
    first_bad = None if bad is None else windows[bad].sent_pps
    hold = [w for w in windows if w.phase is Phase.HOLD and w.sent]
    whole = build_window(direction, samples) if len(samples) > 1 else None
    return DirectionResult(
        direction=direction,
        limit=limit,
        at_least=limit is not Limit.DUT,
        maximum_pps=maximum,
        first_bad_pps=first_bad,
        uncertainty_pps=0.0 if first_bad is None else max(first_bad - maximum, plan.step_pps),
        max_received_pps=max((w.received_pps for w in windows), default=0.0),
        saturated_at_s=None if bad is None else windows[bad].begin_s,
        reasons=reasons,
        hold_loss=sum(w.lost for w in hold) / sum(w.sent for w in hold) if hold else None,
        sent=whole.sent if whole else 0,
        received=whole.received if whole else 0,
        trials=_trials(plan, samples, direction),
    )


def _sustained(flags: Sequence[bool], count: int) -> int | None:
    """Index of the first of ``count`` consecutive true flags."""
    run = 0
    for i, flag in enumerate(flags):
        run = run + 1 if flag else 0
        if run == count:
            return i - count + 1
    return None


def _blame(plan: Plan, windows: Sequence[Window]) -> tuple[Limit, tuple[str, ...]]:
    """Who caused the loss in these windows: the DUT only when nobody else can have."""
    if not all(w.link_up for w in windows):
        return Limit.LINK, ("a link went down",)
    ierrors, lost = sum(w.ierrors for w in windows), sum(w.lost for w in windows)
    if ierrors and ierrors >= RX_BLAME_SHARE * lost:
        return Limit.GENERATOR_RX, (
            f"the tester's receiving port itself lost {ierrors} of the {lost} frames (ierrors)",
        )
    shortfall = _generator_short(plan, windows)
    if shortfall:
        return Limit.GENERATOR_TX, shortfall
    loss = lost / sum(w.sent for w in windows)
    return Limit.DUT, (
        f"loss of {format_share(loss)} over {len(windows)} windows while the generator sent what was asked and its "
        "receiver lost nothing",
    )


def _generator_short(plan: Plan, windows: Sequence[Window]) -> tuple[str, ...]:
    """Signs that the generator did not keep up; empty when it did."""
    reasons = []
    asked = sum(w.asked_pps for w in windows) / len(windows)
    sent = sum(w.sent_pps for w in windows) / len(windows)
    if sent < asked * (1 - TX_MISS_SHARE):
        reasons.append(f"asked for {format_pps(asked)}, sent {format_pps(sent)}")
    queue_full = sum(w.queue_full or 0 for w in windows)
    if queue_full > plan.loss_threshold * sum(w.sent for w in windows):
        reasons.append(f"its transmit queue was full {queue_full} times")
    cpu = [w.cpu_percent for w in windows if w.cpu_percent is not None]
    if cpu and median(cpu) >= CPU_LIMIT_PERCENT:
        reasons.append(f"its CPU was at {median(cpu):.0f} %")
    return tuple(reasons)


def _unsaturated(plan: Plan, windows: Sequence[Window]) -> tuple[Limit, tuple[str, ...], float]:
    """Limit, reasons and the rate carried without loss, for a direction that never saturated."""
    if not windows:
        return Limit.NONE, ("the run ended before it measured anything",), 0.0
    good = [w for w in windows if not w.is_bad(plan.loss_threshold)]
    if not good:
        return (
            Limit.NONE,
            ("no window was free of loss, and none was followed by enough others to judge",),
            0.0,
        )
    if not all(w.link_up for w in windows):
        return Limit.LINK, ("a link went down",), max(w.sent_pps for w in good)
    tail = windows[-plan.windows :]
    shortfall = _generator_short(plan, tail)
    if shortfall:
        return Limit.GENERATOR_TX, shortfall, max(w.sent_pps for w in good)
    hold = [w.sent_pps for w in good if w.phase is Phase.HOLD]
    reached = median(hold) if hold else good[-1].sent_pps
    return Limit.NONE, (f"no sustained loss up to {format_pps(reached)}, the most that was offered",), reached


def _trials(plan: Plan, samples: Sequence[Sample], direction: Direction) -> tuple[Trial, ...]:
    trials = []
    for number in sorted({s.trial for s in samples if s.phase is Phase.CONFIRM_DRAIN}):
        inside = [i for i, s in enumerate(samples) if s.trial == number]
        window = build_window(direction, samples[inside[0] - 1 : inside[-1] + 1])
        passed = window.loss is not None and window.loss <= plan.loss_threshold
        offered = samples[inside[0]].asked_pps
        trials.append(Trial(number, offered, window.sent, window.received, window.loss, passed))
    return tuple(trials)
