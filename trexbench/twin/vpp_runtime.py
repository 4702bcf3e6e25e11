"""A simulated VPP's ``show runtime``: its workers' counters by node, with the digits that VPP 26.06 prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..core.dut.runtime import NodeRuntime, ThreadRuntime
from ..stlserver.engine import partners
from .router import WorkerCounters

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
"""Clocks per packet at those vector sizes on a Netgate 6100 [ipng.ch, 2021-11-26]; only their proportions count."""

_TOTALS = ("packets", "vectors", "busy_clocks", "idle_polls", "idle_clocks", "time_s")


def node_shares(vector: float) -> dict[str, float]:
    """Share of each forwarding node in a packet's clocks at this many packets per vector.

    Linear in the vector's logarithm between the table's vector sizes, constant beyond them.
    """
    clocks = np.array(list(TABLE_CLOCKS.values()))
    at, marks = math.log(max(vector, 1.0)), np.log(TABLE_VECTORS)
    shares = (float(np.interp(at, marks, row)) for row in clocks / clocks.sum(axis=0))
    return dict(zip(TABLE_CLOCKS, shares, strict=True))


def runtime_of(
    workers: Sequence[WorkerCounters], interfaces: Sequence[str], receive_clocks: float = 0.0
) -> tuple[ThreadRuntime, ...]:
    """Return what ``show runtime`` prints of these counters, main thread first.

    interfaces: in the order of the tester's ports that they face; packets from one port of a pair leave by the other's
    interface. Packets of workers that count no queues leave evenly by all. receive_clocks: part of ``busy_clocks`` per
    packet that dpdk-input took to fetch it, to which it adds idle_clocks; the nodes behind share all the others.
    """
    exits = {port: interfaces[other] for port, other in partners(len(interfaces)).items()}
    idle = WorkerCounters("vpp_main", time_s=max((w.time_s for w in workers), default=0.0))
    threads = [_thread(0, idle, ())]
    for number, worker in enumerate(workers, 1):
        threads.append(_thread(number, worker, _nodes(worker, interfaces, exits, receive_clocks)))
    return tuple(threads)


def _thread(number: int, worker: WorkerCounters, nodes: Sequence[NodeRuntime]) -> ThreadRuntime:
    fetched = sum(node.vectors for node in nodes if node.name == INPUT_NODE)
    sent = sum(node.vectors for node in nodes if node.name.endswith(OUTPUT))
    return ThreadRuntime(
        number=number,
        name=worker.name,
        lcore=number,
        time_s=_printed(worker.time_s, ".1f"),
        vectors_per_node=_printed(_rate(worker.packets, worker.vectors), ".2f"),
        loops_per_s=_printed(_rate(worker.vectors + worker.idle_polls, worker.time_s), ".2f"),
        in_pps=_printed(_rate(fetched, worker.time_s), ".4e"),
        out_pps=_printed(_rate(sent, worker.time_s), ".4e"),
        drop_pps=0.0,
        punt_pps=0.0,
        nodes=tuple(replace(node, name=node.name[:30]) for node in nodes),  # VPP cuts them there
    )


def _node(name: str, state: str, calls: int, vectors: int, clocks: float) -> NodeRuntime:
    each, per_call = _printed(clocks / (vectors or calls), ".2e"), _printed(_rate(vectors, calls), ".2f")
    return NodeRuntime(name, state, calls, vectors, 0, each, per_call)


def _nodes(
    worker: WorkerCounters, interfaces: Sequence[str], exits: Mapping[int, str], receive_clocks: float
) -> list[NodeRuntime]:
    """Nodes that were called, sorted by the bytes of their names, as by VPP."""
    packets, vectors = round(worker.packets), round(worker.vectors)
    vectors = min(max(vectors, 1), packets)
    receiving = min(receive_clocks * worker.packets, worker.busy_clocks) if packets else 0.0
    rows = []
    if calls := vectors + round(worker.idle_polls):
        rows.append(_node(INPUT_NODE, "polling", calls, packets, worker.idle_clocks + receiving))
    if packets:
        leaving = _leaving(worker, interfaces, exits)
        for node, share in node_shares(worker.packets / max(worker.vectors, 1.0)).items():
            clocks = share * (worker.busy_clocks - receiving)
            if node not in (OUTPUT, TX):
                rows.append(_node(node, "active", vectors, packets, clocks))
                continue
            for interface, part in leaving.items():
                count = round(part * packets)
                calls = min(max(round(part * vectors), 1), count)
                rows.append(_node(interface + node, "active", calls, count, part * clocks))
    return sorted(rows, key=lambda row: row.name.encode())


def _leaving(worker: WorkerCounters, interfaces: Sequence[str], exits: Mapping[int, str]) -> dict[str, float]:
    """Share of the worker's packets that leaves by each interface, if that is at least one packet."""
    counts = dict.fromkeys(interfaces, 0.0)
    for queue in worker.queues:
        if queue.packets > 0 and queue.port in exits:
            counts[exits[queue.port]] += queue.packets
    if not any(counts.values()):
        counts = dict.fromkeys(interfaces, 1.0)
    total, packets = sum(counts.values()), round(worker.packets)
    shown = {name: count for name, count in counts.items() if round(packets * count / total)}
    if not shown:  # a packet or two, shared by too many to be half a packet each
        return {max(counts, key=lambda name: counts[name]): 1.0}
    total = sum(shown.values())
    return {name: count / total for name, count in shown.items()}


def _since(now: WorkerCounters, before: WorkerCounters | None) -> WorkerCounters:
    if before is None:
        return now
    grown = {name: getattr(now, name) - getattr(before, name) for name in _TOTALS}
    pairs = zip(now.queues, before.queues, strict=True)
    return replace(now, **grown, queues=[replace(q, packets=q.packets - old.packets) for q, old in pairs])


class Runtime:
    """``show runtime`` and ``clear runtime`` of a simulated VPP; ``read`` returns the workers' present counters."""

    def __init__(
        self, read: Callable[[], Sequence[WorkerCounters]], interfaces: Sequence[str], receive_clocks: float = 0.0
    ) -> None:
        self._read, self._interfaces, self._receive_clocks = read, interfaces, receive_clocks
        self._cleared: dict[str, WorkerCounters] = {}

    def clear(self) -> None:
        self._cleared = {worker.name: worker for worker in self._read()}

    def show(self) -> tuple[ThreadRuntime, ...]:
        workers = [_since(worker, self._cleared.get(worker.name)) for worker in self._read()]
        return runtime_of(workers, self._interfaces, self._receive_clocks)


def _rate(count: float, of: float) -> float:
    return count / of if of > 0 else 0.0


def _printed(value: float, form: str) -> float:
    return float(format(value, form))
