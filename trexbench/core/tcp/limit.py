"""Who was the limit of one direction of a leg, and the evidence for it.

In this order: an endpoint's CPU, a window, the line, the DUT; else it is not known. Only ``dut`` is a statement about
the DUT: with any other limit it carries *at least* what was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from ..dut.telemetry import QDISC_DROPS, DutReading
from ..units import format_bits, format_share, format_time, tcp_payload_bps
from ..verdict.model import RunWarning
from .cpu import CoreShare, HostShare, ProcessShare
from .intervals import HOSTS, Flow
from .model import Leg, TcpEnvironment
from .window import TcpWindow, find_window

BUSY = 0.95
"""A thread or core with so much to do has no time left."""
NEARLY, QUEUED = 0.85, 3.0
"""A router's core with so much to do is the limit as well where round trips are so many times what they are without a
queue: TCP, which paces and starts from nothing, leaves it a little time."""
RUN_DELAY = 0.05
"""A thread that waits longer for a CPU is kept from sending or receiving."""
ASLEEP = 0.5
"""A thread that sleeps so long keeps up in spite of its run delay, where something else explains the rate."""
OWN_WORK = 0.5
"""Share of a core's busy time: with less for packets and an endpoint's programs, somebody else's work fills it."""
OF_CEILING = 0.9
"""Share of the endpoints' rate without the DUT above which they are the limit."""
OF_LINE = 0.98
TWICE = 0.5
"""Below this share of the ceiling, most of the work on shared cores is the DUT's."""
FEWEST_RETRANSMITS, OWNED = 10, 0.5
"""Fewest segments sent again that show whose drops they are: the DUT's, if it counts at least this share of them."""
TIMESTAMPS = 1
"""Bit of TCP_INFO's ``options``."""


class TcpLimit(str, Enum):
    ENDPOINT_CPU = "endpoint-cpu"
    WINDOW = "window"
    LINK = "link"
    DUT = "dut"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class TcpVerdict:
    """reasons: the evidence, in sentences. window: where that is the limit. link_bps: the line's payload rate."""

    limit: TcpLimit
    reasons: tuple[str, ...]
    window: TcpWindow | None = None
    link_bps: float | None = None
    warnings: tuple[RunWarning, ...] = ()

    @property
    def at_least(self) -> bool:
        return self.limit is not TcpLimit.DUT


