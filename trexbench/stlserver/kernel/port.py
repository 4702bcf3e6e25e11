"""One port of the kernel engine: its shared memory, its receiver, its totals."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..engine import FCS_BYTES, EngineCounters, EngineError
from . import bpf, xdp_count, xdp_latency
from .netdev import FILTERS_VLANS, STRIPS_VLANS, LinkCounters, NetDevice, Refusals
from .xdp_layout import (
    BIAS,
    CATCH_UP,
    FRACTION_BITS,
    NEVER,
    PORT_WORDS_MAX,
    Gate,
    PortWord,
    ReceivedWord,
    StreamWord,
    interval,
    ticks,
)
from .xdp_plan import PortPlan, StreamPlan, bursts_of

# How far a port may fall behind and still catch up at once: this many packets, or at high rates this long, since other
# work on the sender's core takes some tenths of a millisecond. The packets fit into the 256 of a veth's ring.
CREDIT_NS, CREDIT_PACKETS = 200_000.0, 192
CREDIT_AT_MOST_NS = 50_000_000.0
OWED_MOST_S = 1 / CATCH_UP  # time whose packets a port may owe beyond that: it catches up within a second
_FORGIVE_TURNS = 16
DRIVER, SKB = MODES = ("driver", "skb")
"""Ways to send and receive: XDP frames in the driver, or packets of the stack (sk_buff), as any driver can."""
_FLAGS = {DRIVER: bpf.XDP_FLAGS_DRV_MODE, SKB: bpf.XDP_FLAGS_SKB_MODE}
_ATTACHED = {1: DRIVER, 2: SKB}  # mode by the kernel's number for it
_COUNTING = ("virtio_net",)
"""Drivers that count XDP frames as sent once they have taken them; in skb mode all do. A ring of virtio may count its
last frames only when the next ones come."""
_DROPPING = ("tun", "virtio_net")  # drivers that count as dropped the frames that the receiving program has counted


def possible_cpus() -> int:
    """Power of two above every CPU number of this machine."""
    with open("/sys/devices/system/cpu/possible") as file:
        highest = int(file.read().replace(",", "-").split("-")[-1])
    return 1 << highest.bit_length() if highest else 1


@dataclass(frozen=True)
class Moved:
    """One reading of a port's own counts; octets include the FCS."""

    packets: int
    octets: int
    refused: int  # frames counted in packets, but not sent
    received_packets: int
    received_octets: int


