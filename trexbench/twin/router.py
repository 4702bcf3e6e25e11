"""The simulated router: receive queues that fill, workers that empty them, and everything counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import floor
from typing import Any

from ..config.twin import RssSpec, TwinSpec
from ..core.dut.rss import MICROSOFT_KEY, Toeplitz, queue_of
from ..stlserver.engine import partners
from .latency import Delay, Ring, Service, delays, service
from .model import Feedback, Pace, QueueLoad, Solved, settle
from .noise import mixed, normal
from .world import Arrival

NOISE_S = 0.1
"""Time for which a worker keeps the speed that was drawn for it."""
_FULL = 1e-3
"""A ring with less room than this, in frames, is full."""

Key = tuple[int, int]
"""A stream's frames: port and tag."""


@dataclass
class QueueCounters:
    """One receive queue's frames since the router's start: ``packets`` were fetched, ``drops`` found the ring full.

    held: frames in its ring, by stream. kept: all of them at the end of the last span.
    """

    port: int
    queue: int
    packets: float = 0.0
    drops: float = 0.0
    held: dict[Key, float] = field(default_factory=dict)
    kept: float = 0.0


@dataclass
class WorkerCounters:
    """One worker's totals since the router's start; for rates, take differences.

    packets: frames forwarded, in ``vectors`` polls that found frames and ``busy_clocks`` clocks (forwarding them, all
    nodes but the polling of the NIC when nothing was there). idle_polls: polls that found nothing, which took
    idle_clocks. time_s: the router's own time since its start. clock_hz: of this worker. queues: those it polls, in
    the order of registration.
    """

    name: str
    packets: float = 0.0
    vectors: float = 0.0
    busy_clocks: float = 0.0
    idle_polls: float = 0.0
    idle_clocks: float = 0.0
    time_s: float = 0.0
    clock_hz: float = 0.0
    queues: Sequence[QueueCounters] = ()


