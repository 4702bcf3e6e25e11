"""Cycles per packet: on real output of VPP, by hand on small tables, and where there is no number to give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.dut import runtime as efficiency
from trexbench.core.dut.runtime import NodeRuntime, ThreadRuntime, WorkerEfficiency
from trexbench.dut.vpp.parse import parse_runtime

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
TSC_HZ = 2.1e9
"""Clock of the recorded machine: in interrupt mode its worker's nodes account for all its time, waiting included."""


def recorded(name: str) -> WorkerEfficiency:
    (worker,) = efficiency.of_threads(parse_runtime((FIXTURES / "vpp-26.06" / name).read_text()))
    return worker


def node(name: str, calls: int, vectors: int, clocks: float, state: str = "active") -> NodeRuntime:
    return NodeRuntime(name, state, calls, vectors, 0, clocks, vectors / calls if calls else 0.0)


def thread(
    *nodes: NodeRuntime, number: int = 1, time_s: float | None = 10.0, in_pps: float | None = None
) -> ThreadRuntime:
    name = f"vpp_wk_{number - 1}" if number else "vpp_main"
    return ThreadRuntime(number, name, number, time_s, None, None, in_pps, None, None, None, nodes)


FORWARDING = (
    node("dpdk-input", 4000, 10000, 80.0, "polling"),
    node("ethernet-input", 1000, 10000, 60.0),
    node("ip4-lookup", 1000, 10000, 40.0),
    node("d0-tx", 400, 4000, 100.0),
    node("d1-tx", 600, 6000, 200.0),
    node("unix-epoll-input", 500, 0, 1000.0, "polling"),
    NodeRuntime("fib-walk", "any wait", 0, 0, 3, 1e9, 0.0),
)


def test_every_node_weighs_by_its_own_packets() -> None:
    found = efficiency.of_thread(thread(*FORWARDING))
    assert (found.packets, found.pps, found.vectors_per_call, found.dropped) == (10000, 1000.0, 10.0, 0)
    assert found.cycles_per_packet == pytest.approx(60 + 40 + 0.4 * 100 + 0.6 * 200)
    assert found.cycles_with_polling == pytest.approx(260 + 80 + 500 * 1000 / 10000)
    assert found.effective_hz == pytest.approx(390 * 1000)
    inputs = {n.name: n.cycles_per_packet for n in found.nodes if n.is_input}
    assert inputs == {"dpdk-input": 80, "unix-epoll-input": 50}
    assert "fib-walk" not in {n.name for n in found.nodes}


def test_one_way_the_recording_agrees_with_the_awk_of_the_article() -> None:
    name = "1q-unidir/show-runtime.400kpps.txt"
    rows = [line.split() for line in (FIXTURES / "vpp-26.06" / name).read_text().splitlines()]
    awk = sum(float(row[5]) for row in rows if len(row) == 7 and row[1] == "active" and int(row[3]) > 25000)
    worker = recorded(name)
    assert awk > 3000 and worker.cycles_per_packet == pytest.approx(awk)
    assert worker.cycles_with_polling == pytest.approx(awk + 4.17e3)
    assert worker.packets == 1423616 and worker.vectors_per_call == pytest.approx(57.67, abs=0.01)


def test_both_ways_a_packet_passes_one_of_the_two_interfaces() -> None:
    """The article's awk would add up the nodes of both: 7518 cycles, nearly twice as many."""
    worker = recorded("2q-bidir-polling/show-runtime.400kpps.txt")
    halves = (22.7 + 3630) / 2 + (29.6 + 3690) / 2
    assert worker.cycles_per_packet == pytest.approx(54.6 + 47.1 + 36.4 + 42.0 + halves, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("2q-route-half-dead/show-runtime.400kpps.txt", "51.2 %"),
        ("3q-route-unresolved/show-runtime.400kpps.txt", "100.0 %"),
        ("3q-bidir-polling/show-runtime.1kpps.txt", None),  # two of ten thousand
    ],
)
def test_cycles_of_dropping_are_no_cycles_of_forwarding(name: str, share: str | None) -> None:
    told = [*efficiency.efficiency_warnings([recorded(name)])]
    assert [one.code for one in told] == ["router-drops"] * (share is not None)
    assert all(f"vpp_wk_0 dropped {share}" in one.text for one in told)


@pytest.mark.parametrize(
    ("given_thread", "reason"),
    [
        (thread(*FORWARDING, time_s=None), "does not print its interval"),
        (thread(*FORWARDING, time_s=1.9), "1.9 s of counting is too short, 2 s are needed: lengthen --seconds"),
        (thread(*FORWARDING, time_s=0.0), "0 s of counting is too short"),
        (thread(), "no packets in 10 s"),
        (thread(node("dpdk-input", 9000, 0, 80.0, "polling")), "no packets in 10 s"),
        (thread(node("dpdk-input", 9000, 7, 80.0, "polling")), "only 7 packets in 10 s, 100 are needed"),
    ],
)
def test_where_there_is_no_number_there_is_a_reason(given_thread: ThreadRuntime, reason: str) -> None:
    found = efficiency.of_thread(given_thread)
    assert found.reason is not None and reason in found.reason
    assert (found.packets, found.cycles_per_packet, found.cycles_with_polling, found.pps) == (None, None, None, None)
    assert efficiency.overall([found]) is None
    assert [c.code for c in efficiency.efficiency_warnings([found])] == ["no-cycles"]
    budget = efficiency.check_budget(found, 2.2e9, saturated=True)
    assert (budget.effective_hz, budget.share, budget.warning) == (None, None, None)


