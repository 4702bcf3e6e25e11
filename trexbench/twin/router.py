"""The simulated router: receive queues that fill, workers that empty them, and counters of both."""

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
from .noise import mixed, normal
from .workers import Feedback, QueueLoad, Solved, settle
from .world import Arrival

NOISE_S = 0.1  # time for which a worker keeps the speed that was drawn for it
_FULL = 1e-3  # a ring with less room than this, in frames, is full

Key = tuple[int, int]  # port and tag of a stream's frames


@dataclass
class QueueCounters:
    """Frames of one receive queue since the router's start."""

    port: int
    queue: int
    packets: float = 0.0  # fetched
    drops: float = 0.0  # found the ring full
    held: dict[Key, float] = field(default_factory=dict)  # in the ring, by stream
    kept: float = 0.0  # in the ring at the end of the last span


@dataclass
class WorkerCounters:
    """Totals of one worker since the router's start."""

    name: str
    packets: float = 0.0  # forwarded
    vectors: float = 0.0  # polls that found frames
    busy_clocks: float = 0.0  # of all nodes but polls that found nothing
    idle_polls: float = 0.0  # polls that found nothing
    idle_clocks: float = 0.0
    time_s: float = 0.0  # the router's own time since its start
    clock_hz: float = 0.0
    queues: Sequence[QueueCounters] = ()  # polled by it, in the order of registration


class TwinRouter:
    """A Router (``world.py``) made from a spec.

    rx_queues: per port; None for the spec's own number. seed: of the noise; None for the spec's own. A random RSS key
    comes from the spec's seed in any case, as the DUT keeps its own from run to run.
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
        """Copy independently, but share what never changes."""
        twin = copy(self)
        twin._queues = [replace(queue, held=dict(queue.held)) for queue in self._queues]
        twin._workers = [copy(worker) for worker in self._workers]
        twin._sizes, twin._gone = dict(self._sizes), dict(self._gone)
        twin._taken = {}
        return twin

    def spread(self, port: int, packets: Sequence[bytes]) -> tuple[float, ...]:
        return self.rss.shares(packets, self.rx_queues)

    def carry(self, span_s: float, arrivals: Sequence[Arrival]) -> Sequence[float]:
        """Let the span pass, in pieces cut where workers' speeds change and where dropping begins to take time."""
        coming: list[list[tuple[Key, float]]] = [[] for _ in self._queues]  # frames per second by queue and stream
        for arrival in arrivals:
            key = (arrival.port, arrival.tag)
            self._sizes[key] = arrival.frame_bytes
            for queue, share in enumerate(arrival.spread, arrival.port * self.rx_queues):
                if frames := arrival.frames * share:
                    coming[queue].append((key, frames / span_s))
        self._timed, self._taken = tuple((timed.port, timed.tag) for timed in arrivals if timed.timed), {}
        end_s = self.time_s + span_s
        while end_s - self.time_s > 1e-12:
            cell = floor(self.time_s / NOISE_S + 1e-6)
            until_s = min(end_s, (cell + 1) * NOISE_S)
            if end_s - until_s < 1e-9:
                until_s = end_s
            self.time_s = self._step(until_s, cell, coming)
        return [self._gone.pop((arrival.port, arrival.tag), 0.0) for arrival in arrivals]

    def workers(self) -> Sequence[WorkerCounters]:
        """Present totals of every worker."""
        return [
            replace(worker, time_s=self.time_s, queues=[copy(self._queues[at]) for at in places])
            for worker, places in zip(self._workers, self._queues_of, strict=True)
        ]

    def delays(self, port: int, tag: int) -> Sequence[Delay]:
        return self._taken.get((port, tag), ())

    def kept(self, port: int, tag: int) -> float:
        return sum(queue.held.get((port, tag), 0.0) for queue in self._queues)

    def _step(self, until_s: float, cell: int, coming: Sequence[Sequence[tuple[Key, float]]]) -> float:
        """Work under constant conditions until this moment, or until a ring becomes full; return the moment reached."""
        span_s = until_s - self.time_s
        waiting = _waiting(self._queues, coming, span_s)
        solved = self._solve(waiting, span_s, cell)
        if self.spec.drop_cycles and (full_s := self._full_s(solved, span_s)) < span_s:
            span_s, until_s = full_s, self.time_s + full_s
            waiting = _waiting(self._queues, coming, span_s)
            solved = self._solve(waiting, span_s, cell)
        for queue, held in zip(self._queues, waiting, strict=True):
            queue.held = held
        for worker, places, pace in zip(self._workers, self._queues_of, solved.paces, strict=True):
            for number, (at, rate_pps) in enumerate(zip(places, pace.rates_pps, strict=True)):
                queue = self._queues[at]
                services = service(pace, number, self._polling) if self._timed and queue.held else ()
                self._fetch(queue, rate_pps, span_s, worker, services)
            worker.vectors += pace.vectors * span_s
            worker.busy_clocks += pace.busy * span_s
            if self._polling:
                polls = pace.idle * span_s / (self.spec.idle_poll_cycles + self.spec.loop_cycles)
                worker.idle_polls += polls
                worker.idle_clocks += polls * self.spec.idle_poll_cycles
        return until_s

    def _solve(self, waiting: Sequence[Mapping[Key, float]], span_s: float, cell: int) -> Solved:
        loads = []
        for queue, held in zip(self._queues, waiting, strict=True):
            if (frames := sum(held.values())) <= 0:
                loads.append(QueueLoad(queue.port, 0.0, 0.0, 0.0))
                continue
            size = sum(self._sizes[key] * count for key, count in held.items()) / frames
            kept = self.spec.ring if self.spec.ring - queue.kept <= _FULL else frames
            loads.append(QueueLoad(queue.port, frames / span_s, size, kept / span_s))
        if self._speeds[0] != cell:  # of the noise's grid
            drawn = [normal(self._seed, worker, cell) for worker in range(self.spec.workers)]
            self._speeds = cell, tuple(1 + self.spec.noise * deviate for deviate in drawn)
        speeds = self._speeds[1]
        # as long as nothing changes, the workers keep their pace
        if self._solved is None or not self._solved.fits(loads, speeds):
            paces, self._feedback = settle(self.spec, loads, self._queues_of, speeds, self._partners, self._feedback)
            self._solved = Solved(tuple(loads), speeds, tuple(paces))
        return self._solved

    def _full_s(self, solved: Solved, span_s: float) -> float:
        """Time until another ring becomes full; the span, if none does within it."""
        full_s = span_s
        for places, pace in zip(self._queues_of, solved.paces, strict=True):
            for at, rate_pps in zip(places, pace.rates_pps, strict=True):
                room = self.spec.ring - self._queues[at].kept
                more = (solved.loads[at].rate_pps - rate_pps) * span_s - self._queues[at].kept
                if more > room > _FULL:
                    full_s = min(full_s, span_s * room / more)
        return full_s

    def _fetch(
        self, queue: QueueCounters, rate_pps: float, span_s: float, worker: WorkerCounters, services: Sequence[Service]
    ) -> None:
        """Take frames out of the ring, of every stream the same share, and drop what it cannot hold.

        With ``services``, record the delays of timed frames.
        """
        held, before = queue.held, queue.kept
        waiting = sum(held.values())
        gone = min(waiting, rate_pps * span_s)
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


