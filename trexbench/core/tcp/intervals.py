"""Raw readings of both ends -> intervals of one direction of a leg: what the receiver's program got, and what it cost.

Intervals lie between the receiver's readings and have its clock. What the sender alone knows (retransmits, round trip,
window) comes from those of its own intervals whose middle lies in the receiver's, each clock counted from the last
reading before any payload. Nothing is interpolated.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from ..means import of_known, whole_sum
from ..units import format_share
from ..verdict.model import RunWarning
from .model import NOT_COUNTED, HostReading, LegReadings, StreamCount, TcpPlan, Way

HOSTS = ("client", "server")
REGULAR = (0.5, 1.5)
"""Intervals of such lengths, in those that were asked for, are compared with each other; others are not."""
OMIT_SLACK = 0.1
"""An interval may begin so much before the omitted time is over, as a share of its length."""
CLOCKS_APART, CLOCKS_APART_S = 0.005, 0.1
"""Both ends' clocks may differ by this share over a leg, and by this time, since readings come late."""
USUAL_MSS = 1448.0
"""Payload of a segment in bytes, where no connection tells its own."""


@dataclass(frozen=True)
class Interval:
    """All connections of a direction between two readings of the receiver; begin_s, end_s: since the traffic began.

    Rates of payload, retransmits (segments) and windows (at its end) are sums over the streams, rtt_s is the mean of
    the kernel's smoothed round trips. All but received_bps are the sender's, None where it was not read. regular: as
    long as was asked for.
    """

    begin_s: float
    end_s: float
    received_bps: float
    sent_bps: float | None
    retransmits: int | None
    rtt_s: float | None
    cwnd_bytes: float | None
    streams: Mapping[int, float]
    """Payload that each stream received, in bit/s."""
    regular: bool = True

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s


@dataclass(frozen=True)
class Flow:
    """One direction of a leg. sender: ``client`` or ``server``. intervals: in order, the omitted time left out.

    sending, receiving: the readings of the time that counts, raw. warnings: what could not be counted and why.
    """

    sender: str
    intervals: tuple[Interval, ...]
    sending: tuple[HostReading, ...]
    receiving: tuple[HostReading, ...]
    warnings: tuple[RunWarning, ...] = ()

    @property
    def receiver(self) -> str:
        return HOSTS[self.sender == HOSTS[0]]

    @property
    def regular(self) -> tuple[Interval, ...]:
        return tuple(one for one in self.intervals if one.regular)

    @property
    def received_bps(self) -> float | None:
        """Payload over the whole time that counts, irregular intervals included; None without any."""
        length_s = sum(one.length_s for one in self.intervals)
        return sum(one.received_bps * one.length_s for one in self.intervals) / length_s if length_s > 0 else None

    @property
    def retransmits(self) -> int | None:
        """Segments, over the whole time that counts; None where no interval knows."""
        known = [one.retransmits for one in self.intervals if one.retransmits is not None]
        return sum(known) if known else None

    @property
    def mss(self) -> float:
        """Mean payload of a segment, in bytes."""
        sizes = [size for reading in self.sending for one in reading.streams if (size := one.value("snd_mss"))]
        return fmean(sizes or [USUAL_MSS])

    @property
    def retransmitted(self) -> float | None:
        """Segments that were sent again, as a share of those received; None where it is not known."""
        segments = sum(one.received_bps * one.length_s for one in self.intervals) / 8 / self.mss
        return self.retransmits / segments if self.retransmits is not None and segments else None


@dataclass(frozen=True)
class _Step:
    """Counts of one direction at one end between two readings, times since the traffic began."""

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
    """The directions of a leg: one, or for ``bidir`` the client's and then the server's."""
    senders = {Way.FORWARD: HOSTS[:1], Way.REVERSE: HOSTS[1:], Way.BIDIR: HOSTS}[leg.leg.way]
    return tuple(_flow(plan, leg, sender) for sender in senders)


