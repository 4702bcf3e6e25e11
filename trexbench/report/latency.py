"""Latencies of many runs side by side: a line a direction, its loads across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.history import Cell
from ..core.latency import Latency
from ..core.result import RunResult


@dataclass(frozen=True)
class LatencyRow:
    """One direction of a cell's latest run. loads: as in ``LatencyTable.shares``, None where one was not measured."""

    cell: Cell
    direction: str
    line_rate_pps: float
    loads: tuple[Latency | None, ...]


@dataclass(frozen=True)
class LatencyTable:
    """shares: of the throughput found, ascending."""

    shares: tuple[float, ...]
    rows: tuple[LatencyRow, ...]


def find_latency_table(runs: Mapping[Cell, RunResult]) -> LatencyTable:
    """Of all runs that measured any; no rows where none did."""
    measured = {cell: run for cell, run in runs.items() if run.latencies}
    shares = tuple(sorted({one.share for run in measured.values() for one in run.latencies}))
    rows = [row for cell, run in measured.items() for row in _rows(cell, run, shares)]
    return LatencyTable(shares, tuple(rows))


def _rows(cell: Cell, run: RunResult, shares: Sequence[float]) -> list[LatencyRow]:
    by_load = {(one.direction, one.share): one for one in run.latencies}
    directions = dict.fromkeys(one.direction for one in run.latencies)
    return [
        LatencyRow(
            cell,
            str(direction),
            run.plan.line_rate_pps,
            tuple(by_load.get((direction, share)) for share in shares),
        )
        for direction in directions
    ]
