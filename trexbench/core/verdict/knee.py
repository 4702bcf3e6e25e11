"""Windows of a ramp -> the rate at which sustained loss sets in: an estimate, and the interval in which it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt
from statistics import fmean, median, variance
from typing import NamedTuple

import numpy as np

from ..load.plan import Plan
from ..load.windows import Window, near_blanks
from .pieces import SCATTERS, Array, knee_density

LOOKED = 15
"""Windows from which the knee is estimated, the first bad one and those past it; and those that slow variation needs to
show in a hold."""
ANYWHERE = 0.01
"""Probability that nothing but the bracket can be trusted."""
BAD_SAY = 0.5
"""A bad window from the first bad one on counts by half as one: it has its say in the line, too."""
OUTLIER = 0.02
"""Probability that a window is good or bad for reasons of its own."""
GRID = 400
ROWS = (1, 2, 4, 8, 16)
"""Windows over which losses are added up where the ports' skew hides those of one: it does not grow with them."""


@dataclass(frozen=True)
class Knee:
    """Start of one direction's sustained loss: the windows that show it (find_loss); rates in frames per second.

    maximum_pps: the best estimate; interval_pps: low and high, between which the knee lies in 95 of 100 runs.
    last_good_pps, first_bad_pps: the offered rates before and at the beginning of the loss.
    """

    row: range
    maximum_pps: float
    interval_pps: tuple[float, float]
    last_good_pps: float
    first_bad_pps: float


def find_knee(plan: Plan, windows: Sequence[Window], step_pps: float) -> Knee | None:
    """The knee of a ramp's windows that all sent something; None without sustained loss.

    step_pps: by so much the load rises from one window to the next.
    """
    row = find_loss(plan, windows)
    return locate(plan, windows, step_pps, row) if row else None


def locate(plan: Plan, windows: Sequence[Window], step_pps: float, row: range) -> Knee:
    """The knee of windows of which these are the first that show sustained loss.

    It is the offered rate above which more than the threshold is lost. Which windows were good and which were bad keeps
    it between the last good and the first bad rate, sharply for a steady router and less so for one whose limit varies.
    Within that bracket the windows from the first bad one on say where: received over offered is taken for straight in
    pieces, each way to cut it and each scatter as likely as it makes these windows, and the first piece's line meets
    the share that must arrive there (core.verdict.pieces). What both leave likely is spread over a grid of rates; its
    median is the estimate, and 95 % of it the interval (tests/unit/test_analysis_truth.py, benchmarks/truth.py). A line
    that misses the bracket, as when throughput collapses, has no say.
    """
    index, first = row[0], windows[row[0]].sent_pps
    if index == 0:
        return Knee(row, 0.0, (0.0, first), 0.0, first)
    good = max((_carried(w) for w in windows[:index] if w.sent_pps <= first), default=0.0)
    # The load also rises within a window of several samples, and only its end may be beyond the knee.
    rise = step_pps * max(0.0, 1 - plan.sample_s / plan.window_s) / 2
    bracket = _Bracket(good, first + rise, max(first - good, step_pps / 5), rise)
    # A stall that began past the first bad window says nothing of how much is received at which rate.
    seen = [w for i, (w, near) in enumerate(zip(windows, near_blanks(windows), strict=True)) if i <= index or not near]
    low, middle, high = _spread(plan.loss_threshold, bracket, seen, index)
    return Knee(row, middle, (low, high), windows[index - 1].sent_pps, first)


