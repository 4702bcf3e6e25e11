"""An engine without packets: each port's frames arrive, all of them, at its partner.

Counters are computed from the time that has passed on a clock that the test may hold in its hand. As a program it is
the embedded server with this engine: ``python engine_fake.py --ports 2``, the options of ``trexbench lab serve``, and
``--fault`` (see faulty_server).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import click
from faulty_server import FaultyServer

from trexbench.stlserver import __main__ as server
from trexbench.stlserver.engine import (
    EngineCounters,
    EngineError,
    EngineLoad,
    EnginePort,
    FlowTotals,
    LatencyTotals,
    PortLoad,
    StreamSpec,
    bucket_us,
)
from trexbench.stlserver.rpc.server import StlServer
from trexbench.stlserver.traffic import PortTraffic, Tally, frame_bytes
from trexbench.stlserver.wiring import simulated_ports


class FakeEngine:
    """Perfect forwarding between the ports of a pair."""

    def __init__(
        self,
        port_count: int = 2,
        speed_bps: float = 10e9,
        clock: Callable[[], float] = time.monotonic,
        resolved: bool = True,
        latency_s: float = 20e-6,
    ) -> None:
        """latency_s: of every frame, on its way from a port to its partner. resolved: the neighbours are known."""
        self._clock = clock
        self._at_s = clock()
        ports = simulated_ports("fake", port_count, speed_bps)
        self._ports = ports if resolved else tuple(replace(port, dst_mac=None) for port in ports)
        self._latency_s = latency_s
        self._runs: dict[int, PortTraffic] = {}
        self._groups: dict[int, dict[int, Tally]] = {}
        self._sent = [Tally() for _ in self._ports]
        self._marked: list[dict[int, Tally]] = [{} for _ in self._ports]
        self._ended: list[int] = []
        self.links = [True] * port_count
        self.promiscuous = [False] * port_count
        self.closed = False

    @property
    def ports(self) -> Sequence[EnginePort]:
        return self._ports

    def check(self, port: int, stream: StreamSpec) -> None:
        if any(one["type"] == "trim_pkt_size" for one in stream.instructions):
            raise EngineError("the fake engine cannot change the packet's size (trim_pkt_size)")

    def start(self, port: int, streams: Sequence[StreamSpec], factor: float, duration_s: float | None) -> None:
        self._advance()
        self._groups[port] = {spec.pg_id: Tally() for spec in streams if spec.pg_id is not None}
        self._runs[port] = PortTraffic.begin(streams, factor, self._at_s, duration_s)

    def update(self, port: int, factor: float) -> None:
        self._advance()
        self._runs[port].factor = factor

    def pause(self, port: int) -> None:
        self._advance()
        self._runs[port].paused = True

    def resume(self, port: int) -> None:
        self._advance()
        self._runs[port].paused = False

    def stop(self, port: int) -> None:
        self._advance()
        self._runs.pop(port, None)

    def poll(self) -> Sequence[int]:
        self._advance()
        ended, self._ended = self._ended, []
        return ended

    def counters(self, port: int) -> EngineCounters:
        self._advance()
        sent = self._sent[port]
        partner = self._ports[port].partner
        arrived = Tally() if partner is None else self._sent[partner]
        return EngineCounters(sent.packets, sent.bytes, arrived.packets, arrived.bytes)

    def latency(self, port: int) -> Mapping[int, LatencyTotals]:
        self._advance()
        return {pg_id: self._timed(port, sent) for pg_id, sent in self._groups.get(port, {}).items()}

    def flows(self) -> Mapping[int, Mapping[int, FlowTotals]]:
        self._advance()
        return {port.index: self._flows(port) for port in self._ports}

    def _flows(self, port: EnginePort) -> dict[int, FlowTotals]:
        sent, none = self._marked[port.index], Tally()
        arrived = {} if port.partner is None else self._marked[port.partner]
        pairs = {mark: (sent.get(mark, none), arrived.get(mark, none)) for mark in sent.keys() | arrived.keys()}
        return {mark: FlowTotals(a.packets, a.bytes, b.packets, b.bytes) for mark, (a, b) in pairs.items()}

    def _timed(self, port: int, sent: Tally) -> LatencyTotals:
        frames, octets, rx_port = sent.packets, sent.bytes, self._ports[port].partner
        if rx_port is None:
            return LatencyTotals(port, frames, octets)
        each_s = self._latency_s if frames else 0.0
        histogram = {bucket_us(each_s): frames} if frames else {}
        return LatencyTotals(
            rx_port, frames, octets, frames, octets, frames * each_s, each_s, each_s, histogram=histogram
        )

    def load(self) -> EngineLoad:
        return EngineLoad({port.index: PortLoad() for port in self._ports})

    def link_up(self, port: int) -> bool:
        return self.links[port]

    def set_promiscuous(self, port: int, enabled: bool) -> None:
        self.promiscuous[port] = enabled

    def close(self) -> None:
        self._runs.clear()
        self.closed = True

    @property
    def sending(self) -> Sequence[int]:
        """Ports that send now, for tests."""
        self._advance()
        return sorted(self._runs)

    def _advance(self) -> None:
        """Let the time since the last call pass."""
        now_s = self._clock()
        for port, run in list(self._runs.items()):
            for spec, pkts in run.advance(self._at_s, now_s):
                self._sent[port].add(frame_bytes(spec), pkts)
                if spec.pg_id is not None:
                    self._groups[port][spec.pg_id].add(frame_bytes(spec), pkts)
                if spec.mark is not None:
                    self._marked[port].setdefault(spec.mark, Tally()).add(frame_bytes(spec), pkts)
            if run.over(now_s):
                del self._runs[port]
                self._ended.append(port)
        self._at_s = now_s


_OWN = [click.Option(["--ports"], type=int, default=2), click.Option(["--fault"], multiple=True)]


@click.command(params=[*_OWN, *server.serve.params])
def serve(ports: int, fault: Sequence[str], **options: Any) -> None:
    make = partial(FaultyServer, faults=fault, kills=True) if fault else StlServer
    sys.exit(server.run(FakeEngine(ports), make, **options))


if __name__ == "__main__":
    serve()
