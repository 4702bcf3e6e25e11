"""TCP payload that a simulated router lets through: the least of a few limits, in a fluid model without time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..config.twin import TcpTwinSpec, TwinSpec
from ..core.tcp.laws import SENDABLE, USUAL_SCALE, loss_bound, share_of_scale
from ..core.tcp.plan import HEADER_BYTES, Leg, Way
from ..core.tcp.tunnel import Tunnel
from ..core.tcp.wan import Wan

LINE, ROUTER, WINDOW, ENDPOINT, PATH = "line", "router", "window", "endpoint", "path"
WAN, LOSS = "wan", "loss"
QUEUES = (LINE, ROUTER, WAN)  # limits before which packets queue
QUEUE = 100  # most packets that queue before such a limit, unless it is a WAN
DEFAULT_LINE_BPS, DEFAULT_ENDPOINT_BPS = 10e9, 20e9
DEFAULT_CONGESTION = "cubic"
BUFFERS = (10240, 87380, 16777216)
"""Bytes of tcp_rmem and tcp_wmem of both hosts."""
_FREE = 1e18
_DIRECT = Tunnel()
_MTU, _FCS, _ETHERNET, _PREAMBLE_AND_GAP = 1500, 4, 18, 20


@dataclass(frozen=True)
class Carried:
    """Payload that one way carries, and the name of its limit."""

    bps: float
    limit: str


class TcpModel:
    """Limits of one twin.

    line_bps: where the twin's section names none. wan: between router and server. congestion: of legs that ask for
    none. dials: through a PPPoE session.
    """

    def __init__(
        self,
        spec: TwinSpec,
        line_bps: float | None = None,
        wan: Wan | None = None,
        congestion: str = DEFAULT_CONGESTION,
        tunnel: Tunnel = _DIRECT,
        dials: bool = False,
    ) -> None:
        self.spec, self.tcp, self.wan, self._congestion = spec, spec.tcp, wan, congestion
        self.line_bps = self.tcp.line_bps or line_bps or DEFAULT_LINE_BPS
        self.endpoint_bps = self.tcp.endpoint_bps or DEFAULT_ENDPOINT_BPS
        self.dials, self.tunnel = dials, tunnel

    @property
    def mtu(self) -> int:
        """Bytes of the largest packet that the line, or its PPPoE session, carries."""
        return _MTU - HEADER_BYTES["pppoe"][4] * self.dials

    @property
    def inner_mtu(self) -> int | None:
        """Bytes of the largest packet inside a tunnel that programs hold open; None: there is none."""
        return self.tunnel.inner_mtu(self.mtu) if self.tunnel.is_opened else None

    def mss(self, version: int) -> int:
        """Payload in bytes of a full packet, whose segment has timestamps."""
        room = self.mtu - HEADER_BYTES[self.tunnel.kind].get(version, 0) if self.inner_mtu is None else self.inner_mtu
        return room - (20 if version == 4 else 40) - 32

    def cores_used(self, streams: int) -> int:
        """Number of cores that forward this many connections."""
        return min(self.spec.workers, streams)

    def core_seconds(self, version: int, payload_bytes: float) -> float:
        """Core seconds that the router needs to carry this much payload."""
        stated = self.tcp.cycles.ipv4 if version == 4 else self.tcp.cycles.ipv6
        cycles = stated or self.spec.packet_cycles + self.spec.byte_cycles * (_MTU + _ETHERNET)
        return payload_bytes / self.mss(version) * cycles / self.spec.clock_hz

    @property
    def round_trip_s(self) -> float:
        """Round trip of the idle path."""
        return self.tcp.ping_s + (self.wan.delay_s if self.wan is not None else 0.0)

    def buffers(self, leg: Leg) -> tuple[int, int]:
        """SO_SNDBUF of a sender and the window that a receiver offers, in bytes."""
        size = leg.buffer_bytes or BUFFERS[2]
        return size, int(share_of_scale(USUAL_SCALE) * size)

    def window_bytes(self, leg: Leg) -> float:
        """Most payload in bytes that one connection can have in flight."""
        send_buffer, receive_window = self.buffers(leg)
        return min(SENDABLE * send_buffer, receive_window)

    def queue_bytes(self, leg: Leg, limit: str) -> float:
        """Most payload that queues before this limit."""
        if limit == WAN and self.wan is not None:
            return self.wan.queue_bytes or 0
        return QUEUE * self.mss(leg.version)

    def without_router(self) -> TcpModel:
        """Return the same hosts on a cable of their own, with half the round trip."""
        tcp = TcpTwinSpec(line_bps=_FREE, endpoint_bps=self.endpoint_bps, ping_s=self.tcp.ping_s / 2)
        return TcpModel(replace(self.spec, clock_hz=_FREE, tcp=tcp))

    def carried(self, leg: Leg, streams: int) -> Mapping[Way, Carried]:
        """Payload of each direction in the steady state; the directions share the router's cores."""
        ways = (Way.FORWARD, Way.REVERSE) if leg.way is Way.BIDIR else (leg.way,)
        alone = {way: _least(self._path(leg, streams, way)) for way in ways}
        room_bps, found = self.cores_used(streams) / self.core_seconds(leg.version, 1 / 8), {}
        for way, own in alone.items():
            others_bps = sum(other.bps for another, other in alone.items() if another is not way)
            level_bps = max(room_bps / len(alone), room_bps - others_bps)
            found[way] = _least((own, Carried(level_bps, ROUTER)))
        return found

    def _path(self, leg: Leg, streams: int, way: Way) -> Iterator[Carried]:
        mss, frame = self.mss(leg.version), _MTU + _ETHERNET
        yield Carried(self.endpoint_bps, ENDPOINT)
        yield Carried(8 * streams * self.window_bytes(leg) / self.round_trip_s, WINDOW)
        yield Carried(self.line_bps * mss / (frame + _PREAMBLE_AND_GAP), LINE)
        if self.tcp.path_bps is not None:
            yield Carried(self.tcp.path_bps.forward if way is Way.FORWARD else self.tcp.path_bps.reverse, PATH)
        if self.wan is not None and self.wan.rate_bps is not None:  # which counts frames without FCS
            yield Carried(self.wan.rate_bps * mss / (frame - _FCS), WAN)
        if self.wan is not None:
            lossy = loss_bound(leg.congestion or self._congestion, mss, self.round_trip_s, self.wan.loss)
            if lossy is not None:
                yield Carried(streams * lossy[0], LOSS)


def _least(limits: Iterable[Carried]) -> Carried:
    return min(limits, key=lambda one: one.bps)