@dataclass(frozen=True)
class TcpEvidence:
    """Known facts about one direction. shares: by host, ``dut`` included. ceiling_bps: of the endpoints alone, for the
    same way and version; ping_s: the idle path's shortest round trip; dut: the readings of the leg."""

    leg: Leg
    flow: Flow
    setup: TcpEnvironment
    shares: Mapping[str, HostShare]
    ceiling_bps: float | None = None
    ping_s: float | None = None
    dut: Sequence[DutReading] = ()

    @property
    def rate_bps(self) -> float:
        return self.flow.received_bps or 0.0

    @property
    def link_bps(self) -> float | None:
        """The payload rate of the slowest line, a WAN included; None where no line's speed is known."""
        options = [s.info["options"] for r in self.flow.sending for s in r.streams if "options" in s.info]
        stamped = bool(options[-1] & TIMESTAMPS) if options else True
        setup, version = self.setup, self.leg.version
        inside = setup.mtu, version, stamped, setup.tags, setup.header_bytes(version)
        found = [tcp_payload_bps(setup.line_bps, *inside)] if setup.line_bps else []
        if setup.wan is not None and setup.wan.rate_bps is not None:
            found.append(tcp_payload_bps(setup.wan.rate_bps, *inside, framing=0))
        return min(found, default=None)

    @property
    def cores_apart(self) -> bool:
        """True if the DUT's work is done by other cores than the endpoints'."""
        if not self.setup.one_kernel:
            return True
        cpus = self.setup.cpus
        theirs = {*cpus.get("client", ()), *cpus.get("server", ())}
        return bool(cpus.get("client") and cpus.get("server") and cpus.get("dut")) and not theirs & {*cpus["dut"]}

    def beside(self, host: str) -> list[str]:
        """The other hosts of the test that may work on cores of this one."""
        if not self.setup.one_kernel:
            return []
        cpus = self.setup.cpus
        mine, others = cpus.get(host), [one for one in (*HOSTS, "dut") if one != host]
        return [f"the {one}" for one in others if not mine or not cpus.get(one) or {*mine} & {*cpus[one]}]

    @property
    def dut_polls(self) -> bool:
        """VPP's workers are always busy."""
        return any(one.observation.threads for one in self.dut)

    def busy_cores(self, host: str, enough: float = BUSY) -> list[tuple[int, float]]:
        """Cores of this host at least ``enough`` busy, and how busy they are; by default those with no time left."""
        return [(one.cpu, one.busy) for one in self.shares.get(host, HostShare(host)).cpus if one.busy >= enough]

    @property
    def queued(self) -> tuple[float, float] | None:
        """Round trips of the flow and without a queue, in s, where packets queue for the DUT; None: not that is known.

        Only where there is no line that they could queue for, or much less than it carries.
        """
        line_bps = self.link_bps
        if self.rate_bps >= OF_CEILING * line_bps if line_bps else not self.setup.one_kernel:
            return None
        seen = [one.rtt_s for one in self.flow.regular if one.rtt_s is not None]
        infos = [stream.info.get("min_rtt", 0) / 1e6 for one in self.flow.sending for stream in one.streams]
        least = min([one for one in (*infos, self.ping_s) if one], default=None)
        return (median(seen), least) if seen and least and median(seen) >= QUEUED * least else None

    def filled_cores(self, host: str) -> list[tuple[int, float]]:
        """Cores that an endpoint's own work has filled: packets and the programs that may run there, not other work."""
        share = self.shares.get(host, HostShare(host))
        there = [host, *(one for one in self.beside(host) if one in HOSTS)]
        shares = [self.shares.get(name, HostShare(name)) for name in there]
        programs = sum(one.busy for own in shares for one in own.threads)
        programs += sum(one.busy for own in shares for one in own.tunnels)
        packets = {one.cpu: one.packet_busy for one in share.cpus}
        return [
            (cpu, busy)
            for cpu, busy in self.busy_cores(host)
            if not share.threads or (own := packets[cpu]) is None or own + programs >= OWN_WORK * busy
        ]

    @property
    def dut_busy(self) -> list[tuple[int, float]]:
        """Where others use its kernel, too: only cores that its own work keeps busy."""
        cores = {one.cpu: one for one in self.shares.get("dut", HostShare("dut")).cpus}
        return [
            (cpu, busy)
            for cpu, busy in ([] if self.dut_polls else self.busy_cores("dut", NEARLY if self.queued else BUSY))
            if (own := self._own_work(cores[cpu])) is None or own >= OWN_WORK * busy
        ]

    @property
    def dut_other_work(self) -> int | None:
        """A core that counts as the DUT's although soft interrupts took less than half of its time, and nothing else
        tells whose work that was; None: there is none."""
        shares = self.shares.get("dut", HostShare("dut")).cpus
        counted = {cpu for cpu, _ in self.dut_busy}
        unsure = [one for one in shares if one.cpu in counted and self._own_work(one) is None]
        programs = sum(one.busy for one in self.shares["dut"].processes if one.role in ("tunnel", "pppoe"))
        mostly = (
            one.cpu
            for one in unsure
            if (packets := one.packet_busy) is not None and packets + programs < OWN_WORK * one.busy
        )
        return next(mostly, None)

    def _own_work(self, core: CoreShare) -> float | None:
        """Share of the core that the DUT's work took: soft interrupts, or the kernel with NAPI threads. None: unknown.

        A program in user space, as that of PPPoE or a tunnel, is like any other.
        """
        if not self.setup.one_kernel or not self.cores_apart or self.setup.dut_programs:
            return None
        if self.setup.napi_threads:
            return None if core.user is None else core.busy - core.user
        return core.packet_busy


