"""Mutual slowdown of a router's workers: shared memory, a shared bus, and dropping what no one fetched.

All of these depend on how busy the workers are, which depends on them: they are solved together, from the last
solution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from ..config.twin import BusSpec, TwinSpec
from .model import Costs, Demand, Pace, pace

_TRIES, _CLOSE, _DAMPING, _SLOW = 60, 1e-6, 0.6, 0.5
_SAME = 1e-9
_FULLEST = 0.98
"""Highest load of the bus: at 1 its queue would be endless."""
_LEAST_CLOCK = 0.05
"""The least share of a worker's clock that dropping leaves for forwarding."""


@dataclass(frozen=True)
class QueueLoad:
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
        return speeds == self.speeds and all(_alike(one, other) for one, other in zip(self.loads, loads, strict=True))


def _alike(one: QueueLoad, other: QueueLoad) -> bool:
    return (
        abs(one.rate_pps - other.rate_pps) <= _SAME * one.rate_pps
        and abs(one.kept_pps - other.kept_pps) <= _SAME * one.kept_pps
        and abs(one.frame_bytes - other.frame_bytes) <= _SAME * one.frame_bytes
    )


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
