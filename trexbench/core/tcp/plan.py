"""A TCP test through the router: what the two hosts are asked for, and the raw totals that each reads of itself. Pure.

The client is the host that opens the connections, as in iperf3. Forward: the client sends; reverse: the server sends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from math import ceil

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
"""Counters from here on are unknown: iperf3 3.12 sends 2**64 - 1 for that."""


class Way(str, Enum):
    """Sender of the payload: the client, the server, or both at once."""

    FORWARD = "forward"
    REVERSE = "reverse"
    BIDIR = "bidir"


@dataclass(frozen=True)
class Leg:
    """One test of a run."""

    way: Way  # ``forward``: the client sends; ``reverse``: the server; ``bidir``: both at once
    version: int = 4  # of IP: 4 or 6
    repetition: int = 1  # from 1
    buffer_bytes: Count | None = None
    """Size that both hosts let a socket's buffers grow to (the last number of tcp_rmem, tcp_wmem); None: as found."""
    congestion: str | None = None  # congestion control asked for; None: the plan's

    @property
    def kind(self) -> Leg:
        """The leg as its first repetition, which stands for all."""
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
    """The identity of a leg in suites and histories: ``reverse-ipv6-4-streams``."""

    way: Way
    version: int
    streams: int = 1
    monitored: bool = True
    """The DUT's counters are read meanwhile, which may cost it some time."""
    buffer_bytes: int | None = None
    congestion: str | None = None
    pinned: bool = False

    @property
    def leg(self) -> Leg:
        """The kind of its legs."""
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
        """Parse such a name; None for any other text."""
        match = _MODE.fullmatch(text)
        if match is None:
            return None
        buffer_bytes = int(match[4]) if match[4] is not None else None
        version, streams, monitored = int(match[2]), int(match[3] or 1), match[7] is None
        return cls(Way(match[1]), version, streams, monitored, buffer_bytes, match[5], match[6] is not None)


@dataclass(frozen=True)
class TcpPlan:
    """Plan of a TCP run: each leg in turn, all with the same parameters."""

    legs: tuple[Leg, ...]  # in order
    streams: int = 1  # connections in parallel, each way
    time_s: float = 60.0  # counted length of a leg
    interval_s: float = 1.0  # between readings of the hosts
    omit_s: float = 0.0  # time at the start of each leg, before time_s, that is not counted
    pings: int = 60
    """Echo requests, one a second, before the legs for each IP version, and beside each leg's first repetition, as far
    as they fit; 0: none."""
    congestion: str | None = None  # congestion control asked for; None: the hosts' own
    zerocopy: bool = False  # the sender uses sendfile
    pinned: bool = False  # each host's program stays on one CPU of its config
    engine: str = "embedded"  # program that sends and receives: ``embedded`` or ``iperf3``

    def of(self, leg: Leg) -> TcpPlan:
        """Return the plan with the leg's congestion control, if it asks for one."""
        return replace(self, congestion=leg.congestion or self.congestion)

    @property
    def as_sent(self) -> TcpPlan:
        """The plan as its engine carries it out: iperf3 omits whole seconds, and has no figure for a part of one."""
        return replace(self, omit_s=float(ceil(self.omit_s))) if self.engine == "iperf3" else self


CEILING_S, CEILING_OMIT_S = 3.0, 0.5
"""Time for each way around the DUT, and the omitted part of it: in a network at hand even the largest windows open."""


def around_plan(plan: TcpPlan) -> TcpPlan:
    """Return the plan of the runs that precede the legs, without the DUT between the endpoints."""
    return replace(plan, time_s=CEILING_S, interval_s=min(1.0, plan.interval_s), omit_s=CEILING_OMIT_S).as_sent


