"""TCP through a simulated router: the readings of both hosts and the router, derived from the twin's limits.

A flow begins as in slow start (ten segments, doubled each round trip) and then carries what its limit allows, with the
noise of each interval drawn from the seed, the leg and the interval's number alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil, log, log2, sqrt
from random import Random
from zlib import crc32

from ..core.dut.telemetry import CpuTime, DropCount, DutReading, Moment, Observation
from ..core.tcp.plan import HostReading, Leg, Ping, StreamCount, TcpPlan, ThreadTime, Way
from .noise import mixed, normal
from .tcp_limits import BUS, LINE, LOSS, QUEUES, ROUTER, WAN, Carried, TcpModel, of_way, share, ways_of

KERNEL = 0.9  # the kernel's share of an endpoint's CPU time
FIRST_WINDOW = 10  # segments that a connection sends at first (RFC 6928)
TIMESTAMPS = 1  # bit of TCP_INFO's ``options``
UNFILLED = 1.5  # congestion window relative to what is in flight, where it is not the limit
_AROUND = 2  # factor by which the round trip is shorter without the router
_WAYS = (Way.FORWARD, Way.REVERSE, Way.BIDIR)


@dataclass(frozen=True)
class Instant:
    """Readings of all hosts at one moment of a leg."""

    at_s: float  # since the leg began
    client: HostReading
    server: HostReading
    dut: DutReading | None  # None without a router


@dataclass
class _Flow:
    """Totals so far of one direction."""

    way: Way
    carried: Carried
    idle_s: float  # round trip of the idle path
    rtt_s: float  # present round trip, with the waiting
    loss: float = 0.0  # share of packets lost on a WAN
    sent_bytes: float = 0.0
    payload_bytes: float = 0.0
    retransmits: float = 0.0


class TcpTwin:
    """TCP through one twin, with the noise of one seed. A leg begins at ``began_s`` of the router's clock."""

    def __init__(self, model: TcpModel, seed: int) -> None:
        self._model, self._tcp, self._seed = model, model.tcp, seed

    def run(self, leg: Leg, plan: TcpPlan, began_s: float = 0.0) -> Iterator[Instant]:
        """Yield the readings of a leg through the router, the first before any payload."""
        yield from self._run(leg, plan, self._model.carried(leg, plan.streams), began_s, self._model.round_trip_s, True)

    def run_around(self, leg: Leg, plan: TcpPlan) -> Iterator[Instant]:
        """Yield the readings of a leg between the endpoints alone, the first before any payload."""
        trip_s = self._tcp.ping.avg_s / _AROUND
        bounds = [*self._model.endpoint_bounds(leg, plan.streams, trip_s)]
        yield from self._run(leg, plan, share(bounds, ways_of(leg)), 0.0, trip_s, False)

    def idle(self, t_s: float, moment: Moment) -> DutReading:
        """Read the router's counters while it has nothing to forward."""
        return _Router(self._model, Leg(Way.FORWARD), 1).reading(t_s, t_s, moment)

    def ping(self, leg: Leg, count: int, loaded: bool, streams: int = 1) -> Ping:
        """Ping over the idle path, or beside the leg: the requests wait where its packets wait."""
        rng, ping = Random(mixed(self._seed, 7, loaded, *_numbers(leg))), self._tcp.ping
        flows = self._model.carried(leg, streams).values() if loaded else ()
        waits = [self._waiting_s(flow, leg, streams) for flow in flows]
        times = []
        for _ in range(count):
            idle_s = min(ping.max_s, max(ping.min_s, rng.gauss(ping.avg_s, ping.mdev_s)))
            times.append(idle_s + sum(wait * (0.5 + 0.5 * rng.random()) for wait in waits))
        if (wan := self._model.wan) is not None:
            jitter = [wan.jitter_s * (rng.uniform(-1, 1) + rng.uniform(-1, 1)) for _ in times]
            lost = [rng.random() > (1 - wan.loss) ** 2 for _ in times]
            each = zip(times, jitter, lost, strict=True)
            times = [time_s + wan.delay_s + differs_s for time_s, differs_s, gone in each if not gone]
        return Ping(leg, loaded, count, tuple(times))

    def _waiting_s(self, carried: Carried, leg: Leg, streams: int) -> float:
        """Time in the queue before the limit, filled up by itself or as far as the windows allow."""
        if carried.limit not in QUEUES or carried.bps <= 0:
            return 0.0
        longest = 8 * self._model.queue_bytes(leg, carried.limit) / carried.bps
        allowed = 8 * streams * self._model.window_bytes(leg) / carried.bps - self._model.round_trip_s
        return max(0.0, min(longest, allowed))

    def _run(
        self, leg: Leg, plan: TcpPlan, steady: Mapping[Way, Carried], began_s: float, idle_s: float, through: bool
    ) -> Iterator[Instant]:
        loss = self._model.wan.loss if through and self._model.wan is not None else 0.0
        flows = [_Flow(way, limit, idle_s, idle_s, loss) for way, limit in steady.items()]
        router = _Router(self._model, leg, plan.streams) if through else None
        last_s = plan.omit_s + plan.time_s
        moments = [min(n * plan.interval_s, last_s) for n in range(ceil(last_s / plan.interval_s) + 1)]

        def instant(at_s: float, moment: Moment) -> Instant:
            client, server = (self._host(at_s, flows, leg, plan, client) for client in (True, False))
            return Instant(at_s, client, server, router.reading(began_s + at_s, at_s, moment) if router else None)

        yield instant(0.0, Moment.BEGIN)
        for number, (before_s, at_s) in enumerate(pairwise(moments)):
            carried = {flow.way: self._advance(flow, leg, plan, number, before_s, at_s) for flow in flows}
            if router is not None:
                router.work(at_s - before_s, carried, flows)
            yield instant(at_s, Moment.END if at_s == moments[-1] else Moment.TICK)

    def _advance(self, flow: _Flow, leg: Leg, plan: TcpPlan, number: int, begin_s: float, end_s: float) -> float:
        """Let an interval pass; returns its payload in bytes."""
        tcp, key = self._tcp, (self._seed, *_numbers(leg), _WAYS.index(flow.way))
        mss = self._model.sizes(leg.version).mss
        spread = of_way(tcp.noise, flow.way) if tcp.noise is not None else self._model.spec.noise
        factor = max(0.0, 1 + normal(*key, 1, number) * spread / sqrt(end_s - begin_s))
        first_bps = 8 * FIRST_WINDOW * mss * plan.streams / flow.idle_s
        if flow.carried.limit in (LINE, WAN):  # never faster than their rate
            factor = min(factor, 1.0)
        full = opened(flow.carried.bps, first_bps, flow.idle_s, end_s)
        carried = factor * (full - opened(flow.carried.bps, first_bps, flow.idle_s, begin_s)) / 8
        flow.payload_bytes += carried
        if flow.carried.limit in (ROUTER, BUS):
            flow.retransmits += of_way(tcp.loss, flow.way) * carried / mss
        flow.retransmits += flow.loss * carried / mss
        share_waiting = 0.5 + 0.5 * Random(mixed(*key, 2, number)).random()
        flow.rtt_s = flow.idle_s + share_waiting * self._waiting_s(flow.carried, leg, plan.streams)
        flow.sent_bytes = max(flow.sent_bytes, flow.payload_bytes + flow.carried.bps * flow.rtt_s / 8)
        return carried

    def _host(self, at_s: float, flows: list[_Flow], leg: Leg, plan: TcpPlan, client: bool) -> HostReading:
        counts = [
            self._stream(at_s, flow, leg, plan, number + index * plan.streams, client)
            for index, flow in enumerate(flows)
            for number in range(plan.streams)
        ]
        endpoint_bps = self._tcp.endpoint_bps
        spent = [min(at_s, 8 * flow.payload_bytes / of_way(endpoint_bps, flow.way)) for flow in flows]
        cpus = tuple(CpuTime(thread, at_s, busy_s) for thread, busy_s in enumerate(spent))
        threads = (ThreadTime(n, (1 - KERNEL) * busy_s, KERNEL * busy_s, 0.0) for n, busy_s in enumerate(spent))
        return HostReading(at_s, tuple(counts), cpus, tuple(threads))

    def _stream(self, at_s: float, flow: _Flow, leg: Leg, plan: TcpPlan, number: int, client: bool) -> StreamCount:
        streams, mss = plan.streams, self._model.sizes(leg.version).mss
        received, (send_buffer, receive_window) = flow.payload_bytes / streams, self._model.buffers(leg)
        if client != (flow.way is Way.FORWARD):
            return StreamCount(number, False, int(received), {}, None, leg.buffer_bytes or 2 * receive_window)
        if at_s == 0:
            return StreamCount(number, True, 0, {}, send_buffer)
        segments = max(1, round(flow.carried.bps * flow.rtt_s / 8 / streams / mss))
        info = {
            "options": TIMESTAMPS * self._tcp.timestamps,
            "rtt": round(flow.rtt_s * 1e6),
            "rttvar": round(flow.rtt_s * 1e5),
            "min_rtt": round(flow.idle_s * 1e6),
            "snd_mss": mss,
            "snd_cwnd": segments if flow.carried.limit == LOSS else round(UNFILLED * segments) + 1,
            "unacked": segments,
            "total_retrans": int((flow.retransmits + number % streams) / streams),  # in sum, all of them
            "bytes_acked": int(received),
            "snd_wnd": receive_window,
        }
        return StreamCount(number, True, int(flow.sent_bytes / streams), info, send_buffer)


