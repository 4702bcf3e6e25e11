"""Signs that an endpoint, a window, the line or the DUT limited one direction of a leg, as sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from ..dut.telemetry import QDISC_DROPS, DutReading
from ..units import format_bits, format_share, format_time, tcp_payload_bps
from .cpu import CoreShare, HostShare
from .intervals import HOSTS, Flow
from .plan import Leg, TcpEnvironment
from .window import TcpWindow, find_window

BUSY = 0.95
"""Share of its time at which a thread or core has no time left."""
NEARLY, QUEUED = 0.85, 3.0
"""A router's core this busy is the limit as well if round trips are this many times those without a queue: TCP, which
paces and starts from nothing, leaves it a little time."""
RUN_DELAY = 0.05
"""A thread that waits for a CPU for more than this share is kept from sending or receiving."""
OF_CEILING = 0.9
"""Share of the endpoints' rate without the DUT above which they are the limit."""
OF_LINE, BEYOND_LINE = 0.98, 1.25
"""Shares of a line's payload rate above which it is full, and above which its speed is another than was given: a
shaper lets bursts pass, and the next speed of a line is twice as high or more."""
HALF = 0.5
"""The share of a core's busy time, of the work on shared cores or of the drops that decides whose they are. A thread
that sleeps this much keeps up in spite of its run delay, if something else explains the rate."""
FEWEST_RETRANSMITS = 10
"""Fewer retransmitted segments do not show whose drops they are."""
TIMESTAMPS = 1
"""Bit of TCP_INFO's ``options``."""


@dataclass(frozen=True)
class TcpEvidence:
    """Known facts about one direction."""

    leg: Leg
    flow: Flow
    setup: TcpEnvironment
    shares: Mapping[str, HostShare]
    """By host, ``dut`` included."""
    ceiling_bps: float | None = None
    """Rate of the endpoints alone, for the same way and version."""
    ping_s: float | None = None
    """The idle path's shortest round trip."""
    dut: Sequence[DutReading] = ()
    idle: Sequence[DutReading] = ()
    """The DUT's counters while only echo requests passed."""

    def share(self, host: str) -> HostShare:
        return self.shares.get(host, HostShare(host))

    @property
    def rate_bps(self) -> float:
        return self.flow.received_bps or 0.0

    @property
    def lines(self) -> list[tuple[float, str]]:
        """Payload rates and names of the lines whose speed is known, a WAN included, the slowest first."""
        return [line for line in self.given_lines if self.rate_bps <= BEYOND_LINE * line[0]]

    @cached_property
    def given_lines(self) -> list[tuple[float, str]]:
        """The lines as given, also those that cannot have carried what was received."""
        options = [s.info["options"] for r in self.flow.sending for s in r.streams if "options" in s.info]
        stamped = bool(options[-1] & TIMESTAMPS) if options else True
        setup, version = self.setup, self.leg.version
        inside = setup.mtu, version, stamped, setup.tags, setup.header_bytes(version)
        lines = []
        if setup.line_bps:
            lines.append((tcp_payload_bps(setup.line_bps, *inside), f"a line of {format_bits(setup.line_bps)}"))
        if setup.wan is not None and setup.wan.rate_bps is not None:
            lines.append((tcp_payload_bps(setup.wan.rate_bps, *inside, framing=0), f"the WAN ({setup.wan})"))
        return sorted(lines)

    @property
    def link_bps(self) -> float | None:
        """Payload rate of the slowest line; None if no line's speed is known."""
        return self.lines[0][0] if self.lines else None

    @cached_property
    def window(self) -> TcpWindow | None:
        """The full window, unless it follows from a path that the DUT slows down, or is wider than the line."""
        window = find_window(self.flow, self.ping_s)
        if window is None or (window.kind == "congestion window" and any(of_dut(self))):
            return None
        return None if self.link_bps is not None and window.most_bps >= self.link_bps else window

    @property
    def cores_apart(self) -> bool:
        """True if other cores do the DUT's work than the endpoints'."""
        if not self.setup.one_kernel:
            return True
        cpus = self.setup.cpus
        theirs = {*cpus.get("client", ()), *cpus.get("server", ())}
        return bool(cpus.get("client") and cpus.get("server") and cpus.get("dut")) and not theirs & {*cpus["dut"]}

    @property
    def refutes_ceiling(self) -> bool:
        """True if through the DUT far more was carried than without it: the endpoints were disturbed then."""
        return self.ceiling_bps is not None and OF_CEILING * self.rate_bps > self.ceiling_bps

    @property
    def endpoints_own_the_work(self) -> bool:
        """True if, by their ceiling, at least half of the work on shared cores is the endpoints'."""
        return self.ceiling_bps is not None and self.rate_bps >= HALF * self.ceiling_bps

    def beside(self, host: str) -> list[str]:
        """Name the other hosts of the test that may work on this one's cores."""
        if not self.setup.one_kernel:
            return []
        cpus = self.setup.cpus
        mine, others = cpus.get(host), [name for name in (*HOSTS, "dut") if name != host]
        return [f"the {name}" for name in others if not mine or not cpus.get(name) or {*mine} & {*cpus[name]}]

    @property
    def dut_polls(self) -> bool:
        """True of VPP, whose workers are always busy."""
        return any(reading.observation.threads for reading in self.dut)

    def busy_cores(self, host: str, enough: float = BUSY) -> list[CoreShare]:
        """List the host's cores that are at least ``enough`` busy; by default those with no time left."""
        return [core for core in self.share(host).cpus if core.busy >= enough]

    @cached_property
    def queued(self) -> tuple[float, float] | None:
        """Round trips in s, of the flow and without a queue, if packets queue for the DUT; None: not that is known.

        Only if there is no line that they could queue for, or it carries much more than this.
        """
        line_bps = self.link_bps
        if self.rate_bps >= OF_CEILING * line_bps if line_bps else not self.setup.one_kernel:
            return None
        seen = [interval.rtt_s for interval in self.flow.regular if interval.rtt_s is not None]
        infos = [stream.info.get("min_rtt", 0) / 1e6 for reading in self.flow.sending for stream in reading.streams]
        least = min([value for value in (*infos, self.ping_s) if value], default=None)
        return (median(seen), least) if seen and least and median(seen) >= QUEUED * least else None

    def filled_cores(self, host: str) -> list[CoreShare]:
        """List the cores that an endpoint's own work fills: packets and programs that may run there, not other work."""
        share = self.share(host)
        there = [self.share(name) for name in (host, *(name for name in self.beside(host) if name in HOSTS))]
        programs = sum(thread.busy for own in there for thread in own.threads)
        programs += sum(tunnel.busy for own in there for tunnel in own.tunnels)
        return [
            core
            for core in self.busy_cores(host)
            if not share.threads or core.packet_busy is None or core.packet_busy + programs >= HALF * core.busy
        ]

    @property
    def dut_busy(self) -> list[CoreShare]:
        """The DUT's busy cores; of a shared kernel only those that its own work keeps busy."""
        cores = [] if self.dut_polls else self.busy_cores("dut", NEARLY if self.queued else BUSY)
        return [core for core in cores if (own := self._own_work(core)) is None or own >= HALF * core.busy]

    @property
    def dut_other_work(self) -> int | None:
        """A core that counts as the DUT's although soft interrupts took less than half of its time, and nothing else
        shows whose work the rest was; None: there is none."""
        processes = self.share("dut").processes
        programs = sum(process.busy for process in processes if process.role in ("tunnel", "pppoe"))
        unsure = [core for core in self.dut_busy if self._own_work(core) is None and core.packet_busy is not None]
        return next((core.cpu for core in unsure if (core.packet_busy or 0.0) + programs < HALF * core.busy), None)

    def _own_work(self, core: CoreShare) -> float | None:
        """Return the share of the core that the DUT's work took: soft interrupts, or the kernel with NAPI threads, and
        the programs of a tunnel that it ends.

        None: unknown. PPPoE's frames are the kernel's work.
        """
        own = self.share("dut")
        if not self.setup.one_kernel or not self.cores_apart or (self.setup.dut_programs and not own.processes):
            return None
        if self.setup.napi_threads:
            return None if core.user is None else core.busy - core.user + sum(tunnel.user for tunnel in own.tunnels)
        return None if core.packet_busy is None else core.packet_busy + sum(tunnel.busy for tunnel in own.tunnels)


