"""A simulated VPP's ``show runtime``: its workers' counters as VPP 26.06 prints them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..stlserver.engine import partners
from .router import QueueCounters, WorkerCounters

INPUT_NODE = "dpdk-input"
OUTPUT, TX = "-output", "-tx"

TABLE_VECTORS = (1.0, 18.57, 256.0)
TABLE_CLOCKS: Mapping[str, tuple[float, float, float]] = {
    OUTPUT: (6.07e2, 3.80e1, 1.41e1),
    TX: (8.61e2, 1.44e2, 1.23e2),
    "ethernet-input": (1.22e3, 1.39e2, 6.74e1),
    "ip4-input-no-checksum": (6.59e2, 8.26e1, 3.95e1),
    "ip4-load-balance": (4.50e2, 5.85e1, 2.54e1),
    "ip4-lookup": (5.63e2, 7.94e1, 4.12e1),
    "ip4-rewrite": (5.83e2, 7.86e1, 4.78e1),
}
"""Clocks per packet at those vector sizes on a Netgate 6100 [ipng.ch, 2021-11-26], used for each node's part alone."""

_HEAD = (
    "             Name                 State         Calls          Vectors        Suspends   "
    "   Packet-Clocks   Vectors/Call  "
)
_UPDATE_S = 10.0
"""Interval at which VPP renews the rates of its heading, unless configured otherwise."""
_TOTALS = ("packets", "vectors", "busy_clocks", "idle_polls", "idle_clocks", "time_s")
_UNUSED = QueueCounters(-1, -1)


@dataclass(frozen=True)
class _Row:
    """A node's row as VPP counts it; clocks are those of the whole interval."""

    name: str
    state: str
    calls: int
    vectors: int
    clocks: float

    def __str__(self) -> str:
        each = self.clocks / (self.vectors or self.calls)
        per_call = self.vectors / self.calls if self.calls else 0.0
        columns = f"{self.calls:>16}{self.vectors:>16}{0:>16}{_exponent(each, 2):>16}{_two_decimals(per_call):>16}"
        return f"{self.name[:30]:<30}{_centred(self.state[:12], 12)}{columns}"


def node_shares(vector: float) -> dict[str, float]:
    """Shares of the forwarding nodes in a packet's clocks at this many packets per vector; they sum to 1.

    Linear in the vector's logarithm between the vector sizes of the table, beyond them as at its ends.
    """
    x, marks = math.log(max(vector, 1.0)), [math.log(size) for size in TABLE_VECTORS]
    sums = [sum(clocks[i] for clocks in TABLE_CLOCKS.values()) for i in range(len(marks))]
    upper = next((i for i, mark in enumerate(marks) if x <= mark), len(marks) - 1)
    lower = max(upper - 1, 0)
    weight = 0.0 if lower == upper else min((x - marks[lower]) / (marks[upper] - marks[lower]), 1.0)
    return {
        name: (1 - weight) * clocks[lower] / sums[lower] + weight * clocks[upper] / sums[upper]
        for name, clocks in TABLE_CLOCKS.items()
    }


def render_runtime(workers: Sequence[WorkerCounters], interfaces: Sequence[str], receive_clocks: float = 0.0) -> str:
    """Render these counters as ``show runtime`` prints them, main thread first, in lines that end as VPP's do.

    interfaces: by the tester's port that each one faces; what came from one port of a pair leaves by the other's. For
    workers that count no queues, the packets leave by all alike. receive_clocks: per packet, those of ``busy_clocks``
    that fetching it from the NIC took: they are dpdk-input's, as idle_clocks are; all others are shared by the nodes
    behind.
    """
    time_s = max((w.time_s for w in workers), default=0.0)
    exits = {port: interfaces[other] for port, other in partners(len(interfaces)).items()}
    parts = [_heading(0, "vpp_main", time_s, 0.0, 0.0, 0, 0)]
    for number, worker in enumerate(workers, 1):
        rows = _rows(worker, interfaces, exits, receive_clocks)
        fetched = sum(r.vectors for r in rows if r.name == INPUT_NODE)
        sent = sum(r.vectors for r in rows if r.name.endswith(OUTPUT))
        loops = _rate(worker.vectors + worker.idle_polls, worker.time_s)
        vector = _rate(worker.packets, worker.vectors)
        heading = _heading(number, worker.name, worker.time_s, vector, loops, fetched, sent)
        parts.append("\n".join([heading, *map(str, rows)]))
    return "\n---------------\n".join(parts) + "\n"


