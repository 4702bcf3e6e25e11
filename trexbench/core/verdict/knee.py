"""Windows of a ramp -> the rate at which loss sets in for good, and how well one crossing of it can be known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..load.plan import Direction, Plan
from ..load.windows import Window

SCATTER_WINDOWS = 12
"""So many windows past the knee tell how much the rate that gets through varies from window to window."""
MARGIN = 1.5
"""Standard deviations of that rate which are added to what a single crossing leaves open."""


@dataclass(frozen=True)
class Knee:
    """Where one direction's sustained loss begins: index of its first window; rates in frames per second."""

    index: int
    maximum_pps: float
    first_bad_pps: float
    uncertainty_pps: float


def find_knee(plan: Plan, direction: Direction, windows: Sequence[Window]) -> Knee | None:
    """The knee of windows that all sent something; None without sustained loss.

    The maximum is the last good offered rate: that of the window before the first of the sustained loss. One crossing
    leaves open what lies between the two; a router whose limit varies may lose for good a little early or late, so
    some of that variation is added. For simulated routers whose limit varies by up to 3 % from window to window the
    knee lies within the uncertainty, up or down, in more than 95 of 100 runs (tests/unit/test_analysis_truth.py).
    """
    index = find_sustained([w.is_bad(plan.loss_threshold) for w in windows], plan.windows)
    if index is None:
        return None
    maximum = windows[index - 1].sent_pps if index else 0.0
    first = windows[index]
    # Within a window the load rises, too, where it has several samples.
    step_pps = plan.step_pps(direction)
    rise = step_pps * max(0.0, 1 - plan.sample_s / plan.window_s) / 2
    crossing = max(step_pps, first.sent_pps - maximum) + rise
    scatter = scatter_pps(windows[index : index + SCATTER_WINDOWS])
    return Knee(index, maximum, first.sent_pps, crossing + MARGIN * scatter)


def find_sustained(flags: Sequence[bool], count: int) -> int | None:
    """Index of the first of ``count`` consecutive true flags."""
    run = 0
    for i, flag in enumerate(flags):
        run = run + 1 if flag else 0
        if run == count:
            return i - count + 1
    return None


def scatter_pps(windows: Sequence[Window]) -> float:
    """Standard deviation of the received rate about its trend; 0 when there are too few windows to tell.

    From second differences, which a straight trend leaves at zero; a normal value's is sqrt(6) as wide, and a normal
    deviation's mean size is 0.798 of its standard deviation. Few of them may be small by chance: one counts double.
    """
    rates = [w.received_pps for w in windows]
    bends = [abs(rates[i] - 2 * rates[i + 1] + rates[i + 2]) for i in range(len(rates) - 2)]
    return fmean(bends) / (6**0.5 * 0.798) * (1 + 1 / len(bends)) if bends else 0.0
