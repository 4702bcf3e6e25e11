"""An engine for the embedded server that sends nothing: it calculates what a simulated router does with the streams.

Time advances in steps of a fixed grid, and up to every change (start, update, stop, a link). Reading never splits a
step, so the counts do not depend on when and how often they are read: a reading between two lines of the grid is taken
from a copy, which runs up to that moment and is then discarded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from math import floor

from ..config.twin import TesterSpec
from ..core.dut.rss import headers_of
from ..stlserver.engine import (
    EngineCounters,
    EngineError,
    FlowTotals,
    LatencyTotals,
    PortLoad,
    StreamSpec,
    partners,
    simulated_ports,
)
from .latency import LatencyGroup
from .noise import drawn
from .tester import PortTraffic, Tally, frame_bytes
from .world import FrameClass, Router, TesterPort, World

STEP_S = 0.05  # distance between the grid's lines
SAME_INSTANT_S = 1e-9


class SimEngine:
    """Ports whose frames go through ``router``, which connects 0 and 1, 2 and 3, and so on.

    speed_bps: L1 speed of each port. seed: of the moments at which frames are timed. step_s: as STEP_S.
    """

    def __init__(
        self,
        router: Router,
        *,
        ports: int = 2,
        speed_bps: float = 10e9,
        clock: Callable[[], float] = time.monotonic,
        tester: TesterSpec | None = None,
        seed: int = 1,
        step_s: float = STEP_S,
    ) -> None:
        self._clock, self._origin_s = clock, clock()
        self._seed, self._step_s, tester = seed, step_s, tester or TesterSpec()
        self.ports = simulated_ports("sim", ports, speed_bps)
        own = [TesterPort.of(tester, port, speed_bps) for port in range(ports)]
        self._world = World(router, own, partners(ports))
        self._view: tuple[float, World] | None = None
        self._shown = [EngineCounters() for _ in self.ports]
        self._shown_flows: list[dict[int, FlowTotals]] = [{} for _ in self.ports]
        self._queue_full = dict.fromkeys(range(ports), 0)
        self._starts = 0
        self._ended: list[int] = []

    def check(self, port: int, stream: StreamSpec) -> None:
        if any(instruction["type"] == "trim_pkt_size" for instruction in stream.instructions):
            raise EngineError("a simulation cannot change the packets' size (trim_pkt_size)")

    def start(self, port: int, streams: Sequence[StreamSpec], factor: float, duration_s: float | None) -> None:
        world, state = self._world, self._world.ports[port]
        flows = {spec.stream_id: self._flow(port, spec) for spec in streams}
        self.settle(split=True)
        for flow in flows.values():
            world.tags.setdefault(flow, len(world.tags))
        state.flows = flows
        state.groups = {
            flow.mark: LatencyGroup(drawn(self._seed, port, flow.mark).random()) for flow in flows.values() if flow.mark
        }
        self._starts += 1
        state.tx.traffic = PortTraffic.begin(streams, factor, world.at_s, duration_s)
        state.tx.owed_s = 0.0

    def update(self, port: int, factor: float) -> None:
        self.settle(split=True)
        traffic = self._world.ports[port].tx.traffic
        if traffic is not None:
            traffic.factor = factor

    def pause(self, port: int, paused: bool = True) -> None:
        self.settle(split=True)
        traffic = self._world.ports[port].tx.traffic
        if traffic is not None:
            traffic.paused = paused

    def resume(self, port: int) -> None:
        self.pause(port, False)

    def stop(self, port: int) -> None:
        self.settle(split=True)
        self._world.ports[port].tx.traffic = None
        self._ended = [ended for ended in self._ended if ended != port]

    def poll(self) -> Sequence[int]:
        """Return the ports whose traffic has ended by the grid's last line."""
        self.settle()
        ended, self._ended = self._ended, []
        return ended

    def counters(self, port: int) -> EngineCounters:
        """Return the frames sent, received and lost by the port."""
        state = self._world_at(self.settle()).ports[port]
        counts = {"opackets": state.sent.packets, "obytes": state.sent.bytes, "ierrors": state.errors.packets}
        counts |= {"ipackets": state.received.packets, "ibytes": state.received.bytes}
        # the copy may have rounded a frame up that the original does not count yet: counters never go back
        before = self._shown[port]
        self._shown[port] = EngineCounters(**{name: max(getattr(before, name), now) for name, now in counts.items()})
        return self._shown[port]

    def latency(self, port: int) -> Mapping[int, LatencyTotals]:
        """Return the latency counters as of the grid's last line, so that a timed frame stays timed."""
        self.settle()
        world, groups = self._world, self._world.ports[port].groups
        rx_port = world.partners.get(port, port)
        return {mark[0]: group.totals(rx_port, world.kept(port, mark)) for mark, group in groups.items()}

    def flows(self) -> Mapping[int, Mapping[int, FlowTotals]]:
        for shown, port in zip(self._shown_flows, self._world_at(self.settle()).ports, strict=True):
            for mark in port.flows_sent.keys() | port.flows_received.keys():
                sent, received = (flows.get(mark, Tally()) for flows in (port.flows_sent, port.flows_received))
                now = (sent.packets, sent.bytes, received.packets, received.bytes)
                before = vars(shown.get(mark, FlowTotals())).values()
                shown[mark] = FlowTotals(*map(max, before, now))  # never back, like counters
        return {port: dict(shown) for port, shown in enumerate(self._shown_flows)}

    def load(self) -> Mapping[int, PortLoad]:
        loads = {}
        for number, port in enumerate(self._world_at(self.settle()).ports):
            self._queue_full[number] = max(self._queue_full[number], port.tx.queue_full.packets)
            loads[number] = PortLoad(cpu_percent=port.tx.cpu_percent, queue_full=self._queue_full[number])
        return loads

    def link_up(self, port: int) -> bool:
        return True

    def set_promiscuous(self, port: int, enabled: bool) -> None:
        """Change nothing: the router sends no frames but those of the streams."""

    def close(self) -> None:
        for port in self._world.ports:
            port.tx.traffic = None
        self._view = None

    def _flow(self, port: int, spec: StreamSpec) -> FrameClass:
        spread = tuple(self._world.router.spread(port, headers_of(spec.packet, spec.instructions)))
        mark = None if spec.pg_id is None else (spec.pg_id, self._starts)
        return FrameClass(port, frame_bytes(spec), spread, mark, spec.mark)

    def settle(self, split: bool = False) -> float:
        """Advance the world to the grid's last line, or with ``split`` to this moment; returns this moment.

        To be called before the router's own counters are read.
        """
        passed_s = self._clock() - self._origin_s
        line_s = round(passed_s / self._step_s) * self._step_s
        now_s = max(line_s if abs(passed_s - line_s) < SAME_INSTANT_S else passed_s, self._world.at_s)
        while (line_s := (floor(self._world.at_s / self._step_s + 1e-6) + 1) * self._step_s) <= now_s:
            self._step(line_s)
        if split and self._world.at_s < now_s:
            self._step(now_s)
        return now_s

    def _step(self, end_s: float) -> None:
        self._view = None
        self._ended += self._world.step(end_s)

    def _world_at(self, now_s: float) -> World:
        if now_s <= self._world.at_s:
            return self._world
        if self._view is None or self._view[0] != now_s:
            ahead = deepcopy(self._world)
            ahead.step(now_s)
            self._view = (now_s, ahead)
        return self._view[1]