def _heading(number: int, name: str, time_s: float, vector: float, loops: float, fetched: int, sent: int) -> str:
    came, left, none = (_exponent(_rate(count, time_s), 4) for count in (fetched, sent, 0))
    return (
        f"Thread {number} {name} (lcore {number})\n"
        f"Time {time_s:.1f}, {_UPDATE_S:f} sec internal node vector rate {_two_decimals(vector)}"
        f" loops/sec {_two_decimals(loops)}\n"
        f"  vector rates in {came}, out {left}, drop {none}, punt {none}\n{_HEAD}"
    )


def _rows(
    worker: WorkerCounters, interfaces: Sequence[str], exits: Mapping[int, str], receive_clocks: float
) -> list[_Row]:
    """Nodes that were called, by name in the order of their bytes, as VPP sorts them."""
    packets, vectors = round(worker.packets), round(worker.vectors)
    vectors = min(max(vectors, 1), packets)
    receiving = min(receive_clocks * worker.packets, worker.busy_clocks) if packets else 0.0
    rows = []
    if calls := vectors + round(worker.idle_polls):
        rows.append(_Row(INPUT_NODE, "polling", calls, packets, worker.idle_clocks + receiving))
    if packets:
        leaving = _leaving(worker, interfaces, exits)
        for node, share in node_shares(worker.packets / max(worker.vectors, 1.0)).items():
            clocks = share * (worker.busy_clocks - receiving)
            if node not in (OUTPUT, TX):
                rows.append(_Row(node, "active", vectors, packets, clocks))
                continue
            for interface, part in leaving.items():
                count = round(part * packets)
                calls = min(max(round(part * vectors), 1), count)
                rows.append(_Row(interface + node, "active", calls, count, part * clocks))
    return sorted(rows, key=lambda row: row.name.encode())


def _leaving(worker: WorkerCounters, interfaces: Sequence[str], exits: Mapping[int, str]) -> dict[str, float]:
    """The share of the worker's packets that leaves by each interface: those with at least one packet, summing to 1."""
    counts = dict.fromkeys(interfaces, 0.0)
    for queue in worker.queues:
        if queue.packets > 0 and queue.port in exits:
            counts[exits[queue.port]] += queue.packets
    if not any(counts.values()):
        counts = dict.fromkeys(interfaces, 1.0)
    total, packets = sum(counts.values()), round(worker.packets)
    seen = {name: count for name, count in counts.items() if round(packets * count / total)}
    if not seen:  # a packet or two, shared by too many to be half a packet each
        busiest = max(counts, key=lambda name: counts[name])
        return {busiest: 1.0}
    total = sum(seen.values())
    return {name: count / total for name, count in seen.items()}


def since(now: WorkerCounters, before: WorkerCounters | None) -> WorkerCounters:
    """Return a worker's counts since ``before``; all of ``now`` where there is none or the router was restarted."""
    if before is None or now.time_s < before.time_s:
        return now
    old = {(q.port, q.queue): q for q in before.queues}
    grown = {name: getattr(now, name) - getattr(before, name) for name in _TOTALS}
    return replace(now, **grown, queues=tuple(_queue_since(q, old.get((q.port, q.queue), _UNUSED)) for q in now.queues))


def _queue_since(now: QueueCounters, before: QueueCounters) -> QueueCounters:
    return replace(now, packets=now.packets - before.packets, drops=now.drops - before.drops)


class Runtime:
    """A simulated VPP's ``show runtime`` and ``clear runtime``. read: the workers' counters now."""

    def __init__(
        self, read: Callable[[], Sequence[WorkerCounters]], interfaces: Sequence[str], receive_clocks: float = 0.0
    ) -> None:
        self._read, self._interfaces, self._receive_clocks = read, interfaces, receive_clocks
        self._cleared: dict[str, WorkerCounters] = {}

    def clear(self) -> None:
        self._cleared = {worker.name: worker for worker in self._read()}

    def show(self) -> str:
        workers = [since(worker, self._cleared.get(worker.name)) for worker in self._read()]
        return render_runtime(workers, self._interfaces, self._receive_clocks)


def _rate(count: float, of: float) -> float:
    return count / of if of > 0 else 0.0


def _centred(text: str, width: int) -> str:
    """An odd blank goes before the text."""
    return (" " * ((width - len(text) + 1) // 2) + text).ljust(width)


def _exponent(value: float, digits: int) -> str:
    """VPP's %e: no plus, no leading zero in the exponent."""
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _two_decimals(value: float) -> str:
    """VPP's %.2f: .55 for 0.55, yet 0.00 for nothing."""
    text = f"{value:.2f}"
    return text[1:] if text.startswith("0.") and text != "0.00" else text
