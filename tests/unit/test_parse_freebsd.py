"""Output of FreeBSD's tools, old and new, and whatever else they might print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trexbench.core.errors import DutError
from trexbench.dut.freebsd import parse as parse
from trexbench.host import freebsd as counters

FIXTURES = Path(__file__).parents[1] / "fixtures"
OLD, NEW = FIXTURES / "freebsd-12.2", FIXTURES / "freebsd-14.1"


def text(folder: Path, name: str) -> str:
    return (folder / f"{name}.txt").read_text()


def test_interfaces() -> None:
    found = parse.parse_interfaces(text(OLD, "ifconfig"))
    assert list(found) == ["ix0", "ix1", "lo0", "enc0", "pflog0", "ovpns1", "ix0.4000"]
    ix0 = found["ix0"]
    assert ix0["addresses"] == ["100.65.1.1/24", "10.7.0.1/16"] and ix0["mac"] == "90:ec:77:1b:63:55"
    assert (ix0["up"], ix0["status"], ix0["mtu"], ix0["speed_bps"]) == (True, "active", 1500, 10e9)
    assert (found["ix1"]["up"], found["ix1"]["status"], found["ix1"]["speed_bps"]) == (False, "no carrier", None)
    assert "LRO" in found["ix1"]["options"] and "LRO" not in ix0["options"]
    pair = "inet 10.8.0.1 --> 10.8.0.2"
    cidr = text(OLD, "ifconfig").replace(f"{pair} netmask 0xffffffff", f"{pair}/32")  # af_inet.c, with inet:cidr
    assert parse.parse_interfaces(cidr)["ovpns1"]["addresses"] == ["10.8.0.1/32"]
    assert found["ovpns1"]["addresses"] == ["10.8.0.1/32"] and found["ix0.4000"]["addresses"] == ["192.0.2.1/30"]
    new = parse.parse_interfaces(text(NEW, "ifconfig"))
    assert new["igc0"]["addresses"] == ["192.168.1.1/24"] and new["igc0"]["speed_bps"] == 2.5e9
    assert new["ix0"]["up"] and new["lo0"]["status"] is None
    assert new["ix0"]["ipv6_off"] and not ix0["ipv6_off"], "nd6 options=29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>"
    tentative = text(OLD, "ifconfig").replace("inet6 ::1 prefixlen 128", "inet6 ::1 prefixlen 128 tentative")
    assert parse.parse_interfaces(tentative)["lo0"]["unusable"] == {"::1/128": "tentative"}


def _queue_of(counter: str) -> str | None:
    match = counters.PACKETS_OF_QUEUE.fullmatch(counter)
    return match[1] if match else None


GET, NETISR = text(OLD, "route-get"), text(OLD, "netisr")


@pytest.mark.parametrize(
    ("parser", "shown", "expected"),
    [
        (parse.parse_path, GET, "via 100.65.1.2 dev ix0"),
        (parse.parse_path, GET.replace("GATEWAY,", ""), "dev ix0"),
        (parse.parse_path, GET.replace("DONE", "BLACKHOLE,DONE"), "blackhole"),
        (parse.parse_path, GET.replace("DONE", "REJECT,DONE"), "reject"),
        (counters.parse_cpus, text(OLD, "cpuset"), (0,)),
        (counters.parse_cpus, text(NEW, "cpuset"), (0, 1, 2, 3)),
        (counters.parse_netisr_drops, NETISR, 42),  # not of igmp
        (counters.parse_netisr_drops, NETISR.replace(" igmp ", " ip6  "), 51),
        (parse.media_speed_bps, "Ethernet autoselect (10Gbase-SR <full-duplex>)", 10e9),
        (parse.media_speed_bps, "Ethernet 10Gbase-T <full-duplex> (100baseTX <full-duplex>)", 100e6),
        (parse.media_speed_bps, "Ethernet autoselect (25GBase-CR <full-duplex>)", 25e9),
        (parse.media_speed_bps, "Ethernet 1000baseT <full-duplex>", 1e9),
        (parse.media_speed_bps, "Ethernet autoselect", None),
        (parse.network, "16", "16.0.0.0/8"),
        (parse.network, "10.1/16", "10.1.0.0/16"),
        (parse.network, "1.2.3.4", "1.2.3.4/32"),
        (parse.parse_firewall, text(OLD, "pfctl"), "enabled"),
        (parse.parse_firewall, text(NEW, "pfctl"), "disabled"),
        (counters.parse_firewall_drops, text(OLD, "pfctl"), {"bad-offset": 0, "memory": 5, "state-insert": 2}),
        (counters.parse_firewall_drops, text(NEW, "pfctl"), {}),
        (parse.parse_firewall, "Status: Disabled                              Debug: Urgent\n", "disabled"),
        *((_queue_of, f"queue3.{way}_packets", number) for way, number in (("rx", "3"), ("tx", None))),
        *((_queue_of, name, number) for name, number in (("pf.rxq07.packets", "07"), ("rxstat2.packets", "2"))),
        (_queue_of, "mac_stats.good_pkts_rcvd", None),
        (counters.device, "ix0", ("ix", "0")),
        (counters.device, "ix0.4000", None),
        (counters.device, "lagg", None),
    ],
)
def test_what_is_shown(parser: Callable[[str], object], shown: str, expected: object) -> None:
    assert parser(shown) == expected


def test_routes_of_both_forms() -> None:
    old = parse.parse_routes(text(OLD, "routes"))
    assert old[0] == {"to": "0.0.0.0/0", "gateway": "192.168.1.254", "flags": "UGS", "interface": "igc0"}
    assert [one["to"] for one in old[3:5]] == ["48.1.0.0/16", "48.0.0.1/32"] and "B" in old[3]["flags"]
    assert old[-1]["interface"] == "ix0", "a column of seconds follows"
    new = parse.parse_routes(text(NEW, "routes"))
    both = [(one["gateway"], one["interface"]) for one in new if one["to"] == "16.0.0.0/8"]
    assert both == [("100.65.1.2", "ix0"), ("100.65.2.2", "ix1")]


def _times(values: str) -> object:
    return counters.parse_cpu_times({"kern.cp_times": values, "kern.clockrate": "{ hz = 1000, stathz = 127 }"})


NETWORKS = ("", "300.0.0.0/8", "16.0.0.0/33", "16.0.0.1/8", "1.2.3.4.5", "10&0xff00ff00", "x")
TIMES = ("", "0 0 0 0 0", "1 2 3 4", "1 2 3 4 -5", "a b c d e")


@pytest.mark.parametrize(
    ("parser", "shown", "words"),
    [
        *((parse.network, shown, "where a network is expected") for shown in NETWORKS),
        *((_times, shown, r"kern\.cp_times") for shown in TIMES),
        (parse.parse_path, "route: writing to routing socket: No such process\n", "no interface"),
    ],
)
def test_what_cannot_be_read_is_named(parser: Callable[[str], object], shown: str, words: str) -> None:
    with pytest.raises(DutError, match=words):
        parser(shown)


def test_routes_of_ipv6() -> None:
    """usr.bin/netstat/route.c: its default route has IPv4's name, and a family without a route has no header."""
    shown = (
        "Routing tables\n\nInternet6:\nDestination   Gateway   Flags   Nhop#    Mtu    Netif Expire\n"
        "default       fe80::1%ix0   UGS   4   1500   ix0\n2001:2:0:10::/64   2001:2:0:1::2   UGS   5   ix1\n"
    )
    found = [(one["to"], one["gateway"], one["interface"]) for one in parse.parse_routes(shown)]
    assert found == [("::/0", "fe80::1", "ix0"), ("2001:2:0:10::/64", "2001:2:0:1::2", "ix1")], "one MTU is blank"
    assert parse.parse_routes("Routing tables\n") == []


