"""Read the output of the genuine iperf3 with -J: its intervals as running totals of each connection. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated, Any

import msgspec

from .plan import StreamCount

Whole = Annotated[float, msgspec.Meta(ge=-1, le=1e20)]


class Iperf3Interval(msgspec.Struct, frozen=True):
    """One stream in one interval; sizes in bytes, rtt in us. What only a sender knows is None for a receiver."""

    socket: int
    end: Annotated[float, msgspec.Meta(ge=0, le=1e9)]
    """Since the end of the omitted time."""
    seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)]
    bytes: Whole
    omitted: bool = False
    sender: bool | None = None
    retransmits: Whole | None = None
    snd_cwnd: Whole | None = None
    snd_wnd: Whole | None = None
    rtt: Whole | None = None
    rttvar: Whole | None = None
    pmtu: Whole | None = None


class Intervals(msgspec.Struct, frozen=True):
    streams: list[Iperf3Interval] = []


class Connected(msgspec.Struct, frozen=True):
    socket: int
    remote_host: str = ""


class Asked(msgspec.Struct, frozen=True):
    """The requested test."""

    protocol: str = "TCP"
    duration: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0
    """In s; 0: a number of bytes was to be sent."""
    reverse: Any = 0
    """True if the server sends."""


class Start(msgspec.Struct, frozen=True):
    connected: list[Connected] = []
    version: str = ""
    system_info: str = ""
    timestamp: dict[str, Any] = {}
    accepted_connection: dict[str, Any] | None = None
    test_start: Asked | None = None
    tcp_mss_default: Annotated[int, msgspec.Meta(ge=0)] = 0


class Iperf3Output(msgspec.Struct, frozen=True):
    start: Start = Start()
    intervals: list[Intervals] = []
    end: dict[str, Any] = {}
    error: str = ""


Totals = list[tuple[float, tuple[StreamCount, ...]]]


@dataclass(frozen=True)
class Told:
    """One run of iperf3."""

    totals: Totals
    """For each interval its end, in seconds since the run began, and the totals of each stream so far."""
    length_s: float
    about: Mapping[str, str]
    """Its version, and the congestion control of either end."""
    error: str = ""
    omit_s: float = 0.0
    """End of the omitted time."""


def told_in(output: Iperf3Output) -> Told:
    """Read the run in this output, without a last interval that is too short for a rate."""
    about = {"version": output.start.version.removeprefix("iperf ")}
    used = {side: output.end.get(f"{side}_tcp_congestion") for side in ("sender", "receiver")}
    about |= {f"{side}_congestion": name for side, name in used.items() if isinstance(name, str)}
    totals, omit_s = _totals(output)
    short = len(totals) > 1 and totals[-1][0] - totals[-2][0] < totals[0][0] / 2
    length_s = totals[-1][0] if totals else 0.0
    return Told(totals[:-1] if short else totals, length_s, about, output.error, omit_s)


def _totals(output: Iperf3Output) -> tuple[Totals, float]:
    """Sum the streams up, interval by interval; also return the end of the omitted time."""
    order = [stream.socket for stream in output.start.connected]
    so_far: dict[int, StreamCount] = {}
    totals: Totals = []
    is_reverse = bool(output.start.test_start and output.start.test_start.reverse)
    after_s, omit_s, omitting = 0.0, 0.0, False
    for interval, _ in groupby(output.intervals):  # a server whose client is interrupted prints its last one twice
        first = interval.streams[0] if interval.streams else None
        if first is not None and omitting and not first.omitted and first.seconds - first.end > first.seconds / 10:
            # It began in the omitted time, but has only the payload that came afterwards.
            omit_s = after_s + first.seconds - first.end
            totals.append((omit_s, _in_order(so_far)))
        for stream in interval.streams:
            if stream.socket not in order:
                continue
            # Before 3.7 it did not say who sends.
            sends = not is_reverse if stream.sender is None else stream.sender
            before = so_far.get(stream.socket, StreamCount(order.index(stream.socket) + 1, sends, 0))
            payload = before.payload_bytes + max(0, int(stream.bytes))
            info = _info(stream, before, output.start.tcp_mss_default)
            so_far[stream.socket] = replace(before, payload_bytes=payload, info=info)
        if first is not None:
            after_s, omitting = after_s + first.seconds, first.omitted
            omit_s = after_s if omitting else omit_s
            totals.append((after_s, _in_order(so_far)))
    return totals, omit_s


def _in_order(so_far: Mapping[int, StreamCount]) -> tuple[StreamCount, ...]:
    return tuple(sorted(so_far.values(), key=lambda count: count.stream))


def _info(interval: Iperf3Interval, before: StreamCount, mss: int) -> Mapping[str, int]:
    """Translate to TCP_INFO's names: iperf3 counts retransmits by interval, and has -1 and 2**64 - 1 for unknown."""
    values = {name: getattr(interval, name) for name in ("rtt", "rttvar", "pmtu", "snd_wnd")}
    info = {name: int(value) for name, value in values.items() if value is not None and value >= 0}
    if interval.retransmits is not None and 0 <= interval.retransmits < 1 << 48:
        info["total_retrans"] = before.info.get("total_retrans", 0) + int(interval.retransmits)
    if interval.snd_cwnd is not None and interval.snd_cwnd >= 0 and mss:
        info["snd_cwnd"], info["snd_mss"] = int(interval.snd_cwnd) // mss, mss
    return info
