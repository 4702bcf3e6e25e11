"""Histories by several testers: kept apart, unless a calibration says by how much the testers' figures differ. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import exp, hypot, log, sqrt
from statistics import fmean, stdev
from typing import Any

from ..means import student
from ..typed import read_stored
from ..units import format_share
from .cell import Cell
from .levels import NEEDED_NIGHTS
from .rows import METRICS, Figure, RunRow
from .series import OWN_TESTER, night_of

SCHEMA, VERSION = "trexbench/testers", 1


@dataclass(frozen=True)
class FigureRatio:
    """A tester's figure as a multiple of what the reference measures of the same DUT."""

    load: str
    """Traffic and direction, as in the names of cells."""
    metric: str
    """Column of the figure."""
    dut: str
    """The DUT that both measured."""
    tester: str
    reference: str
    ratio: float
    uncertainty: float
    """Half of the 95 % interval of the ratio."""
    count: int
    """Pairs of measurements."""
    measured: str
    """Date of the calibration."""
    simulated: bool = False

    @property
    def share(self) -> float:
        """The uncertainty as a share."""
        return self.uncertainty / self.ratio


def find_ratios(rounds: Sequence[Mapping[str, Sequence[RunRow]]], reference: str, measured: str) -> list[FigureRatio]:
    """Compare testers. rounds: of each tester, the rows that it measured in this round.

    A figure counts that both measured in a round, and that is no bound.
    """
    logs: dict[tuple[str, str, str, str, bool], list[float]] = {}
    for rows_of in rounds:
        beside = {row.cell: row for row in rows_of.get(reference, ())}
        pairs = (
            (tester, row, beside[row.cell])
            for tester, rows in rows_of.items()
            for row in rows
            if tester != reference and row.cell in beside
        )
        for tester, row, other in pairs:
            for column in row.figures.keys() & other.figures.keys() & METRICS.keys():
                own, base = row.figures[column], other.figures[column]
                if own.value > 0 < base.value and not (own.at_least or base.at_least):
                    key = str(row.cell.load), column, row.cell.dut, tester, row.cell.simulated
                    logs.setdefault(key, []).append(log(own.value / base.value))
    return [
        FigureRatio(load, column, dut, tester, reference, *_mean_ratio(found), len(found), measured, simulated)
        for (load, column, dut, tester, simulated), found in sorted(logs.items())
        if len(found) > 1
    ]


def _mean_ratio(logs: Sequence[float]) -> tuple[float, float]:
    """The ratio, and half of its 95 % interval."""
    ratio = exp(fmean(logs))
    return ratio, ratio * student(len(logs) - 1) * stdev(logs) / sqrt(len(logs))


@dataclass(frozen=True)
class TesterHistory:
    """Rows of one cell of which those like the last one are one history. lines: what to add to findings, by column."""

    rows: Sequence[RunRow]
    lines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Factor:
    """A figure by one tester as a multiple of what another measures. share: what that leaves open; day: calibrated."""

    value: float
    share: float
    day: str


def histories_of(rows: Sequence[RunRow], ratios: Sequence[FigureRatio]) -> list[TesterHistory]:
    """The histories of a cell by its testers, of which the first is judged; the others may show older regressions.

    rows: complete ones in the order of time. With the last tester's own go rows of others where a calibration with the
    cell's DUT and traffic says by how much they differ, until it has nights enough to be judged by.
    """
    rows = [row for row in rows if row.night] or list(rows)
    if len({row.tester for row in rows}) < 2:
        return [TesterHistory(rows)]
    cell, to = rows[-1].cell, rows[-1].tester
    nights = {row.tester: night_of(row) for row in rows}
    factors = {name: _factors(ratios, cell, name, to) for name in nights if name != to}
    aims = {row.tester: row.aim for row in rows}
    joined = [name for name, known in factors.items() if aims[name] in known]
    found = [TesterHistory(rows)]
    if joined:
        converted = [_as_by(row, to, factors[row.tester]) if row.tester in joined else row for row in rows]
        lines = _lines({name: factors[name] for name in joined}, to)
        found = [TesterHistory([row for row in rows if row.tester not in joined])]
        own = {night_of(row) for row in rows if row.tester == to}
        found.insert(int(len(own) >= NEEDED_NIGHTS), TesterHistory(converted, lines))
    for name in factors.keys() - joined:
        words = f"as {name or OWN_TESTER} measured until {nights[name]}; {to or OWN_TESTER} has no such history yet"
        found.append(TesterHistory([row for row in rows if row.tester == name], dict.fromkeys(METRICS, words)))
    return found


def _lines(factors: Mapping[str, Mapping[str, _Factor]], to: str) -> dict[str, str]:
    """Column -> how the other testers' figures were converted."""
    words: dict[str, list[str]] = {}
    for tester, known in factors.items():
        for column, one in known.items():
            how = f"times {one.value:.4f}, +- {format_share(one.share)}, as calibrated on {one.day}"
            words.setdefault(column, []).append(f"before by {tester}, whose figures count {how}")
    return {column: ", ".join([f"measured by {to}", *some]) for column, some in words.items()}


def _as_by(row: RunRow, to: str, factors: Mapping[str, _Factor]) -> RunRow:
    """The row as that tester would have measured it; figures without a ratio as they are."""
    figures = {name: _times(one, factors[name]) if name in factors else one for name, one in row.figures.items()}
    return replace(row, tester=to, figures=figures)


def _factors(ratios: Sequence[FigureRatio], cell: Cell, tester: str, to: str) -> dict[str, _Factor]:
    """Column -> factor from the one tester to the other, of which the latest counts."""
    of = str(cell.load), cell.dut, cell.simulated
    known: dict[tuple[str, str], dict[str, FigureRatio]] = {}
    for one in sorted(ratios, key=lambda one: one.measured):
        if (one.load, one.dut, one.simulated) == of:
            itself = replace(one, tester=one.reference, ratio=1.0, uncertainty=0.0, measured="9999")
            known.setdefault((one.metric, one.reference), {one.reference: itself})[one.tester] = one
    found: dict[str, _Factor] = {}
    for (metric, _), by in known.items():
        if tester in by and to in by:
            own, other = by[tester], by[to]
            day = min(own.measured, other.measured)
            if metric not in found or found[metric].day < day:
                found[metric] = _Factor(other.ratio / own.ratio, hypot(own.share, other.share), day)
    return found


def _times(figure: Figure, factor: _Factor) -> Figure:
    value = figure.value * factor.value
    uncertainty = hypot(figure.uncertainty * factor.value, value * factor.share)
    return Figure(value, uncertainty, figure.at_least, factor.share)


@dataclass(frozen=True)
class _Calibrated:
    ratios: list[FigureRatio]


def ratios_to_dict(ratios: Iterable[FigureRatio]) -> dict[str, Any]:
    """JSON values."""
    return {"schema": SCHEMA, "version": VERSION, "ratios": [asdict(one) for one in ratios]}


def ratios_from_dict(values: Mapping[str, Any]) -> list[FigureRatio]:
    """The ratios of these JSON values; StoreError for other ones, and for a newer version."""
    found = read_stored(values, "calibration of testers", SCHEMA, VERSION, _Calibrated).ratios
    return [one for one in found if 0 < one.ratio < 1e9 and 0 <= one.uncertainty < 1e9]
