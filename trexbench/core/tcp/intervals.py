"""Turn raw readings of both ends into intervals of one direction of a leg: what the receiver got, and at what cost.

Intervals lie between the receiver's readings and have its clock. What the sender alone knows (retransmits, round trip,
window) comes from those of its own intervals whose middle lies in the receiver's; each clock counts from the last
reading before any payload. Nothing is interpolated.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from statistics import fmean

from ..means import of_known, whole_sum
from ..units import format_share
from ..verdict.parts import RunWarning
from .plan import NOT_COUNTED, HostReading, LegReadings, StreamCount, TcpPlan, Way

HOSTS = ("client", "server")
REGULAR = (0.5, 1.5)
"""Range of lengths, as multiples of the requested one, in which intervals enter the statistics."""
OMIT_SLACK = 0.1
"""Share of its length by which an interval may begin before the end of the omitted time."""
CLOCKS_APART, CLOCKS_APART_S = 0.005, 0.1
"""Allowed difference between the ends' clocks: a share of the leg, or this time, since readings come late."""
USUAL_MSS = 1448.0
"""Payload of a segment in bytes, if no connection reports its own."""


@dataclass(frozen=True)
class Interval:
    """All connections of a direction between two readings of the receiver.

    Sums over the streams. What only the sender knows is None if it was not read.
    """

    begin_s: float  # since the traffic began
    end_s: float  # since the traffic began
    received_bps: float  # payload that the receiver's program got
    sent_bps: float | None  # payload that the sender's program gave to its kernel
    retransmits: int | None  # retransmitted segments
    rtt_s: float | None  # mean of the kernel's smoothed round trips
    cwnd_bytes: float | None  # congestion window at the interval's end
    streams: Mapping[int, float]  # payload that each stream received, in bit/s
    regular: bool = True  # it is as long as interval_s, by half; of the statistics others enter the mean only

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s


@dataclass(frozen=True)
class Flow:
    """One direction of a leg."""

    sender: str  # ``client`` or ``server``
    intervals: tuple[Interval, ...]  # in order, without the omitted time
    sending: tuple[HostReading, ...]
    """Raw readings of the time that counts; receiving: the same of the receiver."""
    receiving: tuple[HostReading, ...]
    warnings: tuple[RunWarning, ...] = ()

    @property
    def receiver(self) -> str:
        return HOSTS[self.sender == HOSTS[0]]

    @property
    def regular(self) -> tuple[Interval, ...]:
        return tuple(interval for interval in self.intervals if interval.regular)

    @property
    def received_bps(self) -> float | None:
        """Payload rate over the whole time that counts, irregular intervals included; None without any interval."""
        length_s = sum(interval.length_s for interval in self.intervals)
        return self._received_bits / length_s if length_s > 0 else None

    @property
    def _received_bits(self) -> float:
        return sum(interval.received_bps * interval.length_s for interval in self.intervals)

    @property
    def retransmits(self) -> int | None:
        """Retransmitted segments, over the whole time that counts; None if no interval knows."""
        known = [interval.retransmits for interval in self.intervals if interval.retransmits is not None]
        return sum(known) if known else None

    @property
    def mss(self) -> float:
        """Mean payload of a segment, in bytes."""
        sizes = [size for reading in self.sending for stream in reading.streams if (size := stream.value("snd_mss"))]
        return fmean(sizes or [USUAL_MSS])

    @property
    def retransmitted(self) -> float | None:
        """Retransmitted segments, as a share of those received; None if not known."""
        segments = self._received_bits / 8 / self.mss
        return self.retransmits / segments if self.retransmits is not None and segments else None


@dataclass(frozen=True)
class _Step:
    """Counts of one direction at one end between two readings; times since the traffic began."""

    begin_s: float
    end_s: float
    streams: tuple[tuple[StreamCount, StreamCount], ...]

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s

    @property
    def middle_s(self) -> float:
        return (self.begin_s + self.end_s) / 2


def find_flows(plan: TcpPlan, leg: LegReadings) -> tuple[Flow, ...]:
    """Return the directions of a leg: one, or for ``bidir`` the client's and then the server's."""
    senders = {Way.FORWARD: HOSTS[:1], Way.REVERSE: HOSTS[1:], Way.BIDIR: HOSTS}[leg.leg.way]
    return tuple(_flow(plan, leg, sender) for sender in senders)


