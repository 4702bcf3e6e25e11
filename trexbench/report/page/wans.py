"""TCP over WANs and through tunnels for the report: what buffers allow, and what the processes took of their CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from ...core.history.cell import Cell
from ...core.tcp.bdp import BdpRow, find_product, find_rows, tells_bdp
from ...core.tcp.cpu import COLUMNS, ProcessShare, mean_columns, told_processes
from ...core.tcp.model import Way
from ...core.tcp.result import TcpResult
from ...core.tcp.tunnel import hosts_of
from ...core.tcp.wan import Wan, format_size
from ...core.units import format_share, nominal
from ..plots import PlotFigure
from ..tcp.curves import find_plot
from .tcp import TcpCell, mode_words


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
    def wan(self) -> str:
        wan = self.result.setup.wan
        return "none" if wan is None else nominal(f"{wan} ").rstrip()

    @property
    def made(self) -> str:
        """Means by which the line is made; and the WAN that was asked for where it was scaled down."""
        setup = self.result.setup
        by = f"by {setup.wan_by}" if setup.wan is not None and setup.wan_by else ""
        asked = f"scaled to {format_share(setup.scale)} of {setup.wan_asked}" if setup.wan_asked is not None else ""
        return ", ".join(filter(None, (by, asked)))

    @property
    def product(self) -> str:
        found = find_product(self.result)
        return "" if found is None else f"BDP {format_size(found.size_bytes)}"

    @property
    def title(self) -> str:
        """To choose the plot by."""
        return ", ".join(filter(None, (self.name, "" if self.wan == "none" else f"WAN of {self.wan}")))

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
    return tuple(sorted(found, key=lambda one: (names.index(one.name), _length(one.result.setup.wan or Wan()))))


def _length(wan: Wan) -> tuple[float, float, float]:
    return wan.delay_s, wan.rate_bps or 0.0, wan.loss


def _order(row: BdpRow) -> tuple[object, ...]:
    """Sort key that keeps each series of the plot together, smaller buffers first."""
    way = list(Way).index(row.kind.way), row.kind.version, row.sender
    return (*way, row.congestion, row.kind.buffer_bytes is not None, row.buffer_bytes or 0)


@dataclass(frozen=True)
class TunnelCell:
    """A cell of TCP beside its processes' CPU: through a tunnel, or without one for comparison."""

    of: TcpCell

    @property
    def name(self) -> str:
        """The DUT, its variant and the way; the tunnel has a column of its own."""
        cell = self.of.cell
        return f"{replace(cell, over=None).dut_words} {mode_words(cell)}"

    @property
    def tunnel(self) -> str:
        """``openvpn, client and DUT``; none."""
        setup = self.of.result.setup
        if not setup.header_bytes(self.of.summary.kind.version):
            return "none"
        return ", ".join(filter(None, (setup.tunnel, hosts_of(setup.tunnel_between or "dut-server"))))

    @property
    def made(self) -> str:
        return self.of.result.setup.tunnel_by if self.tunnel != "none" else ""

    @property
    def mtu(self) -> int | None:
        """MTU inside the tunnel, where it was set."""
        return self.of.result.setup.tunnel_mtu if self.tunnel != "none" else None

    @cached_property
    def cpu(self) -> Mapping[str, float]:
        """Shares of one core by COLUMNS, the mean over the repetitions."""
        return mean_columns([one.shares for one in self.of.flows])

    @property
    def bits_per_cpu_second(self) -> float | None:
        known = [bits for one in self.of.flows if (bits := one.bits_per_cpu_second) is not None]
        return fmean(known) if known else None

    @property
    def processes(self) -> tuple[tuple[str, ProcessShare], ...]:
        """Host and process, of the first repetition: those with a part in the test first."""
        flow = self.of.flows[0]
        told = told_processes(flow.shares, self.of.result.setup.one_kernel)
        every = [(host, one) for host, ones in told.items() for one in ones]
        return tuple(sorted(every, key=lambda item: not item[1].role))


def find_tunnel_cells(cells: Sequence[TcpCell]) -> tuple[TunnelCell, ...]:
    """All whose processes were read, if any of them goes through a tunnel; else those through one."""
    found = [TunnelCell(one) for one in cells if one.flows]
    through = [one for one in found if one.tunnel != "none"]
    return tuple(one for one in found if one.cpu or one in through) if through else ()


CPU_HEADS: Mapping[str, str] = dict(
    zip(COLUMNS, ("client's tunnel", "client's program", "far end's tunnel", "server's program"), strict=True)
)
