"""The knee of a ramp: the rate at which sustained loss sets in, as an estimate and the interval that holds it.

Each number says what became worse without it, in ramps of the classes of benchmarks/truth.py. With all of them 95 % of
the errors are below 2.2 %, and 97 % of the intervals hold the knee (911 directions, --runs 100 --seed 30401); another
seed may move that by 0.2 and one percentage points, so that less is no effect. Since a trial holds the estimate itself,
it is 1.5 and 99 % (1664 directions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from math import log, pi, sqrt
from statistics import fmean, median, variance

import numpy as np

from ..load.plan import Plan
from ..load.windows import Window, near_blanks
from .belief import Array, Belief, Flag, chance

LOOKED = 15
"""Windows from which the knee is estimated, from the first bad one on; and the fewest in a hold that show slow
variation."""
BAD_SAY = 0.5
"""Weight of a bad window from the first bad one on, which already shapes the fitted line. With a weight of 1, intervals
of routers that vary by up to 3 % hold the knee in 94 of 100 runs."""
GRID = 400
SCATTERS = np.geomspace(1e-4, 0.05, 8)
"""Possible scatters of the received rate from window to window, as shares of the rate; all equally likely."""
SLOPES = np.array([0.03, 0.5])
"""Standard deviations of a piece's slope: a router in overload levels off, one with more queues gradually. With one
of 0.3 the median error is a tenth larger."""
ROUND = 0.15
"""Distance by which a line may miss the knee, as the curve bends there; a share of the step from good to bad.
Without it, half of the interval is 0.8 % in place of 1.6 %, but those of steady routers hold the knee in 91 of 100."""
EARLY = 0.5
"""Scatters, give or take one, by which a varying router loses frames before its mean rate falls short.
Without it, the figures of routers that vary by up to 3 % are too high in 59 of 100 runs in place of 48, and their
intervals hold the knee in 95 in place of 97 (604 directions, seeds 30401 and 30402)."""

LEAPS = 0.02
"""Probability that throughput leaps down as overload begins, so that no line leads back to the knee. Without it the
intervals of routers that carry 3 or 7 % less at once hold the knee in 0 and 1 of 100 runs, with it in 33 and 100; with
0.1 in 41 and 100 (600 ramps of tests/unit/test_analysis_truth.py)."""


@dataclass(frozen=True)
class Knee:
    """Start of one direction's sustained loss; rates in frames per second."""

    row: range  # indexes of the windows that show the loss (find_loss)
    belief: Belief
    last_good_pps: float  # offered in the window before the loss
    first_bad_pps: float  # offered in the first window of the loss

    @property
    def maximum_pps(self) -> float:
        """The best estimate."""
        return self.belief.quantile(0.5)

    @property
    def interval_pps(self) -> tuple[float, float]:
        """Low and high, between which the knee lies in 95 of 100 runs."""
        return self.belief.quantile(0.025), self.belief.quantile(0.975)


def find_knee(plan: Plan, windows: Sequence[Window], step_pps: float) -> Knee | None:
    """The knee of a ramp's windows, all of which sent something; None without sustained loss.

    step_pps: rise of the load from one window to the next. The knee is the offered rate above which more than the
    threshold is lost. Good and bad windows keep it between the last good and the first bad rate, sharply for a steady
    router and less so for one whose limit varies. Within that bracket the windows from the first bad one on say where:
    received over offered is modelled as straight in pieces, each segmentation and each scatter weighted by how likely
    it makes these windows, and the first piece's line meets the share that must arrive there. The likelihood that
    remains is spread over a grid of rates; its median is the estimate, and its central 95 % the interval
    (tests/unit/test_analysis_truth.py, benchmarks/truth.py). A line that misses the bracket, as when throughput
    leaps down, has no say.
    """
    row = find_loss(plan, windows)
    if not row:
        return None
    index = row[0]
    last_good_pps = windows[index - 1].sent_pps if index else 0.0
    return Knee(row, _belief(plan, tuple(windows), step_pps, index), last_good_pps, windows[index].sent_pps)


