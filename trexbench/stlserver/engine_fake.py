"""An engine without packets, for tests: each port's frames arrive, all of them, at its neighbour (0-1, 2-3, ...).

Counters are computed from the time that has passed on a clock that the test may hold in its hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from trexbench.stlserver.engine import (
    EngineError,
    EngineLoad,
    EnginePort,
    LatencyTotals,
    PortCounters,
    StreamSpec,
    bucket_us,
)
from trexbench.stlserver.traffic import Tally, Traffic, frame_bytes


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
        """latency_s: of every frame, on its way from a port to its neighbour."""
        self._clock = clock
        self._at_s = clock()
        self._ports = tuple(
            EnginePort(
                index=index,
                name=f"fake{index}",
                driver="net_simulated",
                speed_bps=speed_bps,
                src_mac=f"02:00:00:00:{index + 1:02x}:02",
                dst_mac=f"02:00:00:00:{index + 1:02x}:01" if resolved else None,
                src_ipv4=f"100.65.{index + 1}.2",
                dst_ipv4=f"100.65.{index + 1}.1",
            )
            for index in range(port_count)
        )
        self._latency_s = latency_s
        self._runs: dict[int, Traffic] = {}
        self._groups: dict[int, dict[int, Tally]] = {}
        self._sent = [Tally() for _ in self._ports]
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
        self._runs[port] = Traffic.begin(streams, factor, self._at_s, duration_s)

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

    def counters(self, port: int) -> PortCounters:
        self._advance()
        sent = self._sent[port]
        arrived = self._sent[port ^ 1] if port ^ 1 < len(self._ports) else Tally()
        return PortCounters(sent.packets, sent.bytes, arrived.packets, arrived.bytes)

    def latency(self, port: int) -> Mapping[int, LatencyTotals]:
        self._advance()
        return {pg_id: self._timed(port ^ 1, sent) for pg_id, sent in self._groups.get(port, {}).items()}

    def _timed(self, rx_port: int, sent: Tally) -> LatencyTotals:
        frames, octets = sent.packets, sent.bytes
        if rx_port >= len(self._ports):
            return LatencyTotals(rx_port, frames, octets)
        each_s = self._latency_s if frames else 0.0
        histogram = {bucket_us(each_s): frames} if frames else {}
        return LatencyTotals(
            rx_port, frames, octets, frames, octets, frames * each_s, each_s, each_s, histogram=histogram
        )

    def load(self) -> EngineLoad:
        return EngineLoad()

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
            if run.over(now_s):
                del self._runs[port]
                self._ended.append(port)
        self._at_s = now_s
