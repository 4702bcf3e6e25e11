"""The interface between the embedded STL server and the engine that sends its packets.

The server (RPC, ownership, multipliers, events) knows no packets; an engine knows no RPC. The server turns every
multiplier into a factor, by which the engine multiplies each stream's own rate.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

BUCKETS_US = (0, *(digit * power for power in (10, 100, 1000, 10_000, 100_000, 1_000_000) for digit in range(1, 10)))
"""Lower bounds of the latency histogram's buckets, of one significant digit as TRex's; the last has no upper bound."""
FCS_BYTES = 4
MAX_STREAMS = 400  # that a port sends at once, which are those of one profile
MARKS = 1023  # number of different marks, which tell the frames of counted packet groups apart


class EngineError(Exception):
    """The engine cannot do what was asked; the text is sent to the client as ``specific_err``."""


@dataclass(frozen=True)
class EnginePort:
    """One port of an engine; its MACs are what TRex calls the layer 2 configuration."""

    index: int
    name: str
    driver: str
    speed_bps: float  # nominal L1 speed
    src_mac: str
    dst_mac: str | None = None  # None: unresolved
    src_ipv4: str | None = None
    dst_ipv4: str | None = None
    partner: int | None = None  # the port that its frames reach through the DUT
    mode: str = ""  # of XDP, "driver" or "skb"; empty where nothing is sent
    pci: str = ""  # PCI address; empty for a virtual interface
    remarks: tuple[str, ...] = ()  # one line for each way in which it falls short of TRex's ports


@dataclass(frozen=True)
class StreamSpec:
    """One enabled STL stream, as ``add_stream`` carried it."""

    stream_id: int
    packet: bytes  # without FCS
    rate_pps: float  # at factor 1
    mode: str = "continuous"  # or "single_burst", "multi_burst"
    total_pkts: int = 0  # in each burst
    count: int = 0  # bursts; 0: endlessly many
    ibg_us: float = 0.0  # gap between bursts
    isg_us: float = 0.0  # gap before the first packet
    self_start: bool = True
    next_stream_id: int = -1  # -1: none
    action_count: int = 0  # when the stream ends for the Nth time, the next one is not started; 0: it always is
    fixed_rate: bool = False  # the factor does not apply (latency streams)
    pg_id: int | None = None  # a latency stream's: its frames carry their time of sending and are timed on arrival
    mark: int | None = None  # by which its frames are counted on arrival, 0 to MARKS - 1; streams may share one
    instructions: Sequence[dict[str, Any]] = field(default_factory=tuple)  # field engine program, TRex's JSON
    vm_cache: int = 0

    def refusal(self, text: str) -> EngineError:
        """Return an EngineError that names this stream."""
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
class FlowTotals:
    """Frames sent and received: of one mark by a port since the engine began. Bytes include the FCS."""

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class LatencyTotals(FlowTotals):
    """Totals of one packet group's frames since their stream was started."""

    rx_port: int
    sum_s: float = 0.0  # the latencies of all received frames, added up
    min_s: float = 0.0  # 0 while none was received, like max_s
    max_s: float = 0.0
    histogram: Mapping[int, int] = field(default_factory=dict)  # received frames by their bucket in BUCKETS_US
    out_of_order: int = 0  # arrived after a later frame of their group
    missing: int = 0  # not arrived, though a later frame has
    jitter_s: float = 0.0  # smoothed difference of successive latencies (RFC 3550, 6.4.1)
    duplicate: int = 0  # arrived again right after themselves


def bucket_us(latency_s: float) -> int:
    """Lower bound of the histogram bucket for this latency."""
    whole_us = int(latency_s * 1e6 + 1e-6)  # 30 us are 30, whatever their last binary digit
    return BUCKETS_US[bisect_right(BUCKETS_US, whole_us) - 1]


@dataclass(frozen=True)
class Taken:
    """Totals of what kept a sending thread from its core; None where the kernel does not say, or it has no core."""

    waited_ns: int | None = None  # ready to run while others ran (run delay)
    preempted: int | None = None  # involuntary context switches
    stolen_ns: int | None = None  # the hypervisor ran others on the thread's CPU


@dataclass(frozen=True, kw_only=True)
class PortLoad(Taken):
    """Load of a port's sender."""

    cpu_percent: float = 0.0  # over the last second or so
    queue_full: int = 0  # frames that were due and not sent, since the engine's start


class Engine(Protocol):
    """Moves packets. All calls come from the server's only thread; none may block for more than about 50 ms.

    The server has checked every stream: a known mode, a finite rate above 0, bursts of 1 to 2^32 - 1 packets, no
    negative gap or count. ``start`` gets at least one stream.
    """

    @property
    def ports(self) -> Sequence[EnginePort]: ...

    def check(self, port: int, stream: StreamSpec) -> None:
        """Raise EngineError, with the reason, if this stream cannot be sent exactly as asked."""

    def start(self, port: int, streams: Sequence[StreamSpec], factor: float, duration_s: float | None) -> None:
        """Begin sending ``streams`` at ``factor`` times their rates; None lasts until stopped."""

    def update(self, port: int, factor: float) -> None:
        """Change the factor of running traffic without a gap."""

    def pause(self, port: int) -> None: ...

    def resume(self, port: int) -> None: ...

    def stop(self, port: int) -> None:
        """Stop at once; on return no further frame leaves the port."""

    def poll(self) -> Sequence[int]:
        """Ports whose traffic ended by itself since the last call: duration over, bursts sent, or engine failure."""

    def counters(self, port: int) -> EngineCounters: ...

    def latency(self, port: int) -> Mapping[int, LatencyTotals]:
        """Totals by pg_id of the latency streams that this port sends or sent last, from zero at every start."""

    def flows(self) -> Mapping[int, Mapping[int, FlowTotals]]:
        """Totals by port and mark, all read at one instant. What is not named is zero; no count ever goes back."""

    def load(self) -> Mapping[int, PortLoad]:
        """Load of each port's sender."""

    def link_up(self, port: int) -> bool: ...

    def set_promiscuous(self, port: int, enabled: bool) -> None: ...

    def close(self) -> None:
        """Stop everything and free all resources; safe to call twice."""


def partners(ports: int) -> dict[int, int]:
    """Other port of each port's pair (0 and 1, 2 and 3, and so on); an odd last port has none."""
    return {port: port ^ 1 for port in range(ports) if port ^ 1 < ports}


def core_of(port: int) -> int:
    """Number of a port's sending core: as in TRex, ports 0 and 1 share one, 2 and 3 the next, whatever their wiring."""
    return port // 2


def core_count(ports: int) -> int:
    """Number of sending cores for this many ports; at least one."""
    return max(1, core_of(ports + 1))


def simulated_ports(name: str, ports: int, speed_bps: float) -> tuple[EnginePort, ...]:
    """Ports of an engine that sends nothing, called ``name`` with their number."""
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
