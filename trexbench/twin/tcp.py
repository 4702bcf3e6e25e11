"""TCP through a simulated router: the readings of both hosts and the router, derived from the twin's limits.

A flow carries what its limit allows from its first moment, with the noise of each interval drawn from the seed, the leg
and the interval's number alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt

from ..core.dut.telemetry import CpuTime, DropCount, DutReading, Moment, Observation
from ..core.tcp.plan import HostReading, Leg, Ping, StreamCount, TcpPlan, ThreadTime, Way
from .noise import drawn, normal
from .tcp_limits import LINE, LOSS, QUEUES, ROUTER, WAN, Carried, TcpModel

KERNEL = 0.9  # the kernel's share of an endpoint's CPU time
DROPPED = 0.001  # share of the packets that a router drops, and hosts send again, where it is the limit
TIMESTAMPS = 1  # bit of TCP_INFO's ``options``
UNFILLED = 1.5  # congestion window relative to what is in flight, where it is not the limit
PING_SPREAD = 0.07  # standard deviation of the idle path's round trips, as a share of their mean


@dataclass(frozen=True)
class Instant:
    """Readings of all hosts at one moment of a leg."""

    at_s: float  # since the leg began
    client: HostReading
    server: HostReading
    dut: DutReading


@dataclass
class _Flow:
    """Totals so far of one direction."""

    way: Way
    carried: Carried
    idle_s: float  # round trip of the idle path
    rtt_s: float  # present round trip, with the waiting
    loss: float  # share of packets lost
    sent_bytes: float = 0.0
    payload_bytes: float = 0.0
    retransmits: float = 0.0


class TcpTwin:
    """TCP through one twin, with the noise of one seed. A leg begins at ``began_s`` of the router's clock."""

    def __init__(self, model: TcpModel, seed: int) -> None:
        self._model, self._seed = model, seed

    def run(self, leg: Leg, plan: TcpPlan, began_s: float = 0.0) -> Iterator[Instant]:
        """Yield the readings of a leg, the first before any payload."""
        lost = self._model.wan.loss if self._model.wan is not None else 0.0
        idle_s, steady = self._model.round_trip_s, self._model.carried(leg, plan.streams)
        flows = [
            _Flow(way, limit, idle_s, idle_s, lost + DROPPED * (limit.limit == ROUTER)) for way, limit in steady.items()
        ]
        cores, full = self._model.cores_used(plan.streams), any(one.limit == ROUTER for one in steady.values())
        busy_s, before_s, before_bytes = 0.0, 0.0, 0.0
        for at_s, moment in self._advance(flows, leg, plan):
            carried = sum(flow.payload_bytes for flow in flows)
            needed_s = self._model.core_seconds(leg.version, carried - before_bytes) / cores
            # a router that is the limit is busy throughout, however much it carried
            busy_s += at_s - before_s if full else min(at_s - before_s, needed_s)
            before_s, before_bytes = at_s, carried
            drops = sum(flow.retransmits * (1 - lost / flow.loss) for flow in flows if flow.loss)  # not the WAN's
            dut = self._router(began_s + at_s, at_s, moment, [busy_s] * cores, drops)
            yield Instant(at_s, *self._hosts(at_s, flows, leg, plan), dut)

    def idle(self, t_s: float, moment: Moment) -> DutReading:
        """Read the router's counters while it has nothing to forward."""
        return self._router(t_s, t_s, moment)

    def ping(self, leg: Leg, count: int, loaded: bool, streams: int = 1) -> Ping:
        """Ping over the idle path, or beside the leg: the requests wait where its packets wait."""
        rng, wan = drawn(self._seed, leg, loaded), self._model.wan
        flows = self._model.carried(leg, streams).values() if loaded else ()
        waits, times = [self._waiting_s(flow, leg, streams) for flow in flows], []
        for _ in range(count):
            time_s = self._model.tcp.ping_s * max(0.5, rng.gauss(1, PING_SPREAD))
            time_s += sum(wait * rng.uniform(0.5, 1) for wait in waits)
            if wan is not None:
                time_s += wan.delay_s + wan.jitter_s * (rng.uniform(-1, 1) + rng.uniform(-1, 1))
            if wan is None or rng.random() <= (1 - wan.loss) ** 2:
                times.append(time_s)
        return Ping(leg, loaded, count, tuple(times))

    def _waiting_s(self, carried: Carried, leg: Leg, streams: int) -> float:
        """Time in the queue before the limit, filled up by itself or as far as the windows allow."""
        if carried.limit not in QUEUES or carried.bps <= 0:
            return 0.0
        longest = 8 * self._model.queue_bytes(leg, carried.limit) / carried.bps
        allowed = 8 * streams * self._model.window_bytes(leg) / carried.bps - self._model.round_trip_s
        return max(0.0, min(longest, allowed))

    def _advance(self, flows: list[_Flow], leg: Leg, plan: TcpPlan) -> Iterator[tuple[float, Moment]]:
        """Let the leg pass; yield each moment of reading, when the flows are as far."""
        last_s = plan.omit_s + plan.time_s
        times = (number * plan.interval_s for number in range(ceil(last_s / plan.interval_s)))
        moments = [*(time_s for time_s in times if time_s < last_s - 1e-6), last_s]
        yield 0.0, Moment.BEGIN
        for number, (before_s, at_s) in enumerate(pairwise(moments)):
            for flow in flows:
                self._carry(flow, leg, plan, number, at_s - before_s)
            yield at_s, Moment.END if at_s == last_s else Moment.TICK

    def _carry(self, flow: _Flow, leg: Leg, plan: TcpPlan, number: int, span_s: float) -> None:
        rng = drawn(self._seed, leg, flow.way, number)
        factor = max(0.0, 1 + normal(rng) * self._model.spec.noise / sqrt(span_s))
        if flow.carried.limit in (LINE, WAN):  # never faster than their rate
            factor = min(factor, 1.0)
        carried = factor * flow.carried.bps * span_s / 8
        flow.payload_bytes += carried
        flow.retransmits += flow.loss * carried / self._model.mss(leg.version)
        share_waiting = rng.uniform(0.5, 1)
        flow.rtt_s = flow.idle_s + share_waiting * self._waiting_s(flow.carried, leg, plan.streams)
        flow.sent_bytes = max(flow.sent_bytes, flow.payload_bytes + flow.carried.bps * flow.rtt_s / 8)

    def _hosts(self, at_s: float, flows: list[_Flow], leg: Leg, plan: TcpPlan) -> tuple[HostReading, HostReading]:
        """Readings of client and server."""
        spent = [min(at_s, 8 * flow.payload_bytes / self._model.endpoint_bps) for flow in flows]
        cpus = tuple(CpuTime(thread, at_s, busy_s) for thread, busy_s in enumerate(spent))
        threads = tuple(ThreadTime(n, (1 - KERNEL) * busy_s, KERNEL * busy_s, 0.0) for n, busy_s in enumerate(spent))
        client, server = (
            tuple(
                self._stream(at_s, flow, leg, plan, number + index * plan.streams, client)
                for index, flow in enumerate(flows)
                for number in range(plan.streams)
            )
            for client in (True, False)
        )
        return HostReading(at_s, client, cpus, threads), HostReading(at_s, server, cpus, threads)

    def _stream(self, at_s: float, flow: _Flow, leg: Leg, plan: TcpPlan, number: int, client: bool) -> StreamCount:
        streams, mss = plan.streams, self._model.mss(leg.version)
        received, (buffer, receive_window) = flow.payload_bytes / streams, self._model.buffers(leg)
        if client != (flow.way is Way.FORWARD):
            return StreamCount(number, False, int(received), {}, None, buffer)
        if at_s == 0:
            return StreamCount(number, True, 0, {}, buffer)
        segments = max(1, round(flow.carried.bps * flow.rtt_s / 8 / streams / mss))
        info = {
            "options": TIMESTAMPS,
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
        return StreamCount(number, True, int(flow.sent_bytes / streams), info, buffer)

    def _router(
        self, t_s: float, at_s: float, moment: Moment, busy_s: Sequence[float] = (), drops: float = 0.0
    ) -> DutReading:
        """Read its counters: CPU time by core, and drops."""
        clock, idle = self._model.spec.clock_hz, [0.0] * (self._model.spec.workers - len(busy_s))
        observation = Observation(
            at_s=at_s,
            cpus=tuple(CpuTime(core, at_s, spent, spent, clock) for core, spent in enumerate((*busy_s, *idle))),
            drops=(DropCount("dropped", int(drops)),),
        )
        return DutReading(moment, t_s, 0.0, observation)
