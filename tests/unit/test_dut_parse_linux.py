"""Output of Linux tools, parsed into facts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import COALESCING, CONNTRACK_STAT, RINGS

from trexbench.core.dut.telemetry import CpuTime
from trexbench.core.errors import DutError
from trexbench.dut.linux import parse as parse
from trexbench.host import files
from trexbench.host import linux as counters

CHANNELS = """Channel parameters for eth0:
Pre-set maximums:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\t1
Combined:\t63
Current hardware settings:
RX:\t\t0
TX:\t\t0
Other:\t\t1
Combined:\t4
"""
HASH = """RX flow hash indirection table for eth0 with 4 RX ring(s):
    0:      0     1     2     3     0     1     2     3
    8:      0     1     2     3     0     1     2     3
RSS hash key:
6d:5a:56:da
RSS hash function:
    toeplitz: {toeplitz}
    xor: {xor}
    crc32: off
"""
VIRTIO = """RX flow hash indirection table for eth0 with 1 RX ring(s):
Operation not supported
RSS hash key:
Operation not supported
RSS hash function:
    toeplitz: on
"""
HASHED = {"table": [0, 1, 2, 3] * 4, "key": "6d5a56da"}
UDP = "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n"
PORTS = "L4 bytes 0 & 1 [TCP/UDP src port]\nL4 bytes 2 & 3 [TCP/UDP dst port]\n"
SENDING = {"tx-usecs": 30, "tx-frames": 0}
FIXED = COALESCING.replace("RX: on", "RX: off").replace("TX: off", "TX: n/a")
NET_DEV = """Inter-|   Receive   |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier
    d0: 10 2 0 7 0 0 0 0 30 4 0 0 0 0 0 0
eth0.5:10 5 0 0 0 0 0 0 30 6 0 0 0 0 0 0
  cut: 10 2 0
""".splitlines()
SOFTIRQS = ["     CPU0   CPU3", "  NET_TX:  1  2", "NET_RX: 3 4", "TIMER: 5", "RCU: x 1"]
INTERRUPTS = """   CPU0  CPU1
 24:  1  0  IO-APIC   5-edge      ACPI:Ged
 34: 7 5  PCI-MSIX-0000:03:00.0  0-edge  enp3s0f0-TxRx-0