@dataclass
class KernelPort:
    """Memory and bookkeeping of a port; KernelEngine decides what happens when."""

    device: NetDevice
    limit_pps: float | None
    memory: bpf.SharedMap
    received: bpf.SharedMap
    timed: bpf.SharedMap
    marked: bpf.SharedMap
    first: LinkCounters  # of the device at the beginning
    cpus: int = 1
    mode: str = DRIVER  # of MODES
    lack: str = ""  # reason why an earlier mode of MODES cannot be used
    plan: PortPlan | None = None
    factor: float = 1.0
    rows: bpf.SharedMap | None = None  # what changes in the frames of the plan, if anything
    retired: dict[int | None, tuple[int, int]] = field(default_factory=dict)  # as sent_flows, of replaced plans
    retired_refused: int = 0
    owed_most_s: float = OWED_MOST_S
    lost_slots: float = 0.0
    lost_time_seen: int = 0
    reported: bool = True  # that its traffic has ended
    resumes_to: Gate = Gate.RUNNING
    refusals: Refusals = field(default_factory=Refusals)
    most: tuple[int, ...] = (0, 0, 0)  # frames and octets sent, and errors, as reported last

    @property
    def gate(self) -> int:
        return int(self.memory.words[PortWord.GATE])

    @gate.setter
    def gate(self, value: Gate) -> None:
        self.memory.words[PortWord.GATE] = int(value)

    @property
    def sending(self) -> bool:
        return self.gate in (Gate.ARMED, Gate.RUNNING)

    @property
    def busy(self) -> bool:
        """True if the port sends or is paused."""
        return self.sending or self.gate == Gate.PAUSED

    def rate_of(self, stream: StreamPlan) -> float:
        return stream.spec.rate_pps * (1.0 if stream.spec.fixed_rate else self.factor)

    def total_rate(self, bursts: bool = True) -> float:
        """Packets per second that the active streams ask for; without bursts: the continuous ones alone."""
        words = self.memory.words
        streams = self.plan.streams if self.plan else ()
        return sum(self.rate_of(s) for s in streams if words[s.word(StreamWord.ACTIVE)] and (bursts or not s.bursts))

    def prepare(self, plan: PortPlan, factor: float, duration_s: float | None) -> None:
        """Fill the memory for new streams, while the gate is closed and no program reads it."""
        self.plan, self.factor = plan, factor
        words = self.memory.words
        for word in range(plan.streams[-1].end):
            words[word] = 0
        for stream in plan.streams:
            spec = stream.spec
            pause = interval(self.rate_of(stream))
            words[stream.word(StreamWord.ACTIVE)] = int(spec.self_start)
            words[stream.word(StreamWord.INTERVAL)] = pause
            words[stream.word(StreamWord.LAST)] = BIAS + ticks(spec.isg_us * 1e3) - min(pause, BIAS)
            words[stream.word(StreamWord.BURST_LEFT)] = spec.total_pkts
            words[stream.word(StreamWord.BURSTS_LEFT)] = bursts_of(spec)
            words[stream.word(StreamWord.ACTION_LEFT)] = spec.action_count
        words[PortWord.ACTIVE] = sum(stream.spec.self_start for stream in plan.streams)
        words[PortWord.DURATION] = ticks(duration_s * 1e9) if duration_s else 0
        words[PortWord.LIMIT_INTERVAL] = interval(self.limit_pps) if self.limit_pps else 0
        self.lost_time_seen = 0
        self.set_credit()

    def set_credit(self) -> None:
        """Set how much the port may catch up at once, and how much gradually."""
        rate, words = max(self.total_rate(), 1e-9), self.memory.words
        credit = min(max(CREDIT_NS, CREDIT_PACKETS / rate * 1e9), CREDIT_AT_MOST_NS)
        words[PortWord.CREDIT] = ticks(credit)
        words[PortWord.STEP] = interval(CATCH_UP * rate)
        words[PortWord.OWED_MOST] = round(min(self.owed_most_s * CATCH_UP * rate, NEVER))

    def update(self, factor: float) -> None:
        """Change the rates, as of the program's next turn; the next packet's due time moves with them.

        What is owed at the old rate is not sent at the new one: a router near its limit would get more than asked.
        """
        self.settle_losses()
        words = self.memory.words
        if factor != self.factor:
            self._give_up_owed()
        self.factor = factor
        words[PortWord.FORGIVE] = _FORGIVE_TURNS
        for stream in self.plan.streams if self.plan else ():
            words[stream.word(StreamWord.INTERVAL)] = interval(self.rate_of(stream))
        self.set_credit()

    def pause(self) -> None:
        """Close the gate; ``resume`` arms it again if the program has not opened it yet."""
        self.resumes_to = Gate.ARMED if self.gate == Gate.ARMED else Gate.RUNNING
        self.gate = Gate.PAUSED

    def resume(self) -> None:
        self.memory.words[PortWord.FORGIVE] = _FORGIVE_TURNS
        self.gate = self.resumes_to

    def settle_losses(self) -> None:
        """Count packets as lost: those of the time given up since the last call and, at rest, those still owed."""
        lost = int(self.memory.words[PortWord.LOST_TIME])
        passed_s = (lost - self.lost_time_seen) / (1 << FRACTION_BITS) / 1e9
        self.lost_slots += passed_s * self.total_rate()
        self.lost_time_seen = lost
        if not self.busy:
            self._give_up_owed()

    def _give_up_owed(self) -> None:
        """Count what is owed as lost, but for the share of bursts, which are sent whole, only later.

        A turn of the program at this instant may write OWED back; what was counted is then sent after all.
        """
        words, total = self.memory.words, self.total_rate()
        steady = self.total_rate(bursts=False)
        self.lost_slots += words[PortWord.OWED] / CATCH_UP * (steady / total if total else 0.0)
        words[PortWord.OWED] = 0

    def retire(self) -> None:
        """Keep the counts of the streams before these are replaced."""
        self.settle_losses()
        self.retired, self.retired_refused = self.sent_flows(), self.refused
        self.plan = None
        self.drop_rows()

    @property
    def refused(self) -> int:
        """Frames counted in packets, but not sent."""
        return self.retired_refused + int(self.memory.words[PortWord.REFUSED])

    def sent_flows(self) -> dict[int | None, tuple[int, int]]:
        """Packets and octets sent so far, by mark (None: without one)."""
        flows, words = dict(self.retired), self.memory.words
        for stream in self.plan.streams if self.plan else ():
            before, sent = flows.get(stream.spec.mark, (0, 0)), int(words[stream.word(StreamWord.SENT)])
            size = 0 if stream.frames.cut else len(stream.frames.packet)
            octets = sent * (size + FCS_BYTES) + int(words[stream.word(StreamWord.BYTES)])
            flows[stream.spec.mark] = before[0] + sent, before[1] + octets
        return flows

    def moved(self) -> Moved:
        """Read what was sent and received so far; from memory only, so that all ports can be read at one instant."""
        words, sent = self.received.words, self.sent_flows().values()
        lines = range(0, self.cpus * ReceivedWord.LINE_WORDS, ReceivedWord.LINE_WORDS)
        return Moved(
            sum(packets for packets, _ in sent),
            sum(octets for _, octets in sent),
            self.refused,
            sum(words[at + ReceivedWord.PACKETS] for at in lines),
            sum(words[at + ReceivedWord.BYTES] for at in lines),
        )

    def remarks(self, speed_read: bool) -> Iterator[str]:
        """Yield the ways in which the port falls short of TRex's. speed_read: the user has not given its speed."""
        name, driver = self.device.name, self.device.driver
        if self.lack:
            yield f"{name}: {self.mode} mode, which is slower: its driver ({driver}) cannot do XDP ({self.lack})"
        if self.device.pci and speed_read and self.device.speed_bps is None:
            yield f"{name}: its driver ({driver}) knows no speed; name it with --speed unless it is 10gbps"
        features = self.device.features
        if features & FILTERS_VLANS:
            yield f"{name}: it may drop received frames with VLAN tags; promiscuous mode lets them in"
        if features & STRIPS_VLANS:
            yield f"{name}: octets of received VLAN tags are not counted unless you run: ethtool -K {name} rxvlan off"
        if self.mode == DRIVER and self.device.pci and driver not in _COUNTING:
            yield f"{name}: frames that its ring refuses count as sent; --skb counts them apart"

    def _sees_refusals(self) -> bool:
        return bool(self.device.pci) and (self.mode == SKB or self.device.driver in _COUNTING)

    def _update_refusals(self, attempted: int, now: LinkCounters) -> None:
        if self._sees_refusals():
            resting = not self.busy and self.device.driver not in _COUNTING
            self.refusals.see(attempted, now.tx_packets - self.first.tx_packets, resting)

    def overrun(self) -> int:
        """Count frames that the driver has not taken because its ring was full."""
        if self._sees_refusals():
            moved = self.moved()
            self._update_refusals(moved.packets - moved.refused, self.device.counters())
        return self.refusals.known

    def counters(self, moved: Moved) -> EngineCounters:
        now = self.device.counters()
        attempted = moved.packets - moved.refused
        self._update_refusals(attempted, now)
        sent = attempted - self.refusals.unsent
        errors = moved.refused + self.refusals.known
        if self.device.driver == "veth":
            # Frames that veth neither carried nor dropped, as where its peer takes none at all; up to a batch may be on
            # its way. Dropped ones were sent: the peer's receive ring was full (on hardware the DUT's rx-miss).
            seen = now.tx_packets - self.first.tx_packets + now.tx_dropped - self.first.tx_dropped
            errors += sent - seen if sent - seen > 1024 else 0
        dropped = 0 if self.device.driver in _DROPPING else now.rx_dropped - self.first.rx_dropped
        octets = moved.octets * sent // attempted if sent < attempted else moved.octets
        # could go back: ``moved`` was read before the driver's totals, and frames differ in size
        self.most = most = tuple(map(max, self.most, (sent, octets, errors)))
        return EngineCounters(
            opackets=most[0],
            obytes=most[1],
            ipackets=moved.received_packets,
            ibytes=moved.received_octets,
            ierrors=dropped + now.rx_errors - self.first.rx_errors,
            oerrors=most[2],
        )

    def drop_rows(self) -> None:
        if self.rows is not None:
            self.rows.close()
        self.rows = None


