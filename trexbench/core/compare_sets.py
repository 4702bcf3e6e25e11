"""Two sets of runs side by side, cell by cell: nights, suites, DUTs, or whatever files somebody named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot, sqrt
from statistics import median, stdev

from .compare import Verdict, judge
from .history import Cell, RunRow
from .units import format_bits, format_share

_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom; 2 beyond."""
_MEDIAN = 1.2533
"""The standard error of a median is so much larger than that of a mean, of normally distributed values."""


@dataclass(frozen=True)
class CellPair:
    """One cell in both sets, complete runs only. unlike: why their difference would not be one between the DUTs.

    Rates are of all directions together, in frames per second; of several runs it is the median.
    """

    first: tuple[RunRow, ...]
    second: tuple[RunRow, ...]
    unlike: tuple[str, ...] = ()

    @property
    def cell(self) -> Cell:
        return self.first[0].cell

    @property
    def first_pps(self) -> float:
        return median(row.total_pps for row in self.first)

    @property
    def second_pps(self) -> float:
        return median(row.total_pps for row in self.second)

    @property
    def first_at_least(self) -> bool:
        return is_bound(self.first)

    @property
    def second_at_least(self) -> bool:
        return is_bound(self.second)

    @property
    def difference_pps(self) -> float:
        return self.second_pps - self.first_pps

    @property
    def share(self) -> float | None:
        """The difference as a share of the first; None where the first is nothing."""
        return self.difference_pps / self.first_pps if self.first_pps else None

    @property
    def noise_pps(self) -> float:
        return hypot(noise_of(self.first), noise_of(self.second))

    @property
    def verdict(self) -> Verdict:
        return judge(self.difference_pps, self.noise_pps, self.first_at_least, self.second_at_least)


@dataclass(frozen=True)
class SetComparison:
    """pairs: cells of both sets. only_first, only_second: cells of one. left_out: runs that ended early."""

    pairs: tuple[CellPair, ...]
    only_first: tuple[Cell, ...]
    only_second: tuple[Cell, ...]
    left_out: tuple[RunRow, ...]


def is_bound(rows: Sequence[RunRow]) -> bool:
    """Some of them are bounds that, were they higher, would raise the median."""
    middle = median(row.total_pps for row in rows)
    return any(row.at_least and row.total_pps <= middle for row in rows)


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
    pairs, lonely, met = [], [], set()
    for key, rows in ours.items():
        partners = _partners(key, ours, theirs, two_duts)
        met |= set(partners)
        if not partners:
            lonely.append(rows[0].cell)
        for partner in partners:
            others = theirs[partner]
            pairs.append(CellPair(tuple(rows), tuple(others), tuple(find_unlike_rows(rows, others, differing))))
    alone = tuple(rows[0].cell for key, rows in theirs.items() if key not in met)
    return SetComparison(tuple(pairs), tuple(lonely), alone, left_out)


def find_unlike_rows(
    first: Sequence[RunRow], second: Sequence[RunRow], differing: Callable[[RunRow, RunRow], str] = lambda *_: ""
) -> Iterator[str]:
    """Why a difference between these runs of one cell would not be one between their DUTs; nothing where it would."""
    both = [*first, *second]
    if len({row.cell.simulated for row in both}) > 1:
        names = {True: "simulated", False: "measured"}
        yield f"one is {names[first[0].cell.simulated]}, the other {names[second[0].cell.simulated]}"
    if len({row.traffic for row in both}) > 1:
        yield "different traffic"
    if len(_sorted(row.line_rate_bps for row in both)) > 1:
        yield f"line rates of {' and '.join(format_bits(rate) for rate in _sorted(row.line_rate_bps for row in both))}"
    if len(_sorted(row.loss_threshold for row in both)) > 1:
        shares = (format_share(share) for share in _sorted(row.loss_threshold for row in both))
        yield f"loss thresholds of {' and '.join(shares)}"
    if first[0].cell.dut == second[0].cell.dut and len({row.facts for row in both}) > 1:
        other = next(row for row in reversed(both) if row.facts != first[0].facts)
        yield f"{first[0].cell.dut} was not configured alike{differing(first[0], other)}"


@dataclass(frozen=True)
class _Key:
    """Of a group of runs: its cell, without the DUT's name where two DUTs stand side by side."""

    cell: Cell

    def without_queues(self) -> Cell:
        return replace(self.cell, rx_queues=None)

    def otherwise(self) -> _Key:
        """Measured where this is simulated, and the other way around."""
        return _Key(replace(self.cell, simulated=not self.cell.simulated))


def _grouped(rows: Sequence[RunRow], two_duts: bool) -> dict[_Key, list[RunRow]]:
    found: dict[_Key, list[RunRow]] = {}
    for row in sorted((row for row in rows if row.complete), key=lambda row: (_order(row.cell), row.started)):
        found.setdefault(_Key(replace(row.cell, dut="") if two_duts else row.cell), []).append(row)
    return found


def _partners(key: _Key, ours: Mapping[_Key, object], theirs: Mapping[_Key, object], two_duts: bool) -> list[_Key]:
    """The other set's groups that this one is put beside: of its own kind, else simulated beside measured.

    Two DUTs need not have the same numbers of queues: where one has only one, it stands beside all of the other's.
    """
    for wanted in (key, key.otherwise()):
        if wanted != key and wanted in ours:
            break
        alike = [other for other in theirs if other.without_queues() == wanted.without_queues()]
        own = [other for other in ours if other.without_queues() == key.without_queues()]
        if not two_duts or (len(alike) > 1 and len(own) > 1):
            alike = [other for other in alike if other == wanted]
        if alike:
            return alike
    return []


def _order(cell: Cell) -> tuple[str, str, bool, int, str, bool]:
    queues = -1 if cell.rx_queues is None else cell.rx_queues
    return cell.dut, cell.mode, cell.bidir, queues, cell.kind, cell.simulated


def _sorted(values: Iterator[float]) -> list[float]:
    return sorted(set(values))
