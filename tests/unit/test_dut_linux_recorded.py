"""The Linux driver on recorded answers: what it finds, what it refuses, what it counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from box_linux import LinuxBox
from boxes import BoxTransport, of_family

from trexbench.config.lookup import load_dut
from trexbench.config.model import DutConfig
from trexbench.core.dut.telemetry import DropCount, Missing, Observation, PortCount, QueueCount
from trexbench.core.errors import DutError
from trexbench.dut import Wanted
from trexbench.dut.linux.driver import LinuxDut
from trexbench.transport import Completed, Transport

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests/fixtures/linux-6.18"
MACS = {0: "02:7b:78:00:00:00", 1: "02:7b:78:00:00:01"}
HOST = {"lab": {"steer": "cpumap", "router_cpus": [1], "sender_cpu": 0}, "netdev_max_backlog": 4096}
SENT, RECEIVED = 2358406 + 2358882, 911048 + 459768
"""Frames that the tester counted between the two recorded observations, both ports together."""


class Recorded(Transport):
    """A transport that answers as a recording did, and knows nothing else."""

    place = "a recording"

    def __init__(self, name: str, without: Sequence[str] = ()) -> None:
        entries = json.loads((FIXTURES / f"{name}.json").read_text())
        self._answers = {tuple(entry["argv"]): entry for entry in entries}
        self._without = without

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        if argv[0] in self._without or tuple(argv) not in self._answers:
            raise DutError(f"{argv[0]} is not installed on {self.place}")
        entry = self._answers[tuple(argv)]
        return Completed(tuple(argv), entry["returncode"], entry["stdout"], entry["stderr"])


@pytest.fixture
def config() -> DutConfig:
    """The lab as it was recorded, with IPv4 alone."""
    return of_family(load_dut(str(ROOT / "dut_configs/lab-linux.yaml")), 4)


def dut(config: DutConfig, name: str, without: Sequence[str] = ()) -> LinuxDut:
    return LinuxDut(Wanted(config, MACS, None, HOST), Recorded(name, without))


def test_verify_of_what_was_applied(config: DutConfig) -> None:
    attestation = dut(config, "verify-configured").verify()
    assert attestation.require_match() is attestation
    facts = attestation.facts
    assert facts["kernel"].startswith("6.18.")
    assert (facts["ip_forward"], facts["netdev_max_backlog"], facts["cpus_online"]) == (1, 4096, [0, 1])
    link = facts["interfaces"]["d0"]
    assert link["channels"] == {"max": {"rx": 2, "tx": 2}, "now": {"rx": 1, "tx": 1}}
    assert link["offloads"]["generic-receive-offload"] is True
    assert (link["driver"]["driver"], link["irqs"], link["xdp"]) == ("veth", [], "trexbench_cpu")
    assert facts["interfaces"]["d1"]["mac"] == "02:7b:78:00:01:01"
    assert facts["irqbalance"] == {"running": False, "unit": None}
    assert facts["firewall"] == {"nft_rules": None, "iptables_rules": None}
    assert facts["unknown"] == ["dev_weight", "governors", "iptables", "netdev_budget", "netdev_budget_usecs"]
    document = attestation.to_document()
    assert json.loads(json.dumps(document))["facts"] == facts
    assert document["facts_sha256"] == attestation.digest
    assert dut(config, "verify-configured").plan() == []
    spreading = attestation.spreading
    assert spreading is not None
    assert [(place.port, place.queue, place.worker) for place in spreading.queues] == [(0, 0, "cpu1"), (1, 0, "cpu1")]
    assert spreading.workers == ("cpu1",)
    assert all(one.key is None and "the sending CPU" in one.reason for one in spreading.hashes)


def test_digest_tells_configurations_apart(config: DutConfig) -> None:
    digests = [dut(config, f"verify-{name}").verify().digest for name in ("configured", "configured", "half-dead")]
    assert digests[0] == digests[1] != digests[2]


def test_verify_refuses_with_wanted_and_found_and_two_hops_would_be_put_back(config: DutConfig) -> None:
    found = dut(config, "verify-half-dead")
    with pytest.raises(DutError, match="lab-linux is not what its config says") as caught:
        found.verify().require_match()
    for text in (
        "neighbour 100.65.1.2 on d0: wanted 02:7b:78:00:00:00 PERMANENT, found 02:7b:78:00:00:77 REACHABLE",
        "route 16.0.0.0/8: wanted via 100.65.1.2 dev d0, found via 100.65.1.2 dev d0 and via 100.65.1.9 dev d0",
        "routes inside 16.0.0.0/8: wanted none, found 16.0.7.0/24 via 100.65.2.2 dev d1",
        "routes inside 16.0.0.0/8: wanted none, found 16.0.8.0/24 blackhole",
    ):
        assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    (step,) = (step for step in found.plan() if step.what == "route 48.0.0.0/8")
    assert step.was == "via 100.65.2.2 dev d1 and via 100.65.2.9 dev d1"
    assert " ".join(step.undo[0].argv) == (
        "ip route replace 48.0.0.0/8 nexthop via 100.65.2.2 dev d1 weight 1 nexthop via 100.65.2.9 dev d1 weight 1"
    )


# observations


def lost(before: Observation, after: Observation) -> dict[str, int]:
    old = {(one.name, one.port, one.queue): one.count for one in before.drops}
    grown = {(one.name, one.port, one.queue): one.count - old[one.name, one.port, one.queue] for one in after.drops}
    return {name: count for (name, _, _), count in grown.items() if count}


def test_every_frame_that_a_saturated_lab_lost_is_in_one_counter(config: DutConfig) -> None:
    before, after = (dut(config, f"observe-{name}").observe() for name in ("before", "after"))
    assert before.missing == after.missing == ()
    assert lost(before, after) == {"cpumap queue (redirected, not received)": SENT - RECEIVED}
    arrived = [now.rx_packets - then.rx_packets for now, then in zip(after.ports, before.ports, strict=True)]  # type: ignore[operator]
    assert sum(arrived) == SENT
    left = [now.tx_packets - then.tx_packets for now, then in zip(after.ports, before.ports, strict=True)]  # type: ignore[operator]
    assert sum(left) == RECEIVED
    assert [(one.port, one.queue, one.packets) for one in after.queues] == [
        (one.port, 0, one.rx_packets) for one in after.ports
    ]
    assert [one.cpu for one in after.cpus] == [1] and {one.name[-4:] for one in after.details} == {"cpu1"}, (
        "the router's"
    )
    assert after.cpus[0].packet_s is None, "cpumap's thread is no soft interrupt"
    assert after.at_s is not None and before.at_s is not None and after.at_s > before.at_s


@pytest.mark.parametrize("without", ["/proc/net/dev", "ip"])
def test_packets_come_with_cpu_time_or_from_ip(config: DutConfig, without: str) -> None:
    class Without(Recorded):
        def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
            done = super().run(argv, timeout_s, input)
            kept = [line for line in done.stdout.splitlines() if not line.startswith(f"{without}:")]
            return replace(done, stdout="\n".join(kept))

    full = dut(config, "observe-after").observe()
    poorer = LinuxDut(Wanted(config, MACS, None, HOST), Without("observe-after", [without])).observe()
    assert poorer.ports == full.ports and len(full.ports) == 2


@pytest.mark.parametrize(
    ("program", "missing"),
    [
        ("ethtool", ["counters of d0", "counters of d1"]),
        ("tc", ["drops of queueing disciplines"]),
        ("ip", ["packets by interface"]),
        ("grep", ["/proc", "IP's counters", "CPU time"]),
    ],
)
def test_one_reader_that_fails_does_not_stop_the_others(config: DutConfig, program: str, missing: list[str]) -> None:
    seen = dut(config, "observe-after", [program]).observe()
    assert [one.what for one in seen.missing] == missing
    assert seen.drops and (seen.cpus or program == "grep")


@pytest.mark.parametrize(
    ("steer", "missing"),
    [
        ("none", [Missing("CPU time", "lab.steer is none: the router works on the sender's CPU")]),
        ("rps", [Missing("CPU time of receiving", "lab.steer is rps: receiving begins on the sender's CPU")]),
    ],
)
def test_what_steering_hides_is_missing(config: DutConfig, steer: str, missing: list[Missing]) -> None:
    wanted = Wanted(config, MACS, None, {"lab": {**HOST["lab"], "steer": steer}})  # type: ignore[dict-item]
    seen = LinuxDut(wanted, Recorded("observe-after")).observe()
    assert list(seen.missing) == missing
    assert "cpumap" not in " ".join(one.name for one in seen.drops)


def test_a_nic_counts_queues_and_what_no_total_holds() -> None:
    box = LinuxBox()
    nic = box.nics["enp3s0f0"]
    nic.up = True
    nic.stats = {
        "rx": {
            "packets": 70,
            "errors": 1,
            "dropped": 2,
            "missed_errors": 4,
            "crc_errors": 1,
            "fifo_errors": 9,
            "otherhost": 6,
        },
        "tx": {"packets": 60, "errors": 0, "dropped": 3},
    }
    box.files["/proc/net/stat/nf_conntrack"] = "entries drop early_drop\n00000009 0000000a 00000000\n"
    nic.counters = {"rx_queue_0_packets": 30, "rx_queue_1_packets": 40, "rx_no_dma_resources": 8, "rx_missed_errors": 4}
    netgate = load_dut(str(ROOT / "dut_configs/netgate-linux.yaml"))
    transport = BoxTransport(box)
    seen = LinuxDut(Wanted(netgate), transport).observe(clear=True)
    assert seen.missing == (), "the other port's NIC has no counters of its own"
    assert seen.ports[0] == PortCount(0, 70, 60)
    assert seen.queues == (QueueCount(0, 0, 30), QueueCount(0, 1, 40))
    assert [one for one in seen.drops if one.count] == [
        DropCount("rx_dropped", 2, 0),
        DropCount("rx_missed_errors", 4, 0),
        DropCount("rx_errors", 1, 0),
        DropCount("rx_otherhost_dropped", 6, 0),
        DropCount("tx_dropped", 3, 0),
        DropCount("tx qdisc drops", 2, 0),
        DropCount("rx_no_dma_resources", 8, 0),
        DropCount("tx qdisc drops", 2, 1),
        DropCount("Ip.InHdrErrors", 3),
        DropCount("Ip.InDiscards", 4),
        DropCount("IpExt.InNoRoutes", 6),
        DropCount("TcpExt.IPReversePathFilter", 5),
        DropCount("nf_conntrack drop", 10),
    ]
    assert [(one.cpu, one.packet_s, one.clock_hz) for one in seen.cpus] == [
        (cpu, float(cpu), 2.2e9) for cpu in range(4)
    ]
    told = {one.name: one.count for one in seen.details}
    names = ("softirqs NET_RX cpu3", "softirqs NET_TX cpu3", "softnet_stat dropped cpu2", "interrupts enp3s0f0-TxRx-3")
    assert [told[name] for name in names] == [13, 3, 2, 0] and len(told) == 4 * (1 + 1 + 3 + 1)
    transport = BoxTransport(box)
    LinuxDut(Wanted(netgate), transport).observe()
    assert len(transport.ran) <= 9


PORT_DROPS = {"rx_discards_phy": 700, "rx_out_of_buffer": 50}
LOST_BY_PORT = {"rx_dropped": 3, "rx_missed_errors": 50, "rx_discards_phy": 700}


@pytest.mark.parametrize(
    ("driver", "received", "counters", "lost"),
    [
        # i40e_main.c: totals are its queues'; DPDK's i40e_ethdev.c adds the port's
        ("i40e", {"dropped": 5}, {"port.rx_dropped": 900, "rx_dropped": 5}, {"rx_dropped": 5, "port.rx_dropped": 900}),
        ("i40e", {"missed_errors": 5}, {"port.rx_discards": 9}, {"rx_missed_errors": 5, "port.rx_discards": 9}),
        # ice_main.c: rx_errors has hw_csum_rx_error in it
        (
            "ice",
            {"errors": 8007, "missed_errors": 5},
            {"rx_csum_bad.nic": 8000},
            {"rx_missed_errors": 5, "rx_errors": 7},
        ),
        # bcmgenet.c: rx_missed_errors = rx_errors, until each had its own
        ("bcmgenet", {"errors": 300, "missed_errors": 300}, {}, {"rx_missed_errors": 300}),
        ("bcmgenet", {"errors": 2, "missed_errors": 300}, {}, {"rx_missed_errors": 300, "rx_errors": 2}),
        # mtk_eth_soc.c: rx_errors are wrong checksums, an overflow is in rx_over_errors
        ("mtk_soc_eth", {"errors": 40}, {"rx_checksum_errors": 40, "rx_overflow": 6}, {"rx_overflow": 6}),
        # vmxnet3_ethtool.c, vmxnet3_get_stats64: pktsRxOutOfBuf is in none of them
        (
            "vmxnet3",
            {"dropped": 2},
            {"Rx Queue#": 0, "  pkts rx OOB": 44, "  pkts rx err": 0},
            {"rx_dropped": 2, "Rx Queue# 0: pkts rx OOB": 44},
        ),
        # mvneta.c, mvpp2_main.c: the net device has none of them
        ("mvneta", {}, {"rx_discard": 6, "rx_overrun": 7}, {"rx_discard": 6, "rx_overrun": 7}),
        ("mvpp2", {}, {"rxq_1_queue_full_drops": 9, "rxq_1_desc_enqueue": 8}, {"rxq_1_queue_full_drops": 9}),
        # xgbe-drv.c: rx_fifo_errors, since 2026 rx_over_errors; stmmac_main.c: rx_over_errors are of old cores alone
        ("amd-xgbe", {"errors": 2}, {"rx_fifo_overflow_errors": 6}, {"rx_errors": 2, "rx_fifo_overflow_errors": 6}),
        ("st_gmac", {}, {"mmc_rx_fifo_overflow": 6, "q0_rx_pkt_n": 9}, {"mmc_rx_fifo_overflow": 6}),
        # bnxt.c, bnxt_get_stats64: rx_errors are false carriers and jabbers
        ("bnxt_en", {"errors": 1, "crc_errors": 4, "frame_errors": 2, "length_errors": 3}, {}, {"rx_errors": 10}),
        # r8169_main.c, rtl8169_get_stats64: le16_to_cpu(counters->rx_missed)
        ("r8169", {"missed_errors": 65000, "dropped": 2}, {"rx_missed": 65000}, {"rx_dropped": 2}),
        # mlx5's en_main.c: if_in_discards is in rx_dropped in kernels of late
        ("mlx5_core", {"dropped": 3, "missed_errors": 50}, PORT_DROPS, LOST_BY_PORT),
        ("mlx5_core", {"dropped": 703, "missed_errors": 50}, PORT_DROPS, LOST_BY_PORT),
    ],
)
def test_a_lost_frame_is_in_one_counter_whatever_its_drivers_totals_hold(
    driver: str, received: dict[str, int], counters: dict[str, int], lost: dict[str, int]
) -> None:
    box = LinuxBox()
    nic = box.nics["enp3s0f0"]
    nic.up, nic.driver, nic.counters = True, driver, counters
    nic.stats = {"rx": {"packets": 9, "errors": 0, "dropped": 0, "missed_errors": 0, **received}, "tx": {"packets": 0}}
    seen = LinuxDut(Wanted(load_dut("netgate-linux")), BoxTransport(box)).observe()
    assert {one.name: one.count for one in seen.drops if one.port == 0 and one.count} == {**lost, "tx qdisc drops": 2}
    told = [one.what for one in seen.missing if "modulo 65536" in one.reason]
    assert told == ["rx_missed_errors of enp3s0f0"] * (driver == "r8169")


def test_interrupts_are_the_interfaces_by_number_or_by_name() -> None:
    """msi_irqs has the number of what is named otherwise; an interface's name is no part of a longer one's."""
    box = LinuxBox()
    box.nics["enp3s0f0"].up = True
    box.interrupts = [
        " 50: 1 2 3 4  IR-PCI-MSI 1-edge  mlx5_comp0@pci:0000:03:00.0",
        " 70: 5 0 0 0  IR-PCI-MSI 2-edge  i40e-enp3s0f1-TxRx-7",
        " 71: 9 9 9 9  IR-PCI-MSI 3-edge  enp3s0f10-TxRx-0",
        " 72: 9 9 9 9  IR-PCI-MSI 4-edge  virtio0-input.0",
    ]
    netgate = load_dut(str(ROOT / "dut_configs/netgate-linux.yaml"))
    seen = LinuxDut(Wanted(netgate), BoxTransport(box)).observe()
    told = {one.name: one.count for one in seen.details if one.name.startswith("interrupts") and one.count}
    assert told == {"interrupts mlx5_comp0@pci:0000:03:00.0": 10, "interrupts i40e-enp3s0f1-TxRx-7": 5}
