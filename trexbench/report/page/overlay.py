"""Runs to be laid over one another: curves of received over offered load, in a few hundred points; latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...core.history.cell import Cell
from ...core.load.windows import Window, measured_windows
from ...core.result import RunResult
from ...core.units import format_pps, format_share
from ...core.verdict.latency import Latency
from ...core.verdict.model import DirectionResult, Limit
from ..run.summary import LIMIT_WORDS
from ..words import format_bound, format_limit

MOST_POINTS = 240
AROUND_KNEE = 12
"""Windows to each side of the knee that are kept as they were measured."""


@dataclass(frozen=True)
class Curve:
    """One direction of one run, by the offered rate. Rates in frames per second; loss: per point, a share.

    knee_pps: the last rate within the loss limit, None where the DUT did not saturate; bound_pps: a rate that was
    carried, where the DUT's own limit is unknown.
    """

    cell: Cell
    direction: str
    line_rate_pps: float
    loss_threshold: float
    offered_pps: tuple[float, ...]
    received_pps: tuple[float, ...]
    loss: tuple[float, ...]
    result: DirectionResult

    @property
    def knee_pps(self) -> float | None:
        return self.result.maximum_pps if self.result.limit is Limit.DUT and not self.result.at_least else None

    @property
    def bound_pps(self) -> float | None:
        return self.result.maximum_pps if self.result.at_least and self.result.maximum_pps else None

    @property
    def words(self) -> str:
        """This direction's result in a sentence."""
        one = self.result
        share = format_share(one.maximum_pps / self.line_rate_pps)
        words = f"{format_bound(one.maximum_pps, one.at_least)} ({share} of line rate), {LIMIT_WORDS[one.limit]}"
        if one.first_bad_pps is not None and self.knee_pps is not None:
            words += f", loss above {format_limit(self.loss_threshold)} from {format_pps(one.first_bad_pps)} on"
        return words


def find_curves(cell: Cell, result: RunResult, most: int = MOST_POINTS) -> tuple[Curve, ...]:
    """A curve for every direction that was measured at all, of about ``most`` points."""
    plan, curves = result.plan, []
    for one in result.directions:
        windows = [w for w in measured_windows(plan, result.samples, one.direction, plan.curve_phases) if w.sent]
        points = sorted(reduce_windows(windows, one.first_bad_pps, most))  # a search, and a ramp's zoom, go back
        if points:
            line_pps = plan.offer(one.direction).line_rate_pps
            offered, received, loss = zip(*points, strict=True)
            curves.append(Curve(cell, str(one.direction), line_pps, plan.loss_threshold, offered, received, loss, one))
    return tuple(curves)


Point = tuple[float, float, float]


def reduce_windows(windows: Sequence[Window], knee_pps: float | None, most: int = MOST_POINTS) -> list[Point]:
    """(sent, received, loss) of about ``most`` points; neighbouring windows are pooled, except around the knee.

    A pool has the rates and the loss of one long window: no window is left out.
    """
    at = next((i for i, w in enumerate(windows) if knee_pps is not None and w.sent_pps >= knee_pps), None)
    kept = range(0) if at is None else range(max(0, at - AROUND_KNEE), min(len(windows), at + AROUND_KNEE + 1))
    size = -(-(len(windows) - len(kept)) // max(1, most - len(kept))) if len(windows) > most else 1
    pools: list[list[Window]] = []
    for i, window in enumerate(windows):
        if pools and i not in kept and i - 1 not in kept and len(pools[-1]) < size:
            pools[-1].append(window)
        else:
            pools.append([window])
    return [_pooled(pool) for pool in pools]


def _pooled(windows: Sequence[Window]) -> Point:
    span_s = [window.end_s - window.begin_s for window in windows]
    sent, received = sum(window.sent for window in windows), sum(window.received for window in windows)
    rates = [
        sum(getattr(window, name) * span for window, span in zip(windows, span_s, strict=True)) / sum(span_s)
        for name in ("sent_pps", "received_pps")
    ]
    return rates[0], rates[1], (sent - received) / sent if sent else 0.0


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
