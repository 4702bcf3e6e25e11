"""The engine of the embedded server that simulates the DUT: streams go into a router of arithmetic and come back.

Time is cut at the lines of a fixed grid and where something is told to change (start, update, stop, a link), never
where somebody only looks: what is counted is the same however often, and when, the counters are read. A look between
two lines is taken at a copy, which is let run to that moment and thrown away.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import floor

from ..config.twin import TesterSpec
from ..stlserver.engine import EngineLoad, EnginePort, LatencyTotals, PortCounters, StreamSpec
from ..stlserver.traffic import Tally, Traffic, frame_bytes
from .headers import check_program, headers_of
from .latency import Group
from .noise import mixed
from .ports import Router
from .tester import TxPort, between, skew_of
from .world import Flow, Port, World

STEP_S = 0.05
"""Distance of the grid's lines."""
SAME_INSTANT_S = 1e-9


class SimEngine:
    """Ports whose frames go through ``router``; nothing moves, and time is what ``clock`` says.

    ports: how many. speed_bps: L1 speed of each. seed: of the tester's own irregularities. dst_macs, src_macs: by
    port; a destination that is None is one that no ARP has resolved. step_s: distance of the grid's lines.
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
        dst_macs: Sequence[str | None] | None = None,
        src_macs: Sequence[str] | None = None,
        step_s: float = STEP_S,
    ) -> None:
        self._clock, self._origin_s = clock, clock()
        self._tester, self._seed, self._step_s = tester or TesterSpec(), seed, step_s
        dst_macs = dst_macs or [f"02:00:00:00:{number + 1:02x}:01" for number in range(ports)]
        src_macs = src_macs or [f"02:00:00:00:{number + 1:02x}:02" for number in range(ports)]
        self._ports = tuple(
            EnginePort(
                index=number,
                name=f"sim{number}",
                driver="net_simulated",
                speed_bps=speed_bps,
                src_mac=src_macs[number],
                dst_mac=dst_macs[number],
                src_ipv4=f"100.65.{number + 1}.2",
                dst_ipv4=f"100.65.{number + 1}.1",
            )
            for number in range(ports)
        )
        self._world = World(router, [Port(TxPort(speed_bps, self._tester)) for _ in self._ports])
        self._view: tuple[float, World] | None = None
        self._past: deque[tuple[float, list[tuple[Tally, ...]]]] = deque()
        self._shown = [PortCounters() for _ in self._ports]
        self._queue_full = self._starts = 0
        self._ended: list[int] = []
        self._told: set[int] = set()
        self.promiscuous = [False] * ports
        self.closed = False
        self._remember()

    @property
    def ports(self) -> Sequence[EnginePort]:
        return self._ports

    def check(self, port: int, stream: StreamSpec) -> None:
        check_program(stream)

    def start(self, port: int, streams: Sequence[StreamSpec], factor: float, duration_s: float | None) -> None:
        world, state = self._world, self._world.ports[port]
        flows = {spec.stream_id: self._flow(port, spec) for spec in streams}
        self._settle(split=True)
        for flow in flows.values():
            world.tags.setdefault(flow, len(world.tags))
        state.flows = flows
        state.groups = {
            flow.mark: Group(mixed(self._seed, port, *flow.mark) / 2**64) for flow in flows.values() if flow.mark
        }
        self._starts += 1
        state.tx.traffic = Traffic.begin(streams, factor, world.at_s, duration_s)
        state.tx.owed_s = 0.0
        self._told.discard(port)

    def update(self, port: int, factor: float) -> None:
        self._settle(split=True)
        traffic = self._world.ports[port].tx.traffic
        if traffic is not None:
            traffic.factor = factor

    def pause(self, port: int) -> None:
        self._set_paused(port, True)

    def resume(self, port: int) -> None:
        self._set_paused(port, False)

    def stop(self, port: int) -> None:
        self._settle(split=True)
        self._world.ports[port].tx.traffic = None
        self._told.discard(port)
        self._ended = [one for one in self._ended if one != port]

    def poll(self) -> Sequence[int]:
        now_s = self._settle()
        for number, port in enumerate(self._world.ports):
            begin_s = self._world.at_s
            if number not in self._told and port.tx.traffic is not None and port.tx.over(begin_s, now_s):
                self._told.add(number)
                self._ended.append(number)
        ended, self._ended = self._ended, []
        return ended

    def counters(self, port: int) -> PortCounters:
        now_s = self._settle()
        sent, received, errors = self._tallies(port, now_s)
        found = PortCounters(
            opackets=sent.packets,
            obytes=sent.bytes,
            ipackets=received.packets,
            ibytes=received.bytes,
            ierrors=errors.packets,
        )
        # what the copy did before, the original need not do: a rounded frame must not come back
        before = self._shown[port]
        names = ("opackets", "obytes", "ipackets", "ibytes", "ierrors")
        self._shown[port] = PortCounters(**{name: max(getattr(before, name), getattr(found, name)) for name in names})
        return self._shown[port]

    def latency(self, port: int) -> Mapping[int, LatencyTotals]:
        """As the protocol says, as of the grid's last line: a frame that has been timed stays so."""
        self._settle()
        world, groups = self._world, self._world.ports[port].groups
        return {mark[0]: group.totals(port ^ 1, world.kept(port, mark)) for mark, group in groups.items()}

    def load(self) -> EngineLoad:
        ports = self._at(self._settle()).ports
        self._queue_full = max(self._queue_full, sum(port.tx.queue_full.packets for port in ports))
        return EngineLoad(cpu_percent=max(port.tx.cpu_percent for port in ports), queue_full=self._queue_full)

    def link_up(self, port: int) -> bool:
        return self._world.ports[port].link_up

    def set_link(self, port: int, up: bool) -> None:
        """Plug or unplug the port: what it sends, or is sent, while the link is down falls away uncounted."""
        self._settle(split=True)
        self._world.ports[port].link_up = up

    def set_promiscuous(self, port: int, enabled: bool) -> None:
        self.promiscuous[port] = enabled

    def close(self) -> None:
        for port in self._world.ports:
            port.tx.traffic = None
        self._view = None
        self.closed = True

    @property
    def sending(self) -> Sequence[int]:
        """Ports that send now."""
        ports = self._at(self._settle()).ports
        return [number for number, port in enumerate(ports) if port.tx.traffic is not None]

    def settle(self) -> None:
        """Let the router come up to the last line of the grid, for who reads the router's own counters."""
        self._settle()

    def _set_paused(self, port: int, paused: bool) -> None:
        self._settle(split=True)
        traffic = self._world.ports[port].tx.traffic
        if traffic is not None:
            traffic.paused = paused

    def _flow(self, port: int, spec: StreamSpec) -> Flow:
        check_program(spec)
        spread = tuple(self._world.router.spread(port, headers_of(spec)))
        return Flow(port, frame_bytes(spec), spread, None if spec.pg_id is None else (spec.pg_id, self._starts))

    def _settle(self, split: bool = False) -> float:
        """Let the world come to the grid's last line, or with ``split`` to this very moment, which is returned."""
        passed_s = self._clock() - self._origin_s
        line_s = round(passed_s / self._step_s) * self._step_s
        now_s = max(line_s if abs(passed_s - line_s) < SAME_INSTANT_S else passed_s, self._world.at_s)
        while (line_s := self._next_line_s()) <= now_s:
            self._step(line_s, now_s)
        if split:
            self._view = None
            if self._world.at_s < now_s:
                self._step(now_s, now_s)
        return now_s

    def _next_line_s(self) -> float:
        return (floor(self._world.at_s / self._step_s + 1e-6) + 1) * self._step_s

    def _step(self, end_s: float, now_s: float) -> None:
        self._view = None
        for port in self._world.step(end_s):
            if port not in self._told:
                self._ended.append(port)
            self._told.discard(port)
        if end_s > now_s - self._tester.skew_s - self._step_s:
            self._remember()

    def _remember(self) -> None:
        """Keep what skewed readings look back at: as many of the last lines as the skew spans, and the one before."""
        if not self._tester.skew_s:
            return
        self._past.append((self._world.at_s, [port.tallies() for port in self._world.ports]))
        while len(self._past) > 2 and self._past[1][0] <= self._world.at_s - self._tester.skew_s:
            self._past.popleft()

    def _at(self, now_s: float) -> World:
        """The world at this moment, for looking at only."""
        if now_s <= self._world.at_s:
            return self._world
        if self._view is None or self._view[0] != now_s:
            ahead = self._world.fork()
            ahead.step(now_s)
            self._view = (now_s, ahead)
        return self._view[1]

    def _tallies(self, port: int, now_s: float) -> Sequence[Tally]:
        """Frames sent, received and lost by the port, of the moment at which this reading finds them."""
        now = self._at(now_s).ports[port].tallies()
        early_s = skew_of(self._tester, self._seed, port, floor(now_s / self._step_s + 1e-6))
        if not early_s:
            return now
        return between([*((at_s, all_ports[port]) for at_s, all_ports in self._past), (now_s, now)], now_s - early_s)
