"""A simulated VPP's ``show runtime``: its workers' counters by node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..core.dut.runtime import NodeRuntime, ThreadRuntime
from ..stlserver.engine import partners
from .router import WorkerCounters

INPUT_NODE = "dpdk-input"
_TO_INTERFACE = ("-output", "-tx")
CLOCKS: Mapping[str, float] = {
    INPUT_NODE: 79.5,
    "-output": 14.1,
    "-tx": 123,
    "ethernet-input": 67.4,
    "ip4-input-no-checksum": 39.5,
    "ip4-load-balance": 25.4,
    "ip4-lookup": 41.2,
    "ip4-rewrite": 47.8,
}
"""Clocks per packet in full vectors on a Netgate 6100 [ipng.ch, 2021-11-26]; only their proportions count."""
IDLE_POLL_CLOCKS = 500.0
"""Cost of a poll that finds nothing."""


def runtime_of(workers: Sequence[WorkerCounters], interfaces: Sequence[str]) -> tuple[ThreadRuntime, ...]:
    """Return what ``show runtime`` prints of these counters, main thread first.

    interfaces: in the order of the tester's ports that they face; packets from one port of a pair leave by the other's
    interface.
    """
    exits = {port: interfaces[other] for port, other in partners(len(interfaces)).items()}
    threads = [_thread(0, "vpp_main", workers[0].time_s, 0.0, ())]
    for number, worker in enumerate(workers):
        nodes = sorted(_nodes(worker, exits), key=lambda row: row.name.encode())  # as VPP
        threads.append(_thread(number + 1, worker_name(number), worker.time_s, worker.packets, nodes))
    return tuple(threads)


def worker_name(number: int) -> str:
    return f"vpp_wk_{number}"


def _thread(number: int, name: str, time_s: float, packets: float, nodes: Sequence[NodeRuntime]) -> ThreadRuntime:
    pps = packets / time_s if time_s else 0.0
    return ThreadRuntime(number, name, number, round(time_s, 1), None, None, pps, pps, 0.0, 0.0, tuple(nodes))


def _nodes(worker: WorkerCounters, exits: Mapping[int, str]) -> Iterator[NodeRuntime]:
    """Yield the nodes that were called. Idle time is that of polls that find nothing."""
    packets, idle = round(worker.packets), max(0.0, worker.time_s * worker.clock_hz - worker.busy_clocks)
    vectors, polls = min(max(round(worker.vectors), 1), packets), round(idle / IDLE_POLL_CLOCKS)
    total = sum(CLOCKS.values())
    for node, clocks in CLOCKS.items():
        spent = worker.busy_clocks * clocks / total
        if node == INPUT_NODE and vectors + polls:
            yield _node(node, "polling", vectors + polls, packets, idle + spent)
        elif node in _TO_INTERFACE:
            for interface, count in _leaving(worker, exits).items():
                part = count / worker.packets
                calls = min(max(round(part * vectors), 1), round(count))
                yield _node((interface + node)[:30], "active", calls, round(count), part * spent)  # VPP cuts it there
        elif packets:
            yield _node(node, "active", vectors, packets, spent)


def _node(name: str, state: str, calls: int, vectors: int, clocks: float) -> NodeRuntime:
    return NodeRuntime(name, state, calls, vectors, 0, clocks / (vectors or calls), vectors / calls)


def _leaving(worker: WorkerCounters, exits: Mapping[int, str]) -> dict[str, float]:
    """Packets of the worker that leave by each interface, if any."""
    counts: dict[str, float] = {}
    for queue in worker.queues:
        if queue.port in exits:
            counts[exits[queue.port]] = counts.get(exits[queue.port], 0.0) + queue.packets
    return {name: count for name, count in counts.items() if round(count)}


class Runtime:
    """``show runtime`` and ``clear runtime`` of a simulated VPP; ``read`` returns the workers' present counters."""

    def __init__(self, read: Callable[[], Sequence[WorkerCounters]], interfaces: Sequence[str]) -> None:
        self._read, self._interfaces = read, interfaces
        self._cleared: Sequence[WorkerCounters] = ()

    def clear(self) -> None:
        self._cleared = self._read()

    def show(self) -> tuple[ThreadRuntime, ...]:
        workers = self._read()
        if self._cleared:
            workers = [_since(*pair) for pair in zip(workers, self._cleared, strict=True)]
        return runtime_of(workers, self._interfaces)


def _since(now: WorkerCounters, before: WorkerCounters) -> WorkerCounters:
    grown = {
        name: getattr(now, name) - getattr(before, name) for name in ("packets", "vectors", "busy_clocks", "time_s")
    }
    pairs = zip(now.queues, before.queues, strict=True)
    return replace(now, **grown, queues=[replace(q, packets=q.packets - old.packets) for q, old in pairs])
