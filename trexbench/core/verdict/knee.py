"""Windows of a ramp -> the rate at which sustained loss sets in: an estimate, and the interval in which it lies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, hypot, pi, prod, sqrt
from statistics import fmean, median
from typing import NamedTuple

from ..load.plan import Plan
from ..load.windows import Window

SCATTER_WINDOWS = 12
"""Windows past the knee from which is estimated how much the received rate varies from window to window."""
MORE_SCATTER, UNSEEN_SCATTER = 1.4, 0.015
"""The scatter may be so many times what is seen of it; and one look may have missed so much (a share of the rate)."""
WILD = 0.075
"""A scatter of more than this share of the rate may be a stall's."""
REACH = 0.3
"""No window further past the knee than this share of its rate says anything about it."""
BEND = 0.05
"""How far a line may miss the knee since the curve is bent, as a share of the stretch that the line was taken from."""
SLOPE = 0.5
"""How steep received over offered may be past the knee (standard deviation): a router in overload mostly levels off."""
EARLY = 0.8
"""A varying router loses frames while its mean rate is still enough: so many standard deviations before the line."""
LINE, FIRST_LINE, ANYWHERE = 0.72, 0.25, 0.03
"""How far to trust the line past the first bad window, the one through it, and no line at all but the bracket."""
OUTLIER = 0.02
"""How often a window is good or bad for reasons of its own."""
GRID = 300
NOTHING_SHARE = 0.99
"""A window that loses more than this was one in which nothing was forwarded."""
ROWS = (1, 2, 4, 8, 16)
"""Over so many windows losses are added up where the ports' skew hides those of one: it does not grow with them."""


@dataclass(frozen=True)
class Knee:
    """Where one direction's sustained loss begins: the windows that show it (find_loss); rates in frames per second.

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
    Within that bracket a line through received over offered rates past the knee says where: where it meets the share
    that must arrive. What both leave likely is spread over a grid of rates; its median is the estimate, and 95 % of it
    the interval (tests/unit/test_analysis_truth.py, benchmarks/truth.py). A line that misses the bracket, as when
    throughput collapses, has no say.
    """
    index, first = row[0], windows[row[0]].sent_pps
    if index == 0:
        return Knee(row, 0.0, (0.0, first), 0.0, first)
    good = max((_carried(w) for w in windows[:index] if w.sent_pps <= first), default=0.0)
    # The load also rises within a window of several samples, and only its end may be beyond the knee.
    rise = step_pps * max(0.0, 1 - plan.sample_s / plan.window_s) / 2
    bracket = _Bracket(good, first + rise, max(first - good, step_pps / 5), rise)
    low, middle, high = _spread(plan.loss_threshold, bracket, _without_standstill(windows, index), index)
    return Knee(row, middle, (low, high), windows[index - 1].sent_pps, first)


def _without_standstill(windows: Sequence[Window], index: int) -> Sequence[Window]:
    """The windows without those past the first bad one in which nothing was forwarded, and those next to them.

    A stall that began past the knee reaches into both, and says nothing of how much is received at which rate.
    """
    nothing = [w.lost > NOTHING_SHARE * w.sent for w in windows]
    return [w for i, w in enumerate(windows) if i <= index or not any(nothing[i - 1 : i + 2])]


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


def _carried(window: Window) -> float:
    """The rate that a good window carried without loss, if the skew hid as much loss as it may."""
    return window.sent_pps * (1 - window.skew / window.sent)


class _Bracket(NamedTuple):
    """Between which rates the knee of a steady router lies; step: from good to bad; rise: within half a window."""

    low: float
    high: float
    step: float
    rise: float


class _Line(NamedTuple):
    """Where a line says that the knee is, its standard error, and how far to trust it."""

    knee: float
    error: float
    weight: float

    def density(self, rate: float) -> float:
        return self.weight * exp(-0.5 * ((rate - self.knee) / self.error) ** 2) / (self.error * sqrt(2 * pi))


