"""The interface between the embedded STL server and the engine that sends its packets.

The server (RPC, ownership, multipliers, events) knows no packets; an engine knows no RPC. The server has
already turned every multiplier into a factor by which a stream's own rate is multiplied.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

BUCKETS_US = (0, *(digit * power for power in (10, 100, 1000, 10_000, 100_000, 1_000_000) for digit in range(1, 10)))
"""Lower bounds of the latency histogram's buckets, of one significant digit as TRex's; the last has no upper bound."""


FCS_BYTES = 4
MARKS = 1023
"""Number of packet groups that can be distinguished by what is written into their frames."""


class EngineError(Exception):
    """The engine cannot do what was asked; the text is sent to the client as ``specific_err``."""


@dataclass(frozen=True)
class EnginePort:
    """One port as the engine sees it.

    speed_bps: nominal L1 speed in bit/s. src_mac/dst_mac: the "layer 2 configuration" TRex would have
    (dst_mac is None when unresolved). partner: the port that its frames reach through the DUT, None where there is
    none. mode: of XDP, ``driver`` or ``skb``; empty where nothing is sent. pci: address; empty of virtual ones.
    remarks: what else to know of the port, a line each.
    """

    index: int
    name: str
    driver: str
    speed_bps: float
    src_mac: str
    dst_mac: str | None = None
    src_ipv4: str | None = None
    dst_ipv4: str | None = None
    partner: int | None = None
    mode: str = ""
    pci: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class StreamSpec:
    """One enabled STL stream, as ``add_stream`` carried it.

    packet: the frame without FCS. rate_pps: packets per second at factor 1 (bps and percentage rates are
    already converted; L2 sizes include 4 bytes of FCS). mode: ``continuous``, ``single_burst`` or
    ``multi_burst``; total_pkts: per burst; count: bursts (0 means for ever); ibg_us / isg_us: gap between
    bursts, and before the first packet. next_stream_id -1: none. action_count: the stream's end of this number hands
    over to no other (0: each does). instructions: the field engine program, TRex's JSON as it is.
    fixed_rate: the stream ignores the factor (latency streams). pg_id: of a latency stream, whose frames carry the
    time of their sending and are timed where they arrive; None: of all others. mark: by which the frames of a stream
    are known where they arrive, and counted there (0 to MARKS - 1; several streams may share one); None: of a stream
    whose frames are counted with all others only.
    """

    stream_id: int
    packet: bytes
    rate_pps: float
    mode: str = "continuous"
    total_pkts: int = 0
    count: int = 0
    ibg_us: float = 0.0
    isg_us: float = 0.0
    self_start: bool = True
    next_stream_id: int = -1
    action_count: int = 0
    fixed_rate: bool = False
    pg_id: int | None = None
    mark: int | None = None
    instructions: Sequence[dict[str, Any]] = field(default_factory=tuple)
    vm_cache: int = 0

    def refusal(self, text: str) -> EngineError:
        """Return the error that this stream cannot be sent."""
        return EngineError(f"stream {self.stream_id}: {text}")


@dataclass(frozen=True)
class EngineCounters:
    """Raw totals since the engine started. Bytes include the FCS."""

    opackets: int = 0
    obytes: int = 0
    ipackets: int = 0
    ibytes: int = 0
    ierrors: int = 0
    oerrors: int = 0


@dataclass(frozen=True)
class LatencyTotals:
    """Totals of one packet group's frames since their stream was started. Times in seconds, bytes with FCS.

    sum_s: of the latencies of all received frames; min_s, max_s: 0 while none was received. histogram: received frames
    by the lower bound of their bucket in microseconds, one significant digit as in TRex: 0 (below 10), 10, 20 ... 90,
    100, 200 ... out_of_order: frames that came after a later one of their group. missing: frames sent before
    one that has come, and not come themselves. duplicate: frames that came again right after themselves. jitter_s:
    smoothed difference of successive latencies (RFC 3550, 6.4.1).
    """

    rx_port: int
    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0
    sum_s: float = 0.0
    min_s: float = 0.0
    max_s: float = 0.0
    histogram: Mapping[int, int] = field(default_factory=dict)
    out_of_order: int = 0
    missing: int = 0
    jitter_s: float = 0.0
    duplicate: int = 0


@dataclass(frozen=True)
class FlowTotals:
    """Frames of one mark that a port has sent and received since the engine began. Bytes with FCS."""

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0


def bucket_us(latency_s: float) -> int:
    """The lower bound of the histogram's bucket that holds it."""
    whole_us = int(latency_s * 1e6 + 1e-6)  # 30 us are 30, whatever their last binary digit
    return BUCKETS_US[bisect_right(BUCKETS_US, whole_us) - 1]


