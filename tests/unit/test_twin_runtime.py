"""A simulated VPP's ``show runtime``: the digits that a real one prints, and true to the counters behind them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.dut import runtime as efficiency
from trexbench.twin.router import QueueCounters, WorkerCounters
from trexbench.twin.vpp_runtime import Runtime, runtime_of

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
NAMES = ("TenGigabitEthernet3/0/0", "TenGigabitEthernet3/0/1")
CLOCK_HZ = 2.2e9


def article(pps: float, vector: float, cycles: float, polling: float) -> WorkerCounters:
    """A worker of the article's: its rate, vector size, cycles per packet without polling, and those of polling.

    What its polls that found nothing took is 500 clocks each.
    """
    time_s, packets = 30.0, pps * 30.0
    idle = polling * packets
    queues = (QueueCounters(0, 0, packets), QueueCounters(1, 0, 0.0))
    return WorkerCounters(
        "vpp_wk_0", packets, packets / vector, cycles * packets, idle / 500, idle, time_s, CLOCK_HZ, queues
    )


ARTICLE = {
    "1kpps": article(1000.17, 1.0, 4943, 1.51e6),
    "1mpps": article(981830, 18.57, 620.1, 1150),
    "10mpps": article(5014260, 256.0, 358.4, 79.5),
}


@pytest.mark.parametrize(
    ("rate", "cycles", "with_polling", "vector"),
    [("1kpps", 4943, 1514943, 1.0), ("1mpps", 620, 1770.1, 18.57), ("10mpps", 358, 437.9, 256.0)],
)
def test_the_articles_cycles_come_back(rate: str, cycles: float, with_polling: float, vector: float) -> None:
    """4943, 620 and 358 cycles per packet: counters -> show runtime -> efficiency."""
    (worker,) = efficiency.of_threads(runtime_of([ARTICLE[rate]], NAMES))
    assert worker.cycles_per_packet == pytest.approx(cycles, rel=0.01)
    assert worker.cycles_with_polling == pytest.approx(with_polling, rel=0.01)
    assert worker.vectors_per_call == pytest.approx(vector, rel=0.01)
    assert not list(efficiency.efficiency_warnings([worker]))
    if rate == "10mpps":
        budget = efficiency.check_budget(worker, CLOCK_HZ, saturated=True)
        assert budget.effective_hz == pytest.approx(2194e6, rel=0.01) and budget.warning is None


@pytest.mark.parametrize("rate", sorted(ARTICLE))
def test_the_articles_tables_come_back(rate: str) -> None:
    """Row by row, to the three digits that VPP prints."""
    rows = (FIXTURES / f"vpp-22.02/show-runtime.{rate}.txt").read_text().splitlines()[2:]
    printed = {name: (float(clocks), float(vectors)) for name, clocks, vectors in map(str.split, filter(None, rows))}
    _, worker = runtime_of([ARTICLE[rate]], NAMES)
    found = {node.name: node for node in worker.nodes}
    assert list(found) == list(printed)
    for name, (clocks, vectors) in printed.items():
        assert found[name].clocks == pytest.approx(clocks, rel=0.006)
        if name != "dpdk-input":
            assert found[name].vectors_per_call == vectors


def test_the_heading_of_a_thread() -> None:
    main, worker = runtime_of([ARTICLE["1mpps"]], NAMES)
    assert (main.number, main.name, main.lcore, main.time_s, main.in_pps, main.nodes) == (0, "vpp_main", 0, 30.0, 0, ())
    assert (worker.number, worker.name, worker.time_s, worker.vectors_per_node) == (1, "vpp_wk_0", 30.0, 18.57)
    assert (worker.in_pps, worker.out_pps, worker.drop_pps, worker.punt_pps) == (9.8183e5, 9.8183e5, 0, 0)


def test_packets_leave_by_the_other_port() -> None:
    both = replace(ARTICLE["1mpps"], queues=(QueueCounters(0, 0, 3e6), QueueCounters(1, 0, 1e6)))
    _, worker = runtime_of([both], NAMES)
    vectors = {n.name: n.vectors for n in worker.nodes}
    packets = vectors["ip4-rewrite"]
    assert packets is not None
    assert vectors[f"{NAMES[1]}-tx"] == vectors[f"{NAMES[1]}-output"] == round(packets * 0.75)
    assert vectors[f"{NAMES[0]}-tx"] == round(packets * 0.25)


def test_a_worker_without_packets_polls_in_vain() -> None:
    idle = WorkerCounters("vpp_wk_0", 0, 0, 0, 1e6, 1.5e8, 10.0, CLOCK_HZ)
    (node,) = runtime_of([idle], NAMES)[1].nodes
    assert (node.name, node.state, node.calls, node.vectors, node.clocks) == ("dpdk-input", "polling", 10**6, 0, 150.0)
    (worker,) = efficiency.of_threads(runtime_of([idle], NAMES))
    assert worker.cycles_per_packet is None and worker.reason is not None


def test_before_the_first_moment_there_is_nothing() -> None:
    fresh = WorkerCounters("vpp_wk_0", 0, 0, 0, 0, 0, 0.0, CLOCK_HZ)
    assert runtime_of([fresh], NAMES)[1].nodes == ()
    assert len(runtime_of([], NAMES)) == 1


WORKERS = st.builds(
    lambda packets, vector, cycles, idle_polls, idle, time_s, there, back: WorkerCounters(
        *("vpp_wk_0", packets, packets / vector, packets * cycles, idle_polls, idle_polls * idle, time_s, CLOCK_HZ),
        (QueueCounters(0, 0, packets * there), QueueCounters(1, 0, packets * back)),
    ),
    packets=st.just(0.0) | st.floats(1, 1e12),
    vector=st.floats(1, 256),
    cycles=st.floats(1, 1e5),
    idle_polls=st.just(0.0) | st.floats(1, 1e12),
    idle=st.floats(1, 1e4),
    time_s=st.floats(0.1, 1e5),
    there=st.floats(0, 1),
    back=st.floats(0, 1),
)


@given(WORKERS, st.floats(0, 200))
def test_what_is_printed_is_what_was_counted(counters: WorkerCounters, receive_clocks: float) -> None:
    _, worker = runtime_of([counters], NAMES, receive_clocks)
    nodes = {node.name: node for node in worker.nodes}
    assert worker.time_s == pytest.approx(counters.time_s, abs=0.0501)
    packets = efficiency.packets_of(worker)
    assert packets == round(counters.packets)
    sent = [n.vectors or 0 for n in worker.nodes if n.name.endswith("-tx")]
    assert sum(sent) == pytest.approx(packets, abs=1)
    total = sum(node.total_clocks for node in worker.nodes)
    assert total == pytest.approx(counters.busy_clocks + counters.idle_clocks, rel=0.006)
    if packets:
        receiving = min(receive_clocks * counters.packets, counters.busy_clocks)
        inner = sum(node.total_clocks for node in worker.nodes if not node.is_input)
        assert inner == pytest.approx(counters.busy_clocks - receiving, rel=0.006, abs=1e-6 * counters.busy_clocks)
        calls = nodes["ethernet-input"].calls
        assert calls == pytest.approx(counters.vectors, abs=1) and calls
        assert nodes["dpdk-input"].calls == pytest.approx(calls + counters.idle_polls, abs=1)


def test_show_runtime_counts_from_the_last_clear() -> None:
    first, second = ARTICLE["1kpps"], ARTICLE["1mpps"]
    later = replace(
        first,
        packets=first.packets + second.packets,
        vectors=first.vectors + second.vectors,
        busy_clocks=first.busy_clocks + second.busy_clocks,
        idle_polls=first.idle_polls + second.idle_polls,
        idle_clocks=first.idle_clocks + second.idle_clocks,
        time_s=first.time_s + second.time_s,
        queues=(QueueCounters(0, 0, first.packets + second.packets), QueueCounters(1, 0, 0.0)),
    )
    now = [first]
    runtime = Runtime(lambda: now, NAMES)
    assert runtime.show() == runtime_of([first], NAMES)
    runtime.clear()
    now[0] = later
    (worker,) = efficiency.of_threads(runtime.show())
    assert worker.cycles_per_packet == pytest.approx(620, rel=0.01) and worker.time_s == 30.0