NMI: 1 1 Non-maskable
ERR: 0
""".splitlines()
CLOCKS = {
    "/proc/cpuinfo": ["processor : 0", "cpu MHz : 1800.5", "processor : 1", "cpu MHz : 1900.0", "cpu MHz : x"],
    "/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": ["2200000"],
}
QDISCS = (
    '[{"kind":"mq","dev":"eth0","root":true,"drops":7},{"kind":"fq","dev":"eth0","parent":":1","drops":7},'
    '{"kind":"noqueue","dev":"lo","root":true}]'
)
QUEUES = {
    "enp3s0f0-TxRx-3": 3,
    "ens5-Tx-Rx-2": 2,
    "eth0-rx-1": 1,
    "mlx5_comp7@pci:0000:01:00.0": 7,
    "virtio0-input.0": 0,
    "ens192-rxtx-5": 5,
    **dict.fromkeys(("eth0-tx-1", "virtio3-rx", "enp3s0f0")),
}
"""Interrupt's name -> its receive queue."""
CONNTRACK = CONNTRACK_STAT.splitlines()
NFT = '{"nftables": [{"metainfo": {}}, {"table": {}}, {"rule": {}}, {"rule": {}}]}'
ROWS: list[tuple[Callable[[Any], object], Any, object]] = [
    (files.parse_lines, "", {}),
    (files.parse_lines, "/proc/sys/net/ipv4/ip_forward:1\n", {"/proc/sys/net/ipv4/ip_forward": ["1"]}),
    (files.parse_lines, "/names:filter\n/names:nat\n", {"/names": ["filter", "nat"]}),
    (files.parse_lines, "grep: warning\n", {}),
    *((files.number, text, value) for text, value in (("7", 7), ("-1", -1), ("", None), (None, None), ("ff", None))),
    (files.parse_cpus, "0-3,8", [0, 1, 2, 3, 8]),
    (files.parse_cpus, "3-1", []),
    *((files.parse_cpus, text, None) for text in ("", None, "a", "1,")),
    (parse.parse_path, '[{"type":"blackhole","dst":"16.0.8.1"}]', None),
    (parse.parse_path, "", None),
    (
        parse.parse_channels,  # in the kernel's two ways to say none
        CHANNELS,
        {"max": {"other": 1, "combined": 63}, "now": {"rx": 0, "tx": 0, "other": 1, "combined": 4}},
    ),
    (parse.parse_channels, RINGS, {"max": {"rx": 4096, "tx": 4096}, "now": {"rx": 512, "tx": 256}}),
    # a direction that is adaptive has no numbers of its own
    (parse.parse_coalescing, COALESCING, {"adaptive-rx": True, "adaptive-tx": False, **SENDING}),
    (parse.parse_coalescing, FIXED, {"adaptive-rx": False, "rx-usecs": 50, **SENDING}),
    (parse.parse_coalescing, "Coalesce parameters for d0:\n", None),
    (parse.parse_hash, HASH.format(toeplitz="on", xor="off"), {**HASHED, "function": "toeplitz"}),
    (
        parse.parse_hash,  # ethtool's netlink/rss.c, of 6.14
        HASH.format(toeplitz="on", xor="off")
        + "RSS input transformation:\n    symmetric-xor: off\n    symmetric-or-xor: on\n",
        {**HASHED, "function": "toeplitz, symmetric-or-xor"},
    ),
    (parse.parse_hash, HASH.format(toeplitz="off", xor="on"), {**HASHED, "function": "xor"}),
    (parse.parse_hash, VIRTIO, {"table": None, "key": None, "function": "toeplitz"}),
    (parse.parse_hash, "", {"table": None, "key": None, "function": None}),
    (parse.parse_hash_fields, UDP, ["src", "dst"]),
    (parse.parse_hash_fields, UDP + PORTS, ["src", "dst", "sport", "dport"]),
    (parse.parse_hash_fields, "not supported", None),
    (parse.count_nft_rules, NFT, 2),
    (parse.count_iptables_rules, "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j DROP\nCOMMIT\n", 1),
    (counters.parse_clocks, CLOCKS, {0: 1.8005e9, 1: 2.2e9}),  # the governor's is preferred
    (counters.parse_snmp, ["Ip: A B", "Ip: 1 -2", "Udp: C", "Udp: 3"], {"Ip.A": 1, "Udp.C": 3}),
    (counters.parse_conntrack, CONNTRACK, 0x1D8 + 0x16F),
    *((counters.parse_conntrack, lines, None) for lines in ([], CONNTRACK[:1], CONNTRACK[1:], [*CONNTRACK, "0"])),
    (counters.parse_net_dev, NET_DEV, {"d0": (2, 4), "eth0.5": (5, 6)}),
    (counters.parse_softirqs, SOFTIRQS, {"NET_TX": {0: 1, 3: 2}, "NET_RX": {0: 3, 3: 4}}),
    (counters.parse_softirqs, SOFTIRQS[1:], {}),
    (counters.parse_interrupts, INTERRUPTS, {24: ("ACPI:Ged", 1), 34: ("enp3s0f0-TxRx-0", 12)}),
    (counters.parse_interrupts, INTERRUPTS[1:], {}),
    (counters.parse_qdisc_drops, QDISCS, {"eth0": 7}),  # only the root's
    *((parse.queue_of, name, queue) for name, queue in QUEUES.items()),
]


@pytest.mark.parametrize(("parser", "text", "expected"), ROWS)
def test_what_is_printed_is_a_fact_or_none(parser: Callable[[Any], object], text: Any, expected: object) -> None:
    assert parser(text) == expected


VIA = {"gateway": "1.2.3.4", "dev": "d0"}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"dst": "16.0.0.0/8", **VIA}, ("16.0.0.0/8", ["via 1.2.3.4 dev d0"], "unicast", 0)),
        ({"dst": "10.0.0.7", "dev": "d0", "metric": 5}, ("10.0.0.7/32", ["dev d0"], "unicast", 5)),
        ({"dst": "default", **VIA}, ("0.0.0.0/0", ["via 1.2.3.4 dev d0"], "unicast", 0)),
        ({"dst": "default", "dev": "d0", "family": 6}, ("::/0", ["dev d0"], "unicast", 0)),
        ({"type": "blackhole", "dst": "16.0.8.0/24"}, ("16.0.8.0/24", ["blackhole"], "blackhole", 0)),
        ({"dst": "::/0", "nexthops": [VIA, {"dev": "d1"}]}, ("::/0", ["via 1.2.3.4 dev d0", "dev d1"], "unicast", 0)),
    ],
)
def test_routes(entry: dict[str, object], expected: tuple[object, ...]) -> None:
    (route,) = parse.parse_routes(json.dumps([{}, entry]), int(str(entry.get("family", 4))))
    assert tuple(route.values())[:4] == expected
    assert expected[0] in route["words"], "without a word for its family, which a bare device does not tell"