def of_endpoints(evidence: TcpEvidence) -> Iterator[str]:
    """Yield the rate that they have without the DUT, or what kept their programs, tunnels and cores busy."""
    ceiling_bps, link_bps, apart = evidence.ceiling_bps, evidence.link_bps, evidence.cores_apart
    lines = link_bps is not None and ceiling_bps is not None and ceiling_bps >= OF_LINE * link_bps
    if ceiling_bps and evidence.rate_bps > OF_CEILING * ceiling_bps and not lines and not evidence.refutes_ceiling:
        yield f"the endpoints carried no more than {format_bits(ceiling_bps)} without the router"
    if not apart and not evidence.endpoints_own_the_work:
        return
    for host, role in _roles(evidence.flow):
        share = evidence.share(host)
        yield from _busy_tunnels(share) if apart else ()
        for thread in share.threads if apart else ():
            if thread.busy >= BUSY:
                parts = f"usr {format_share(thread.user)}, sys {format_share(thread.system)}"
                yield f"the {host}, which {role}: a thread took {format_share(thread.busy)} of a core ({parts})"
        shared = ", which it may share with the router," if "the dut" in evidence.beside(host) else ""
        for core in evidence.filled_cores(host):
            yield f"the {host}, which {role}: its CPU {core.cpu}{shared} was {format_share(core.busy)} busy"
    yield from _run_delays(evidence, asleep=False)


def of_sleepers(evidence: TcpEvidence) -> Iterator[str]:
    """Yield the run delay of programs that sleep, which keep up if something else holds the flow back."""
    if (evidence.cores_apart or evidence.endpoints_own_the_work) and not evidence.queued:
        yield from _run_delays(evidence, asleep=True)


