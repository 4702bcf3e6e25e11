"""Counts of the pfSense driver on a fake box, which counts as the sources of FreeBSD and its NICs' drivers do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench import PFSENSE, Bench
from box_pfsense import Nic, PfsenseBox
from boxes import Said

from trexbench.core.dut.telemetry import DropCount, PortCount, QueueCount


@pytest.fixture(params=[12, 13, 14, 15], ids="freebsd-{}".format)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path, PfsenseBox(release=request.param))


def test_counts(bench: Bench) -> None:
    bench.apply()
    first, second = bench.box.nics["ix0"], bench.box.nics["ix1"]
    first.rx, first.missed, first.crc, second.tx, second.refused = 4000, 77, 5, 3900, 23
    first.bad_sums = 11  # which are no loss, and in Ierrs of 13
    seen = bench.dut.observe()
    assert seen.missing == ()
    assert seen.ports == (PortCount(0, 4000, 0), PortCount(1, 0, 3900)), "Ipkts has the missed frames in it"
    assert seen.at_s == max(cpu.total_s for cpu in seen.cpus)
    assert seen.queues[:4] == tuple(QueueCount(0, queue, 1000) for queue in range(4))
    assert [drop for drop in seen.drops if drop.count] == [
        DropCount("rx_missed_packets", 77, 0),
        DropCount("rx crc_errs", 5, 0),
        DropCount("Drop", 23, 1),
        DropCount("netisr QDrops", 2),
        DropCount("no route", 3),
    ]
    assert [(one.name, one.count) for one in seen.details[:2]] == [("irq ix0:rxq0", 0), ("irq ix0:rxq1", 100)]
    assert [(cpu.cpu, cpu.packet_s) for cpu in seen.cpus] == [(number, None) for number in range(4)]
    assert seen.cpus[1].busy_s == pytest.approx((10 + 2000 + 5) / 127) and seen.cpus[1].clock_hz == 2.2e9
    asked = len(bench.transport.ran)
    bench.dut.observe()
    assert len(bench.transport.ran) - asked == 5, "names of counters are asked for once"


@pytest.mark.parametrize(
    ("name", "drops", "unknown"),
    [
        ("igc0", [("Ierrs", 9)], False),
        ("ice0", [("rx_discards", 6), ("Ierrs", 9), ("Idrop", 0), ("Oerrs", 0)], False),
        ("cxl0", [("Ierrs", 9), ("Idrop", 0), ("Oerrs", 0)], False),
        ("mce0", [("Ierrs", 9), ("Idrop", 0), ("Oerrs", 0)], True),
    ],
)
def test_counters_are_those_of_the_nics_driver(
    tmp_path: Path, name: str, drops: list[tuple[str, int]], unknown: bool
) -> None:
    """if_em.c and if_igc.c: Ierrs has the missed frames in it. ice_lib.c: "Discarded Rx Packets by Port".

    Where no source was read, that is told.
    """
    first, other = PFSENSE.ports
    told = {"dev.ice.0.hw.mac.rx_discards": "6", "dev.ice.0.pf.rxqs.0.rx_packets": "50"}
    nics = {name: Nic("90:ec:77:1b:63:58", rx=50, missed=9), "ix1": Nic("90:ec:77:1b:63:56")}
    box = PfsenseBox(nics=nics, sysctls=told)
    seen = Bench(tmp_path, box, replace(PFSENSE, cables=(replace(first, interface=name), other))).dut.observe()
    assert seen.ports[0] == PortCount(0, 50, 0)
    assert [(one.name, one.count) for one in seen.drops if one.port == 0 and one.name != "Drop"] == drops
    assert [one.packets for one in seen.queues if one.port == 0] == [50] * (name == "ice0")
    assert any("driver was not read" in one.reason for one in seen.missing) == unknown


def test_what_vtnets_ring_refused_is_in_ips_counter_alone(tmp_path: Path) -> None:
    """sys/net/ifq.h, drbr_enqueue, frees the frame, and sys/netinet/ip_fastfwd.c counts the error: ips_odropped."""
    nics = {f"vtnet{port}": Nic(f"02:7b:78:00:00:0{port}", rx=50) for port in (0, 1)}
    queues = {f"dev.vtnet.0.rxq{queue}.ipackets": "25" for queue in (0, 1)}
    for other, lost in (("vtnet1", [("no bufs", 41), ("no route", 3)]), ("ix1", [("no route", 3)])):
        box = PfsenseBox(nics=nics | {"ix1": Nic("90:ec:77:1b:63:56")}, sysctls=queues)
        cables = [replace(port, interface=name) for port, name in zip(PFSENSE.ports, ("vtnet0", other), strict=True)]
        seen = Bench(tmp_path, box, replace(PFSENSE, cables=tuple(cables))).dut.observe()
        assert sorted((one.name, one.count) for one in seen.drops if one.count and one.name.startswith("no ")) == lost
        assert seen.queues[:2] == (QueueCount(0, 0, 25), QueueCount(0, 1, 25))
        assert not any("was not read" in one.reason for one in seen.missing)


@pytest.mark.parametrize("release", [14, 15])
@pytest.mark.parametrize(("driver", "unsent", "dropped"), [("vmx", 0, 23), ("ixl", 4, 27)])
def test_what_iflibs_ring_refused_is_lost_once(
    tmp_path: Path, release: int, driver: str, unsent: int, dropped: int
) -> None:
    """In 15 it is in the Drop of sys/net/iflib.c, too, but for ixl_if_get_counter (sys/dev/ixl/if_ixl.c).

    In none it is in Oerrs, from which nothing is taken: it would go back.
    """
    first, other = PFSENSE.ports
    name, ring = f"{driver}0", {f"dev.{driver}.0.iflib.txq0.r_drops": "23"}
    nics = {name: Nic("90:ec:77:1b:63:58", refused=23, unsent=unsent, oerrs=30)}
    ring |= {"dev.vmx.0.rxq1.hstats.nobuffer": "9"}
    box = PfsenseBox(release=release, nics=nics | {"ix1": Nic("90:ec:77:1b:63:56")}, sysctls=ring)
    seen = Bench(tmp_path, box, replace(PFSENSE, cables=(replace(first, interface=name), other))).dut.observe()
    lost = [one for one in seen.drops if one.port == 0 and one.count]
    nobuffer = [DropCount("rx nobuffer", 9, 0, 1)] if driver == "vmx" else []
    assert lost == [*nobuffer, DropCount("Oerrs", 30, 0), DropCount("Drop", dropped, 0)]
    assert not any("was not read" in one.reason for one in seen.missing)


def test_what_a_firewall_that_is_kept_dropped_is_lost(tmp_path: Path) -> None:
    kept = replace(PFSENSE, pfsense=replace(PFSENSE.pfsense, firewall="keep"))
    bench = Bench(tmp_path, PfsenseBox(), kept)
    drops = bench.dut.observe().drops
    assert [one for one in drops if one.name.startswith("pf ")] == [DropCount("pf memory", 7)]
    for complaint, missing in (("No such file or directory", []), ("Permission denied", ["pf"])):
        bench.transport.fail = {"pfctl -s info": Said("", f"pfctl: /dev/pf: {complaint}\n", 1)}
        seen = bench.dut.observe()
        assert [one.what for one in seen.missing if one.what == "pf"] == missing
        assert not any(one.name.startswith("pf ") for one in seen.drops)


@pytest.mark.parametrize("driver", ["hwpstate_intel", "hwpstate_amd"])
def test_a_clock_whose_reading_stops_its_cpu_is_read_once(tmp_path: Path, driver: str) -> None:
    """sys/x86/cpufreq/hwpstate_intel.c, and hwpstate_amd.c of 2026: epp shows that CPUs choose their clocks."""
    bench = Bench(tmp_path, PfsenseBox(sysctls={f"dev.{driver}.0.epp": "50", "dev.cpu.1.freq": "2100"}))
    first = bench.dut.observe()
    bench.transport.ran.clear()
    bench.box.sysctls["dev.cpu.1.freq"] = "9"
    again = bench.dut.observe()
    assert not any("freq" in line for line in bench.transport.ran)
    assert [cpu.clock_hz for cpu in again.cpus] == [cpu.clock_hz for cpu in first.cpus] == [2.2e9, 2.1e9, 2.2e9, 2.2e9]
    assert f"{driver}(4) stops a CPU for 1 ms" in again.missing[0].reason


def test_an_ix_without_its_main_counter_is_named(bench: Bench) -> None:
    listed = "\n".join(name for name in bench.box._values() if "rx_missed" not in name)
    bench.transport.fail = {"sysctl -Ni": Said(listed)}
    reasons = {one.reason for one in bench.dut.observe().missing}
    assert "sysctl has no mac_stats.rx_missed_packets of ix0: frames lost there are in no counter" in reasons
