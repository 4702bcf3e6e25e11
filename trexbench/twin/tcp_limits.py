"""TCP payload that a simulated router lets through, and the limit that sets it: a fluid model without time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..config.twin import TwinSpec
from ..config.twin_tcp import PerWay
from ..core.errors import ConfigError
from ..core.tcp.laws import SENDABLE, loss_bound, share_of_scale
from ..core.tcp.plan import HEADER_BYTES, Leg, Way
from ..core.tcp.wan import Wan

LINE, BUS, ROUTER, WINDOW, ENDPOINT, PATH = "line", "bus", "router", "window", "endpoint", "path"
WAN, LOSS = "wan", "loss"
QUEUES = (LINE, BUS, ROUTER, WAN)  # limits before which packets queue
QUEUE = 100  # most packets that queue before such a limit, unless it is a WAN
DEFAULT_LINE_BPS = 10e9
DEFAULT_CONGESTION = "cubic"
_FCS = 4
_ETHERNET, _PREAMBLE_AND_GAP, _SHORTEST = 18, 20, 64


@dataclass(frozen=True)
class Sizes:
    """Sizes in bytes on the encapsulated side."""

    mss: int  # payload of a full packet
    frame: int  # Ethernet frame with FCS of a full packet
    ack: int  # likewise of an ACK

    def on_line(self, acks_per_packet: float) -> float:
        """L1 bytes of a data packet and its share of an ACK."""
        return self.frame + _PREAMBLE_AND_GAP + self.acks_on_line(acks_per_packet)

    def acks_on_line(self, acks_per_packet: float) -> float:
        return (self.ack + _PREAMBLE_AND_GAP) * acks_per_packet


@dataclass(frozen=True)
class CapacityBound:
    """Bound on the sum of each way's payload times its cost."""

    name: str
    cost: Mapping[Way, float]
    capacity: float


@dataclass(frozen=True)
class Carried:
    """Payload that one way carries, and the name of its limit."""

    bps: float
    limit: str


