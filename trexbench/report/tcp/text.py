"""A TCP run as text: its tables, the bandwidth-delay product and what buffers allow, the verdicts, the warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from ...core.tcp.bdp import BdpRow, find_product, find_rows, tells_bdp
from ...core.tcp.cpu import HostShare, ProcessShare, told_processes
from ...core.tcp.laws import SENDABLE, window_rule
from ...core.tcp.plan import TcpEnvironment, Way
from ...core.tcp.result import FlowResult, LegSummary, PingResult, TcpResult
from ...core.tcp.tunnel import hosts_of
from ...core.tcp.wan import format_size
from ...core.units import format_bits, format_length, format_scaled, format_share, format_time, round_down
from ..clean import clean
from ..room import wrapped
from ..sheet import Item, Sheet, figure, format_sheet, make_sheet, of_count, of_share, of_time, row_of
from ..words import NONE, banners_of, format_bound, format_count, or_dash, starred, text_of

WAYS = (
    "::Way; Min [Mbit/s]^3; Max [Mbit/s]^3; Mean [Mbit/s]; Uncertainty [Mbit/s]; Median [Mbit/s]^2; Sstdev [Mbit/s]^2; "
    "Lag 1^1; Retransmits; :Limit"
)
BDP = (
    "Buffers [B]; Window [B]^1; Seen [B]^1; Cwnd [B]^1; Predicted [Mbit/s]; ::By; Measured [Mbit/s]; +- [Mbit/s]^2; "
    "Ratio^2; Retransmits^3"
)
PINGS = "::Ping; Min [\u00b5s]; Avg [\u00b5s]; Max [\u00b5s]; Mdev [\u00b5s]^1; Loss [%]"
_SYSCTLS = ("tcp_rmem", "tcp_wmem")
_CPUS = "::CPU; busy; usr^1; sys^1; softirq^1; waiting; Mbit/s per %"
_CORES, _CORE = 4, 0.05
"""Most cores reported of a host, and the busy share that each needs; the busiest is always reported."""
_PROCESSES, _PROCESS = 3, 0.01
"""Most processes reported of a host, and the busy share that each needs."""
_ALWAYS, _OFTEN = ("tunnel", "pppoe"), ("napi", "ksoftirqd")
"""Roles whose processes are reported however idle; and those reported in addition to the busiest."""
_FOR = "for each CPU second of the programs that carry it"


def sheets_of_run(result: TcpResult) -> Iterator[Sheet]:
    """Yield the run's tables that have a row: of its ways, buffers, pings and CPUs."""
    cpus = (row for flow in result.flows for row in _cpu_rows(flow, result.setup))
    sheets = (
        make_sheet(WAYS, map(way_items, result.flows), "ways", "Ways, in Mbit/s"),
        _bdp_sheet(find_rows(result) if tells_bdp(result) else ()),
        make_sheet(PINGS, map(ping_items, result.ping_results), "pings", "Pings"),
        make_sheet(_CPUS, cpus, "cpus", "CPU time"),
    )
    return (sheet for sheet in sheets if sheet.lines)


def _bdp_sheet(rows: Sequence[BdpRow]) -> Sheet:
    lines = [row_of((*bdp_items(row), row.limit.value), block=clean(row.name)) for row in rows]
    names = [*dict.fromkeys(line.block for line in lines)]
    lines.sort(key=lambda line: names.index(line.block))
    return make_sheet(f"{BDP}; ::Limit", lines, "bdp", "Buffers and bandwidth-delay product, in Mbit/s", "Legs")


def format_tcp(result: TcpResult, room: int | None = None) -> str:
    """Format the whole summary. room: as of room_of."""
    lines = [*wrapped(_head_lines(result), room)]
    lines += ["", *bdp_lines(result, room)] if tells_bdp(result) else []
    for sheet in sheets_of_run(result):
        lines += [] if sheet.blocks else ["", sheet.caption, *format_sheet(sheet, room)]
    return _printable([*lines, *wrapped([*_lines_below(result)], room)])


