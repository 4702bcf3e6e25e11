"""Progress of a TCP test: rate, retransmits, round trip, CPU of each host, and the time left."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TextIO

from ...core.tcp.plan import HostReading, Leg, Way
from ...core.tcp.result import TcpResult
from ...core.units import format_bits, format_duration, format_share, format_time
from ..run.live import LINE_S, Rhythm
from ..words import or_dash


class TcpLive:
    """Writes progress as one line, in place on a terminal, every LINE_S elsewhere. It never fails."""

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
            self._write(self._words(receiver, reading.at_s))

    def close(self) -> None:
        if self._in_place:
            self._write("")

    def _words(self, receiver: str, at_s: float) -> str:
        before, now = self._last[receiver]
        both = self._leg is not None and self._leg.way is Way.BIDIR
        words = [f"{self._leg}, client sends" if both else f"{self._leg}"]
        if now.streams:  # the genuine iperf3 reports them at its end
            received = _payload_received(now) - _payload_received(before)
            words.append(format_bits(8 * received / (now.at_s - before.at_s)))
        if now.streams and (sender := self._last.get("client" if receiver == "server" else "server")):
            resent, resent_now = (sum(one.info.get("total_retrans", 0) for one in read.streams) for read in sender)
            trips_s = [one.info["rtt"] / 1e6 for one in sender[1].streams if one.sends and "rtt" in one.info]
            words.append(f"retransmits {resent_now - resent}")
            words.append(f"round trip {or_dash(fmean(trips_s) if trips_s else None, format_time)}")
        words += [f"CPU {host} {or_dash(busy, format_share)}" for host, busy in self._busy().items()]
        left_s = (len(self._plan.legs) - self._over) * (self._plan.time_s + self._plan.omit_s) - at_s
        return f"{', '.join(words)}, {format_duration(max(0.0, left_s) / self._speedup)} left"

    def _busy(self) -> Mapping[str, float | None]:
        own = self._setup.cpus if self._setup.one_kernel else {}
        shares = {host: _busy_share(*pair, own.get(host)) for host, pair in sorted(self._last.items())}
        if own.get("dut") and self._last and not self._setup.dut_is_guest:  # any host of its kernel reads them
            shares["DUT"] = _busy_share(*next(iter(self._last.values())), own["dut"])
        return shares

    def _write(self, words: str) -> None:
        end = "\r\x1b[K" if self._in_place else ""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{end}{words}" if self._in_place else f"{words}\n")
            self._stream.flush()


def _payload_received(reading: HostReading) -> int:
    return sum(stream.payload_bytes for stream in reading.streams if not stream.sends)


def _busy_share(before: HostReading, after: HostReading, own: Sequence[int] | None) -> float | None:
    """Return the busy share of the host's own CPUs, where hosts share a kernel; None: of all."""
    then, now = ([one for one in reading.cpus if not own or one.cpu in own] for reading in (before, after))
    total = sum(one.total_s for one in now) - sum(one.total_s for one in then)
    busy = sum(one.busy_s for one in now) - sum(one.busy_s for one in then)
    return busy / total if total > 0 else None