def find_limit(evidence: TcpEvidence) -> TcpVerdict:
    """The first that the evidence names; warnings go with it."""
    link_bps, window = evidence.link_bps, find_window(evidence.flow, evidence.ping_s)
    own_cpu, own_drops = list(_dut_cpu(evidence)), list(_drops(evidence))
    if window is not None and window.kind == "congestion window" and (own_cpu or own_drops):
        window = None  # it is what TCP made of a path that the DUT slows down
    if window is not None and link_bps is not None and window.predicted_bps >= link_bps:
        window = None  # it is wider than the line: what it holds back waits for the line
    causes: list[tuple[TcpLimit, list[str]]] = [
        (TcpLimit.ENDPOINT_CPU, list(_endpoints(evidence))),
        (TcpLimit.WINDOW, [str(window)] if window is not None else []),
        (TcpLimit.LINK, list(_link(evidence, link_bps))),
        (TcpLimit.DUT, [*own_cpu, *own_drops]),
        (TcpLimit.ENDPOINT_CPU, list(_waiting(evidence, asleep=True))),
    ]
    nothing = (TcpLimit.UNKNOWN, list(_full_cores(evidence)) or ["no CPU, window, line or drop explains the rate"])
    if not evidence.flow.intervals:
        causes, nothing = [], (TcpLimit.UNKNOWN, ["nothing was measured"])
    limit, reasons = next(((limit, reasons) for limit, reasons in causes if reasons), nothing)
    return TcpVerdict(
        limit=limit,
        reasons=tuple(reasons),
        window=window if limit is TcpLimit.WINDOW else None,
        link_bps=link_bps,
        warnings=tuple(_warnings(evidence, limit)),
    )


def _endpoints(evidence: TcpEvidence) -> Iterator[str]:
    yield from _over_the_ceiling(evidence)
    if not evidence.cores_apart and not _endpoints_own_the_work(evidence):
        return
    for host, role in _roles(evidence.flow):
        share = evidence.shares.get(host, HostShare(host))
        yield from _tunnels(share) if evidence.cores_apart else ()
        for thread in share.threads if evidence.cores_apart else ():
            if thread.busy >= BUSY:
                parts = f"usr {format_share(thread.user)}, sys {format_share(thread.system)}"
                yield f"the {host}, which {role}: a thread took {format_share(thread.busy)} of a core ({parts})"
        for cpu, busy in evidence.filled_cores(host):
            shared = "" if evidence.cores_apart else ", which it shares with the router"
            yield f"the {host}, which {role}: its CPU {cpu}{shared} was {format_share(busy)} busy"
    yield from _waiting(evidence, asleep=False)


def _waiting(evidence: TcpEvidence, asleep: bool) -> Iterator[str]:
    """Programs that were kept from sending or receiving: those that had to work most of the time, or those that slept.

    The latter keep up where a window, a line or the DUT holds the flow back, or packets queue for it.
    """
    if (not evidence.cores_apart and not _endpoints_own_the_work(evidence)) or (asleep and evidence.queued):
        return
    for host, role in _roles(evidence.flow):
        share = evidence.shares.get(host, HostShare(host))
        if (waiting := share.waiting) is not None and waiting > RUN_DELAY and asleep == _slept(share):
            yield f"the {host}, which {role}: it waited for a CPU for {format_share(waiting)} of the time"


