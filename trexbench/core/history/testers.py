"""Histories by several testers: kept apart, unless a calibration says by how much the testers' figures differ. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, hypot, log, sqrt
from statistics import fmean, stdev
from typing import Any

from ..means import student
from ..typed import read_stored
from ..units import format_share
from .cell import Cell
from .rows import METRICS, Figure, RunRow

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


def join_testers(rows: Iterable[RunRow], ratios: Sequence[FigureRatio]) -> tuple[list[RunRow], dict[Cell, str]]:
    """Rows by other testers than a cell's last one as that would have measured them, where a calibration knows.

    The others stay as they are: they have a history of their own. Also returns, for each cell with such rows, a line.
    """
    rows = sorted(rows, key=lambda row: row.started)
    if not ratios:
        return rows, {}
    last = {row.cell: row for row in rows if row.complete}
    last |= {row.cell: row for row in rows if row.complete and row.night}  # others then do not count
    joined, lines = list[RunRow](), dict[Cell, dict[str, None]]()
    known: dict[tuple[Cell, str, str], dict[str, tuple[float, float, str]]] = {}
    for row in rows:
        to = last[row.cell].tester if row.cell in last else ""
        if to and row.tester not in ("", to):
            key = row.cell, row.tester, to
            if key not in known:
                known[key] = _factors(ratios, *key)
            if row.aim in known[key]:
                lines.setdefault(row.cell, {})[_line(row.tester, to, *known[key][row.aim])] = None
                row = _as_by(row, to, known[key])
        joined.append(row)
    return joined, {cell: "; ".join(words) for cell, words in lines.items()}


def _line(tester: str, to: str, factor: float, share: float, measured: str) -> str:
    how = f"times {factor:.4f}, +- {format_share(share)}, as calibrated on {measured}"
    return f"measured by {to}, before by {tester}, whose figures count {how}"


def _as_by(row: RunRow, to: str, factors: Mapping[str, tuple[float, float, str]]) -> RunRow:
    """The row as that tester would have measured it, without figures of which that is not known."""
    figures = {name: _times(one, *factors[name][:2]) for name, one in row.figures.items() if name in factors}
    return replace(row, tester=to, figures=figures)


def _factors(ratios: Sequence[FigureRatio], cell: Cell, tester: str, to: str) -> dict[str, tuple[float, float, str]]:
    """Column -> factor from the one tester to the other, its uncertainty as a share, and when it was measured."""
    load, found = str(cell.load), dict[str, tuple[float, float, str]]()
    alike = [one for one in ratios if one.load == load and one.simulated == cell.simulated]
    # the latest counts, of the same DUT if there is one
    for one in sorted(alike, key=lambda one: (one.dut == cell.dut, one.measured)):
        group = [two for two in alike if _of_one(one, two)]
        known = {one.reference: (1.0, 0.0)} | {two.tester: (two.ratio, two.share) for two in group}
        if tester in known and to in known:
            (own, own_share), (other, other_share) = known[tester], known[to]
            found[one.metric] = (other / own, hypot(own_share, other_share), one.measured)
    return found


def _of_one(one: FigureRatio, other: FigureRatio) -> bool:
    """Test whether two ratios have the same reference in the same calibration."""
    names = "metric", "dut", "reference", "measured"
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _times(figure: Figure, factor: float, share: float) -> Figure:
    value = figure.value * factor
    return Figure(value, hypot(figure.uncertainty * factor, value * share), figure.at_least, share)


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
