"""A run of TCP as text: the verdicts, the tables of documents 000 and 004, the warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...core.tcp.bdp import tells_bdp
from ...core.tcp.cpu import HostShare, ProcessShare, told_processes
from ...core.tcp.model import Way
from ...core.tcp.result import FlowResult, TcpResult
from ...core.tcp.statistics import PingStatistics
from ...core.tcp.tunnel import hosts_of
from ...core.typed import Status
from ...core.units import format_duration, format_scaled, format_share, format_time
from ..clean import clean
from ..words import NONE, format_bound, format_count, lay_out, or_dash, text_of
from .bdp import bdp_lines

_HEAD = ("Mbit/s", "min", "max", "mean", "+-", "median", "sstdev", "lag 1", "retransmits", "limit")
_PINGS = ("ping", "min", "avg", "max", "mdev", "loss")
_CPUS = ("CPU", "busy", "usr", "sys", "softirq", "waiting", "Mbit/s per %")
_CORES, _CORE = 4, 0.05
"""Cores of a host reported at most, busiest first, and the busy share that each needs; at least one is reported."""
_PROCESSES, _PROCESS = 3, 0.01
_ALWAYS, _OFTEN = ("tunnel", "pppoe"), ("napi", "ksoftirqd")
"""Parts whose processes are told however little they took; and those that are told beside the busiest."""
_FOR = "for each second of CPU that the endpoints' programs and the tunnel's took"


def format_tcp(result: TcpResult) -> str:
    """The whole summary, several lines."""
    lines = [format_brief_tcp(result)]
    lines += ["", *bdp_lines(result)] if tells_bdp(result) else []
    lines += ["", *lay_out([_HEAD, *map(_flow_row, result.flows)], "lrrrrrrrrl")] if result.flows else []
    if result.ping_results:
        pings = [_ping_row(f"{one.leg}, {_load(one.loaded)}", one.statistics) for one in result.ping_results]
        lines += ["", *lay_out([_PINGS, *pings], "lrrrrr")]
    cpus = [row for flow in result.flows for row in _cpu_rows(flow, result.setup.one_kernel)]
    lines += ["", *lay_out([_CPUS, *cpus], "lrrrrrr")] if cpus else []
    costs = [(one, bits) for one in result.flows if (bits := one.bits_per_cpu_second) is not None]
    lines += [f"CPU     {name_of_flow(one)}: {format_scaled(bits, 'bit', 3)} of payload {_FOR}" for one, bits in costs]
    lines += [f"power   idle: {result.idle_power_w:.2f} W"] if result.idle_power_w is not None else []
    lines += [f"power   {name_of_flow(one)}: {one.power_w:.2f} W" for one in result.flows if one.power_w is not None]
    reasons = [
        f"{name_of_flow(one)}: {one.verdict.limit.words}: {'; '.join(one.verdict.reasons)}" for one in result.flows
    ]
    warnings = [f"warning {clean(one.text)}" for one in (*result.warnings, *result.analysis_warnings)]
    return _printable([*lines, "", *map(clean, reasons), *warnings, "", *_facts(result)])


def format_brief_tcp(result: TcpResult) -> str:
    """Format what must not be overlooked, a line each, and the headline."""
    return _printable([*(f"*** {text} ***" for text in _banners(result)), headline(result)])


def _printable(lines: Sequence[str]) -> str:
    return "\n".join(map(clean, "\n".join(lines).split("\n")))


def headline(result: TcpResult) -> str:
    """The DUT and each way's rate in one line."""
    return f"TCP through {clean(where_words(result))}: {answer_words(result)}"


def where_words(result: TcpResult) -> str:
    """The DUT, its variant, and the tunnel to the server where what was sent went through it."""
    inside = any(result.setup.header_bytes(leg.version) for leg in result.plan.legs)
    through = " ".join(filter(None, (result.setup.tunnel, result.setup.tunnel_between)))
    told = [text_of(result.command, "variant", ""), through if inside else ""]
    marks = ", ".join(one for one in told if one)
    return f"{text_of(result.dut, 'name', '?')}{f' ({marks})' if marks else ''}"


def answer_words(result: TcpResult) -> str:
    """Each way's mean rate."""
    rates = [f"{one.kind} {format_bound(one.rate_bps, one.at_least, 'bit/s')}" for one in result.summaries]
    return ", ".join(rates) or "nothing was measured"


def name_of_flow(flow: FlowResult) -> str:
    """``forward IPv4``; of a bidirectional leg with its sender."""
    return f"{flow.leg}, {flow.flow.sender} sends" if flow.leg.way is Way.BIDIR else str(flow.leg)


def _banners(result: TcpResult) -> Iterator[str]:
    if result.simulated:
        yield "SIMULATED: no packet was sent"
    if result.status is not Status.COMPLETE:
        reason = f": {clean(result.reason)}" if result.reason else ""
        yield f"{'STILL RUNNING, OR KILLED' if result.status is Status.RUNNING else 'INCOMPLETE'}{reason}"


