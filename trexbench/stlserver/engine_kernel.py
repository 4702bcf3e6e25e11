"""Real packets on Linux interfaces at kernel speed: an Engine whose sender is a BPF program in live-frame mode.

One thread sends for all ports; received frames are counted and dropped by an XDP program on each port. What
sends and counts belongs to file descriptors of this process: it ends with the process, however that ends.

Received are all frames with a unicast destination, whatever their content. Broadcast and multicast (a router's
ARP, IPv6 neighbour discovery) are dropped uncounted: the ports belong to the engine alone, as they would to
TRex. cpu_percent is the sender's time less that of the turns with nothing to send: 100 exactly when a packet is
overdue at every turn (or ``limit_pps`` is reached). Frames that the peer's ring refused count as sent, as on a
wire; ``peer_ring_drops`` tells their number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

from trexbench.stlserver import bpf
from trexbench.stlserver.engine import EngineError, EngineLoad, EnginePort, LatencyTotals, PortCounters, StreamSpec
from trexbench.stlserver.field_engine import FlowVar
from trexbench.stlserver.kernel_port import KernelPort, Moved, open_port
from trexbench.stlserver.kernel_timing import Timing, totals
from trexbench.stlserver.netdev import inside
from trexbench.stlserver.sender import Sender
from trexbench.stlserver.xdp_layout import FRACTION_BITS, Core, Gate
from trexbench.stlserver.xdp_plan import PortPlan, plan_port
from trexbench.stlserver.xdp_program import SenderProgram

DEFAULT_BATCH = 64
DEFAULT_NICENESS = -20
_FRAME_ROOM = 3400
_STOP_SETTLES_NS = 100_000
_STOP_AT_MOST_S = 0.05
_LOAD_WINDOW_S = 0.5
_SNAPSHOT_LASTS_S = 0.005


class KernelEngine:
    """Engine on real interfaces (see the Protocol in engine.py)."""

    def __init__(
        self,
        interfaces: Sequence[str],
        *,
        speed_bps: float,
        netns: str | None = None,
        cpu: int | None = None,
        dst_macs: Mapping[int, str] | Sequence[str | None] | None = None,
        limit_pps: float | None = None,
        batch: int = DEFAULT_BATCH,
        niceness: int = DEFAULT_NICENESS,
        random_seed: int | None = None,
    ) -> None:
        """cpu: pin the sender there. limit_pps: per port, send no faster (a weak tester, for tests).

        batch: turns between two looks at the clock of the kernel's scheduler, 1 to 256. random_seed: of the
        field engine's ``random``; None draws one for every start. Raises EngineError, in one line.
        """
        bpf.require_kernel()
        if not interfaces:
            raise EngineError("no interfaces are named; name at least one port")
        if cpu is not None and cpu not in os.sched_getaffinity(0):
            raise EngineError(f"CPU {cpu} is not usable here; usable: {sorted(os.sched_getaffinity(0))}")
        if not 1 <= batch <= 256:
            raise EngineError(f"batch {batch} must be from 1 to 256")
        self._seed, self._limit_pps = random_seed, limit_pps
        self._ports: list[KernelPort] = []
        self._timing = Timing()
        self._core: bpf.SharedMap | None = None
        self._sender: Sender | None = None
        self._epoch_ns = time.monotonic_ns()
        self._load_mark = (self._epoch_ns, 0, [0] * len(interfaces))
        self._cpu_percent = 0.0
        self._snapshot: dict[int, Moved] = {}
        self._snapshot_until = 0.0
        try:
            self._ports = inside(netns, lambda: _open_all(interfaces, limit_pps))
            self._core = bpf.SharedMap("trexbench_core", 64)
            ifindex = self._ports[0].device.ifindex
            self._sender = Sender(ifindex, netns=netns, cpu=cpu, batch=batch, niceness=niceness)
        except BaseException:
            self.close()
            raise
        macs = dict(dst_macs) if isinstance(dst_macs, Mapping) else dict(enumerate(dst_macs or ()))
        self._described = tuple(
            EnginePort(number, port.device.name, port.device.driver, speed_bps, port.device.mac, macs.get(number))
            for number, port in enumerate(self._ports)
        )

    @property
    def ports(self) -> Sequence[EnginePort]:
        return self._described

    def check(self, port: int, stream: StreamSpec) -> None:
        state = self._ports[port]
        size, most = len(stream.packet), min(state.device.mtu + 14, _FRAME_ROOM)
        if not 14 <= size <= most:
            raise EngineError(
                f"stream {stream.stream_id}: a packet of {size} bytes does not fit port {port} "
                f"({state.device.name}, MTU {state.device.mtu}: 14 to {most} bytes)"
            )
        alone = StreamSpec(**{**vars(stream), "next_stream_id": -1})
        plan_port(state.device.ifindex, [alone], seed=0)

    def start(self, port: int, streams: Sequence[StreamSpec], factor: float, duration_s: float | None) -> None:
        state, sender = self._ports[port], self._need_sender()
        if not streams:
            raise EngineError(f"port {port} has no streams to send")
        if not state.device.carrier:
            raise EngineError(f"port {port} ({state.device.name}) has no link")
        limited, marks = self._limit_pps is not None, self._timing.reserve(port, streams, self._ports)
        plan = plan_port(state.device.ifindex, streams, limited=limited, seed=self._seed, marks=marks)
        self.stop(port)
        self._timing.activate(plan, state.plan, self._ports)
        if state.plan is not None:
            state.retire()
        if not any(other.sending or other.gate == Gate.PAUSED for other in self._ports):
            sender.rest()
        state.specs = tuple(streams)
        state.prepare(plan, factor, duration_s)
        running = [
            item
            for item in self._ports
            if item.plan is not None and (item is state or item.sending or item.gate == Gate.PAUSED)
        ]
        size = max(item.plan.frame_size for item in running if item.plan is not None)
        if sender.frame_size < size:
            sender.rest()
        else:
            size = sender.frame_size
        self._load_program(running, size)
        state.reported = False
        state.gate = Gate.ARMED
        if not sender.frame_size:
            self._mark_load()
            sender.go(size)

    def _need_sender(self) -> Sender:
        if self._sender is None:
            raise EngineError("the packet engine is closed")
        if self._sender.failure is not None:
            raise EngineError(f"the packet engine has failed: {self._sender.failure}")
        return self._sender

    def _load_program(self, running: Sequence[KernelPort], size: int) -> None:
        core, sender = self._core, self._need_sender()
        assert core is not None
        plans: list[tuple[PortPlan, int]] = []
        lists: dict[tuple[int, int, int], int] = {}
        for number, port in enumerate(running):
            assert port.plan is not None
            plans.append((port.plan, port.memory.fd))
            lists.update(_fill_lists(number, port))
        program = SenderProgram(
            plans,
            core_fd=core.fd,
            ingress_ifindex=sender.ifindex,
            frame_size=size,
            epoch_ns=self._epoch_ns,
            lists=lists,
        )
        descriptor = bpf.load_xdp("trexbench_send", program.code())
        sender.put(descriptor)
        os.close(descriptor)

    def update(self, port: int, factor: float) -> None:
        self._ports[port].update(factor)

    def pause(self, port: int) -> None:
        state = self._ports[port]
        if state.sending:
            state.pause()
            asked_ns = time.monotonic_ns()
            self._await(lambda: self._turned_since(asked_ns))

    def resume(self, port: int) -> None:
        state = self._ports[port]
        if state.gate == Gate.PAUSED:
            state.resume()

    def stop(self, port: int) -> None:
        state = self._ports[port]
        self._snapshot = {}
        state.reported = True
        if state.gate != Gate.CLOSED:
            self._shut(state)
        self._rest_if_idle()

    def _shut(self, state: KernelPort) -> None:
        """Close the gate for good: the program may have been about to open it, hence the loop."""
        while True:
            state.gate = Gate.CLOSED
            asked_ns = time.monotonic_ns()
            if not self._await(lambda asked_ns=asked_ns: self._turned_since(asked_ns)):  # type: ignore[misc]
                state.gate = Gate.CLOSED
                self._need_sender().rest()
            if state.gate == Gate.CLOSED:
                return

    def _turned_since(self, asked_ns: int) -> bool:
        """Whether the sender has looked at the clock so long after ``asked_ns`` that its batch is out too."""
        if self._sender is None or not self._sender.frame_size or self._core is None:
            return True
        now_ns = (int(self._core.words[Core.NOW]) >> FRACTION_BITS) + self._epoch_ns
        return now_ns > asked_ns + _STOP_SETTLES_NS

    @staticmethod
    def _await(condition: Callable[[], bool]) -> bool:
        end = time.monotonic() + _STOP_AT_MOST_S
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.0002)
        return True

    def _rest_if_idle(self) -> None:
        busy = any(port.sending or port.gate == Gate.PAUSED for port in self._ports)
        if self._sender is not None and not busy and self._sender.frame_size:
            self._sender.rest()

    def poll(self) -> Sequence[int]:
        ended = []
        failed = self._sender is not None and self._sender.failure is not None
        for number, port in enumerate(self._ports):
            if not port.reported and (port.gate == Gate.ENDED or failed):
                port.reported = True
                port.gate = Gate.CLOSED
                ended.append(number)
        if ended:
            self._rest_if_idle()
        return ended

    def counters(self, port: int) -> PortCounters:
        """Ports asked for one after the other get counts of one instant: loss is a difference of two ports."""
        if port not in self._snapshot or time.monotonic() > self._snapshot_until:
            self._snapshot_until = time.monotonic() + _SNAPSHOT_LASTS_S
            self._snapshot = {number: state.moved() for number, state in enumerate(self._ports)}
        return self._ports[port].counters(self._snapshot.pop(port))

    def latency(self, port: int) -> Mapping[int, LatencyTotals]:
        return totals(port, self._ports)

    def peer_ring_drops(self, port: int) -> int:
        """Frames sent (they count in opackets) that the receiver behind the port had no room for."""
        return self._ports[port].peer_ring_drops()

    def waited_for_cpu_ns(self) -> int:
        """Time in which the sender was ready but something else had its CPU: slots are lost then."""
        return self._sender.waited_ns() if self._sender is not None else 0

    def _mark_load(self) -> None:
        assert self._core is not None
        self._load_mark = (
            time.monotonic_ns(),
            int(self._core.words[Core.IDLE_TIME]),
            [port.moved().packets for port in self._ports],
        )

    def load(self) -> EngineLoad:
        lost = 0.0
        for port in self._ports:
            port.settle_losses()
            lost += port.totals.lost_slots
        if self._core is not None and self._sender is not None:
            self._measure_load()
        return EngineLoad(self._cpu_percent, 0.0, round(lost))

    def _measure_load(self) -> None:
        assert self._core is not None and self._sender is not None
        then_ns, idle_before, sent_before = self._load_mark
        passed_ns = time.monotonic_ns() - then_ns
        if not self._sender.frame_size:
            self._cpu_percent = 0.0
            self._mark_load()
            return
        if passed_ns < _LOAD_WINDOW_S * 1e9:
            return
        idle_ns = (int(self._core.words[Core.IDLE_TIME]) - idle_before) / (1 << FRACTION_BITS)
        self._cpu_percent = max(0.0, min(100.0, 100.0 * (1.0 - idle_ns / passed_ns)))
        if self._limit_pps:
            for port, before in zip(self._ports, sent_before, strict=True):
                rate = (port.moved().packets - before) / passed_ns * 1e9
                self._cpu_percent = min(100.0, max(self._cpu_percent, 100.0 * rate / self._limit_pps))
        self._mark_load()

    def link_up(self, port: int) -> bool:
        return self._ports[port].device.carrier

    def set_promiscuous(self, port: int, enabled: bool) -> None:
        self._ports[port].device.set_promiscuous(enabled)

    def close(self) -> None:
        for port in self._ports:
            port.gate = Gate.CLOSED
        if self._sender is not None:
            self._sender.close()
            self._sender = None
        for port in self._ports:
            port.close()
        self._ports = []
        if self._core is not None:
            self._core.close()
            self._core = None


def _open_all(interfaces: Sequence[str], limit_pps: float | None) -> list[KernelPort]:
    ports: list[KernelPort] = []
    try:
        for name in interfaces:
            ports.append(open_port(name, limit_pps))
    except BaseException:
        for port in ports:
            port.close()
        raise
    return ports


def _fill_lists(number: int, port: KernelPort) -> dict[tuple[int, int, int], int]:
    """A map for every value list of the port's streams, keyed as SenderProgram wants them."""
    found: dict[tuple[int, int, int], int] = {}
    for stream in port.plan.streams if port.plan else ():
        for item in stream.program.instructions:
            if not isinstance(item, FlowVar) or not item.values:
                continue
            key = (stream.base, item.variable.word)
            if key not in port.lists:
                listing = bpf.SharedMap("trexbench_list", 8 * len(item.values))
                for index, value in enumerate(item.values):
                    listing.words[index] = value
                port.lists[key] = listing
            place = (number, *key)
            found[place] = port.lists[key].fd
    return found