class TwinRouter:
    """A Router (``world.py``) made of a spec.

    rx_queues: per port, None for the spec's own number. seed: of the noise, None for the spec's own; a random RSS key
    is the spec's in any case, as the DUT keeps its own from run to run.
    """

    def __init__(self, spec: TwinSpec, ports: int = 2, rx_queues: int | None = None, seed: int | None = None) -> None:
        self.spec, self.rx_queues = spec, rx_queues or spec.queues
        self.time_s = 0.0
        self._seed = spec.seed if seed is None else seed
        self._polling = spec.drive == "polling"
        self.rss = Rss(spec.rss, spec.seed)
        self._queues = [QueueCounters(port, number) for port in range(ports) for number in range(self.rx_queues)]
        self.placement = tuple(place(spec.placement, spec.workers, ports, self.rx_queues))
        name = "vpp_wk_" if self._polling else "cpu"
        self._workers = [WorkerCounters(f"{name}{number}", clock_hz=spec.clock_hz) for number in range(spec.workers)]
        self._queues_of = [
            tuple(at for at, worker in enumerate(self.placement) if worker == number) for number in range(spec.workers)
        ]
        self._partners = partners(ports)
        self._feedback = Feedback((0.0,) * spec.workers, (0.0,) * ports)
        self._solved: Solved | None = None
        self._sizes: dict[Key, float] = {}
        self._gone: dict[Key, float] = {}
        self._timed: tuple[Key, ...] = ()
        self._taken: dict[Key, list[Delay]] = {}
        self._speeds: tuple[int, tuple[float, ...]] = (-1, ())

    def __deepcopy__(self, _memo: dict[int, Any]) -> TwinRouter:
        """An independent copy; what never changes is shared."""
        found = copy(self)
        found._queues = [replace(queue, held=dict(queue.held)) for queue in self._queues]
        found._workers = [copy(worker) for worker in self._workers]
        found._sizes, found._gone = dict(self._sizes), dict(self._gone)
        found._taken = {}
        return found

    def spread(self, port: int, packets: Sequence[bytes]) -> tuple[float, ...]:
        return self.rss.shares(packets, self.rx_queues)

    def carry(self, span_s: float, arrivals: Sequence[Arrival]) -> Sequence[float]:
        """Let the span pass, in pieces cut where workers' speeds change and where dropping begins to take time."""
        for one in arrivals:
            self._sizes[one.port, one.tag] = one.frame_bytes
        self._timed, self._taken = tuple((one.port, one.tag) for one in arrivals if one.timed), {}
        coming = self._coming(span_s, arrivals)
        end_s = self.time_s + span_s
        while end_s - self.time_s > 1e-12:
            cell = floor(self.time_s / NOISE_S + 1e-6)
            until_s = min(end_s, (cell + 1) * NOISE_S)
            if end_s - until_s < 1e-9:
                until_s = end_s
            self.time_s = self._step(until_s, cell, coming)
        return [self._gone.pop((one.port, one.tag), 0.0) for one in arrivals]

    def workers(self) -> Sequence[WorkerCounters]:
        """Every worker's totals since the start, as they are now."""
        return [
            replace(worker, time_s=self.time_s, queues=[copy(self._queues[at]) for at in places])
            for worker, places in zip(self._workers, self._queues_of, strict=True)
        ]

    def delays(self, port: int, tag: int) -> Sequence[Delay]:
        return self._taken.get((port, tag), ())

    def kept(self, port: int, tag: int) -> float:
        return sum(queue.held.get((port, tag), 0.0) for queue in self._queues)

    def _coming(self, span_s: float, arrivals: Sequence[Arrival]) -> list[list[tuple[Key, float]]]:
        """Frames per second of each stream, by queue."""
        found: list[list[tuple[Key, float]]] = [[] for _ in self._queues]
        for one in arrivals:
            first = one.port * self.rx_queues
            for number, share in enumerate(one.spread):
                if frames := one.frames * share:
                    found[first + number].append(((one.port, one.tag), frames / span_s))
        return found

    def _step(self, until_s: float, cell: int, coming: Sequence[Sequence[tuple[Key, float]]]) -> float:
        """Up to this moment nothing changes; if a ring becomes full earlier, up to that one, which is returned."""
        span_s = until_s - self.time_s
        waiting = _waiting(self._queues, coming, span_s)
        solved = self._solve(waiting, span_s, cell)
        if self.spec.drop_cycles and (full_s := self._full_s(solved, span_s)) < span_s:
            span_s, until_s = full_s, self.time_s + full_s
            waiting = _waiting(self._queues, coming, span_s)
            solved = self._solve(waiting, span_s, cell)
        for queue, held in zip(self._queues, waiting, strict=True):
            queue.held = held
        for worker, places, found in zip(self._workers, self._queues_of, solved.paces, strict=True):
            for number, (at, rate_pps) in enumerate(zip(places, found.rates_pps, strict=True)):
                queue = self._queues[at]
                services = service(found, number, self._polling) if self._timed and queue.held else ()
                self._fetch(queue, rate_pps, span_s, worker, services)
            self._count(worker, found, span_s)
        return until_s

    def _solve(self, waiting: Sequence[Mapping[Key, float]], span_s: float, cell: int) -> Solved:
        loads = [self._load(queue, held, span_s) for queue, held in zip(self._queues, waiting, strict=True)]
        speeds = self._speed(cell)
        if self._solved is None or not self._solved.fits(loads, speeds):
            # As long as nothing changes, the workers go on as they do.
            paces, self._feedback = settle(self.spec, loads, self._queues_of, speeds, self._partners, self._feedback)
            self._solved = Solved(tuple(loads), speeds, tuple(paces))
        return self._solved

    def _load(self, queue: QueueCounters, held: Mapping[Key, float], span_s: float) -> QueueLoad:
        frames = sum(held.values())
        if frames <= 0:
            return QueueLoad(queue.port, 0.0, 0.0, 0.0)
        size = sum(self._sizes[key] * count for key, count in held.items()) / frames
        kept = self.spec.ring if self._room(queue) <= _FULL else frames
        return QueueLoad(queue.port, frames / span_s, size, kept / span_s)

    def _room(self, queue: QueueCounters) -> float:
        return self.spec.ring - queue.kept

    def _full_s(self, solved: Solved, span_s: float) -> float:
        """Time until the first ring that is not yet full becomes full; the span, if none does within it."""
        full_s = span_s
        for places, found in zip(self._queues_of, solved.paces, strict=True):
            for at, rate_pps in zip(places, found.rates_pps, strict=True):
                room = self._room(self._queues[at])
                more = (solved.loads[at].rate_pps - rate_pps) * span_s - self._queues[at].kept
                if more > room > _FULL:
                    full_s = min(full_s, span_s * room / more)
        return full_s

    def _fetch(
        self, queue: QueueCounters, rate_pps: float, span_s: float, worker: WorkerCounters, services: Sequence[Service]
    ) -> None:
        """Frames leave the ring, of every stream the same share; what it cannot hold is dropped.

        services: of timed frames, for which it is recorded how long they took.
        """
        held, before = queue.held, queue.kept
        waiting = sum(held.values())
        gone = min(waiting, rate_pps * span_s)
        if waiting - gone < 1e-6:
            gone = waiting
        kept = min(waiting - gone, float(self.spec.ring))
        dropped = waiting - gone - kept
        queue.packets += gone
        queue.drops += dropped
        queue.kept = kept
        worker.packets += gone
        for key, count in held.items() if waiting else ():
            self._gone[key] = self._gone.get(key, 0.0) + count * gone / waiting
        queue.held = {key: count * kept / waiting for key, count in held.items()} if kept else {}
        ring = Ring(before, kept, dropped, rate_pps, self.spec.ring)
        for key in self._timed if services and gone else ():
            if frames := held.get(key, 0.0) * gone / waiting:
                self._taken.setdefault(key, []).extend(delays(frames, self.spec.latency_s, services, ring))

    def _count(self, worker: WorkerCounters, found: Pace, span_s: float) -> None:
        worker.vectors += found.vectors * span_s
        worker.busy_clocks += found.busy * span_s
        if self._polling:
            polls = found.idle * span_s / (self.spec.idle_poll_cycles + self.spec.loop_cycles)
            worker.idle_polls += polls
            worker.idle_clocks += polls * self.spec.idle_poll_cycles

    def _speed(self, cell: int) -> tuple[float, ...]:
        """Speed of each worker in this cell of the noise's grid, relative to its clock."""
        if self._speeds[0] != cell:
            drawn = [normal(self._seed, worker, cell) for worker in range(self.spec.workers)]
            self._speeds = cell, tuple(1 + self.spec.noise * one for one in drawn)
        return self._speeds[1]


