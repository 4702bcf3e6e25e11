"""Compare two runs, or two sets of runs cell by cell: are they comparable, and by how much do they differ. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from math import hypot, sqrt
from statistics import median, stdev

from ..load.plan import Direction
from ..means import bounded_median, student
from ..result import RunResult, Status
from .cell import Cell, cell_of
from .detect import MEDIAN_ERROR
from .differences import agree
from .rows import COST, RATE, Figure, Metric, RunRow, cells_of, figures_of, row_of
from .series import differences

Differing = Callable[[RunRow, RunRow], str | None]


class Comparison(str, Enum):
    """The second run's figure against the first's. UNKNOWN: the DUT was not the limit of one of them."""

    SAME = "same"
    FASTER = "faster"
    SLOWER = "slower"
    CHEAPER = "cheaper"
    DEARER = "dearer"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class FigureDifference:
    """Two figures of one metric, in the unit of its column."""

    metric: Metric
    figures: tuple[Figure, Figure]

    @property
    def bound(self) -> str | None:
        """Sign of the difference: ``>=`` or ``<=`` if one figure is a lower bound; None: both are, so it is unknown."""
        first, second = (figure.at_least for figure in self.figures)
        return None if first and second else ">=" * second or "<=" * first

    @property
    def noise(self) -> float:
        """Combined uncertainty of both figures."""
        return hypot(*(figure.uncertainty for figure in self.figures))

    @property
    def difference(self) -> float:
        """The second value minus the first."""
        return self.figures[1].value - self.figures[0].value

    @property
    def share(self) -> float | None:
        """The difference as a share of the first value; None if that is 0."""
        return self.difference / self.figures[0].value if self.figures[0].value else None

    @property
    def verdict(self) -> Comparison:
        """Which figure is better; a lower bound decides only beyond the other value: at least 5 is faster than 4.

        A cost has no uncertainty, nor has TCP's rate in a few intervals: below the smallest change that histories
        report, two such figures are the same.
        """
        first, second = self.figures
        is_known = self.metric.bounded and all(figure.uncertainty or figure.at_least for figure in self.figures)
        least = self.noise if is_known else max(self.noise, self.metric.minimum * first.value)
        is_higher = self.metric.better == "higher"
        if self.difference > least and not first.at_least:
            return Comparison.FASTER if is_higher else Comparison.DEARER
        if self.difference < -least and not second.at_least:
            return Comparison.SLOWER if is_higher else Comparison.CHEAPER
        return Comparison.UNKNOWN if first.at_least or second.at_least else Comparison.SAME


def find_differences(first: RunResult, second: RunResult) -> Iterator[tuple[Direction | None, FigureDifference]]:
    """Yield each direction that both runs have, in the first run's order; None: the cost at a given rate, of all."""
    if any(run.held_pps is not None for run in (first, second)):
        before, after = (figures_of(run.held_cost, COST.column).get(COST.column) for run in (first, second))
        if before is not None and after is not None:
            yield None, FigureDifference(COST, (before, after))
        return
    ours, theirs = (
        {way.direction: Figure(way.maximum_pps, way.uncertainty_pps, way.at_least) for way in run.analysis.directions}
        for run in (first, second)
    )
    for direction in filter(theirs.__contains__, ours):
        yield direction, FigureDifference(RATE, (ours[direction], theirs[direction]))


def find_unlike(first: RunResult, second: RunResult) -> Iterator[str]:
    """Yield reasons other than the DUTs that could explain a difference between two runs."""
    kinds = [cell.kind_words if cell.held_pps else f"a {cell.kind}" for cell in map(cell_of, (first, second))]
    if kinds[0] != kinds[1]:
        yield f"one is {kinds[0]}, the other {kinds[1]}"
    if first.plan.directions != second.plan.directions:
        ours, theirs = (", ".join(map(str, run.plan.directions)) for run in (first, second))
        yield f"directions {ours} and {theirs}"
    both = first.profiles.keys() & second.profiles.keys()
    if any(first.profiles[d].get("digest") != second.profiles[d].get("digest") for d in both):
        yield f"other traffic: {first.profile.get('mix')} and {second.profile.get('mix')}, or other headers"
    rows = [replace(row_of(run, ""), traffic=None) for run in (first, second)]
    facts = differing_facts(first.dut.get("facts"), second.dut.get("facts"))
    yield from _unlike_rows(rows[:1], rows[1:], lambda *_: facts)
    for run in (first, second):
        if run.status is not Status.COMPLETE:
            yield f"the run of {run.started} is {run.status.value}"


def differing_facts(first: object, second: object) -> str | None:
    """Name the facts that differ, in brackets; empty if they differ and none can be named.

    None: all facts that both runs read are the same; a newer trexbench merely read more of them.
    """
    if not isinstance(first, dict) or not isinstance(second, dict) or "not attested" in {**first, **second}:
        return ""
    both = first.keys() & second.keys()
    keys = sorted([*(first.keys() ^ second.keys()), *(key for key in both if not agree(first[key], second[key]))])
    return f" ({', '.join(keys[:4])}{', ...' if len(keys) > 4 else ''})" if keys else None


