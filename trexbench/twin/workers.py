"""A router's workers: how many frames each forwards of what waits in its queues, and the time that takes.

A worker polls its queues in turn and takes up to ``vector`` frames from each, at a cost for the poll and for each
frame. The next round finds what arrived during this one, or during a batch: vectors grow with the load, and frames get
cheaper, until the vectors are full. Its queues then share it max-min fairly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..config.twin import TwinSpec

LEAST_CLOCK = 0.05  # the least share of a worker's clock that dropping leaves for forwarding
_TRIES, _CLOSE = 60, 1e-9


class QueueLoad(NamedTuple):
    """Frames waiting in a queue, per second of the span."""

    rate_pps: float
    frame_bytes: float  # mean size with FCS
    kept_pps: float  # of these, not dropped if not fetched


class Pace(NamedTuple):
    """Work of a worker, per second."""

    rates_pps: tuple[float, ...]  # frames fetched from each queue
    fetches: tuple[float, ...]  # frames of each queue that are fetched at once
    cycles: tuple[float, ...]  # of a frame of each queue, without its share of the poll
    hz: float  # cycles that it can spend at its present speed
    busy: float  # of these, spent on what it forwards
    vectors: float  # polls that found frames
    period_s: float  # from one round to the next


def pace(spec: TwinSpec, loads: Sequence[QueueLoad], speed: float) -> Pace:
    """Find the pace of a worker at this share of its clock."""
    hz = spec.clock_hz * speed
    cycles = tuple(spec.packet_cycles + spec.byte_cycles * load.frame_bytes for load in loads)
    rates, fetching_hz = _rates(spec, hz, [each + spec.vector_cycles / spec.vector for each in cycles], loads)
    polls_hz = sum(rate > 0 for rate in rates) * spec.vector_cycles
    # A queue that is not served in full yields a whole vector each time, the others what came during a round.
    whole = [load.rate_pps > rate > 0 for load, rate in zip(loads, rates, strict=True)]
    left_hz = fetching_hz - sum(rate * each for rate, each, full in zip(rates, cycles, whole, strict=True) if not full)
    work_hz = polls_hz + spec.vector * sum(each for each, full in zip(cycles, whole, strict=True) if full)
    longest_s = (polls_hz + spec.vector * sum(each for each, rate in zip(cycles, rates, strict=True) if rate)) / hz
    period_s = max(spec.batch_s, min(longest_s, work_hz / left_hz) if left_hz > 0 else longest_s)
    fetches = tuple(min(float(spec.vector), max(1.0, rate * period_s)) for rate in rates)
    vectors = sum(rate / frames for rate, frames in zip(rates, fetches, strict=True))
    work = sum(rate * each for rate, each in zip(rates, cycles, strict=True)) + vectors * spec.vector_cycles
    busy = fetching_hz if any(whole) else min(fetching_hz, work)
    return Pace(rates, fetches, cycles, hz, busy, vectors, period_s)


def _rates(
    spec: TwinSpec, hz: float, cycles: Sequence[float], loads: Sequence[QueueLoad]
) -> tuple[tuple[float, ...], float]:
    """Frames that it forwards from each queue while it also discards what it does not fetch and the rings cannot keep;
    and the cycles that this leaves to it.

    Each frame dropped takes time in which others would be fetched, so that more are dropped: the smallest
    self-consistent number is approached from below. Where a drop costs the time of more than one frame, that number
    grows until only LEAST_CLOCK is left.
    """

    def dropping(pps: float) -> tuple[tuple[float, ...], float]:
        """Return the rates while it discards so many frames per second, and how many it has to discard."""
        rates = _share(max(hz - spec.drop_cycles * pps, LEAST_CLOCK * hz), cycles, loads)
        pairs = zip(loads, rates, strict=True)
        return rates, sum(max(0.0, load.rate_pps - rate - load.kept_pps) for load, rate in pairs)

    rates, brought = dropping(0.0)
    if not spec.drop_cycles or not brought:
        return rates, hz
    most = sum(load.rate_pps for load in loads)
    before, pps, low, high = 0.0, brought, 0.0, most
    for _ in range(_TRIES):
        rates, brings = dropping(pps)
        if abs(brings - pps) <= _CLOSE * most:
            break
        low, high = (pps, high) if brings > pps else (low, pps)
        slope = (brings - brought) / (pps - before)
        before, brought = pps, brings
        pps = pps + (brings - pps) / (1 - slope) if slope < 1 else high
        if not low < pps < high:
            pps = (low + high) / 2
    return rates, max(hz - spec.drop_cycles * pps, LEAST_CLOCK * hz)


def _share(hz: float, cycles: Sequence[float], loads: Sequence[QueueLoad]) -> tuple[float, ...]:
    """Share these cycles among the queues, the smallest first: each gets what it needs or as much as every other."""
    rates, order = [0.0] * len(loads), sorted(range(len(loads)), key=lambda at: loads[at].rate_pps)
    for place, at in enumerate(order):
        level = max(0.0, hz) / sum(cycles[other] for other in order[place:])
        rates[at] = min(loads[at].rate_pps, level)
        hz -= rates[at] * cycles[at]
    return tuple(rates)
