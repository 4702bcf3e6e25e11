"""Two runs side by side, or two sets of runs cell by cell: may they be compared, and where do they really differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import hypot, sqrt
from statistics import median, stdev

from ..load.plan import Direction
from ..result import RunResult, Status
from ..units import format_bits, format_share
from .rows import Cell, RunRow, cells_of

_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom; 2 beyond."""
_MEDIAN = 1.2533
"""The standard error of a median is so much larger than that of a mean, of normally distributed values."""


class Verdict(str, Enum):
    """What the second run's direction is beside the first's. unknown: one of them was not limited by its DUT."""

    SAME = "same"
    FASTER = "faster"
    SLOWER = "slower"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Difference:
    """Two rates side by side, frames per second. bounds: which of them are lower bounds only. noise_pps: what their
    uncertainties leave open.
    """

    rates: tuple[float, float]
    bounds: tuple[bool, bool]
    noise_pps: float

    @property
    def difference_pps(self) -> float:
        """Second less first."""
        return self.rates[1] - self.rates[0]

    @property
    def share(self) -> float | None:
        """The difference as a share of the first; None where the first is nothing."""
        return self.difference_pps / self.rates[0] if self.rates[0] else None

    @property
    def verdict(self) -> Verdict:
        """Bounds decide only where one lies beyond the other's value: at least 5 is faster than 4."""
        first_bound, second_bound = self.bounds
        if self.difference_pps > self.noise_pps and not first_bound:
            return Verdict.FASTER
        if self.difference_pps < -self.noise_pps and not second_bound:
            return Verdict.SLOWER
        return Verdict.UNKNOWN if first_bound or second_bound else Verdict.SAME


def find_differences(first: RunResult, second: RunResult) -> Iterator[tuple[Direction, Difference]]:
    """The directions that both runs have, in the first's order."""
    others = {one.direction: one for one in second.analysis.directions}
    for one in first.analysis.directions:
        if (other := others.get(one.direction)) is not None:
            noise = hypot(one.uncertainty_pps, other.uncertainty_pps)
            bounds = one.at_least, other.at_least
            yield one.direction, Difference((one.maximum_pps, other.maximum_pps), bounds, noise)


def find_unlike(first: RunResult, second: RunResult) -> Iterator[str]:
    """Why a difference between these runs would not be one between their DUTs; nothing where it would."""
    if first.simulated != second.simulated:
        yield _unlike_worlds(first.simulated)
    if type(first.plan) is not type(second.plan):
        yield f"one is a {first.plan.kind}, the other a {second.plan.kind}"
    if first.plan.directions != second.plan.directions:
        one, other = (", ".join(map(str, run.plan.directions)) for run in (first, second))
        yield f"directions {one} and {other}"
    both = first.profiles.keys() & second.profiles.keys()
    if any(first.profiles[d].get("digest") != second.profiles[d].get("digest") for d in both):
        yield f"different traffic: {first.profile.get('mix')} and {second.profile.get('mix')}, or other headers"
    common = set(first.plan.directions) & set(second.plan.directions)
    if any(first.plan.offer(d).line_rate_bps != second.plan.offer(d).line_rate_bps for d in common):
        speeds = [", ".join(map(format_bits, run.plan.line_rates_bps)) for run in (first, second)]
        yield f"line rates of {' and '.join(speeds)}"
    yield from _unlike("loss thresholds", [run.plan.loss_threshold for run in (first, second)], format_share)
    name, facts = first.dut.get("name"), [run.dut.get("facts_sha256") for run in (first, second)]
    if name == second.dut.get("name") and facts[0] != facts[1]:  # that two DUTs differ is what one wants to see
        yield f"{name} was not configured alike{differing_facts(first.dut.get('facts'), second.dut.get('facts'))}"
    for run in (first, second):
        if run.status is not Status.COMPLETE:
            yield f"the run of {run.started} is {run.status.value}"


def _unlike_worlds(first_simulated: bool) -> str:
    one, other = ("simulated", "measured") if first_simulated else ("measured", "simulated")
    return f"one is {one}, the other {other}"


def _unlike(what: str, values: Iterable[float], words: Callable[[float], str]) -> Iterator[str]:
    """That these runs have more than one of something."""
    different = dict.fromkeys(values)
    if len(different) > 1:
        yield f"{what} of {' and '.join(map(words, different))}"


