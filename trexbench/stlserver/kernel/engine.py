"""Real packets on Linux interfaces at kernel speed: an Engine whose sender is a BPF program in live-frame mode.

One thread sends for all ports, or one for each pair of them; an XDP program on each port counts and drops the received
frames. File descriptors of this process hold all programs, so they end with it, even when it is killed.

All frames with a unicast destination count as received, whatever their content. Broadcast and multicast (a router's
ARP, IPv6 neighbour discovery) are dropped uncounted: the ports belong to the engine alone, as they would to TRex.
cpu_percent is the sender's time without its idle turns: 100 exactly if a packet is overdue at every turn (or
``limit_pps`` is reached). Frames that the peer's ring refused count as sent, as on a wire.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence

from ..engine import (
    EngineCounters,
    EngineError,
    EnginePort,
    FlowTotals,
    LatencyTotals,
    PortLoad,
    StreamSpec,
    core_count,
    core_of,
    partners,
)
from . import bpf, xdp_count
from .core import SendingCore
from .netdev import NetDevice, inside
from .port import MODES, SKB, KernelPort, Moved, map_rows, open_port
from .timing import Timing, totals
from .xdp_layout import Gate
from .xdp_plan import plan_port

_FRAME_ROOM = 3400
_SNAPSHOT_LASTS_S = 0.005
_ASSUMED_SPEED_BPS = 10e9
_LINKS_WITHIN_S = 5.0
_LINKS_STAY_S = 1.0  # the kernel reports a link that went down up to a second later


class KernelEngine:
    """Engine on real interfaces (see the Protocol in engine.py)."""

    def __init__(
        self,
        interfaces: Sequence[str],
        *,
        speed_bps: float | None = None,  # None: each NIC's own
        netns: str | None = None,
        cpus: Sequence[int] = (),  # share the pairs of ports evenly; without any, one sender runs on any CPU
        dst_macs: Sequence[str | None] | None = None,
        limit_pps: float | None = None,  # of each port, to act as a weak tester in tests
        random_seed: int | None = None,  # of the field engine's ``random``; None draws one for every start
        modes: Sequence[str] = MODES,  # of port.MODES, in the order to be tried
    ) -> None:
        """Open the interfaces; EngineError in one line."""
        bpf.require_kernel()
        _check_cpus(interfaces, cpus)
        self._seed, self._timing = random_seed, Timing()
        self._snapshot: dict[int, Moved] = {}
        self._snapshot_until = 0.0
        self._marks: set[int] = set()
        with contextlib.ExitStack() as opened:
            devices = opened.enter_context(contextlib.closing(bpf.device_table(len(interfaces))))

            def open_all() -> list[KernelPort]:
                return [open_port(name, at, devices, modes, limit_pps, opened) for at, name in enumerate(interfaces)]

            self._ports = inside(netns, open_all)
            _await_links([port.device for port in self._ports])
            count = max(1, len(cpus))
            self._cores = [
                opened.enter_context(contextlib.closing(SendingCore(self._ports_of(at, count), devices, cpu=cpu)))
                for at, cpu in enumerate(cpus or [None])
            ]
            self._opened = opened.pop_all()
        self.ports = tuple(
            EnginePort(
                index=number,
                name=port.device.name,
                driver=port.device.driver,
                speed_bps=speed_bps or port.device.speed_bps or _ASSUMED_SPEED_BPS,
                src_mac=port.device.mac,
                dst_mac=dst_macs[number] if dst_macs else None,
                partner=partners(len(self._ports)).get(number),
                mode=port.mode,
                pci=port.device.pci,
                remarks=tuple(port.remarks(speed_bps is None)),
            )
            for number, port in enumerate(self._ports)
        )

    def _ports_of(self, core: int, cores: int) -> list[KernelPort]:
        return [port for number, port in enumerate(self._ports) if core_of(number) % cores == core]

    def _core(self, port: int) -> SendingCore:
        return self._cores[core_of(port) % len(self._cores)]

    def check(self, port: int, stream: StreamSpec) -> None:
        state = self._ports[port]
        size, most = len(stream.packet), min(state.device.mtu + 14, _FRAME_ROOM)
        if not 14 <= size <= most:
            raise stream.refusal(
                f"a packet of {size} bytes does not fit port {port} "
                f"({state.device.name}, MTU {state.device.mtu}: 14 to {most} bytes)"
            )
        plan_port(port, [stream], seed=0)

    def start(self, port: int, streams: Sequence[StreamSpec], factor: float, duration_s: float | None) -> None:
        state, failure = self._ports[port], self._core(port).failure
        if failure is not None:
            raise EngineError(f"the packet engine has failed: {failure}")
        if not state.device.carrier:
            raise EngineError(f"port {port} ({state.device.name}) has no link")
        core, skb = self._core(port), state.mode == SKB
        limited, marks = state.limit_pps is not None, self._timing.reserve(port, streams, self._ports)
        plan = plan_port(port, streams, limited=limited, skb=skb, seed=self._seed, marks=marks)
        rows = map_rows(plan.rows())
        self.stop(port)
        self._timing.activate(plan, state.plan, self._ports)
        self._marks.update(spec.mark for spec in streams if spec.mark is not None)
        if state.plan is not None:
            state.retire()
        state.rows = rows
        state.prepare(plan, factor, duration_s)
        core.start(state)

    def update(self, port: int, factor: float) -> None:
        self._ports[port].update(factor)

    def pause(self, port: int) -> None:
        state = self._ports[port]
        if state.sending:
            self._core(port).pause(state)

    def resume(self, port: int) -> None:
        state = self._ports[port]
        if state.gate == Gate.PAUSED:
            state.resume()

    def stop(self, port: int) -> None:
        state = self._ports[port]
        self._snapshot = {}
        state.reported = True
        self._core(port).stop(state)

    def poll(self) -> Sequence[int]:
        ended = []
        for number, port in enumerate(self._ports):
            if not port.reported and (port.gate == Gate.ENDED or self._core(number).failure is not None):
                port.reported = True
                port.gate = Gate.CLOSED
                ended.append(number)
        for core in self._cores if ended else ():
            core.rest_if_idle()
        return ended

    def counters(self, port: int) -> EngineCounters:
        """Count a port; ports read in succession get counts of one instant, since loss is the difference of two."""
        if port not in self._snapshot or time.monotonic() > self._snapshot_until:
            self._snapshot_until = time.monotonic() + _SNAPSHOT_LASTS_S
            self._snapshot = {number: state.moved() for number, state in enumerate(self._ports)}
        return self._ports[port].counters(self._snapshot.pop(port))

    def latency(self, port: int) -> Mapping[int, LatencyTotals]:
        return totals(port, self._ports, self.ports[port].partner)

    def flows(self) -> Mapping[int, Mapping[int, FlowTotals]]:
        """Count by mark: arrivals first, so that frames on their way never show as more received than sent."""
        received = [xdp_count.received(port.marked.words, self._marks, port.cpus) for port in self._ports]
        sent = [port.sent_flows() for port in self._ports]
        return {
            port: {mark: FlowTotals(*sent[port].get(mark, (0, 0)), *arrived[mark]) for mark in arrived}
            for port, arrived in enumerate(received)
        }

    def load(self) -> Mapping[int, PortLoad]:
        loads = [iter(core.load()) for core in self._cores]
        return {port: next(loads[core_of(port) % len(loads)]) for port in range(len(self._ports))}

    def link_up(self, port: int) -> bool:
        return self._ports[port].device.carrier

    def set_promiscuous(self, port: int, enabled: bool) -> None:
        self._ports[port].device.set_promiscuous(enabled)

    def close(self) -> None:
        ports, self._ports = self._ports, []
        for port in ports:
            port.gate = Gate.CLOSED
        self._opened.close()


def _check_cpus(interfaces: Sequence[str], cpus: Sequence[int]) -> None:
    usable = os.sched_getaffinity(0)
    for cpu in cpus:
        if cpu not in usable:
            raise EngineError(f"CPU {cpu} is not usable here; usable: {sorted(usable)}")
    if len(cpus) > (pairs := core_count(len(interfaces))):
        raise EngineError(f"{len(cpus)} CPUs to send on {len(interfaces)} ports: one sends for a pair; name {pairs}")


def _await_links(devices: Sequence[NetDevice]) -> None:
    """Wait until all links stay up, since attaching resets some NICs; go on without those that do not come up."""
    begun_s = down_s = now_s = time.monotonic()
    nics = [device for device in devices if device.driver not in ("veth", "tun")]
    while nics and now_s - begun_s < _LINKS_WITHIN_S and now_s - down_s < _LINKS_STAY_S:
        time.sleep(0.05)
        now_s = time.monotonic()
        if not all(device.carrier for device in nics):
            down_s = now_s