def _tunnels(share: HostShare) -> Iterator[str]:
    """Processes of a tunnel without time left, as far as one core goes: of several threads, one that has none."""
    whose = "DUT" if share.host == "dut" else share.host
    for one in share.tunnels:
        name = f"the {whose}'s tunnel ({one.name}, process {one.process})"
        if one.thread is not None and one.thread >= BUSY:
            yield f"{name}: a thread took {format_share(one.thread)} of a core"
        elif one.thread is None and one.busy >= BUSY:
            yield f"{name} took {format_share(one.busy)} of a core"
        elif share.host != "dut" and one.thread is None and _waits(one) and one.needed >= BUSY:
            waited = format_share(one.waiting or 0.0)
            yield f"{name} took {format_share(one.busy)} of a core, and waited for one for {waited} of the time"


def _waits(process: ProcessShare) -> bool:
    return (process.waiting or 0.0) > RUN_DELAY


def _over_the_ceiling(evidence: TcpEvidence) -> Iterator[str]:
    ceiling_bps, link_bps = evidence.ceiling_bps, evidence.link_bps
    if not ceiling_bps or evidence.rate_bps <= OF_CEILING * ceiling_bps:
        return
    if link_bps is not None and ceiling_bps >= OF_LINE * link_bps:
        return  # the line's ceiling, not theirs
    yield f"the endpoints carry no more than {format_bits(ceiling_bps)} without the router"


def _endpoints_own_the_work(evidence: TcpEvidence) -> bool:
    """On shared cores: whether at least half of the work is that of the endpoints, as their ceiling tells."""
    return evidence.ceiling_bps is not None and evidence.rate_bps >= TWICE * evidence.ceiling_bps


def _slept(share: HostShare) -> bool:
    """Test whether its busiest thread slept, neither working nor waiting for a CPU, for at least ASLEEP of the time."""
    return max(one.busy + (one.waiting or 0.0) for one in share.threads) <= 1 - ASLEEP


def _link(evidence: TcpEvidence, link_bps: float | None) -> Iterator[str]:
    setup, rate_bps = evidence.setup, evidence.rate_bps
    if setup.wan is not None:  # over a long line the windows of a short test open slowly
        rate_bps = max(rate_bps, median([one.received_bps for one in evidence.flow.regular] or [0.0]))
    if link_bps and rate_bps >= OF_LINE * link_bps:
        share = format_share(rate_bps / link_bps)
        wan_bps = setup.wan.rate_bps if setup.wan is not None else None
        is_wan = wan_bps is not None and wan_bps <= (setup.line_bps or wan_bps)
        line = f"the WAN ({setup.wan})" if is_wan else f"a line of {format_bits(setup.line_bps or 0.0)}"
        where = f"{line} carries at MTU {setup.mtu}{_inside(evidence)}"
        yield f"{share} of the {format_bits(link_bps)} of payload that {where}"


def _inside(evidence: TcpEvidence) -> str:
    setup = evidence.setup
    return " in PPPoE" if setup.pppoe else f" in {setup.tunnel}" if setup.header_bytes(evidence.leg.version) else ""


def _dut_cpu(evidence: TcpEvidence) -> Iterator[str]:
    if evidence.cores_apart:
        yield from _tunnels(evidence.shares.get("dut", HostShare("dut")))
        for cpu, busy in evidence.dut_busy:
            queue = "" if busy >= BUSY or not evidence.queued else ", with packets in a queue for it: round trips of "
            times = " instead of ".join(map(format_time, evidence.queued or ())) if queue else ""
            yield f"the DUT's CPU {cpu} was {format_share(busy)} busy{queue}{times}"
    elif evidence.ceiling_bps and not _endpoints_own_the_work(evidence):
        for cpu, busy in evidence.dut_busy:
            alone = f"the endpoints alone carry {format_bits(evidence.ceiling_bps)} on the same cores"
            yield f"CPU {cpu} was {format_share(busy)} busy, and {alone}"


