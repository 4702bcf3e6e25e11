"""Time that frames stay in a simulated router, derived from what its workers do: in ranges, not frame by frame.

A frame waits in the ring while others stand before it, then until the worker comes round to its queue, then for the
work on what is fetched with it. Each of these is a range of times that its frames fill evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .model import Pace


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