def _flow_row(flow: FlowResult) -> tuple[str, ...]:
    found = flow.statistics
    again = or_dash(flow.flow.retransmits, str)
    limit = f"{'>= ' if flow.verdict.at_least else ''}{flow.verdict.limit.value}"
    if found is None:
        return (name_of_flow(flow), *[NONE] * 7, again, limit)
    spread = (found.median, found.sstdev)
    figures: list[float | None] = [found.min, found.max, found.mean, found.uncertainty, *spread]
    lag1 = or_dash(found.lag1, lambda value: f"{value:.2f}")
    return (name_of_flow(flow), *(or_dash(one, _mega) for one in figures), lag1, again, limit)


def _mega(bps: float) -> str:
    return f"{bps / 1e6:.1f}"


def _load(loaded: bool) -> str:
    return "loaded" if loaded else "idle"


def _ping_row(name: str, one: PingStatistics) -> tuple[str, ...]:
    times = (one.min_s, one.avg_s, one.max_s, one.mdev_s)
    return (name, *(or_dash(time_s, format_time) for time_s in times), format_share(one.loss))


def _cpu_rows(flow: FlowResult, one_kernel: bool) -> Iterator[tuple[str, ...]]:
    """Each host, its busiest cores, its program, the tunnel's processes and those that took most."""
    processes = told_processes(flow.shares, one_kernel)
    for host, share in flow.shares.items():
        if not share.cpus and not share.threads and not processes[host]:
            continue
        per_percent = or_dash(share.bits_per_percent(flow.flow.received_bps or 0.0), _mega)
        busy = f"{share.cores_busy:.2f} cores" if share.cpus else NONE
        yield (f"{name_of_flow(flow)}: {host}", busy, *[NONE] * 4, per_percent)
        cores = sorted(share.cpus, key=lambda one: one.busy, reverse=True)[:_CORES]
        for core in [one for one in cores if one.busy >= _CORE] or cores[:1]:
            yield (f"  CPU {core.cpu}", *_shares(core.busy, core.user, core.system, core.packet_busy, None), NONE)
        if share.threads:
            user, system = sum(one.user for one in share.threads), sum(one.system for one in share.threads)
            own = share.of_role("endpoint")
            yield (f"  its program{_cpus_of(own)}", *_shares(user + system, user, system, None, share.waiting), NONE)
        for one in _processes_told(processes[host], share):
            role, whose = (
                f"{one.role}: " if one.role in _ALWAYS else "",
                f", {one.whose}" if one.whose == "elsewhere" else "",
            )
            name = clean(f"  {role}{one.name}, process {one.process}{_cpus_of(one)}{whose}")
            yield (name, *_shares(one.busy, one.user, one.system, None, one.waiting), NONE)


def _processes_told(processes: Iterable[ProcessShare], share: HostShare) -> list[ProcessShare]:
    """Without the program that sends or receives, where it has a row already."""
    left = [one for one in processes if not (share.threads and one.role == "endpoint")]
    busiest = [one for one in left if one.busy >= _PROCESS and one.role not in _ALWAYS]
    parts = [one for one in busiest[_PROCESSES:] if one.role in _OFTEN]
    return [*(one for one in left if one.role in _ALWAYS), *busiest[:_PROCESSES], *parts[:_PROCESSES]]


def _cpus_of(one: ProcessShare | None) -> str:
    """Where its threads ran last."""
    return "" if one is None or not one.cpus else f", CPU {'+'.join(map(str, one.cpus[:_CORES]))}"


def _shares(*values: float | None) -> Iterator[str]:
    return (or_dash(one, format_share) for one in values)


def _facts(result: TcpResult) -> Iterator[str]:
    plan = result.plan
    words = [format_count(plan.streams, "connection")]
    words += [f"{format_duration(plan.time_s)} each, in intervals of {plan.interval_s:g} s"]
    words += [f"the first {plan.omit_s:g} s left out"] if plan.omit_s else []
    words += ["without copying"] if plan.zerocopy else []
    yield f"sent    {', '.join(words)}"
    setup = result.setup
    if any(leg.version == 6 for leg in plan.legs):
        if setup.tunnel_by and not setup.tunnel_between:
            yield f"tunnel  {clean(setup.tunnel)} between DUT and server, by {clean(setup.tunnel_by)}: all of IPv6"
        elif setup.without_tunnel:
            yield f"tunnel  none: {clean(setup.without_tunnel)}"
    if setup.tunnel_between:
        what = f"{setup.tunnel} between {hosts_of(setup.tunnel_between)}, by {setup.tunnel_by}, MTU {setup.tunnel_mtu}"
        yield f"tunnel  {clean(what)}"
    for role, told in (result.legs[0].program if result.legs else {}).items():
        program = " ".join(text_of(told, key, "") for key in ("name", "version")).strip()
        control, kernel = text_of(told, "congestion", "?"), text_of(told, "kernel", "?")
        yield clean(f"{role:<7} {program}, congestion control {control}, kernel {kernel}")
    if result.setup.pppoe:
        yield f"PPPoE   between DUT and server, MTU {result.setup.mtu}"
    yield f"DUT     {clean(text_of(result.dut, 'description', text_of(result.dut, 'name', '?')))}"
    yield f"started {result.started}{f', ended {result.finished}' if result.finished else ''}"
