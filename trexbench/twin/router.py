"""The simulated router: receive queues that fill, workers that empty them, and counters of both."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import floor
from typing import Any

from ..config.twin import RssSpec, TwinSpec
from ..core.dut.rss import MICROSOFT_KEY, Toeplitz, queue_of
from .latency import Delay, delay
from .noise import drawn, normal
from .workers import Pace, QueueLoad, pace
from .world import Arrival

NOISE_S = 0.1  # time for which a worker keeps the speed that was drawn for it

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
    parts: dict[Key, float] = field(default_factory=dict)  # of a frame that is to be dropped, by stream


@dataclass
class WorkerCounters:
    """Totals of one worker since the router's start."""

    packets: float = 0.0  # forwarded
    vectors: float = 0.0  # polls that found frames
    busy_clocks: float = 0.0
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
        self.rss = Rss(spec.rss, spec.seed)
        self._queues = [QueueCounters(port, number) for port in range(ports) for number in range(self.rx_queues)]
        self.placement = tuple(place(spec.placement, spec.workers, ports, self.rx_queues))
        self._workers = [WorkerCounters(clock_hz=spec.clock_hz) for _ in range(spec.workers)]
        self._queues_of = [
            tuple(at for at, worker in enumerate(self.placement) if worker == number) for number in range(spec.workers)
        ]
        self._sizes: dict[Key, float] = {}
        self._gone: dict[Key, float] = {}
        self._timed: tuple[Key, ...] = ()
        self._taken: dict[Key, list[Delay]] = {}

    def __deepcopy__(self, _memo: dict[int, Any]) -> TwinRouter:
        """Copy independently, but share what never changes."""
        twin = copy(self)
        twin._queues = [replace(q, held=dict(q.held), parts=dict(q.parts)) for q in self._queues]
        twin._workers = [copy(worker) for worker in self._workers]
        twin._sizes, twin._gone = dict(self._sizes), dict(self._gone)
        twin._taken = {}
        return twin

    def spread(self, port: int, packets: Sequence[bytes]) -> tuple[float, ...]:
        return self.rss.shares(packets, self.rx_queues)

    def carry(self, span_s: float, arrivals: Sequence[Arrival]) -> Sequence[float]:
        """Let the span pass, in pieces cut where workers' speeds change."""
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
            self._step(until_s - self.time_s, cell, coming)
            self.time_s = until_s
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

    def _step(self, span_s: float, cell: int, coming: Sequence[Sequence[tuple[Key, float]]]) -> None:
        """Work for this long under constant conditions."""
        for queue, streams in zip(self._queues, coming, strict=True):
            for key, pps in streams:
                queue.held[key] = queue.held.get(key, 0.0) + pps * span_s
        for number, (worker, places) in enumerate(zip(self._workers, self._queues_of, strict=True)):
            if not any(self._queues[at].held for at in places):
                continue
            speed = 1 + self.spec.noise * normal(drawn(self._seed, number, cell)) if self.spec.noise else 1.0
            now = pace(self.spec, [self._load(self._queues[at], span_s) for at in places], speed)
            for index, at in enumerate(places):
                worker.packets += self._fetch(self._queues[at], now, index, span_s)
            worker.vectors += now.vectors * span_s
            worker.busy_clocks += now.busy / speed * span_s

    def _load(self, queue: QueueCounters, span_s: float) -> QueueLoad:
        frames = sum(queue.held.values())
        if frames <= 0:
            return QueueLoad(0.0, 0.0, 0.0)
        size = sum(self._sizes[key] * count for key, count in queue.held.items()) / frames
        return QueueLoad(frames / span_s, size, self.spec.ring / span_s)

    def _fetch(self, queue: QueueCounters, now: Pace, index: int, span_s: float) -> float:
        """Take frames out of the ring, of every stream the same share, and drop what it cannot hold.

        Whole frames are dropped, and a part of one is fetched: counts are rounded down, and with half a frame missing a
        later trial would lose one that no queue dropped. Record the delays of timed frames; return how many frames were
        fetched.
        """
        held, before, waiting = queue.held, queue.kept, sum(queue.held.values())
        gone = min(waiting, now.rates_pps[index] * span_s)
        kept = min(waiting - gone, float(self.spec.ring))
        dropped = waiting - gone - kept
        fetched = 0.0
        for key, count in held.items() if waiting else ():
            leaving, lost = count * (gone + dropped) / waiting, count * dropped / waiting + queue.parts.get(key, 0.0)
            drops = floor(min(leaving, lost))
            queue.parts[key] = lost - drops
            queue.drops += drops
            fetched += leaving - drops
            self._gone[key] = self._gone.get(key, 0.0) + leaving - drops
        queue.packets += fetched
        queue.kept = kept
        queue.held = {key: count * kept / waiting for key, count in held.items()} if kept else {}
        ends = (kept if dropped else before, kept)  # one that overflows fills in no time
        for key in self._timed if gone else ():
            if frames := held.get(key, 0.0) * gone / waiting:
                self._taken.setdefault(key, []).append(delay(self.spec, frames, now, index, ends))
        return fetched


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
            self.key = drawn(seed).randbytes(_KEY_BYTES)
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
