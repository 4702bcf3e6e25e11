"""An engine without packets, for tests: each port's frames arrive, all of them, at its neighbour (0-1, 2-3, ...).

Counters are computed from the time that has passed on a clock that the test may hold in its hand.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trexbench.stlserver.engine import EngineError, EngineLoad, EnginePort, PortCounters, StreamSpec

FCS_BYTES = 4


@dataclass
class _Cursor:
    """Where one chain of streams stands: the gap still to wait, what is left of the burst, and bursts after it."""

    spec: StreamSpec
    wait_s: float
    left_pkts: float
    left_bursts: float

    @classmethod
    def at_start(cls, spec: StreamSpec) -> _Cursor:
        endless = float("inf")
        if spec.mode == "continuous":
            return cls(spec, spec.isg_us / 1e6, endless, 1.0)
        return cls(spec, spec.isg_us / 1e6, float(spec.total_pkts), float(spec.count) or endless)

    @property
    def done(self) -> bool:
        return self.left_bursts <= 0

    def advance(self, span_s: float, factor: float) -> tuple[float, float]:
        """Send for ``span_s`` or to the end of the burst: packets sent, and the time left over."""
        waited_s = min(span_s, self.wait_s)
        self.wait_s -= waited_s
        span_s -= waited_s
        pps = self.spec.rate_pps * (1.0 if self.spec.fixed_rate else factor)
        if span_s * pps < self.left_pkts:
            self.left_pkts -= span_s * pps
            return span_s * pps, 0.0
        sent = self.left_pkts
        self.left_bursts -= 1
        self.left_pkts, self.wait_s = float(self.spec.total_pkts), self.spec.ibg_us / 1e6
        return sent, span_s - sent / pps


@dataclass
class _Run:
    """Traffic of one port since its start."""

    specs: dict[int, StreamSpec]
    factor: float
    ends_s: float | None
    cursors: list[_Cursor]
    entered: Counter[int] = field(default_factory=Counter)
    paused: bool = False

    def following(self, spec: StreamSpec) -> _Cursor | None:
        """The stream that takes over when ``spec`` is done."""
        successor = self.specs.get(spec.next_stream_id)
        if successor is None:
            return None
        self.entered[successor.stream_id] += 1
        if successor.action_count and self.entered[successor.stream_id] > successor.action_count:
            return None
        return _Cursor.at_start(successor)


class FakeEngine:
    """Perfect forwarding between the ports of a pair."""

    def __init__(
        self,
        port_count: int = 2,
        speed_bps: float = 10e9,
        clock: Callable[[], float] = time.monotonic,
        resolved: bool = True,
    ) -> None:
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
        self._runs: dict[int, _Run] = {}
        # packets sent, by frame length with FCS
        self._sent: list[Counter[int]] = [Counter() for _ in self._ports]
        self._fractions: dict[tuple[int, int], float] = {}
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
        ends_s = None if duration_s is None else self._at_s + duration_s
        cursors = [_Cursor.at_start(spec) for spec in streams if spec.self_start]
        self._runs[port] = _Run({spec.stream_id: spec for spec in streams}, factor, ends_s, cursors)

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
        arrived = self._sent[port ^ 1] if port ^ 1 < len(self._ports) else Counter()
        return PortCounters(sent.total(), _bytes_of(sent), arrived.total(), _bytes_of(arrived))

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
            until_s = now_s if run.ends_s is None else min(now_s, run.ends_s)
            if not run.paused:
                self._send(port, run, until_s - self._at_s)
            if not run.cursors or (run.ends_s is not None and now_s >= run.ends_s):
                del self._runs[port]
                self._ended.append(port)
        self._at_s = now_s

    def _send(self, port: int, run: _Run, elapsed_s: float) -> None:
        standing = []
        for cursor in run.cursors:
            current: _Cursor | None = cursor
            left_s = elapsed_s
            while current is not None and (left_s > 0 or current.done):
                if current.done:
                    current = run.following(current.spec)
                    continue
                pkts, left_s = current.advance(left_s, run.factor)
                self._count(port, len(current.spec.packet) + FCS_BYTES, pkts)
            if current is not None:
                standing.append(current)
        run.cursors = standing

    def _count(self, port: int, length: int, pkts: float) -> None:
        """Whole packets are counted, the fraction waits for its rest."""
        pkts += self._fractions.get((port, length), 0.0)
        # a burst's rounding error must not cost its last packet
        whole = int(pkts + 1e-6)
        self._sent[port][length] += whole
        self._fractions[port, length] = pkts - whole


def _bytes_of(sent: Counter[int]) -> int:
    return sum(length * pkts for length, pkts in sent.items())