def _full_cores(evidence: TcpEvidence) -> Iterator[str]:
    """Shared cores without time left, of which nothing says whose work fills them."""
    if not evidence.cores_apart:
        full = dict(one for host in evidence.shares for one in evidence.busy_cores(host))
        for cpu, busy in sorted(full.items()):
            whose = "whether with the router's work or the endpoints' is not known"
            yield f"CPU {cpu} was {format_share(busy)} busy; {whose}"


def _drops(evidence: TcpEvidence) -> Iterator[str]:
    again, drops = evidence.flow.retransmits, _drop_count(evidence.dut, evidence.setup.wan is not None)
    if again is not None and again >= FEWEST_RETRANSMITS and drops >= OWNED * again:
        yield f"the DUT dropped {drops} frames, and {again} segments were sent again"


def _drop_count(readings: Sequence[DutReading], before_wan: bool) -> int:
    """By how much the DUT's drop counters rose; those that went back are left out.

    before_wan: so are those of its queueing disciplines, which are the WAN, or wait for it.
    """
    if len(readings) < 2:
        return 0
    first = {(d.name, d.port, d.queue): d.count for d in readings[0].observation.drops}
    last = {(d.name, d.port, d.queue): d.count for d in readings[-1].observation.drops}
    own = {key: count for key, count in last.items() if not (before_wan and key[0] == QDISC_DROPS)}
    return sum(max(0, count - first[key]) for key, count in own.items() if key in first)


def _roles(flow: Flow) -> tuple[tuple[str, str], tuple[str, str]]:
    return (flow.sender, "sends"), (flow.receiver, "receives")


def _warnings(evidence: TcpEvidence, limit: TcpLimit) -> Iterator[RunWarning]:
    for host, _ in _roles(evidence.flow):
        waiting = evidence.shares.get(host, HostShare(host)).waiting
        if waiting is not None and waiting > RUN_DELAY:
            beside = evidence.beside(host)
            code = "cores-shared" if beside else "foreign-load"
            why = f"{' and '.join(beside)} may run on the same core" if beside else "other work ran there"
            text = f"the {host}'s program waited for a CPU for {format_share(waiting)} of the time: {why}"
            yield RunWarning(code, f"{evidence.leg}: {text}")
        if foreign := {*evidence.busy_cores(host)} - {*evidence.filled_cores(host)}:
            text = f"the {host}'s CPU {min(foreign)[0]} had no time left, most of it for other work than this test's"
            yield RunWarning("foreign-load", f"{evidence.leg}: {text}")
    for one in evidence.shares.get("dut", HostShare("dut")).tunnels:
        if one.thread is None and _waits(one):
            waited = format_share(one.waiting or 0.0)
            text = f"the DUT's tunnel ({one.name}) waited for a CPU for {waited} of the time: other work ran there"
            yield RunWarning("foreign-load", f"{evidence.leg}: {text}")
    if not evidence.cores_apart:
        text = "the router works on the endpoints' cores: the CPU time of a program includes the router's"
        yield RunWarning("cores-shared", text)
    if evidence.ceiling_bps is None and limit in (TcpLimit.DUT, TcpLimit.UNKNOWN):
        yield RunWarning("no-ceiling", "what the endpoints carry without the router was not measured")
    if limit is TcpLimit.DUT and (cpu := evidence.dut_other_work) is not None:
        text = f"the DUT's CPU {cpu} spent most of its time on programs or threads, which need not be forwarding"
        yield RunWarning("other-work", f"{evidence.leg}: {text}")
    if evidence.dut_polls:
        yield RunWarning("dut-polls", "the DUT's workers poll and are always busy: its CPU is no evidence")
    elif not evidence.dut_busy and (full := evidence.busy_cores("dut")):
        text = f"the DUT's CPU {full[0][0]} had no time left, most of it for other work than packets"
        yield RunWarning("foreign-load", text)
    elif limit is TcpLimit.UNKNOWN and not evidence.shares.get("dut", HostShare("dut")).cpus:
        yield RunWarning("dut-unread", "the DUT's CPUs were not read: whether it was the limit is not known")
