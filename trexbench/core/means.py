"""Mean of a series whose values depend on those before, and its uncertainty.

The windows of a run, and the intervals of a flow, depend on each other (lag-1 autocorrelation 0.0 where a shaper sets
the pace, 0.8 where a CPU does), so their standard deviation over the root of their number is not the mean's error. That
comes from the means of a few long batches, corrected for the correlation between batches. Its coverage of the truth in
1500 simulated AR(1) series (tests/unit/test_tcp_intervals.py repeats it):

    intervals  lag-1   naive 95 %  batch means
    60         0.0     0.95        0.97
    60         0.34    0.84        0.96
    60         0.78    0.51        0.93
    600        0.78    0.50        0.95
    10         0.78    0.50        0.83
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import inf, sqrt
from statistics import fmean, median, stdev

BATCHES = (6, 20)
"""Least and most batches; in between, each has ten intervals: 6 x 10 of 60."""
PER_BATCH = 10
FEWEST = 6
"""Fewer intervals do not show the mean's uncertainty."""
HIGHEST = 0.95
"""Higher autocorrelations look like a drift in so short a series."""
_STUDENT = (
    12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23,
    2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09,
)  # fmt: skip
"""Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom; 2 beyond."""


def of_known(figure: Callable[[list[float]], float], values: Iterable[float | None]) -> float | None:
    """Apply ``figure``, such as the mean, to the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return figure(known) if known else None


def whole_sum(values: Iterable[float | None]) -> float | None:
    """Sum of the values; None without any, and where one is not known: a part is not the whole."""
    parts = [*values]
    return sum(value or 0.0 for value in parts) if parts and None not in parts else None


def bounded_median(values: Iterable[tuple[float, bool]]) -> tuple[float, bool]:
    """Return the median of values, each a lower bound or not, and whether it is one: a higher one would raise it."""
    both = [*values]
    middle = median(value for value, _ in both)
    return middle, median(inf if at_least else value for value, at_least in both) > middle


def autocorrelation(values: Sequence[float]) -> float | None:
    """Correlation of each value with the next; None for fewer than FEWEST values, and where all are equal."""
    if len(values) < FEWEST:
        return None
    mean = fmean(values)
    deviations = [value - mean for value in values]
    square = sum(deviation * deviation for deviation in deviations)
    return sum(a * b for a, b in pairwise(deviations)) / square if square > 0 else None


def mean_uncertainty(values: Sequence[float]) -> float | None:
    """Half of the 95 % interval of the mean of a series whose values depend on those before; None if too short."""
    count = len(values)
    if count < FEWEST:
        return None
    batches = min(max(BATCHES[0], count // PER_BATCH), BATCHES[1], count // 2)
    edges = [at * count // batches for at in range(batches + 1)]
    means = [fmean(values[begin:end]) for begin, end in pairwise(edges)]
    error = stdev(means) / sqrt(batches) * sqrt(_understatement(autocorrelation(values) or 0.0, count, batches))
    # Batches that agree by chance do not make the mean surer than independent values would.
    return max(student(batches - 1) * error, student(count - 1) * stdev(values) / sqrt(count))


def _understatement(lag1: float, count: int, batches: int) -> float:
    """Factor by which batch means understate the mean's variance, as neighbours among them are correlated, too."""
    lag1 = min(lag1 + (1 + 4 * lag1) / count, HIGHEST)  # measured too low in a short series (Kendall)
    if lag1 <= 0:
        return 1.0
    whole, batch = _variance_of_mean(lag1, count), _variance_of_mean(lag1, count // batches)
    return max(1.0, whole * (batches - 1) / (batch - whole)) if batch > whole else 1.0


def _variance_of_mean(lag1: float, count: int) -> float:
    """Variance of the mean of ``count`` values of an AR(1) process with the variance 1."""
    return (1 + 2 * sum((1 - lag / count) * lag1**lag for lag in range(1, count))) / count


def student(degrees: int) -> float:
    """Two-sided 95 % quantile of Student's t."""
    return _STUDENT[degrees - 1] if 1 <= degrees <= len(_STUDENT) else 2.0