def _flow(plan: TcpPlan, leg: LegReadings, sender: str) -> Flow:
    ends = (leg.client, leg.server) if sender == HOSTS[0] else (leg.server, leg.client)
    warnings: list[RunWarning] = []
    sending, receiving = (_of_direction(ends[at], sends=at == 0) for at in (0, 1))
    sent = sorted(_steps(sending, sender, warnings), key=lambda one: one.middle_s)
    middles = [one.middle_s for one in sent]
    got = [one for one in _steps(receiving, HOSTS[sender == HOSTS[0]], warnings) if _counts(plan, one)]
    intervals = tuple(
        _interval(plan, one, sent[bisect_left(middles, one.begin_s) : bisect_left(middles, one.end_s)]) for one in got
    )
    if not intervals:
        warnings.append(RunWarning("no-intervals", f"{leg.leg}: no interval was read of what the {sender} sent"))
    elif odd := sum(not one.regular for one in intervals):
        text = f"{odd} of {len(intervals)} intervals are not as long as was asked for: left out of the statistics"
        warnings.append(RunWarning("intervals-irregular", f"{leg.leg}: {text}"))
    warnings += _warnings_of_ends(plan, leg, sending, receiving)
    return Flow(
        sender=sender,
        intervals=intervals,
        sending=_within(plan, sending),
        receiving=_within(plan, receiving),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _of_direction(readings: Sequence[HostReading], sends: bool) -> list[HostReading]:
    """The readings with the streams of this direction only, their times since the last one before any payload."""
    found = [
        HostReading(one.at_s, streams, one.cpus, one.threads)
        for one in readings
        # A reading may be of the other direction only.
        if (streams := tuple(s for s in one.streams if s.sends == sends)) or not one.streams
    ]
    silent = [one.at_s for one in found if not any(stream.payload_bytes for stream in one.streams)]
    begun = [one.at_s for one in found if any(stream.payload_bytes for stream in one.streams)]
    before = [at_s for at_s in silent if not begun or at_s < begun[0]]
    origin_s = max(before) if before else found[0].at_s if found else 0.0
    return [
        HostReading(one.at_s - origin_s, one.streams, one.cpus, one.threads) for one in found if one.at_s >= origin_s
    ]


def _steps(readings: Sequence[HostReading], host: str, warnings: list[RunWarning]) -> Iterator[_Step]:
    """From reading to reading; what went back, or cannot be compared, is left out with a doubt."""
    for before, after in pairwise(readings):
        if after.at_s <= before.at_s:
            warnings.append(
                RunWarning("clock-went-back", f"{host}: its clock did not advance from one reading to the next")
            )
            continue
        then = {stream.stream: stream for stream in before.streams}
        now = {stream.stream: stream for stream in after.streams}
        if not now or then.keys() - now.keys():
            warnings.append(RunWarning("streams-missing", f"{host}: a reading lacks streams, at {after.at_s:.1f} s"))
            continue
        pairs = tuple((then.get(key, StreamCount(key, now[key].sends, 0)), now[key]) for key in sorted(now))
        if any(b.payload_bytes > a.payload_bytes for b, a in pairs):
            warnings.append(
                RunWarning("counters-went-back", f"{host}: a stream's payload went back, at {after.at_s:.1f} s")
            )
            continue
        yield _Step(before.at_s, after.at_s, pairs)


def _counts(plan: TcpPlan, step: _Step) -> bool:
    """Test whether the step lies in the time that counts: not in the omitted part, nor after the end."""
    slack_s = OMIT_SLACK * plan.interval_s
    return step.begin_s >= plan.omit_s - slack_s and step.begin_s < plan.omit_s + plan.time_s - slack_s


def _within(plan: TcpPlan, readings: Sequence[HostReading]) -> tuple[HostReading, ...]:
    slack_s = OMIT_SLACK * plan.interval_s
    return tuple(one for one in readings if -slack_s <= one.at_s - plan.omit_s <= plan.time_s + plan.interval_s / 2)


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
    """One stream's rate, segments sent again, mean round trip and last congestion window; each None if not known."""
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
    """Segments that were sent again in these steps of one stream; None where a count is missing or went back."""
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
    """Return warnings where the two ends report the same traffic differently."""
    if len(sending) < 2 or len(receiving) < 2:
        return []
    found = []
    lengths = [_busy_time(one) for one in (sending, receiving)]
    apart_s = abs(lengths[0] - lengths[1])
    # Each end's last reading may be up to one of its intervals late.
    late_s = max(readings[-1].at_s - readings[-2].at_s for readings in (sending, receiving))
    if apart_s > max(CLOCKS_APART_S, CLOCKS_APART * max(lengths)) + late_s:
        text = f"the sender's clock says {lengths[0]:.2f} s, the receiver's {lengths[1]:.2f} s"
        found.append(RunWarning("clocks-apart", f"{leg.leg}: {text}: rates are the receiver's"))
    (sent, _), (got, most) = (_counted(_within(plan, ends)) for ends in (sending, receiving))
    # What was on its way when the omitted time was over, and between both ends' readings, is at most an interval's.
    if got > sent + most and sending[-1].at_s >= receiving[-1].at_s:
        share = format_share(got / sent - 1) if sent else "all"
        found.append(RunWarning("counters-apart", f"{leg.leg}: more payload was received than sent, by {share}"))
    return found


def _counted(readings: Sequence[HostReading]) -> tuple[int, int]:
    """Payload from the first reading to the last, and the most from one reading to the next; bytes."""
    totals = [sum(stream.payload_bytes for stream in one.streams) for one in readings]
    steps = [after - before for before, after in pairwise(totals)]
    return sum(steps), max(steps, default=0)


def _busy_time(readings: Sequence[HostReading]) -> float:
    """From the first reading to the last one that brought payload."""
    moved = [
        after.at_s
        for before, after in pairwise(readings)
        if sum(s.payload_bytes for s in after.streams) > sum(s.payload_bytes for s in before.streams)
    ]
    return moved[-1] - readings[0].at_s if moved else 0.0
