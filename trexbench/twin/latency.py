"""Time that frames spend in a simulated router, and the simulated tester's counters of it.

A frame waits in the ring behind others, then for the worker to come round to its queue, then for the work on the frames
that are fetched before it. The sum is taken as even between the time of the first and of the last of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..config.twin import TwinSpec
from ..stlserver.engine import LatencyTotals, bucket_us
from .tester import Tally
from .workers import Pace

MOST_DRAWN = 64  # most frames of a step that get times of their own; beyond that, several share one
_GOLDEN = 0.6180339887498949
"""The golden ratio, whose multiples, taken modulo 1, fill the range from 0 to 1 as evenly as possible."""


@dataclass(frozen=True)
class Delay:
    """Frames, or a share of them, with latencies spread evenly from ``least_s`` to ``most_s``."""

    frames: float
    least_s: float
    most_s: float


def delay(spec: TwinSpec, frames: float, now: Pace, index: int, held: tuple[float, float]) -> Delay:
    """Latencies of frames that a worker at this pace fetched from one of its queues.

    held: frames in its ring at the beginning and the end of the span, between which it fills or empties evenly.
    Of the frames fetched at once, the first to come waited longest, for a whole round, and leaves first. A frame on its
    own does not wait: an idle worker takes it at once.
    """
    together, each_s = now.fetches[index], now.cycles[index] / now.hz
    least_s, most_s = min(held) / now.rates_pps[index], max(held) / now.rates_pps[index]
    firsts_s, lasts_s = most_s + now.period_s * (1 - 1 / together) + each_s, least_s + together * each_s
    base_s = spec.latency_s + spec.vector_cycles / now.hz
    return Delay(frames, base_s + min(firsts_s, lasts_s), base_s + max(firsts_s, lasts_s))


@dataclass
class LatencyGroup:
    """Counters of one start of a latency stream."""

    phase: float = 0.0  # position of the next frame in its range, from 0 to 1
    sent: Tally = field(default_factory=Tally)
    received: Tally = field(default_factory=Tally)
    sum_s: float = 0.0
    min_s: float = 0.0
    max_s: float = 0.0
    histogram: dict[int, int] = field(default_factory=dict)
    jitter_s: float = 0.0

    def receive(self, length: int, frames: float, delays: Sequence[Delay]) -> None:
        """Book frames that arrived: each whole one gets a latency, spread evenly over the ranges of ``delays``.

        Nothing is random: each time stands for an equal part of the frames, moved a little from step to step, so that
        few frames a step reach the same distribution as many.
        """
        before = self.received.packets
        self.received.add(length, frames)
        whole = self.received.packets - before
        if not whole:
            return
        drawn = min(whole, MOST_DRAWN)
        each, more = divmod(whole, drawn)
        times = _draw_times(delays, drawn, self.phase)
        for number, time_s in enumerate(times):
            count = each + (number < more)
            self.min_s = min(self.min_s, time_s) if self.histogram else time_s
            self.max_s = max(self.max_s, time_s)
            self.sum_s += time_s * count
            bucket = bucket_us(time_s)
            self.histogram[bucket] = self.histogram.get(bucket, 0) + count
        if self.received.packets > 1:
            # RFC 3550 (6.4.1) of frames that know nothing of one another: two even draws are a third of the range apart
            range_s = max(delay.most_s for delay in delays) - min(delay.least_s for delay in delays)
            apart_s = min(range_s / 3, self.max_s - self.min_s)
            self.jitter_s = apart_s + (self.jitter_s - apart_s) * (15 / 16) ** whole
        self.phase = (self.phase + _GOLDEN) % 1.0

    def totals(self, rx_port: int, kept: float) -> LatencyTotals:
        """Totals so far; kept: frames that are still on their way."""
        sent, received = (tally.packets + sum(tally.fractions.values()) for tally in (self.sent, self.received))
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
            # while none has arrived, a gap cannot be seen
            missing=max(0, int(sent - received - kept + 1e-6)) if self.received.packets else 0,
            jitter_s=self.jitter_s,
        )


def _draw_times(delays: Sequence[Delay], count: int, phase: float) -> list[float]:
    """Split all these frames into ``count`` equal parts; return the time at ``phase`` (0 to 1) of each part."""
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
