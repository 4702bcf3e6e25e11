"""Progress of a TCP test: rate, retransmits, round trip, CPU of each host, and the time left."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TextIO

from ...core.tcp.model import HostReading, Leg, StreamCount, Way
from ...core.tcp.result import TcpResult
from ...core.units import format_bits, format_duration, format_share, format_time
from ..run.live import LINE_S, Rhythm
from ..words import or_dash


class TcpLive:
    """One line, drawn in place on a terminal, and every LINE_S elsewhere. It never fails."""

    def __init__(self, result: TcpResult, stream: TextIO, speedup: float = 1.0) -> None:
        self._plan, self._setup, self._stream, self._speedup = result.plan, result.setup, stream, speedup
        self._in_place = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._leg: Leg | None = None
        self._over = 0
        self._apart_s = 0.0 if self._in_place else LINE_S * speedup
        self._rhythm = Rhythm(self._apart_s, self._apart_s)
        self._last: dict[str, tuple[HostReading, HostReading]] = {}

    def begun(self, leg: Leg) -> None:
        self._over += self._leg is not None
        self._leg, self._last = leg, {}
        self._rhythm = Rhythm(self._apart_s, self._apart_s)

    def seen(self, host: str, reading: HostReading) -> None:
        before = self._last.get(host, (reading, reading))[1]
        self._last[host] = (before, reading)
        receiver = "client" if self._leg is not None and self._leg.way is Way.REVERSE else "server"
        if host == receiver and reading.at_s > before.at_s and self._rhythm.is_due(reading.at_s):
            self._tell(self._words(receiver, reading.at_s))

    def close(self) -> None:
        if self._in_place:
            self._tell("")

    def _words(self, receiver: str, at_s: float) -> str:
        sender = "client" if receiver == "server" else "server"
        words = [f"{self._leg}", format_bits(_rate(self._last[receiver], sends=False))]
        sent = self._last.get(sender)
        if sent is not None:
            words.append(f"retransmits {_total(sent[1], 'total_retrans') - _total(sent[0], 'total_retrans')}")
            words.append(f"round trip {or_dash(_round_trip_s(sent[1].streams), format_time)}")
        words += [f"CPU {host} {or_dash(busy, format_share)}" for host, busy in self._busy().items()]
        return f"{', '.join(words)}, {format_duration(self._left_s(at_s) / self._speedup)} left"

    def _busy(self) -> Mapping[str, float | None]:
        """The share of each host's CPUs that was busy between its last two readings."""
        own = self._setup.cpus if self._setup.one_kernel else {}
        found = {host: _busy_share(*pair, own.get(host)) for host, pair in sorted(self._last.items())}
        if own.get("dut") and self._last and not self._setup.dut_is_guest:  # any host of its kernel reads them
            found["DUT"] = _busy_share(*next(iter(self._last.values())), own["dut"])
        return found

    def _left_s(self, at_s: float) -> float:
        each_s = self._plan.time_s + self._plan.omit_s
        return max(0.0, (len(self._plan.legs) - self._over) * each_s - at_s)

    def _tell(self, words: str) -> None:
        end = "\r\x1b[K" if self._in_place else ""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{end}{words}" if self._in_place else f"{words}\n")
            self._stream.flush()


def _rate(pair: tuple[HostReading, HostReading], sends: bool) -> float:
    """bit/s of payload between two readings."""
    before, after = ([one.payload_bytes for one in reading.streams if one.sends == sends] for reading in pair)
    apart_s = pair[1].at_s - pair[0].at_s
    return 8 * (sum(after) - sum(before)) / apart_s if apart_s > 0 else 0.0


def _total(reading: HostReading, name: str) -> int:
    return sum(one.info.get(name, 0) for one in reading.streams)


def _round_trip_s(streams: Sequence[StreamCount]) -> float | None:
    known = [one.info["rtt"] / 1e6 for one in streams if one.sends and "rtt" in one.info]
    return fmean(known) if known else None


def _busy_share(before: HostReading, after: HostReading, own: Sequence[int] | None) -> float | None:
    """own: the host's CPUs, where others of one kernel are those of the other hosts; None: all."""
    then, now = ([one for one in reading.cpus if not own or one.cpu in own] for reading in (before, after))
    total = sum(one.total_s for one in now) - sum(one.total_s for one in then)
    busy = sum(one.busy_s for one in now) - sum(one.busy_s for one in then)
    return busy / total if total > 0 else None
