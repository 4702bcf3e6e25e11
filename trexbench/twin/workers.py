"""A router's workers: frames that each fetches from its queues, cycles that it spends, and how workers slow each other.

A worker polls its queues in turn. From each it takes up to ``vector`` frames, at a cost for the poll and for each
frame. A worker that is faster than the frames arrive handles them in batches. Once a round takes longer than a batch,
the next round finds what arrived meanwhile: vectors grow, and each frame gets cheaper, until the vectors are full.

Shared memory, a shared bus and the dropping of frames slow the workers the more, the busier they are, which in turn
depends on their speed: all is solved together, starting from the last solution.
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
    """Frames that wait for a worker in one queue."""

    rate_pps: float
    cycles: float  # per frame, without its share of the poll


@dataclass(frozen=True)
class Costs:
    """Present costs of a worker."""

    hz: float
    vector: int
    poll_cycles: float  # of a poll that finds frames
    idle_cycles: float  # of one that finds none; 0 where such queues are not polled
    loop_cycles: float
    batch_s: float

    @property
    def batch_cycles(self) -> float:
        """Least cycles between two polls of the queues; frames that arrive in between are one batch."""
        return max(self.hz * self.batch_s, self.loop_cycles + self.idle_cycles, 1.0)


class Pace(NamedTuple):
    """Work of a worker per second."""

    rates_pps: tuple[float, ...]  # frames fetched from each queue
    vectors: float
    busy: float
    idle: float  # cycles of rounds that found nothing
    period: float  # cycles from one batch to the next; if back_to_back, of a round
    back_to_back: bool  # rounds follow one another without a pause
    costs: Costs
    demands: Sequence[Demand]


def pace(costs: Costs, demands: Sequence[Demand]) -> Pace:
    """Calculate how a worker shares its time among its queues."""
    per_batch = costs.batch_cycles / costs.hz
    batches = (demand.rate_pps * per_batch for demand in demands)
    # a frame on its own has a poll for itself
    vectors = sum(frames if frames < 1 else max(1.0, frames / costs.vector) for frames in batches)
    busy = vectors * costs.poll_cycles + sum(demand.rate_pps * demand.cycles for demand in demands) * per_batch
    left = costs.batch_cycles - busy - costs.loop_cycles * min(vectors, 1.0)
    if left < 0:  # a batch is not finished before the next one comes
        return _pace_without_pauses(costs, demands)
    rates = tuple(demand.rate_pps for demand in demands)
    per_second = (vectors / per_batch, busy / per_batch, left / per_batch)
    return Pace(rates, *per_second, costs.batch_cycles, False, costs, demands)


def _pace_without_pauses(costs: Costs, demands: Sequence[Demand]) -> Pace:
    """Solve for the length of a round that finds the frames that arrived during one.

    Its cycles are a concave, piecewise linear function of its length: Newton's steps from above reach it exactly.
    """
    waiting = [demand for demand in demands if demand.rate_pps > 0]
    idle = costs.idle_cycles if len(waiting) < len(demands) else 0.0
    fixed = costs.loop_cycles + idle
    length = fixed + sum(costs.poll_cycles + demand.cycles * costs.vector for demand in waiting)
    for _ in range(_ROUNDS):
        constant, slope = fixed, 0.0
        for demand in waiting:
            frames = demand.rate_pps * length / costs.hz
            if frames >= costs.vector:
                constant += costs.poll_cycles + demand.cycles * costs.vector
            elif frames >= 1:
                constant += costs.poll_cycles
                slope += demand.rate_pps * demand.cycles / costs.hz
            else:
                slope += demand.rate_pps * (demand.cycles + costs.poll_cycles) / costs.hz
        following = constant / (1 - slope)
        if abs(following - length) <= 1e-9 * length:
            break
        length = following
    rounds = costs.hz / length
    rates = tuple(min(demand.rate_pps, costs.vector * rounds) for demand in demands)
    vectors = sum(min(rate, rounds) for rate in rates)
    return Pace(rates, vectors, costs.hz - fixed * rounds, idle * rounds, length, True, costs, demands)


_TRIES, _CLOSE, _DAMPING, _SLOW = 60, 1e-6, 0.6, 0.5
_SAME = 1e-9
_FULLEST = 0.98  # highest load of the bus: at 1 its queue would be endless
_LEAST_CLOCK = 0.05  # the least share of a worker's clock that dropping leaves for forwarding


class QueueLoad(NamedTuple):
    """Frames waiting in a queue, per second of the span."""

    port: int
    rate_pps: float
    frame_bytes: float  # mean size with FCS
    kept_pps: float  # of these, not dropped if not fetched


class Feedback(NamedTuple):
    """Load that the workers put on one another."""

    busy: tuple[float, ...]  # share of its clock, by worker
    fetched_pps: tuple[float, ...]  # by port

    def towards(self, other: Feedback, part: float) -> Feedback:
        pairs = (zip(own, theirs, strict=True) for own, theirs in zip(self, other, strict=True))
        return Feedback(*(tuple(a + part * (b - a) for a, b in pair) for pair in pairs))

    def distance(self, other: Feedback, scale_pps: float) -> float:
        pairs = zip(self, other, (1.0, scale_pps), strict=True)
        return max(abs(a - b) / scale for own, theirs, scale in pairs for a, b in zip(own, theirs, strict=True))


@dataclass(frozen=True)
class Solved:
    """Paces of the workers under these loads, at these speeds."""

    loads: tuple[QueueLoad, ...]
    speeds: tuple[float, ...]
    paces: tuple[Pace, ...]

    def fits(self, loads: Sequence[QueueLoad], speeds: Sequence[float]) -> bool:
        """Test whether loads and speeds are the same, but for the last digits of sums."""
        pairs = (pair for own, other in zip(self.loads, loads, strict=True) for pair in zip(own, other, strict=True))
        return speeds == self.speeds and all(abs(a - b) <= _SAME * a for a, b in pairs)


def settle(
    spec: TwinSpec,
    loads: Sequence[QueueLoad],
    queues_of: Sequence[Sequence[int]],
    speeds: Sequence[float],
    partners: Mapping[int, int],
    guess: Feedback,
) -> tuple[list[Pace], Feedback]:
    """Find the pace of every worker. ``loads`` are by queue, ``queues_of`` and ``speeds`` by worker."""
    scale_pps = 1.0 + sum(load.rate_pps for load in loads)
    part, before = 1.0, inf
    for _ in range(_TRIES):
        stalls = [
            _stall(spec.bus, guess.fetched_pps, port, partners.get(port)) for port in range(len(guess.fetched_pps))
        ]
        paces = [
            _worker_pace(spec, [loads[at] for at in queues], stalls, speed, guess, number)
            for number, (queues, speed) in enumerate(zip(queues_of, speeds, strict=True))
        ]
        fetched = [0.0] * len(guess.fetched_pps)
        for queues, worker in zip(queues_of, paces, strict=True):
            for at, rate_pps in zip(queues, worker.rates_pps, strict=True):
                fetched[loads[at].port] += rate_pps
        result = Feedback(tuple(worker.busy / spec.clock_hz for worker in paces), tuple(fetched))
        distance = result.distance(guess, scale_pps)
        if distance <= _CLOSE:
            break
        if distance > _SLOW * before:  # full steps could jump between two states for ever
            part = _DAMPING
        guess, before = guess.towards(result, part), distance
    return paces, guess


def _worker_pace(
    spec: TwinSpec, loads: Sequence[QueueLoad], stalls: Sequence[float], speed: float, state: Feedback, number: int
) -> Pace:
    others = sum(state.busy) - state.busy[number]
    dearer = (1 + spec.contention * others) / speed
    costs = Costs(
        hz=spec.clock_hz,
        vector=spec.vector,
        poll_cycles=spec.vector_cycles * dearer,
        # without polling, a queue whose interrupt is silent is left alone
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

    return _pace_while_dropping(dropping, loads) if spec.drop_cycles else pace(costs, demands)


def _pace_while_dropping(dropping: Callable[[float], Pace], loads: Sequence[QueueLoad]) -> Pace:
    """Find the pace of a worker that must discard what it does not fetch and the rings cannot keep.

    ``dropping`` returns its pace while it discards this many frames per second. Each takes time in which others would
    be fetched, so that more are dropped: the smallest self-consistent number is approached from below. If every frame
    dropped costs the time of more than one, that number grows until ``dropping`` leaves the least clock.
    """

    def dropped_pps(worker: Pace) -> float:
        rates = zip(loads, worker.rates_pps, strict=True)
        return sum(max(0.0, load.rate_pps - rate_pps - load.kept_pps) for load, rate_pps in rates)

    worker = dropping(0.0)
    before, brought = 0.0, dropped_pps(worker)
    pps, most = brought, dropped_pps(dropping(inf)) if brought else 0.0
    close_pps = _SAME * sum(load.rate_pps for load in loads)
    for _ in range(_TRIES):
        if abs(pps - before) <= close_pps:
            break
        worker = dropping(pps)
        brings = dropped_pps(worker)
        slope = (brings - brought) / (pps - before)
        before, brought = pps, brings
        pps = min(pps + (brings - pps) / (1 - slope), most) if slope < 1 else most
    return worker


def _stall(bus: BusSpec | None, fetched_pps: Sequence[float], port: int, partner: int | None) -> float:
    """Extra cycles to receive a frame because the port also sends what comes from its partner."""
    if bus is None or partner is None:
        return 0.0
    load = min(fetched_pps[port], fetched_pps[partner], _FULLEST * bus.limit_pps) / bus.limit_pps
    return bus.stall_cycles * load / (1 - load)
