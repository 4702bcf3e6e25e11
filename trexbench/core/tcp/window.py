"""Find out whether a window limited a flow: the send buffer, the receiver's window, or the congestion window. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from ..means import of_known
from ..units import format_bits, format_time
from .intervals import Flow

FULL = {"send buffer": 0.5, "receive window": 0.8, "congestion window": 0.8}
"""A window is full if this share of it is in flight. A send buffer's bytes include the kernel's overhead, and one that
grows by itself is kept at three times what is in flight."""
NO_QUEUE = 0.8
"""A flow that carries at least this share of window over shortest round trip has built up no queue anywhere."""
MOST_LOSS = 1e-3
"""If a larger share is sent again, the congestion window is what losses made of it."""
RECEIVE_USABLE = 0.76
"""Usable share of SO_RCVBUF, if the kernel does not report the offered window."""


@dataclass(frozen=True)
class TcpWindow:
    """A window that was full."""

    kind: str
    """A key of FULL."""
    in_flight_bytes: float
    """The median stream's, like the size."""
    size_bytes: float
    round_trip_s: float
    """The shortest."""
    predicted_bps: float
    """Bytes in flight over the round trip, of all such streams together."""
    rate_bps: float
    streams: int = 1

    @property
    def most_bps(self) -> float:
        """The rate that it allows: that of a whole receive window, of another the bytes in flight."""
        whole = self.kind == "receive window" and self.size_bytes > self.in_flight_bytes
        return self.predicted_bps * (self.size_bytes / self.in_flight_bytes if whole else 1.0)

    def __str__(self) -> str:
        each = f" on each of {self.streams} connections" if self.streams > 1 else ""
        size = f"{self.size_bytes / 1e6:.3g} MB{each}"
        return (
            f"{self.in_flight_bytes / 1e6:.3g} MB in flight fill the {self.kind} of {size}; "
            f"over a round trip of {format_time(self.round_trip_s)} that makes {format_bits(self.predicted_bps)}, "
            f"and {format_bits(self.rate_bps)} were carried"
        )


def find_window(flow: Flow, ping_s: float | None = None) -> TcpWindow | None:
    """Find the window that limits most of the flow's traffic; None if none does, or it is not known.

    ping_s: the shortest round trip of the idle path.
    """
    full: dict[str, list[TcpWindow]] = {}
    for stream in sorted({count.stream for reading in flow.sending for count in reading.streams}):
        if (window := _window_of(flow, stream, ping_s)) is not None:
            full.setdefault(window.kind, []).append(window)
    for kind, windows in full.items():
        rate_bps = sum(window.rate_bps for window in windows)
        if 2 * rate_bps > (flow.received_bps or 0.0):
            return TcpWindow(
                kind=kind,
                in_flight_bytes=median(window.in_flight_bytes for window in windows),
                size_bytes=median(window.size_bytes for window in windows),
                round_trip_s=min(window.round_trip_s for window in windows),
                predicted_bps=sum(window.predicted_bps for window in windows),
                rate_bps=rate_bps,
                streams=len(windows),
            )
    return None


def _window_of(flow: Flow, stream: int, ping_s: float | None) -> TcpWindow | None:
    parts = [(interval.streams[stream], interval.length_s) for interval in flow.intervals if stream in interval.streams]
    length_s = sum(length for _, length in parts)
    rate_bps = sum(bps * length for bps, length in parts) / length_s if length_s > 0 else 0.0
    counts = [count for reading in flow.sending[1:] for count in reading.streams if count.stream == stream]
    # Without the shortest, smoothed round trips may be those of an empty path or of a full queue.
    shortest = [value / 1e6 for count in counts if (value := count.value("min_rtt"))] + ([ping_s] if ping_s else [])
    if not shortest or rate_bps <= 0:
        return None
    rtts = [value / 1e6 for count in counts if (value := count.value("rtt")) is not None]
    base_s = min([*shortest, *filter(None, rtts)])
    seen = of_known(median, (count.in_bytes("unacked") for count in counts))
    in_flight = seen or (rate_bps / 8 * median(rtts) if rtts else None)
    if in_flight is None or rate_bps < NO_QUEUE * 8 * in_flight / base_s:
        return None
    buffers = [count.receive_buffer_bytes for r in flow.receiving for count in r.streams if count.stream == stream]
    offered, known = of_known(median, (count.value("snd_wnd") for count in counts)), of_known(median, buffers)
    sizes = {
        "send buffer": of_known(median, (count.send_buffer_bytes for count in counts)),
        "receive window": offered or (RECEIVE_USABLE * known if known is not None else None),
        "congestion window": of_known(median, (count.in_bytes("snd_cwnd") for count in counts)),
    }
    if (flow.retransmitted or 0.0) > MOST_LOSS:
        del sizes["congestion window"]
    full = {kind: size for kind, size in sizes.items() if size is not None and in_flight >= FULL[kind] * size}
    # The last is what TCP made of the path; the others are settings, of which the one that allows less counts.
    kind = min(full, key=lambda kind: (kind == "congestion window", FULL[kind] * full[kind]), default=None)
    return None if kind is None else TcpWindow(kind, in_flight, full[kind], base_s, 8 * in_flight / base_s, rate_bps)