def find_loss(plan: Plan, windows: Sequence[Window]) -> range:
    """Indexes of the first windows that show sustained loss, of windows that all sent something; empty without it.

    Plan.windows windows in a row lose more than the threshold, and together more than the ports' skew explains.
    """
    sums = list(accumulate((w.excess(plan.loss_threshold) for w in windows), initial=0.0))
    lossy = [after > before for before, after in pairwise(sums)]
    for start in range(len(windows) - plan.windows + 1):
        end = start + plan.windows
        if all(lossy[start:end]) and sums[end] - sums[start] > windows[end - 1].skew:
            # The row may begin before the loss, which begins where the sums rise by more than the skew.
            least, slack = min(sums[start:end]), windows[end - 1].skew
            first = max(i for i in range(start, end) if sums[i] <= least + slack)
            last = min(first + plan.windows, len(windows))
            if sums[last] - sums[first] > slack:
                return range(first, max(end, last))
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

    It comes from second differences, which are zero on a straight trend. For normal values they have sqrt(6) times the
    standard deviation, and a median size of 0.674 of that, which a few bends of the curve do not change.
    """
    rates = [w.received_pps for w in windows]
    bends = [abs(rates[i] - 2 * rates[i + 1] + rates[i + 2]) for i in range(len(rates) - 2)]
    return median(bends) / (6**0.5 * 0.6745) if bends else 0.0


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


@lru_cache(maxsize=16)  # each step behind the ramp, and its document, ask of the same windows
def _belief(plan: Plan, windows: tuple[Window, ...], step_pps: float, index: int) -> Belief:
    """The knee as the windows show it. index: of the first bad one."""
    unit, threshold = windows[index].sent_pps, plan.loss_threshold
    good = max((_carried(w) for w in windows[:index] if w.sent_pps <= unit), default=0.0) / unit
    step = max(1 - good, step_pps / 5 / unit)
    # The load also rises within a window of several samples, so only the window's end may be beyond the knee.
    rise = step_pps * max(0.0, 1 - plan.sample_s / plan.window_s) / 2 / unit
    # A stall past the first bad window says nothing of how much is received at which rate.
    seen = [w for i, (w, near) in enumerate(zip(windows, near_blanks(windows), strict=True)) if i <= index or not near]
    past = seen[index : index + LOOKED]
    most = scatter_pps(past) / unit
    edges = np.linspace(max(0.0, good - 2 * step - 4 * most), 1 + rise + step + 3 * most, GRID + 1)
    rates = (edges[1:] + edges[:-1]) / 2
    offered = np.array([w.sent_pps for w in past]) / unit
    received = np.array([w.received_pps + w.sent_pps * w.pending / w.sent for w in past]) / unit
    density = _knee_density(offered, received, rates, good, 1 - threshold)
    flags = list[Flag]()
    for i, w in enumerate(seen):
        if not edges[0] <= w.sent_pps / unit <= edges[-1]:
            continue
        if w.is_bad(threshold):
            flags.append(Flag(w.sent_pps / unit + rise, True, BAD_SAY if i >= index else 1.0))
        elif w.excess(threshold) <= 0:
            flags.append(Flag(_carried(w) / unit, False))
    # The logistic function rises as a normal distribution of 1.7 times the width does.
    return Belief(edges * unit, (density * chance(flags, rates, SCATTERS / 1.7)).sum(axis=0))


@dataclass(frozen=True)
class _Pieces:
    """All pieces that begin at one window; axes: last window, scatter, slope."""

    weights: Array  # logarithms of the likelihood
    offered: Array
    received: Array
    slope: Array
    level_var: Array
    slope_var: Array


def _knee_density(offered: Array, received: Array, rates: Array, good: float, kept: float) -> Array:
    """Return the likelihood of the knee at each rate for each of SCATTERS: shape (scatters, rates).

    All rates are shares of the first bad one. offered, received: of the windows from the first bad one on; rates:
    evenly spaced; good: the last one that was carried; kept: the share that must arrive. The knee is where the first
    piece's line meets that share.
    """
    count = len(offered)
    # One bend, as where another queue fills, is expected in a stretch as long as the first bad rate.
    bends = np.clip(np.diff(offered, prepend=offered[0]), 1e-3, 0.5)
    after = np.zeros((count + 1, len(SCATTERS)))
    for begin in range(count - 1, -1, -1):
        pieces = _pieces_from(offered[begin:], received[begin:])
        straight = np.concatenate([[0.0], np.cumsum(np.log(1 - bends[begin + 1 :]))])
        ends = np.append(np.log(bends[begin + 1 :]), 0.0)
        pieces.weights[:] += ((straight + ends)[:, None] + after[begin + 1 :])[:, :, None]
        after[begin] = np.logaddexp.reduce(pieces.weights, axis=(0, 2))
    likely = np.exp(pieces.weights - after[0].max())
    # after a leap only good and bad windows say where the knee is, and it is near the step between them
    step = max(1 - good, rates[1] - rates[0])
    near = np.abs(rates - (1 + good) / 2) <= 1.5 * step
    leaps = LEAPS * sqrt(2 * pi) / (3 * step) * likely.sum(axis=(0, 2))[:, None] * near
    density: Array = _meeting(pieces, likely, rates, good, kept) + leaps
    return density


def _pieces_from(offered: Array, received: Array) -> _Pieces:
    """Fit a line from the first of these windows to each of the others, with the likelihood of the windows."""
    x, y = offered - offered[0], received - received[0]
    m = np.arange(1, len(x) + 1)[:, None, None]
    xm, ym = np.cumsum(x)[:, None, None] / m, np.cumsum(y)[:, None, None] / m
    sxx, sxy, syy = (np.cumsum(a * b)[:, None, None] for a, b in ((x, x), (x, y), (y, y)))
    sxx, sxy, syy = np.maximum(0, sxx - m * xm**2), sxy - m * xm * ym, np.maximum(0, syy - m * ym**2)
    var, slope_var = SCATTERS[None, :, None] ** 2, SLOPES[None, None, :] ** 2
    posterior = 1 / (sxx / var + 1 / slope_var)
    slope = posterior * sxy / var
    misfit = syy / var - slope**2 / posterior
    weights = -0.5 * (m * np.log(2 * pi * var) + misfit - np.log(2 * pi * var / m) - np.log(posterior / slope_var))
    weights -= log(len(SLOPES))
    return _Pieces(weights, xm + offered[0], ym + received[0], slope, var / m, posterior)


def _meeting(pieces: _Pieces, likely: Array, rates: Array, good: float, kept: float) -> Array:
    """Return the likelihood of each rate, by scatter, as the place where a piece's line meets the share ``kept``."""
    scatter, spacing = SCATTERS[None, :, None], rates[1] - rates[0]
    closing = np.maximum(SCATTERS[0], kept - pieces.slope)  # else as good as parallel
    knee = pieces.offered - (kept * pieces.offered - pieces.received) / closing
    lies_var = pieces.level_var + pieces.slope_var * (knee - pieces.offered) ** 2 + scatter**2
    error = np.sqrt(lies_var / closing**2 + (0.6 * spacing) ** 2 + (ROUND * (1 - good)) ** 2)
    apart = (rates - (knee - EARLY * (scatter - SCATTERS[0]))[..., None]) / error[..., None]
    density: Array = np.einsum("psk,pskr->sr", likely / error, np.exp(-0.5 * apart**2))
    return density
