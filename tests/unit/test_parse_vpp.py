"""Output of vppctl as facts: recorded of VPP 26.06, older formats, that of DPDK, and text that is none of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trexbench.core.dut.runtime import NodeRuntime
from trexbench.core.errors import DutError
from trexbench.dut.vpp import parse_show as show
from trexbench.dut.vpp.parse import parse_fib, parse_runtime

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
RUNTIMES = sorted(FIXTURES.glob("vpp-26*/**/show-runtime*.txt"))
RECORDED = {path.relative_to(FIXTURES).as_posix(): path.read_text() for path in RUNTIMES}

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
    assert [(one.number, one.name, one.lcore) for one in (main, worker)] == [(0, "vpp_main", 0), (1, "vpp_wk_0", 1)]
    assert (worker.time_s, worker.vectors_per_node, worker.loops_per_s) == (5.0, 7.97, 2595676.95)
    assert (worker.in_pps, worker.out_pps, worker.drop_pps, worker.punt_pps) == (484400.0, 484400.0, 0.0, 0.0)
    assert len(worker.nodes) == 9
    assert worker.nodes[0] == NodeRuntime("af-packet-input", "polling", 4443766, 2434688, 0, 534.0, 0.55)
    assert worker.nodes[-1] == NodeRuntime("ip4-rewrite", "active", 301664, 2434688, 0, 42.0, 8.07)


def test_clocks_are_per_packet_or_call_or_else_suspend() -> None:
    (thread,) = parse_runtime(
        "Time 5.0, 10.000000 sec internal node vector rate 0.00 loops/sec 831039.54\n"
        "Name State Calls Vectors Suspends Packet-Clocks Vectors/Call\n"
        "ethernet-input active 10 20 0 5e0 2.00\n"
        'unix-cli-process-0 "running" 3 0 6 1.20e7 0.00\n'
        'fib-walk "any wait" 0 0 3 1.47e4 0.00\n'
    )
    assert [node.total_clocks for node in thread.nodes] == [20 * 5e0, 3 * 1.20e7, 3 * 1.47e4]
    assert [node.state for node in thread.nodes] == ["active", "running", "any wait"], "without quotes"
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
        ("Thread 0 vpp_main (lcore 0)\n", "has no table"),
        ("show: unknown input `runtim'\n", "show: unknown input"),
        ("\nclib_socket_init: connect (fd 3): No such file or directory\n", "'clib_socket_init"),
        (HEAD + "ip4-lookup active 1 2 0 1.0e1\n", "'ip4-lookup active 1 2 0 1.0e1' is neither"),
        (HEAD + "ip4-lookup active 1 2 0 nan 2.00\n", "is neither"),
        (HEAD + "ip4-lookup active 1 2 0 1e999 2.00\n", "is neither"),
        ("Time 5.0, 10 sec internal node vector rate ... loops/sec 1.0\n", "is neither"),
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


GOOD, HALF, DEAD = (f"vpp-26.06/{name}" for name in ("3q-bidir-polling", "2q-route-half-dead", "3q-route-unresolved"))
MAC0 = "f2:1f:ed:c6:5d:f9"


def text(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


LATER = ["ID", "Name", "LWP", "CPU", "Sched", "Loops", "Epolls", "Sleeps", "FdWakeups", "WakeReq", "Wakeups"]
COUNTED = ("other (0)", 7123, 5, 0, 0, 0, 9)


def test_version_threads_and_clock() -> None:
    assert show.parse_version(text(f"{GOOD}/show-version")) == ("v26.06-release", 13412)
    main, worker = show.parse_threads(text(f"{GOOD}/show-threads"))
    assert (main, worker) == (show.Thread("vpp_main", "", 0), show.Thread("vpp_wk_0", "workers", 1))
    head, *rows = text(f"{GOOD}/show-threads").splitlines()
    relative = "\n".join([f"{head}Relative Core  ", *(f"{row}          {at:<7}" for at, row in enumerate(rows))])
    assert show.parse_threads(relative) == (main, worker)
    # vlib/threads_cli.c of 26.10; vppinfra/format_table.c colours whatever it is printed to
    rows = [(0, "vpp_main", 13412, 0, *COUNTED), (1, "vpp_wk_0", 13414, 1, *COUNTED), (2, "vpp_wk_1", 9, -1, *COUNTED)]
    later = [[f"\x1b[1;32m{name}" for name in LATER], *rows]
    counted = show.parse_threads("\n".join(" ".join(f"{cell}\x1b[0m" for cell in row) for row in later))
    assert counted == (main, worker, show.Thread("vpp_wk_1", "workers", None))
    assert show.parse_clock(text("vpp-26.06/show-cpu")) == pytest.approx(2.6e9, rel=0.01)
    assert show.parse_clock("Base frequency:           0.0250 GHz\n") == 25e6
    with pytest.raises(DutError, match=r"0\.03 GHz is too coarse"):
        show.parse_clock("Base frequency:           0.03 GHz\n")


def test_interfaces_and_their_counters() -> None:
    found = show.parse_interfaces(text(f"{HALF}/show-interface.400kpps"))
    assert list(found) == ["host-d0", "host-d1", "local0"]
    assert (found["host-d0"].up, found["host-d0"].mtu, found["local0"].up) == (True, 9000, False)
    counted = {"rx packets": 1367696, "rx bytes": 82061760, "tx packets": 664229, "tx bytes": 39765540}
    assert found["host-d0"].counters == counted | {"drops": 692020, "ip4": 1367696}
    assert found["local0"].counters == {}


def test_addresses_neighbours_and_placement() -> None:
    addresses = {"host-d0": ["100.65.1.1/24"], "host-d1": ["100.65.2.1/24"], "local0": []}
    assert show.parse_addresses(text(f"{GOOD}/show-interface-address")) == addresses
    neighbours = show.parse_neighbours(text(f"{GOOD}/show-ip-neighbors"))
    assert neighbours["100.65.1.2%host-d0"] == show.VppNeighbour(MAC0, static=True)
    assert show.parse_neighbours("") == {}
    placed = show.parse_placement(text(f"{GOOD}/show-interface-rx-placement"))
    assert placed[0] == show.Placed("host-d1", 0, "vpp_wk_0", "polling")
    assert len(placed) == 6
    assert show.parse_placement("") == ()
    placed = show.parse_placement(text("vpp-26.06/rx-placement.2-threads"))
    by_main = [(one.interface, one.queue) for one in placed if one.worker == "vpp_main"]
    assert len(placed) == 4 and by_main == [("host-d0", 1)], "the second thread names no node"


def test_hardware_of_af_packet() -> None:
    found = show.parse_hardware(text(f"{GOOD}/show-hardware-interfaces.400kpps"))
    assert list(found) == ["host-d0", "host-d1", "local0"]
    host = found["host-d0"]
    assert (host.link, host.speed, host.queues, host.max_queues) == (True, None, 3, None)
    assert host.driver == "Linux PACKET socket interface v2"
    assert (found["local0"].link, found["local0"].queues) == (False, None)


@pytest.mark.parametrize(
    ("name", "device", "queues", "packets"),
    [
        ("hardware", ("10 Gbps", "Intel X553 (ixgbe)"), (3, 64, 512, "0000:03:00.0"), {0: 700, 2: 300}),
        ("older", (None, "Intel 82599"), (2, None, 1024, None), {0: 400, 1: 600}),
    ],
)
def test_hardware_of_dpdk_in_words_of_old_and_new(
    name: str, device: tuple[object, ...], queues: tuple[object, ...], packets: dict[int, int]
) -> None:
    found = show.parse_hardware(text(f"vpp-dpdk/{name}"))["TenGigabitEthernet3/0/0"]
    assert found.link and (found.speed, found.driver) == device
    assert (found.queues, found.max_queues, found.descriptors, found.pci) == queues
    assert show.queue_packets(found) == packets


def test_hardware_of_a_driver_in_vpps_own_tree() -> None:
    """src/vnet/dev/format.c, format_vnet_dev_interface_info, of 24.06 to 26.06."""
    head, _, rest = text("vpp-dpdk/hardware").partition("  Intel X553 (ixgbe)\n")
    lines = [
        "Device:",
        "  Driver is 'ige', bus is 'pci', description is 'Intel(R) Ethernet Controller (3) I225-V'",
        "Port 0:",
    ]
    shown = head + "".join(f"  {line}\n" for line in lines) + rest.partition("\n\n")[2]
    found = show.parse_hardware(shown)["TenGigabitEthernet3/0/0"]
    assert (found.driver, found.queues, show.queue_packets(found)) == ("ige", 3, {0: 700, 2: 300})


def test_errors() -> None:
    assert show.parse_errors(text(f"{HALF}/show-errors.400kpps")) == (
        show.NodeError(1388631, "ip4-arp", "ARP requests throttled"),
        show.NodeError(9783, "ip4-arp", "ARP requests sent"),
    )
    assert show.parse_errors("   Count                    Node                  Reason\n") == ()
    reasons = [one.reason for one in show.parse_errors(text("vpp-26.06/errors.quiet"))]
    assert "timed out block" in reasons


FORWARDS = f"ipv4 via 100.65.1.2 host-d0 to {MAC0}"


@pytest.mark.parametrize(
    ("name", "paths", "buckets"),
    [
        (GOOD, ["100.65.1.2 host-d0"], [FORWARDS]),
        (DEAD, ["100.65.1.2 if_index:1 unresolved", "100.65.1.2 if_index:2 unresolved"], ["dpo-drop ip4"]),
        (HALF, ["100.65.1.2 host-d1", "100.65.1.2 host-d0"], ["arp-ipv4: via 100.65.1.2 host-d1", FORWARDS]),
    ],
)
def test_a_route_that_forwards_and_two_accidents(name: str, paths: list[str], buckets: list[str]) -> None:
    found = parse_fib(text(f"{name}/show-ip-fib-16.0.0.0-8"))
    assert (found.prefix, [*map(str, found.paths)], [*found.buckets]) == ("16.0.0.0/8", paths, buckets)


def test_alike_buckets_are_printed_as_a_range() -> None:
    """vnet/dpo/load_balance.c, load_balance_format with LOAD_BALANCE_FORMAT_RANGE, since 26.02."""
    half = text(f"{HALF}/show-ip-fib-16.0.0.0-8")
    found = parse_fib(
        half.replace("buckets:2", "buckets:4").replace("[0] [@3]", "[0-2] [@3]").replace("[1] [@5]", "[3] [@5]")
    )
    assert found.buckets == ("arp-ipv4: via 100.65.1.2 host-d1",) * 3 + (FORWARDS,)


def test_what_vpp_gives_away_anew_is_no_fact() -> None:
    """Indices and counters of the entry; and a second table is another matter."""
    one = other = text(f"{GOOD}/show-ip-fib-16.0.0.0-8")
    for was, now in (("index:18", "index:7"), ("uRPF:22", "uRPF:1"), ("[@5]", "[@6]"), ("next:4", "next:9")):
        other = other.replace(was, now)
    assert parse_fib(other) == parse_fib(one)
    assert parse_fib(one + text(f"{DEAD}/show-ip-fib-16.0.0.0-8")) == parse_fib(one)
    assert parse_fib(one.replace("flags:[] ", "")) == parse_fib(one), "earlier releases print no flags of a rewrite"


PARSERS: dict[str, tuple[Callable[[str], object], str]] = {
    "version": (show.parse_version, f"{GOOD}/show-version"),
    "threads": (show.parse_threads, f"{GOOD}/show-threads"),
    "clock": (show.parse_clock, "vpp-26.06/show-cpu"),
    "interface": (show.parse_interfaces, f"{HALF}/show-interface.400kpps"),
    "interface of dpdk": (show.parse_interfaces, "vpp-dpdk/interface"),
    "address": (show.parse_addresses, f"{GOOD}/show-interface-address"),
    "neighbours": (show.parse_neighbours, f"{GOOD}/show-ip-neighbors"),
    "placement": (show.parse_placement, "vpp-26.06/rx-placement.2-threads"),
    "hardware": (show.parse_hardware, f"{GOOD}/show-hardware-interfaces.400kpps"),
    "hardware of dpdk": (show.parse_hardware, "vpp-dpdk/hardware"),
    "errors": (show.parse_errors, f"{HALF}/show-errors.400kpps"),
    "fib": (parse_fib, f"{HALF}/show-ip-fib-16.0.0.0-8"),
}


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize("said", ["unknown input `show'\r\n", "show: unknown input `nothing'\n", "\x00\x85\n\x1c{"])
def test_a_refusal_is_no_value(name: str, said: str) -> None:
    with pytest.raises(DutError, match="show"):
        PARSERS[name][0](said)


@pytest.mark.parametrize("name", PARSERS)
def test_crlf_changes_nothing(name: str) -> None:
    parse, fixture = PARSERS[name]
    assert parse(text(fixture).replace("\n", "\r\n")) == parse(text(fixture))
