"""Latencies of many runs side by side: a row per direction, a column per load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...core.history.cell import Cell
from ...core.result import RunResult
from ...core.verdict.latency import Latency


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
    """The latencies of all runs that measured any; no rows where none did."""
    shares = tuple(sorted({one.share for run in runs.values() for one in run.latencies}))
    rows = []
    for cell, run in runs.items():
        by_load = {(one.direction, one.share): one for one in run.latencies}
        for direction in dict.fromkeys(direction for direction, _ in by_load):
            loads = tuple(by_load.get((direction, share)) for share in shares)
            rows.append(LatencyRow(cell, str(direction), run.plan.offer(direction).line_rate_pps, loads))
    return LatencyTable(shares, tuple(rows))