class _Router:
    """Counters of the router: CPU time by core, drops and power."""

    def __init__(self, model: TcpModel, leg: Leg, streams: int) -> None:
        self._model, self._leg = model, leg
        self._used = model.cores_used(streams)
        self._cores = model.cores
        self._busy_s, self._drops = 0.0, 0.0

    def work(self, length_s: float, carried: Mapping[Way, float], flows: list[_Flow]) -> None:
        """Let an interval pass. A router that is the limit is busy throughout, however much it carried."""
        needed_s = sum(self._model.core_seconds(way, self._leg.version, size) for way, size in carried.items())
        full = any(flow.carried.limit == ROUTER for flow in flows)
        self._busy_s += length_s if full else min(length_s, needed_s / self._used)
        self._drops = sum(flow.retransmits for flow in flows)

    def reading(self, t_s: float, at_s: float, moment: Moment) -> DutReading:
        power, clock = self._model.tcp.power, self._model.spec.clock_hz
        busy = [self._busy_s if core < self._used else 0.0 for core in range(self._cores)]
        observation = Observation(
            at_s=at_s,
            cpus=tuple(CpuTime(core, at_s, spent, spent, clock) for core, spent in enumerate(busy)),
            drops=(DropCount("dropped", int(self._drops)),),
            power_w=None if power is None else power.idle_w,
        )
        return DutReading(moment, t_s, 0.0, observation)


@lru_cache(maxsize=1024)
def opened(full_bps: float, first_bps: float, round_trip_s: float, at_s: float) -> float:
    """Bits carried until ``at_s`` by a rate that doubles each round trip until it is the full one."""
    if full_bps <= 0:
        return 0.0
    if first_bps >= full_bps:
        return full_bps * at_s
    opening_s = round_trip_s * log2(full_bps / first_bps)
    grown = first_bps * round_trip_s / log(2) * (2 ** (min(at_s, opening_s) / round_trip_s) - 1)
    return grown + full_bps * max(0.0, at_s - opening_s)


def _numbers(leg: Leg) -> tuple[int, ...]:
    """Numbers that identify the leg, to draw its noise from."""
    options = [leg.buffer_bytes] if leg.buffer_bytes is not None else []
    options += [crc32(leg.congestion.encode())] if leg.congestion else []
    return _WAYS.index(leg.way), leg.version, leg.repetition, *options
