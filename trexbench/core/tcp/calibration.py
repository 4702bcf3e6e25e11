"""Is a WAN what it is said to be: its delay, by echo requests. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ..units import format_time
from .model import Ping
from .wan import Wan

PINGS = 5
LATE, LATE_S, EARLY = 0.1, 0.002, 0.02
"""Round trips may be so much longer than the delay (the path and the hosts add theirs), and so much shorter."""


@dataclass(frozen=True)
class LineCalibration:
    """Observations of the line before the legs."""

    pings: tuple[Ping, ...] = ()


def wrong_delay(wan: Wan, times_s: Sequence[float]) -> str | None:
    """Describe what is wrong with the round trips of these answers; None: nothing."""
    if not times_s:
        return "no echo request was answered"
    least_s = wan.delay_s * (1 - EARLY) - 2 * wan.jitter_s
    most_s = wan.delay_s * (1 + LATE) + 2 * wan.jitter_s + LATE_S
    if min(times_s) >= least_s and median(times_s) <= most_s:
        return None
    seen = f"round trips are {format_time(min(times_s))} at least and {format_time(median(times_s))} in the median"
    return f"{seen}, with a delay of {format_time(wan.delay_s)}"
