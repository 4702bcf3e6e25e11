"""A simulated VPP's ``show runtime``: true to the counters behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.dut import runtime as efficiency
from trexbench.twin.router import QueueCounters, WorkerCounters
from trexbench.twin.vpp_runtime import CLOCKS, Runtime, runtime_of

NAMES = ("TenGigabitEthernet3/0/0", "TenGigabitEthernet3/0/1")
CLOCK_HZ = 2.2e9


def counted(pps: float, vector: float, cycles: float, there: float = 1.0) -> WorkerCounters:
    """A worker's rate, vector size, and cycles per packet; there: share of the packets that come to port 0."""
    packets = pps * 30.0
    queues = (QueueCounters(0, 0, packets * there), QueueCounters(1, 0, packets * (1 - there)))
    return WorkerCounters(packets, packets / vector, cycles * packets, 30.0, CLOCK_HZ, queues)


@pytest.mark.parametrize(("pps", "vector", "cycles"), [(5_014_260, 256.0, 437.9), (981_830, 18.57, 700.0)])
def test_the_workers_cycles_come_back(pps: float, vector: float, cycles: float) -> None:
    (worker,) = efficiency.of_threads(runtime_of([counted(pps, vector, cycles)], NAMES))
    receiving = CLOCKS["dpdk-input"] / sum(CLOCKS.values())
    assert worker.cycles_per_packet == pytest.approx(cycles * (1 - receiving))
    assert worker.cycles_with_polling == pytest.approx(CLOCK_HZ / pps, rel=0.01)
    assert worker.vectors_per_call == pytest.approx(vector, rel=0.01) and worker.in_pps == pytest.approx(pps)
    assert not list(efficiency.efficiency_warnings([worker]))
    assert efficiency.check_budget(worker, CLOCK_HZ, saturated=True).warning is None


def test_a_worker_without_packets_polls_in_vain() -> None:
    idle = WorkerCounters(0.0, 0.0, 0.0, 10.0, CLOCK_HZ)
    main, thread = runtime_of([idle], NAMES)
    (node,) = thread.nodes
    assert (main.name, main.nodes, thread.name) == ("vpp_main", (), "vpp_wk_0")
    assert (node.name, node.state, node.vectors, node.total_clocks) == ("dpdk-input", "polling", 0, 10 * CLOCK_HZ)
    (worker,) = efficiency.of_threads([main, thread])
    assert worker.cycles_per_packet is None and worker.reason is not None
    assert runtime_of([WorkerCounters(clock_hz=CLOCK_HZ)], NAMES)[1].nodes == (), "before the first moment"


@given(
    st.floats(1, 1e7), st.floats(1, 256), st.floats(1, 200), st.floats(0, 1)
)  # fmt: skip
def test_what_is_printed_is_what_was_counted(pps: float, vector: float, cycles: float, there: float) -> None:
    counters = counted(pps, vector, cycles, there)
    _, worker = runtime_of([counters], NAMES)
    assert efficiency.packets_of(worker) == round(counters.packets)
    for leaving, share in zip(NAMES, (1 - there, there), strict=True):
        sent = [node.vectors for node in worker.nodes if node.name == f"{leaving}-tx"]
        assert sum(filter(None, sent)) == round(counters.packets * share), "they leave by the other port"
    total = sum(node.total_clocks for node in worker.nodes)
    assert total == pytest.approx(CLOCK_HZ * 30, rel=0.02)


def test_show_runtime_counts_from_the_last_clear() -> None:
    first, second = counted(1000, 1.0, 4943), counted(981_830, 18.57, 620)
    added = {name: getattr(first, name) + getattr(second, name) for name in ("packets", "vectors", "busy_clocks")}
    queues = (QueueCounters(0, 0, added["packets"]), QueueCounters(1, 0, 0.0))
    now = [first]
    runtime = Runtime(lambda: now, NAMES)
    assert runtime.show() == runtime_of([first], NAMES)
    runtime.clear()
    now = [replace(first, time_s=60.0, queues=queues, **added)]
    assert runtime.show()[1].time_s == 30.0
    assert efficiency.packets_of(runtime.show()[1]) == round(second.packets)
