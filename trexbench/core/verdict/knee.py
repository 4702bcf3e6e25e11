"""Windows of a ramp -> the rate at which sustained loss sets in, and its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..load.plan import Direction, Plan
from ..load.windows import Window

SCATTER_WINDOWS = 12
"""Windows past the knee from which is estimated how much the received rate varies from window to window."""
MARGIN = 1.5
"""Standard deviations of that rate that are added to the uncertainty of a single crossing."""


@dataclass(frozen=True)
class Knee:
    """Where one direction's sustained loss begins: index of its first window; rates in frames per second."""

    index: int
    maximum_pps: float
    interval_pps: tuple[float, float]
    last_good_pps: float
    first_bad_pps: float


def find_knee(plan: Plan, direction: Direction, windows: Sequence[Window]) -> Knee | None:
    """The knee of windows that all sent something; None without sustained loss.

    The maximum is the last good offered rate: that of the window before the first of the sustained loss. The knee lies
    somewhere between the two; a router whose limit varies may begin to lose a little early or late, so some of that
    variation is added. For simulated routers whose limit varies by up to 3 % from window to window the knee lies within
    the uncertainty, up or down, in more than 95 of 100 runs (tests/unit/test_analysis_truth.py).
    """
    index = find_sustained([w.is_bad(plan.loss_threshold) for w in windows], plan.windows)
    if index is None:
        return None
    maximum = windows[index - 1].sent_pps if index else 0.0
    first = windows[index]
    # The load also rises within a window of several samples.
    step_pps = plan.step_pps(direction)
    rise = step_pps * max(0.0, 1 - plan.sample_s / plan.window_s) / 2
    crossing = max(step_pps, first.sent_pps - maximum) + rise
    scatter = scatter_pps(windows[index : index + SCATTER_WINDOWS])
    apart = crossing + MARGIN * scatter
    return Knee(index, maximum, (max(0.0, maximum - apart), maximum + apart), maximum, first.sent_pps)


def find_sustained(flags: Sequence[bool], count: int) -> int | None:
    """Index of the first of ``count`` consecutive true flags."""
    run = 0
    for i, flag in enumerate(flags):
        run = run + 1 if flag else 0
        if run == count:
            return i - count + 1
    return None


def scatter_pps(windows: Sequence[Window]) -> float:
    """Standard deviation of the received rate about its trend; 0 for fewer than three windows.

    From second differences, which are zero on a straight trend. Of normal values, theirs have sqrt(6) times the
    standard deviation, and a mean size of 0.798 of that. Few of them may be small by chance, so few are weighted up.
    """
    rates = [w.received_pps for w in windows]
    bends = [abs(rates[i] - 2 * rates[i + 1] + rates[i + 2]) for i in range(len(rates) - 2)]
    return fmean(bends) / (6**0.5 * 0.798) * (1 + 1 / len(bends)) if bends else 0.0
