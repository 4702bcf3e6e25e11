"""Runs of TCP for the report: of each cell its latest run's own way and version, as a table and as series; and what
buffers allow over WANs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from ...core.dut.cycles import CpuShare
from ...core.history.cell import Cell
from ...core.tcp.bdp import BdpRow, find_product, find_rows, tells_bdp
from ...core.tcp.cpu import mean_columns
from ...core.tcp.intervals import Interval
from ...core.tcp.model import Way
from ...core.tcp.result import FlowResult, LegSummary, PingResult, TcpResult
from ...core.tcp.tunnel import hosts_of
from ...core.tcp.wan import Wan, format_size
from ...core.units import format_share, nominal
from ..plots import PlotFigure
from ..tcp.curves import find_plot

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
        of_version = (one for one in self.result.ping_results if one.leg.version == kind.version)
        return tuple(one for one in of_version if not one.loaded or one.leg.kind == kind)

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
    def hottest(self) -> CpuShare | None:
        """The DUT's core that was busiest in any repetition."""
        cpus = [one.shares["dut"].busiest for one in self.flows]
        return max((one for one in cpus if one is not None), key=lambda one: one.busy, default=None)

    @property
    def bps_per_percent(self) -> float | None:
        """bit/s for each percent of one of the DUT's cores."""
        cores = self.summary.cores_per_gbps
        return 1e9 / cores / 100 if cores else None

    @property
    def tunnel(self) -> str:
        """``openvpn, client and DUT``; empty without one."""
        setup = self.result.setup
        if not setup.header_bytes(self.summary.kind.version):
            return ""
        return ", ".join(filter(None, (setup.tunnel, hosts_of(setup.tunnel_between or "dut-server"))))

    @cached_property
    def cpu(self) -> Mapping[str, float]:
        """Processes' shares of one core by core.tcp.cpu.COLUMNS, the mean over the repetitions."""
        return mean_columns([one.shares for one in self.flows])


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


@dataclass(frozen=True)
class WanRun:
    """A DUT's latest legs over one WAN, or with different buffers, of one or several runs. cell, result: the first."""

    cell: Cell
    result: TcpResult
    rows: tuple[BdpRow, ...]

    @property
    def name(self) -> str:
        """The DUT and its own variant; the WAN has a column of its own."""
        told = self.result.command.get("variant")
        return f"{self.cell.dut} {told}" if isinstance(told, str) and told else self.cell.dut

    @property
    def title(self) -> str:
        """To choose the plot by."""
        wan = self.result.setup.wan
        return self.name if wan is None else f"{self.name}, WAN of {nominal(f'{wan} ').rstrip()}"

    @property
    def about(self) -> str:
        """Means by which the line is made, the WAN that was asked for where it was scaled down, and its BDP."""
        setup, product = self.result.setup, find_product(self.result)
        by = f"by {setup.wan_by}" if setup.wan is not None and setup.wan_by else ""
        asked = f"scaled to {format_share(setup.scale)} of {setup.wan_asked}" if setup.wan_asked is not None else ""
        bdp = "" if product is None else f"BDP {format_size(product.size_bytes)}"
        return ", ".join(filter(None, (by, asked, bdp)))

    @cached_property
    def plot(self) -> PlotFigure | None:
        """None where buffers do not differ."""
        return find_plot(self.result, self.rows, self.title, self.cell)


def find_wan_runs(runs: Mapping[Cell, TcpResult]) -> tuple[WanRun, ...]:
    """Group by WAN the legs that each cell's mode names; DUTs in the order of the cells, shorter WANs first in each."""
    groups: dict[tuple[object, ...], WanRun] = {}
    for cell, result in runs.items():
        mode, setup = cell.tcp, result.setup
        if mode is None or not tells_bdp(result):
            continue
        rows = tuple(row for row in find_rows(result) if row.kind == mode.leg)
        key = (cell.dut_words, cell.mark, str(setup.wan), setup.wan_by, str(setup.wan_asked))
        before = groups.setdefault(key, WanRun(cell, result, ()))
        groups[key] = replace(before, rows=(*before.rows, *rows))
    found = [replace(one, rows=tuple(sorted(one.rows, key=_order))) for one in groups.values() if one.rows]
    names = [one.name for one in found]

    def place(one: WanRun) -> tuple[float, ...]:
        wan = one.result.setup.wan or Wan()
        return names.index(one.name), wan.delay_s, wan.rate_bps or 0.0, wan.loss

    return tuple(sorted(found, key=place))


def _order(row: BdpRow) -> tuple[object, ...]:
    """Sort key that keeps each series of the plot together, smaller buffers first."""
    way = list(Way).index(row.kind.way), row.kind.version, row.sender
    return (*way, row.congestion, row.kind.buffer_bytes is not None, row.buffer_bytes or 0)
