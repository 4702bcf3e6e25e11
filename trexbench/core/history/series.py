"""The history of a cell's figures, night by night, under one and the same conditions. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import msgspec

from ..tcp.path import paths_apart
from ..units import format_bits, format_share
from .cell import Cell
from .detect import LATELY, Smallest
from .rows import COST, Metric, RunRow


class Point(msgspec.Struct, frozen=True, gc=False):
    """One night of a series: the median of its runs. bound: the value is only a lower bound for the DUT.

    nodes: VPP's cycles per packet by node.
    """

    night: str
    value: float
    bound: bool
    cycles: float | None
    nodes: Mapping[str, float]


@dataclass(frozen=True)
class FigureSeries:
    """The history of one figure of one cell. silent: nights with a bound below earlier values, which say nothing about
    the DUT. since, changed: the night from which conditions differ, and how; None: they never changed.
    """

    cell: Cell
    metric: Metric
    points: tuple[Point, ...]
    silent: tuple[Point, ...] = ()
    since: str | None = None
    changed: tuple[str, ...] = ()
    apart: float = 0.0
    """Share of its values that calibrations of testers leave open."""

    @property
    def smallest(self) -> Smallest:
        """The smallest effect worth reporting. What one run leaves open shows in the scatter of the nights."""
        return Smallest(self.metric.minimum + self.apart, self.metric.absolute)

    @property
    def limited(self) -> tuple[Point, ...]:
        """The silent nights after the last one that counts."""
        last = self.points[-1].night if self.points else ""
        return tuple(point for point in self.silent if point.night > last)


OWN_TESTER = "that of the machine"
"""Words for the tester of runs without a fleet."""


def night_of(row: RunRow) -> str:
    """The suite's night, or else the day on which the run began."""
    return row.night or row.started[:10]


def series_of(cell: Cell, rows: Sequence[RunRow], metrics: Iterable[Metric]) -> list[FigureSeries]:
    """Every figure's history, from a cell's complete runs in the order of time.

    If any run belongs to a suite's night, runs made by hand are left out; only runs like the last one count.
    """
    rows = [row for row in rows if row.night] or list(rows)
    if not rows:
        return []
    alike = like_the_last(rows)
    since, changed = _change_of_conditions(rows) if len(alike) < len(rows) else (None, ())
    by_night: dict[str, list[RunRow]] = {}
    for row in alike:
        by_night.setdefault(night_of(row), []).append(row)
    found, nights = [], sorted(by_night)
    present = {column for row in rows for column in row.figures}
    for metric in metrics:
        of = nights if metric.column in present else ()
        points = [point for night in of if (point := _point(night, by_night[night], metric)) is not None]
        counted, silent = _split_bounds(points, metric)
        shares = (one.apart for row in alike if of and (one := row.figures.get(metric.column)) is not None)
        apart = max(shares, default=0.0)
        found.append(FigureSeries(cell, metric, tuple(counted), tuple(silent), since, changed, apart))
    return found


def like_the_last(rows: Sequence[RunRow]) -> list[RunRow]:
    """The runs under the conditions of the last one, see differences: others have another history."""
    return [row for row in rows if not any(differences(row, rows[-1]))]


def _point(night: str, rows: Sequence[RunRow], metric: Metric) -> Point | None:
    if len(rows) == 1 and (value := metric.of(row := rows[0])) is not None and math.isfinite(value):  # as nearly always
        cycles = row.get(COST.column)
        known = cycles if cycles is not None and math.isfinite(cycles) else None
        return Point(night, value, metric.bounded and row.at_least, known, row.nodes)
    values = [(value, row) for row in rows if (value := metric.of(row)) is not None and math.isfinite(value)]
    if not values:
        return None
    nodes = values[0][1].nodes
    if len(values) > 1:
        names = sorted({name for _, row in values for name in row.nodes})
        nodes = {name: median(row.nodes.get(name, 0.0) for _, row in values) for name in names}
    return Point(
        night=night,
        value=median(value for value, _ in values),
        bound=metric.bounded and 2 * sum(row.at_least for _, row in values) > len(values),
        cycles=median_of(COST.of(row) for _, row in values),
        nodes=nodes,
    )


def median_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return median(known) if known else None


def _split_bounds(points: Sequence[Point], metric: Metric) -> tuple[list[Point], list[Point]]:
    """Nights that count, and those that prove nothing: their lower bound is below the LATELY nights before."""
    counted: list[Point] = []
    silent: list[Point] = []
    for point in points:
        level = median(one.value for one in counted[-LATELY:]) if counted and point.bound else -math.inf
        below = point.value < level - max(metric.minimum * abs(level), metric.absolute) if point.bound else False
        (silent if below else counted).append(point)
    return counted, silent


def differences(before: RunRow, after: RunRow) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the conditions of two runs that differ, where that separates their figures' histories, and both in words.

    ``("line rate", ("1 Gbit/s", "10 Gbit/s"))``; a path has no name, and traffic no words.
    """
    if (before.traffic or "") != (after.traffic or ""):
        yield "other traffic", ()
    if before.through != after.through:
        yield "", paths_apart(before.through, after.through)
    if before.line_rate_bps != after.line_rate_bps:
        yield "line rate", (format_bits(before.line_rate_bps), format_bits(after.line_rate_bps))
    if before.accelerator != after.accelerator:
        yield "processor", (before.accelerator or "its own", after.accelerator or "its own")
    if before.tester != after.tester:
        yield "tester", (before.tester or OWN_TESTER, after.tester or OWN_TESTER)
    if before.loss_threshold != after.loss_threshold:
        yield "loss threshold", tuple(format_share(row.loss_threshold or 0.0) for row in (before, after))


def difference_words(what: str, values: Sequence[str], between: str) -> str:
    """``line rate 1 Gbit/s -> 10 Gbit/s``."""
    return " ".join(filter(None, (what, between.join(values))))


def _change_of_conditions(rows: Sequence[RunRow]) -> tuple[str | None, tuple[str, ...]]:
    """The night since which all runs have the last one's conditions, and what changed then."""
    at = next((at for at in reversed(range(len(rows))) if any(differences(rows[at], rows[-1]))), None)
    if at is None:
        return None, ()
    return night_of(rows[at + 1]), tuple(difference_words(*apart, " -> ") for apart in differences(rows[at], rows[-1]))
