"""Real packets on Linux interfaces at kernel speed: an Engine whose sender is a BPF program in live-frame mode.

One thread sends for all ports; an XDP program on each port counts and drops the received frames. All programs are
held by file descriptors of this process, so they end with it, even when it is killed.

All frames with a unicast destination count as received, whatever their content. Broadcast and multicast (a router's
ARP, IPv6 neighbour discovery) are dropped uncounted: the ports belong to the engine alone, as they would to TRex.
cpu_percent is the sender's time without its idle turns: 100 exactly when a packet is overdue at every turn (or
``limit_pps`` is reached). Frames that the peer's ring refused count as sent, as on a wire.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..engine import (
    EngineCounters,
    EngineError,
    EngineLoad,
    EnginePort,
    FlowTotals,
    LatencyTotals,
    PortLoad,
    StreamSpec,
)
from ..wiring import partners
from . import bpf, xdp_count
from .netdev import inside
from .port import KernelPort, Moved, map_rows, open_port
from .sender import Sender
from .timing import Timing, totals
from .xdp_layout import FRACTION_BITS, CoreWord, Gate
from .xdp_plan import plan_port
from .xdp_program import SenderProgram

_FRAME_ROOM = 3400
_STOP_SETTLES_NS = 100_000
_STOP_AT_MOST_NS = 50_000_000
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
        dst_macs: Sequence[str | None] | None = None,
        limit_pps: float | None = None,
        random_seed: int | None = None,
    ) -> None:
        """cpu: pin the sender there. dst_macs: by port, None where unknown. limit_pps: per port, send no faster (a weak
        tester, for tests). random_seed: of the field engine's ``random``; None draws one for every start.

        Raises EngineError, in one line.
        """
        bpf.require_kernel()
        if not interfaces:
            raise EngineError("no interfaces are named; name at least one port")
        if cpu is not None and cpu not in os.sched_getaffinity(0):
            raise EngineError(f"CPU {cpu} is not usable here; usable: {sorted(os.sched_getaffinity(0))}")
        self._seed, self._limit_pps = random_seed, limit_pps
        self._timing = Timing()
        self._epoch_ns = time.monotonic_ns()
        self._load_mark = (self._epoch_ns, 0, [0] * len(interfaces))
        self._cpu_percent = [0.0] * len(interfaces)
        self._snapshot: dict[int, Moved] = {}
        self._snapshot_until = 0.0
        self._marks: set[int] = set()
        with contextlib.ExitStack() as opened:
            self._ports = inside(netns, lambda: [open_port(name, limit_pps, opened) for name in interfaces])
            self._core = opened.enter_context(contextlib.closing(bpf.SharedMap("trexbench_core", 64)))
            sender = Sender(self._ports[0].device.ifindex, netns=netns, cpu=cpu)
            self._sender = opened.enter_context(contextlib.closing(sender))
            self._opened = opened.pop_all()
        partner_of = partners(len(interfaces))
        self._described = tuple(
            EnginePort(
                index=number,
                name=port.device.name,
                driver=port.device.driver,
                speed_bps=speed_bps,
                src_mac=port.device.mac,
                dst_mac=dst_macs[number] if dst_macs else None,
                partner=partner_of.get(number),
            )
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
        plan_port(state.device.ifindex, [replace(stream, next_stream_id=-1)], seed=0)

    def start(self, port: int, streams: Sequence[StreamSpec], factor: float, duration_s: float | None) -> None:
        state, sender = self._ports[port], self._sender
        if sender.failure is not None:
            raise EngineError(f"the packet engine has failed: {sender.failure}")
        if not streams:
            raise EngineError(f"port {port} has no streams to send")
        if not state.device.carrier:
            raise EngineError(f"port {port} ({state.device.name}) has no link")
        limited, marks = self._limit_pps is not None, self._timing.reserve(port, streams, self._ports)
        plan = plan_port(state.device.ifindex, streams, limited=limited, seed=self._seed, marks=marks)
        rows = map_rows(plan.rows())
        self.stop(port)
        self._timing.activate(plan, state.plan, self._ports)
        self._marks.update(spec.mark for spec in streams if spec.mark is not None)
        if state.plan is not None:
            state.retire()
        if not any(other.busy for other in self._ports):
            sender.rest()
        state.rows = rows
        state.prepare(plan, factor, duration_s)
        size = self._load_program([item for item in self._ports if item is state or item.busy])
        state.reported = False
        state.gate = Gate.ARMED
        if not sender.frame_size:
            self._mark_load()
            sender.go(size)

    def _load_program(self, running: Sequence[KernelPort]) -> int:
        """Give the sender the program of these ports; returns the size of the frames that it begins with."""
        plans = [
            (item.plan, item.memory.fd, item.rows.fd if item.rows else -1) for item in running if item.plan is not None
        ]
        size = max(self._sender.frame_size, *(plan.frame_size for plan, *_ in plans))
        if self._sender.frame_size < size:
            self._sender.rest()
        program = SenderProgram(
            plans,
            core_fd=self._core.fd,
            ingress_ifindex=self._sender.ifindex,
            frame_size=size,
            epoch_ns=self._epoch_ns,
        )
        descriptor = bpf.load_xdp("trexbench_send", program.code())
        self._sender.slot.put(descriptor)
        os.close(descriptor)
        return size

    def update(self, port: int, factor: float) -> None:
        self._ports[port].update(factor)

    def pause(self, port: int) -> None:
        state = self._ports[port]
        if state.sending:
            state.pause()
            self._await_turn()

    def resume(self, port: int) -> None:
        state = self._ports[port]
        if state.gate == Gate.PAUSED:
            state.resume()

    def stop(self, port: int) -> None:
        state = self._ports[port]
        self._snapshot = {}
        state.reported = True
        while state.gate != Gate.CLOSED:
            state.gate = Gate.CLOSED
            # the program may have been about to open the gate: closed it is if it still is after the turn
            if not self._await_turn():
                self._sender.rest()
                state.gate = Gate.CLOSED
        self._rest_if_idle()

    def _await_turn(self) -> bool:
        """Wait until the sender has looked at the clock so late that its batch is out too; False: it never does."""
        asked_ns = time.monotonic_ns()
        while self._sender.frame_size:
            now_ns = time.monotonic_ns()
            seen_ns = (int(self._core.words[CoreWord.NOW]) >> FRACTION_BITS) + self._epoch_ns
            if seen_ns > asked_ns + _STOP_SETTLES_NS:
                return True
            if now_ns > asked_ns + _STOP_AT_MOST_NS:
                return False
            time.sleep(0.0002)
        return True

    def _rest_if_idle(self) -> None:
        if self._sender.frame_size and not any(port.busy for port in self._ports):
            self._sender.rest()

    def poll(self) -> Sequence[int]:
        ended = []
        for number, port in enumerate(self._ports):
            if not port.reported and (port.gate == Gate.ENDED or self._sender.failure is not None):
                port.reported = True
                port.gate = Gate.CLOSED
                ended.append(number)
        if ended:
            self._rest_if_idle()
        return ended

    def counters(self, port: int) -> EngineCounters:
        """Ports asked for one after the other get counts of one instant: loss is a difference of two ports."""
        if port not in self._snapshot or time.monotonic() > self._snapshot_until:
            self._snapshot_until = time.monotonic() + _SNAPSHOT_LASTS_S
            self._snapshot = {number: state.moved() for number, state in enumerate(self._ports)}
        return self._ports[port].counters(self._snapshot.pop(port))

    def latency(self, port: int) -> Mapping[int, LatencyTotals]:
        return totals(port, self._ports, self._described[port].partner)

    def flows(self) -> Mapping[int, Mapping[int, FlowTotals]]:
        """Memory only, what arrived before what was sent: a frame on its way never counts as one too many."""
        received = [xdp_count.received(port.marked.words, self._marks, port.cpus) for port in self._ports]
        sent = [port.sent_flows() for port in self._ports]
        return {
            port: {mark: FlowTotals(*sent[port].get(mark, (0, 0)), *arrived[mark]) for mark in arrived}
            for port, arrived in enumerate(received)
        }

    def _mark_load(self) -> None:
        self._load_mark = (
            time.monotonic_ns(),
            int(self._core.words[CoreWord.IDLE_TIME]),
            [port.moved().packets for port in self._ports],
        )

    def load(self) -> EngineLoad:
        """All ports share the sender's core; a port at its ``limit_pps`` is as busy as can be."""
        for port in self._ports:
            port.settle_losses()
        self._measure_load()
        figures = enumerate(zip(self._cpu_percent, self._ports, strict=True))
        return EngineLoad({number: PortLoad(cpu, round(port.lost_slots)) for number, (cpu, port) in figures})

    def _measure_load(self) -> None:
        then_ns, idle_before, sent_before = self._load_mark
        passed_ns = time.monotonic_ns() - then_ns
        if not self._sender.frame_size:
            self._cpu_percent = [0.0] * len(self._ports)
            self._mark_load()
            return
        if passed_ns < _LOAD_WINDOW_S * 1e9:
            return
        idle_ns = (int(self._core.words[CoreWord.IDLE_TIME]) - idle_before) / (1 << FRACTION_BITS)
        self._cpu_percent = [max(0.0, min(100.0, 100.0 * (1.0 - idle_ns / passed_ns)))] * len(self._ports)
        if self._limit_pps:
            for number, (port, before) in enumerate(zip(self._ports, sent_before, strict=True)):
                rate = (port.moved().packets - before) / passed_ns * 1e9
                self._cpu_percent[number] = min(100.0, max(self._cpu_percent[number], 100.0 * rate / self._limit_pps))
        self._mark_load()

    def link_up(self, port: int) -> bool:
        return self._ports[port].device.carrier

    def set_promiscuous(self, port: int, enabled: bool) -> None:
        self._ports[port].device.set_promiscuous(enabled)

    def close(self) -> None:
        ports, self._ports = self._ports, []
        for port in ports:
            port.gate = Gate.CLOSED
        self._opened.close()