@dataclass(frozen=True)
class CellPair(FigureDifference):
    """One cell in both sets, complete runs only, with the medians of their figures."""

    first: tuple[RunRow, ...]
    second: tuple[RunRow, ...]
    unlike: tuple[str, ...] = ()
    """Reasons as those of find_unlike."""

    @property
    def cell(self) -> Cell:
        return self.first[0].cell


@dataclass(frozen=True)
class SetComparison:
    """Two sets of runs, cell by cell."""

    pairs: tuple[CellPair, ...]
    only_first: tuple[Cell, ...]
    only_second: tuple[Cell, ...]
    left_out: tuple[RunRow, ...]
    """Runs that ended early or have no figure."""


def middle_of(rows: Sequence[RunRow]) -> Figure:
    """Return the median of the runs' figures, a lower bound if a higher value of one of them would raise it.

    Its uncertainty combines that of a single run with the spread of the runs (95 %).
    """
    figures = [row.figure for row in rows if row.figure is not None]
    values, count = [figure.value for figure in figures], len(figures)
    noise = median(figure.uncertainty for figure in figures)
    if count > 1:
        error = stdev(values) / sqrt(count) * (MEDIAN_ERROR if count > 2 else 1.0)
        noise = hypot(noise, student(count - 1) * error)
    middle, at_least = bounded_median((figure.value, figure.at_least) for figure in figures)
    return Figure(middle, noise, at_least)


def compare_sets(
    first: Sequence[RunRow], second: Sequence[RunRow], differing: Differing = lambda *_: ""
) -> SetComparison:
    """Pair the cells of two sets; if each set is of one DUT, the DUTs may differ.

    differing: names the facts in which two runs differ, as differing_facts does.
    """
    left_out = tuple(row for row in (*first, *second) if not (row.complete and row.figure))
    first, second = ([row for row in rows if row.complete and row.figure] for rows in (first, second))
    names = [{row.cell.dut for row in rows} for rows in (first, second)]
    two_duts = len(names[0]) == len(names[1]) == 1 and names[0] != names[1]
    ours, theirs = (_group(rows, two_duts) for rows in (first, second))
    pairs, alone, matched = [], [], set()
    for key, rows in ours.items():
        partners = _partners(key, ours, theirs, two_duts)
        matched |= set(partners)
        if not partners:
            alone.append(rows[0].cell)
        for partner in partners:
            others = theirs[partner]
            middles, unlike = (middle_of(rows), middle_of(others)), tuple(_unlike_rows(rows, others, differing))
            pairs.append(CellPair(rows[0].metric, middles, tuple(rows), tuple(others), unlike))
    others_alone = tuple(rows[0].cell for key, rows in theirs.items() if key not in matched)
    return SetComparison(tuple(pairs), tuple(alone), others_alone, left_out)


def _unlike_rows(first: Sequence[RunRow], second: Sequence[RunRow], differing: Differing) -> Iterator[str]:
    """Yield reasons as find_unlike does, for runs of one cell."""
    both = [*first, *second]
    if len({row.cell.simulated for row in both}) > 1:
        ours, theirs = ("simulated", "measured") if first[0].cell.simulated else ("measured", "simulated")
        yield f"one is {ours}, the other {theirs}"
    yield from dict.fromkeys(condition for row in both for condition in differences(both[0], row, " and "))
    if first[0].cell.dut == second[0].cell.dut:
        others = {row.facts: row for row in both if row.facts != first[0].facts}
        reasons = (words for row in others.values() if (words := differing(first[0], row)) is not None)
        yield from (f"{first[0].cell.dut} was not configured alike{words}" for words in islice(reasons, 1))


def _group(rows: Sequence[RunRow], two_duts: bool) -> dict[Cell, list[RunRow]]:
    """Group complete runs by cell, in order; without the DUT's name where two DUTs are compared."""

    def order(cell: Cell) -> tuple[object, ...]:
        queues = -1 if cell.rx_queues is None else cell.rx_queues
        name = cell.dut, cell.variant or "", str(cell.over or ""), str(cell.mode)
        return *name, cell.bidir, queues, cell.held_pps or 0.0, cell.kind, cell.simulated

    by_cell = cells_of(rows)
    return {replace(cell, dut="") if two_duts else cell: by_cell[cell] for cell in sorted(by_cell, key=order)}


def _partners(key: Cell, ours: Mapping[Cell, object], theirs: Mapping[Cell, object], two_duts: bool) -> list[Cell]:
    """Find the other set's cells to compare this one with: the same, else its simulated or measured counterpart.

    Else those through another WAN or tunnel, which are unlike. Two DUTs need not have the same number of queues: a
    single cell is compared with all of the other DUT's.
    """
    elsewhere = (replace(key, over=over) for over in dict.fromkeys(other.over for other in theirs) if over != key.over)
    for wanted in (key, replace(key, simulated=not key.simulated), *elsewhere):
        if wanted != key and wanted in ours:
            continue
        alike = [other for other in theirs if replace(other, rx_queues=wanted.rx_queues) == wanted]
        own = [other for other in ours if replace(other, rx_queues=key.rx_queues) == key]
        if not two_duts or (len(alike) > 1 and len(own) > 1):
            alike = [other for other in alike if other == wanted]
        if alike:
            return alike
    return []
