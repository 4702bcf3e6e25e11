"""The page's tables of TCP: rates, legs, pings, WANs, tunnels and published figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import fmean

from ...core.tcp.bdp import BdpRow
from ...core.tcp.cpu import COLUMNS, told_processes
from ...core.tcp.limit import TcpLimit
from ...core.tcp.wan import format_size
from ...core.units import format_bits, format_share
from ..sheet import (
    Item,
    Sheet,
    SheetRow,
    figure,
    heads_of,
    named,
    of_apart,
    of_bits,
    of_count,
    of_share,
    of_text,
    of_time,
    raw_of,
)
from ..tcp.table import PublishedCell as Published
from ..tcp.text import name_of_flow
from ..words import NONE
from .report import Report
from .tcp import TcpCell, WanRun, mode_words

CPU_HEADS: Mapping[str, str] = dict(
    zip(COLUMNS, ("client's tunnel", "client's program", "far end's tunnel", "server's program"), strict=True)
)
_LIMITS = {limit.value: limit.words for limit in TcpLimit}


def tcp_sheet(report: Report) -> Sheet:
    heads = heads_of(
        ":Run; Mean rate [bit/s]; 95 % interval [\u00b1 bit/s]; :Limit; Retransmits; "
        "Ping idle [\u00b5s]; Ping loaded [\u00b5s]; Router CPU, of its cores [share]; "
        "Hottest core [share]; Mbit/s per % of a core; Power [W]"
    )
    lines = tuple(SheetRow((_run(one), *_rates(one))) for one in report.tcp_cells)
    return Sheet("tcp", "TCP through the router", heads, lines)


def _run(one: TcpCell) -> Item:
    return named(one.name, one.cell.mark)


def _rates(one: TcpCell) -> Iterator[Item]:
    of, hottest = one.summary, one.hottest
    yield of_bits(of.rate_bps, of.at_least)
    yield of_apart(of.uncertainty_bps)
    yield of_text(of.limit.words, one.reasons)
    yield of_count(one.retransmits)
    yield from map(of_time, (of.ping_idle_s, of.ping_loaded_s))
    yield figure(fmean(one.cores) if one.cores else None, lambda busy: f"{format_share(busy)} of {len(one.cores)}")
    if hottest is None:
        yield Item(NONE, "")
    else:
        yield Item(f"{format_share(hottest.busy)} (CPU {hottest.cpu})", raw_of(hottest.busy))
    yield figure(one.bps_per_percent, lambda bps: f"{bps / 1e6:.3g}", 1e-6)
    yield figure(of.power_w, "{:.1f} W".format)


def leg_sheet(report: Report) -> Sheet:
    """Table of each leg's intervals, summed up as ``datamash`` does it."""
    heads = heads_of(
        ":Leg; Min [bit/s]; Max [bit/s]; Mean [bit/s]; Median [bit/s]; Sstdev [bit/s]; Retransmitted [share]"
    )
    lines = []
    for one in report.tcp_cells:
        for flow in one.flows:
            if (of := flow.statistics) is not None:
                mean = of_bits(of.mean, flow.verdict.at_least)
                figures = (of_bits(of.min), of_bits(of.max), mean, of_bits(of.median), of_bits(of.sstdev))
                items = (of_text(name_of_flow(flow)), *figures, of_share(flow.retransmitted))
                lines.append(SheetRow(items, block=_run(one).text))
    return Sheet("tcp-legs", "Every leg of TCP", heads, tuple(lines), "Run")


def ping_sheet(report: Report) -> Sheet:
    heads = heads_of(":While; Min [\u00b5s]; Avg [\u00b5s]; Max [\u00b5s]; Mdev [\u00b5s]; Lost [share]")
    lines = []
    for one in report.tcp_cells:
        for ping in one.pings:
            of = ping.statistics
            times = map(of_time, (of.min_s, of.avg_s, of.max_s, of.mdev_s))
            items = (of_text("loaded" if ping.loaded else "idle"), *times, of_share(of.loss))
            lines.append(SheetRow(items, block=_run(one).text))
    return Sheet("tcp-pings", "Every ping", heads, tuple(lines), "Run")


def wan_sheet(report: Report) -> Sheet:
    """The rows of each WAN below what makes it and its bandwidth-delay product."""
    heads = heads_of(
        ":Run; Buffers [B]; Window, predicted [B]; Window, seen [B]; Predicted [bit/s]; :By; Measured [bit/s]; "
        "95 % interval [\u00b1 bit/s]; Measured / predicted; Sent again; :Verdict"
    )
    lines = []
    for run in report.wans:
        block = ", ".join(filter(None, (named(run.title, run.cell.mark).text, of_text(run.about).text)))
        lines += [SheetRow(tuple(_bdp(run, row)), block=block) for row in run.rows]
    return Sheet("wans", "TCP over WANs: buffers and bandwidth-delay product", heads, tuple(lines), "WAN")


