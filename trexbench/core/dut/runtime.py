"""Cost of a packet in VPP's own clocks: ``show runtime`` -> cycles per packet, one worker at a time. Pure.

VPP charges the cycles of its time stamp counter to the node that ran last, so an input node's share is receiving,
polling in vain and, if it waits for interrupts, the waiting: hence every cost is given without and with it.
Workers are never added up: each has its own cycles to spend.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..typed import Amount, Count
from ..units import format_share
from ..verdict.parts import RunWarning

INPUT_STATES = frozenset({"polling", "interrupt wait", "disabled"})
"""States of nodes that fetch packets (input and pre-input nodes); a disabled one may have run before."""
PROCESS_STATES = frozenset({"any wait", "event wait", "time wait", "running", "suspended", "done"})
"""States of VPP's cooperative processes, which handle no packets."""

MIN_TIME_S = 2.0
"""VPP prints the interval to a tenth of a second: in a shorter one the rate could be wrong by more than 2.5 %."""
MIN_PACKETS = 100
"""Fewer are neighbour discovery and the like, not test traffic."""
BUDGET_TOLERANCE = 0.1
"""Between cycles/packet x pps and the clock: no node includes VPP's main loop, and figures have three digits."""
DROPPED_SHARE = 0.01


@dataclass(frozen=True)
class NodeRuntime:
    """One row of ``show runtime``: a node of VPP's graph in one thread, since the counters were cleared."""

    name: str  # VPP's, which it cuts at 30 characters
    state: str  # VPP's: ``active``, ``polling``, ``interrupt wait``, ``any wait`` ...
    calls: Count  # times that it was called
    vectors: Count  # packets that it handled
    suspends: Count  # times that it was suspended; processes only
    clocks: Amount  # cycles per packet; per call if vectors are 0, per suspend if calls are 0 too
    vectors_per_call: Amount  # packets per call

    @property
    def total_clocks(self) -> float:
        return self.clocks * (self.vectors or self.calls or self.suspends)

    @property
    def is_input(self) -> bool:
        return self.state in INPUT_STATES


@dataclass(frozen=True)
class ThreadRuntime:
    """One thread's part of ``show runtime``; None: not printed by this version of VPP."""

    number: Count | None  # from 0; like the name None if VPP has only one thread
    name: str | None  # ``vpp_main``, ``vpp_wk_0`` ...
    lcore: Count | None  # CPU that it is pinned to
    time_s: Amount | None  # since the counters were cleared
    vectors_per_node: Amount | None  # "internal node vector rate", of the last seconds
    loops_per_s: Amount | None  # "loops/sec": rounds of its main loop
    in_pps: Amount | None  # "vector rates in": packets received a second
    out_pps: Amount | None  # packets sent a second
    drop_pps: Amount | None  # packets dropped a second
    punt_pps: Amount | None  # packets handed to the host a second
    nodes: tuple[NodeRuntime, ...]


@dataclass(frozen=True)
class NodeCost:
    """Cycles that one node adds to the worker's cycles per packet, over all its packets, not only the node's."""

    name: str  # VPP's
    cycles_per_packet: float  # its cycles over the packets that the worker fetched
    vectors_per_call: float | None  # packets per call of the node
    is_input: bool  # it fetches packets, and polls in vain


@dataclass(frozen=True)
class WorkerEfficiency:
    """One worker's figures over one interval; or all None, and the ``reason``."""

    worker: str  # name of its thread
    reason: str | None  # why it has no figures
    time_s: float | None = None  # time over which it counted, or its loaded part
    packets: int | None = None  # packets that its input nodes fetched, including dropped ones
    dropped: int | None = None  # packets that came to VPP's node ``drop``
    in_pps: float | None = None  # VPP's own rate of packets received
    cycles_per_packet: float | None = None  # of all nodes but the input nodes
    cycles_with_polling: float | None = None  # of all nodes, with empty polls
    vectors_per_call: float | None = None
    """ethernet-input's, or else those of the node that most packets pass; 256 is VPP's full vector."""
    nodes: tuple[NodeCost, ...] = ()
    idle: bool = False  # the reason is that it had nothing to do

    @property
    def pps(self) -> float | None:
        return None if self.packets is None or self.time_s is None else self.packets / self.time_s

    @property
    def effective_hz(self) -> float | None:
        """Cycles per second of all the worker's nodes: cycles/packet x pps."""
        cycles, pps = self.cycles_with_polling, self.pps
        return None if cycles is None or pps is None else cycles * pps


@dataclass(frozen=True)
class Budget:
    """The cycles per second of a worker's nodes beside its clock."""

    worker: str  # name of its thread
    clock_hz: float  # of the time stamp counter in which VPP counts
    effective_hz: float | None  # cycles a second of all its nodes; None, like the share, if it has no figures
    share: float | None  # of its clock's cycles
    warning: RunWarning | None  # that they do not fit together

    @property
    def impossible(self) -> bool:
        """True if more cycles are counted than the clock has."""
        return self.share is not None and self.share > 1 + BUDGET_TOLERANCE


def of_threads(threads: Sequence[ThreadRuntime], option: str = "--seconds") -> tuple[WorkerEfficiency, ...]:
    """Return each worker's figures; the main thread's only if it is the only one or carries traffic itself.

    option: that by which they are counted for longer.
    """

    def is_main(thread: ThreadRuntime) -> bool:
        return len(threads) > 1 and (thread.number == 0 or thread.name == "vpp_main")

    carrying = (thread for thread in threads if not is_main(thread) or packets_of(thread) >= MIN_PACKETS)
    return tuple(of_thread(thread, option) for thread in carrying)


