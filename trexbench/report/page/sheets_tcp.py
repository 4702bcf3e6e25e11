"""Tables of TCP: rates, legs, pings, WANs and tunnels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean

from ...core.tcp.cpu import told_processes
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
from ..tcp.table import CPU_NAMES
from ..tcp.text import BDP, PINGS, WAYS, bdp_items, ping_items, way_items
from ..words import NONE, format_plain
from .report import Report
from .tcp import TcpCell, mode_words

RATES = (
    ":Run; Mean rate [bit/s]; 95 % interval [\u00b1 bit/s]; :Limit; Retransmits; Ping idle [\u00b5s]; "
    "Ping loaded [\u00b5s]; Router CPU, of its cores [%]; Hottest core [%]; Mbit/s per % of a core; Power [W]"
)


def tcp_sheet(report: Report) -> Sheet:
    rows = ((report.named(one.cell, one.name), *rate_items(one)) for one in report.tcp_cells)
    return make_sheet(RATES, rows, "tcp", "TCP through the router")


def rate_items(one: TcpCell) -> Iterator[Item]:
    """Yield the items of RATES after the name."""
    summary, hottest = one.summary, one.hottest
    yield of_bits(summary.rate_bps, bound=summary.at_least)
    yield of_apart(summary.uncertainty_bps)
    yield of_text(summary.limit.words, one.reasons)
    yield of_count(one.retransmits)
    yield from map(of_time, (summary.ping_idle_s, summary.ping_loaded_s))
    yield figure(fmean(one.cores) if one.cores else None, lambda busy: f"{format_share(busy)} of {len(one.cores)}", 100)
    core = "" if hottest is None else f" (CPU {hottest.cpu})"
    yield figure(None if hottest is None else hottest.busy, lambda busy: f"{format_share(busy)}{core}", 100)
    yield figure(one.bps_per_percent, lambda bps: format_plain(bps / 1e6), 1e-6)
    yield figure(summary.power_w, "{:.1f} W".format)


def leg_sheet(report: Report) -> Sheet:
    """Table of each leg's intervals, summed up as ``datamash`` does."""
    rows = (
        row_of(way_items(flow), block=report.named(one.cell, one.name).text)
        for one in report.tcp_cells
        for flow in one.flows
    )
    return make_sheet(WAYS, rows, "tcp-legs", "Every leg of TCP, in Mbit/s", "Run")


def ping_sheet(report: Report) -> Sheet:
    rows = (
        row_of(ping_items(ping), block=report.named(one.cell, one.name).text)
        for one in report.tcp_cells
        for ping in one.pings
    )
    return make_sheet(PINGS, rows, "tcp-pings", "Every ping", "Run")


def wan_sheet(report: Report) -> Sheet:
    """Table of the legs over each WAN, below the WAN and its bandwidth-delay product."""
    rows = []
    for run in report.wans:
        block = ", ".join(filter(None, (named(run.title, run.cell.mark).text, of_text(run.about).text)))
        rows += [row_of((f"{run.name} {row.name}", *bdp_items(row), row.words), block=block) for row in run.rows]
    caption = "TCP over WANs: buffers and bandwidth-delay product, in Mbit/s"
    return make_sheet(f":Run; {BDP}; :Verdict", rows, "wans", caption, "WAN")


def tunnel_cells(report: Report) -> list[TcpCell]:
    """Return the cells with figures of processes or a tunnel, if any of them goes through a tunnel."""
    cells = [one for one in report.tcp_cells if one.flows]
    return [one for one in cells if one.cpu or one.tunnel] if any(one.tunnel for one in cells) else []


def tunnel_sheet(report: Report) -> Sheet:
    cpus = "; ".join(f"CPU of the {head} [% of a core]" for head in CPU_NAMES.values())
    heads = f":Run; :Tunnel; MTU; Mean rate [bit/s]; {cpus}; Payload per CPU second [bit]; :Limit"
    rows = (_tunnel(report, one) for one in tunnel_cells(report))
    return make_sheet(heads, rows, "tunnels", "Tunnels, and the CPU that they take")


def _tunnel(report: Report, one: TcpCell) -> Iterator[Item | str]:
    summary, cell, setup = one.summary, one.cell, one.result.setup
    yield report.named(cell, f"{replace(cell, over=None).dut_words} {mode_words(cell)}")
    yield " by ".join(filter(None, (one.tunnel, setup.tunnel_by))) if one.tunnel else "none"
    yield of_count(setup.tunnel_mtu if one.tunnel else None)
    yield of_bits(summary.rate_bps, bound=summary.at_least)
    yield from (of_share(one.cpu.get(column)) for column in CPU_NAMES)
    known = [bits for flow in one.flows if (bits := flow.bits_per_cpu_second) is not None]
    yield figure(fmean(known) if known else None, lambda bits: format_bits(bits).removesuffix("/s"))
    yield summary.limit.words


def process_sheet(report: Report) -> Sheet:
    """Table of the processes in each cell's first repetition, those with a role in the test first."""
    heads = ":Host; :Role; :Process; usr [% of a core]; sys [% of a core]; :Cores; Run delay [% of a core]"
    rows = []
    for one in tunnel_cells(report):
        by_host = told_processes(one.flows[0].shares, one.result.setup)
        processes = [(host, process) for host, some in by_host.items() for process in some]
        for host, process in sorted(processes, key=lambda item: not item[1].role):
            names = (process.whose or host, process.role or NONE, process.name)
            shares, cores = map(of_share, (process.user, process.system)), ", ".join(map(str, process.cpus)) or NONE
            rows.append(
                row_of((*names, *shares, cores, of_share(process.waiting)), block=report.named(one.cell, one.name).text)
            )
    return make_sheet(heads, rows, "tunnel-processes", "Processes of every host", "Run")