def find_loss(plan: Plan, windows: Sequence[Window]) -> range:
    """Indexes of the first windows that show sustained loss, of windows that all sent something; empty without it.

    So many windows in a row (Plan.windows) lose more than the threshold, and together more than the ports' skew
    explains. Where that hides what single windows lose, so many sums over several windows do.
    """
    sums = list(accumulate((w.excess(plan.loss_threshold) for w in windows), initial=0.0))
    hidden = bool(windows) and windows[-1].skew > plan.loss_threshold * windows[-1].sent
    for length in ROWS if hidden else ROWS[:1]:
        lossy = [after > before for before, after in zip(sums, sums[length:], strict=False)]
        span = plan.windows * length
        for start in range(len(windows) - span + 1):
            lost = sums[start + span] - sums[start]
            if all(lossy[start : start + span : length]) and lost > windows[start + span - 1].skew:
                # The row may begin before the loss does: that begins where the sums rise by more than the skew.
                least, slack = min(sums[start : start + span]), windows[start + span - 1].skew
                first = max(i for i in range(start, start + span) if sums[i] <= least + slack)
                return range(first, max(start + span, min(first + plan.windows, len(windows))))
    return range(0)


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
    standard deviation, and a median size of 0.674 of that, which a bend of the curve here and there does not change.
    Few of them may be small by chance, so few are weighted up.
    """
    rates = [w.received_pps for w in windows]
    bends = [abs(rates[i] - 2 * rates[i + 1] + rates[i + 2]) for i in range(len(rates) - 2)]
    return median(bends) / (6**0.5 * 0.6745) * (1 + 1 / len(bends)) if bends else 0.0


def slow_share(hold: Sequence[Window]) -> float:
    """The standard deviation, as a share, of what the DUT forwards, beyond that from one window to the next.

    A knee is seen within a few windows. Where the DUT's limit varies slowly, they all are off by about as much.
    """
    rates = [w.received_pps for w in hold]
    if len(rates) < LOOKED or not (mean := fmean(rates)):
        return 0.0
    return sqrt(max(0.0, variance(rates) - scatter_pps(hold) ** 2)) / mean


def _carried(window: Window) -> float:
    """The rate that a good window carried without loss, if the skew hid as much loss as it may."""
    return window.sent_pps * (1 - window.skew / window.sent)


class _Bracket(NamedTuple):
    """Between which rates the knee of a steady router lies; step: from good to bad; rise: within half a window."""

    low: float
    high: float
    step: float
    rise: float


def _spread(threshold: float, bracket: _Bracket, windows: Sequence[Window], index: int) -> tuple[float, float, float]:
    """The rates below which the knee lies with 2.5, 50 and 97.5 %."""
    unit, past = windows[index].sent_pps, windows[index : index + LOOKED]
    most = scatter_pps(past) / unit
    low, high, step = bracket.low / unit, bracket.high / unit, bracket.step / unit
    edges = np.linspace(max(0.0, low - 2 * step - 4 * most), high + step + 3 * most, GRID + 1)
    rates = (edges[1:] + edges[:-1]) / 2
    offered = np.array([w.sent_pps for w in past]) / unit
    received = np.array([w.received_pps + w.sent_pps * w.pending / w.sent for w in past]) / unit
    density = knee_density(offered, received, rates, low, 1 - threshold)
    density += ANYWHERE * density.sum(axis=1, keepdims=True) / GRID
    width = np.maximum(SCATTERS, 0.03 * step)[:, None] / 1.7  # of a logistic curve as wide as a normal distribution's
    for i, w in enumerate(windows):
        if not edges[0] <= w.sent_pps / unit <= edges[-1]:
            continue
        if w.is_bad(threshold):
            says = BAD_SAY if i >= index else 1.0
            density *= _flag_weights(((w.sent_pps + bracket.rise) / unit - rates) / width) ** says
        elif w.excess(threshold) <= 0:
            density *= _flag_weights((rates - _carried(w) / unit) / width)
    sums = np.concatenate([[0.0], np.cumsum(density.sum(axis=0))])
    low, middle, high = (float(np.interp(share * sums[-1], sums, edges)) * unit for share in (0.025, 0.5, 0.975))
    return low, middle, high


def _flag_weights(widths: Array) -> Array:
    """Return the likelihood of a window's flag, for knees so many widths on the side that explains it."""
    likely: Array = OUTLIER / 2 + (1 - OUTLIER) / (1 + np.exp(-np.clip(widths, -30, 30)))
    return likely
