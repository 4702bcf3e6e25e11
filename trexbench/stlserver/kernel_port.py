"""One port of the kernel engine: its shared memory, its receiver, its totals."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from trexbench.stlserver import bpf
from trexbench.stlserver.engine import EngineError, PortCounters, StreamSpec
from trexbench.stlserver.netdev import LinkCounters, NetDevice
from trexbench.stlserver.xdp_latency import map_bytes
from trexbench.stlserver.xdp_layout import (
    BIAS,
    FCS_BYTES,
    FRACTION_BITS,
    PORT_WORDS_MAX,
    Gate,
    Port,
    Received,
    Slot,
    interval,
    ticks,
)
from trexbench.stlserver.xdp_plan import PortPlan, StreamPlan, bursts_of
from trexbench.stlserver.xdp_receive import receiver

# How far a port may fall behind and catch up at once, in frames, and in time at rates where that is less: whoever
# shares the sender's core takes some tenths of a millisecond. It fits into the 256 frames of a veth's ring.
CREDIT_NS, CREDIT_PACKETS = 200_000.0, 192
CREDIT_AT_MOST_NS = 50_000_000.0
_FORGIVE_TURNS = 16


def possible_cpus() -> int:
    """A power of two above every CPU number of this machine."""
    with open("/sys/devices/system/cpu/possible") as file:
        highest = int(file.read().replace(",", "-").split("-")[-1])
    return 1 << highest.bit_length() if highest else 1


@dataclass(frozen=True)
class Moved:
    """One reading of a port's own counts; octets with FCS. refused: counted in packets, but not sent."""

    packets: int
    octets: int
    refused: int
    received_packets: int
    received_octets: int


@dataclass
class _Totals:
    """What was sent by programs that have been replaced since."""

    packets: int = 0
    octets: int = 0
    refused: int = 0
    lost_slots: float = 0.0


@dataclass
class KernelPort:
    """Memory and bookkeeping; KernelEngine decides what happens when."""

    device: NetDevice
    limit_pps: float | None
    memory: bpf.SharedMap
    received: bpf.SharedMap
    timed: bpf.SharedMap
    link_fd: int
    first: LinkCounters
    cpus: int = 1
    plan: PortPlan | None = None
    specs: Sequence[StreamSpec] = ()
    factor: float = 1.0
    lists: dict[tuple[int, int], bpf.SharedMap] = field(default_factory=dict)
    totals: _Totals = field(default_factory=_Totals)
    lost_time_seen: int = 0
    reported: bool = True
    failed: bool = False
    resumes_to: Gate = Gate.RUNNING

    @property
    def gate(self) -> int:
        return int(self.memory.words[Port.GATE])

    @gate.setter
    def gate(self, value: Gate) -> None:
        self.memory.words[Port.GATE] = int(value)

    @property
    def sending(self) -> bool:
        return self.gate in (Gate.ARMED, Gate.RUNNING)

    def rate_of(self, stream: StreamPlan) -> float:
        return stream.spec.rate_pps * (1.0 if stream.spec.fixed_rate else self.factor)

    def total_rate(self) -> float:
        """Packets per second asked for now, of the streams that are active."""
        words = self.memory.words
        streams = self.plan.streams if self.plan else ()
        return sum(self.rate_of(s) for s in streams if words[s.word(Slot.ACTIVE)])

    def prepare(self, plan: PortPlan, factor: float, duration_s: float | None) -> None:
        """Fill the memory for a new set of streams; the gate is shut and no program reads it."""
        self.plan, self.factor = plan, factor
        words = self.memory.words
        for word in range(Port.STREAMS):
            words[word] = 0
        for word in range(int(Port.STREAMS), plan.streams[-1].end):
            words[word] = 0
        for stream in plan.streams:
            spec = stream.spec
            pause = interval(self.rate_of(stream))
            words[stream.word(Slot.ACTIVE)] = int(spec.self_start)
            words[stream.word(Slot.INTERVAL)] = pause
            words[stream.word(Slot.LAST)] = BIAS + ticks(spec.isg_us * 1e3) - min(pause, BIAS)
            words[stream.word(Slot.BURST_LEFT)] = spec.total_pkts
            words[stream.word(Slot.BURSTS_LEFT)] = bursts_of(spec)
            words[stream.word(Slot.ACTION_LEFT)] = spec.action_count
            words[stream.word(Slot.CACHE_LEFT)] = spec.vm_cache + 1
            for word, value in enumerate(stream.program.words):
                words[stream.word(Slot.VARIABLES) + word] = value
        words[Port.ACTIVE] = sum(stream.spec.self_start for stream in plan.streams)
        words[Port.DURATION] = ticks(duration_s * 1e9) if duration_s else 0
        words[Port.LIMIT_INTERVAL] = interval(self.limit_pps) if self.limit_pps else 0
        self.lost_time_seen = 0
        self.set_credit()

    def set_credit(self) -> None:
        rate = max(self.total_rate(), 1e-9)
        credit = min(max(CREDIT_NS, CREDIT_PACKETS / rate * 1e9), CREDIT_AT_MOST_NS)
        self.memory.words[Port.CREDIT] = ticks(credit)

    def update(self, factor: float) -> None:
        """New rates, seen by the program at its next turn; the slot in waiting moves with them."""
        self.settle_losses()
        words = self.memory.words
        self.factor = factor
        words[Port.FORGIVE] = _FORGIVE_TURNS
        for stream in self.plan.streams if self.plan else ():
            words[stream.word(Slot.INTERVAL)] = interval(self.rate_of(stream))
        self.set_credit()

    def pause(self) -> None:
        """Shut the gate; one that the program has not come to yet is armed again by ``resume``."""
        self.resumes_to = Gate.ARMED if self.gate == Gate.ARMED else Gate.RUNNING
        self.gate = Gate.PAUSED

    def resume(self) -> None:
        self.memory.words[Port.FORGIVE] = _FORGIVE_TURNS
        self.gate = self.resumes_to

    def settle_losses(self) -> None:
        """Turn time given up since the last call into packets, at the rate that held."""
        lost = int(self.memory.words[Port.LOST_TIME])
        passed_s = (lost - self.lost_time_seen) / (1 << FRACTION_BITS) / 1e9
        self.totals.lost_slots += passed_s * self.total_rate()
        self.lost_time_seen = lost

    def retire(self) -> None:
        """Move the counts of the streams into the totals, before they are replaced."""
        self.settle_losses()
        packets, octets, refused = self._sent()
        self.totals.packets += packets
        self.totals.octets += octets
        self.totals.refused += refused
        self.plan = None
        for listing in self.lists.values():
            listing.close()
        self.lists = {}

    def _sent(self) -> tuple[int, int, int]:
        words, packets, octets = self.memory.words, 0, 0
        for stream in self.plan.streams if self.plan else ():
            sent = int(words[stream.word(Slot.SENT)])
            size = 0 if stream.program.trims else len(stream.program.packet)
            packets += sent
            octets += sent * (size + FCS_BYTES) + int(words[stream.word(Slot.BYTES)])
        return packets, octets, int(words[Port.REFUSED])

    def link_counters(self) -> LinkCounters:
        return self.device.counters()

    def moved(self) -> Moved:
        """What was sent and received so far; memory only, so that all ports can be read at one instant."""
        packets, octets, refused = self._sent()
        words = self.received.words
        lines = range(0, self.cpus * Received.LINE_WORDS, Received.LINE_WORDS)
        return Moved(
            packets + self.totals.packets,
            octets + self.totals.octets,
            refused + self.totals.refused,
            sum(words[at + Received.PACKETS] for at in lines),
            sum(words[at + Received.BYTES] for at in lines),
        )

    def counters(self, moved: Moved) -> PortCounters:
        now = self.link_counters()
        sent = moved.packets - moved.refused
        return PortCounters(
            opackets=sent,
            obytes=moved.octets,
            ipackets=moved.received_packets,
            ibytes=moved.received_octets,
            ierrors=now.rx_dropped - self.first.rx_dropped + now.rx_errors - self.first.rx_errors,
            oerrors=moved.refused + self._never_accepted(sent, now),
        )

    def _never_accepted(self, packets: int, now: LinkCounters) -> int:
        """Frames that veth neither carried nor refused: its peer does not take any at all.

        Only veth counts these frames exactly; up to a batch may be on its way.
        """
        if self.device.driver != "veth":
            return 0
        seen = now.tx_packets - self.first.tx_packets + self.peer_ring_drops(now)
        missing = packets - seen
        return missing if missing > 1024 else 0

    def peer_ring_drops(self, now: LinkCounters | None = None) -> int:
        """Frames that were sent but found the peer's receive ring full (on hardware: the DUT's rx-miss)."""
        return (now or self.link_counters()).tx_dropped - self.first.tx_dropped

    def close(self) -> None:
        if self.link_fd >= 0:
            os.close(self.link_fd)
            self.link_fd = -1
        for listing in self.lists.values():
            listing.close()
        self.lists = {}
        self.memory.close()
        self.received.close()
        self.timed.close()
        self.device.close()