class TcpModel:
    """Limits of one twin.

    line_bps: where the twin's section names none. variant: a name of its ``tcp.variants``, or else of its ``variants``,
    whose extra cost per packet applies to TCP, too. wan: between router and server. congestion: of legs that ask for
    none.
    """

    def __init__(
        self,
        spec: TwinSpec,
        line_bps: float | None = None,
        variant: str | None = None,
        wan: Wan | None = None,
        congestion: str = DEFAULT_CONGESTION,
    ) -> None:
        self.spec, self.tcp, self.wan, self._congestion = spec, spec.tcp, wan, congestion
        self._plain = spec
        for_tcp, for_packets = dict(self.tcp.variants), dict(spec.variants)
        if variant is not None and variant not in {**for_tcp, **for_packets}:
            own = ", ".join({**for_tcp, **for_packets}) or "none"
            raise ConfigError(f"the twin has no variant {variant!r} for TCP", f"its own: {own}")
        if variant in for_tcp:
            self.tcp = for_tcp[variant].applied_to(self.tcp)
        elif variant is not None:
            self.spec = for_packets[variant].applied_to(spec)
        self.line_bps = self.tcp.line_bps or line_bps or DEFAULT_LINE_BPS
        self.acks_per_packet = 1 / self.tcp.segments_per_ack

    def sizes(self, version: int) -> Sizes:
        tcp = self.tcp
        named = tcp.encapsulation.ipv4 if version == 4 else tcp.encapsulation.ipv6
        named = tcp.tunnel.kind if tcp.tunnel is not None else named
        tunnel = HEADER_BYTES[named].get(version, 0)
        headers = (20 if version == 4 else 40) + 20 + 12 * tcp.timestamps
        frame = _ETHERNET + 4 * tcp.vlans
        return Sizes(tcp.mtu - tunnel - headers, tcp.mtu + frame, max(tunnel + headers + frame, _SHORTEST))

    def cycles(self, version: int) -> PerWay:
        """Cycles for one packet or ACK."""
        named = self.tcp.cycles.of(version)
        own, plain = (
            spec.packet_cycles + spec.fetch_cycles + spec.byte_cycles * self.sizes(version).frame
            for spec in (self.spec, self._plain)
        )
        if named is None:
            return PerWay(own, own)
        return PerWay(*(max(1.0, cycles + own - plain) for cycles in (named.forward, named.reverse)))

    @property
    def cores(self) -> int:
        """Number of the router's cores."""
        return max(self.spec.workers, self.tcp.cores or 0)

    def cores_used(self, streams: int) -> int:
        """Number of cores that forward this many connections."""
        return min(self.spec.workers, streams)

    def core_seconds(self, way: Way, version: int, payload_bytes: float) -> float:
        """Core seconds that the router needs to carry this much payload."""
        packets = payload_bytes / self.sizes(version).mss
        return packets * (1 + self.acks_per_packet) * of_way(self.cycles(version), way) / self.spec.clock_hz

    @property
    def round_trip_s(self) -> float:
        """Round trip of the idle path."""
        return self.tcp.ping.avg_s + (self.wan.delay_s if self.wan is not None else 0.0)

    def buffers(self, leg: Leg) -> tuple[int, int]:
        """SO_SNDBUF of a sender and the window that a receiver offers, in bytes."""
        size = leg.buffer_bytes
        window = int(share_of_scale(self.tcp.adv_win_scale) * (size or self.tcp.rmem[2]))
        return size or self.tcp.wmem[2], window

    def window_bytes(self, leg: Leg) -> float:
        """Most payload in bytes that one connection can have in flight."""
        send_buffer, receive_window = self.buffers(leg)
        return min(SENDABLE * send_buffer, receive_window)

    def queue_bytes(self, leg: Leg, limit: str) -> float:
        """Most payload that queues before this limit."""
        if limit == WAN and self.wan is not None:
            return self.wan.queue_bytes or 0
        return QUEUE * self.sizes(leg.version).mss

    def carried(self, leg: Leg, streams: int) -> Mapping[Way, Carried]:
        """Payload of each direction of the leg in the steady state."""
        return share([*self._router_bounds(leg, streams), *self.endpoint_bounds(leg, streams)], ways_of(leg))

    def endpoint_bounds(self, leg: Leg, streams: int, round_trip_s: float | None = None) -> Iterator[CapacityBound]:
        """Yield the limits that hold without the router, too; without ``round_trip_s``, on the idle path."""
        window = self.window_bytes(leg)
        for way in ways_of(leg):
            yield CapacityBound(ENDPOINT, {way: 1.0}, of_way(self.tcp.endpoint_bps, way))
            yield CapacityBound(WINDOW, {way: 1.0}, 8 * streams * window / (round_trip_s or self.round_trip_s))

    def _router_bounds(self, leg: Leg, streams: int) -> Iterator[CapacityBound]:
        tcp, ways, sizes, acks = self.tcp, ways_of(leg), self.sizes(leg.version), self.acks_per_packet
        if tcp.one_armed:
            yield CapacityBound(LINE, dict.fromkeys(ways, sizes.on_line(acks) / sizes.mss), self.line_bps)
        else:
            for way in ways:
                there = {way: sizes.on_line(0) / sizes.mss}
                back = {other: sizes.acks_on_line(acks) / sizes.mss for other in ways if other != way}
                yield CapacityBound(LINE, {**there, **back}, self.line_bps)
        if (wan := self.wan) is not None:
            lossy = loss_bound(leg.congestion or self._congestion, sizes.mss, self.round_trip_s, wan.loss)
            for way in ways:
                if wan.rate_bps is not None:  # which counts frames without FCS
                    back = {other: (sizes.ack - _FCS) * acks / sizes.mss for other in ways if other != way}
                    yield CapacityBound(WAN, {way: (sizes.frame - _FCS) / sizes.mss, **back}, wan.rate_bps)
                if lossy is not None:
                    yield CapacityBound(LOSS, {way: 1.0}, streams * lossy[0])
        if tcp.bus_bps is not None:
            crossing = 2 * (sizes.frame + acks * sizes.ack) / sizes.mss  # each comes in and goes out
            yield CapacityBound(BUS, dict.fromkeys(ways, crossing), tcp.bus_bps)
        core_s = {way: self.core_seconds(way, leg.version, 1 / 8) for way in ways}
        yield CapacityBound(ROUTER, core_s, self.cores_used(streams))
        if tcp.path_bps is not None:
            yield from (CapacityBound(PATH, {way: 1.0}, of_way(tcp.path_bps, way)) for way in ways)


def ways_of(leg: Leg) -> tuple[Way, ...]:
    """Directions in which payload flows."""
    return (Way.FORWARD, Way.REVERSE) if leg.way is Way.BIDIR else (leg.way,)


def of_way(quantity: PerWay, way: Way) -> float:
    return quantity.forward if way is Way.FORWARD else quantity.reverse


def share(bounds: Sequence[CapacityBound], ways: Sequence[Way]) -> Mapping[Way, Carried]:
    """Share the capacity max-min fairly: all ways grow alike; those that meet a bound stay there, the others go on."""
    settled: dict[Way, Carried] = {}
    while free := [way for way in ways if way not in settled]:
        levels = []
        for bound in bounds:
            if any(way in bound.cost for way in free):
                taken = sum(bound.cost.get(way, 0.0) * carried.bps for way, carried in settled.items())
                level = max(0.0, bound.capacity - taken) / sum(bound.cost.get(way, 0.0) for way in free)
                levels.append((level, bound))
        level, tightest = min(levels, key=lambda pair: pair[0])
        settled |= {way: Carried(level, tightest.name) for way in free if way in tightest.cost}
    return settled
