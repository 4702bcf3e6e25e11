"""Echo requests from a host: what ping prints (iputils, BusyBox), parsed, and one series of them."""

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
_TOLD = re.compile(r"From [^=]{1,160} icmp_seq=\d{1,9} (?P<what>.{1,200})")
_WAIT_S = 10.0
"""Time that a series may take beyond its requests."""


@dataclass(frozen=True)
class EchoReply:
    """ttl: time to live, or hop limit, with which it arrived. time_s: None where not told."""

    ttl: int
    time_s: float | None


@dataclass(frozen=True)
class PingSeries:
    """One run of ping. answers: the first to each request, in their order of arrival. duplicates: further ones.

    told: what others said of it, as ``Redirect Host(New nexthop: 10.0.0.1)``.
    """

    sent: int
    answers: tuple[EchoReply, ...] = ()
    duplicates: int = 0
    told: tuple[str, ...] = ()

    @property
    def times_s(self) -> tuple[float, ...]:
        """Times of the answers, in their order."""
        return tuple(one.time_s for one in self.answers if one.time_s is not None)

    @property
    def ttls(self) -> tuple[int, ...]:
        """Each that an answer arrived with, once."""
        return tuple(sorted({one.ttl for one in self.answers}))

    @property
    def redirects(self) -> tuple[str, ...]:
        return tuple(one for one in self.told if "redirect" in one.lower())


def parse_ping(text: str) -> PingSeries | None:
    """None where it is not what ping prints: without the line of its totals."""
    answers: dict[int, EchoReply] = {}
    duplicates, told = 0, list[str]()
    for line in text.splitlines():
        if match := _ANSWER.match(line.strip()):
            sequence = int(match["seq"])
            if match["again"] or sequence in answers:
                duplicates += 1
                continue
            answers[sequence] = EchoReply(int(match["ttl"]), float(match["time"]) / 1000 if match["time"] else None)
        elif match := _TOLD.match(line.strip()):
            told.append(match["what"].strip())
    totals, again = _SENT.search(text), _DUPLICATES.search(text)
    if totals is None:
        return None
    counted = int(again[1]) if again else 0
    return PingSeries(int(totals[1]), tuple(answers.values()), max(duplicates, counted), tuple(told))


def ping(
    transport: Transport, address: str, count: int, interval_s: float = 1.0, version: int = 4, source: str = ""
) -> PingSeries:
    """Send ``count`` echo requests from this host, one every interval_s; DutError where ping itself fails.

    source: the address they come from; empty: as the host chooses. Unanswered requests are no error.
    """
    done = transport.run(ping_argv(address, count, interval_s, version, source), ping_limit_s(count, interval_s))
    return read_ping(done, transport.place)


def ping_argv(address: str, count: int, interval_s: float, version: int, source: str = "") -> tuple[str, ...]:
    words = ("ping", f"-{version}", "-n", "-c", str(count), "-i", f"{interval_s:g}", "-W", "2")
    return (*words, *(("-I", source) if source else ()), address)


def ping_limit_s(count: int, interval_s: float) -> float:
    """After which a series hangs."""
    return math.ceil(count * interval_s) + _WAIT_S


def read_ping(done: Completed, place: str) -> PingSeries:
    """Parse what ping printed; DutError where it failed."""
    found = parse_ping(done.stdout)
    if found is None:
        raise DutError(f"{shown(done.argv)} failed on {place}: {done.complaint}", "see whether it runs there")
    return found