def _lines_below(result: TcpResult) -> Iterator[str]:
    for flow in result.flows:
        if (bits := flow.bits_per_cpu_second) is not None:
            yield f"CPU     {name_of_flow(flow)}: {format_scaled(bits, 'bit', 3)} of payload {_FOR}"
    if result.idle_power_w is not None:
        yield f"power   idle: {result.idle_power_w:.2f} W"
    for flow in result.flows:
        if flow.power_w is not None:
            yield f"power   {name_of_flow(flow)}: {flow.power_w:.2f} W"
    yield ""
    for flow in result.flows:
        yield f"{name_of_flow(flow)}: {flow.verdict.limit.words}: {'; '.join(flow.verdict.reasons)}"
    yield from (f"warning {warning.text}" for warning in (*result.warnings, *result.analysis_warnings))
    yield ""
    yield from _facts(result)


def format_brief_tcp(result: TcpResult) -> str:
    """Format the banners and the headline."""
    return _printable(_head_lines(result))


def _head_lines(result: TcpResult) -> list[str]:
    return [*starred(banners_of(result)), headline(result)]


def _printable(lines: Sequence[str]) -> str:
    return "\n".join(map(clean, "\n".join(lines).split("\n")))


def headline(result: TcpResult) -> str:
    """The DUT and each way's rate in one line."""
    return f"TCP through {clean(where_words(result))}: {answer_words(result)}"


def where_words(result: TcpResult) -> str:
    """The DUT, its variant, and the tunnel and WAN that the traffic went through."""
    inside = any(result.setup.header_bytes(leg.version) for leg in result.plan.legs)
    tunnel = " ".join(filter(None, (result.setup.tunnel, result.setup.tunnel_between))) if inside else ""
    marks = ", ".join(filter(None, (text_of(result.command, "variant", ""), tunnel)))
    wan = "" if result.setup.wan is None else f", WAN of {result.setup.wan}"
    return f"{text_of(result.dut, 'name', '?')}{f' ({marks})' if marks else ''}{wan}"


def answer_words(result: TcpResult) -> str:
    """Each way's mean rate of all repetitions, with its 95 % uncertainty if that is known."""
    return ", ".join(map(_rate_words, result.summaries)) or "nothing was measured"


def _rate_words(summary: LegSummary) -> str:
    doubt_bps = summary.uncertainty_bps
    doubt = "" if doubt_bps is None else f" +- {format_scaled(doubt_bps, 'bit/s', 2)}"
    return f"{summary.kind} {format_bound(summary.rate_bps, summary.at_least, 'bit/s')}{doubt}"


def name_of_flow(flow: FlowResult) -> str:
    """Name of a flow: ``forward IPv4``, with the sender if the leg is bidirectional."""
    return f"{flow.leg}, {flow.flow.sender} sends" if flow.leg.way is Way.BIDIR else str(flow.leg)


def way_items(flow: FlowResult) -> Iterator[Item | str]:
    """Yield the items of WAYS."""
    statistics = flow.statistics
    yield name_of_flow(flow)
    for name in ("min", "max", "mean", "uncertainty", "median", "sstdev"):
        value = None if statistics is None else getattr(statistics, name)
        yield of_mega(value, bound=name == "mean" and flow.verdict.at_least)
    yield figure(None if statistics is None else statistics.lag1, "{:.2f}".format)
    yield of_count(flow.flow.retransmits)
    yield flow.verdict.limit.value


def ping_items(ping: PingResult) -> Iterator[Item | str]:
    """Yield the items of PINGS."""
    statistics = ping.statistics
    yield f"{ping.leg}, loaded" if ping.loaded else f"IPv{ping.leg.version}, idle"
    yield from map(of_time, (statistics.min_s, statistics.avg_s, statistics.max_s, statistics.mdev_s))
    yield of_share(statistics.loss)


