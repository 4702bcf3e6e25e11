"""A router's workers: what each fetches from its queues, where its cycles go, and how they slow one another down.

A worker goes round its queues. From each it takes up to ``vector`` frames, which costs something for the poll and
something for each frame. While it is faster than the frames come, they come in batches; once a round takes longer than
that, the next round finds what arrived during this one, vectors grow, and each frame gets cheaper, until they are full.

Shared memory, a shared bus, and dropping what no one fetched slow them down by as much as they are busy, which in turn
depends on that: all is solved together, from the last solution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from ..config.twin import BusSpec, TwinSpec

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


_TRIES, _CLOSE, _DAMPING, _SLOW = 60, 1e-6, 0.6, 0.5
_SAME = 1e-9
_FULLEST = 0.98
"""Highest load of the bus: at 1 its queue would be endless."""
_LEAST_CLOCK = 0.05
"""The least share of a worker's clock that dropping leaves for forwarding."""


class QueueLoad(NamedTuple):
    """Frames waiting in a queue of this port, per second of the span, and their mean size with FCS.

    kept_pps: the part of them that is not dropped if it is not fetched.
    """

    port: int
    rate_pps: float
    frame_bytes: float
    kept_pps: float


class Feedback(NamedTuple):
    """A solution. busy: share of its clock by worker; fetched_pps by port."""

    busy: tuple[float, ...]
    fetched_pps: tuple[float, ...]

    def towards(self, other: Feedback, part: float) -> Feedback:
        return Feedback(
            *(
                tuple(a + part * (b - a) for a, b in zip(one, two, strict=True))
                for one, two in zip(self, other, strict=True)
            )
        )

    def distance(self, other: Feedback, scale_pps: float) -> float:
        pairs = zip(self, other, (1.0, scale_pps), strict=True)
        return max(abs(a - b) / scale for one, two, scale in pairs for a, b in zip(one, two, strict=True))


@dataclass(frozen=True)
class Solved:
    """Pace of the workers under these loads, at these speeds."""

    loads: tuple[QueueLoad, ...]
    speeds: tuple[float, ...]
    paces: tuple[Pace, ...]

    def fits(self, loads: Sequence[QueueLoad], speeds: Sequence[float]) -> bool:
        """Nothing has changed since, but for the last digits of sums."""
        pairs = (pair for one, other in zip(self.loads, loads, strict=True) for pair in zip(one, other, strict=True))
        return speeds == self.speeds and all(abs(a - b) <= _SAME * a for a, b in pairs)


def settle(
    spec: TwinSpec,
    loads: Sequence[QueueLoad],
    queues_of: Sequence[Sequence[int]],
    speeds: Sequence[float],
    partners: Mapping[int, int],
    guess: Feedback,
) -> tuple[list[Pace], Feedback]:
    """Find the pace of every worker. loads: by queue; queues_of, speeds: by worker; partners: of the ports."""
    scale_pps = 1.0 + sum(load.rate_pps for load in loads)
    part, before = 1.0, inf
    for _ in range(_TRIES):
        stalls = [
            _stall(spec.bus, guess.fetched_pps, port, partners.get(port)) for port in range(len(guess.fetched_pps))
        ]
        paces = [
            _worker(spec, [loads[at] for at in queues], stalls, speed, guess, number)
            for number, (queues, speed) in enumerate(zip(queues_of, speeds, strict=True))
        ]
        found = _feedback(spec, loads, queues_of, paces, len(guess.fetched_pps))
        distance = found.distance(guess, scale_pps)
        if distance <= _CLOSE:
            break
        if distance > _SLOW * before:  # full steps could jump between two states for ever
            part = _DAMPING
        guess, before = guess.towards(found, part), distance
    return paces, guess


def _worker(
    spec: TwinSpec, loads: Sequence[QueueLoad], stalls: Sequence[float], speed: float, state: Feedback, number: int
) -> Pace:
    others = sum(state.busy) - state.busy[number]
    dearer = (1 + spec.contention * others) / speed
    costs = Costs(
        hz=spec.clock_hz,
        vector=spec.vector,
        poll_cycles=spec.vector_cycles * dearer,
        # a queue whose interrupt is silent is not looked at
        idle_cycles=spec.idle_poll_cycles if spec.drive == "polling" else 0.0,
        loop_cycles=spec.loop_cycles,
        batch_s=spec.batch_s,
    )
    own = spec.fetch_cycles + spec.packet_cycles
    demands = [
        Demand(load.rate_pps, (own + spec.byte_cycles * load.frame_bytes) * dearer + stalls[load.port])
        for load in loads
    ]

    def dropping(pps: float) -> Pace:
        left_hz = max(spec.clock_hz - spec.drop_cycles * pps, _LEAST_CLOCK * spec.clock_hz)
        return pace(replace(costs, hz=left_hz), demands)

    return _discard(dropping, loads) if spec.drop_cycles else pace(costs, demands)


def _discard(dropping: Callable[[float], Pace], loads: Sequence[QueueLoad]) -> Pace:
    """Find the pace of a worker that has to discard what it does not fetch and the rings cannot keep.

    dropping: its pace while it discards this many frames per second. Each of them takes time in which others would be
    fetched, so that more are dropped: the smallest self-consistent number is approached from below. If every frame
    dropped costs the time of more than one, it grows until ``dropping`` leaves the least clock.
    """
    before, brought = 0.0, _dropped_pps(found := dropping(0.0), loads)
    pps, most = brought, _dropped_pps(dropping(inf), loads) if brought else 0.0
    close_pps = _SAME * sum(load.rate_pps for load in loads)
    for _ in range(_TRIES):
        if abs(pps - before) <= close_pps:
            break
        found = dropping(pps)
        brings = _dropped_pps(found, loads)
        slope = (brings - brought) / (pps - before)
        before, brought = pps, brings
        pps = min(pps + (brings - pps) / (1 - slope), most) if slope < 1 else most
    return found


def _dropped_pps(found: Pace, loads: Sequence[QueueLoad]) -> float:
    return sum(
        max(0.0, load.rate_pps - rate_pps - load.kept_pps)
        for load, rate_pps in zip(loads, found.rates_pps, strict=True)
    )


def _feedback(
    spec: TwinSpec, loads: Sequence[QueueLoad], queues_of: Sequence[Sequence[int]], paces: Sequence[Pace], ports: int
) -> Feedback:
    fetched = [0.0] * ports
    for queues, found in zip(queues_of, paces, strict=True):
        for at, rate_pps in zip(queues, found.rates_pps, strict=True):
            fetched[loads[at].port] += rate_pps
    return Feedback(tuple(found.busy / spec.clock_hz for found in paces), tuple(fetched))


def _stall(bus: BusSpec | None, fetched_pps: Sequence[float], port: int, partner: int | None) -> float:
    """Cycles that receiving a frame takes longer because the port sends what comes from its partner."""
    if bus is None or partner is None:
        return 0.0
    load = min(fetched_pps[port], fetched_pps[partner], _FULLEST * bus.limit_pps) / bus.limit_pps
    return bus.stall_cycles * load / (1 - load)