@pytest.mark.parametrize(
    ("parser", "text", "words"),
    [
        *((parse.parse_links, text, "ip link printed") for text in ("RTNETLINK", "{", '"text"', "[1]", "{}")),
        (parse.parse_channels, "netlink error: Operation not supported", "printed no settings"),
        (counters.parse_snmp, ["Ip: A B", "Ip: 1"], "2 names, 1 numbers"),
        (lambda lines: counters.parse_stat(lines, {}), ["intr 1"], "names no CPU"),
        *(
            (lambda lines: counters.parse_stat(lines, {}), [line], "/proc/stat: the line of cpu0 cannot be read")
            for line in ("cpu0 1 2", "cpu0 1 2 3 4 5 6 x")
        ),
    ],
)
def test_what_cannot_be_read_is_named(parser: Callable[[Any], object], text: Any, words: str) -> None:
    with pytest.raises(DutError, match=words):
        parser(text)


@given(st.sets(st.integers(0, 300)))
def test_a_mask_has_a_bit_for_each_cpu_and_is_read_again(cpus: set[int]) -> None:
    value = int(files.mask(sorted(cpus)).replace(",", ""), 16)
    assert {bit for bit in range(301) if value >> bit & 1} == cpus
    assert files.parse_mask(files.mask(cpus)) == sorted(cpus)
    assert files.mask((0, 35)) == "00000008,00000001", "in words of 32, the highest first"


def test_stolen_time_is_in_the_total_and_nobodys_work() -> None:
    (one,) = counters.parse_stat(["cpu 1 2 3", "cpu7 100 200 300 4000 500 60 70 8000 0 0"], {7: 2.2e9})
    assert one == CpuTime(7, 132.3, 7.3, 0.7, 2.2e9, 3.0, 3.0)


@pytest.mark.parametrize(
    ("style", "driver"),
    [
        ("rx_queue_{}_packets", "ixgbe"),
        ("rx_queue_{}_xdp_packets", "veth"),
        ("rx-{}.packets", "i40e"),
        ("rx-{}.rx_packets", "older i40e"),
        ("rx{}_packets", "mlx5_core"),
        ("queue_{}_rx_cnt", "ena"),
        ("[{}]: rx_ucast_packets", "bnxt_en"),
        ("Queue[{}] InPackets", "atlantic"),
        ("q{}_rx_pkt_n", "stmmac"),
        ("rxq_{}_packets", "amd-xgbe"),
    ],
)
def test_queues_by_style(style: str, driver: str) -> None:
    text = (
        "NIC statistics:\n" + "".join(f"     {style.format(q)}: {q + 5}\n" for q in (10, 0, 2)) + "     rx_packets: 9\n"
    )
    assert list(counters.queue_counts(counters.parse_nic_counters(text)).items()) == [(0, 5), (2, 7), (10, 15)], driver


def test_queues_that_vmxnet3_prints_below_their_numbers() -> None:
    text = "NIC statistics:\n" + "".join(
        f"     {way} Queue#: {queue}\n       ucast pkts {way.lower()}: {queue + 5}\n       pkts {way.lower()} err: 0\n"
        for way in ("Tx", "Rx")
        for queue in (0, 1)
    )
    assert counters.queue_counts(counters.parse_nic_counters(f"{text}     tx timeout count: 0\n")) == {0: 5, 1: 6}


def test_softnet_is_hexadecimal_and_names_its_cpu_late_or_never() -> None:
    zeros = "00000000 " * 9
    told = [f"000000ff 00000001 00000010 {zeros}00000003", f"0000000a 00000000 00000000 {zeros}00000000"]
    assert counters.parse_softnet(told) == {
        3: {"processed": 255, "dropped": 1, "time_squeeze": 16},
        0: {"processed": 10, "dropped": 0, "time_squeeze": 0},
    }
    untold = ["0000000a 00000001 00000002 00000000", "nothing", "0000000b 00000000 00000000"]
    assert {cpu: one["processed"] for cpu, one in counters.parse_softnet(untold).items()} == {0: 10, 2: 11}
