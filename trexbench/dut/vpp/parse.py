"""Parse what vppctl prints about its threads and one route. Pure; absent is None, never zero.

``show ip fib PREFIX`` shows where VPP would send a packet, which neither its addresses nor its neighbours do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core.dut.runtime import NodeRuntime, ThreadRuntime
from .parse_show import wrong

_NOTHING = ThreadRuntime(None, None, None, None, None, None, None, None, None, None, ())
"""Thread of which nothing has been read yet."""

_COUNT = "([0-9]{1,20})"
_NUMBER = r"((?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:e(?:-[0-9]{1,3}|\+?[0-9]{1,2}))?)"
"""VPP writes .55 for 0.55, and 1.73e4; no count has an exponent of three digits."""
_THREAD = re.compile(r"Thread ([0-9]{1,5}) (\S+)(?: \(lcore ([0-9]{1,5})\))?")
_TIME = re.compile(rf"Time {_NUMBER}, \S+ sec internal node vector rate {_NUMBER}(?: loops/sec {_NUMBER})?")
_RATES = re.compile(rf"vector rates in {_NUMBER}, out {_NUMBER}, drop {_NUMBER}, punt {_NUMBER}")
_HEAD = re.compile("Name State Calls Vectors Suspends (?:Packet-)?Clocks Vectors/Call")
"""Heading of 26.06, and of earlier releases."""
_STATES = (
    *("active", "polling", "disabled", "interrupt wait", "interrupt wa"),
    *("any wait", "event wait", "time wait", "running", "suspended", "done"),
)
_COLUMNS = " ".join([_COUNT] * 3 + [_NUMBER] * 2)
_NODE = re.compile(rf'(\S+?)\s*("?)({"|".join(_STATES)})\2 {_COLUMNS}')
"""VPP cuts a name at 30 characters and a state at 12, and prints nothing between the two."""
_NODE_OF_UNKNOWN_STATE = re.compile(rf'(\S+)\s+("?)([a-z][a-z ]*)\2 {_COLUMNS}')
_NO_ROW = re.compile("-*|events pending.*")


def parse_runtime(text: str) -> tuple[ThreadRuntime, ...]:
    """Parse ``show runtime`` of VPP 21.01 to 26.06: its threads in the order printed.

    The only thread of a VPP has no heading. DutError names the first line that is no part of such output.
    """
    threads, tables = [_NOTHING], 0
    for line in (" ".join(printed.split()) for printed in text.splitlines()):
        if match := _THREAD.fullmatch(line):
            lcore = int(match[3]) if match[3] else None
            threads.append(replace(_NOTHING, number=int(match[1]), name=match[2], lcore=lcore))
        elif match := _TIME.fullmatch(line):
            time_s, vectors, loops = (None if word is None else float(word) for word in match.groups())
            threads[-1] = replace(threads[-1], time_s=time_s, vectors_per_node=vectors, loops_per_s=loops)
        elif match := _RATES.fullmatch(line):
            received, sent, dropped, punted = map(float, match.groups())
            threads[-1] = replace(threads[-1], in_pps=received, out_pps=sent, drop_pps=dropped, punt_pps=punted)
        elif match := _NODE.fullmatch(line) or _NODE_OF_UNKNOWN_STATE.fullmatch(line):
            name, _quote, state, calls, packets, suspends, *clocks = match.groups()
            state = "interrupt wait" if state == "interrupt wa" else state
            node = NodeRuntime(name, state, int(calls), int(packets), int(suspends), *map(float, clocks))
            threads[-1] = replace(threads[-1], nodes=(*threads[-1].nodes, node))
        elif _HEAD.fullmatch(line):
            tables += 1
        elif not _NO_ROW.fullmatch(line):
            raise wrong("show runtime", line, "is neither a thread's heading nor a node")
    if not tables:
        raise wrong("show runtime", text, "has no table of nodes")
    return tuple(threads[1:] or threads)


@dataclass(frozen=True)
class FibPath:
    """One path of a route."""

    hop: str
    """``100.65.1.2 host-d0``; ``100.65.1.2 if_index:1`` where that interface was deleted; or other words."""
    resolved: bool

    def __str__(self) -> str:
        return self.hop if self.resolved else f"{self.hop} unresolved"


@dataclass(frozen=True)
class FibEntry:
    """Forwarding entry that VPP uses for a prefix or a host."""

    prefix: str
    """Its own prefix: a shorter one where the one asked for does not exist."""
    paths: tuple[FibPath, ...]
    buckets: tuple[str, ...]
    """Destinations that packets are spread over: ``ipv4 via 100.65.1.2 host-d0 to f2:1f:ed:c6:5d:f9`` (the MAC that
    is written into the frame), ``dpo-drop ip4``, ``arp-ipv4: via ...``; without numbers that VPP assigns anew."""


_PREFIX = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){3}/[0-9]{1,2}|[0-9a-f:.]{2,45}/[0-9]{1,3}) fib:[0-9]+ .*")
_PATH = re.compile(r"path:\[[0-9]+\] (.*)")
_BUCKETS = re.compile(r"\[@[0-9]+\]: dpo-load-balance: \[proto:\S+ index:[0-9]+ buckets:([0-9]{1,6}) .*")
_BUCKET = re.compile(r"\[([0-9]{1,6})(?:-([0-9]{1,6}))?\] \[@[0-9]+\]: (.*)")
"""Since 26.02 VPP prints alike ones that follow one another as ``[0-2]``."""
_TABLE = re.compile("ipv[46]-VRF:.*")
_REWRITE = re.compile(r"ipv[46] via (\S+) (\S+): mtu:[0-9]+ next:[0-9]+ (?:flags:\[[^\]]*\] )?([0-9a-f]{12})[0-9a-f]*")


def parse_fib(text: str) -> FibEntry:
    """Parse ``show ip fib PREFIX``: the entry of the first table printed; DutError where there is none."""
    lines = [line.strip() for line in text.splitlines()]
    prefixes = ((at, match) for at, line in enumerate(lines) if (match := _PREFIX.fullmatch(line)))
    begin, prefix = next(prefixes, (0, None))
    if prefix is None:
        raise wrong("show ip fib", text, "names no prefix")
    end = next((at for at in range(begin + 1, len(lines)) if _TABLE.match(lines[at])), len(lines))
    forwarding = next((at for at in range(begin, end) if lines[at].startswith("forwarding:")), None)
    if forwarding is None:
        raise wrong("show ip fib", text, "says nothing of forwarding")
    return FibEntry(prefix[1], _paths(lines[begin + 1 : forwarding]), _buckets(lines[forwarding + 1 : end]))


def via(address: str, interface: str, mac: str) -> str:
    """Bucket of a complete route through this neighbour."""
    return f"{'ipv6' if ':' in address else 'ipv4'} via {address} {interface} to {mac}"


def _paths(lines: Sequence[str]) -> tuple[FibPath, ...]:
    # each begins with its attributes; its next hop is on the line after, then whether it is resolved
    heads = [at for at, line in enumerate(lines) if _PATH.fullmatch(line)]
    paths = []
    for at, after in zip(heads, [*heads, len(lines)][1:], strict=True):
        body = [line for line in lines[at + 1 : after] if line]
        flags = re.search(r"oper-flags:([a-z,-]*)", lines[at])
        resolved = flags is not None and "resolved" in flags[1].split(",") and "unresolved" not in body
        paths.append(FibPath(body[0] if body else "nowhere", resolved))
    return tuple(paths)


def _buckets(lines: Sequence[str]) -> tuple[str, ...]:
    # of the first load balance, which says how many it has
    head = next((m for line in lines if (m := _BUCKETS.fullmatch(line))), None)
    if head is None:
        raise wrong("show ip fib", "\n".join(lines), "has no load balance")
    buckets, wanted = list[str](), int(head[1])
    for match in filter(None, map(_BUCKET.fullmatch, lines)):
        alike = int(match[2] or match[1]) - int(match[1]) + 1
        buckets += [_bucket(match[3])] * min(alike, wanted)
    if len(buckets) < wanted:
        raise wrong("show ip fib", "\n".join(lines), f"names {len(buckets)} of {head[1]} buckets")
    return tuple(buckets[:wanted])


def _bucket(text: str) -> str:
    if match := _REWRITE.fullmatch(text):
        mac = ":".join(match[3][at : at + 2] for at in range(0, 12, 2))
        return via(match[1], match[2], mac)
    return re.sub(r" \[.*", "", text)[:120]