def _flow(plan: TcpPlan, leg: LegReadings, sender: str) -> Flow:
    ends = (leg.client, leg.server) if sender == HOSTS[0] else (leg.server, leg.client)
    warnings: list[RunWarning] = []
    sending, receiving = (_one_direction(ends[at], sends=at == 0) for at in (0, 1))
    sent = sorted(_steps(sending, sender, warnings), key=lambda step: step.middle_s)
    middles = [step.middle_s for step in sent]
    slack_s = OMIT_SLACK * plan.interval_s
    # steps that count begin neither in the omitted part nor after the end
    first_s, end_s = plan.omit_s - slack_s, plan.omit_s + plan.time_s - slack_s
    steps = _steps(receiving, HOSTS[sender == HOSTS[0]], warnings)
    got = [step for step in steps if first_s <= step.begin_s < end_s]
    intervals = tuple(
        _interval(plan, step, sent[bisect_left(middles, step.begin_s) : bisect_left(middles, step.end_s)])
        for step in got
    )
    if not intervals:
        counts = [stream.payload_bytes for reading in ends[1] for stream in reading.streams if not stream.sends]
        what = "no interval was read" if len(counts) < 2 or any(counts) else "nothing came"
        warnings.append(RunWarning("no-intervals", f"{leg.leg}: {what} of what the {sender} sent"))
    elif odd := sum(not interval.regular for interval in intervals):
        text = f"{odd} of {len(intervals)} intervals are not as long as was asked for: only the mean counts them"
        warnings.append(RunWarning("intervals-irregular", f"{leg.leg}: {text}"))
    warnings += _warnings_of_ends(plan, leg, sending, receiving)
    counted = _within(plan, sending), _within(plan, receiving)
    return Flow(sender, intervals, *counted, warnings=tuple(dict.fromkeys(warnings)))


def _one_direction(readings: Sequence[HostReading], sends: bool) -> list[HostReading]:
    """Keep the streams of this direction only, with times since the last reading before any payload."""
    kept = [
        replace(reading, streams=streams)
        for reading in readings
        # A reading may be of the other direction only.
        if (streams := tuple(stream for stream in reading.streams if stream.sends == sends)) or not reading.streams
    ]
    begun_s = next((reading.at_s for reading in kept if _payload(reading)), inf)
    silent = [reading.at_s for reading in kept if reading.at_s < begun_s and not _payload(reading)]
    origin_s = max(silent, default=kept[0].at_s if kept else 0.0)
    return [replace(reading, at_s=reading.at_s - origin_s) for reading in kept if reading.at_s >= origin_s]


def _steps(readings: Sequence[HostReading], host: str, warnings: list[RunWarning]) -> Iterator[_Step]:
    """Yield the steps from reading to reading; what went back, or cannot be compared, is left out with a warning."""
    for before, after in pairwise(readings):
        if after.at_s <= before.at_s:
            text = f"{host}: its clock did not advance from one reading to the next"
            warnings.append(RunWarning("clock-went-back", text))
            continue
        then = {stream.stream: stream for stream in before.streams}
        now = {stream.stream: stream for stream in after.streams}
        if not now or then.keys() - now.keys():
            warnings.append(RunWarning("streams-missing", f"{host}: a reading lacks streams, at {after.at_s:.1f} s"))
            continue
        pairs = tuple((then.get(key, StreamCount(key, now[key].sends, 0)), now[key]) for key in sorted(now))
        if any(b.payload_bytes > a.payload_bytes for b, a in pairs):
            text = f"{host}: a stream's payload went back, at {after.at_s:.1f} s"
            warnings.append(RunWarning("counters-went-back", text))
            continue
        yield _Step(before.at_s, after.at_s, pairs)


def _within(plan: TcpPlan, readings: Sequence[HostReading]) -> tuple[HostReading, ...]:
    slack_s = OMIT_SLACK * plan.interval_s
    return tuple(r for r in readings if -slack_s <= r.at_s - plan.omit_s <= plan.time_s + plan.interval_s / 2)