def differing_facts(one: object, other: object) -> str:
    """Names of the facts in which two DUTs differ, in brackets; nothing where they cannot be named."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return ""
    keys = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    return f" ({', '.join(keys[:4])}{', ...' if len(keys) > 4 else ''})" if keys else ""


@dataclass(frozen=True)
class CellPair(Difference):
    """One cell in both sets, complete runs only. unlike: why their difference would not be one between the DUTs.

    Rates are of all directions together; of several runs it is the median.
    """

    first: tuple[RunRow, ...]
    second: tuple[RunRow, ...]
    unlike: tuple[str, ...] = ()

    @property
    def cell(self) -> Cell:
        return self.first[0].cell


@dataclass(frozen=True)
class SetComparison:
    """pairs: cells of both sets. only_first, only_second: cells of one. left_out: runs that ended early."""

    pairs: tuple[CellPair, ...]
    only_first: tuple[Cell, ...]
    only_second: tuple[Cell, ...]
    left_out: tuple[RunRow, ...]


def _median(rows: Sequence[RunRow]) -> float:
    return median(row.total_pps for row in rows)


def is_bound(rows: Sequence[RunRow]) -> bool:
    """Some of them are bounds that, were they higher, would raise the median."""
    return any(row.at_least and row.total_pps <= _median(rows) for row in rows)


def noise_of(rows: Sequence[RunRow]) -> float:
    """How far the median may be off: what each run leaves open, and how far the runs lie apart (95 %)."""
    own = median(row.uncertainty_pps for row in rows)
    count = len(rows)
    if count < 2:
        return own
    factor = _STUDENT[count - 2] if count - 2 < len(_STUDENT) else 2.0
    error = stdev(row.total_pps for row in rows) / sqrt(count) * (_MEDIAN if count > 2 else 1.0)
    return hypot(own, factor * error)


def compare_sets(
    first: Sequence[RunRow], second: Sequence[RunRow], differing: Callable[[RunRow, RunRow], str] = lambda *_: ""
) -> SetComparison:
    """Cells of the first set beside the same ones of the second; two DUTs, a set of each, stand side by side.

    ``differing`` says in what two runs' facts differ, in words to be added.
    """
    left_out = tuple(row for row in (*first, *second) if not row.complete)
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
            unlike_ones = tuple(find_unlike_rows(rows, others, differing))
            pairs.append(CellPair(rates, bounds, noise, tuple(rows), tuple(others), unlike_ones))
    others_alone = tuple(rows[0].cell for key, rows in theirs.items() if key not in matched)
    return SetComparison(tuple(pairs), tuple(alone), others_alone, left_out)


def find_unlike_rows(
    first: Sequence[RunRow], second: Sequence[RunRow], differing: Callable[[RunRow, RunRow], str] = lambda *_: ""
) -> Iterator[str]:
    """Why a difference between these runs of one cell would not be one between their DUTs; nothing where it would."""
    both = [*first, *second]
    if len({row.cell.simulated for row in both}) > 1:
        yield _unlike_worlds(first[0].cell.simulated)
    if len({row.traffic for row in both}) > 1:
        yield "different traffic"
    yield from _unlike("line rates", sorted(row.line_rate_bps for row in both), format_bits)
    yield from _unlike("loss thresholds", sorted(row.loss_threshold for row in both), format_share)
    if first[0].cell.dut == second[0].cell.dut and len({row.facts for row in both}) > 1:
        other = next(row for row in reversed(both) if row.facts != first[0].facts)
        yield f"{first[0].cell.dut} was not configured alike{differing(first[0], other)}"


def _grouped(rows: Sequence[RunRow], two_duts: bool) -> dict[Cell, list[RunRow]]:
    """Complete runs by cell; the DUT's name is left out where two DUTs stand side by side."""
    found = cells_of(rows)
    return {replace(cell, dut="") if two_duts else cell: found[cell] for cell in sorted(found, key=_order)}


def _partners(key: Cell, ours: Mapping[Cell, object], theirs: Mapping[Cell, object], two_duts: bool) -> list[Cell]:
    """The other set's groups that this one is put beside: of its own kind, else simulated beside measured.

    Two DUTs need not have the same numbers of queues: where one has only one, it stands beside all of the other's.
    """
    for wanted in (key, replace(key, simulated=not key.simulated)):
        if wanted != key and wanted in ours:
            break
        alike = [other for other in theirs if replace(other, rx_queues=wanted.rx_queues) == wanted]
        own = [other for other in ours if replace(other, rx_queues=key.rx_queues) == key]
        if not two_duts or (len(alike) > 1 and len(own) > 1):
            alike = [other for other in alike if other == wanted]
        if alike:
            return alike
    return []


def _order(cell: Cell) -> tuple[str, str, bool, int, str, bool]:
    queues = -1 if cell.rx_queues is None else cell.rx_queues
    return cell.dut, cell.mode, cell.bidir, queues, cell.kind, cell.simulated
