"""Lossy windows -> who lost the frames: the DUT only where neither the generator nor a link can have."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from ..load.plan import Plan
from ..load.windows import Window
from ..units import format_pps, format_share
from .model import Limit

TX_MISS_SHARE = 0.01
"""Sent this much less than asked: the generator did not keep up."""
TX_LAG_SHARE = 0.001
"""Sent this much less than asked: too little to blame the generator, enough to come from a full queue."""
CPU_LIMIT_PERCENT = 85.0
RX_BLAME_SHARE = 0.01
"""From this share of the loss on, the receiving port's own errors explain it: the generator's receiver is to blame."""


def blame(plan: Plan, windows: Sequence[Window]) -> tuple[Limit, tuple[str, ...]]:
    """Who caused the loss in these windows, and the evidence."""
    if not all(w.link_up for w in windows):
        return Limit.LINK, ("a link went down",)
    ierrors, lost = sum(w.ierrors for w in windows), sum(w.lost for w in windows)
    if ierrors and ierrors >= RX_BLAME_SHARE * lost:
        return Limit.GENERATOR_RX, (f"the tester's receiving port lost {ierrors} of {lost} frames itself (ierrors)",)
    shortfall = generator_short(plan, windows)
    if shortfall:
        return Limit.GENERATOR_TX, shortfall
    loss = lost / sum(w.sent for w in windows)
    return Limit.DUT, (
        f"loss of {format_share(loss)} over {len(windows)} windows while the generator sent what was asked and its "
        "receiver lost nothing",
    )


def generator_short(plan: Plan, windows: Sequence[Window]) -> tuple[str, ...]:
    """Evidence that the sending port did not keep up in these windows; empty when it did."""
    reasons = []
    asked, sent = fmean(w.asked_pps for w in windows), fmean(w.sent_pps for w in windows)
    if misses(asked, sent):
        reasons.append(f"asked for {format_pps(asked)}, sent {format_pps(sent)}")
    queue_full = _queue_full(windows, len(plan.directions), misses(asked, sent, TX_LAG_SHARE))
    if queue_full > TX_MISS_SHARE * sum(w.sent for w in windows):
        reasons.append(f"its transmit queue was full {queue_full:.0f} times")
    cpu = [w.cpu_percent for w in windows if w.cpu_percent is not None]
    if cpu and median(cpu) >= CPU_LIMIT_PERCENT:
        reasons.append(f"its CPU was at {median(cpu):.0f} %")
    return tuple(reasons)


def _queue_full(windows: Sequence[Window], directions: int, lagging: bool) -> float:
    """How often the sending port's queue was full; where only the sum over all ports is known, a share of it.

    TRex counts retries, which delay frames and lose none: a direction that sent what was asked had no part in them.
    """
    own = [w.queue_full for w in windows if w.queue_full is not None]
    if own:
        return sum(own)
    if directions > 1 and not lagging:
        return 0.0
    return sum(w.queue_full_anywhere or 0 for w in windows) / directions


def misses(asked_pps: float, sent_pps: float, share: float = TX_MISS_SHARE) -> bool:
    """Whether less was sent than a generator that keeps up would send."""
    return sent_pps < asked_pps * (1 - share)


def limit_without_loss(plan: Plan, windows: Sequence[Window], tail: Sequence[Window]) -> tuple[Limit, tuple[str, ...]]:
    """What limited the load where no loss lasted; tail: the windows in which the sender is judged."""
    if not all(w.link_up for w in windows):
        return Limit.LINK, ("a link went down",)
    shortfall = generator_short(plan, tail)
    return (Limit.GENERATOR_TX, shortfall) if shortfall else (Limit.NONE, ())
