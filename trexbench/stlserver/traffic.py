"""Model of what the streams of one port send in a span of time: bursts, gaps and links, without packets or a clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .engine import StreamSpec

FCS_BYTES = 4


@dataclass
class Cursor:
    """Where one chain of streams stands: the gap still to wait, what is left of the burst, and bursts after it."""

    spec: StreamSpec
    wait_s: float
    left_pkts: float
    left_bursts: float

    @classmethod
    def at_start(cls, spec: StreamSpec) -> Cursor:
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
    """Traffic of one port since its start. ends_s: on the clock of whoever calls; None lasts until stopped.

    ended: how often each stream has handed over to the next one.
    """

    specs: Mapping[int, StreamSpec]
    factor: float
    ends_s: float | None
    cursors: list[Cursor]
    ended: Counter[int] = field(default_factory=Counter)
    paused: bool = False

    @classmethod
    def begin(cls, streams: Sequence[StreamSpec], factor: float, now_s: float, duration_s: float | None) -> PortTraffic:
        ends_s = None if duration_s is None else now_s + duration_s
        cursors = [Cursor.at_start(spec) for spec in streams if spec.self_start]
        return cls({spec.stream_id: spec for spec in streams}, factor, ends_s, cursors)

    def advance(self, begin_s: float, end_s: float) -> list[tuple[StreamSpec, float]]:
        """Packets, with their fraction, of each stream that came to its turn from ``begin_s`` to ``end_s``."""
        sent: list[tuple[StreamSpec, float]] = []
        until_s = end_s if self.ends_s is None else min(end_s, self.ends_s)
        if self.paused or until_s <= begin_s:
            return sent
        self.cursors = [
            left for cursor in self.cursors if (left := self._follow(cursor, until_s - begin_s, sent)) is not None
        ]
        return sent

    def over(self, now_s: float) -> bool:
        """Test whether all is sent, or the time is up."""
        return not self.cursors or (self.ends_s is not None and now_s >= self.ends_s)

    def copy(self) -> PortTraffic:
        """Return a copy of the traffic, to be followed on its own."""
        cursors = [replace(cursor) for cursor in self.cursors]
        return replace(self, cursors=cursors, ended=Counter(self.ended))

    def _follow(self, cursor: Cursor, left_s: float, sent: list[tuple[StreamSpec, float]]) -> Cursor | None:
        """Let the chain that stands at ``cursor`` send; where it stands then, None at its end."""
        current: Cursor | None = cursor
        while current is not None and (left_s > 0 or current.done):
            if current.done:
                current = self._successor(current.spec)
                continue
            pkts, left_s = current.advance(left_s, self.factor)
            sent.append((current.spec, pkts))
        return current

    def _successor(self, spec: StreamSpec) -> Cursor | None:
        """The stream that takes over when ``spec`` is done; none when that is so for the action_count-th time."""
        self.ended[spec.stream_id] += 1
        successor = self.specs.get(spec.next_stream_id)
        if successor is None or self.ended[spec.stream_id] == spec.action_count:
            return None
        return Cursor.at_start(successor)


@dataclass
class Tally:
    """Frames counted by length (with FCS), whole ones only: a fraction waits for its rest."""

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

    def copy(self) -> Tally:
        return Tally(Counter(self.frames), dict(self.fractions))


def rate_at(spec: StreamSpec, factor: float) -> float:
    """Packets/s of the stream while it sends."""
    return spec.rate_pps * (1.0 if spec.fixed_rate else factor)


def frame_bytes(spec: StreamSpec) -> int:
    """Length of the stream's frames with FCS."""
    return len(spec.packet) + FCS_BYTES
