"""Tables of TCP: rates, legs, pings, WANs, tunnels and published figures."""

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
    figure,
    make_sheet,
    named,
    of_apart,
    of_bits,
    of_count,
    of_share,
    of_text,
    of_time,
    row_of,
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
    heads = (
        ":Run; Mean rate [bit/s]; 95 % interval [\u00b1 bit/s]; :Limit; Retransmits; "
        "Ping idle [\u00b5s]; Ping loaded [\u00b5s]; Router CPU, of its cores [share]; "
        "Hottest core [share]; Mbit/s per % of a core; Power [W]"
    )
    return make_sheet(heads, map(_rate_items, report.tcp_cells), "tcp", "TCP through the router")


def _name_item(one: TcpCell) -> Item:
    return named(one.name, one.cell.mark)


def _rate_items(one: TcpCell) -> Iterator[Item | str]:
    summary, hottest = one.summary, one.hottest
    yield _name_item(one)
    yield of_bits(summary.rate_bps, bound=summary.at_least)
    yield of_apart(summary.uncertainty_bps)
    yield of_text(summary.limit.words, one.reasons)
    yield of_count(one.retransmits)
    yield from map(of_time, (summary.ping_idle_s, summary.ping_loaded_s))
    yield figure(fmean(one.cores) if one.cores else None, lambda busy: f"{format_share(busy)} of {len(one.cores)}")
    core = "" if hottest is None else f" (CPU {hottest.cpu})"
    yield figure(None if hottest is None else hottest.busy, lambda busy: f"{format_share(busy)}{core}")
    yield figure(one.bps_per_percent, lambda bps: f"{bps / 1e6:.3g}", 1e-6)
    yield figure(summary.power_w, "{:.1f} W".format)


def leg_sheet(report: Report) -> Sheet:
    """Table of each leg's intervals, summed up as ``datamash`` does."""
    heads = ":Leg; Min [bit/s]; Max [bit/s]; Mean [bit/s]; Median [bit/s]; Sstdev [bit/s]; Retransmitted [share]"
    rows = []
    for one in report.tcp_cells:
        for flow in one.flows:
            if (of := flow.statistics) is not None:
                mean = of_bits(of.mean, bound=flow.verdict.at_least)
                figures = (of_bits(of.min), of_bits(of.max), mean, of_bits(of.median), of_bits(of.sstdev))
                items = (name_of_flow(flow), *figures, of_share(flow.flow.retransmitted))
                rows.append(row_of(items, block=_name_item(one).text))
    return make_sheet(heads, rows, "tcp-legs", "Every leg of TCP", "Run")


def ping_sheet(report: Report) -> Sheet:
    heads = ":While; Min [\u00b5s]; Avg [\u00b5s]; Max [\u00b5s]; Mdev [\u00b5s]; Lost [share]"
    rows = []
    for one in report.tcp_cells:
        for ping in one.pings:
            statistics = ping.statistics
            times = map(of_time, (statistics.min_s, statistics.avg_s, statistics.max_s, statistics.mdev_s))
            items = ("loaded" if ping.loaded else "idle", *times, of_share(statistics.loss))
            rows.append(row_of(items, block=_name_item(one).text))
    return make_sheet(heads, rows, "tcp-pings", "Every ping", "Run")


def wan_sheet(report: Report) -> Sheet:
    """Table of the legs over each WAN, below the WAN and its bandwidth-delay product."""
    heads = (
        ":Run; Buffers [B]; Window, predicted [B]; Window, seen [B]; Predicted [bit/s]; :By; Measured [bit/s]; "
        "95 % interval [\u00b1 bit/s]; Measured / predicted; Sent again; :Verdict"
    )
    rows = []
    for run in report.wans:
        block = ", ".join(filter(None, (named(run.title, run.cell.mark).text, of_text(run.about).text)))
        rows += [row_of(_bdp(run, row), block=block) for row in run.rows]
    return make_sheet(heads, rows, "wans", "TCP over WANs: buffers and bandwidth-delay product", "WAN")