def open_port(name: str, limit_pps: float | None) -> KernelPort:
    """Attach the receiver to an interface of the calling thread's namespace; raises EngineError."""
    device = NetDevice(name)
    opened: list[bpf.SharedMap] = []
    try:
        if not device.is_up:
            raise EngineError(f"interface {name} is down; bring it up: ip link set {name} up")
        cpus = possible_cpus()
        opened.append(bpf.SharedMap("trexbench_port", 8 * PORT_WORDS_MAX))
        opened.append(bpf.SharedMap("trexbench_rx", 8 * Received.LINE_WORDS * cpus))
        opened.append(bpf.SharedMap("trexbench_timed", map_bytes(cpus)))
        program = bpf.load_xdp("trexbench_rx", receiver(opened[1].fd, opened[2].fd, cpus))
        try:
            link = _attach(program, device)
        finally:
            os.close(program)
        memory, received, timed = opened
        return KernelPort(device, limit_pps, memory, received, timed, link, device.counters(), cpus)
    except BaseException:
        for memory in opened:
            memory.close()
        device.close()
        raise


def _attach(program: int, device: NetDevice) -> int:
    try:
        return bpf.attach_xdp(program, device.ifindex, bpf.XDP_FLAGS_DRV_MODE)
    except OSError as error:
        raise EngineError(_attach_error(error, device)) from None


def _attach_error(error: OSError, device: NetDevice) -> str:
    name = device.name
    if error.errno in (errno.EPERM, errno.EACCES):
        return f"interface {name}: not permitted; run as root (CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW)"
    if error.errno in (errno.EBUSY, errno.EEXIST):
        return f"interface {name} already has an XDP program; detach it: ip link set {name} xdp off"
    if error.errno == errno.EOPNOTSUPP:
        return (
            f"interface {name}: its driver ({device.driver or 'unknown'}) cannot do XDP; "
            "use veth or a NIC whose driver can, or a real TRex"
        )
    return f"interface {name}: cannot attach the XDP receiver ({error.strerror}); its MTU is {device.mtu}"
