"""Runs of TCP for the report: each cell's way and version in its latest run, and legs by their WAN."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from ...core.dut.cycles import CpuShare
from ...core.history.cell import Cell
from ...core.tcp.bdp import BdpRow, find_product, find_rows, tells_bdp
from ...core.tcp.cpu import mean_columns
from ...core.tcp.intervals import Interval
from ...core.tcp.plan import Way
from ...core.tcp.result import FlowResult, LegSummary, PingResult, TcpResult
from ...core.tcp.tunnel import hosts_of
from ...core.tcp.wan import Wan, format_size
from ...core.units import format_share
from ..plots import PlotFigure
from ..tcp.curves import find_plot

MOST_POINTS = 240
"""Most points of a series; neighbouring intervals of a longer one are pooled."""


@dataclass(frozen=True)
class TcpCell:
    """The way and version of a cell in its latest run."""

    cell: Cell
    result: TcpResult
    summary: LegSummary

    @cached_property
    def flows(self) -> tuple[FlowResult, ...]:
        """Flows of all repetitions, two of each if both sides send."""
        kind = self.summary.kind
        return tuple(one for one in self.result.flows if one.leg.kind == kind and one.flow.intervals)

    @cached_property
    def pings(self) -> tuple[PingResult, ...]:
        """Pings of this version while the path was idle, and while this way ran."""
        kind = self.summary.kind
        of_version = (one for one in self.result.ping_results if one.leg.version == kind.version)
        return tuple(one for one in of_version if not one.loaded or one.leg.kind == kind)

    @property
    def name(self) -> str:
        """The DUT, its variant and the way in words."""
        return f"{self.cell.dut_words} {mode_words(self.cell)}"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Evidence for the limit, from the flows that it holds for."""
        verdicts = [flow.verdict for flow in self.flows if flow.verdict.limit is self.summary.limit]
        return tuple(dict.fromkeys(reason for verdict in verdicts for reason in verdict.reasons))

    @property
    def retransmits(self) -> int | None:
        known = [one.flow.retransmits for one in self.flows if one.flow.retransmits is not None]
        return sum(known) if known else None

    @cached_property
    def cores(self) -> tuple[float, ...]:
        """Mean busy share of each of the DUT's cores over the repetitions; empty if not read."""
        legs = {flow.leg: flow.shares["dut"].cpus for flow in self.flows if flow.shares["dut"].cpus}
        busy: dict[int, list[float]] = {}
        for cpu in (cpu for cpus in legs.values() for cpu in cpus):
            busy.setdefault(cpu.cpu, []).append(cpu.busy)
        return tuple(fmean(busy[number]) for number in sorted(busy))

    @property
    def hottest(self) -> CpuShare | None:
        """The DUT's core that was busiest in any repetition."""
        cpus = [flow.shares["dut"].busiest for flow in self.flows]
        return max((cpu for cpu in cpus if cpu is not None), key=lambda cpu: cpu.busy, default=None)

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
        """Processes' mean shares of one core over the repetitions, by core.tcp.cpu.COLUMNS."""
        return mean_columns([one.shares for one in self.flows])


def find_tcp_cells(runs: Mapping[Cell, TcpResult]) -> tuple[TcpCell, ...]:
    """Return the cells that have a figure, in the order of ``runs``."""
    cells: list[TcpCell] = []
    for cell, result in runs.items():
        summaries = [summary for summary in result.summaries if cell.tcp and summary.kind == cell.tcp.leg]
        cells += [TcpCell(cell, result, summary) for summary in summaries[:1]]
    return tuple(cells)


def mode_order(cell: Cell) -> tuple[int, int, int, str, int, bool, bool]:
    """Sort key of modes: IPv4, fewer streams, forward, congestion control, smaller buffers, neither pinned nor
    unmonitored first."""
    mode = cell.tcp
    if mode is None:
        return (0, 0, 0, "", 0, False, False)
    marks = mode.congestion or "", mode.buffer_bytes or 0, mode.pinned, not mode.monitored
    return (mode.version, mode.streams, list(Way).index(mode.way), *marks)


