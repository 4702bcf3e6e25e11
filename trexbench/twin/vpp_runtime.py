"""A simulated VPP's ``show runtime``: its workers' counters in the words of VPP 26.06."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from .counters import QueueCounters, WorkerCounters

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
"""How often VPP renews the rates of its heading, unless configured otherwise."""
_SHOWN = 30
"""VPP repeats this much of what it did not understand."""


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
    """How the forwarding nodes share a packet's clocks at this many packets per vector: they sum to 1.

    Between the vector sizes of the table linearly in the vector's logarithm, beyond them as at its ends.
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
    """What ``show runtime`` prints of these counters, main thread first, in lines that end as VPP's do.

    interfaces: by the tester's port that each one faces; what came from port p leaves by interfaces[p ^ 1]. Of workers
    that count no queues, the packets leave by all alike. receive_clocks: per packet, those of ``busy_clocks`` that
    fetching it from the NIC took: they are dpdk-input's, as idle_clocks are; all others are shared by the nodes behind.
    """
    time_s = max((w.time_s for w in workers), default=0.0)
    parts = [_heading(0, "vpp_main", time_s, 0.0, 0.0, 0, 0)]
    for number, worker in enumerate(workers, 1):
        rows = _rows(worker, interfaces, receive_clocks)
        fetched = sum(r.vectors for r in rows if r.name == INPUT_NODE)
        sent = sum(r.vectors for r in rows if r.name.endswith(OUTPUT))
        loops = _rate(worker.vectors + worker.idle_polls, worker.time_s)
        vector = _rate(worker.packets, worker.vectors)
        heading = _heading(number, worker.name, worker.time_s, vector, loops, fetched, sent)
        parts.append("\n".join([heading, *map(str, rows)]))
    return "\n---------------\n".join(parts) + "\n"


def _heading(number: int, name: str, time_s: float, vector: float, loops: float, fetched: int, sent: int) -> str:
    rates = [_exponent(_rate(count, time_s), 4) for count in (fetched, sent, 0, 0)]
    return "\n".join(
        [
            f"Thread {number} {name} (lcore {number})",
            f"Time {time_s:.1f}, {_UPDATE_S:f} sec internal node vector rate {_two_decimals(vector)}"
            f" loops/sec {_two_decimals(loops)}",
            "  vector rates in {}, out {}, drop {}, punt {}".format(*rates),
            _HEAD,
        ]
    )


def _rows(worker: WorkerCounters, interfaces: Sequence[str], receive_clocks: float) -> list[_Row]:
    """Nodes that were called, by name in the order of their bytes, as VPP sorts them."""
    packets, vectors = round(worker.packets), round(worker.vectors)
    vectors = min(max(vectors, 1), packets)
    receiving = min(receive_clocks * worker.packets, worker.busy_clocks) if packets else 0.0
    rows = []
    if calls := vectors + round(worker.idle_polls):
        rows.append(_Row(INPUT_NODE, "polling", calls, packets, worker.idle_clocks + receiving))
    if packets:
        leaving = _leaving(worker, interfaces)
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


def _leaving(worker: WorkerCounters, interfaces: Sequence[str]) -> dict[str, float]:
    """The share of the worker's packets that leaves by each interface: those with at least one packet, summing to 1."""
    counts = dict.fromkeys(interfaces, 0.0)
    for queue in worker.queues:
        if queue.packets > 0:
            counts[interfaces[queue.port ^ 1]] += queue.packets
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
    """What a worker counted after ``before``; all of ``now`` where there is none or the router started anew."""
    if before is None or now.time_s < before.time_s:
        return now
    old = {(q.port, q.queue): q for q in before.queues}
    return replace(
        now,
        packets=now.packets - before.packets,
        vectors=now.vectors - before.vectors,
        busy_clocks=now.busy_clocks - before.busy_clocks,
        idle_polls=now.idle_polls - before.idle_polls,
        idle_clocks=now.idle_clocks - before.idle_clocks,
        time_s=now.time_s - before.time_s,
        queues=tuple(_queue_since(q, old.get((q.port, q.queue))) for q in now.queues),
    )


def _queue_since(now: QueueCounters, before: QueueCounters | None) -> QueueCounters:
    if before is None:
        return now
    return replace(now, packets=now.packets - before.packets, drops=now.drops - before.drops)


class Cli:
    """A simulated VPP's command line, as far as telemetry needs it: ``clear runtime`` and ``show runtime``.

    read: the workers' counters now. Words may be shortened as VPP's may. Anything else is answered as VPP answers what
    it does not know.
    """

    def __init__(
        self, read: Callable[[], Sequence[WorkerCounters]], interfaces: Sequence[str], receive_clocks: float = 0.0
    ) -> None:
        self._read, self._interfaces, self._receive_clocks = read, tuple(interfaces), receive_clocks
        self._cleared: dict[str, WorkerCounters] = {}

    def run(self, line: str) -> str:
        """What vppctl prints for this line; commands may follow one another on it, until one is unknown."""
        printed, words = "", line.split()
        while words:
            verb = next((v for v in ("show", "clear") if len(words[0]) > 1 and v.startswith(words[0])), None)
            if verb is None:
                return f"{printed}unknown input `{_repeat(words)}'\n"
            if len(words) == 1 or not (words[1].startswith("run") and "runtime".startswith(words[1])):
                return f"{printed}{verb}: unknown input `{_repeat(words[1:])}'\n"
            printed += self._show() if verb == "show" else self._clear()
            words = words[2:]
        return printed

    def _clear(self) -> str:
        self._cleared = {worker.name: worker for worker in self._read()}
        return ""

    def _show(self) -> str:
        workers = [since(worker, self._cleared.get(worker.name)) for worker in self._read()]
        return render_runtime(workers, self._interfaces, self._receive_clocks)


def _repeat(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


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