def _waiting(
    queues: Sequence[QueueCounters], coming: Sequence[Sequence[tuple[Key, float]]], span_s: float
) -> list[dict[Key, float]]:
    """Return the frames that each queue holds or gets in the span, by stream."""
    waiting = []
    for queue, streams in zip(queues, coming, strict=True):
        held = dict(queue.held)
        for key, pps in streams:
            held[key] = held.get(key, 0.0) + pps * span_s
        waiting.append(held)
    return waiting


def place(placement: str, workers: int, ports: int, queues: int) -> list[int]:
    """Worker of each queue, port 0's queues first.

    round-robin: every queue that registers goes to the next worker, whichever port it is of, as in VPP
    (``src/vnet/interface/rx_queue.c``, next_thread_index). per-port: each port begins at worker 0, as with the drivers
    of Linux and FreeBSD where a port has as many queues as there are cores.
    """
    if placement == "round-robin":
        return [index % workers for index in range(ports * queues)]
    return [queue % workers for _ in range(ports) for queue in range(queues)]


_KEY_BYTES = 40


class Rss:
    """Hash of one NIC, whose table is filled with the queues in turn. seed: of a random key."""

    def __init__(self, spec: RssSpec, seed: int) -> None:
        self._spec = spec
        if spec.key == "microsoft":
            self.key = MICROSOFT_KEY
        elif spec.key == "random":
            self.key = b"".join(mixed(seed, part).to_bytes(8, "big") for part in range(_KEY_BYTES // 8))
        else:
            self.key = bytes.fromhex(spec.key)
        self._toeplitz = Toeplitz(self.key)

    def table(self, queues: int) -> tuple[int, ...]:
        """Queue of each entry."""
        return tuple(entry % queues for entry in range(self._spec.table))

    def shares(self, packets: Sequence[bytes], queues: int) -> tuple[float, ...]:
        """Share of these packets (without FCS) that each queue gets, summing to 1. All but IP goes to queue 0."""
        if queues == 1 or not packets:
            return (1.0, *(0.0 for _ in range(queues - 1)))
        counts, table = [0] * queues, self.table(queues)
        for packet in packets:
            counts[queue_of(self._toeplitz, packet, self._spec.fields, table)] += 1
        return tuple(count / len(packets) for count in counts)
