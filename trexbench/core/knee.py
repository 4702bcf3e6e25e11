"""Windows of a ramp -> the rate at which loss sets in for good, and how well one crossing of it can be known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from .plan import Plan
from .windows import Window

SCATTER_WINDOWS = 12
"""So many windows past the knee tell how much the rate that gets through varies from window to window."""
LUCKY = 8.0
"""Windows nearer to each other than this many standard deviations may be good or bad by luck."""
MARGIN = 3.0
"""Standard deviations that are added above the first bad rate."""


@dataclass(frozen=True)
class Knee:
    """Where one direction's sustained loss begins: index of its first window; rates in frames per second."""

    index: int
    maximum_pps: float
    first_bad_pps: float
    uncertainty_pps: float


def find_knee(plan: Plan, windows: Sequence[Window]) -> Knee | None:
    """The knee of windows that all sent something; None without sustained loss.

    The maximum is the last good offered rate: that of the window before the first of the sustained loss. A noisy router
    has good windows above its knee and bad ones below. So the uncertainty reaches, to both sides, as far down as the
    last rate at the end of more than plan.windows good windows in a row, lower where good and bad ones mix, and one
    window lower still where windows are nearer to each other than luck reaches; and as far up as every good window
    seen at all. For simulated routers whose capacity varies by up to 3 % from window to window the knee lies within it
    in 95 of 100 runs and more (tests/unit/test_analysis_truth.py).
    """
    flags = [w.is_bad(plan.loss_threshold) for w in windows]
    index = find_sustained(flags, plan.windows)
    if index is None:
        return None
    scatter = scatter_pps(windows[index : index + SCATTER_WINDOWS])
    last = _last_good(plan, windows, flags, index, scatter)
    surely = 0.0 if last is None else windows[last].sent_pps
    maximum = windows[index - 1].sent_pps if index else 0.0
    first = windows[index]
    # Within a window the load may rise: over its samples, or when the generator takes a moment to follow.
    rise = plan.step_pps * max(0.0, 1 - plan.sample_s / plan.window_s) / 2
    highest = max(first.sent_pps, min(first.asked_pps, first.sent_pps + plan.step_pps)) + rise
    good = max((w.sent_pps for w, bad in zip(windows, flags, strict=True) if not bad), default=0.0)
    above = good + plan.step_pps if good > maximum else 0.0
    top = max(highest, above) + MARGIN * scatter
    return Knee(index, maximum, first.sent_pps, max(top - maximum, maximum - surely, plan.step_pps))


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


def _last_good(plan: Plan, windows: Sequence[Window], flags: Sequence[bool], bad: int, scatter: float) -> int | None:
    """The window before ``bad`` whose rate was carried beyond luck; None when none was good."""
    edge = windows[bad].sent_pps
    floor = edge - MARGIN * scatter
    near = [i for i in range(bad) if not flags[i] and (windows[i].sent_pps >= floor or i >= bad - 2 * plan.windows)]
    if not near:
        return None
    # Good and bad windows mixed around the knee show that its place varies, and by how much. What varies only beyond
    # the knee, as in a router that collapses, is none of its business.
    mixed = [windows[i].sent_pps for i in range(bad) if flags[i]]
    lowest = min((rate for rate in mixed if rate >= floor), default=edge)
    highest = max((w.sent_pps for w, lossy in zip(windows[bad:], flags[bad:], strict=True) if not lossy), default=edge)
    luck = min(scatter, max(0.0, highest - lowest) / 2)
    calm = [i for i in near if windows[i].sent_pps <= edge - luck and not any(flags[max(0, i - plan.windows) : i])]
    last = calm[-1] if calm else near[0]
    if windows[last + 1].sent_pps - windows[last].sent_pps < LUCKY * scatter:
        return max((i for i in near if i < last), default=last)
    return last
