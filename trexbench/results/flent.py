"""Imports flent's data files (.flent, .flent.gz) as runs of TCP: its series of TCP upload, TCP download and ping.

Format: doc/data-format.rst and flent/resultset.py of flent 2.3 (versions 1 to 4). ``results`` are values on a grid of
time, in Mbit/s and ms; ``raw_values`` what the tools printed, with instants: of netperf its mean (``val``) over the
``dur`` seconds until ``t``. The grid has holes where netperf was slower than the grid, so raw values are preferred.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert

from ..core.errors import StoreError
from ..core.tcp.model import HostReading, Leg, LegReadings, Ping, StreamCount, TcpPlan, Way
from ..core.tcp.result import TcpResult
from ..core.verdict.model import Caveat
from .foreign import Given, imported_run

VERSION = 4
MOST_VALUES = 500_000
"""Most values of all streams together."""
LONG_ENOUGH = 0.9
"""Share of LENGTH below which the test ended early."""
_STREAM = re.compile(r"TCP (upload|download)(?!.* (avg|sum|fairness)$)(?!.*::[a-z])")
"""Not what flent reckons of others (avg, sum), nor what ss tells of a socket (``::tcp_rtt``)."""
_ICMP = "Ping (ms) ICMP"

Rate = Annotated[float, Meta(ge=0, le=1e9)]
Time = Annotated[float, Meta(ge=-1e12, le=1e12)]
Value = Annotated[float, Meta(ge=-1e15, le=1e15)]


_Answer = tuple[float, float, float | None]
"""When, after how many ms, and its number."""


class About(Struct):
    NAME: Annotated[str, Meta(min_length=1, max_length=200)]
    STEP_SIZE: Annotated[float, Meta(ge=0.001, le=3600)]
    LENGTH: Annotated[float, Meta(ge=0, le=1e7)] = 0.0
    TITLE: str | None = None
    TIME: str | None = None
    FLENT_VERSION: str | None = None
    NETPERF_WRAPPER_VERSION: str | None = None
    IP_VERSION: Any = None
    HOST: str | None = None
    LOCAL_HOST: str | None = None
    KERNEL_RELEASE: str | None = None


class Raw(Struct):
    t: Time | None = None
    val: Value | None = None
    dur: Annotated[float, Meta(ge=0, le=1e7)] | None = None
    seq: Value | None = None
    tcp_rtt: Value | None = None
    tcp_cwnd: Value | None = None


class File(Struct):
    metadata: About
    x_values: list[Time]
    results: dict[str, list[Value | None]]
    raw_values: dict[str, list[Raw]] = {}
    version: int = 1


@dataclass(frozen=True)
class _Stream:
    """One connection: the bytes of each span of time, one span after the other, in s. rtts: (instant, us)."""

    upload: bool
    begins: Sequence[float]
    ends: Sequence[float]
    payload: Sequence[float]
    rtts: Sequence[tuple[float, int]] = ()

    def readings(self, instants: Sequence[float]) -> Iterator[tuple[int, Mapping[str, int]]]:
        """At each instant the bytes until then, of a span that it cuts its share of time; and the last round trip."""
        sums, times = [0.0, *accumulate(self.payload)], [at_s for at_s, _ in self.rtts]
        for at_s in instants:
            over, known = bisect_right(self.ends, at_s), bisect_right(times, at_s)
            total = sums[over]
            if over < len(self.ends) and self.begins[over] < at_s:
                share = (at_s - self.begins[over]) / (self.ends[over] - self.begins[over])
                total += self.payload[over] * share
            yield round(total), {"rtt": self.rtts[known - 1][1]} if known else {}


def run_from_flent(document: Mapping[str, Any], given: Given) -> TcpResult:
    """The run of such a file; StoreError for a test without TCP, for one of a newer version, and for damage."""
    file = _read(document)
    about = file.metadata
    streams, holes = _streams(file)
    begin_s, end_s = min(one.begins[0] for one in streams), max(one.ends[-1] for one in streams)
    length_s, step_s = end_s - begin_s, about.STEP_SIZE
    count = round(length_s / step_s)
    if count < 2 or count * len(streams) > MOST_VALUES:
        raise StoreError(f"{count} intervals of {len(streams)} connections", f"it takes 2 to {MOST_VALUES} in all")
    ways = [one.upload for one in streams]
    way = Way.BIDIR if len({*ways}) > 1 else Way.FORWARD if ways[0] else Way.REVERSE
    leg = Leg(way, 6 if about.IP_VERSION == 6 else 4)
    client, server = _readings(streams, begin_s, step_s, count)
    pings = _pings(file, leg, begin_s, end_s, on_grid=holes is not None)
    connections = max(sum(ways), len(ways) - sum(ways))
    plan = TcpPlan((leg,), connections, count * step_s, step_s, pings=pings[0].sent, engine="flent")
    tool = f"flent {_line(about.FLENT_VERSION or about.NETPERF_WRAPPER_VERSION)}".strip()
    short = f"{length_s:.1f} of {about.LENGTH:g} s are in the imported file"
    return imported_run(
        given,
        tool,
        _started(file, begin_s) or given.written,
        plan,
        LegReadings(leg, 0.0, client, server),
        pings=[one for one in pings if one.sent],
        doubts=list(_doubts(file, way, holes)),
        endpoints={
            "client": {"host": _line(about.LOCAL_HOST), "kernel": _line(about.KERNEL_RELEASE)},
            "server": {"host": _line(about.HOST)},
        },
        reason=short if length_s < LONG_ENOUGH * about.LENGTH else None,
        test=_line(f"{about.NAME} {about.TITLE or ''}"),
    )


def _read(document: Mapping[str, Any]) -> File:
    try:
        file = convert(document, File)
    except (ValidationError, OverflowError) as error:
        raise StoreError(f"not a data file of flent, or a damaged one: {error}") from None
    if file.version > VERSION:
        raise StoreError(f"a data file of flent in version {file.version}", f"{VERSION} is the newest that is known")
    if any(len(values) != len(file.x_values) for values in file.results.values()):
        raise StoreError("a series has another length than x_values", "the file is damaged")
    if any(a >= b for a, b in pairwise(file.x_values)):
        raise StoreError("x_values do not ascend", "the file is damaged")
    return file


def _streams(file: File) -> tuple[list[_Stream], int | None]:
    """The connections that carried something. And where they come from the grid: how many of its values are missing."""
    names = [name for name in file.results if _STREAM.match(name)]
    if not names:
        test = _line(file.metadata.NAME)
        raise StoreError(f"the test {test} has no series of TCP upload or download", "others are not imported")
    raw = [_of_raw(name, file.raw_values.get(name, ())) for name in names]
    grid = [_of_grid(file, name) for name in names]
    if all(spans.ends or not values.ends for spans, values in zip(raw, grid, strict=True)):
        found, holes = raw, None
    else:
        found = grid
        holes = sum(_holes(file.results[name]) for name in names)
    found = [one for one in found if one.ends]
    if not found:
        raise StoreError("none of its TCP connections carried anything", "nothing can be imported")
    return found, holes


def _of_raw(name: str, values: Sequence[Raw]) -> _Stream:
    """From what netperf printed."""
    spans = sorted((one.t, one.dur, one.val) for one in values if one.t and one.dur and one.val is not None)
    begins: list[float] = []
    ends: list[float] = []
    payload: list[float] = []
    for end_s, length_s, mbps in spans:
        if ends and end_s <= ends[-1]:  # two of the same instant: as one
            payload[-1] += max(0.0, mbps) * 1e6 / 8 * length_s
            continue
        begins.append(max([end_s - length_s, *ends[-1:]]))
        ends.append(end_s)
        payload.append(max(0.0, mbps) * 1e6 / 8 * length_s)
    rtts = sorted((one.t, int(1e3 * one.tcp_rtt)) for one in values if one.t and one.tcp_rtt and one.tcp_rtt > 0)
    upload = name.startswith("TCP upload")
    # ss runs on flent's host: what it says of a download is not its sender's.
    return _Stream(upload, begins, ends, payload, rtts if upload else ())


def _of_grid(file: File, name: str) -> _Stream:
    step_s = file.metadata.STEP_SIZE
    told = [(x, value) for x, value in zip(file.x_values, file.results[name], strict=True) if value is not None]
    ends = [x for x, _ in told]
    begins = [max([x - step_s, *ends[at - 1 : at]]) for at, x in enumerate(ends)]
    payload = [max(0.0, mbps) * 1e6 / 8 * (end - begin) for (end, mbps), begin in zip(told, begins, strict=True)]
    return _Stream(name.startswith("TCP upload"), begins, ends, payload)


def _holes(values: Sequence[float | None]) -> int:
    known = [at for at, value in enumerate(values) if value is not None]
    return known[-1] - known[0] + 1 - len(known) if known else 0


def _readings(
    streams: Sequence[_Stream], begin_s: float, step_s: float, count: int
) -> tuple[tuple[HostReading, ...], tuple[HostReading, ...]]:
    """Readings of client and server: each knows the payload of every connection."""
    times = [at * step_s for at in range(count + 1)]
    instants = [begin_s + at_s for at_s in times]
    ends: tuple[list[HostReading], list[HostReading]] = ([], [])
    for at_s, values in zip(times, zip(*(one.readings(instants) for one in streams), strict=True), strict=True):
        for own, client in zip(ends, (True, False), strict=True):
            counts = [
                StreamCount(number, sends := stream.upload is client, payload, info if sends else {})
                for number, (stream, (payload, info)) in enumerate(zip(streams, values, strict=True), start=1)
            ]
            own.append(HostReading(at_s, tuple(counts)))
    return tuple(ends[0]), tuple(ends[1])


def _pings(file: File, leg: Leg, begin_s: float, end_s: float, on_grid: bool) -> tuple[Ping, Ping]:
    """Before the first payload, and while it flows."""
    name = next((name for name in file.results if name.startswith(_ICMP) and "::" not in name), "")
    if on_grid:
        told = zip(file.x_values, file.results.get(name, ()), strict=False)
        values: list[_Answer] = [(x, value, None) for x, value in told if value is not None]
    else:
        values = [(one.t, one.val, one.seq) for one in file.raw_values.get(name, ()) if one.t and one.val is not None]
    idle = [one for one in values if one[0] < begin_s]
    loaded = [one for one in values if begin_s <= one[0] <= end_s]
    return _ping(leg, False, idle), _ping(leg, True, loaded)


def _ping(leg: Leg, loaded: bool, values: Sequence[_Answer]) -> Ping:
    numbers = [number for *_, number in values if number is not None]
    sent = int(max(numbers) - min(numbers)) + 1 if len(numbers) == len(values) and numbers else len(values)
    return Ping(leg, loaded, max(sent, len(values)), tuple(value / 1e3 for _, value, _ in values if value >= 0))


def _doubts(file: File, way: Way, holes: int | None) -> Iterator[Caveat]:
    if way is not Way.REVERSE:
        yield Caveat(
            "imported-sender", "what was uploaded is what the client sent; what the server received is not told"
        )
    how = "means over netperf's intervals, taken as even in each"
    if holes is not None:
        missing = f"; {holes} of them are missing, and count as nothing" if holes else ""
        how = f"values that flent has put on its grid of {file.metadata.STEP_SIZE:g} s{missing}"
    yield Caveat("imported-rates", f"payload was added up from rates: {how}")
    if file.metadata.IP_VERSION not in (4, 6):
        yield Caveat("imported-version", "the version of IP is not told: taken for 4")


def _started(file: File, begin_s: float) -> str | None:
    """By the clock of the raw values; else as it says itself, which since version 3 is UTC."""
    if 1e8 < begin_s < 4e9:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin_s))
    try:
        told = time.strptime((file.metadata.TIME or "")[:19], "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", told)


def _line(text: str | None) -> str:
    return " ".join((text or "").split())[:200]
