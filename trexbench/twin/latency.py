"""Time that frames stay in a simulated router, and the simulated tester's counters of it.

A frame waits in the ring while others stand before it, then until the worker comes round to its queue, then for the
work on what is fetched with it. Each of these is a range of times that its frames fill evenly: times are derived from
what the workers do, in ranges, not frame by frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..stlserver.engine import LatencyTotals, bucket_us
from .model import Pace
from .tester import Tally

MOST_DRAWN = 64
"""Most frames of a step that get times of their own; beyond that, several share one."""
_GOLDEN = 0.6180339887498949
"""Multiples of it, without their whole part, fill the range from 0 to 1 as evenly as can be."""


@dataclass(frozen=True)
class Delay:
    """Frames (a number, or a share of them) that took from ``least_s`` to ``most_s``, spread evenly over that range."""

    frames: float
    least_s: float
    most_s: float


@dataclass(frozen=True)
class Ring:
    """Frames in a ring at the beginning and the end of a span, in which it was emptied at ``rate_pps``.

    dropped: frames that found it full. capacity: frames it can hold.
    """

    before: float
    after: float
    dropped: float
    rate_pps: float
    capacity: float


@dataclass(frozen=True)
class Service:
    """The time that a share of the frames takes from the head of the ring to the wire.

    wait_s: at most, until the worker comes; of the frames that it then fetches at once, the first is done after
    first_s, the last after last_s. together: they leave as one.
    """

    share: float
    wait_s: float
    first_s: float
    last_s: float
    together: bool


def service(found: Pace, at: int, polling: bool) -> tuple[Service, ...]:
    """Return the services of the worker's queue number ``at``; the shares sum to 1.

    A worker that has nothing to do comes at the next look (polling), or when the batch is complete (interrupt
    moderation: a frame on its own does not wait). One that is busy comes after the round that it is in. Vectors of one
    that polls go through its graph as a whole; else every frame is sent when it is done.
    """
    costs, one = found.costs, found.demands[at]
    came = max(one.rate_pps * found.period / costs.hz, 1.0)
    batch = min(came, costs.vector) if found.back_to_back else came
    first = costs.poll_cycles + (min(batch, costs.vector) if polling else 1.0) * one.cycles
    last = costs.poll_cycles * max(1.0, batch / costs.vector) + batch * one.cycles
    busy = 1.0 if found.back_to_back else min(1.0, found.busy / costs.hz)
    if found.back_to_back:
        stretch = found.period
    else:
        # of one vector, or of all that a batch brings
        stretch = max(found.busy / found.vectors if found.vectors else 0.0, busy * found.period)
    idle = costs.loop_cycles + costs.idle_cycles
    if not polling and not found.back_to_back:
        idle = max(idle, (1 - 1 / batch) * found.period)
    parts = ((1 - busy, idle), (busy, max(idle, stretch)))
    return tuple(
        Service(share, wait / costs.hz, first / costs.hz, last / costs.hz, polling)
        for share, wait in parts
        if share > 0
    )


def standing(ring: Ring) -> tuple[float, float]:
    """Least and most seconds that frames leaving in the span had waited behind others in the ring.

    It fills or empties evenly over the span; one that overflowed was full throughout, as it fills in a moment.
    """
    if not ring.rate_pps:
        return 0.0, 0.0
    begin = ring.after if ring.dropped else ring.before
    return min(begin, ring.after) / ring.rate_pps, max(begin, ring.after) / ring.rate_pps


def delays(frames: float, base_s: float, services: Sequence[Service], ring: Ring) -> list[Delay]:
    """The latencies of so many frames: the wait in the ring is combined with every service.

    Where several even spreads meet, the sum is taken for an even one over the same range: mean and ends are right, the
    shoulders are not.
    """
    found = []
    least, most = standing(ring)
    for one in services:
        # what a full ring holds is all there can be before a frame
        most_s = min(most + one.wait_s, max(ring.capacity / ring.rate_pps, one.wait_s))
        least_s = min(least, most_s)
        # of what is fetched at once, the first to come waited longest
        firsts_s, lasts_s = most_s + one.first_s, least_s + one.last_s
        if one.together:
            firsts_s, lasts_s = least_s + one.first_s, most_s + one.last_s
        span = sorted((firsts_s, lasts_s))
        found.append(Delay(frames * one.share, base_s + span[0], base_s + span[1]))
    return found


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
