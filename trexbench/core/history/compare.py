"""Two runs side by side, or two sets of runs cell by cell: may they be compared, and by how much do they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from math import hypot, sqrt
from statistics import median, stdev

from ..load.plan import Direction
from ..means import student
from ..result import RunResult, Status
from .baseline import metric_of
from .cell import Cell, cell_of
from .detect import MEDIAN_ERROR
from .differences import agree
from .rows import COST, RunRow, cells_of, row_of
from .series import difference_words, differences

Differing = Callable[[RunRow, RunRow], str | None]


class Comparison(str, Enum):
    """The second run's direction compared with the first's. UNKNOWN: one was not limited by its DUT."""

    SAME = "same"
    FASTER = "faster"
    SLOWER = "slower"
    CHEAPER = "cheaper"
    DEARER = "dearer"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class RateDifference:
    """Two rates in frames per second, of TCP in bit/s of payload, or two costs in cycles per packet: see unit.

    bounds: which are only lower bounds. noise_pps: their uncertainty together, in the same unit.
    """

    rates: tuple[float, float]
    bounds: tuple[bool, bool]
    noise_pps: float

    @property
    def unit(self) -> str:
        return "pps"

    @property
    def difference_pps(self) -> float:
        """The second rate minus the first."""
        return self.rates[1] - self.rates[0]

    @property
    def share(self) -> float | None:
        """The difference as a share of the first rate; None where that is 0."""
        return self.difference_pps / self.rates[0] if self.rates[0] else None

    @property
    def verdict(self) -> Comparison:
        """A bound decides only where it is beyond the other value: at least 5 is faster than 4.

        A cost has no uncertainty: what is too small to report as a change of its history is no difference.
        """
        if self.unit == COST.unit:
            if abs(self.difference_pps) <= max(self.noise_pps, COST.minimum * self.rates[0]):
                return Comparison.SAME
            return Comparison.CHEAPER if self.difference_pps < 0 else Comparison.DEARER
        first_bound, second_bound = self.bounds
        if self.difference_pps > self.noise_pps and not first_bound:
            return Comparison.FASTER
        if self.difference_pps < -self.noise_pps and not second_bound:
            return Comparison.SLOWER
        return Comparison.UNKNOWN if first_bound or second_bound else Comparison.SAME


def find_differences(first: RunResult, second: RunResult) -> Iterator[tuple[Direction | None, RateDifference]]:
    """The directions that both runs have, in the order of the first; None: of all, the cost at a given rate."""
    if any(run.held_pps is not None for run in (first, second)):
        costs = [cost.cycles_per_packet for run in (first, second) if (cost := run.held_cost) is not None]
        if len(costs) == 2 and costs[0] is not None and costs[1] is not None:
            yield None, CostDifference((costs[0], costs[1]), (False, False), 0.0)
        return
    others = {one.direction: one for one in second.analysis.directions}
    for one in first.analysis.directions:
        if (other := others.get(one.direction)) is not None:
            noise = hypot(one.uncertainty_pps, other.uncertainty_pps)
            bounds = one.at_least, other.at_least
            yield one.direction, RateDifference((one.maximum_pps, other.maximum_pps), bounds, noise)


def find_unlike(first: RunResult, second: RunResult) -> Iterator[str]:
    """Why a difference between these runs may have another cause than the DUTs; nothing where it may not."""
    kinds = [cell.kind_words if cell.held_pps else f"a {cell.kind}" for cell in map(cell_of, (first, second))]
    if kinds[0] != kinds[1]:
        yield f"one is {kinds[0]}, the other {kinds[1]}"
    if first.plan.directions != second.plan.directions:
        one, other = (", ".join(map(str, run.plan.directions)) for run in (first, second))
        yield f"directions {one} and {other}"
    both = first.profiles.keys() & second.profiles.keys()
    if any(first.profiles[d].get("digest") != second.profiles[d].get("digest") for d in both):
        yield f"other traffic: {first.profile.get('mix')} and {second.profile.get('mix')}, or other headers"
    rows = [replace(row_of(run, ""), traffic=None) for run in (first, second)]
    facts = differing_facts(first.dut.get("facts"), second.dut.get("facts"))
    yield from _unlike_rows(rows[:1], rows[1:], lambda *_: facts)
    for run in (first, second):
        if run.status is not Status.COMPLETE:
            yield f"the run of {run.started} is {run.status.value}"


def differing_facts(one: object, other: object) -> str | None:
    """The names of differing facts, in brackets; empty where there are none to name.

    None: the facts that both runs have read are the same, and one trexbench has read more of them than the other.
    """
    if not isinstance(one, dict) or not isinstance(other, dict) or "not attested" in {**one, **other}:
        return ""
    both = one.keys() & other.keys()
    keys = sorted([*(one.keys() ^ other.keys()), *(key for key in both if not agree(one[key], other[key]))])
    return f" ({', '.join(keys[:4])}{', ...' if len(keys) > 4 else ''})" if keys else None


@dataclass(frozen=True)
class CostDifference(RateDifference):
    """Cost of a packet in two runs at one given rate, all directions together."""

    @property
    def unit(self) -> str:
        return COST.unit


@dataclass(frozen=True)
class CellPair(RateDifference):
    """One cell in both sets, complete runs only. unlike: see find_unlike.

    Rates are of all directions together, and the median of several runs.
    """

    first: tuple[RunRow, ...]
    second: tuple[RunRow, ...]
    unlike: tuple[str, ...] = ()

    @property
    def cell(self) -> Cell:
        return self.first[0].cell

    @property
    def unit(self) -> str:
        return metric_of(self.first[0]).unit


@dataclass(frozen=True)
class SetComparison:
    """Two sets, cell by cell. only_first, only_second: cells of one set. left_out: runs that ended early or have no
    figure.
    """

    pairs: tuple[CellPair, ...]
    only_first: tuple[Cell, ...]
    only_second: tuple[Cell, ...]
    left_out: tuple[RunRow, ...]


def _median(rows: Sequence[RunRow]) -> float:
    return median(_figures(rows))


def _figures(rows: Iterable[RunRow]) -> list[float]:
    return [value for row in rows if (value := metric_of(row).of(row)) is not None]


def is_bound(rows: Sequence[RunRow]) -> bool:
    """Test whether a higher value of a bound among them would raise the median."""
    return any(metric_of(row).bounded and row.at_least and row.rate <= _median(rows) for row in rows)


def noise_of(rows: Sequence[RunRow]) -> float:
    """The uncertainty of the median: that of a single run, and the spread of the runs (95 %)."""
    own = median(row.uncertainty if metric_of(row).bounded else 0.0 for row in rows)
    count = len(rows)
    if count < 2:
        return own
    error = stdev(_figures(rows)) / sqrt(count) * (MEDIAN_ERROR if count > 2 else 1.0)
    return hypot(own, student(count - 1) * error)


def compare_sets(
    first: Sequence[RunRow], second: Sequence[RunRow], differing: Differing = lambda *_: ""
) -> SetComparison:
    """Cells of the first set beside the same ones of the second; if each set has one DUT, the DUTs may differ.

    differing: says in which facts two runs differ, as differing_facts.
    """
    left_out = tuple(row for row in (*first, *second) if not (row.complete and _figures([row])))
    first, second = ([row for row in rows if _figures([row])] for rows in (first, second))
    names = [{row.cell.dut for row in rows if row.complete} for rows in (first, second)]
    two_duts = len(names[0]) == len(names[1]) == 1 and names[0] != names[1]
    ours, theirs = _grouped(first, two_duts), _grouped(second, two_duts)
    pairs, alone, matched = [], [], set()
    for key, rows in ours.items():
        partners = _partners(key, ours, theirs, two_duts)
        matched |= set(partners)
        if not partners:
            alone.append(rows[0].cell)
        for partner in partners:
            others = theirs[partner]
            noise = hypot(noise_of(rows), noise_of(others))
            rates, bounds = (_median(rows), _median(others)), (is_bound(rows), is_bound(others))
            unlike_ones = tuple(_unlike_rows(rows, others, differing))
            pairs.append(CellPair(rates, bounds, noise, tuple(rows), tuple(others), unlike_ones))
    others_alone = tuple(rows[0].cell for key, rows in theirs.items() if key not in matched)
    return SetComparison(tuple(pairs), tuple(alone), others_alone, left_out)


def _unlike_rows(first: Sequence[RunRow], second: Sequence[RunRow], differing: Differing) -> Iterator[str]:
    """Yield reasons as find_unlike does, for runs of one cell."""
    both = [*first, *second]
    if len({row.cell.simulated for row in both}) > 1:
        one, other = ("simulated", "measured") if first[0].cell.simulated else ("measured", "simulated")
        yield f"one is {one}, the other {other}"
    apart = (one for row in both for one in differences(both[0], row))
    yield from dict.fromkeys(difference_words(*one, " and ") for one in apart)
    if first[0].cell.dut == second[0].cell.dut:
        others = {row.facts: row for row in both if row.facts != first[0].facts}
        told = (words for row in others.values() if (words := differing(first[0], row)) is not None)
        yield from (f"{first[0].cell.dut} was not configured alike{words}" for words in islice(told, 1))


def _grouped(rows: Sequence[RunRow], two_duts: bool) -> dict[Cell, list[RunRow]]:
    """Complete runs by cell, without the DUT's name where two DUTs are compared."""
    found = cells_of(rows)
    return {replace(cell, dut="") if two_duts else cell: found[cell] for cell in sorted(found, key=_order)}


def _partners(key: Cell, ours: Mapping[Cell, object], theirs: Mapping[Cell, object], two_duts: bool) -> list[Cell]:
    """The other set's cells to compare this one with: the same one, else a simulated one with a measured one.

    Else those through another WAN or tunnel, which are unlike. Two DUTs need not have the same numbers of queues: a
    single one is compared with all of the other DUT's.
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


def _order(cell: Cell) -> tuple[object, ...]:
    queues = -1 if cell.rx_queues is None else cell.rx_queues
    kind = cell.held_pps or 0.0, cell.kind
    return cell.dut, cell.variant or "", str(cell.over or ""), str(cell.mode), cell.bidir, queues, *kind, cell.simulated
