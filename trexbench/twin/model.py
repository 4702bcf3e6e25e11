"""One worker: how many frames it fetches from each of its queues, and where its cycles go.

A worker goes round its queues. From each it takes up to ``vector`` frames, which costs something for the poll and
something for each frame. While it is faster than the frames come, they come in batches; once a round takes longer than
that, the next round finds what arrived during this one, vectors grow, and each frame gets cheaper, until they are full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_ROUNDS = 64


@dataclass(frozen=True)
class Demand:
    """Frames that wait for a worker in one queue. cycles: per frame, without its share of the poll."""

    rate_pps: float
    cycles: float


@dataclass(frozen=True)
class Costs:
    """A worker's present costs: poll_cycles of a poll that finds frames, idle_cycles (or none) of one that does not."""

    hz: float
    vector: int
    poll_cycles: float
    idle_cycles: float
    loop_cycles: float
    batch_s: float

    @property
    def batch_cycles(self) -> float:
        """Time between two looks at the queues, at least: what arrives in between is one batch."""
        return max(self.hz * self.batch_s, self.loop_cycles + self.idle_cycles, 1.0)


class Pace(NamedTuple):
    """Work of a worker per second. rates_pps: frames fetched by queue; idle: cycles of rounds that found nothing.

    period: cycles from one batch to the next; back_to_back: rounds follow one another without a pause, and the period
    is that of a round. costs, demands: the inputs it follows from.
    """

    rates_pps: tuple[float, ...]
    vectors: float
    busy: float
    idle: float
    period: float
    back_to_back: bool
    costs: Costs
    demands: Sequence[Demand]


def pace(costs: Costs, demands: Sequence[Demand]) -> Pace:
    """Calculate how a worker shares its time among its queues."""
    return _with_pauses(costs, demands) or _without_pauses(costs, demands)


def _with_pauses(costs: Costs, demands: Sequence[Demand]) -> Pace | None:
    """Everything of a batch is done before the next one comes; None when it cannot be."""
    per_batch = costs.batch_cycles / costs.hz
    vectors = sum(_polls(one.rate_pps * per_batch, costs.vector) for one in demands)
    frames = sum(one.rate_pps * one.cycles for one in demands) * per_batch
    busy = vectors * costs.poll_cycles + frames
    left = costs.batch_cycles - busy - costs.loop_cycles * min(vectors, 1.0)
    if left < 0:
        return None
    rates = tuple(one.rate_pps for one in demands)
    per_second = (vectors / per_batch, busy / per_batch, left / per_batch)
    return Pace(rates, *per_second, costs.batch_cycles, False, costs, demands)


def _polls(frames: float, vector: int) -> float:
    """Polls that it takes to fetch a batch: a frame on its own has a poll for itself."""
    return frames if frames < 1 else max(1.0, frames / vector)


def _without_pauses(costs: Costs, demands: Sequence[Demand]) -> Pace:
    """No pause between the rounds. The cycles of a round follow from the frames that it finds, and these from it.

    That sum is concave and piecewise linear in the round's length: Newton's steps from above reach it exactly.
    """
    waiting = [one for one in demands if one.rate_pps > 0]
    idle = costs.idle_cycles if len(waiting) < len(demands) else 0.0
    fixed = costs.loop_cycles + idle
    length = fixed + sum(costs.poll_cycles + one.cycles * costs.vector for one in waiting)
    for _ in range(_ROUNDS):
        constant, slope = fixed, 0.0
        for one in waiting:
            found = one.rate_pps * length / costs.hz
            if found >= costs.vector:
                constant += costs.poll_cycles + one.cycles * costs.vector
            elif found >= 1:
                constant += costs.poll_cycles
                slope += one.rate_pps * one.cycles / costs.hz
            else:
                slope += one.rate_pps * (one.cycles + costs.poll_cycles) / costs.hz
        following = constant / (1 - slope)
        if abs(following - length) <= 1e-9 * length:
            break
        length = following
    rounds = costs.hz / length
    rates = tuple(min(one.rate_pps, costs.vector * rounds) for one in demands)
    vectors = sum(min(rate, rounds) for rate in rates)
    return Pace(rates, vectors, costs.hz - fixed * rounds, idle * rounds, length, True, costs, demands)