def _run_delays(evidence: TcpEvidence, asleep: bool) -> Iterator[str]:
    """Yield programs kept from sending or receiving: busy or waiting for more than half of the time, or asleep."""
    for host, role in _roles(evidence.flow):
        share = evidence.share(host)
        sleeps = all(thread.busy + (thread.waiting or 0.0) <= HALF for thread in share.threads)
        if waits(share.waiting) and asleep == sleeps:
            yield f"the {host}, which {role}: it waited for a CPU for {format_share(share.waiting or 0.0)} of the time"


def waits(run_delay: float | None) -> bool:
    return (run_delay or 0.0) > RUN_DELAY


def _busy_tunnels(share: HostShare) -> Iterator[str]:
    """Yield a tunnel's processes that have no time left, as far as one core goes, or of which one thread has none."""
    whose = "DUT" if share.host == "dut" else share.host
    for tunnel in share.tunnels:
        name, waiting = f"the {whose}'s tunnel ({tunnel.name}, process {tunnel.process})", tunnel.waiting or 0.0
        took = format_share(tunnel.busy)
        if tunnel.thread is not None:
            if tunnel.thread >= BUSY:
                yield f"{name}: a thread took {format_share(tunnel.thread)} of a core"
        elif tunnel.busy >= BUSY:
            yield f"{name} took {took} of a core"
        elif share.host != "dut" and waits(waiting) and tunnel.busy + waiting >= BUSY:
            yield f"{name} took {took} of a core, and waited for one for {format_share(waiting)} of the time"


def of_line(evidence: TcpEvidence) -> Iterator[str]:
    setup, rate_bps, link_bps = evidence.setup, evidence.rate_bps, evidence.link_bps
    middle_bps = median([interval.received_bps for interval in evidence.flow.regular] or [0.0])
    slow_start = setup.wan is not None and middle_bps > rate_bps  # over a long line the windows open slowly
    rate_bps = middle_bps if slow_start else rate_bps
    if link_bps and rate_bps >= OF_LINE * link_bps:
        tunnel = setup.tunnel if setup.header_bytes(evidence.leg.version) else ""
        inside = " in PPPoE" if setup.pppoe else f" in {tunnel}" if tunnel else ""
        share = f"{format_share(rate_bps / link_bps)} of the {format_bits(link_bps)} of payload"
        when = ", in the median interval" if slow_start else ""
        yield f"{share} that {evidence.lines[0][1]} carries at MTU {setup.mtu}{inside}{when}"


def of_dut(evidence: TcpEvidence) -> Iterator[str]:
    """Yield its busy cores and tunnels, and the frames that it dropped."""
    if evidence.cores_apart:
        yield from _busy_tunnels(evidence.share("dut"))
        for core in evidence.dut_busy:
            queue = (
                "" if core.busy >= BUSY or not evidence.queued else ", with packets in a queue for it: round trips of "
            )
            times = " instead of ".join(map(format_time, evidence.queued or ())) if queue else ""
            yield f"the DUT's CPU {core.cpu} was {format_share(core.busy)} busy{queue}{times}"
    elif evidence.ceiling_bps and not evidence.endpoints_own_the_work:
        for core in evidence.dut_busy:
            alone = f"the endpoints alone carry {format_bits(evidence.ceiling_bps)} on the same cores"
            yield f"CPU {core.cpu} was {format_share(core.busy)} busy, and {alone}"
    again, (drops, span_s) = evidence.flow.retransmits or 0, _drops(evidence.dut, evidence.setup)
    idle, idle_s = _drops(evidence.idle, evidence.setup)
    usual = round(idle * span_s / idle_s) if idle_s > 0 else 0  # of link-layer protocols, and frames for other hosts
    if again >= FEWEST_RETRANSMITS and drops - usual >= HALF * again:
        more = f", {usual} of them as an idle one does" if usual else ""
        yield f"the DUT dropped {drops} frames{more}, and {again} segments were retransmitted"


def _drops(readings: Sequence[DutReading], setup: TcpEnvironment) -> tuple[int, float]:
    """Return the frames dropped between the first and the last reading, and the time between."""
    if len(readings) < 2:
        return 0, 0.0
    ends = (readings[at].observation.drops for at in (0, -1))
    first, last = ({(drop.name, drop.port, drop.queue): drop.count for drop in counters} for counters in ends)
    # without a WAN's queueing disciplines, which are the WAN, or wait for it
    own = (key for key in first.keys() & last.keys() if setup.wan is None or key[0] != QDISC_DROPS)
    return sum(max(0, last[key] - first[key]) for key in own), readings[-1].t_s - readings[0].t_s


def of_shared_cores(evidence: TcpEvidence) -> Iterator[str]:
    """Yield shared cores without time left, if nothing shows whose work fills them."""
    hosts = () if evidence.cores_apart else evidence.shares
    for cpu, busy in sorted({core.cpu: core.busy for host in hosts for core in evidence.busy_cores(host)}.items()):
        whose = "whether with the router's work or the endpoints' is not known"
        yield f"CPU {cpu} was {format_share(busy)} busy; {whose}"


def _roles(flow: Flow) -> tuple[tuple[str, str], tuple[str, str]]:
    return (flow.sender, "sends"), (flow.receiver, "receives")
