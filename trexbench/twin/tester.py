"""The simulated tester: its traffic (bursts, gaps and links) without packets or a clock, and its own shortcomings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf

from ..core.units import l1_bits
from ..stlserver.engine import FCS_BYTES, StreamSpec

Sent = list[tuple[StreamSpec, float]]  # frames, with their fraction, by stream
MOST_TRIALS = 4
"""Attempts to find a span in which traffic sends no more than there is room for; the next span owes the rest."""
CPU_MEMORY_S = 0.3  # time constant of the smoothed CPU load


@dataclass
class Cursor:
    """Position in a chain of streams."""

    spec: StreamSpec
    wait_s: float  # rest of the present gap
    left_pkts: float  # of the present burst
    left_bursts: float  # the present one included

    @classmethod
    def at_start(cls, spec: StreamSpec) -> Cursor:
        if spec.mode == "continuous":
            return cls(spec, spec.isg_us / 1e6, inf, 1.0)
        return cls(spec, spec.isg_us / 1e6, float(spec.total_pkts), float(spec.count) or inf)

    @property
    def done(self) -> bool:
        return self.left_bursts <= 0

    def advance(self, span_s: float, factor: float) -> tuple[float, float]:
        """Send for ``span_s`` or to the end of the burst; returns the packets sent, and the time left over."""
        waited_s = min(span_s, self.wait_s)
        self.wait_s -= waited_s
        span_s -= waited_s
        pps = rate_at(self.spec, factor)
        if span_s * pps < self.left_pkts:
            self.left_pkts -= span_s * pps
            return span_s * pps, 0.0
        sent = self.left_pkts
        self.left_bursts -= 1
        self.left_pkts, self.wait_s = float(self.spec.total_pkts), self.spec.ibg_us / 1e6
        return sent, span_s - sent / pps


@dataclass
class PortTraffic:
    """Traffic of one port since its start."""

    specs: Mapping[int, StreamSpec]
    factor: float
    ends_s: float | None  # on the caller's clock; None: until stopped
    cursors: list[Cursor]
    ended: Counter[int] = field(default_factory=Counter)  # times that each stream has ended
    paused: bool = False

    @classmethod
    def begin(cls, streams: Sequence[StreamSpec], factor: float, now_s: float, duration_s: float | None) -> PortTraffic:
        ends_s = None if duration_s is None else now_s + duration_s
        cursors = [Cursor.at_start(spec) for spec in streams if spec.self_start]
        return cls({spec.stream_id: spec for spec in streams}, factor, ends_s, cursors)

    def advance(self, begin_s: float, end_s: float) -> list[tuple[StreamSpec, float]]:
        """Send until ``end_s``; returns the packets, with their fraction, of each stream that had its turn."""
        sent: list[tuple[StreamSpec, float]] = []
        until_s = end_s if self.ends_s is None else min(end_s, self.ends_s)
        if not self.paused and until_s > begin_s:
            positions = [self._send_chain(cursor, until_s - begin_s, sent) for cursor in self.cursors]
            self.cursors = [cursor for cursor in positions if cursor is not None]
        return sent

    def over(self, now_s: float) -> bool:
        """Test whether all is sent, or the time is up."""
        return not self.cursors or (self.ends_s is not None and now_s >= self.ends_s)

    def copy(self) -> PortTraffic:
        """Copy the traffic, to be advanced on its own."""
        cursors = [replace(cursor) for cursor in self.cursors]
        return replace(self, cursors=cursors, ended=Counter(self.ended))

    def _send_chain(self, cursor: Cursor, left_s: float, sent: list[tuple[StreamSpec, float]]) -> Cursor | None:
        """Send from the stream chain at ``cursor``; return the next position, or None at the end."""
        while left_s > 0 or cursor.done:
            if not cursor.done:
                pkts, left_s = cursor.advance(left_s, self.factor)
                sent.append((cursor.spec, pkts))
                continue
            spec = cursor.spec
            self.ended[spec.stream_id] += 1
            successor = self.specs.get(spec.next_stream_id)
            if successor is None or self.ended[spec.stream_id] == spec.action_count:
                return None
            cursor = Cursor.at_start(successor)
        return cursor


@dataclass
class Tally:
    """Whole frames, counted by length (with FCS); a fraction waits for its rest."""

    frames: Counter[int] = field(default_factory=Counter)
    fractions: dict[int, float] = field(default_factory=dict)

    def add(self, length: int, frames: float) -> None:
        frames += self.fractions.get(length, 0.0)
        # a burst's rounding error must not cost its last packet
        whole = int(frames + 1e-6)
        self.frames[length] += whole
        self.fractions[length] = frames - whole

    @property
    def packets(self) -> int:
        return sum(self.frames.values())

    @property
    def bytes(self) -> int:
        return sum(length * frames for length, frames in self.frames.items())


def rate_at(spec: StreamSpec, factor: float) -> float:
    """Rate of the stream in packets/s while it sends."""
    return spec.rate_pps * (1.0 if spec.fixed_rate else factor)


def frame_bytes(spec: StreamSpec) -> int:
    """Length of the stream's frames with FCS."""
    return len(spec.packet) + FCS_BYTES


