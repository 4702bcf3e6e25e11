"""Output of the genuine iperf3 with -J: its intervals as totals of each connection. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec

from .model import StreamCount

Whole = Annotated[float, msgspec.Meta(ge=-1, le=1e20)]


class Iperf3Interval(msgspec.Struct, frozen=True):
    """One stream in one interval. end: since what is omitted was over. Sizes in bytes, rtt in us; what only a sender
    knows is None for a receiver."""

    socket: int
    end: Annotated[float, msgspec.Meta(ge=0, le=1e9)]
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
    """Requested test. duration: in s, 0 where a number of bytes was to be sent. reverse: the server sends."""

    protocol: str = "TCP"
    num_streams: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    duration: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0
    reverse: Any = 0


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
    """One run of iperf3. totals: by interval its end in seconds since the begin, and each stream so far.

    length_s: of the test, omit_s: of what was to be omitted at its begin. about: its version and the congestion control
    of either end. error: why it failed, or empty.
    """

    totals: Totals
    length_s: float
    about: Mapping[str, str]
    error: str = ""
    omit_s: float = 0.0


def told_in(found: Iperf3Output) -> Told:
    """The run that this output tells of."""
    about = {"version": found.start.version.removeprefix("iperf ")}
    used = {side: found.end.get(f"{side}_tcp_congestion") for side in ("sender", "receiver")}
    about |= {f"{side}_congestion": name for side, name in used.items() if isinstance(name, str)}
    totals, omit_s = _totals(found)
    return Told(_rateable(totals), totals[-1][0] if totals else 0.0, about, found.error, omit_s)


def _totals(found: Iperf3Output) -> tuple[Totals, float]:
    """And when what is omitted was over."""
    order = [one.socket for one in found.start.connected]
    so_far: dict[int, StreamCount] = {}
    totals: Totals = []
    reversed_way = bool(found.start.test_start and found.start.test_start.reverse)
    after_s, omit_s, omitting = 0.0, 0.0, False
    for interval in found.intervals:
        first = interval.streams[0] if interval.streams else None
        if first is not None and omitting and not first.omitted and first.seconds - first.end > first.seconds / 10:
            # It began while the time to be omitted was not over, but has only the payload of what came later.
            omit_s = after_s + first.seconds - first.end
            totals.append((omit_s, _in_order(so_far)))
        for one in interval.streams:
            if one.socket not in order:
                continue
            # Before 3.7 it did not say who sends.
            sends = not reversed_way if one.sender is None else one.sender
            before = so_far.get(one.socket, StreamCount(order.index(one.socket) + 1, sends, 0))
            payload = before.payload_bytes + max(0, int(one.bytes))
            so_far[one.socket] = replace(before, payload_bytes=payload, info=_info(one, before, found.start))
        if first is not None:
            after_s, omitting = after_s + first.seconds, first.omitted
            omit_s = after_s if omitting else omit_s
            totals.append((after_s, _in_order(so_far)))
    return totals, omit_s


def _in_order(so_far: Mapping[int, StreamCount]) -> tuple[StreamCount, ...]:
    return tuple(sorted(so_far.values(), key=lambda one: one.stream))


def _rateable(totals: Totals) -> Totals:
    """Without a last interval that is too short for a rate."""
    short = len(totals) > 1 and totals[-1][0] - totals[-2][0] < totals[0][0] / 2
    return totals[:-1] if short else totals


def _info(one: Iperf3Interval, before: StreamCount, start: Start) -> Mapping[str, int]:
    """By TCP_INFO's names. iperf3 tells retransmits by interval and the window in bytes; -1 and 2**64 - 1 are none."""
    info = {}
    for name in ("rtt", "rttvar", "pmtu", "snd_wnd"):
        value = getattr(one, name)
        if value is not None and value >= 0:
            info[name] = int(value)
    if one.retransmits is not None and 0 <= one.retransmits < 1 << 48:
        info["total_retrans"] = before.info.get("total_retrans", 0) + int(one.retransmits)
    if one.snd_cwnd is not None and one.snd_cwnd >= 0 and start.tcp_mss_default:
        info["snd_cwnd"], info["snd_mss"] = int(one.snd_cwnd) // start.tcp_mss_default, start.tcp_mss_default
    return info