def _bdp(run: WanRun, row: BdpRow) -> Iterator[Item | str]:
    yield f"{run.name} {row.name}"
    for size in (row.buffer_bytes, row.window_predicted_bytes, row.window_bytes):
        yield figure(size, format_size)
    yield of_bits(row.predicted_bps)
    yield row.predicted_by
    yield of_bits(row.rate_bps, bound=row.at_least)
    yield of_apart(row.uncertainty_bps)
    yield figure(row.ratio, "{:.2f}".format)
    yield of_count(row.retransmits)
    yield row.words


def tunnel_cells(report: Report) -> list[TcpCell]:
    """Return the cells with figures of processes or a tunnel, if any of them goes through a tunnel."""
    cells = [one for one in report.tcp_cells if one.flows]
    return [one for one in cells if one.cpu or one.tunnel] if any(one.tunnel for one in cells) else []


def tunnel_sheet(report: Report) -> Sheet:
    cpus = "; ".join(f"CPU of the {head} [share of a core]" for head in CPU_HEADS.values())
    heads = f":Run; :Tunnel; MTU; Mean rate [bit/s]; {cpus}; Payload per CPU second [bit]; :Limit"
    return make_sheet(heads, map(_tunnel, tunnel_cells(report)), "tunnels", "Tunnels, and the CPU that they take")


def _tunnel(one: TcpCell) -> Iterator[Item | str]:
    summary, cell, setup = one.summary, one.cell, one.result.setup
    yield named(f"{replace(cell, over=None).dut_words} {mode_words(cell)}", cell.mark)
    yield " by ".join(filter(None, (one.tunnel, setup.tunnel_by))) if one.tunnel else "none"
    yield of_count(setup.tunnel_mtu if one.tunnel else None)
    yield of_bits(summary.rate_bps, bound=summary.at_least)
    yield from (of_share(one.cpu.get(column)) for column in CPU_HEADS)
    known = [bits for flow in one.flows if (bits := flow.bits_per_cpu_second) is not None]
    yield figure(fmean(known) if known else None, lambda bits: format_bits(bits).removesuffix("/s"))
    yield summary.limit.words


def process_sheet(report: Report) -> Sheet:
    """Table of the processes in each cell's first repetition, those with a role in the test first."""
    heads = ":Host; :Role; :Process; usr [share of a core]; sys [share of a core]; :Cores; Run delay [share of a core]"
    rows = []
    for one in tunnel_cells(report):
        by_host = told_processes(one.flows[0].shares, one.result.setup)
        processes = [(host, process) for host, some in by_host.items() for process in some]
        for host, process in sorted(processes, key=lambda item: not item[1].role):
            names = (process.whose or host, process.role or NONE, process.name)
            shares, cores = map(of_share, (process.user, process.system)), ", ".join(map(str, process.cpus)) or NONE
            rows.append(row_of((*names, *shares, cores, of_share(process.waiting)), block=_name_item(one).text))
    return make_sheet(heads, rows, "tunnel-processes", "Processes of every host", "Run")


def published_sheet(report: Report) -> Sheet:
    """Table of measured beside published figures, with the CPU of processes if any was published."""
    known = [cpu for one in report.published for cpu in (one.published_cpu, one.cpu)]
    published = any(one.published_cpu for one in report.published)
    columns = [key for key in CPU_HEADS if published and any(key in cpu for cpu in known)]
    pairs = ((CPU_HEADS[key], whose) for key in columns for whose in ("published", "measured"))
    cpus = "".join(f"CPU of the {head}, {whose} [share of a core]; " for head, whose in pairs)
    heads = f":Cell; Published [Mbit/s]; Measured [Mbit/s]; Ratio; {cpus}:Limit"
    rows = (_published(one, columns) for one in report.published)
    return make_sheet(heads, rows, "published", "Beside published figures")


def _published(one: Published, columns: list[str]) -> Iterator[Item | str]:
    row = one.row
    yield named(one.cell.known_by, "" if row is None else row.cell.mark)
    yield figure(one.published, "{:g}".format)
    yield figure(one.mbps, "{:.1f}".format, bound=row is not None and row.at_least)
    yield figure(one.ratio, "{:.2f}".format)
    for column in columns:
        yield from (of_share(cpu.get(column)) for cpu in (one.published_cpu, one.cpu))
    yield one.cell.state.value if row is None else _LIMITS.get(row.limit, row.limit)
