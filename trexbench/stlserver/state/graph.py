"""Peak bandwidth of a set of streams, and the factor that reaches a wanted rate.

The approximation is TRex's: bursts are steps on a time line, and the peak of their sum counts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..wire import cannot_execute
from .stream import ServerStream, StreamRate

MIN_BURST_PKTS = 1000  # shorter bursts count as the least bandwidth there is
NO_RATE = StreamRate(0.0, 0.0, 0.0)
LEAST_RATE = StreamRate(pps=1.0, bps_l1=272.0, bps_l2=112.0)


@dataclass(frozen=True)
class RateEvent:
    """Step of the summed rate."""

    time_us: float
    change: StreamRate
    stream_id: int


@dataclass(frozen=True)
class Graph:
    """Rates of a profile over time."""

    peak: StreamRate  # largest sum at factor 1, without the fixed rates
    duration_us: int  # -1: it never ends
    events: Sequence[RateEvent] = field(default_factory=tuple)
    fixed: StreamRate = NO_RATE  # sum of the latency streams, which ignore the factor; as in TRex they are no events

    def at(self, factor: float) -> StreamRate:
        """Largest sum of all streams at this factor."""
        return self.peak.scaled(factor).plus(self.fixed)


NO_GRAPH = Graph(NO_RATE, 0)


def build(streams: Mapping[int, ServerStream], speed_bps: float) -> Graph:
    """Walk from each enabled stream that starts by itself along its links, which ``check_links`` has checked."""
    enabled = {stream_id: s for stream_id, s in streams.items() if s.enabled}
    events: list[RateEvent] = []
    fixed: list[StreamRate] = []
    endless = False
    # TRex begins with the newest stream; where steps coincide, the peak depends on that order
    for root in reversed(enabled.values()):
        if root.self_start:
            endless |= _walk(root, enabled, speed_bps, events, fixed)
    for event in events:
        if not math.isfinite(event.time_us):
            raise cannot_execute(f"stream {event.stream_id}: its gaps and bursts last longer than can be counted")
    events.sort(key=lambda event: event.time_us)
    total = peak = NO_RATE
    for event in events:
        total = total.plus(event.change)
        peak = StreamRate(max(peak.pps, total.pps), max(peak.bps_l1, total.bps_l1), max(peak.bps_l2, total.bps_l2))
    duration_us = -1 if endless else int(events[-1].time_us) if events else 0
    built = Graph(peak, duration_us, tuple(events), functools.reduce(StreamRate.plus, fixed, NO_RATE))
    if not math.isfinite(built.at(1.0).bps_l1):
        raise cannot_execute("the streams' rates add up to more than can be counted")
    return built


def _walk(
    root: ServerStream,
    enabled: Mapping[int, ServerStream],
    speed_bps: float,
    events: list[RateEvent],
    fixed: list[StreamRate],
) -> bool:
    """Append the steps and fixed rates of one chain; True if it never ends (a continuous stream, or a loop)."""
    stream, offset_us, seen = root, 0.0, set()
    while True:
        seen.add(stream.stream_id)
        rate = stream.rate(speed_bps)
        start_us = offset_us + stream.isg_us
        if stream.fixed_rate:
            fixed.append(rate)
        elif stream.mode == "continuous":
            events.append(RateEvent(start_us, rate, stream.stream_id))
            return True
        else:
            change = LEAST_RATE if stream.total_pkts < MIN_BURST_PKTS else rate
            events.append(RateEvent(start_us, change, stream.stream_id))
            burst_us = (stream.total_pkts - 1) / rate.pps * 1e6
            bursts_us = burst_us if stream.mode == "single_burst" else (burst_us + stream.ibg_us) * stream.count
            offset_us = start_us + bursts_us
            events.append(RateEvent(offset_us, change.scaled(-1.0), stream.stream_id))
        if stream.next_stream_id == -1:
            return False
        if stream.next_stream_id in seen:
            return True
        stream = enabled[stream.next_stream_id]


def check_links(streams: Mapping[int, ServerStream]) -> None:
    """Refuse streams that lead to none that can follow, or that nothing starts."""
    enabled = {stream_id: s for stream_id, s in streams.items() if s.enabled}
    for stream in enabled.values():
        following = stream.next_stream_id
        if following != -1 and (stream.mode == "continuous" or following not in enabled):
            why = "it never ends" if stream.mode == "continuous" else "that is disabled or not there"
            raise cannot_execute(f"stream {stream.stream_id} cannot lead to stream {following}: {why}")
    reached: set[int] = set()
    ahead = [s.stream_id for s in enabled.values() if s.self_start]
    while ahead:
        stream_id = ahead.pop()
        if stream_id != -1 and stream_id not in reached:
            reached.add(stream_id)
            ahead.append(enabled[stream_id].next_stream_id)
    lost = enabled.keys() - reached
    if lost:
        raise cannot_execute(f"nothing starts stream {min(lost)}")


@dataclass(frozen=True)
class Multiplier:
    """Rate that ``start`` or ``update`` asks for."""

    kind: str  # raw, pps, bps, bpsl1 or percentage
    op: str  # abs, add or sub
    value: float


def factor_for(graph: Graph, mul: Multiplier, current: float, speed_bps: float, force: bool) -> float:
    """Factor that ``mul`` asks for; for add and sub, the factor of the difference alone.

    ``current`` is the running factor, to which relative percentages refer. Without ``force``, what exceeds the line
    rate is refused, and the result is never above the line rate's own factor.
    """
    factor = _wanted_factor(graph, mul, current, speed_bps) if graph.at(1.0).bps_l1 > 0 else 0.0
    expected_bps = graph.at(factor).bps_l1
    if expected_bps <= 0 or factor <= 0:
        raise cannot_execute(f"a factor of {factor:g} sends nothing")
    if force and math.isfinite(expected_bps):
        return factor
    if expected_bps / speed_bps > 1.0001:
        text = f"Expected L1 B/W: '{expected_bps / 1e9:g} Gbps' exceeds port line rate: '{speed_bps / 1e9:g} Gbps'"
        raise cannot_execute(text)
    room_bps = speed_bps - graph.fixed.bps_l1
    if graph.peak.bps_l1 <= 0 or room_bps <= 0:  # fixed rates alone may exceed the line rate by the tolerance above
        return factor
    return min(factor, room_bps / graph.peak.bps_l1)


def _wanted_factor(graph: Graph, mul: Multiplier, current: float, speed_bps: float) -> float:
    if mul.kind == "raw":
        return mul.value
    if mul.kind == "percentage" and mul.op != "abs":
        return current * mul.value / 100.0
    if mul.kind == "percentage":
        unit, wanted = "BPS L1", mul.value / 100.0 * speed_bps
    else:
        unit, wanted = {"pps": "pps", "bps": "BPS L2", "bpsl1": "BPS L1"}[mul.kind], mul.value
    per_factor, fixed = {
        "pps": (graph.peak.pps, graph.fixed.pps),
        "BPS L2": (graph.peak.bps_l2, graph.fixed.bps_l2),
        "BPS L1": (graph.peak.bps_l1, graph.fixed.bps_l1),
    }[unit]
    if wanted < fixed:
        raise cannot_execute(f"current stream configuration enforces a minimum rate of '{fixed:g}' {unit}")
    # TRex divides by zero where all rates are fixed; any factor would be right
    return (wanted - fixed) / per_factor if per_factor else 1.0