def _cpu_rows(flow: FlowResult, setup: TcpEnvironment) -> Iterator[tuple[str, ...]]:
    """Yield each host, its busiest cores, its program, the tunnel's processes and the busiest others."""
    processes = told_processes(flow.shares, setup)
    for host, share in flow.shares.items():
        if not share.cpus and not share.threads and not processes[host]:
            continue
        cores_busy = share.cores_busy
        per_percent = or_dash(flow.carried_bps / (100 * cores_busy) if flow.carried_bps and cores_busy else None, mega)
        busy = f"{cores_busy:.2f} cores" if share.cpus else NONE
        yield (f"{name_of_flow(flow)}: {host}", busy, *[NONE] * 4, per_percent)
        cores = sorted(share.cpus, key=lambda one: one.busy, reverse=True)[:_CORES]
        for core in [one for one in cores if one.busy >= _CORE] or cores[:1]:
            yield (f"  CPU {core.cpu}", *_shares(core.busy, core.user, core.system, core.packet_busy, None), NONE)
        if share.threads:
            user, system = sum(one.user for one in share.threads), sum(one.system for one in share.threads)
            own = share.of_role("endpoint")
            yield (f"  its program{_cpus_of(own)}", *_shares(user + system, user, system, None, share.waiting), NONE)
        for one in _reported(processes[host], share):
            role = f"{one.role}: " if one.role in _ALWAYS else ""
            whose = f", {one.whose}" if one.whose == "elsewhere" else ""
            name = clean(f"  {role}{one.name}, process {one.process}{_cpus_of(one)}{whose}")
            yield (name, *_shares(one.busy, one.user, one.system, None, one.waiting), NONE)


def _reported(processes: Iterable[ProcessShare], share: HostShare) -> list[ProcessShare]:
    # The program that sends or receives may have a row already.
    left = [process for process in processes if not (share.threads and process.role == "endpoint")]
    busiest = [process for process in left if process.busy >= _PROCESS and process.role not in _ALWAYS]
    parts = [process for process in busiest[_PROCESSES:] if process.role in _OFTEN]
    return [*(process for process in left if process.role in _ALWAYS), *busiest[:_PROCESSES], *parts[:_PROCESSES]]


def _cpus_of(one: ProcessShare | None) -> str:
    return "" if one is None or not one.cpus else f", CPU {'+'.join(map(str, one.cpus[:_CORES]))}"


def _shares(*values: float | None) -> Iterator[str]:
    return (or_dash(one, format_share) for one in values)


def _facts(result: TcpResult) -> Iterator[str]:
    plan, setup = result.plan, result.setup
    words = [format_count(plan.streams, "connection")]
    words += [f"{format_length(plan.time_s)} each, in intervals of {plan.interval_s:g} s"]
    words += [f"the first {plan.omit_s:g} s left out"] if plan.omit_s else []
    words += ["without copying"] if plan.zerocopy else []
    yield f"sent    {', '.join(words)}"
    if any(leg.version == 6 for leg in plan.legs):
        if setup.tunnel_by and not setup.tunnel_between:
            yield f"tunnel  {clean(setup.tunnel)} between DUT and server, by {clean(setup.tunnel_by)}: all of IPv6"
        elif setup.without_tunnel:
            yield f"tunnel  none: {clean(setup.without_tunnel)}"
    if setup.tunnel_between:
        what = f"{setup.tunnel} between {hosts_of(setup.tunnel_between)}, by {setup.tunnel_by}, MTU {setup.tunnel_mtu}"
        yield f"tunnel  {clean(what)}"
    for role, facts in (result.legs[0].program if result.legs else {}).items():
        program = " ".join(text_of(facts, key, "") for key in ("name", "version")).strip()
        every = (text_of(leg.program.get(role, {}), "congestion", "?") for leg in result.legs)
        controls, kernel = " and ".join(dict.fromkeys(every)), text_of(facts, "kernel", "?")
        yield clean(f"{role:<7} {program}, congestion control {controls}, kernel {kernel}")
    if setup.pppoe:
        yield f"PPPoE   between DUT and server, MTU {setup.mtu}"
    yield f"DUT     {clean(text_of(result.dut, 'description', text_of(result.dut, 'name', '?')))}"
    yield f"started {result.started}{f', ended {result.finished}' if result.finished else ''}"


