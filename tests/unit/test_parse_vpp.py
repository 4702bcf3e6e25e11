"""Output of vppctl, parsed into facts: recorded of VPP 26.06, older formats, and text that is none of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from trexbench.core.dut.runtime import NodeRuntime
from trexbench.core.errors import DutError
from trexbench.dut.vpp.parse import parse_runtime

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
RECORDED = {
    p.relative_to(FIXTURES).as_posix(): p.read_text() for p in sorted(FIXTURES.glob("vpp-26*/**/show-runtime*.txt"))
}

OLDER = """\
Thread 0 vpp_main (lcore 3)
Time 40.0, 10 sec internal node vector rate 0.00
  vector rates in 0.0000e0, out 0.0000e0, drop 0.0000e0, punt 0.0000e0
             Name                 State         Calls          Vectors        Suspends         Clocks       Vectors/Call
some-cleaner-process           event wait                0               0           7          1.20e4            0.00
    events pending,
---------------
Thread 1 vpp_wk_0
Time 40.0, 10 sec internal node vector rate 2.50
  vector rates in 5.0000e0, out 1.2500e-1, drop 0.0000e0, punt 0.0000e0
             Name                 State         Calls          Vectors        Suspends         Clocks       Vectors/Call
a-name-cut-at-thirty-characterinterrupt wa              40               0           0          2.50e3            0.00
dpdk-input                       polling          80000000             200           0         2.20e10            0.00
pg-input                        disabled                 2               5           0          3.00e4            2.50
"""
"""Composed in older words: names run into states, heading without loops, events, worker without a core."""


def test_a_worker_of_vpp_26() -> None:
    main, worker = parse_runtime(RECORDED["vpp-26.06/2q-bidir-polling/show-runtime.400kpps.txt"])
    assert (main.number, main.name, main.lcore, worker.number, worker.name, worker.lcore) == (
        *(0, "vpp_main", 0),
        *(1, "vpp_wk_0", 1),
    )
    assert (worker.time_s, worker.vectors_per_node, worker.loops_per_s) == (5.0, 7.97, 2595676.95)
    assert (worker.in_pps, worker.out_pps, worker.drop_pps, worker.punt_pps) == (484400.0, 484400.0, 0.0, 0.0)
    assert len(worker.nodes) == 9
    assert worker.nodes[0] == NodeRuntime("af-packet-input", "polling", 4443766, 2434688, 0, 534.0, 0.55)
    assert worker.nodes[-1] == NodeRuntime("ip4-rewrite", "active", 301664, 2434688, 0, 42.0, 8.07)


def test_states_are_whole_and_names_are_not_quoted() -> None:
    main, worker = parse_runtime(RECORDED["vpp-26.06/1q-unidir/show-runtime.1kpps.txt"])
    states = {node.name: node.state for node in (*main.nodes, *worker.nodes)}
    assert states["ip4-full-reassembly-expire-wal"] == "any wait"
    assert states["unix-cli-process-0"] == "running"
    assert states["af-packet-input"] == "interrupt wait"
    assert states["ethernet-input"] == "active"


def test_clocks_are_per_packet_or_call_or_else_suspend() -> None:
    (thread,) = parse_runtime(
        "Time 5.0, 10.000000 sec internal node vector rate 0.00 loops/sec 831039.54\n"
        "Name State Calls Vectors Suspends Packet-Clocks Vectors/Call\n"
        "ethernet-input active 10 20 0 5e0 2.00\n"
        'unix-cli-process-0 "running" 3 0 6 1.20e7 0.00\n'
        'fib-walk "any wait" 0 0 3 1.47e4 0.00\n'
    )
    assert [node.total_clocks for node in thread.nodes] == [20 * 5e0, 3 * 1.20e7, 3 * 1.47e4]
    assert (thread.number, thread.name, thread.lcore, thread.in_pps) == (None, None, None, None)


def test_the_format_of_older_releases() -> None:
    main, worker = parse_runtime(OLDER)
    assert (worker.name, worker.lcore, worker.vectors_per_node, worker.loops_per_s) == ("vpp_wk_0", None, 2.5, None)
    assert [(n.name, n.state) for n in (*main.nodes, *worker.nodes)] == [
        ("some-cleaner-process", "event wait"),
        ("a-name-cut-at-thirty-character", "interrupt wait"),
        ("dpdk-input", "polling"),
        ("pg-input", "disabled"),
    ]
    assert worker.nodes[1] == NodeRuntime("dpdk-input", "polling", 80000000, 200, 0, 2.2e10, 0.0)
    assert parse_runtime(OLDER.partition("some-cleaner")[0])[0].nodes == (), "without traffic"


HEAD = "Name State Calls Vectors Suspends Clocks Vectors/Call\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no table"),
        ("\n\n", "has no table"),
        ("Thread 0 vpp_main (lcore 0)\n", "has no table"),
        ("show: unknown input `runtim'\n", "show: unknown input"),
        ("\nclib_socket_init: connect (fd 3): No such file or directory\n", "'clib_socket_init"),
        (HEAD + "ip4-lookup active 1 2 0 1.0e1\n", "'ip4-lookup active 1 2 0 1.0e1' is neither"),
        (HEAD + "ip4-lookup active 1 2.5 0 1.0e1 2.00\n", "is neither"),
        (HEAD + "ip4-lookup active 1 -2 0 1.0e1 2.00\n", "is neither"),
        (HEAD + "ip4-lookup active 1 2 0 nan 2.00\n", "is neither"),
        (HEAD + "ip4-lookup active 1 2 0 1e999 2.00\n", "is neither"),
        ("Time 5.0, 10 sec internal node vector rate ... loops/sec 1.0\n", "is neither"),
        ("Name Max Node Clocks Vectors at Max Max Clocks Avg Clocks Avg Vectors/Call\n", "is neither"),
    ],
)
def test_other_text_is_one_line_that_names_the_line(text: str, words: str) -> None:
    with pytest.raises(DutError) as caught:
        parse_runtime(text)
    assert words in str(caught.value) and len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_all_recorded_output_is_understood(name: str) -> None:
    for thread in parse_runtime(RECORDED[name]):
        for node in thread.nodes:
            if node.calls:
                assert node.vectors_per_call == pytest.approx(node.vectors / node.calls, abs=0.006)