@dataclass
class TxPort:
    """One sending port, whose traffic leaves it as far as the wire and the sending core keep up.

    More than the wire takes, and with ``stretches`` more than the core can send, slows time for this port's traffic,
    its duration included: nothing is made up for later. Otherwise, what the core cannot send is dropped and counted.
    """

    speed_bps: float
    limit_pps: float | None  # of the core; None for any rate
    stretches: bool
    traffic: PortTraffic | None = None
    owed_s: float = 0.0  # time for which frames sent in a burst still occupy the port
    queue_full: Tally = field(default_factory=Tally)
    cpu_percent: float = 0.0

    def send(self, begin_s: float, end_s: float) -> Sent:
        """Return the frames that leave the port in this span."""
        span_s, sent = end_s - begin_s, Sent()
        on_s = span_s
        if span_s <= 0:
            return sent
        if self.traffic is not None:
            kept_s = self._kept_s(self.traffic, begin_s, end_s)
            sent = self.traffic.advance(begin_s, begin_s + kept_s)
            if kept_s < span_s and self.traffic.ends_s is not None:
                self.traffic.ends_s += span_s - kept_s
            if self.traffic.ends_s is not None:
                on_s = max(0.0, min(span_s, self.traffic.ends_s - begin_s))
        self.owed_s = max(0.0, self.owed_s + self._busy_s(sent) - span_s)
        return self._through_core(sent, span_s, on_s)

    def _busy_s(self, sent: Sent) -> float:
        """Time that the wire, or a core that stretches time, needs for these frames."""
        bits = sum(frames * l1_bits(frame_bytes(spec)) for spec, frames in sent)
        core_pps = self.limit_pps if self.stretches and self.limit_pps is not None else inf
        return max(bits / self.speed_bps, sum(frames for _, frames in sent) / core_pps)

    def _kept_s(self, traffic: PortTraffic, begin_s: float, end_s: float) -> float:
        """Time that passes for the traffic: the span, unless time must be stretched."""
        span_s = end_s - begin_s
        most = [(spec, rate_at(spec, traffic.factor)) for spec in traffic.specs.values()]
        if not self.owed_s and self._busy_s(most) <= 1.0:
            return span_s
        room_s = max(0.0, span_s - self.owed_s)
        kept_s = span_s if traffic.ends_s is None else max(0.0, min(end_s, traffic.ends_s) - begin_s)
        for round_ in range(MOST_TRIALS):
            wanted_s = self._busy_s(traffic.copy().advance(begin_s, begin_s + kept_s))
            if wanted_s <= room_s * (1 + 1e-9):
                return kept_s if round_ else span_s
            # a burst may end within the span: what it sends is in proportion only once the span is short enough
            kept_s *= room_s / wanted_s
        return kept_s

    def _through_core(self, sent: Sent, span_s: float, on_s: float) -> Sent:
        """Drop what exceeds the core's limit while traffic is on, for ``on_s``; update the CPU load."""
        if self.limit_pps is None:
            return sent
        total, room = sum(frames for _, frames in sent), self.limit_pps * on_s
        busy_percent = 100.0 * min(1.0, total / (self.limit_pps * span_s))
        self.cpu_percent += (busy_percent - self.cpu_percent) * (1 - exp(-span_s / CPU_MEMORY_S))
        if total <= room or self.stretches:
            return sent
        self.queue_full.add(0, total - room)
        return [(spec, frames * room / total) for spec, frames in sent]