def map_rows(rows: bytes) -> bpf.SharedMap | None:
    """Put what changes in a plan's frames where the program reads it; None if nothing changes."""
    if not rows:
        return None
    shared = bpf.SharedMap("trexbench_rows", len(rows))
    with shared.words.cast("B") as memory:
        memory[: len(rows)] = rows
    return shared


def open_port(
    name: str,
    number: int,
    devices: bpf.MapTable,
    modes: Sequence[str],
    limit_pps: float | None,
    opened: contextlib.ExitStack,
) -> KernelPort:
    """Attach the receiver to an interface of the calling thread's namespace; EngineError if that fails.

    ``opened`` closes what this opens.
    """
    device = opened.enter_context(contextlib.closing(NetDevice(name)))
    if not device.is_up:
        raise EngineError(f"interface {name} is down; bring it up: ip link set {name} up")
    cpus = possible_cpus()
    sizes = {"port": 8 * PORT_WORDS_MAX, "rx": 8 * ReceivedWord.LINE_WORDS * cpus}
    sizes |= {"timed": xdp_latency.map_bytes(cpus), "marked": xdp_count.map_bytes(cpus)}
    memory, received, timed, marked = (
        opened.enter_context(contextlib.closing(bpf.SharedMap(f"trexbench_{word}", size)))
        for word, size in sizes.items()
    )
    program = bpf.load_xdp("trexbench_rx", xdp_latency.receiver(received.fd, timed.fd, marked.fd, cpus))
    try:
        mode, lack = _attach(program, device, modes, opened)
    finally:
        os.close(program)
    devices.put(number, device.ifindex)
    port = KernelPort(device, limit_pps, memory, received, timed, marked, device.counters(), cpus, mode, lack)
    opened.callback(port.drop_rows)
    return port