def _interval(plan: TcpPlan, got: _Step, sent: Sequence[_Step]) -> Interval:
    streams = {b.stream: 8 * (b.payload_bytes - a.payload_bytes) / got.length_s for a, b in got.streams}
    sent_bps, again, rtts, windows = zip(*(_sent(sent, stream) for stream in streams), strict=True)
    return Interval(
        begin_s=got.begin_s,
        end_s=got.end_s,
        received_bps=sum(streams.values()),
        sent_bps=whole_sum(sent_bps),
        retransmits=None if None in again else sum(again),
        rtt_s=of_known(fmean, rtts),
        cwnd_bytes=whole_sum(windows),
        streams=streams,
        regular=REGULAR[0] * plan.interval_s <= got.length_s <= REGULAR[1] * plan.interval_s,
    )


def _sent(sent: Sequence[_Step], stream: int) -> tuple[float | None, int | None, float | None, float | None]:
    """Return one stream's rate, retransmits, mean round trip and last congestion window; each None if not known."""
    pairs = [pair for step in sent for pair in step.streams if pair[1].stream == stream]
    if not pairs:
        return None, None, None, None
    infos = [now.info for _, now in pairs]
    rtts = [info["rtt"] / 1e6 for info in infos if 0 < info.get("rtt", 0) < NOT_COUNTED]
    cwnd, mss = infos[-1].get("snd_cwnd"), infos[-1].get("snd_mss")
    sent_bps = 8 * sum(b.payload_bytes - a.payload_bytes for a, b in pairs) / sum(step.length_s for step in sent)
    window = float(cwnd * mss) if cwnd is not None and mss is not None else None
    return sent_bps, _retransmits(pairs), of_known(fmean, rtts), window


def _retransmits(pairs: Sequence[tuple[StreamCount, StreamCount]]) -> int | None:
    """Count the retransmitted segments in these steps of one stream; None if a count is missing or went back."""
    total = 0
    for before, after in pairs:
        # A stream that no earlier reading has began with none.
        was = before.info.get("total_retrans", 0 if not before.payload_bytes else None)
        now = after.info.get("total_retrans")
        if was is None or now is None or not 0 <= was <= now < NOT_COUNTED:
            return None
        total += now - was
    return total


def _warnings_of_ends(
    plan: TcpPlan, leg: LegReadings, sending: Sequence[HostReading], receiving: Sequence[HostReading]
) -> list[RunWarning]:
    """Warn where the two ends report the same traffic differently."""
    if len(sending) < 2 or len(receiving) < 2:
        return []
    warnings = []
    # A sender's payload may end in a full buffer long before the receiver's, and an end may be read for longer.
    busy, whole = ([time_of(readings) for readings in (sending, receiving)] for time_of in (_busy_time, _whole_time))
    lengths = min(busy, whole, key=lambda ends: abs(ends[0] - ends[1]))
    apart_s = abs(lengths[0] - lengths[1])
    # Each end's last reading may be up to one of its intervals late.
    late_s = max(readings[-1].at_s - readings[-2].at_s for readings in (sending, receiving))
    if apart_s > max(CLOCKS_APART_S, CLOCKS_APART * max(lengths)) + late_s:
        text = f"the sender's clock says {lengths[0]:.2f} s, the receiver's {lengths[1]:.2f} s"
        warnings.append(RunWarning("clocks-apart", f"{leg.leg}: {text}: rates are the receiver's"))
    within = _within(plan, receiving)
    got = [after - before for before, after in pairwise(map(_payload, within))]
    before = [_payload(one) for one in sending if within and one.at_s <= within[0].at_s]
    since = [_payload(one) for one in sending if within and one.at_s >= within[-1].at_s]
    # What is in flight when the omitted time is over, and between both ends' readings, is at most an interval's.
    if before and since and sum(got) > (sent := since[0] - before[-1]) + max(got, default=0):
        share = format_share(sum(got) / sent - 1) if sent else "all"
        warnings.append(RunWarning("counters-apart", f"{leg.leg}: more payload was received than sent, by {share}"))
    return warnings


def _payload(reading: HostReading) -> int:
    return sum(stream.payload_bytes for stream in reading.streams)


def _whole_time(readings: Sequence[HostReading]) -> float:
    return readings[-1].at_s - readings[0].at_s


def _busy_time(readings: Sequence[HostReading]) -> float:
    """Return the time from the first reading to the last one that brought payload."""
    moved = [after.at_s for before, after in pairwise(readings) if _payload(after) > _payload(before)]
    return moved[-1] - readings[0].at_s if moved else 0.0