def test_workers_are_kept_apart_and_weigh_by_their_packets() -> None:
    light = thread(
        *(replace(n, calls=n.calls // 10, vectors=n.vectors // 10, clocks=n.clocks * 2) for n in FORWARDING),
        number=2,
    )
    found = efficiency.of_threads([thread(number=0), thread(*FORWARDING), light, thread(number=3)])
    assert [w.worker for w in found if w.reason is None] == ["vpp_wk_0", "vpp_wk_1"] and len(found) == 3
    assert [w.cycles_per_packet for w in found[:2]] == pytest.approx([260, 520])
    overall = efficiency.overall(found)
    assert overall is not None and overall.packets == 11000
    assert overall.cycles_per_packet == pytest.approx((260 * 10 + 520) / 11)
    assert overall.cycles_with_polling == pytest.approx((390 * 10 + 780) / 11)


@pytest.mark.parametrize(
    ("threads", "names"),
    [
        ([thread(number=0), thread(number=1)], ["vpp_wk_0"]),
        ([thread(*FORWARDING, number=0), thread(*FORWARDING)], ["vpp_main", "vpp_wk_0"]),  # main fetches as well
        ([replace(thread(*FORWARDING), number=None, name=None)], ["vpp_main"]),  # a VPP of one thread names none
    ],
)
def test_the_main_thread_counts_where_it_carries_traffic(threads: list[ThreadRuntime], names: list[str]) -> None:
    assert [w.worker for w in efficiency.of_threads(threads)] == names


def test_a_worker_that_is_handed_its_packets() -> None:
    found = efficiency.of_thread(thread(node("dpdk-input", 900, 0, 50.0, "polling"), *FORWARDING[1:5]))
    assert found.packets == 10000 and found.cycles_with_polling == pytest.approx(260 + 50 * 900 / 10000)


def test_packets_that_vpp_itself_counts_otherwise() -> None:
    (warning,) = efficiency.efficiency_warnings([efficiency.of_thread(thread(*FORWARDING, in_pps=2000.0))])
    assert warning.code == "packets-unclear"
    assert not list(efficiency.efficiency_warnings([efficiency.of_thread(thread(*FORWARDING, in_pps=1050.0))]))


@pytest.mark.parametrize(
    ("clock_hz", "saturated", "code"),
    [
        (390e3, True, None),
        (420e3, True, None),  # 7 % is VPP's own loop
        (500e3, True, "budget-below-clock"),
        (500e3, False, None),  # it had time left
        (350e3, False, "budget-exceeds-clock"),  # nobody has that
        (350e3, True, "budget-exceeds-clock"),
    ],
)
def test_the_budget(clock_hz: float, saturated: bool, code: str | None) -> None:
    budget = efficiency.check_budget(efficiency.of_thread(thread(*FORWARDING)), clock_hz, saturated)
    assert (budget.warning and budget.warning.code) == code
    assert budget.share == pytest.approx(390e3 / clock_hz)


@pytest.mark.parametrize(
    ("name", "saturated"),
    [
        ("1q-unidir/show-runtime.1kpps.txt", True),  # interrupts: the waiting is in af-packet-input's clocks
        ("1q-unidir/show-runtime.400kpps.txt", True),
        ("2q-bidir-polling/show-runtime.400kpps.txt", True),
        ("2q-bidir-polling/show-runtime.1kpps.txt", False),
    ],
)
def test_the_budget_of_recorded_output(name: str, saturated: bool) -> None:
    worker = recorded(name)
    assert efficiency.check_budget(worker, TSC_HZ, saturated).warning is None
    assert (efficiency.check_budget(worker, TSC_HZ, True).warning is None) is saturated


COUNTS = st.integers(0, 10**12)


@given(
    st.lists(
        st.tuples(COUNTS, COUNTS, st.floats(0, 1e12), st.sampled_from(["active", "polling", "any wait"])), max_size=8
    ),
    st.floats(0, 1e6),
)
def test_any_table(rows: list[tuple[int, int, float, str]], time_s: float) -> None:
    """Nodes add up to the whole, and figures are there all together or not at all."""
    nodes = [node(f"n{i}", calls, vectors, clocks, state) for i, (calls, vectors, clocks, state) in enumerate(rows)]
    found = efficiency.of_thread(thread(*nodes, time_s=time_s))
    if found.reason is not None:
        assert found == WorkerEfficiency(found.worker, found.reason, idle=found.idle)
        return
    assert found.packets is not None and found.cycles_per_packet is not None and found.cycles_with_polling is not None
    assert 0 <= found.cycles_per_packet <= found.cycles_with_polling
    assert sum(n.cycles_per_packet for n in found.nodes) == pytest.approx(found.cycles_with_polling)
    total = sum(n.total_clocks for n in nodes if n.state != "any wait")
    assert found.cycles_with_polling * found.packets == pytest.approx(total)
