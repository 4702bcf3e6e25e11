"""The history of a cell's figures, night by night, under unchanged conditions. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from statistics import median
from typing import Any

import msgspec

from ..means import bounded_median
from ..tcp.path import paths_apart
from ..units import format_bits
from .cell import Cell
from .detect import LATELY, Smallest
from .rows import COST, Metric, RunRow


class Point(msgspec.Struct, frozen=True, gc=False):
    """One night of a series: the median of its runs, or the later of two."""

    night: str
    value: float
    bound: bool
    rows: Sequence[RunRow]
    """The night's runs with this figure."""

    @property
    def cycles(self) -> float | None:
        return median_of(COST.of(row) for row in self.rows)

    @property
    def nodes(self) -> Mapping[str, float]:
        """Cycles per packet by VPP node."""
        if len(self.rows) == 1:
            return self.rows[0].nodes
        return median_nodes([row.nodes for row in self.rows])


def median_nodes(shown: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    """Return each node's median; a node that is missing somewhere cost nothing there."""
    names = sorted({name for nodes in shown for name in nodes})
    return {name: median(nodes.get(name, 0.0) for nodes in shown) for name in names}


@dataclass(frozen=True)
class FigureSeries:
    """The history of one figure of one cell."""

    cell: Cell
    metric: Metric
    points: tuple[Point, ...]
    limited: tuple[Point, ...] = ()
    """Nights after the last one that counts, with a bound below it, which says nothing about the DUT."""
    since: str | None = None
    """The night of the last change of conditions, which ended an earlier history."""
    changed: tuple[str, ...] = ()
    apart: float = 0.0
    """Uncertainty, as a share of its values, that conversions between testers added."""

    @property
    def smallest(self) -> Smallest:
        """Smallest effect worth reporting; a run's own uncertainty already shows in the scatter of the nights."""
        return Smallest(self.metric.minimum + self.apart, self.metric.absolute)


OWN_TESTER = "that of the machine"
"""Words for the tester of runs without a fleet."""
_CONDITIONS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "line_rate_bps": ("line rate", lambda bps: format_bits(bps) if bps else "unknown"),
    "accelerator": ("processor", lambda name: name or "its own"),
    "tester": ("tester", lambda name: name or OWN_TESTER),
    "loss_threshold": ("loss threshold", lambda share: f"{100 * (share or 0.0):g} %"),
}
"""Fields of a row that separate histories, besides traffic and path: name, and value in words."""
_CONDITIONS_OF = attrgetter("traffic", "through", *_CONDITIONS)


def night_of(row: RunRow) -> str:
    """Return the suite's night, else the day on which the run began."""
    return row.night or row.started[:10]


def judged_of(rows: Sequence[RunRow]) -> list[RunRow]:
    """Select the runs of a cell that are judged: those of suites' nights, or if there are none those by hand."""
    return [row for row in rows if row.night] or [*rows]


def series_of(cell: Cell, rows: Sequence[RunRow], metrics: Iterable[Metric]) -> list[FigureSeries]:
    """Return the history of each metric, from a cell's complete runs in order of time.

    Only runs under the last one's conditions count, see judged_of and like_the_last.
    """
    rows = judged_of(rows)
    alike = like_the_last(rows)
    since, changed = _last_change(rows) if len(alike) < len(rows) else (None, ())
    by_night: dict[str, list[RunRow]] = {}
    for row in alike:
        by_night.setdefault(night_of(row), []).append(row)
    histories, nights = [], sorted(by_night.items())
    present = set[str]().union(*(row.figures for row in alike))
    for metric in metrics:
        points, apart = _points(nights if metric.column in present else (), metric)
        counted: list[Point] = []
        limited: list[Point] = []
        for point in points:  # a lower bound below the nights before it proves nothing
            level = median(before.value for before in counted[-LATELY:]) if counted and point.bound else -math.inf
            if point.bound and point.value < level - max(metric.minimum * abs(level), metric.absolute):
                limited.append(point)
            else:
                counted.append(point)
                limited = []
        histories.append(FigureSeries(cell, metric, tuple(counted), tuple(limited), since, changed, apart))
    return histories


def like_the_last(rows: Sequence[RunRow]) -> list[RunRow]:
    """Select the runs under the conditions of the last one, see differences; others have another history."""
    last = [_CONDITIONS_OF(row) for row in rows[-1:]]
    return [row for row in rows if _CONDITIONS_OF(row) in last]


def _points(nights: Iterable[tuple[str, Sequence[RunRow]]], metric: Metric) -> tuple[list[Point], float]:
    """Return the nights with a figure, and the largest uncertainty that a conversion between testers added."""
    column, bounded, points, apart = metric.column, metric.bounded, list[Point](), 0.0
    for night, rows in nights:
        values: list[float] = []
        shown: list[RunRow] = []
        bounds = 0  # lower bounds
        for row in rows:  # written out for speed: a suite of ten years has half a million
            figure = row.figures.get(column)
            if figure is None or (bounded and row.aim != column) or not math.isfinite(figure.value):
                continue
            values.append(metric.scale * figure.value)
            shown.append(row)
            bounds += figure.at_least
            if figure.apart > apart:
                apart = figure.apart
        if len(values) == 2:  # no router ever had their mean, and the page shows the later
            del values[0], shown[0]
        if values:
            value, bound = values[0] if len(values) == 1 else median(values), False
            if bounded and bounds:
                value, bound = bounded_median(zip(values, (row.at_least for row in shown), strict=True))
            points.append(Point(night, value, bound, shown))
    return points, apart


def median_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return median(known) if known else None


def differences(before: RunRow, after: RunRow, between: str | None = None) -> Iterator[str]:
    """Yield the conditions that differ and separate the histories of two runs, ``line rate 1 Gbit/s -> 10 Gbit/s``.

    between: what joins the values; None: only the first run's value. A path has no name, and traffic no value.
    """

    def joined(*values: str) -> str:
        return values[0] if between is None else between.join(values)

    if before.traffic != after.traffic:
        yield "other traffic"
    if before.through != after.through:
        yield joined(*paths_apart(before.through, after.through))
    for field, (what, words) in _CONDITIONS.items():
        if (was := getattr(before, field)) != (now := getattr(after, field)):
            yield f"{what} {joined(words(was), words(now))}"


def _last_change(rows: Sequence[RunRow]) -> tuple[str | None, tuple[str, ...]]:
    """Find the night since which all runs have the last one's conditions, and what changed then."""
    for before, after in pairwise(reversed(rows)):  # from the last one back
        if apart := tuple(differences(after, rows[-1], " -> ")):
            return night_of(before), apart
    return None, ()
