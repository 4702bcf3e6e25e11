"""A TCP test through the router: what is asked of the two hosts, and what each of them reads of itself. Raw totals.

The client is the host that opens the connections, as in iperf3. Forward: the client sends; reverse: the server sends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from ..dut.telemetry import CpuTime, DutReading, Missing
from ..typed import Amount, Count
from .path import TrafficPath
from .tunnel import CLIENT_DUT, KINDS
from .wan import Wan, format_size

ENGINES = ("embedded", "iperf3")
"""Programs that send and receive: trexbench itself, or the genuine iperf3."""
TUNNELS = tuple(KINDS)
"""Tunnels that a TCP test can go through."""
HEADER_BYTES: Mapping[str, Mapping[int, int]] = {
    "pppoe": {4: 8, 6: 8},
    **{name: kind.header_bytes for name, kind in KINDS.items()},
}
"""Bytes that each encapsulation adds to a packet, by the packet's IP version."""
NOT_COUNTED = 1 << 63
"""Counters from here on are none: iperf3 3.12 sends "not known" as 2**64 - 1."""


class Way(str, Enum):
    """Who sends: the client, the server, or both at the same time."""

    FORWARD = "forward"
    REVERSE = "reverse"
    BIDIR = "bidir"


@dataclass(frozen=True)
class Leg:
    """One test of a run. version: of IP, 4 or 6. repetition: from 1.

    buffer_bytes: the largest that both hosts let a socket's buffers grow to (the last number of tcp_rmem and tcp_wmem),
    set for this leg; None: as the hosts have it. congestion: the congestion control asked for; None: the plan's.
    """

    way: Way
    version: int = 4
    repetition: int = 1
    buffer_bytes: Count | None = None
    congestion: str | None = None

    @property
    def kind(self) -> Leg:
        """Leg common to all of its repetitions."""
        return replace(self, repetition=1)

    def __str__(self) -> str:
        again = f" #{self.repetition}" if self.repetition > 1 else ""
        buffers = f", buffers of {format_size(self.buffer_bytes)}" if self.buffer_bytes is not None else ""
        return f"{self.way.value} IPv{self.version}{again}{buffers}{f', {self.congestion}' if self.congestion else ''}"


_MODE = re.compile(
    r"(forward|reverse|bidir)-ipv([46])(?:-([1-9][0-9]{0,2})-streams)?(?:-buffers-([1-9][0-9]{3,9}))?"
    r"(?:-cc-([a-z0-9_]{1,15}))?(-pinned)?(-unmonitored)?"
)


@dataclass(frozen=True)
class TcpMode:
    """Key that distinguishes the runs of one DUT, as suites and histories name it: ``reverse-ipv6-4-streams``.

    monitored: the DUT's counters are read meanwhile, which may cost it some of its time. buffer_bytes, congestion: as
    in Leg. pinned: as in TcpPlan.
    """

    way: Way
    version: int
    streams: int = 1
    monitored: bool = True
    buffer_bytes: int | None = None
    congestion: str | None = None
    pinned: bool = False

    @property
    def leg(self) -> Leg:
        """The kind of leg that it consists of."""
        return Leg(self.way, self.version, buffer_bytes=self.buffer_bytes, congestion=self.congestion)

    def __str__(self) -> str:
        marks = [f"{self.streams}-streams"] if self.streams > 1 else []
        marks += [f"buffers-{self.buffer_bytes}"] if self.buffer_bytes is not None else []
        marks += [f"cc-{self.congestion}"] if self.congestion else []
        marks += ["pinned"] if self.pinned else []
        marks += [] if self.monitored else ["unmonitored"]
        return "-".join([self.way.value, f"ipv{self.version}", *marks])

    @classmethod
    def parse(cls, text: str) -> TcpMode | None:
        """None for what is no such name."""
        found = _MODE.fullmatch(text)
        if found is None:
            return None
        buffer_bytes = int(found[4]) if found[4] is not None else None
        version, streams, monitored = int(found[2]), int(found[3] or 1), found[7] is None
        return cls(Way(found[1]), version, streams, monitored, buffer_bytes, found[5], found[6] is not None)


