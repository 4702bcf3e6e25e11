"""Was a window the limit of a flow: the send buffer, the receiver's window, or the congestion window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ..units import format_bits, format_time
from .intervals import NOT_COUNTED, Flow
from .model import StreamCount

FULL = {"send buffer": 0.5, "receive window": 0.8, "congestion window": 0.8}
"""Bytes in flight that fill it, as a share of it. A send buffer's bytes include the kernel's overhead, and one that
grows by itself is kept at three times what is in flight."""
NO_QUEUE = 0.8
"""Share of window over shortest round trip: a flow that carries at least this has built up no queue anywhere."""
MOST_LOSS = 1e-3
"""With more segments sent again the congestion window is what losses made of it."""
RECEIVE_USABLE = 0.76
"""Usable share of SO_RCVBUF, where the kernel does not report the window that was offered."""


@dataclass(frozen=True)
class TcpWindow:
    """kind: a key of FULL. in_flight_bytes, size_bytes: of the median stream. predicted_bps: of all such streams
    together, what is in flight over the shortest round trip."""

    kind: str
    in_flight_bytes: float
    size_bytes: float
    round_trip_s: float
    predicted_bps: float
    rate_bps: float

    def __str__(self) -> str:
        return (
            f"{self.in_flight_bytes / 1e6:.3g} MB in flight fill the {self.kind} of {self.size_bytes / 1e6:.3g} MB; "
            f"over a round trip of {format_time(self.round_trip_s)} that makes {format_bits(self.predicted_bps)}, "
            f"and {format_bits(self.rate_bps)} were carried"
        )


def find_window(flow: Flow, ping_s: float | None = None) -> TcpWindow | None:
    """The window that limits most of the flow's traffic; None if none does, or it is not known.

    ping_s: the shortest round trip of the idle path.
    """
    found: dict[str, list[TcpWindow]] = {}
    total_bps = flow.received_bps or 0.0
    for stream in sorted({one.stream for reading in flow.sending for one in reading.streams}):
        if (window := _of_stream(flow, stream, ping_s)) is not None:
            found.setdefault(window.kind, []).append(window)
    for kind, windows in found.items():
        rate_bps = sum(one.rate_bps for one in windows)
        if 2 * rate_bps > total_bps:
            return TcpWindow(
                kind=kind,
                in_flight_bytes=median(one.in_flight_bytes for one in windows),
                size_bytes=median(one.size_bytes for one in windows),
                round_trip_s=min(one.round_trip_s for one in windows),
                predicted_bps=sum(one.predicted_bps for one in windows),
                rate_bps=rate_bps,
            )
    return None


def _of_stream(flow: Flow, stream: int, ping_s: float | None) -> TcpWindow | None:
    rate_bps = _rate(flow, stream)
    counts = [one for reading in flow.sending[1:] for one in reading.streams if one.stream == stream]
    # Without them nobody knows whether the smoothed ones are those of an empty path or of a full queue.
    shortest = [value / 1e6 for one in counts if (value := _value(one, "min_rtt"))] + ([ping_s] if ping_s else [])
    if not shortest or rate_bps <= 0:
        return None
    base_s = min([*shortest, *(value / 1e6 for one in counts if (value := _value(one, "rtt")))])
    rtts = [value for one in counts if (value := _value(one, "rtt")) is not None]
    estimate = rate_bps / 8 * median(rtts) / 1e6 if rtts else None
    in_flight = _median([_in_flight(one) for one in counts]) or estimate
    if in_flight is None or rate_bps < NO_QUEUE * 8 * in_flight / base_s:
        return None
    for kind, size in _sizes(flow, counts, stream).items():
        lossy = kind == "congestion window" and _loss(flow, stream) > MOST_LOSS
        if size is not None and in_flight >= FULL[kind] * size and not lossy:
            return TcpWindow(kind, in_flight, size, base_s, 8 * in_flight / base_s, rate_bps)
    return None


def _sizes(flow: Flow, counts: Sequence[StreamCount], stream: int) -> dict[str, float | None]:
    """In this order: the first two are settings, the last one is what TCP made of the path."""
    buffers = [one.receive_buffer_bytes for r in flow.receiving for one in r.streams if one.stream == stream]
    offered = _median([_value(one, "snd_wnd") for one in counts])
    known = _median([None if one is None else float(one) for one in buffers])
    return {
        "send buffer": _median([None if (b := one.send_buffer_bytes) is None else float(b) for one in counts]),
        "receive window": offered or (RECEIVE_USABLE * known if known is not None else None),
        "congestion window": _median([_product(one, "snd_cwnd") for one in counts]),
    }


def _rate(flow: Flow, stream: int) -> float:
    parts = [(s.received_bps, one.length_s) for one in flow.intervals for s in one.streams if s.stream == stream]
    length_s = sum(length for _, length in parts)
    return sum(bps * length for bps, length in parts) / length_s if length_s > 0 else 0.0


def _loss(flow: Flow, stream: int) -> float:
    """Segments sent again, as a share of those received; 0 where that is not known."""
    mine = [(s, one.length_s) for one in flow.intervals for s in one.streams if s.stream == stream]
    again = sum(s.retransmits or 0 for s, _ in mine)
    mss = [_value(one, "snd_mss") for reading in flow.sending for one in reading.streams if one.stream == stream]
    size = _median(mss) or 1448.0
    segments = sum(s.received_bps * length for s, length in mine) / 8 / size
    return again / segments if segments else 0.0


def _in_flight(one: StreamCount) -> float | None:
    return _product(one, "unacked")


def _product(one: StreamCount, name: str) -> float | None:
    """A count of segments, in bytes."""
    segments, mss = _value(one, name), _value(one, "snd_mss")
    return None if segments is None or mss is None else segments * mss


def _value(one: StreamCount, name: str) -> float | None:
    value = one.info.get(name)
    return float(value) if value is not None and 0 <= value < NOT_COUNTED else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
