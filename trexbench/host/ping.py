"""Send echo requests from a host, and parse what ping prints (iputils, BusyBox)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ..core.errors import DutError
from ..transport import Completed, Transport
from ..transport.words import shown

_ANSWER = re.compile(
    r"\d{1,6} bytes from [^=]{1,160} (?:icmp_)?seq=(?P<seq>\d{1,9}) ttl=(?P<ttl>\d{1,3})"
    r"(?: time[=<](?P<time>\d{1,9}(?:\.\d{1,9})?) ms)?(?P<again> \(DUP!\))?"
)
_SENT = re.compile(r"(\d{1,9}) packets transmitted, \d{1,9} (?:packets )?received")
_DUPLICATES = re.compile(r"\+?(\d{1,9}) duplicates")
_NOTICE = re.compile(r"From [^=]{1,160} icmp_seq=\d{1,9} (?P<what>.{1,200})")
_WAIT_S = 10.0
"""Time that a series may take beyond its last request."""


@dataclass(frozen=True)
class PingSeries:
    """One run of ping."""

    sent: int
    ttls: tuple[int, ...] = ()
    """Time to live, or hop limit, of the first answer to each request on arrival, in their order."""
    times_s: tuple[float, ...] = ()
    """Times of these answers, as far as ping prints them."""
    duplicates: int = 0
    told: tuple[str, ...] = ()
    """Messages of other hosts, as ``Redirect Host(New nexthop: 10.0.0.1)``."""


def parse_ping(text: str) -> PingSeries | None:
    """Parse what ping prints; None without the line of its totals."""
    answers: dict[int, re.Match[str]] = {}
    duplicates, messages = 0, list[str]()
    for line in text.splitlines():
        if match := _ANSWER.match(line.strip()):
            sequence = int(match["seq"])
            if match["again"] or sequence in answers:
                duplicates += 1
                continue
            answers[sequence] = match
        elif match := _NOTICE.match(line.strip()):
            messages.append(match["what"].strip())
    totals, again = _SENT.search(text), _DUPLICATES.search(text)
    if totals is None:
        return None
    ttls = tuple(int(answer["ttl"]) for answer in answers.values())
    times_s = tuple(float(answer["time"]) / 1000 for answer in answers.values() if answer["time"])
    duplicates = max(duplicates, int(again[1]) if again else 0)
    return PingSeries(int(totals[1]), ttls, times_s, duplicates, tuple(messages))


def ping(
    transport: Transport, address: str, count: int, interval_s: float = 1.0, version: int = 4, source: str = ""
) -> PingSeries:
    """Send ``count`` echo requests from this host, one every interval_s; DutError where ping itself fails.

    source: their source address; empty: the host's choice. Unanswered requests are no error.
    """
    done = transport.run(ping_argv(address, count, interval_s, version, source), ping_limit_s(count, interval_s))
    return read_ping(done, transport.place)


def ping_argv(address: str, count: int, interval_s: float, version: int, source: str = "") -> tuple[str, ...]:
    """Build the ping command of a series."""
    words = ("ping", f"-{version}", "-n", "-c", str(count), "-i", f"{interval_s:g}", "-W", "2")
    return (*words, *(("-I", source) if source else ()), address)


def ping_limit_s(count: int, interval_s: float) -> float:
    """Longest time that a series may take."""
    return math.ceil(count * interval_s) + _WAIT_S


def read_ping(done: Completed, place: str) -> PingSeries:
    """Parse what ping printed; DutError where it failed."""
    series = parse_ping(done.stdout)
    if series is None:
        lacks = "Cannot assign requested address" in done.complaint
        remedy = "set the address there, or leave out --no-apply" if lacks else "see whether it runs there"
        raise DutError(f"{shown(done.argv)} failed on {place}: {done.complaint}", remedy)
    return series
