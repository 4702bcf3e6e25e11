"""The VPP driver against a VPP that keeps its state: plan, apply, read back, count, fail halfway, take back."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from bench import MACS, NICS, VPP, VPP_HOST, Bench
from box_vpp import CONF, RUNTIME, VppBox
from boxes import Said

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.config.settings import VppSettings
from trexbench.config.twin import RssSpec
from trexbench.core.dut.rss import MICROSOFT_KEY, PortHash, QueuePlace, Spreading
from trexbench.core.dut.telemetry import DropCount, PortCount, QueueCount
from trexbench.core.errors import ConfigError, DutError, NoInterface
from trexbench.dut.journal import FileJournal
from trexbench.dut.settings import with_config_rss
from trexbench.dut.vpp import changes as vpp
from trexbench.dut.vpp.observe import observed
from trexbench.dut.vpp.parse_show import parse_hardware, queue_packets

FIXTURES = Path(__file__).parents[1] / "fixtures"
HOST_INTERFACES = ("d0", "d1")


@pytest.fixture
def dpdk(tmp_path: Path) -> Bench:
    return Bench(tmp_path, VppBox(nics=NICS))


@pytest.fixture
def host(tmp_path: Path) -> Bench:
    return Bench(tmp_path, VppBox(), VPP_HOST)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trexbench.dut.apply.RETRY_EVERY_S", 0.001)


def test_a_dpdk_vpp_is_set_up(dpdk: Bench) -> None:
    assert dpdk.apply() == [
        "set interface state TenGigabitEthernet3/0/0 up",
        "set interface ip address TenGigabitEthernet3/0/0 100.65.1.1/24",
        "set ip neighbor TenGigabitEthernet3/0/0 100.65.1.2 68:05:ca:32:45:94 static",
        "set interface state TenGigabitEthernet3/0/1 up",
        "set interface ip address TenGigabitEthernet3/0/1 100.65.2.1/24",
        "set ip neighbor TenGigabitEthernet3/0/1 100.65.2.2 68:05:ca:32:45:95 static",
        "ip route add 16.0.0.0/8 via 100.65.1.2 TenGigabitEthernet3/0/0",
        "ip route add 48.0.0.0/8 via 100.65.2.2 TenGigabitEthernet3/0/1",
    ]
    assert dpdk.wrong() == []


def test_facts_are_the_same_at_every_look(dpdk: Bench) -> None:
    dpdk.want(3)
    dpdk.apply()
    first = dpdk.dut.verify()
    dpdk.box.cards[NICS[0]].frames["rx packets"] = 12345
    dpdk.box.start()
    dpdk.apply()
    again = dpdk.dut.verify()
    assert (again.facts, again.digest) == (first.facts, first.digest)
    assert first.facts["kernel"] == "5.15.0-generic" and first.platform == {}
    dpdk.box.files["/sys/devices/system/cpu/cpu0/microcode/version"] = "0x24\n"
    newer = dpdk.dut.verify()
    assert newer.to_document()["platform"] == {"microcode": "0x24"} and newer.digest == first.digest
    assert first.facts["unknown"] == ["governor", "isolated_cpus", "kernel_command_line", "smt", "turbo_off"]


def test_a_startup_conf_that_says_so_already_is_not_written(dpdk: Bench) -> None:
    """Somebody wrote it and did not restart."""
    dpdk.box.files["/etc/vpp/startup.conf"] = CONF.replace("num-rx-desc 512", "num-rx-desc 512 num-rx-queues 2")
    dpdk.want(2)
    assert dpdk.apply()[:2] == ["systemctl restart vpp", "show version"]
    assert dpdk.wrong() == []


def test_a_vpp_that_is_not_ready_for_a_while_is_waited_for(dpdk: Bench) -> None:
    dpdk.box.deaf_after_start = 7
    dpdk.want(2)
    dpdk.apply()
    assert dpdk.changing().count("systemctl restart vpp") == 1
    assert dpdk.wrong() == []


def test_workers_of_the_config(dpdk: Bench, tmp_path: Path) -> None:
    placements = ((0, 1, 2), (1, 0, 2))
    dpdk.config = replace(VPP, vpp=VppSettings(workers=3, rx_placement=placements))
    dpdk.want(2)
    done = dpdk.apply()
    assert "workers 3" in dpdk.box.files["/etc/vpp/startup.conf"]
    # where VPP puts queues itself is known only after its start: said in any case
    assert done[-2:] == [
        "set interface rx-placement TenGigabitEthernet3/0/0 queue 1 worker 2",
        "set interface rx-placement TenGigabitEthernet3/0/1 queue 0 worker 2",
    ]
    assert dpdk.wrong() == []
    assert dpdk.dut.verify().spreading.queues == (  # type: ignore[union-attr]
        QueuePlace(0, 0, "vpp_wk_0"),
        QueuePlace(0, 1, "vpp_wk_2"),
        QueuePlace(1, 0, "vpp_wk_2"),
        QueuePlace(1, 1, "vpp_wk_0"),
    )
    assert dpdk.apply() == []


@pytest.mark.parametrize(
    ("settings", "queues", "said"),
    [
        (VppSettings(), 65, "65 receive queues are wanted, TenGigabitEthernet3/0/0 has 64 at most: ask for --rx-que"),
        (VppSettings(workers=4), None, "4 workers are wanted, the box has 4 cores: each takes one, and so does VPP's"),
        (VppSettings(rx_placement=((0, 0, 1),)), None, "rx_placement names worker 1, VPP has 1: workers count from 0"),
        (VppSettings(rx_placement=((0, 2, 0),)), 2, "names queue 2 of TenGigabitEthernet3/0/0, which has 2"),
        (VppSettings(interfaces="af_packet"), None, "VPP calls an af_packet interface host-NAME: write host-Ten"),
    ],
)
def test_what_the_box_cannot_be_is_refused_untouched(
    dpdk: Bench, settings: VppSettings, queues: int | None, said: str
) -> None:
    dpdk.config = replace(VPP, vpp=settings)
    dpdk.want(queues)
    with pytest.raises(ConfigError) as error:
        dpdk.apply()
    assert said in str(error.value)
    assert dpdk.changing() == []


def test_an_interface_that_vpp_does_not_have(tmp_path: Path) -> None:
    bench = Bench(tmp_path, VppBox(nics=NICS[:1]))
    with pytest.raises(DutError, match=r"VPP has no interface TenGigabitEthernet3/0/1, only TenGigabitEthernet3/0/0"):
        bench.apply()
    assert bench.changing() == []
    assert "interface: wanted TenGigabitEthernet3/0/1, found only" in " ".join(bench.wrong())


def test_an_interface_that_was_polled_is_again(host: Bench) -> None:
    host.apply()
    by_hand(host.box, "set interface rx-mode host-d0 polling")
    host.want(2)
    host.apply()
    assert [card.mode for card in host.box.cards.values()] == ["polling", "interrupt"]


def by_hand(box: VppBox, *lines: str) -> None:
    for line in lines:
        said = box.vppctl(["vppctl", "-s", box.socket, *line.split()])
        assert not said.returncode
        assert said.stdout.strip() in ("", line.split()[3] and f"host-{line.split()[3]}"), said.stdout


def the_dead_route(bench: Bench) -> None:
    """Repeat what was recorded: interfaces deleted and made anew, the configuration given once more."""
    for at in (0, 1):
        by_hand(
            bench.box,
            f"delete host-interface name d{at}",
            f"create host-interface name d{at} num-rx-queues 1 hw-addr 02:7b:78:00:01:0{at}",
            f"set interface state host-d{at} up",
            f"set interface ip address host-d{at} 100.65.{at + 1}.1/24",
            f"set ip neighbor host-d{at} 100.65.{at + 1}.2 {MACS[at]} static",
            f"ip route add {(16, 48)[at]}.0.0.0/8 via 100.65.{at + 1}.2 host-d{at}",
        )


def the_half_dead_route(bench: Bench) -> None:
    by_hand(bench.box, "ip route add 16.0.0.0/8 via 100.65.1.2 host-d1")


@pytest.mark.parametrize(
    ("accident", "found"),
    [
        (the_dead_route, "found dpo-drop ip4 (unresolved: 100.65.1.2 if_index:1)"),
        (the_half_dead_route, "f2:1f:ed:c6:5d:f9 and arp-ipv4: via 100.65.1.2 host-d1"),
    ],
)
def test_both_accidents_are_seen_and_repaired(host: Bench, accident: Callable[[Bench], None], found: str) -> None:
    host.apply()
    accident(host)
    (wrong, *_) = host.wrong()
    assert wrong.startswith("forwarding of 16.0.0.0/8: wanted ipv4 via 100.65.1.2 host-d0 to f2:1f:ed:c6:5d:f9")
    assert found in wrong
    assert {line.split()[0] for line in host.apply()} == {"ip"}
    assert host.wrong() == []
    assert host.apply() == []


def test_the_mac_of_an_interface_made_by_hand_is_the_linux_interfaces(host: Bench) -> None:
    by_hand(host.box, "create host-interface name d0 num-rx-queues 1")
    before = copy.deepcopy(host.box.cards["host-d0"])
    assert "MAC of host-d0: wanted 02:7b:78:00:01:00, found 02:fe:00:00:01:01" in host.wrong()
    assert "set interface mac address host-d0 02:7b:78:00:01:00" in host.apply()
    assert host.wrong() == []
    host.revert()
    assert host.box.cards["host-d0"] == before


def test_interfaces_that_went_away_leave_dead_routes_which_go_first(host: Bench) -> None:
    host.apply()
    by_hand(host.box, "delete host-interface name d0", "delete host-interface name d1")
    done = host.apply()
    assert done.index("ip route del 16.0.0.0/8") < done.index(
        "create host-interface name d0 num-rx-queues 1 hw-addr 02:7b:78:00:01:00"
    )
    assert host.wrong() == []


PIN = f"100.65.1.2%{NICS[0]}"
PINNED = "wanted 68:05:ca:32:45:94 static, found"


def _set(what: str, key: str, value: object) -> Callable[[VppBox], object]:
    return lambda box: getattr(box, what).update({key: value})


@pytest.mark.parametrize(
    ("harm", "wrong", "mends"),
    [
        (_set("neighbours", PIN, ("02:00:00:00:00:99", True)), f"neighbour 100.65.1.2 on {NICS[0]}: {PINNED} 02:00", 1),
        (_set("neighbours", PIN, ("68:05:ca:32:45:94", False)), f"{PINNED} 68:05:ca:32:45:94 learnt", 1),
        (lambda box: setattr(box.cards[NICS[0]], "up", False), f"state of {NICS[0]}: wanted up, found down", 1),
        (_set("addresses", NICS[0], ["100.65.1.1/25"]), "wanted 100.65.1.1/24, found 100.65.1.1/25", 2),
        (lambda box: box.routes.pop("16.0.0.0/8"), "wanted ipv4 via 100.65.1.2 TenGig.* to 68:05.*, found none", 1),
        (lambda box: setattr(box.cards[NICS[1]], "link", False), f"link of {NICS[1]}: wanted up, found no carrier", 0),
        (
            lambda box: box.set_route("add", "16.0.0.0/24", "100.65.2.2", NICS[1]),
            f"^routes inside 16.0.0.0/8: wanted none, found 16.0.0.0/24 to ipv4 via 100.65.2.2 {NICS[1]} to 68:05",
            0,
        ),
    ],
)
def test_every_difference_is_named_and_mended(
    dpdk: Bench, harm: Callable[[VppBox], object], wrong: str, mends: int
) -> None:
    """A cable, or a route that is not the test's, is somebody else's to mend."""
    dpdk.apply()
    harm(dpdk.box)
    assert any(re.search(wrong, one) for one in dpdk.wrong()), dpdk.wrong()
    assert len(dpdk.apply()) == mends
    assert bool(dpdk.wrong()) is (mends == 0)


@pytest.mark.parametrize(
    ("workers", "queues", "scripted"),
    [(None, 3, ()), (2, None, ()), (2, None, HOST_INTERFACES)],
    ids=["other queues", "a restart", "a restart with a start-up script"],
)
def test_revert_of_interfaces_made_anew(
    host: Bench, workers: int | None, queues: int | None, scripted: tuple[str, ...]
) -> None:
    """Interfaces that were there before go with a restart, unless a start-up script creates them."""
    host.apply()
    before = host.box.settings()
    host.journal = FileJournal("later", host.journal._path.parent)
    host.config = replace(VPP_HOST, vpp=VppSettings(interfaces="af_packet", workers=workers))
    host.want(queues)
    host.apply()
    assert host.wrong() == []
    host.box.scripted = scripted
    host.revert()
    assert host.box.settings() == before


def test_a_vpp_that_is_dead(dpdk: Bench) -> None:
    dpdk.box.down = True
    for ask in (dpdk.dut.plan, dpdk.dut.verify, dpdk.dut.identity, dpdk.dut.observe):
        with pytest.raises(DutError, match=r"VPP on the box does not answer at /run/vpp/cli.sock \(connect: Conn"):
            ask()


def test_no_vppctl_there(dpdk: Bench) -> None:
    dpdk.transport.fail["sh -c"] = Said(stderr="sh: 1: vppctl: not found\n", returncode=127)
    with pytest.raises(DutError, match="vppctl is not installed on the box: install the package vpp"):
        dpdk.dut.plan()


def test_revert_of_a_startup_conf_with_which_vpp_does_not_start(dpdk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dpdk.box.settings()
    monkeypatch.setattr(vpp, "READY_S", 0.0)
    dpdk.box.deaf_after_start = 1000
    dpdk.want(2)
    with pytest.raises(DutError, match="dut revert"):
        dpdk.apply()
    dpdk.box.deaf_after_start = 0
    assert dpdk.revert() == 1
    assert dpdk.box.settings() == before and dpdk.journal.entries() == ()


def test_identity_is_the_boot_and_the_process(dpdk: Bench) -> None:
    first = dpdk.dut.identity()
    assert first == dpdk.dut.identity() == f"11111111-2222 {dpdk.box.pid}"
    dpdk.box.start()
    assert dpdk.dut.identity() != first


@pytest.mark.parametrize(
    ("rss", "key", "reason"),
    [
        (RssSpec(), "6d5a56da255b0ec2", ""),
        (RssSpec(key="aa:bb:" * 19 + "AA:bb"), "aabbaabb", ""),
        (RssSpec(key="random"), None, "drawn by the driver"),
        (None, None, "no rss: section"),
    ],
)
def test_the_hash_is_the_configs(dpdk: Bench, rss: RssSpec | None, key: str | None, reason: str) -> None:
    dpdk.config = replace(VPP, rss=rss)
    dpdk.want(3)
    dpdk.apply()
    spreading = dpdk.dut.verify().spreading
    assert spreading is not None
    for one in spreading.hashes:
        assert (one.key or "").startswith(key or "-") is (key is not None)
        assert reason in one.reason
        assert one.table[:5] == ((0, 1, 2, 0, 1) if key else ())


def test_the_config_speaks_of_a_hash_only_where_the_dut_is_silent() -> None:
    queues = tuple(QueuePlace(port, queue, f"cpu{queue}") for port in (0, 1) for queue in (0, 1))
    own, silent = PortHash(0, "aa" * 40, ("src",), (0, 1)), PortHash(1, None, reason="not told")
    found = with_config_rss(Spreading(queues, (own, silent)), replace(VPP, rss=RssSpec(table=4)))
    assert found.hashes[0] == own and found.queues == queues
    assert found.hashes[1] == PortHash(1, MICROSOFT_KEY.hex(), RssSpec().fields, (0, 1, 0, 1))


def test_observe_counts_in_one_round_trip(dpdk: Bench) -> None:
    dpdk.want(2)
    dpdk.apply()
    card = dpdk.box.cards[NICS[0]]
    card.frames, card.queued = {"rx packets": 1000, "rx-miss": 5}, {0: 600, 1: 400}
    dpdk.transport.ran.clear()
    seen = dpdk.dut.observe()
    assert (len(dpdk.transport.ran), dpdk.box.cleared) == (1, 0)
    assert seen.missing == ()
    assert seen.clock_hz == 2.2e9
    assert [thread.name for thread in seen.threads] == ["vpp_main", "vpp_wk_0"]
    assert seen.ports == (PortCount(0, 1000, 0), PortCount(1, 0, 0))
    assert seen.queues[:2] == (QueueCount(0, 0, 600), QueueCount(0, 1, 400))
    assert [drop for drop in seen.drops if drop.count] == [DropCount("rx-miss", 5, 0)]
    dpdk.dut.observe(clear=True)
    assert (len(dpdk.transport.ran), dpdk.box.cleared) == (2, 1)


def printed(folder: str, *more: str) -> dict[str, str]:
    """Output of each command of a reading, that about interfaces from these fixtures."""
    names = {f"show {name}": f"{folder}/{name}.txt" for name in ("interface", *more)}
    names |= {"show hardware-interfaces": f"{folder}/hardware.txt", "show cpu": "vpp-26.06/show-cpu.txt"}
    return {"show runtime": RUNTIME, **{command: (FIXTURES / name).read_text() for command, name in names.items()}}


def test_what_hardware_lost_is_counted_once() -> None:
    """rx-miss is the NIC's rx_missed_errors; rx-no-buf counts attempts; the reasons of drops are no more drops.

    What DPDK refused to send was counted as sent before. tx-error has it, and what is among the drops.
    """
    seen = observed(VPP, printed("vpp-dpdk", "errors"))
    assert [drop for drop in seen.drops if drop.count] == [
        DropCount("rx-miss", 77, 0),
        DropCount("rx-error", 3, 0),
        DropCount("drops", 11, 0),
        DropCount("Tx packet drops (dpdk tx failure)", 8, 1),
    ]
    assert seen.queues == (QueueCount(0, 0, 700), QueueCount(0, 1, 0), QueueCount(0, 2, 300))
    assert seen.ports == (PortCount(0, 1000, 800), PortCount(1, 900, 980 - 8))


def test_what_other_drivers_call_lost() -> None:
    """DPDK's imissed has what no queue had a buffer for (drivers/net/mlx5, since 20.02), rx-miss has imissed.

    src/drivers/atlantic of 26.06 writes TX where all others write tx.
    """
    texts = printed("vpp-dpdk", "errors")
    for command, was, now in (
        ("show hardware-interfaces", "rx_missed_errors      ", "rx_phy_discard_packets"),
        ("show hardware-interfaces", "rx_q0_packets      ", "rx_l3_l4_xsum_error"),
        ("show errors", " Tx packet drops (dpdk tx failure) ", "         no free TX slots          "),
        ("show interface", "rx-error                       3", "rx-error                     703"),
    ):
        assert was in texts[command]
        texts[command] = texts[command].replace(was, now, 1)
    drops = observed(VPP, texts).drops
    of_82599 = texts | {"show interface": texts["show interface"].replace("703", "  3")}
    assert DropCount("rx-error", 3, 0) in observed(VPP, of_82599).drops, "it counts wrong checksums as no errors"
    assert {DropCount("rx_phy_discard_packets", 77, 0), DropCount("no free TX slots", 8, 1)} <= set(drops)
    assert DropCount("rx-error", 3, 0) in drops, "700 of them have a wrong checksum: ixgbe_ethdev.c of DPDK 21 to 25"


def test_queues_and_full_rings_of_vpps_own_drivers() -> None:
    """virtio counts what found its ring full as sent, and among the drops; vmxnet3 prints a part for each queue."""
    config, texts = load_dut("lab-vm-vpp"), printed("vpp-26.06/native", "errors")
    seen = observed(config, texts)
    assert [one.packets for one in seen.queues] == [709, 697, 800, 7, 2, 0]
    assert [drop for drop in seen.drops if drop.count] == [
        DropCount("drops", 10, 0),
        DropCount("drops", 9, 1),
        DropCount("no free tx slots", 352, 1),
    ]
    assert seen.ports == (PortCount(0, 2206, 0), PortCount(1, 9, 1844))
    assert queue_packets(parse_hardware(texts["show hardware-interfaces"])["vmxnet3-0/0/6/0"]) == {0: 4991, 1: 0}
    ports = tuple(replace(port, interface=port.interface.replace("virtio", "vmxnet3")) for port in config.ports)
    others = {command: text.replace("virtio-0/0", "vmxnet3-0/0") for command, text in texts.items()}
    seen = observed(replace(config, cables=ports), others)
    assert DropCount("drops", 361, 1) in seen.drops and seen.ports[1].tx_packets == 1844
    # src/plugins/vmxnet3/format.c: frames for which a queue had no buffer, in none of VPP's own counters
    of_nic = texts["show hardware-interfaces"].replace("No Bufs                             0", "No Bufs  7", 1)
    ports = tuple(replace(port, interface="vmxnet3-0/0/6/0") for port in config.ports[:1])
    seen = observed(replace(config, cables=ports), {**texts, "show hardware-interfaces": of_nic})
    assert [drop for drop in seen.drops if drop.queue is not None and drop.count] == [DropCount("rx_no_bufs", 7, 0, 0)]


def test_interfaces_of_vpps_own_drivers(tmp_path: Path) -> None:
    config = load_dut("lab-vm-vpp")
    bench = Bench(tmp_path, VppBox(), config, 3)
    assert bench.apply()[:2] == [f"create interface virtio 0000:00:0{slot}.0 rss-enabled" for slot in (4, 5)]
    attested = bench.dut.verify()
    assert attested.mismatches == () and bench.apply() == [] and attested.spreading is not None
    assert attested.spreading.hashes[0].table[:4] == (0, 1, 2, 0)
    bench.want(2)
    with pytest.raises(ConfigError, match=r"all queues of virtio-0/0/4/0, which has 3; 2 wanted: give the machine"):
        bench.apply()
    ports = [replace(port, interface=port.interface.replace("virtio", "vmxnet3")) for port in config.ports]
    bench = Bench(tmp_path / "other", VppBox(), replace(config, cables=tuple(ports)), 1)
    assert bench.apply()[0] == "create interface vmxnet3 0000:00:04.0 num-rx-queues 1"
    bench.want(2)
    done = bench.apply()
    at = done.index("delete interface vmxnet3 vmxnet3-0/0/4/0")
    assert done[at + 1] == "create interface vmxnet3 0000:00:04.0 num-rx-queues 2" and bench.wrong() == []
    with pytest.raises(ConfigError, match=r"host-d0 names no driver of VPP's own and PCI device: write virtio-0/0/4/0"):
        Bench(tmp_path, VppBox(), replace(config, cables=VPP_HOST.cables)).apply()
    box = VppBox()
    del box.files["/sys/bus/pci/devices/0000:00:05.0/class"]
    lacking = r"lab-vm-vpp: no NIC for virtio-0/0/5/0: there is no /sys/bus/pci/devices/0000:00:05\.0: correct"
    with pytest.raises(NoInterface, match=lacking):
        Bench(tmp_path, box, config).apply()
    assert not box.cards, "nothing is changed"


def test_af_packets_full_transmit_ring_is_a_loss_and_its_timer_is_none(host: Bench) -> None:
    host.apply()
    host.box.cards["host-d1"].frames |= {"tx packets": 100, "refused": 40}
    spreading = host.dut.verify().spreading
    assert spreading is not None and {one.key for one in spreading.hashes} == {None}, "the kernel's is not foretold"
    seen = host.dut.observe()
    assert [drop for drop in seen.drops if drop.count] == [DropCount("tx frame not ready", 40, 1)]
    assert seen.ports[1].tx_packets == 60, "VPP counts a frame as sent before af_packet looks for its slot"
    assert [one.packets for one in seen.queues] == [0, 0]
    host.want(2)
    host.apply()
    assert [gap.what for gap in host.dut.observe().missing if "queue" in gap.what] == [
        "packets of each queue of host-d0",
        "packets of each queue of host-d1",
    ]


@pytest.mark.parametrize(("linux", "lost"), [("1000", 100), ("900", 0), ("899", None), ("", None), ("x", None)])
def test_what_af_packets_receive_ring_refused(host: Bench, linux: str, lost: int | None) -> None:
    """Linux has received it, VPP has not; nobody counts it."""
    host.apply()
    host.box.cards["host-d0"].frames["rx packets"] = 900
    host.box.files["/sys/class/net/d0/statistics/rx_packets"] = f"{linux}\n"
    seen = host.dut.observe()
    assert [drop.count for drop in seen.drops if drop.name == "af_packet ring" and drop.port == 0] == (
        [] if lost is None else [lost]
    )
    assert any("host-d0" in gap.what and "losses" in gap.what for gap in seen.missing) is (lost is None)


@pytest.mark.parametrize("broken", ["show runtime", "show interface", "show hardware-interfaces", "show cpu"])
def test_one_broken_reader_stops_no_other(dpdk: Bench, broken: str) -> None:
    dpdk.apply()
    commands = dpdk.box.commands()
    commands[broken] = lambda: "show: unknown input `what'\n"
    dpdk.box.commands = lambda: commands  # type: ignore[method-assign]
    seen = dpdk.dut.observe()
    assert seen.missing[0].what == broken
    told = [bool(seen.threads), bool(seen.ports), seen.clock_hz is not None]
    assert told.count(False) == (0 if broken == "show hardware-interfaces" else 1)


def test_no_value_of_the_config_is_read_by_the_shell(dpdk: Bench) -> None:
    """The one script is a constant; questions come by its input, and its words are not looked for among files."""
    dpdk.apply()
    (script,) = {line for line in dpdk.transport.ran if line.startswith("sh ")}
    assert "TenGigabit" not in script and "100.65" not in script and "set -f" in script


@pytest.mark.parametrize(("config", "outer"), [(VPP, "dot1ad"), (VPP_HOST, "dot1q")])
def test_the_outer_of_two_tags_as_vpp_gets_to_see_it(tmp_path: Path, config: DutConfig, outer: str) -> None:
    """af_packet puts back as 802.1Q what the kernel took off, whichever tag it was."""
    tagged = replace(config, cables=tuple(replace(port, vlan=(100, 200)) for port in config.ports))
    lines = Bench(tmp_path, VppBox(nics=NICS if config is VPP else ()), tagged, 1).apply()
    made = [line for line in lines if "create sub-interfaces" in line]
    assert len(made) == 2 and all(f"{outer} 100 inner-dot1q 200 exact-match" in line for line in made)
