"""Figures of a series of intervals, of repetitions, and of a series of pings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import fmean, median, stdev

from ..means import autocorrelation, mean_uncertainty, student


@dataclass(frozen=True)
class Statistics:
    """Figures of a flow's intervals, as ``datamash min max mean median sstdev`` has them (sstdev: of a sample, n - 1).

    uncertainty: half of the interval that holds the true mean in 95 of 100 cases; None where there are too few.
    lag1: the intervals' autocorrelation; None where they are too few or all alike.
    """

    count: int
    min: float
    max: float
    mean: float
    median: float
    sstdev: float | None
    lag1: float | None
    uncertainty: float | None


@dataclass(frozen=True)
class PingStatistics:
    """Figures as ping prints them, in seconds; mdev: root of the mean square deviation. loss: a share of those sent."""

    sent: int
    received: int
    loss: float
    min_s: float | None = None
    avg_s: float | None = None
    max_s: float | None = None
    mdev_s: float | None = None


def describe(values: Sequence[float]) -> Statistics | None:
    """The statistics of these values, in their order in time; None where there are none."""
    if not values:
        return None
    return Statistics(
        count=len(values),
        min=min(values),
        max=max(values),
        mean=fmean(values),
        median=median(values),
        sstdev=stdev(values) if len(values) > 1 else None,
        lag1=autocorrelation(values),
        uncertainty=mean_uncertainty(values),
    )


def combine(means: Sequence[float], uncertainties: Sequence[float | None]) -> tuple[float, float | None]:
    """The mean of several repetitions and its uncertainty: from their spread, or from their own where that is more.

    Two repetitions have no spread to speak of: half of their distance stands for it.
    """
    mean, count = fmean(means), len(means)
    known = [one for one in uncertainties if one is not None]
    own = hypot(*known) / len(known) if known else None
    if count == 1:
        return mean, own
    spread = abs(means[0] - means[1]) / 2 if count == 2 else student(count - 1) * stdev(means) / sqrt(count)
    return mean, max(spread, own or 0.0)


def describe_ping(times_s: Sequence[float], sent: int) -> PingStatistics:
    """times_s: of the answers; sent: echo requests. More answers than requests (duplicates) are no loss."""
    received = len(times_s)
    loss = max(0.0, 1 - received / sent) if sent else 0.0
    if not times_s:
        return PingStatistics(sent, 0, loss)
    mean = fmean(times_s)
    mdev = sqrt(fmean([(one - mean) ** 2 for one in times_s]))
    return PingStatistics(sent, received, loss, min(times_s), mean, max(times_s), mdev)
