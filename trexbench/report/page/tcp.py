"""Runs of TCP for the report: of each cell its latest run's own way and version, as a table and as series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from ...core.dut.cycles import CpuShare
from ...core.history.cell import Cell
from ...core.tcp.intervals import Interval
from ...core.tcp.model import Way
from ...core.tcp.result import FlowResult, LegSummary, PingResult, TcpResult

MOST_POINTS = 240
"""Most points of a series; neighbouring intervals of a longer one are pooled."""


@dataclass(frozen=True)
class PlotPoint:
    """One or more intervals. at_s: their middle since the leg began; retransmitted_ps: segments per second."""

    at_s: float
    length_s: float
    received_bps: float
    retransmitted_ps: float | None
    rtt_s: float | None


@dataclass(frozen=True)
class TcpCell:
    """One way and version of the run that is its cell's latest."""

    cell: Cell
    result: TcpResult
    summary: LegSummary

    @cached_property
    def flows(self) -> tuple[FlowResult, ...]:
        """Flows of every repetition; two of each where both sides send."""
        kind = self.summary.kind
        return tuple(one for one in self.result.flows if one.leg.kind == kind and one.flow.intervals)

    @cached_property
    def pings(self) -> tuple[PingResult, ...]:
        """Pings sent by this version while idle, and while this way ran."""
        kind = self.summary.kind
        return tuple(
            one
            for one in self.result.ping_results
            if one.leg.version == kind.version and (not one.loaded or one.leg.kind == kind)
        )

    @property
    def name(self) -> str:
        """The DUT, its variant and the way in words."""
        return f"{self.cell.dut_words} {mode_words(self.cell)}"

    @property
    def reasons(self) -> tuple[str, ...]:
        """The evidence for the limit, of those flows that it holds for."""
        found = [one.verdict.reasons for one in self.flows if one.verdict.limit is self.summary.limit]
        return tuple(dict.fromkeys(reason for reasons in found for reason in reasons))

    @property
    def retransmits(self) -> int | None:
        known = [one.flow.retransmits for one in self.flows if one.flow.retransmits is not None]
        return sum(known) if known else None

    @cached_property
    def cores(self) -> tuple[float, ...]:
        """Busy share of each of the DUT's cores, the mean over the repetitions; empty where it was not read."""
        legs = {one.leg: one.shares["dut"].cpus for one in self.flows if one.shares["dut"].cpus}
        busy: dict[int, list[float]] = {}
        for one in (cpu for cpus in legs.values() for cpu in cpus):
            busy.setdefault(one.cpu, []).append(one.busy)
        return tuple(fmean(busy[cpu]) for cpu in sorted(busy))

    @property
    def busy(self) -> float | None:
        """The mean of all of the DUT's cores."""
        return fmean(self.cores) if self.cores else None

    @property
    def hottest(self) -> CpuShare | None:
        """The DUT's core that was busiest in any repetition."""
        cpus = [one.shares["dut"].busiest for one in self.flows]
        return max((one for one in cpus if one is not None), key=lambda one: one.busy, default=None)

    @property
    def bps_per_percent(self) -> float | None:
        """bit/s for each percent of one of the DUT's cores."""
        cores = self.summary.cores_per_gbps
        return 1e9 / cores / 100 if cores else None


def find_tcp_cells(runs: Mapping[Cell, TcpResult]) -> tuple[TcpCell, ...]:
    """Return the cells that have a figure, in the order of ``runs``."""
    found: list[TcpCell] = []
    for cell, result in runs.items():
        of_mode = [one for one in result.summaries if cell.tcp and one.kind == cell.tcp.leg]
        found += [TcpCell(cell, result, one) for one in of_mode[:1]]
    return tuple(found)


def mode_order(cell: Cell) -> tuple[int, int, int, str, int, bool, bool]:
    """IPv4 first, fewer streams, forward before reverse, each congestion control with its smaller buffers first, what
    was pinned or not monitored last."""
    mode = cell.tcp
    if mode is None:
        return (0, 0, 0, "", 0, False, False)
    marks = mode.congestion or "", mode.buffer_bytes or 0, mode.pinned, not mode.monitored
    return (mode.version, mode.streams, list(Way).index(mode.way), *marks)


def mode_words(cell: Cell) -> str:
    """A mode of TCP as the plots name it: ``reverse IPv6, 4 streams, unmonitored``."""
    mode = cell.tcp
    if mode is None:
        return str(cell.mode)
    streams = f", {mode.streams} streams" if mode.streams > 1 else ""
    marks = f"{', pinned' if mode.pinned else ''}{'' if mode.monitored else ', unmonitored'}"
    return f"{mode.leg}{streams}{marks}"


def points_of(flow: FlowResult, most: int = MOST_POINTS) -> tuple[PlotPoint, ...]:
    """The flow's intervals, neighbours pooled so that they are at most so many; no interval is left out."""
    intervals = flow.flow.intervals
    size = -(-len(intervals) // most) or 1
    return tuple(_pooled(intervals[at : at + size]) for at in range(0, len(intervals), size))


def _pooled(some: tuple[Interval, ...]) -> PlotPoint:
    length_s = sum(one.length_s for one in some)
    again = [one.retransmits for one in some if one.retransmits is not None]
    rtts = [one.rtt_s for one in some if one.rtt_s is not None]
    return PlotPoint(
        at_s=(some[0].begin_s + some[-1].end_s) / 2,
        length_s=length_s,
        received_bps=sum(one.received_bps * one.length_s for one in some) / length_s,
        retransmitted_ps=sum(again) / length_s if len(again) == len(some) else None,
        rtt_s=fmean(rtts) if rtts else None,
    )
