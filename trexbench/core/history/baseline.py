"""One run's figure against what its cell usually does. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import stdev

from .detect import FIRST_NIGHTS
from .regression import NEEDED_NIGHTS
from .rows import METRICS, Metric, RunRow, held_pps
from .series import LATELY, median_of, night_of, series_of

FAR = 4.0
"""A single night is beyond the noise from so many standard deviations on."""
RECENT = 6 * LATELY
"""So many runs are looked through for the nights of a baseline."""
RATE, TCP_RATE, COST = (
    next(one for one in METRICS if one.name == n) for n in ("maximum rate", "TCP rate", "cycles/packet")
)


@dataclass(frozen=True)
class Delta:
    """share: by which the figure differs from its baseline, signed. beyond: more than nights differ by chance.

    worse: for the worse, whether beyond the noise or not. before: the baseline, in the metric's unit; found: it is the
    level before a change that a search found, else the median of the nights before. nights: of these, LATELY at most;
    noise: their standard deviation as a share, None where the search for changes would not judge so few. measured: all
    nights with a figure, the run's own as well.
    """

    share: float
    beyond: bool
    worse: bool
    before: float
    found: bool
    nights: int
    noise: float | None
    measured: int


def nights_measured(rows: Sequence[RunRow], metric: Metric) -> int:
    """Nights in which a cell's figure was measured as in the last one, as the search for changes counts them.

    rows: the complete ones of the cell, oldest first; the latest RECENT count.
    """
    return sum(len(one.points) for one in series_of(rows[-1].cell, rows[-RECENT:], [metric])) if rows else 0


@dataclass(frozen=True)
class Level:
    """The level of a figure before a change that was found. at: the first run after it (``started``), or its night."""

    at: str
    before: float


def metric_of(row: RunRow) -> Metric:
    """The figure that the run was made for."""
    if row.total_bps is not None:
        return TCP_RATE
    return COST if held_pps(row.cell.kind) is not None else RATE


def find_delta(row: RunRow, rows: Sequence[RunRow], metric: Metric, level: Level | None = None) -> Delta | None:
    """rows: the complete ones of the row's cell, oldest first. level: what a search found, if it did so by then.

    None where there is nothing to compare with: the figure is a bound, or no night before was under these conditions.
    """
    value = metric.of(row)
    if value is None or (metric.bounded and row.at_least):
        return None
    level = level if level is not None and level.at <= row.started else None
    until = night_of(row) if level is None else level.at[:10]
    before = [one for one in rows if night_of(one) < until and bool(one.night) == bool(row.night)][-RECENT:]
    found = series_of(row.cell, [*before, row], [metric])[0].points
    points = [one for one in found if one.night < until and not one.bound][-LATELY:]
    base = level.before if level is not None else median_of(one.value for one in points)
    if not base:
        return None
    least_nights = FIRST_NIGHTS if level is not None else NEEDED_NIGHTS - 1
    noise = stdev(one.value for one in points) if len(points) >= least_nights else None
    least = max(metric.minimum * abs(base), metric.absolute, row.uncertainty if metric.bounded else 0.0)
    if level is None:
        least = inf if noise is None else max(least, FAR * noise)
    return Delta(
        share=(value - base) / abs(base),
        beyond=abs(value - base) > least,
        worse=(value < base) == (metric.better == "higher"),
        before=base,
        found=level is not None,
        nights=len(points),
        noise=None if noise is None else noise / abs(base),
        measured=len(found),
    )
