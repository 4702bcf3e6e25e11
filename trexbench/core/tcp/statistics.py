"""Figures of a series of intervals, of repetitions, and of a series of pings. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import fmean, median, stdev

from ..means import autocorrelation, mean_uncertainty, student


@dataclass(frozen=True)
class Statistics:
    """Figures of a flow's regular intervals in bit/s, as ``datamash min max mean median sstdev`` prints them."""

    count: int  # intervals
    min: float
    max: float
    mean: float  # over the whole time that counts, irregular intervals included
    median: float
    sstdev: float | None  # standard deviation of a sample (n - 1)
    lag1: float | None  # autocorrelation of the intervals; None if they are too few or all alike
    uncertainty: float | None  # half of the mean's 95 % interval; None if there are too few


@dataclass(frozen=True)
class PingStatistics:
    """Figures as ping prints them; times are round trips, None without an answer."""

    sent: int  # echo requests
    received: int  # answers
    loss: float  # share of the requests without an answer
    min_s: float | None = None
    avg_s: float | None = None  # mean
    max_s: float | None = None
    mdev_s: float | None = None  # root mean square deviation


def describe(values: Sequence[float], mean: float | None = None) -> Statistics | None:
    """Return the statistics of these values, which are in order of time; None if there are none. mean: if not theirs.

    An interval is irregular where its host stood still, and the traffic with it: without those the mean of a host that
    stood three times for 1.2 s in a minute would be 3 % too high.
    """
    if not values:
        return None
    return Statistics(
        count=len(values),
        min=min(values),
        max=max(values),
        mean=fmean(values) if mean is None else mean,
        median=median(values),
        sstdev=stdev(values) if len(values) > 1 else None,
        lag1=autocorrelation(values),
        uncertainty=mean_uncertainty(values),
    )


def combine(means: Sequence[float], uncertainties: Sequence[float | None]) -> tuple[float, float | None]:
    """Return the mean of repetitions and its uncertainty: from their spread, or from their own if that is more.

    The interval of two is wide, 6.4 times their distance to either side, as so few hardly show how they spread.
    """
    mean, count = fmean(means), len(means)
    known = [value for value in uncertainties if value is not None]
    own = hypot(*known) / len(known) if known else None
    if count == 1:
        return mean, own
    return mean, max(student(count - 1) * stdev(means) / sqrt(count), own or 0.0)


def describe_ping(times_s: Sequence[float], sent: int) -> PingStatistics:
    """Return the statistics of echo requests by their answers' times; surplus answers (duplicates) are no loss."""
    received = len(times_s)
    loss = max(0.0, 1 - received / sent) if sent else 0.0
    if not times_s:
        return PingStatistics(sent, 0, loss)
    mean = fmean(times_s)
    mdev = sqrt(fmean([(time_s - mean) ** 2 for time_s in times_s]))
    return PingStatistics(sent, received, loss, min(times_s), mean, max(times_s), mdev)