@dataclass(frozen=True)
class TcpEnvironment:
    """Environment between and around the hosts, as far as it is known; the verdict needs it."""

    line_bps: Amount | None = None  # L1 speed of the slowest line on the path; None: no line (veth), or unknown
    mtu: Count = 1500  # lowest of the hosts' interfaces; of a PPPoE session; of a tunnel's outer packets
    vlans: Count = 0  # tags of each frame
    one_kernel: bool = False  # client, server and DUT are namespaces of one kernel
    dut_is_guest: bool = False
    """The DUT is a virtual machine there, which numbers its cores itself; cpus has those that it runs on."""
    napi_threads: bool = False  # the DUT forwards in threads, not in soft interrupts
    cpus: Mapping[str, tuple[Count, ...]] = field(default_factory=dict)
    """CPUs that ``client``, ``server`` and ``dut`` work on; a host without an entry may use all that it reports."""
    tunnel: str = TUNNELS[0]  # its kind; ``none``: no tunnel
    tunnel_by: str = ""
    """Its program or device (``sit``, ``OpenVPN 2.6.14, AES-256-GCM``); ``not read``: it was taken as it is."""
    without_tunnel: str = ""
    """Reason why there is no tunnel although one was asked for; in documents of former releases."""
    tunnel_between: str = ""  # its ends, as ``client-server``; empty: none, or the DUT and the server (6in4)
    tunnel_mtu: Count | None = None  # inside the tunnel; None: none, or 6in4
    pppoe: bool = False  # a session between DUT and server; the MTU is then the session's
    wan: Wan | None = None  # line behind the DUT; None: none
    wan_by: str = ""  # means by which the line is made, as ``netem``
    wan_asked: Wan | None = None
    """The line asked for, if it was scaled down to what the host could carry; in documents of former releases."""

    @property
    def scale(self) -> float:
        """Ratio of the line, and with it of the hosts' buffers, to what was asked for."""
        if self.wan is None or self.wan_asked is None or not self.wan.rate_bps or not self.wan_asked.rate_bps:
            return 1.0
        return self.wan.rate_bps / self.wan_asked.rate_bps

    def buffer_bytes(self, leg: Leg) -> int | None:
        """Size that the hosts' buffers may grow to in this leg; None: as found."""
        return None if leg.buffer_bytes is None else round(self.scale * leg.buffer_bytes)

    @property
    def dut_programs(self) -> bool:
        """True if a tunnel's program moves packets on the DUT, in user space or in its own threads."""
        return self.tunnel_between == CLIENT_DUT

    @property
    def tags(self) -> int:
        """Number of 4-byte tags in a frame besides Ethernet's header: VLANs, and two for PPPoE."""
        return self.vlans + 2 * self.pppoe

    def path(self, version: int) -> TrafficPath | None:
        """Path of this IP version's packets besides the DUT; None: nothing."""
        inside = (self.tunnel, self.tunnel_between, self.tunnel_by, self.tunnel_mtu)
        tunnel = inside if self.header_bytes(version) else ("", "", "", None)
        path = TrafficPath(self.wan, self.wan_by if self.wan is not None else "", *tunnel, self.pppoe)
        return None if path == TrafficPath() else path

    def header_bytes(self, version: int) -> int:
        """Bytes that the tunnel adds to each packet of this IP version."""
        return HEADER_BYTES.get(self.tunnel, {}).get(version, 0)


@dataclass(frozen=True)
class StreamCount:
    """One TCP connection as one end of it saw it."""

    stream: Count  # its number, the same at both ends
    sends: bool  # this end sends the payload
    payload_bytes: Count  # total that the program has given to its kernel, or got from it
    info: Mapping[str, int] = field(default_factory=dict)
    """The kernel's TCP_INFO by its own names without ``tcpi_`` (rtt in us, snd_cwnd in segments); empty: not read."""
    send_buffer_bytes: Count | None = None  # SO_SNDBUF, the kernel's overhead included; None: not read
    receive_buffer_bytes: Count | None = None  # SO_RCVBUF, the kernel's overhead included; None: not read

    def value(self, name: str) -> float | None:
        """Return a value of TCP_INFO; None if it was not read, or is unknown."""
        value = self.info.get(name)
        return float(value) if value is not None and 0 <= value < NOT_COUNTED else None

    def in_bytes(self, name: str) -> float | None:
        """Convert a count of segments in TCP_INFO to bytes."""
        segments, mss = self.value(name), self.value("snd_mss")
        return None if segments is None or mss is None else segments * mss


