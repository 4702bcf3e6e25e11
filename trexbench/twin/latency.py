"""Time that frames spend in a simulated router, and the simulated tester's counters of it.

A frame waits in the ring behind others, then for the worker to come round to its queue, then for the work on the frames
that are fetched with it. Each wait is a range of times, derived from the workers' pace, that the frames fill evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class Ring:
    """Frames in a ring at the beginning and the end of a span."""

    before: float
    after: float
    dropped: float  # frames that found it full
    rate_pps: float  # of emptying it
    capacity: float  # most frames it can hold


@dataclass(frozen=True)
class Service:
    """Time that a share of the frames takes from the head of the ring to the wire."""

    share: float
    wait_s: float  # longest wait for the worker
    first_s: float  # until the first of the frames fetched at once is done
    last_s: float  # until the last of them is done
    together: bool  # they leave at once


def service(worker: Pace, queue: int, polling: bool) -> tuple[Service, ...]:
    """Return the services of one of the worker's queues; the shares sum to 1.

    An idle worker comes at its next poll, or when the batch is complete (interrupt moderation: a frame on its own does
    not wait). A busy one comes after its present round. A polling worker's vectors go through its graph as a whole;
    otherwise every frame is sent when it is done.
    """
    costs, demand = worker.costs, worker.demands[queue]
    came = max(demand.rate_pps * worker.period / costs.hz, 1.0)
    batch = min(came, costs.vector) if worker.back_to_back else came
    first = costs.poll_cycles + (min(batch, costs.vector) if polling else 1.0) * demand.cycles
    last = costs.poll_cycles * max(1.0, batch / costs.vector) + batch * demand.cycles
    busy = 1.0 if worker.back_to_back else min(1.0, worker.busy / costs.hz)
    stretch = worker.period
    if not worker.back_to_back:  # the work on one vector, or on all that a batch brings
        stretch = max(worker.busy / worker.vectors if worker.vectors else 0.0, busy * worker.period)
    idle = costs.loop_cycles + costs.idle_cycles
    if not polling and not worker.back_to_back:
        idle = max(idle, (1 - 1 / batch) * worker.period)
    parts = ((1 - busy, idle), (busy, max(idle, stretch)))
    return tuple(
        Service(share, wait / costs.hz, first / costs.hz, last / costs.hz, polling)
        for share, wait in parts
        if share > 0
    )


def standing(ring: Ring) -> tuple[float, float]:
    """Least and most seconds that frames leaving in the span had waited behind others in the ring.

    The ring fills or empties evenly over the span; if it overflowed, it was full throughout, as it fills in no time.
    """
    if not ring.rate_pps:
        return 0.0, 0.0
    begin = ring.after if ring.dropped else ring.before
    return min(begin, ring.after) / ring.rate_pps, max(begin, ring.after) / ring.rate_pps


def delays(frames: float, base_s: float, services: Sequence[Service], ring: Ring) -> list[Delay]:
    """Latencies of this many frames: the wait in the ring combined with every service.

    A sum of even spreads is taken as even over the same range: right in its mean and its ends, not in its shoulders.
    """
    spreads = []
    least, most = standing(ring)
    for kind in services:
        # no more than a full ring can be before a frame
        most_s = min(most + kind.wait_s, max(ring.capacity / ring.rate_pps, kind.wait_s))
        least_s = min(least, most_s)
        # of the frames fetched at once, the first to come waited longest
        firsts_s, lasts_s = most_s + kind.first_s, least_s + kind.last_s
        if kind.together:
            firsts_s, lasts_s = least_s + kind.first_s, most_s + kind.last_s
        span = sorted((firsts_s, lasts_s))
        spreads.append(Delay(frames * kind.share, base_s + span[0], base_s + span[1]))
    return spreads


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
    last_s: float = 0.0

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
        self._update_jitter(times, whole)
        for number, time_s in enumerate(times):
            count = each + (number < more)
            self.min_s = min(self.min_s, time_s) if self.histogram else time_s
            self.max_s = max(self.max_s, time_s)
            self.sum_s += time_s * count
            bucket = bucket_us(time_s)
            self.histogram[bucket] = self.histogram.get(bucket, 0) + count
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

    def _update_jitter(self, times: Sequence[float], frames: int) -> None:
        """Apply RFC 3550 (6.4.1) to this many frames, with these times in any order."""
        apart_s, count = abs(times[-1] - self.last_s) if self.histogram else 0.0, len(times)
        if count > 1:
            ranked = enumerate(sorted(times))
            apart_s = sum((2 * at - count + 1) * time_s for at, time_s in ranked) * 2 / (count * (count - 1))
            apart_s = max(0.0, apart_s)
        self.jitter_s = apart_s + (self.jitter_s - apart_s) * (15 / 16) ** frames
        self.last_s = times[-1]


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
