"""The simulated tester's counters of one packet group: its frames, and the latencies of those that arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..stlserver.engine import LatencyTotals, bucket_us
from ..stlserver.traffic import Tally
from .delay import Delay

MOST_DRAWN = 64
"""Most frames of a step that get times of their own; beyond that, several share one."""
_GOLDEN = 0.6180339887498949
"""Multiples of it, without their whole part, fill the range from 0 to 1 as evenly as can be."""


@dataclass
class LatencyGroup:
    """Counters of one start of a latency stream. phase: from 0 to 1, where in its range the next frame is taken."""

    phase: float = 0.0
    sent: Tally = field(default_factory=Tally)
    received: Tally = field(default_factory=Tally)
    sum_s: float = 0.0
    min_s: float = 0.0
    max_s: float = 0.0
    histogram: dict[int, int] = field(default_factory=dict)
    jitter_s: float = 0.0
    last_s: float = 0.0

    def copy(self) -> LatencyGroup:
        return replace(self, sent=self.sent.copy(), received=self.received.copy(), histogram=dict(self.histogram))

    def receive(self, length: int, frames: float, delays: Sequence[Delay]) -> None:
        """Book frames that arrived: each whole one gets a latency, spread evenly over the ranges of ``delays``.

        Nothing is random: the times are those of equal parts of the frames, moved a little from step to step,
        so that few frames a step come to the same distribution as many.
        """
        before = self.received.packets
        self.received.add(length, frames)
        if whole := self.received.packets - before:
            drawn = min(whole, MOST_DRAWN)
            each, more = divmod(whole, drawn)
            times = _times(delays, drawn, self.phase)
            self._jitter(times, whole)
            for number, time_s in enumerate(times):
                self._count(time_s, each + (number < more))
            self.phase = (self.phase + _GOLDEN) % 1.0

    def totals(self, rx_port: int, kept: float) -> LatencyTotals:
        """kept: frames that are still on their way."""
        return LatencyTotals(
            rx_port=rx_port,
            sent=self.sent.packets,
            sent_bytes=self.sent.bytes,
            received=self.received.packets,
            received_bytes=self.received.bytes,
            sum_s=self.sum_s,
            min_s=self.min_s,
            max_s=self.max_s,
            histogram=dict(sorted(self.histogram.items())),
            missing=self._missing(kept),
            jitter_s=self.jitter_s,
        )

    def _missing(self, kept: float) -> int:
        """Frames that were lost; while none has arrived, a gap cannot be seen."""
        lost = _exact(self.sent) - _exact(self.received) - kept
        return max(0, int(lost + 1e-6)) if self.received.packets else 0

    def _jitter(self, times: Sequence[float], frames: int) -> None:
        """Follow RFC 3550 (6.4.1) for so many frames, any of these times after any other."""
        apart_s, count = abs(times[-1] - self.last_s) if self.histogram else 0.0, len(times)
        if count > 1:
            ranked = enumerate(sorted(times))
            apart_s = sum((2 * at - count + 1) * time_s for at, time_s in ranked) * 2 / (count * (count - 1))
            apart_s = max(0.0, apart_s)
        self.jitter_s = apart_s + (self.jitter_s - apart_s) * (15 / 16) ** frames
        self.last_s = times[-1]

    def _count(self, time_s: float, frames: int) -> None:
        self.min_s = min(self.min_s, time_s) if self.histogram else time_s
        self.max_s = max(self.max_s, time_s)
        self.sum_s += time_s * frames
        bucket = bucket_us(time_s)
        self.histogram[bucket] = self.histogram.get(bucket, 0) + frames


def _exact(tally: Tally) -> float:
    return tally.packets + sum(tally.fractions.values())


def _times(delays: Sequence[Delay], count: int, phase: float) -> list[float]:
    """Times of ``count`` frames, one from each of so many equal parts of all these, ``phase`` of the way into it."""
    total = sum(delay.frames for delay in delays)
    times, at, passed = [], 0, 0.0
    for number in range(count):
        wanted = (number + phase) / count * total
        while at < len(delays) - 1 and wanted >= passed + delays[at].frames:
            passed += delays[at].frames
            at += 1
        delay = delays[at]
        share = min(1.0, max(0.0, (wanted - passed) / delay.frames))
        times.append(delay.least_s + (delay.most_s - delay.least_s) * share)
    return times