def test_neighbours() -> None:
    old = parse.parse_neighbours(text(OLD, "arp"))
    found = [(one["address"], one["permanent"], one["published"]) for one in old]
    assert found[:2] == [("100.65.1.2", True, False), ("100.65.1.1", True, False)]
    assert found[2:] == [(f"192.168.1.{host}", *flags) for host, *flags in ((254, 0, 0), (77, 0, 0), (78, 1, 1))]
    assert old[3]["mac"] is None and old[0]["interface"] == "ix0"
    assert parse.parse_neighbours(text(NEW, "arp"))[0]["mac"] == "68:05:ca:32:45:94", "libc used to leave zeros out"


@pytest.mark.parametrize(
    ("end", "published"),
    [("R", False), ("R R", False), ("R p", True), ("R Rp", True), ("R Rp 3", True), ("N 3", False), ("P", False)],
)
def test_flags_of_neighbours_of_ipv6(end: str, published: bool) -> None:
    """usr.sbin/ndp/ndp.c, dump: a letter for the state, the flags, the number of probes."""
    (one,) = parse.parse_ndp(f"2001:2:0:1::2   68:5:ca:32:45:94     ix0 permanent {end}\n")
    assert one["published"] is published and one["permanent"]


def test_sysctl() -> None:
    values = counters.parse_sysctl(text(OLD, "sysctl"))
    assert values["kern.version"].endswith("pfSense root@freebsd12-build.example.net:/usr/obj/amd64/pfSense")
    assert values["dev.ix.0.%desc"] == "Intel(R) X553 N (SFP+)"
    assert parse.parse_struct(values["kern.boottime"], "sec") == 1637938203