def mode_words(cell: Cell) -> str:
    """Name of a mode of TCP in plots: ``reverse IPv6, 4 streams, unmonitored``."""
    mode = cell.tcp
    if mode is None:
        return str(cell.mode)
    streams = f", {mode.streams} streams" if mode.streams > 1 else ""
    marks = f"{', pinned' if mode.pinned else ''}{'' if mode.monitored else ', unmonitored'}"
    return f"{mode.leg}{streams}{marks}"


def pool_intervals(flow: FlowResult, most: int = MOST_POINTS) -> Iterator[Interval]:
    """Pool neighbouring intervals of a flow to at most ``most``; none is left out."""
    every = flow.flow.intervals
    size = -(-len(every) // most) or 1
    for at in range(0, len(every), size):
        some = every[at : at + size]
        resent = [one.retransmits for one in some if one.retransmits is not None]
        rtts_s = [one.rtt_s for one in some if one.rtt_s is not None]
        yield replace(
            some[0],
            end_s=some[-1].end_s,
            received_bps=sum(one.received_bps * one.length_s for one in some) / sum(one.length_s for one in some),
            retransmits=sum(resent) if len(resent) == len(some) else None,
            rtt_s=fmean(rtts_s) if rtts_s else None,
        )


@dataclass(frozen=True)
class WanRun:
    """A DUT's latest legs over one WAN, or with different buffers, of one or several runs."""

    cell: Cell
    """Cell of the first run, whose result follows."""
    result: TcpResult
    rows: tuple[BdpRow, ...]

    @property
    def name(self) -> str:
        """The DUT and its own variant; the WAN has a column of its own."""
        variant = self.result.command.get("variant")
        return f"{self.cell.dut} {variant}" if isinstance(variant, str) and variant else self.cell.dut

    @property
    def title(self) -> str:
        """Name to choose the plot by."""
        wan = self.result.setup.wan
        return self.name if wan is None else f"{self.name}, WAN of {wan}"

    @property
    def about(self) -> str:
        """The WAN's emulator, the WAN asked for if it was scaled down, and the BDP."""
        setup, product = self.result.setup, find_product(self.result)
        by = f"by {setup.wan_by}" if setup.wan is not None and setup.wan_by else ""
        asked = f"scaled to {format_share(setup.scale)} of {setup.wan_asked}" if setup.wan_asked is not None else ""
        bdp = "" if product is None else f"BDP {format_size(product.size_bytes)}"
        return ", ".join(filter(None, (by, asked, bdp)))

    @cached_property
    def plot(self) -> PlotFigure | None:
        """Rate over the size of the buffers; None if these do not differ."""
        return find_plot(self.result, self.rows, self.title, self.cell)


def find_wan_runs(runs: Mapping[Cell, TcpResult]) -> tuple[WanRun, ...]:
    """Group the legs of the cells' modes by WAN; DUTs in the order of the cells, shorter WANs first in each."""
    groups: dict[tuple[object, ...], WanRun] = {}
    for cell, result in runs.items():
        mode, setup = cell.tcp, result.setup
        if mode is None or not tells_bdp(result):
            continue
        rows = tuple(row for row in find_rows(result) if row.kind == mode.leg)
        key = (cell.dut_words, cell.mark, str(setup.wan), setup.wan_by, str(setup.wan_asked))
        before = groups.setdefault(key, WanRun(cell, result, ()))
        groups[key] = replace(before, rows=(*before.rows, *rows))

    def row_order(row: BdpRow) -> tuple[object, ...]:
        # Each series of the plot together, smaller buffers first.
        way = list(Way).index(row.kind.way), row.kind.version, row.sender
        return (*way, row.congestion, row.kind.buffer_bytes is not None, row.buffer_bytes or 0)

    wan_runs = [replace(one, rows=tuple(sorted(one.rows, key=row_order))) for one in groups.values() if one.rows]
    names = [one.name for one in wan_runs]

    def place(one: WanRun) -> tuple[float, ...]:
        wan = one.result.setup.wan or Wan()
        return names.index(one.name), wan.delay_s, wan.rate_bps or 0.0, wan.loss

    return tuple(sorted(wan_runs, key=place))
