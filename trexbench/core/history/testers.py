"""Histories by several testers, kept apart unless a calibration tells the ratio of the testers' figures. Pure."""

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
from .series import OWN_TESTER, judged_of, night_of

SCHEMA, VERSION = "trexbench/testers", 1


@dataclass(frozen=True)
class FigureRatio:
    """A tester's figure as a multiple of the reference's on the same DUT."""

    load: str
    """Traffic and direction, as in the names of cells."""
    metric: str
    """Column of the figure."""
    dut: str
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
    """Compare testers by the figures that both measured in a round and that are no bounds.

    rounds: by tester, the rows that it measured in this round. measured: date of the calibration.
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
    ratios = []
    for (load, column, dut, tester, simulated), values in sorted(logs.items()):
        if len(values) > 1:
            ratio = exp(fmean(values))
            uncertainty = ratio * student(len(values) - 1) * stdev(values) / sqrt(len(values))
            figure = load, column, dut, tester, reference
            ratios.append(FigureRatio(*figure, ratio, uncertainty, len(values), measured, simulated))
    return ratios


@dataclass(frozen=True)
class TesterHistory:
    """Rows of one cell, of which those like the last one are one history."""

    rows: Sequence[RunRow]
    lines: Mapping[str, str] = field(default_factory=dict)
    """By column: what to add to findings."""


def histories_of(rows: Sequence[RunRow], ratios: Sequence[FigureRatio]) -> list[TesterHistory]:
    """Split a cell's rows into histories by tester; the first is judged, the others may show older regressions.

    rows: complete ones in order of time. The last tester's own rows are joined by others' that a calibration with the
    cell's DUT and traffic can convert; the joint history is judged until the own one has enough nights.
    """
    rows = judged_of(rows)
    if len({row.tester for row in rows}) < 2:
        return [TesterHistory(rows)]
    cell, to = rows[-1].cell, rows[-1].tester
    nights = {row.tester: night_of(row) for row in rows}
    factors = {name: _factors(ratios, cell, name, to) for name in nights if name != to}
    aims = {row.tester: row.aim for row in rows}
    joined = {name: by_column for name, by_column in factors.items() if aims[name] in by_column}
    histories = [TesterHistory(rows)]
    if joined:
        converted = [_convert(row, to, joined[row.tester]) if row.tester in joined else row for row in rows]
        histories = [TesterHistory([row for row in rows if row.tester not in joined])]
        own = {night_of(row) for row in rows if row.tester == to}
        histories.insert(int(len(own) >= NEEDED_NIGHTS), TesterHistory(converted, _conversions(joined, to)))
    for name in (name for name in factors if name not in joined):
        words = f"as {name or OWN_TESTER} measured until {nights[name]}; {to or OWN_TESTER} has no such history yet"
        histories.append(TesterHistory([row for row in rows if row.tester == name], dict.fromkeys(METRICS, words)))
    return histories


def _conversions(factors: Mapping[str, Mapping[str, FigureRatio]], to: str) -> dict[str, str]:
    """Describe, by column, how the other testers' figures were converted."""
    words: dict[str, list[str]] = {}
    for tester, by_column in factors.items():
        for column, factor in by_column.items():
            how = f"times {factor.ratio:.4f}, +- {format_share(factor.share)}, as calibrated on {factor.measured}"
            words.setdefault(column, [f"measured by {to}"]).append(f"before by {tester}, whose figures count {how}")
    return {column: ", ".join(parts) for column, parts in words.items()}


def _convert(row: RunRow, to: str, factors: Mapping[str, FigureRatio]) -> RunRow:
    """Return the row as that tester would have measured it; figures without a factor stay as they are."""
    figures = dict(row.figures)
    for name, factor in ((name, factors[name]) for name in figures.keys() & factors.keys()):
        own, value = figures[name], figures[name].value * factor.ratio
        uncertainty = hypot(own.uncertainty * factor.ratio, value * factor.share)
        figures[name] = Figure(value, uncertainty, own.at_least, factor.share)
    return replace(row, tester=to, figures=figures)


def _factors(ratios: Sequence[FigureRatio], cell: Cell, tester: str, to: str) -> dict[str, FigureRatio]:
    """Return, by column, one tester's figure as a multiple of the other's (``to``); the latest calibration counts."""
    of = str(cell.load), cell.dut, cell.simulated
    known: dict[tuple[str, str], dict[str, FigureRatio]] = {}
    for ratio in sorted(ratios, key=lambda ratio: ratio.measured):
        if (ratio.load, ratio.dut, ratio.simulated) == of:
            itself = replace(ratio, tester=ratio.reference, ratio=1.0, uncertainty=0.0, measured="9999")
            known.setdefault((ratio.metric, ratio.reference), {ratio.reference: itself})[ratio.tester] = ratio
    factors: dict[str, FigureRatio] = {}
    for (metric, _), by_tester in known.items():
        if tester in by_tester and to in by_tester:
            own, other = by_tester[tester], by_tester[to]
            factor, day = other.ratio / own.ratio, min(own.measured, other.measured)
            if metric not in factors or factors[metric].measured < day:
                uncertainty = factor * hypot(own.share, other.share)
                factors[metric] = replace(own, reference=to, ratio=factor, uncertainty=uncertainty, measured=day)
    return factors


@dataclass(frozen=True)
class _Calibrated:
    ratios: list[FigureRatio]


def ratios_to_dict(ratios: Iterable[FigureRatio]) -> dict[str, Any]:
    return {"schema": SCHEMA, "version": VERSION, "ratios": [asdict(ratio) for ratio in ratios]}


def ratios_from_dict(values: Mapping[str, Any]) -> list[FigureRatio]:
    """Read ratios; StoreError for a newer version, or other values."""
    ratios = read_stored(values, "calibration of testers", SCHEMA, VERSION, _Calibrated).ratios
    return [ratio for ratio in ratios if 0 < ratio.ratio < 1e9 and 0 <= ratio.uncertainty < 1e9]