def _waiting(
    queues: Sequence[QueueCounters], coming: Sequence[Sequence[tuple[Key, float]]], span_s: float
) -> list[dict[Key, float]]:
    """Return, for each queue, the frames that it holds or that arrive in the span, by stream."""
    found = []
    for queue, streams in zip(queues, coming, strict=True):
        held = dict(queue.held)
        for key, pps in streams:
            held[key] = held.get(key, 0.0) + pps * span_s
        found.append(held)
    return found


def place(how: str, workers: int, ports: int, queues: int) -> list[int]:
    """The worker of each queue, port 0's queues first.

    round-robin: every queue that registers goes to the next worker, whatever port it is of, as VPP does
    (``src/vnet/interface/rx_queue.c``, next_thread_index). per-port: each port begins at worker 0, as Linux' and
    FreeBSD's drivers do where a port has as many queues as there are cores.
    """
    if how == "round-robin":
        return [index % workers for index in range(ports * queues)]
    return [queue % workers for _ in range(ports) for queue in range(queues)]


_KEY_BYTES = 40


class Rss:
    """The hash of one NIC, whose table is filled with the queues in turn. seed: where a random key is drawn from."""

    def __init__(self, spec: RssSpec, seed: int) -> None:
        self._spec = spec
        self.key = _key_of(spec.key, seed)
        self._toeplitz = Toeplitz(self.key)

    def table(self, queues: int) -> tuple[int, ...]:
        """The queue of each entry."""
        return tuple(entry % queues for entry in range(self._spec.table))

    def shares(self, packets: Sequence[bytes], queues: int) -> tuple[float, ...]:
        """The share of these packets (without FCS) that each queue gets; sums to 1. What is not IP goes to queue 0."""
        if queues == 1 or not packets:
            return (1.0, *(0.0 for _ in range(queues - 1)))
        counts, table = [0] * queues, self.table(queues)
        for packet in packets:
            counts[queue_of(self._toeplitz, packet, self._spec.fields, table)] += 1
        return tuple(count / len(packets) for count in counts)


def _key_of(text: str, seed: int) -> bytes:
    """The key of an RssSpec."""
    if text == "microsoft":
        return MICROSOFT_KEY
    if text == "random":
        return b"".join(mixed(seed, part).to_bytes(8, "big") for part in range(_KEY_BYTES // 8))
    return bytes.fromhex(text)