def _spread(threshold: float, bracket: _Bracket, windows: Sequence[Window], index: int) -> tuple[float, float, float]:
    """The rates below which the knee lies with 2.5, 50 and 97.5 %."""
    past = windows[index + 1 : index + 1 + SCATTER_WINDOWS]
    looked = past if len(past) >= 3 else windows[index : index + 1 + SCATTER_WINDOWS]
    seen = max(scatter_pps(looked), 1e-4 * bracket.high)
    most = hypot(MORE_SCATTER * seen, UNSEEN_SCATTER * bracket.high / max(1, len(looked) - 2))
    begin, end = max(0.0, bracket.low - 2 * bracket.step - 3 * most), bracket.high + bracket.step + 3 * most
    rates = [begin + (end - begin) * (i + 0.5) / GRID for i in range(GRID)]
    inside = [w for w in windows if begin <= w.sent_pps <= end]
    bad = [w.sent_pps + bracket.rise for w in inside if w.is_bad(threshold)]
    good = [_carried(w) for w in inside if w.excess(threshold) <= 0]
    anywhere = ANYWHERE / max(bracket.high - bracket.low, bracket.step)
    weights = [0.0] * GRID
    # A stall past the knee scatters, too: then the flags below it say whether the router varies so much.
    for scatter in (seen, most, *([UNSEEN_SCATTER * bracket.high] if seen > WILD * bracket.high else [])):
        lines = list(_lines(threshold, windows[index:], scatter, bracket.step))
        width = max(scatter, 0.03 * bracket.step) / 1.7  # of a logistic curve as wide as a normal distribution's
        for i, rate in enumerate(rates):
            above, below = (pps - rate for pps in bad), (rate - pps for pps in good)
            seen_so = prod(_flag_weight(apart / width) for apart in (*above, *below))
            weights[i] += seen_so * (anywhere + sum(line.density(rate) for line in lines))
    sums = list(accumulate(weights))
    low, middle, high = (_quantile(rates, sums, share) for share in (0.025, 0.5, 0.975))
    return low, middle, high


def _flag_weight(widths: float) -> float:
    """How likely a window's flag is, for a knee so many widths on the side that explains it."""
    return OUTLIER / 2 + (1 - OUTLIER) / (1 + exp(-max(-30.0, min(30.0, widths))))


def _lines(threshold: float, windows: Sequence[Window], scatter: float, step: float) -> Iterator[_Line]:
    """Lines through windows from the first bad one on.

    The best of those past it: of few windows where they hardly scatter, since the curve may bend; of more where they
    do. The first bad one is not among them: queues that were empty before it made its loss smaller. A second line goes
    through it all the same, for curves that bend at once.
    """
    first = windows[0].sent_pps
    past = [w for w in windows[1:] if w.sent_pps <= first * (1 + REACH)]
    found = []
    for count in range(2, len(past) + 1):
        knee, error = _meet(threshold, past[:count], scatter)
        bend = BEND * max(0.0, past[count - 1].sent_pps - first)
        found.append(_Line(knee - EARLY * scatter, hypot(error, bend, EARLY * scatter), LINE))
    if found:
        yield min(found, key=lambda line: line.error)
    if len(windows) > 1:
        knee, error = _meet(threshold, windows[:2], scatter)
        yield _Line(knee, hypot(error, 0.15 * step), FIRST_LINE)


def _meet(threshold: float, windows: Sequence[Window], scatter: float) -> tuple[float, float]:
    """The offered rate of which a line through these windows receives all but the threshold, and its standard error.

    The line's slope is drawn towards zero where scatter leaves it open, or all windows have one rate.
    """
    offered, received = fmean(w.sent_pps for w in windows), fmean(w.received_pps for w in windows)
    apart = [w.sent_pps - offered for w in windows]
    spread = sum(x * x for x in apart) + (scatter / SLOPE) ** 2
    slope = sum(x * (w.received_pps - received) for x, w in zip(apart, windows, strict=True)) / spread
    closing = max(0.05, 1 - threshold - slope)
    knee = offered - ((1 - threshold) * offered - received) / closing
    return knee, scatter * sqrt(1 / len(windows) + (knee - offered) ** 2 / spread) / closing


def _quantile(rates: Sequence[float], sums: Sequence[float], share: float) -> float:
    """The rate below which this share of the weights lies; sums: the weights', running."""
    wanted, half = share * sums[-1], (rates[1] - rates[0]) / 2
    at = next(i for i, total in enumerate(sums) if total >= wanted)
    before = sums[at - 1] if at else 0.0
    return rates[at] - half + 2 * half * (wanted - before) / (sums[at] - before)