def bdp_lines(result: TcpResult, room: int | None = None) -> Iterator[str]:
    """Yield the bandwidth-delay product, the hosts' buffers, a row for each kind of leg, and each one's verdict."""
    rows = find_rows(result)
    yield from wrapped([*_path_lines(result, rows), *map(clean, dict.fromkeys(_buffer_lines(result)))], room)
    sheet = _bdp_sheet(rows)
    for name, lines in sheet.parts:
        yield from ("", f"{name}, in Mbit/s", *format_sheet(replace(sheet, lines=tuple(lines)), room))
    yield ""
    for name, _ in sheet.parts:
        which = f"{name}, " if len(sheet.parts) > 1 else ""
        some = (row for row in rows if clean(row.name) == name)
        yield from wrapped([clean(f"{which}{_buffers(row)}: {row.words}") for row in some], room)


def _path_lines(result: TcpResult, rows: Sequence[BdpRow]) -> Iterator[str]:
    setup, product = result.setup, find_product(result)
    if setup.wan is not None:
        yield f"WAN     {setup.wan}{f', by {clean(setup.wan_by)}' if setup.wan_by else ''}"
    if setup.wan_asked is not None:
        yield f"scaled  {setup.wan_asked} was requested: rate and buffers are {format_share(setup.scale)} of that"
    if product is not None:
        parts = f"{format_bits(product.rate_bps)} x {format_time(product.delay_s)}"
        yield f"BDP     {format_size(product.size_bytes)}: {parts} ({product.by})"
    if (trip_s := next((row.round_trip_s for row in rows if row.round_trip_s), None)) is not None:
        yield f"ping    {format_time(trip_s)} round trip of the idle path, the median"
    for row in {row.congestion: row for row in rows}.values() if setup.wan is not None and setup.wan.loss else ():
        most = "no bound: its rate does not follow from the loss"
        if row.loss_bps is not None:
            most = f"about {format_bits(row.loss_bps)} in the long run, by {row.loss_law}"
        yield clean(f"loss    {row.congestion}: {most}")


def _buffer_lines(result: TcpResult) -> Iterator[str]:
    for leg in result.legs:
        for host, program in leg.program.items() if leg.leg.buffer_bytes is None else ():
            if sizes := [f"{name} {text_of(program, name, '?')}" for name in _SYSCTLS if name in program]:
                yield f"{host:<7} {', '.join(sizes)}"
    for leg in result.legs:
        if receiver := leg.program.get("client" if leg.leg.way is Way.REVERSE else "server"):
            yield f"window  {window_rule(receiver)[1]}; of a send buffer {SENDABLE:g} can be on its way"


def _buffers(row: BdpRow) -> str:
    how, _, whose = row.buffer_by.partition(": ")
    return f"{or_dash(row.buffer_bytes, format_size)}, {how}{f' ({whose})' if whose and how != 'set' else ''}"


def bdp_items(row: BdpRow) -> Iterator[Item | str]:
    """Yield the items of BDP."""
    for size in (row.buffer_bytes, row.window_predicted_bytes, row.window_bytes, row.cwnd_bytes):
        yield figure(size, format_size)
    yield of_mega(row.predicted_bps)
    yield row.predicted_by or NONE
    yield of_mega(row.rate_bps, bound=row.at_least)
    yield of_mega(row.uncertainty_bps)
    yield figure(row.ratio, "{:.2f}".format)
    yield of_count(row.retransmits)


def mega(bps: float, bound: bool = False) -> str:
    places = 3 if 0 < bps < 1e6 else 1
    return f"{round_down(bps / 1e6, places) if bound else bps / 1e6:.{places}f}"


def of_mega(bps: float | None, bound: bool = False) -> Item:
    """Make an item of a rate in Mbit/s. bound: a lower bound, which is not rounded up."""
    return figure(bps, partial(mega, bound=bound), 1e-6, bound)