@dataclass(frozen=True)
class TcpPlan:
    """Plan of a TCP run: each leg in turn, all with the same parameters. Times in seconds.

    omit_s: at the start of each leg, sent but not counted. pings: sent idle before the legs, and again while the first
    leg of each way runs; 0: none. congestion: the congestion control that is asked for, None: the host's own.
    pinned: each host's program stays on one CPU of its config. engine: ``embedded`` or ``iperf3``.
    """

    legs: tuple[Leg, ...]
    streams: int = 1
    time_s: float = 60.0
    interval_s: float = 1.0
    omit_s: float = 0.0
    pings: int = 60
    congestion: str | None = None
    zerocopy: bool = False
    pinned: bool = False
    engine: str = "embedded"

    def of(self, leg: Leg) -> TcpPlan:
        """Return the plan with the leg's congestion control, where it asks for one, in place of its own."""
        return replace(self, congestion=leg.congestion or self.congestion)


CEILING_S, CEILING_OMIT_S = 3.0, 0.5
"""Time for each way around the DUT, and the part omitted: the largest windows can open in a network at hand."""


def around_plan(plan: TcpPlan) -> TcpPlan:
    """Return the plan of the runs without the DUT between the endpoints, before the legs of this plan."""
    return replace(plan, time_s=CEILING_S, interval_s=min(1.0, plan.interval_s), omit_s=CEILING_OMIT_S)


@dataclass(frozen=True)
class TcpEnvironment:
    """Environment between and around the hosts, as far as it is known; the verdict needs it.

    line_bps: L1 speed of the slowest line on the way, None: there is none (veth), or it is not known. vlans: tags on
    it. one_kernel: client, server and DUT are namespaces of one kernel. dut_is_guest: the DUT is a virtual machine
    there instead, which numbers its cores by itself; cpus names those that it runs on. napi_threads: the DUT forwards
    in threads, and so not in soft interrupts. cpus: those that ``client``, ``server`` and ``dut`` work on; a host that
    is missing may use every CPU that it reports. tunnel: one of TUNNELS; tunnel_by: what makes it (``sit``,
    ``OpenVPN 2.6.14, AES-256-GCM``; ``not read``: it was taken as it is); tunnel_between: whom, as in core.tcp.tunnel,
    empty: DUT and server; tunnel_mtu: of its inside, None: it was not set; without_tunnel: why there is none although
    one was asked for, in documents of former releases, as wan_asked.
    pppoe: between DUT and server, whose MTU is then that of the session. wan: the line between them; wan_by: what makes
    it. wan_asked: what was asked for, where the line was scaled down to what could be carried.
    """

    line_bps: Amount | None = None
    mtu: Count = 1500
    vlans: Count = 0
    one_kernel: bool = False
    dut_is_guest: bool = False
    napi_threads: bool = False
    cpus: Mapping[str, tuple[Count, ...]] = field(default_factory=dict)
    tunnel: str = TUNNELS[0]
    tunnel_by: str = ""
    without_tunnel: str = ""
    tunnel_between: str = ""
    tunnel_mtu: Count | None = None
    pppoe: bool = False
    wan: Wan | None = None
    wan_by: str = ""
    wan_asked: Wan | None = None

    @property
    def scale(self) -> float:
        """By how much the line, and with it the hosts' buffers, are smaller than asked for; 1: not at all."""
        if self.wan is None or self.wan_asked is None or not self.wan.rate_bps or not self.wan_asked.rate_bps:
            return 1.0
        return self.wan.rate_bps / self.wan_asked.rate_bps

    def buffer_bytes(self, leg: Leg) -> int | None:
        """Size that the hosts' buffers may grow to in this leg; None: as the hosts have it."""
        return None if leg.buffer_bytes is None else round(self.scale * leg.buffer_bytes)

    @property
    def dut_programs(self) -> bool:
        """True if a tunnel's program moves packets on the DUT, in user space or in threads of its own."""
        return self.tunnel_between == CLIENT_DUT

    @property
    def tags(self) -> int:
        """Number of 4-byte tags in a frame besides Ethernet's header: VLANs, and PPPoE, which is as long as two."""
        return self.vlans + 2 * self.pppoe

    def path(self, version: int) -> TrafficPath | None:
        """The path of packets of this IP version besides the DUT; None: nothing."""
        inside = (self.tunnel, self.tunnel_between, self.tunnel_by, self.tunnel_mtu)
        tunnel = inside if self.header_bytes(version) else ("", "", "", None)
        path = TrafficPath(self.wan, self.wan_by if self.wan is not None else "", *tunnel, self.pppoe)
        return None if path == TrafficPath() else path

    def header_bytes(self, version: int) -> int:
        """Bytes that the tunnel adds to each packet of this IP version."""
        return HEADER_BYTES.get(self.tunnel, {}).get(version, 0)