@dataclass(frozen=True)
class ThreadTime:
    """CPU time of one thread of the program that sends or receives, in seconds since it began."""

    thread: Count  # its number by the kernel
    user_s: Amount  # in the program
    system_s: Amount  # in the kernel for it
    waiting_s: Amount | None = None
    """Run delay, ready but without a CPU (/proc/PID/task/TID/schedstat); None: not known."""


@dataclass(frozen=True)
class ProcessTime:
    """CPU time of one process of a host during the leg, in seconds."""

    process: Count  # its number (PID)
    name: str  # as the kernel cuts it, or of a program that trexbench runs there
    user_s: Amount  # in the program
    system_s: Amount  # in the kernel for it
    waiting_s: Amount | None = None  # run delay of all of its threads; None: not known
    cpus: tuple[Count, ...] = ()  # CPUs on which its threads ran last, that of the busiest first
    busiest_thread_s: Amount | None = None  # CPU time of its busiest thread; None unless it has several
    role: str = ""  # part in the test: ``endpoint``, ``tunnel``, ``pppoe``, ``napi``, ``ksoftirqd``; empty: none
    whose: str = ""
    """``kernel``: a kernel thread, shared by all hosts of one kernel; ``elsewhere``: in another network namespace;
    empty: the host's own."""


@dataclass(frozen=True)
class Processes:
    """The processes that took most CPU time during the leg, without those that ended before its end."""

    over_s: Amount  # time between the readings of all processes
    took: tuple[ProcessTime, ...] = ()  # the ten busiest, and all that carry payload


@dataclass(frozen=True)
class HostReading:
    """One host at one instant."""

    at_s: Amount  # by its own clock, from a moment before payload flows
    streams: tuple[StreamCount, ...] = ()
    cpus: tuple[CpuTime, ...] = ()
    threads: tuple[ThreadTime, ...] = ()


Seen = Callable[[str, HostReading], None]
"""Receives each reading as it is made, with its host: ``client`` or ``server``. Called from other threads."""
Counters = list[DutReading | Missing]
"""Takes what is read of the DUT while a leg runs, so that an interruption leaves it. Extended in other threads."""


@dataclass(frozen=True)
class Ping:
    """One series of echo requests from client to server."""

    leg: Leg
    loaded: bool  # sent while the leg ran, not before the legs
    sent: Count  # echo requests
    times_s: tuple[Amount, ...]  # round trips of the answers, in their order


SLACK_S = 0.001
"""Tolerance between equal clocks: a reading at an end of the leg belongs to it."""


@dataclass(frozen=True)
class LegReadings:
    """Readings taken while one leg ran."""

    leg: Leg
    began_s: Amount  # on the run's clock, by the client's first reading
    client: tuple[HostReading, ...] = ()  # readings of its host
    server: tuple[HostReading, ...] = ()  # readings of its host
    dut: tuple[DutReading, ...] = ()  # the router's counters, on the run's clock
    program: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By host: its program and system, as these reported themselves: version, congestion control, tcp_rmem ..."""
    missing: tuple[Missing, ...] = ()  # what could not be read of the DUT
    error: str | None = None  # why it ended early; None: it did not
    processes: Mapping[str, Processes] = field(default_factory=dict)
    """By host, ``dut`` included, as far as they were read."""

    @property
    def length_s(self) -> float:
        """Time in which payload flowed."""
        return max((ones[-1].at_s - ones[0].at_s for ones in (self.client, self.server) if ones), default=0.0)

    def dut_while_counted(self, omit_s: float) -> tuple[DutReading, ...]:
        """Return the DUT's readings while payload flowed and counted: idle time before and after has another power."""
        first_s, last_s = self.began_s + omit_s - SLACK_S, self.began_s + self.length_s + SLACK_S
        return tuple(r for r in self.dut if first_s <= r.t_s and r.t_s + r.took_s <= last_s)

    def dut_since_counted(self, omit_s: float) -> tuple[DutReading, ...]:
        """Return the DUT's readings from the last one in the omitted time on, which has what was dropped there."""
        first_s = self.began_s + omit_s + SLACK_S
        return self.dut[max(0, sum(reading.t_s <= first_s for reading in self.dut) - 1) :]