def of_thread(thread: ThreadRuntime, option: str = "--seconds") -> WorkerEfficiency:
    """Return one worker's figures, or the reason for having none."""
    name, packets = thread.name or "vpp_main", packets_of(thread)
    if thread.time_s is None:
        return WorkerEfficiency(name, "show runtime does not print its interval")
    if thread.time_s < MIN_TIME_S:
        needed = f"{MIN_TIME_S:g} s are needed: lengthen {option}"
        return WorkerEfficiency(name, f"{thread.time_s:g} s of counting is too short, {needed}")
    if packets < MIN_PACKETS:
        span = f"packets in {thread.time_s:g} s"
        reason = f"only {packets} {span}, {MIN_PACKETS} are needed"
        reason = reason if packets else f"no {span}: no test traffic reached this worker"
        return WorkerEfficiency(name, reason, idle=True)
    nodes = tuple(
        NodeCost(node.name, total / packets, node.vectors_per_call, node.is_input)
        for node in thread.nodes
        if node.state not in PROCESS_STATES and (total := node.total_clocks)
    )
    cost = sum(n.cycles_per_packet for n in nodes if not n.is_input)
    inner = [(n.name, n.vectors, n.calls) for n in thread.nodes if n.vectors and n.calls and not n.is_input]
    _, vectors, calls = max(inner, key=lambda node: (node[0] == "ethernet-input", node[1]), default=("", 0, 0))
    return WorkerEfficiency(
        worker=name,
        reason=None,
        time_s=thread.time_s,
        packets=packets,
        dropped=_vectors(thread, "drop") or 0,
        in_pps=thread.in_pps,
        cycles_per_packet=cost,
        cycles_with_polling=cost + sum(n.cycles_per_packet for n in nodes if n.is_input),
        vectors_per_call=vectors / calls if calls else None,  # VPP prints only two decimals, too few for a short one
        nodes=nodes,
    )


def packets_of(thread: ThreadRuntime) -> int:
    """Count the packets that a thread's input nodes fetched.

    A worker that fetches none itself, since others hand packets to it, has those that passed ethernet-input.
    """
    return sum(node.vectors for node in thread.nodes if node.is_input) or _vectors(thread, "ethernet-input") or 0


def overall(workers: Sequence[WorkerEfficiency]) -> WorkerEfficiency | None:
    """Average over the packets of all workers; None if no worker has figures."""
    known = [
        (w.packets, w.cycles_per_packet, w.cycles_with_polling)
        for w in workers
        if w.packets is not None and w.cycles_per_packet is not None and w.cycles_with_polling is not None
    ]
    packets = sum(count for count, _, _ in known)
    if not packets:
        return None
    cycles, polling = (sum(figures[0] * figures[at] for figures in known) / packets for at in (1, 2))
    return WorkerEfficiency("all", None, packets=packets, cycles_per_packet=cycles, cycles_with_polling=polling)


def check_budget(worker: WorkerEfficiency, clock_hz: float, saturated: bool) -> Budget:
    """Check that cycles/packet x pps is plausible: never above the clock, and near it when the worker is saturated.

    clock_hz: of the time stamp counter, in which VPP counts ("Base frequency" of ``show cpu``), not of a turbo.
    """
    effective = worker.effective_hz
    if effective is None:
        return Budget(worker.worker, clock_hz, None, None, None)
    share, warning = effective / clock_hz, None
    figures = f"{worker.worker}: cycles/packet x pps is {effective / 1e6:.0f} MHz, its clock {clock_hz / 1e6:.0f} MHz"
    if share > 1 + BUDGET_TOLERANCE:  # Budget.impossible
        warning = RunWarning("budget-exceeds-clock", f"{figures}: the counters or the clock are wrong")
    elif saturated and share < 1 - BUDGET_TOLERANCE:
        text = "this worker was not saturated, or spent its time elsewhere"
        warning = RunWarning("budget-below-clock", f"{figures}: {text}")
    return Budget(worker.worker, clock_hz, effective, share, warning)


def efficiency_warnings(workers: Sequence[WorkerEfficiency]) -> Iterator[RunWarning]:
    """Yield warnings that follow from the figures themselves."""
    for worker in workers:
        name, packets, pps = worker.worker, worker.packets, worker.pps
        if worker.reason is not None:
            yield RunWarning("no-cycles", f"{name}: no cycles per packet: {worker.reason}")
        if not packets or pps is None:
            continue
        if worker.dropped is not None and worker.dropped > DROPPED_SHARE * packets:
            text = f"dropped {format_share(worker.dropped / packets)} of its packets"
            yield RunWarning("router-drops", f"{name} {text}: its cycles are not those of forwarding")
        if worker.in_pps is not None and abs(worker.in_pps - pps) > BUDGET_TOLERANCE * pps:
            rates = f"{pps:.4g}/s, VPP's own rate in is {worker.in_pps:.4g}/s"
            yield RunWarning("packets-unclear", f"{name}: {packets} packets were counted, {rates}")


def _vectors(thread: ThreadRuntime, name: str) -> int | None:
    return next((n.vectors for n in thread.nodes if n.name == name), None)