@dataclass(frozen=True)
class Taken:
    """Totals of what kept a sending thread from its core. waited_ns: ready to run while others ran (its run delay).
    preempted: involuntary switches to others. stolen_ns: for which the machine's host ran others on its CPU. None where
    the kernel does not say, or the sender has no core.
    """

    waited_ns: int | None = None
    preempted: int | None = None
    stolen_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class PortLoad(Taken):
    """Load of a port's sender. cpu_percent: over the last second or so; queue_full: frames that were due and not sent,
    since the engine's start."""

    cpu_percent: float = 0.0
    queue_full: int = 0


@dataclass(frozen=True)
class EngineLoad:
    """Load of the engine, by sending port and on the whole."""

    ports: Mapping[int, PortLoad]

    @property
    def cpu_percent(self) -> float:
        """CPU load of the busiest port's sender."""
        return max((port.cpu_percent for port in self.ports.values()), default=0.0)

    @property
    def queue_full(self) -> int:
        return sum(port.queue_full for port in self.ports.values())


class Engine(Protocol):
    """Moves packets. All calls come from the server's one thread; none may block for more than some 50 ms.

    The server has checked of every stream that its mode is one of the three, its rate above 0 and finite, a burst of 1
    to 2^32 - 1 packets, and gaps and counts not negative; and that ``start`` brings at least one stream.
    """

    @property
    def ports(self) -> Sequence[EnginePort]: ...

    def check(self, port: int, stream: StreamSpec) -> None:
        """Raise EngineError, naming what is in the way, if this stream cannot be sent exactly as asked."""

    def start(self, port: int, streams: Sequence[StreamSpec], factor: float, duration_s: float | None) -> None:
        """Begin sending ``streams`` at ``factor`` times their rates; None lasts until stopped."""

    def update(self, port: int, factor: float) -> None:
        """Change the factor of running traffic without a gap."""

    def pause(self, port: int) -> None: ...

    def resume(self, port: int) -> None: ...

    def stop(self, port: int) -> None:
        """Stop at once; on return no further frame leaves the port."""

    def poll(self) -> Sequence[int]:
        """Ports whose traffic ended by itself (duration over, bursts sent, engine failure) since the last call."""

    def counters(self, port: int) -> EngineCounters: ...

    def latency(self, port: int) -> Mapping[int, LatencyTotals]:
        """By pg_id, of the latency streams that this port sends or sent last; they begin at zero with every start."""

    def flows(self) -> Mapping[int, Mapping[int, FlowTotals]]:
        """By port and mark, all of one instant; what is not named is zero. No count ever goes back."""

    def load(self) -> EngineLoad: ...

    def link_up(self, port: int) -> bool: ...

    def set_promiscuous(self, port: int, enabled: bool) -> None: ...

    def close(self) -> None:
        """Stop everything and give every resource back; safe to call twice."""


def partners(ports: int) -> dict[int, int]:
    """By port, the other one of its pair: 0 and 1, 2 and 3 and so on; one that is left over has none."""
    return {port: port ^ 1 for port in range(ports) if port ^ 1 < ports}


def core_of(port: int) -> int:
    """The sending core of a port: as in TRex, ports 0-1, 2-3 and so on share one each, whatever they are wired to."""
    return port // 2


def core_count(ports: int) -> int:
    """Number of sending cores that so many ports have; at least one."""
    return max(1, core_of(ports + 1))


def simulated_ports(name: str, ports: int, speed_bps: float) -> tuple[EnginePort, ...]:
    """Ports of an engine that sends nothing: ``name`` and their number."""
    partner_of = partners(ports)
    return tuple(
        EnginePort(
            index=port,
            name=f"{name}{port}",
            driver="net_simulated",
            speed_bps=speed_bps,
            src_mac=f"02:00:00:00:{port + 1:02x}:02",
            dst_mac=f"02:00:00:00:{port + 1:02x}:01",
            src_ipv4=f"100.65.{port + 1}.2",
            dst_ipv4=f"100.65.{port + 1}.1",
            partner=partner_of.get(port),
        )
        for port in range(ports)
    )