@dataclass(frozen=True)
class StreamCount:
    """One TCP connection as one end of it saw it. sends: this end sends its payload.

    payload_bytes: what the program has sent or received so far. info: the kernel's TCP_INFO by its own names without
    ``tcpi_`` (rtt in us, snd_cwnd in segments); empty where it was not read. send_buffer_bytes, receive_buffer_bytes:
    SO_SNDBUF and SO_RCVBUF, which include the kernel's overhead.
    """

    stream: Count
    sends: bool
    payload_bytes: Count
    info: Mapping[str, int] = field(default_factory=dict)
    send_buffer_bytes: Count | None = None
    receive_buffer_bytes: Count | None = None

    def value(self, name: str) -> float | None:
        """Value of TCP_INFO by its name; None where it was not read, or is none."""
        value = self.info.get(name)
        return float(value) if value is not None and 0 <= value < NOT_COUNTED else None

    def in_bytes(self, name: str) -> float | None:
        """A count of segments in TCP_INFO, in bytes."""
        segments, mss = self.value(name), self.value("snd_mss")
        return None if segments is None or mss is None else segments * mss


@dataclass(frozen=True)
class ThreadTime:
    """CPU time of one thread of the program that sends or receives, in seconds since it began.

    waiting_s: it could have run but another had the CPU (run delay, /proc/PID/task/TID/schedstat); None: not known.
    """

    thread: Count
    user_s: Amount
    system_s: Amount
    waiting_s: Amount | None = None


@dataclass(frozen=True)
class ProcessTime:
    """CPU time of one process of a host, in seconds. process: its number.

    waiting_s: run delay, of all of its threads. cpus: on which its threads ran last, that which took most first.
    busiest_thread_s: of a process with several. role: its part in the test, one of ROLES; empty: none. whose: empty:
    the host's own; ``kernel``: a thread of the kernel, which all hosts of one kernel share; ``elsewhere``: it is in
    another network namespace than this host.
    """

    process: Count
    name: str
    user_s: Amount
    system_s: Amount
    waiting_s: Amount | None = None
    cpus: tuple[Count, ...] = ()
    busiest_thread_s: Amount | None = None
    role: str = ""
    whose: str = ""


ROLES = ("tunnel", "endpoint", "pppoe", "napi", "ksoftirqd")
"""Parts of a process in the test: it carries the payload in a tunnel, sends or receives it, and so on."""


@dataclass(frozen=True)
class Processes:
    """Processes that took most CPU time over this time, which is the leg's. One that ended meanwhile is missing."""

    over_s: Amount
    took: tuple[ProcessTime, ...] = ()


@dataclass(frozen=True)
class HostReading:
    """One host at one instant. at_s: its own monotonic clock, since payload could flow."""

    at_s: Amount
    streams: tuple[StreamCount, ...] = ()
    cpus: tuple[CpuTime, ...] = ()
    threads: tuple[ThreadTime, ...] = ()


Seen = Callable[[str, HostReading], None]
"""Gets each reading as it is made, with the name of its host: ``client`` or ``server``. Called from other threads."""


@dataclass(frozen=True)
class Ping:
    """One series of echo requests from client to server. times_s: of the answers, in their order.

    loaded: while the leg ran.
    """

    leg: Leg
    loaded: bool
    sent: Count
    times_s: tuple[Amount, ...]


SLACK_S = 0.001
"""Between clocks that are the same: a reading at an end of the leg belongs to it."""


@dataclass(frozen=True)
class LegReadings:
    """Readings taken while one leg ran. began_s: on the run's clock. error: why it ended early, in one line.

    program: the one that sent and received (name, version, congestion control of each host), as it reported itself.
    dut: the router's counters, of the same run's clock. processes: by host, ``dut`` included where they were read.
    """

    leg: Leg
    began_s: Amount
    client: tuple[HostReading, ...] = ()
    server: tuple[HostReading, ...] = ()
    dut: tuple[DutReading, ...] = ()
    program: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    error: str | None = None
    processes: Mapping[str, Processes] = field(default_factory=dict)

    @property
    def length_s(self) -> float:
        """For which payload flowed."""
        return max((ones[-1].at_s - ones[0].at_s for ones in (self.client, self.server) if ones), default=0.0)

    def dut_while_counted(self, omit_s: float) -> tuple[DutReading, ...]:
        """The DUT's, made while payload flowed and counted; all of the leg, where those are fewer than two.

        What comes before and after a leg is idle time, which would make a full core of a short leg look half busy.
        """
        first_s, last_s = self.began_s + omit_s - SLACK_S, self.began_s + self.length_s + SLACK_S
        within = tuple(one for one in self.dut if first_s <= one.t_s and one.t_s + one.took_s <= last_s)
        return within if len(within) > 1 else self.dut