def test_cpu_times() -> None:
    cpus = counters.parse_cpu_times(counters.parse_sysctl(text(OLD, "sysctl")))
    first = cpus[0]
    assert (first.cpu, first.busy_s, first.packet_s, first.clock_hz) == (0, (1270 + 2540 + 127) / 127, None, 2.2e9)
    assert first.total_s == (1270 + 2540 + 127 + 12700) / 127 and len(cpus) == 4 and cpus[3].clock_hz == 2.2e9
    cpus = counters.parse_cpu_times(counters.parse_sysctl(text(NEW, "sysctl")))
    assert [cpu.clock_hz for cpu in cpus] == [2.2e9, 1.8e9]
    without = counters.parse_cpu_times({"kern.cp_times": "1 2 3 4 5", "kern.clockrate": "{ stathz = 1 }"})
    assert without[0].clock_hz is None, "no clock is no number"


def test_cpus_that_are_absent() -> None:
    """sys/kern/kern_clock.c, sysctl_kern_cp_times: zeros for each of them, up to the highest number."""
    values = {"kern.cp_times": "1 0 0 0 9 0 0 0 0 0 2 0 0 0 8 0 0 0 0 0", "kern.clockrate": "{ stathz = 10 }"}
    assert [(one.cpu, one.total_s) for one in counters.parse_cpu_times(values)] == [(0, 1.0), (2, 1.0)]


def test_interface_counts() -> None:
    old = counters.parse_interface_counts(text(OLD, "interfaces"))
    wanted = {"Ipkts": 4000000, "Ierrs": 3, "Idrop": 0, "Opkts": 3900000, "Oerrs": 0, "Drop": 0}
    assert {name: old["ix0"][name] for name in wanted} == wanted
    assert list(old) == ["ix0", "ix1", "lo0", "enc0"], "its address or none, up or not"
    assert counters.parse_interface_counts(text(NEW, "interfaces"))["ix0"]["Ierrs"] == 99


def test_interrupts_and_queues() -> None:
    old = counters.receive_queues(counters.parse_interrupts(text(OLD, "interrupts")))
    assert old == {"ix0": {0: 264, 1: 265}, "ix1": {0: 267, 1: 268}}, "neither aq nor nvme"
    new = counters.receive_queues(counters.parse_interrupts(text(NEW, "interrupts")))
    assert new == {"igc0": {0: 134}, "ix0": {0: 140, 1: 141}}
    assert counters.receive_queues([(1, "ix0:que 0", 7), (2, "ix0:q1", 8), (3, "ix0:link", 9)]) == {"ix0": {0: 1, 1: 2}}


def test_one_packet_is_counted_under_the_words_of_many() -> None:
    for count, words in ((12, "packets"), (1, "packet")):
        shown = text(OLD, "ip").replace("12 output packets discarded", f"{count} output {words} discarded")
        assert counters.parse_protocol(shown)["output packets discarded due to no route"] == count