def _bdp(run: WanRun, row: BdpRow) -> Iterator[Item]:
    yield of_text(f"{run.name} {row.name}")
    for size in (row.buffer_bytes, row.window_predicted_bytes, row.window_bytes):
        yield figure(size, format_size)
    yield of_bits(row.predicted_bps)
    yield of_text(row.predicted_by)
    yield of_bits(row.rate_bps, row.at_least)
    yield of_apart(row.uncertainty_bps)
    yield figure(row.ratio, "{:.2f}".format)
    yield of_count(row.retransmits)
    yield of_text(row.words)


def tunnel_cells(report: Report) -> list[TcpCell]:
    """All whose processes were read, if any of them goes through a tunnel; else those through one."""
    cells = [one for one in report.tcp_cells if one.flows]
    return [one for one in cells if one.cpu or one.tunnel] if any(one.tunnel for one in cells) else []


def tunnel_sheet(report: Report) -> Sheet:
    cpus = "; ".join(f"CPU of the {head} [share of a core]" for head in CPU_HEADS.values())
    heads = heads_of(f":Run; :Tunnel; MTU; Mean rate [bit/s]; {cpus}; Payload per CPU second [bit]; :Limit")
    lines = tuple(SheetRow(tuple(_tunnel(one))) for one in tunnel_cells(report))
    return Sheet("tunnels", "Tunnels, and the CPU that they take", heads, lines)


def _tunnel(one: TcpCell) -> Iterator[Item]:
    of, cell, setup = one.summary, one.cell, one.result.setup
    yield named(f"{replace(cell, over=None).dut_words} {mode_words(cell)}", cell.mark)
    yield of_text(" by ".join(filter(None, (one.tunnel, setup.tunnel_by))) if one.tunnel else "none")
    yield of_count(setup.tunnel_mtu if one.tunnel else None)
    yield of_bits(of.rate_bps, of.at_least)
    yield from (of_share(one.cpu.get(column)) for column in CPU_HEADS)
    known = [bits for flow in one.flows if (bits := flow.bits_per_cpu_second) is not None]
    yield figure(fmean(known) if known else None, lambda bits: format_bits(bits).removesuffix("/s"))
    yield of_text(of.limit.words)


def process_sheet(report: Report) -> Sheet:
    """Processes of each cell's first repetition, those with a part in the test first."""
    heads = heads_of(
        ":Host; :Role; :Process; usr [share of a core]; sys [share of a core]; :Cores; Run delay [share of a core]"
    )
    lines = []
    for one in tunnel_cells(report):
        told = told_processes(one.flows[0].shares, one.result.setup)
        every = [(host, process) for host, some in told.items() for process in some]
        for host, process in sorted(every, key=lambda item: not item[1].role):
            names = (process.whose or host, process.role or "-", process.name)
            shares = of_share(process.user), of_share(process.system)
            cores = of_text(", ".join(map(str, process.cpus)) or "-")
            items = (*map(of_text, names), *shares, cores, of_share(process.waiting))
            lines.append(SheetRow(items, block=_run(one).text))
    return Sheet("tunnel-processes", "Processes of every host", heads, tuple(lines), "Run")


def published_sheet(report: Report) -> Sheet:
    """CPU of processes only where any was published, of those that are known."""
    known = [cpu for one in report.published for cpu in (one.published_cpu, one.cpu)]
    published = any(one.published_cpu for one in report.published)
    columns = [key for key in CPU_HEADS if published and any(key in cpu for cpu in known)]
    pairs = ((CPU_HEADS[key], whose) for key in columns for whose in ("published", "measured"))
    cpus = "".join(f"CPU of the {head}, {whose} [share of a core]; " for head, whose in pairs)
    heads = heads_of(f":Cell; Published [Mbit/s]; Measured [Mbit/s]; Ratio; {cpus}:Limit")
    lines = tuple(SheetRow(tuple(_published(one, columns))) for one in report.published)
    return Sheet("published", "Beside published figures", heads, lines)


def _published(one: Published, columns: list[str]) -> Iterator[Item]:
    row = one.row
    yield named(one.cell.known_by, "" if row is None else row.cell.mark)
    yield figure(one.published, "{:g}".format)
    yield figure(one.mbps, "{:.1f}".format, bound=row is not None and row.at_least)
    yield figure(one.ratio, "{:.2f}".format)
    for column in columns:
        yield from (of_share(cpu.get(column)) for cpu in (one.published_cpu, one.cpu))
    yield of_text(one.cell.state.value if row is None else _LIMITS.get(row.limit, row.limit))
