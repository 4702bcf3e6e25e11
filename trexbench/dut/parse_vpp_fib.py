"""``show ip fib PREFIX`` -> where VPP would send a packet, which neither its addresses nor its neighbours tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.errors import DutError


@dataclass(frozen=True)
class FibPath:
    """hop: ``100.65.1.2 host-d0``; or ``100.65.1.2 if_index:1`` where that interface is gone, and other words."""

    hop: str
    resolved: bool


@dataclass(frozen=True)
class FibEntry:
    """prefix: of the entry that was found, which is a shorter one where the one asked for is not there.

    buckets: what packets are spread over, without the numbers that VPP gives away anew: ``ipv4 via 100.65.1.2 host-d0
    to f2:1f:ed:c6:5d:f9`` (the MAC that is written into the frame), ``dpo-drop ip4``, ``arp-ipv4: via ...``.
    """

    prefix: str
    paths: tuple[FibPath, ...]
    buckets: tuple[str, ...]


_PREFIX = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){3}/[0-9]{1,2}) fib:[0-9]+ .*")
_PATH = re.compile(r"path:\[[0-9]+\] (.*)")
_BUCKETS = re.compile(r"\[@[0-9]+\]: dpo-load-balance: \[proto:\S+ index:[0-9]+ buckets:([0-9]{1,6}) .*")
_BUCKET = re.compile(r"\[[0-9]{1,6}\] \[@[0-9]+\]: (.*)")
_REWRITE = re.compile(r"ipv4 via (\S+) (\S+): mtu:[0-9]+ next:[0-9]+ (?:flags:\[[^\]]*\] )?([0-9a-f]{12})[0-9a-f]*")


def parse_fib(text: str) -> FibEntry:
    """The entry of the first table printed; DutError where none is."""
    lines = [line.strip() for line in text.splitlines()]
    begin = next((at for at, line in enumerate(lines) if _PREFIX.fullmatch(line)), None)
    if begin is None:
        raise _wrong(text, "names no prefix")
    end = next((at for at in range(begin + 1, len(lines)) if lines[at].startswith("ipv4-VRF:")), len(lines))
    forwarding = next((at for at in range(begin, end) if lines[at].startswith("forwarding:")), None)
    if forwarding is None:
        raise _wrong(text, "says nothing of forwarding")
    prefix = _PREFIX.fullmatch(lines[begin])
    assert prefix is not None
    return FibEntry(prefix[1], _paths(lines[begin + 1 : forwarding]), _buckets(lines[forwarding + 1 : end]))


def via(address: str, interface: str, mac: str) -> str:
    """The bucket of a route by way of this neighbour, complete."""
    return f"ipv4 via {address} {interface} to {mac}"


def _paths(lines: Sequence[str]) -> tuple[FibPath, ...]:
    """Each begins with its attributes; its next hop is on the line after, then whether it is resolved."""
    heads = [at for at, line in enumerate(lines) if _PATH.fullmatch(line)]
    found = []
    for at, after in zip(heads, [*heads, len(lines)][1:], strict=True):
        body = [line for line in lines[at + 1 : after] if line]
        found.append(FibPath(body[0] if body else "nowhere", _resolved(lines[at], body)))
    return tuple(found)


def _resolved(head: str, body: Sequence[str]) -> bool:
    flags = re.search(r"oper-flags:([a-z,-]*)", head)
    return flags is not None and "resolved" in flags[1].split(",") and "unresolved" not in body


def _buckets(lines: Sequence[str]) -> tuple[str, ...]:
    """The buckets of the first load balance, whose number it gives."""
    head = next((m for line in lines if (m := _BUCKETS.fullmatch(line))), None)
    if head is None:
        raise _wrong("\n".join(lines), "has no load balance")
    found = [_bucket(m[1]) for line in lines if (m := _BUCKET.fullmatch(line))]
    if len(found) < int(head[1]):
        raise _wrong("\n".join(lines), f"names {len(found)} of {head[1]} buckets")
    return tuple(found[: int(head[1])])


def _bucket(text: str) -> str:
    if found := _REWRITE.fullmatch(text):
        mac = ":".join(found[3][at : at + 2] for at in range(0, 12, 2))
        return via(found[1], found[2], mac)
    return re.sub(r" \[.*", "", text)[:120]


def _wrong(text: str, what: str) -> DutError:
    shown = (text.strip().splitlines() or ["nothing"])[0].strip()[:60]
    return DutError(f"show ip fib: {shown!r} {what}", "is this the output of VPP 21.01 or later?")
