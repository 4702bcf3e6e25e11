"""One run's figure against what its cell usually does. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .detect import BASELINE, LATELY, is_far
from .levels import Usual
from .regression import NEEDED_NIGHTS
from .rows import Metric, RunRow
from .series import night_of, series_of


@dataclass(frozen=True)
class Delta:
    """share: by which the figure differs from its baseline, signed. beyond: more than nights differ by chance.

    worse: for the worse, whether beyond the noise or not. before: the baseline, in the metric's unit: the last stable
    level, or the median of the nights before; found: a loss of it stands. nights: of the baseline; noise: a night's
    standard deviation as a share, None where the search for changes would not judge so few. measured: all nights with a
    figure, the run's own as well.
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

    rows: the complete ones of the cell, oldest first; the latest BASELINE count.
    """
    return sum(len(one.points) for one in series_of(rows[-1].cell, rows[-BASELINE:], [metric])) if rows else 0


def find_delta(row: RunRow, rows: Sequence[RunRow], metric: Metric, usual: Usual | None = None) -> Delta | None:
    """rows: the complete ones of the row's cell, oldest first. usual: the figure's last stable level, if it is known.

    None where there is nothing to compare with: the figure is a bound, or no night before was under these conditions.
    """
    value, night = metric.of(row), night_of(row)
    if value is None or (metric.bounded and row.at_least):
        return None
    before = [one for one in rows if night_of(one) < night and bool(one.night) == bool(row.night)][-BASELINE:]
    (series,) = series_of(row.cell, [*before, row], [metric])
    points = series.points
    usual = None if usual is None else usual.before(night)
    if usual is None or not usual.nights:
        lately = [point for point in points if point.night < night and not point.bound][-LATELY:]
        usual = Usual(tuple(one.night for one in lately), tuple(one.value for one in lately))
    if not usual.nights or not usual.level:
        return None
    base, noise = usual.level, usual.noise if len(points) >= NEEDED_NIGHTS else None
    stands = usual.left is not None and usual.left <= night
    least = float(series.smallest.of(base))
    return Delta(
        share=(value - base) / abs(base),
        beyond=abs(value - base) >= least if stands else noise is not None and is_far(value, usual.values, least),
        worse=(value < base) == (metric.better == "higher"),
        before=base,
        found=stands,
        nights=len(usual.nights),
        noise=None if noise is None else noise / abs(base),
        measured=len(points),
    )
