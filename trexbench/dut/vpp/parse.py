"""Output of vppctl about its threads and one route -> facts. Pure; absent is None, never zero.

``show ip fib PREFIX`` shows where VPP would send a packet, which neither its addresses nor its neighbours do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core.dut.runtime import NodeRuntime, ThreadRuntime
from ...core.errors import DutError
from .parse_show import wrong

_NOTHING = ThreadRuntime(None, None, None, None, None, None, None, None, None, None, ())
"""A thread of which nothing has been read yet."""

_NUMBER = r"([0-9.]+(?:e[+-]?[0-9]+)?)"
_THREAD = re.compile(r"Thread ([0-9]{1,5}) (\S+)(?: \(lcore ([0-9]{1,5})\))?")
_TIME = re.compile(rf"Time {_NUMBER}, \S+ sec internal node vector rate {_NUMBER}(?: loops/sec {_NUMBER})?")
_RATES = re.compile(rf"vector rates in {_NUMBER}, out {_NUMBER}, drop {_NUMBER}, punt {_NUMBER}")
_HEAD = re.compile("Name State Calls Vectors Suspends (?:Packet-)?Clocks Vectors/Call")
"""Heading of 26.06, and of earlier releases."""
_STATES = (
    *("active", "polling", "disabled", "interrupt wait", "interrupt wa"),
    *("any wait", "event wait", "time wait", "running", "suspended", "done"),
)
_NAME_STATE = re.compile(rf'(\S+?)\s*("?)({"|".join(_STATES)})\2')
"""VPP cuts a name at 30 characters and a state at 12, and prints nothing between the two."""
_NAME_UNKNOWN_STATE = re.compile(r'(\S+)\s+("?)([a-z][a-z ]*)\2')


class _BadLine(Exception):
    """Fault in a line; its number and text are added where they are known."""


def parse_runtime(text: str) -> tuple[ThreadRuntime, ...]:
    """``show runtime`` (or ``show runtime verbose``) of VPP 21.01 to 26.06: its threads in the order printed.

    DutError names the first line that belongs to no such output.
    """
    threads: list[ThreadRuntime] = []
    tables: list[bool] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            _read_line(" ".join(line.split()), threads, tables)
        except _BadLine as error:
            what = f"show runtime, line {number} ({line.strip()[:60]!r}): {error}"
            raise DutError(what, "give the whole output of 'vppctl show runtime'") from None
    if not any(tables):
        raise DutError("show runtime printed no table of nodes", "is VPP running, and is this its vppctl?")
    return tuple(threads)


def _read_line(line: str, threads: list[ThreadRuntime], tables: list[bool]) -> None:
    """Add one line (with single blanks) to the last thread. tables: whether the table of each thread has begun."""
    if not line.strip("-") or line.startswith("events pending"):
        return
    if found := _THREAD.fullmatch(line):
        lcore = int(found[3]) if found[3] else None
        threads.append(replace(_NOTHING, number=int(found[1]), name=found[2], lcore=lcore))
        tables.append(False)
        return
    time, head = _TIME.fullmatch(line), _HEAD.fullmatch(line)
    if (time or head) and not threads:  # a VPP of one thread prints no line that begins it
        threads.append(_NOTHING)
        tables.append(False)
    if time:
        if threads[-1].time_s is not None or tables[-1]:
            raise _BadLine("a second interval for one thread")
        time_s, vectors, loops = (None if one is None else _number(one) for one in time.groups())
        threads[-1] = replace(threads[-1], time_s=time_s, vectors_per_node=vectors, loops_per_s=loops)
    elif found := _RATES.fullmatch(line):
        if not threads:
            raise _BadLine("no thread begins before it")
        received, sent, dropped, punted = map(_number, found.groups())
        threads[-1] = replace(threads[-1], in_pps=received, out_pps=sent, drop_pps=dropped, punt_pps=punted)
    elif head:
        if tables[-1]:
            raise _BadLine("a second table for one thread")
        tables[-1] = True
    elif threads and tables[-1]:
        node = _node(line)
        if node.name in {one.name for one in threads[-1].nodes}:
            raise _BadLine(f"{node.name[:40]} is in this table already")
        threads[-1] = replace(threads[-1], nodes=(*threads[-1].nodes, node))
    else:
        raise _BadLine("neither a thread's heading nor a table's")


def _node(line: str) -> NodeRuntime:
    head, *columns = line.rsplit(" ", 5)
    if len(columns) != 5:
        raise _BadLine("not a row of seven columns")
    named = _NAME_STATE.fullmatch(head) or _NAME_UNKNOWN_STATE.fullmatch(head)
    if named is None:
        raise _BadLine("no node's name and state")
    state = "interrupt wait" if named[3] == "interrupt wa" else named[3]
    calls, vectors, suspends = map(_count, columns[:3])
    return NodeRuntime(named[1], state, calls, vectors, suspends, _number(columns[3]), _number(columns[4]))


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,20}", text):
        raise _BadLine(f"{text[:20]!r} is no count")
    return int(text)


def _number(text: str) -> float:
    """VPP writes .55 for 0.55, and 1.73e4; no count has an exponent of three digits."""
    if not re.fullmatch(r"(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:e(?:-[0-9]{1,3}|\+?[0-9]{1,2}))?", text):
        raise _BadLine(f"{text[:20]!r} is no number")
    return float(text)


@dataclass(frozen=True)
class FibPath:
    """hop: ``100.65.1.2 host-d0``; ``100.65.1.2 if_index:1`` where that interface was deleted; or other words."""

    hop: str
    resolved: bool

    def __str__(self) -> str:
        return self.hop if self.resolved else f"{self.hop} unresolved"


@dataclass(frozen=True)
class FibEntry:
    """prefix: of the entry that was found: a shorter one where the one asked for does not exist.

    buckets: what packets are spread over, without numbers that VPP assigns anew: ``ipv4 via 100.65.1.2 host-d0
    to f2:1f:ed:c6:5d:f9`` (the MAC that is written into the frame), ``dpo-drop ip4``, ``arp-ipv4: via ...``.
    """

    prefix: str
    paths: tuple[FibPath, ...]
    buckets: tuple[str, ...]


_PREFIX = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){3}/[0-9]{1,2}|[0-9a-f:.]{2,45}/[0-9]{1,3}) fib:[0-9]+ .*")
_PATH = re.compile(r"path:\[[0-9]+\] (.*)")
_BUCKETS = re.compile(r"\[@[0-9]+\]: dpo-load-balance: \[proto:\S+ index:[0-9]+ buckets:([0-9]{1,6}) .*")
_BUCKET = re.compile(r"\[[0-9]{1,6}\] \[@[0-9]+\]: (.*)")
_TABLE = re.compile("ipv[46]-VRF:.*")
_REWRITE = re.compile(r"ipv[46] via (\S+) (\S+): mtu:[0-9]+ next:[0-9]+ (?:flags:\[[^\]]*\] )?([0-9a-f]{12})[0-9a-f]*")


def parse_fib(text: str) -> FibEntry:
    """The entry of the first table printed; DutError where none is."""
    lines = [line.strip() for line in text.splitlines()]
    prefixes = ((at, found) for at, line in enumerate(lines) if (found := _PREFIX.fullmatch(line)))
    begin, prefix = next(prefixes, (0, None))
    if prefix is None:
        raise wrong("show ip fib", text, "names no prefix")
    end = next((at for at in range(begin + 1, len(lines)) if _TABLE.match(lines[at])), len(lines))
    forwarding = next((at for at in range(begin, end) if lines[at].startswith("forwarding:")), None)
    if forwarding is None:
        raise wrong("show ip fib", text, "says nothing of forwarding")
    return FibEntry(prefix[1], _paths(lines[begin + 1 : forwarding]), _buckets(lines[forwarding + 1 : end]))


def via(address: str, interface: str, mac: str) -> str:
    """The bucket of a route through this neighbour, when it is complete."""
    return f"{'ipv6' if ':' in address else 'ipv4'} via {address} {interface} to {mac}"


def _paths(lines: Sequence[str]) -> tuple[FibPath, ...]:
    """Each begins with its attributes; its next hop is on the line after, then whether it is resolved."""
    heads = [at for at, line in enumerate(lines) if _PATH.fullmatch(line)]
    found = []
    for at, after in zip(heads, [*heads, len(lines)][1:], strict=True):
        body = [line for line in lines[at + 1 : after] if line]
        flags = re.search(r"oper-flags:([a-z,-]*)", lines[at])
        resolved = flags is not None and "resolved" in flags[1].split(",") and "unresolved" not in body
        found.append(FibPath(body[0] if body else "nowhere", resolved))
    return tuple(found)


def _buckets(lines: Sequence[str]) -> tuple[str, ...]:
    """The buckets of the first load balance, which says how many it has."""
    head = next((m for line in lines if (m := _BUCKETS.fullmatch(line))), None)
    if head is None:
        raise wrong("show ip fib", "\n".join(lines), "has no load balance")
    found = [_bucket(m[1]) for line in lines if (m := _BUCKET.fullmatch(line))]
    if len(found) < int(head[1]):
        raise wrong("show ip fib", "\n".join(lines), f"names {len(found)} of {head[1]} buckets")
    return tuple(found[: int(head[1])])


def _bucket(text: str) -> str:
    if found := _REWRITE.fullmatch(text):
        mac = ":".join(found[3][at : at + 2] for at in range(0, 12, 2))
        return via(found[1], found[2], mac)
    return re.sub(r" \[.*", "", text)[:120]
