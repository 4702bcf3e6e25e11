"""What vppctl prints -> facts. Pure; absent is None, never zero."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..core.efficiency import NodeRuntime, ThreadRuntime
from ..core.errors import DutError

__all__ = ["NodeRuntime", "ThreadRuntime", "parse_runtime"]

_NUMBER = r"([0-9.]+(?:e[+-]?[0-9]+)?)"
_THREAD = re.compile(r"Thread ([0-9]{1,5}) (\S+)(?: \(lcore ([0-9]{1,5})\))?")
_TIME_OLD = re.compile(rf"Time {_NUMBER}, average vectors/node {_NUMBER}, last \S+ main loops \S+ per node \S+")
_TIME = re.compile(rf"Time {_NUMBER}, \S+ sec internal node vector rate {_NUMBER}(?: loops/sec {_NUMBER})?")
_RATES = re.compile(rf"vector rates in {_NUMBER}, out {_NUMBER}, drop {_NUMBER}, punt {_NUMBER}")
_HEADS = {
    "Name State Calls Vectors Suspends Packet-Clocks Vectors/Call": "full",
    "Name State Calls Vectors Suspends Clocks Vectors/Call": "full",
    "Name State Calls Vectors Suspends Clocks Vectors/Call Perf Ticks": "ticks",
    "Graph Node Name Clocks Vectors/Call": "short",
}
"""Of 26.06; of releases before it; of some of 2019; of tables cut down for reading, as in the seed's article."""
_STATES = (
    *("active", "polling", "disabled", "interrupt wait", "interrupt wa"),
    *("any wait", "event wait", "time wait", "running", "suspended", "done"),
)
_NAME_STATE = re.compile(rf'(\S+?)\s*("?)({"|".join(_STATES)})\2')
"""VPP cuts a name at 30 characters and a state at 12, and puts nothing between the two."""
_NAME_UNKNOWN_STATE = re.compile(r'(\S+)\s+("?)([a-z][a-z ]*)\2')


@dataclass
class _Thread:
    """A thread while its lines are read."""

    number: int | None = None
    name: str | None = None
    lcore: int | None = None
    time_s: float | None = None
    vectors_per_node: float | None = None
    loops_per_s: float | None = None
    rates: tuple[float | None, float | None, float | None, float | None] = (None, None, None, None)
    table: str | None = None
    nodes: dict[str, NodeRuntime] = field(default_factory=dict)

    def done(self) -> ThreadRuntime:
        return ThreadRuntime(
            self.number,
            self.name,
            self.lcore,
            self.time_s,
            self.vectors_per_node,
            self.loops_per_s,
            *self.rates,
            tuple(self.nodes.values()),
        )


class _BadLine(Exception):
    """What is wrong with a line; its number and text are added where they are known."""


def parse_runtime(text: str) -> tuple[ThreadRuntime, ...]:
    """``show runtime`` (or ``show runtime verbose``) of VPP 19 to 26.06: its threads in the order printed.

    DutError names the first line that belongs to no such output.
    """
    threads: list[_Thread] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            _take(" ".join(line.split()), threads)
        except _BadLine as error:
            shown = line.strip()[:60]
            raise DutError(
                f"show runtime, line {number} ({shown!r}): {error}", "it takes what 'vppctl show runtime' prints, whole"
            ) from None
    if not any(thread.table for thread in threads):
        raise DutError("show runtime printed no table of nodes", "is VPP running, and is this its vppctl?")
    return tuple(thread.done() for thread in threads)


def _take(line: str, threads: list[_Thread]) -> None:
    """Add what one line (its white space made single blanks) says to the thread it belongs to."""
    if not line.strip("-") or line.startswith("events pending"):
        return
    if found := _THREAD.fullmatch(line):
        lcore = found[3]
        threads.append(_Thread(int(found[1]), found[2], None if lcore is None else int(lcore)))
    elif found := _TIME.fullmatch(line) or _TIME_OLD.fullmatch(line):
        thread = _current(threads, fresh=not threads)
        if thread.time_s is not None or thread.table:
            raise _BadLine("a second interval for one thread")
        thread.time_s, thread.vectors_per_node = _number(found[1]), _number(found[2])
        if found.re is _TIME and found[3] is not None:
            thread.loops_per_s = _number(found[3])
    elif found := _RATES.fullmatch(line):
        _current(threads).rates = (_number(found[1]), _number(found[2]), _number(found[3]), _number(found[4]))
    elif line in _HEADS:
        thread = _current(threads, fresh=not threads)
        if thread.table:
            raise _BadLine("a second table for one thread")
        thread.table = _HEADS[line]
    elif threads and threads[-1].table:
        node = _ROWS[threads[-1].table](line)
        if node.name in threads[-1].nodes:
            raise _BadLine(f"{node.name[:40]} stands in this table already")
        threads[-1].nodes[node.name] = node
    else:
        raise _BadLine("neither a thread's heading nor a table's")


def _current(threads: list[_Thread], fresh: bool = False) -> _Thread:
    """The thread that is being read; a VPP of one thread prints no line that begins it."""
    if fresh:
        threads.append(_Thread())
    if not threads:
        raise _BadLine("no thread begins before it")
    return threads[-1]


def _full_row(line: str) -> NodeRuntime:
    head, *columns = line.rsplit(" ", 5)
    if len(columns) != 5:
        raise _BadLine("not a row of seven columns")
    named = _NAME_STATE.fullmatch(head) or _NAME_UNKNOWN_STATE.fullmatch(head)
    if named is None:
        raise _BadLine("no node's name and state")
    state = "interrupt wait" if named[3] == "interrupt wa" else named[3]
    calls, vectors, suspends = (_count(column) for column in columns[:3])
    return NodeRuntime(named[1], state, calls, vectors, suspends, _number(columns[3]), _number(columns[4]))


def _row_with_ticks(line: str) -> NodeRuntime:
    """The last column is empty unless VPP was told to read performance counters."""
    try:
        return _full_row(line)
    except _BadLine:
        return _full_row(line.rpartition(" ")[0])


def _short_row(line: str) -> NodeRuntime:
    name, *columns = line.split(" ")
    if len(columns) != 2:
        raise _BadLine("not a row of three columns")
    return NodeRuntime(name, None, None, None, None, _number(columns[0]), _number(columns[1]))


_ROWS = {"full": _full_row, "ticks": _row_with_ticks, "short": _short_row}


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,20}", text):
        raise _BadLine(f"{text[:20]!r} is no count")
    return int(text)


def _number(text: str) -> float:
    """VPP writes .55 for 0.55, and 1.73e4; no count is as large as an exponent of three digits."""
    if not re.fullmatch(r"(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:e(?:-[0-9]{1,3}|\+?[0-9]{1,2}))?", text):
        raise _BadLine(f"{text[:20]!r} is no number")
    return float(text)