def _attach(program: int, device: NetDevice, modes: Sequence[str], opened: contextlib.ExitStack) -> tuple[str, str]:
    """Attach in the first mode that the driver can; return the mode, read back, and why an earlier one failed."""
    lack = ""
    for mode in modes:
        try:
            opened.callback(os.close, bpf.attach_xdp(program, device.ifindex, _FLAGS[mode]))
        except OSError as error:
            if error.errno in _NO_MATTER_OF_MODE or mode == modes[-1]:
                raise EngineError(_attach_error(error, device)) from None
            lack = str(error.strerror)
        else:
            break
    if (read := _ATTACHED.get(number := device.xdp_attached)) is None:
        raise EngineError(f"interface {device.name}: the kernel reports no mode of its XDP program (but {number})")
    return read, lack


_NO_MATTER_OF_MODE = (errno.EPERM, errno.EACCES, errno.EBUSY, errno.EEXIST)


def _attach_error(error: OSError, device: NetDevice) -> str:
    name = device.name
    if error.errno in (errno.EPERM, errno.EACCES):
        return f"interface {name}: not permitted; run as root (CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW)"
    if error.errno in (errno.EBUSY, errno.EEXIST):
        return f"interface {name} already has an XDP program; detach it: ip link set {name} xdp off"
    return f"interface {name}: cannot attach the XDP receiver ({error.strerror}); its MTU is {device.mtu}"
