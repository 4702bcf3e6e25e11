"""Blame for lost frames: it falls on the DUT only where neither the generator nor a link can have lost them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from ..load.plan import Plan
from ..load.windows import Window
from ..units import format_pps, format_share
from .parts import Goal, Limit, Verdict

BLAME_SHARE = 0.01
"""The generator did not keep up if it sent this share less than asked, or if as large a share met a full queue
(tests/truth/test_mixed_faults.py)."""
MOST = 0.1
"""The generator's receiver is to blame if it lost this share of the missing frames, and more than may be lost. With
half, the DUT is blamed in 10 of 80 ramps of 20 s where the receiver carries 0.6 to 1.4 times as much; with a fifth or
less, in none (test_a_receiver_that_is_the_limit_is_no_dut)."""
CPU_LIMIT_PERCENT = 85.0
"""TRex's own console shows a core's load in red from here on."""
LINK_DOWN = (Limit.LINK, ("a link went down",))


def blame(plan: Plan, windows: Sequence[Window]) -> tuple[Limit, tuple[str, ...]]:
    """Find who caused the loss in these windows, and the evidence for it.

    The offered load is what was sent. So sending less than asked is evidence against the generator only where no window
    is bad, or where nothing is known of its queues and CPU.
    """
    if not all(w.link_up for w in windows):
        return LINK_DOWN
    own, lost = _own_loss(windows)
    allowed = plan.loss_threshold * sum(w.sent for w in windows)
    if own > 0 and (lost - own <= allowed or own > max(allowed, MOST * lost)):
        return Limit.GENERATOR_RX, (f"the tester's receiving port {_own_words(windows)}",)
    behind, strained = _behind(windows), _strained(plan, windows)
    unknown = all(w.queue_full is w.queue_full_anywhere is w.cpu_percent is None for w in windows)
    if strained or (behind and (unknown or not any(w.is_bad(plan.loss_threshold) for w in windows))):
        return Limit.GENERATOR_TX, (*behind, *strained)
    kept = "less than asked for, yet showed no limit of its own" if behind else "what was asked for"
    words = f"{_loss_words(windows)} while the generator sent {kept}, and its receiving port {_own_words(windows)}"
    return Limit.DUT, (words, *behind)


def nothing_came(pps: float) -> str:
    """Explain that this rate shows no limit, as hardly a frame came through (windows.NOTHING_SHARE)."""
    return f"less than 1 % came through at {format_pps(pps)}: the DUT had stopped forwarding, or is far slower"


def blame_onset(plan: Plan, onset: Sequence[Window], windows: Sequence[Window]) -> tuple[Limit, tuple[str, ...]]:
    """Find who caused the loss in its first windows (onset), given all windows."""
    after_first = windows[windows.index(onset[0]) + 1 :]
    if not windows[-1].link_up and not any(w.received for w in after_first):  # the link is reported down late
        return LINK_DOWN
    limit, reasons = blame(plan, onset)
    if limit is not Limit.GENERATOR_TX:
        return limit, reasons
    # A generator that later sends more without being at its own limit was not the limit before.
    more_pps = max(w.sent_pps for w in onset) * (1 + BLAME_SHARE)
    above = [w for w in windows if w.sent_pps > more_pps and w.is_bad(plan.loss_threshold) and not _strained(plan, [w])]
    if len(above) < plan.windows or blame(plan, above)[0] not in (Limit.DUT, Limit.GENERATOR_TX):
        return limit, reasons
    return Limit.DUT, (
        f"{_loss_words(above)} in which more was sent, and the receiving port {_own_words(above)}",
        *reasons,
    )


def _own_loss(windows: Sequence[Window]) -> tuple[int, int]:
    """Count what the tester's port lost itself, and all lost frames; the counters are read at different times."""
    lost = sum(w.lost for w in windows)
    return min(sum(w.ierrors for w in windows), lost), lost


def _own_words(windows: Sequence[Window]) -> str:
    own, lost = _own_loss(windows)
    return f"lost {own} of {lost} frames itself (ierrors)" if own > 0 else "reported no loss of its own"


def _loss_words(windows: Sequence[Window]) -> str:
    loss = sum(w.lost for w in windows) / sum(w.sent for w in windows)
    return f"loss of {format_share(loss)} over {len(windows)} windows"


def _behind(windows: Sequence[Window]) -> tuple[str, ...]:
    asked, sent = fmean(w.asked_pps for w in windows), fmean(w.sent_pps for w in windows)
    return (f"asked for {format_pps(asked)}, sent {format_pps(sent)}",) if misses(asked, sent) else ()


def _strained(plan: Plan, windows: Sequence[Window]) -> tuple[str, ...]:
    """Collect evidence that the generator was at its own limit, where its frames come in bursts.

    Where only the sum of all ports' full queues is known, each direction has its share of it. TRex counts retries,
    which delay frames and lose none: a direction that sent what was asked had no part in them.
    """
    reasons: list[str] = []
    own = [w.queue_full for w in windows if w.queue_full is not None]
    directions = len(plan.directions)
    may_share = directions == 1 or _behind(windows)
    shared = sum(w.queue_full_anywhere or 0 for w in windows) / directions if may_share else 0.0
    queue_full = sum(own) if own else shared
    if queue_full > BLAME_SHARE * sum(w.sent for w in windows):
        reasons.append(f"its transmit queue was full {queue_full:.0f} times")
    cpu = [w.cpu_percent for w in windows if w.cpu_percent is not None]
    if cpu and median(cpu) >= CPU_LIMIT_PERCENT:
        reasons.append(f"its CPU was at {median(cpu):.0f} %")
    return tuple(reasons)


def misses(asked_pps: float, sent_pps: float) -> bool:
    """Test whether the generator fell short of the rate asked for."""
    return sent_pps < asked_pps * (1 - BLAME_SHARE)


def limit_without_loss(plan: Plan, windows: Sequence[Window], tail: Sequence[Window]) -> tuple[Limit, tuple[str, ...]]:
    """Find what limited the load where no loss lasted. tail: the windows in which the sender is judged."""
    if not all(w.link_up for w in windows):
        return LINK_DOWN
    shortfall = (*_behind(tail), *_strained(plan, tail))
    return (Limit.GENERATOR_TX, shortfall) if shortfall else (Limit.NONE, ())


def without_loss(plan: Plan, windows: Sequence[Window], goals: tuple[Goal, ...], carried_pps: float) -> Verdict:
    """The verdict where no rate of a search lost more than its first goal; its last windows show a slow sender."""
    limit, reasons = limit_without_loss(plan, windows, windows[-plan.windows :])
    most = f"no loss above {100 * goals[0].loss:g} % up to {format_pps(carried_pps)}, the most that was offered"
    return Verdict(limit, reasons or (most,), carried_pps, last_good_pps=carried_pps, goals=goals)
