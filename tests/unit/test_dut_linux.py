"""The Linux driver against a box that keeps its state: plan, apply, read back, fail halfway, take back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from bench import LINUX, LINUX_FULL, LINUX_SHIPPED, MACS, Bench, dual_stack
from box_linux import CONF, CONF6, FORWARD, FORWARD6, LinuxBox
from boxes import Said, of_family

from trexbench.config.model import DutConfig
from trexbench.config.settings import LinuxSettings
from trexbench.core.dut.rss import PortHash, QueuePlace
from trexbench.core.errors import ConfigError, DutError
from trexbench.dut import Wanted

Harm = Callable[[LinuxBox], object]
GRO = "generic-receive-offload"
GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy{}/scaling_governor"


def test_plan_pins_the_macs_of_the_config_or_needs_the_testers(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LinuxBox(), LINUX_SHIPPED)
    planned = bench.dut.plan()
    assert all(command.why for step in planned for command in (*step.do, *step.undo))
    commands = [" ".join(command.argv) for step in planned for command in step.do]
    assert commands[0] == "systemctl stop irqbalance"
    assert "ip neigh replace 100.65.2.2 lladdr 68:05:ca:32:45:95 nud permanent dev enp3s0f1" in commands
    bench.use(Wanted(dual_stack(LINUX), {0: MACS[0]}))
    with pytest.raises(ConfigError, match="did not name the MAC of its port 1"):
        bench.dut.plan()


def test_firmware_and_board_are_told_and_no_part_of_the_configuration(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LinuxBox())
    before = bench.dut.verify()
    assert before.to_document()["platform"] == {}
    bench.box.files |= {
        "/sys/devices/system/cpu/cpu0/microcode/version": "0x24",
        "/sys/class/dmi/id/bios_version": " ADI_PLCC-01.00.00.10 ",
        "/sys/class/dmi/id/product_serial": "1234",
    }
    after = bench.dut.verify()
    assert after.to_document()["platform"] == {"microcode": "0x24", "bios_version": "ADI_PLCC-01.00.00.10"}
    assert (after.facts, after.digest) == (before.facts, before.digest)


def test_rings_and_coalescing_are_told_and_the_same_under_load(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LinuxBox())
    before = bench.dut.verify()
    for name, nic in bench.box.nics.items():
        nic.stats["rx"]["packets"] += 70  # the box's adaptive delay follows it
        port = before.facts["interfaces"][name]
        assert port["rings"] == {"max": {"rx": 4096, "tx": 4096}, "now": {"rx": 512, "tx": 512}}
        assert port["coalescing"] == {"adaptive-rx": True, "adaptive-tx": False, "tx-usecs": 10}
    assert bench.dut.verify().digest == before.digest


@pytest.mark.parametrize("driver", ["ixgbe", "tg3"])
def test_everything_is_set(tmp_path: Path, driver: str) -> None:
    bench = Bench(tmp_path, LinuxBox(), LINUX_FULL, 3)
    box = bench.box
    for nic in box.nics.values():
        nic.driver = driver
    bench.apply()
    assert not box.irqbalance and {nic.queues for nic in box.nics.values()} == {3}
    affinities = [box.files[f"/proc/irq/{irq}/smp_affinity_list"] for irq in (50, 51, 52, 60, 61, 62)]
    assert affinities == ["1", "2", "1", "1", "2", "1"]
    assert box.files["/sys/class/net/enp3s0f0/queues/rx-2/rps_cpus"] == "00000006"
    assert box.files[GOVERNOR.format(3)] == "performance"
    assert box.nics["enp3s0f1"].offloads[GRO] is False
    box._systemctl(["start"], "")
    assert bench.wrong() == ["irqbalance: wanted stopped, found running"], "systemd did start it"
    spreading = Bench(tmp_path, box, replace(LINUX_SHIPPED, linux=LinuxSettings())).dut.verify().spreading
    assert spreading is not None and spreading.queues[0] == QueuePlace(0, 0, None), "handed on to two CPUs"


def test_the_table_of_a_virtio_nic_follows_its_queues(tmp_path: Path) -> None:
    """The kernel refuses fewer queues than the table names, and of more queues the table names none."""
    bench = Bench(tmp_path, LinuxBox(), LINUX, 2)
    for nic in bench.box.nics.values():
        nic.driver, nic.table = "virtio_net", 4
    name = next(iter(bench.box.nics))
    fewer = [f"ethtool {words}" for words in (f"-X {name} equal 2", f"-L {name} combined 2", f"-X {name} equal 2")]
    assert [line for line in bench.apply() if name in line and "ethtool" in line] == fewer
    bench.want(3)
    done = bench.apply()
    assert [line for line in done if "ethtool" in line][:2] == [
        f"ethtool -L {name} combined 3",
        f"ethtool -X {name} equal 3",
    ]
    spreading = bench.dut.verify().spreading
    assert spreading is not None and {*spreading.hashes[0].table} == {0, 1, 2} and bench.apply() == []
    bench.revert()
    assert {(nic.queues, nic.table) for nic in bench.box.nics.values()} == {(4, 4)}


def test_spreading_follows_interrupts_and_the_nics_hash(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LinuxBox(), LINUX_SHIPPED, 2)
    bench.apply()
    spreading = bench.dut.verify().spreading
    assert spreading is not None
    assert [place.worker for place in spreading.queues] == ["cpu0", "cpu1", "cpu0", "cpu1"]
    assert spreading.hashes[1] == PortHash(1, "6d5a01", ("src", "dst"), (0, 1) * 8)
    bench.box.nics["enp3s0f1"].driver = "mlx5_core"  # whose symmetric hash older kernels do not show
    spreading = bench.dut.verify().spreading
    assert spreading is not None and spreading.hashes[1].key is None and "symmetric" in spreading.hashes[1].reason


def _file(path: str, value: str) -> Harm:
    return lambda box: box.files.update({path: value})


def _neighbour(mac: str, state: str) -> Harm:
    return lambda box: box.neighbours.update({"100.65.1.2%enp3s0f0": (mac, state)})


def _address(address: str) -> Harm:
    return lambda box: box.nics["enp3s0f0"].addresses.append(address)


def _route(words: str) -> Harm:
    return lambda box: box.routes.append(words.split())


def _nic(name: str, **values: object) -> Harm:
    return lambda box: vars(box.nics[name]).update(values)


def _no_cpufreq(box: LinuxBox) -> None:
    box.files = {path: text for path, text in box.files.items() if "cpufreq" not in path}


@pytest.mark.parametrize(
    ("change", "shown", "changed"),
    [
        (lambda box: box._tee([FORWARD], "1"), "ip_forward", False),
        (lambda _: None, "link of", False),
        (_address("100.65.1.1/24"), "address of enp3s0f0", False),
        (_neighbour("68:05:CA:32:45:94", "permanent"), "neighbour 100.65.1.2 on enp3s0f0", False),
        (_route("16.0.0.0/8 via 100.65.1.2 dev enp3s0f0"), "route 16.0.0.0/8", False),
        (_route("16.0.0.0/8 via 10.0.0.9 dev enp3s0f1 proto static"), "enp3s0f0 (was via 10.0.0.9 dev enp3s0f1)", True),
        (_route("blackhole 48.0.0.0/8"), "(was blackhole)", True),
        (_neighbour("02:00:00:00:00:09", "permanent"), "(was 02:00:00:00:00:09 PERMANENT)", True),
        (_neighbour("68:05:ca:32:45:94", "stale"), "(was 68:05:ca:32:45:94 STALE)", True),
        (_address("10.9.9.9/8"), "(was 10.9.9.9/8)", True),
        (_file(f"{CONF}/enp3s0f1/forwarding", "1"), "ip_forward: 1", True),
        (_file(f"{CONF}/all/accept_redirects", "0"), "ip_forward: 1", True),
        (_file("/sys/class/net/enp3s0f0/queues/rx-3/rps_cpus", "f"), "receive queues of enp3s0f0: 1 (was 4)", True),
        (_file("/proc/irq/53/smp_affinity_list", "2"), "receive queues of enp3s0f0: 1 (was 4)", True),
    ],
)
def test_what_was_there_is_left_or_put_back(tmp_path: Path, change: Harm, shown: str, changed: bool) -> None:
    box = LinuxBox()
    for nic in box.nics.values():
        nic.up = True
    change(box)
    bench = Bench(tmp_path, box, LINUX, 1)
    before = copy.deepcopy(box)
    bench.apply()
    assert any(shown in str(step) for step in bench.steps) is changed
    assert bench.wrong() == [] and bench.apply() == []
    bench.revert()
    assert box == before


@pytest.mark.parametrize(
    ("change", "queues", "message"),
    [
        (lambda _: None, 5, "5 receive queues are asked for, enp3s0f0 has at most 4 receive queues: ask for"),
        (_nic("enp3s0f0", kind=None), 2, "enp3s0f0 has 4 receive queues, and their number cannot be set"),
        (lambda box: box.nics.pop("enp3s0f1"), None, "there is no interface enp3s0f1, only enp3s0f0"),
    ],
)
def test_what_is_impossible_is_refused_before_anything_is_touched(
    tmp_path: Path, change: Harm, queues: int | None, message: str
) -> None:
    box = LinuxBox()
    change(box)
    bench = Bench(tmp_path, box, LINUX, queues)
    before = copy.deepcopy(box)
    with pytest.raises(DutError) as caught:
        bench.apply()
    assert message in str(caught.value)
    assert box == before and bench.journal.entries() == ()


SPOILT = [
    (lambda box: box._set_queues("enp3s0f0", 3), "receive queues of enp3s0f0: wanted 2, found 3"),
    (_file("/proc/irq/51/smp_affinity_list", "0-3"), "interrupt 51 (enp3s0f0-TxRx-1) of enp3s0f0: wanted CPU 2"),
    (_file("/sys/class/net/enp3s0f1/queues/rx-0/rps_cpus", "0"), "RPS of enp3s0f1 rx-0: wanted 00000006"),
    (_file(GOVERNOR.format(0), "powersave"), "governor of policy0: wanted performance, found powersave"),
    (_no_cpufreq, "governor of any CPU: wanted performance, found no cpufreq"),
    (lambda box: box.nics["enp3s0f0"].offloads.update({GRO: True}), f"{GRO} of enp3s0f0: wanted off, found on"),
    (_nic("enp3s0f1", cable=False), "link of enp3s0f1: wanted up, found no"),
    (_nic("enp3s0f0", addresses=[]), "address of enp3s0f0: wanted 100.65.1.1/24, found"),
    (lambda box: box.nics.pop("enp3s0f1"), "interface: wanted enp3s0f1, found only enp3s0f0"),
]
SPOILT_FOR_IPV6 = [
    (_file(FORWARD6, "0"), "ipv6_forward: wanted 1, found 0"),
    (_file(f"{CONF6}/enp3s0f0/forwarding", "0"), "IPv6 forwarding of enp3s0f0: wanted 1"),
    (lambda box: box.neighbours.pop("2001:2:0:1::2%enp3s0f0"), "neighbour 2001:2:0:1::2 on enp3s0f0"),
    (lambda box: box.routes.pop(0), "route 2001:2:0:16::/64: wanted via 2001:2:0:1::2 dev enp3s0f0, found none"),
]


def test_whatever_stands_in_a_name_stays_one_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, box, run, arrived = "e 0;$(x)", LinuxBox(), LinuxBox.run, list[Sequence[str]]()
    box.nics = {name: box.nics.pop("enp3s0f0"), **box.nics}
    box.files = {path.replace("enp3s0f0", name): value for path, value in box.files.items()}

    def hear(self: LinuxBox, argv: Sequence[str], input: str) -> Said:
        arrived.append(argv)
        return run(self, argv, input)

    monkeypatch.setattr(LinuxBox, "run", hear)
    ports = (replace(LINUX_FULL.ports[0], interface=name), LINUX_FULL.ports[1])
    bench = Bench(tmp_path, box, replace(LINUX_FULL, cables=ports), 3)
    bench.apply()
    bench.revert()
    naming = [argv for argv in arrived if "0;" in " ".join(argv)]
    assert {argv[0] for argv in naming} >= {"ip", "tee", "ethtool"} and "sh" not in {argv[0] for argv in arrived}
    assert not [argv for argv in naming if any(("0;" in word) != (name in word) for word in argv)]


ALONE = of_family(dual_stack(LINUX), 6)


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [*((LINUX_FULL, *row) for row in SPOILT), *((ALONE, *row) for row in SPOILT_FOR_IPV6)],
)
def test_what_is_spoilt_is_named(tmp_path: Path, config: DutConfig, change: Harm, message: str) -> None:
    bench = Bench(tmp_path, LinuxBox(), config, 2)
    bench.apply()
    change(bench.box)
    assert [one for one in bench.wrong() if one.startswith(message)], bench.wrong()


def test_an_irqbalance_that_systemd_does_not_know_is_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LinuxBox(systemd=False), LINUX_SHIPPED)
    bench.apply()
    (wrong,) = bench.wrong()
    assert wrong == "irqbalance: wanted stopped, found running (stop it by hand: systemd did not start it)"


def test_a_box_without_ethtool_is_measured_as_it_is(tmp_path: Path) -> None:
    box = LinuxBox(programs=("ip", "tee", "cat", "grep", "readlink"))
    bench = Bench(tmp_path, box)
    bench.apply()
    attestation = bench.dut.verify()
    assert attestation.mismatches == ()
    assert attestation.facts["interfaces"]["enp3s0f0"]["channels"] is None
    assert attestation.facts["irqbalance"] == {"running": None, "unit": None}
    assert attestation.spreading is not None and len(attestation.spreading.queues) == 8
    assert attestation.spreading.hashes[0].reason == "ethtool -x does not show this device's hash"


def test_ipv6_has_hash_fields_and_counters_of_its_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LinuxBox(), dual_stack(LINUX))
    bench.apply()
    spreading = bench.dut.verify().spreading
    assert spreading is not None and spreading.hashes[0].fields == ("src", "dst")
    assert spreading.hashes[0].ipv6_fields == ("src", "dst", "sport")
    bench.box.files["/proc/net/snmp6"] = "Ip6InNoRoutes \t1000\n"  # with those of the host's other interfaces
    drops = {one.name: one.count for one in bench.dut.observe().drops}
    assert drops["Ip6.InNoRoutes"] == 8 + 8 and drops["Ip.InHdrErrors"] == 3
