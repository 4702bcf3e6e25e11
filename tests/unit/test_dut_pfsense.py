"""The pfSense driver against a box that keeps its state: plan, apply, read back, fail halfway, take back."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from bench import PFSENSE, Bench
from box_pfsense import Nic, PfsenseBox
from boxes import BoxTransport, Said
from hypothesis import given
from hypothesis import strategies as st

from trexbench.config.settings import PfsenseSettings
from trexbench.core.dut.rss import QueuePlace
from trexbench.core.errors import DutError
from trexbench.dut import Wanted
from trexbench.dut.apply import apply_and_verify
from trexbench.dut.freebsd.check import doubts
from trexbench.dut.freebsd.driver import PfsenseDut
from trexbench.host.linux import PLATFORM_FILES

ARTICLE = [
    "ifconfig ix0 up",
    "ifconfig ix1 up",
    "sleep 15",
    "ifconfig ix0 inet 100.65.1.1/24 alias",
    "arp -S 100.65.1.2 68:05:ca:32:45:94",
    "arp -n 100.65.1.2",
    "ifconfig ix1 inet 100.65.2.1/24 alias",
    "arp -S 100.65.2.2 68:05:ca:32:45:95",
    "arp -n 100.65.2.2",
    "route add -net 16.0.0.0/8 100.65.1.2",
    "route add -net 48.0.0.0/8 100.65.2.2",
    "pfctl -d",
]
CHANGES = 9
"""Number of settings that these are; the wait is a part of the last link's."""


@pytest.fixture(params=[12, 13, 14, 15], ids="freebsd-{}".format)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path, PfsenseBox(release=request.param))


def used(box: PfsenseBox) -> PfsenseBox:
    """The box of somebody who has been measuring already, in another way."""
    box.forwarding = "0"
    box.nics["ix0"].up = True
    box.nics["ix0"].addresses = ["10.7.0.1/16", "100.65.1.9/24"]
    box.nics["ix1"] = Nic("90:ec:77:1b:63:56", up=True, addresses=["100.65.2.1/24"])
    box.arp_table = {
        "100.65.1.2": ("02:00:00:00:00:01", "ix0", True, False),
        "100.65.2.2": ("02:00:00:00:00:02", "ix1", False, False),
        "192.168.1.254": ("02:00:00:00:00:03", "igc0", False, False),
    }
    box.routes += [("16.0.0.0/8", "10.7.0.2", "UGS", "ix0"), ("48.0.0.0/8", "link#2", "US", "ix1")]
    return box


def test_revert_restores_what_was_there(bench: Bench) -> None:
    used(bench.box)
    before = pickle.dumps(bench.box.settings())
    assert [str(step) for step in bench.dut.plan()] == [
        "net.inet.ip.forwarding: 1 (was 0)",
        "address of ix0: 100.65.1.1/24 (was 10.7.0.1/16, 100.65.1.9/24)",
        "neighbour 100.65.1.2: 68:05:ca:32:45:94 permanent on ix0 (was 02:00:00:00:00:01 permanent on ix0)",
        "neighbour 100.65.2.2: 68:05:ca:32:45:95 permanent on ix1 (was 02:00:00:00:00:02 learnt on ix1)",
        "route 16.0.0.0/8: via 100.65.1.2 (was via 10.7.0.2)",
        "route 48.0.0.0/8: via 100.65.2.2 (was dev ix1)",
        "firewall: disabled (was enabled)",
    ]
    bench.apply()
    assert bench.wrong() == [] and bench.apply() == []
    assert bench.revert() == 7
    del bench.box.arp_table["192.168.1.254"]
    learnt = pickle.loads(before)
    learnt[2].pop("192.168.1.254")
    learnt[2].pop("100.65.2.2")  # it was learnt, and will be again
    assert bench.box.settings() == learnt
    assert bench.journal.entries() == () and bench.revert() == 0


def test_the_boot_is_known_by_kern_boot_id_else_by_its_messages_else_by_its_time(bench: Bench) -> None:
    """sys/kern/kern_tc.c: kern.boottime moves with the clock."""
    known = bench.dut.identity()
    assert known == (f"boot {1637938203:032x}" if bench.box.release >= 14 else "boot 1637938208")
    bench.transport.fail = {"sysctl -xei": Said(), "stat -f": Said("", "No such file or directory\n", 1)}
    assert bench.dut.identity() == "boot 1637938203"


def test_a_second_hop_is_taken_away_and_put_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path, PfsenseBox(release=14))
    bench.apply()
    bench.box.routes.append(("16.0.0.0/8", "192.168.1.9", "UG1", "igc0"))
    before = bench.box.settings()
    assert "route 16.0.0.0/8: wanted via 100.65.1.2, found via 100.65.1.2 and via 192.168.1.9" in bench.wrong()
    assert bench.apply() == ["route delete -net 16.0.0.0/8 192.168.1.9"]
    assert bench.wrong() == []
    entries = len(bench.journal.entries())
    assert entries == CHANGES + 1
    last = bench.journal.entries()[-1].change.undo[0].argv
    assert " ".join(last) == "route add -net 16.0.0.0/8 192.168.1.9 -proto1 -nostatic"
    bench.transport.run(last, 1)
    assert bench.box.settings() == before


def test_the_firewall_stays_where_it_shall(tmp_path: Path) -> None:
    bench = Bench(tmp_path, PfsenseBox(), replace(PFSENSE, pfsense=PfsenseSettings("keep")))
    assert "pfctl -d" not in bench.apply() and bench.wrong() == []
    assert bench.dut.verify().facts["firewall_rules"] == 3


def test_what_pfsense_does_for_a_link_is_over_before_the_rest_is_set(bench: Bench) -> None:
    """rc.linkup, on ports that pfSense manages: pf is on again, and neighbours are gone, some seconds after ``up``."""
    bench.box.assigned = ("ix0", "ix1")
    assert bench.apply() == ARTICLE
    found = bench.dut.verify()
    assert found.mismatches == () and bench.box.due == []
    assert [text.partition(",")[0] for text in found.doubts] == [f"pfSense manages ix{n} itself" for n in (0, 1)]
    assert found.facts["assigned"] == ["ix0", "ix1"]
    bench.box.assigned = ()
    plain = bench.dut.verify()
    assert plain.facts["assigned"] == [] and plain.doubts == [], "a plain FreeBSD manages nothing"


@pytest.mark.parametrize("unsteady", [False, True])
def test_what_a_reload_that_came_late_undid_is_set_once_more(bench: Bench, unsteady: bool) -> None:
    orderly, before = bench.box.run, bench.box.settings()

    def late(argv: tuple[str, ...], input: str) -> Said:
        if argv == ("pfctl", "-d") and not bench.box.due and "pfctl -d" not in bench.transport.ran[:-1]:
            bench.box.due = [("igc0", 1000)]
        return orderly(argv, input)

    bench.box.run = late  # type: ignore[method-assign, assignment]
    found = apply_and_verify(bench.dut, bench.transport, bench.journal, unsteady=unsteady)
    assert [one.what for one in found.mismatches] == ([] if unsteady else ["firewall"])
    assert len(found.changed) == CHANGES + unsteady
    bench.revert()
    assert bench.box.settings() == before


def test_what_a_late_link_event_undoes_is_seen_once_it_is_over(bench: Bench) -> None:
    bench.box.assigned = ("ix0",)
    bench.apply()
    bench.box.due = [("ix0", 1000)]
    wrong = bench.wrong()
    pin, firewall = wrong
    assert pin.startswith("neighbour 100.65.1.2: wanted 68:05:ca:32:45:94 permanent on ix0, found none")
    assert "pfSense undoes it when a link changes: remove ix0 from its interfaces (Interfaces > Assig" in pin
    assert firewall.startswith("firewall: wanted disabled, found enabled")
    assert "Disable all packet filtering" in firewall
    waits = bench.transport.ran.count("sleep 15")
    assert bench.wrong() == wrong and bench.transport.ran.count("sleep 15") == waits, "nothing was set since"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"dev.ix.0.fc": "0"}, "ix0 sends no PAUSE (dev.ix.0.fc=0)"),
        ({"dev.ix.1.iflib.simple_tx": "1"}, "ix1 sends without a ring (iflib.simple_tx=1)"),
        ({"net.inet.ip.fw.enable": "1"}, "ipfw is on"),
        ({"dev.ix.0.fc": "3", "net.inet.ip.fw.enable": "0"}, None),
    ],
)
def test_what_no_counter_and_no_setting_shows_is_doubted(
    tmp_path: Path, told: dict[str, str], words: str | None
) -> None:
    bench = Bench(tmp_path, PfsenseBox(sysctls=told))
    bench.apply()
    attested = bench.dut.verify()
    found = attested.doubts
    assert len(found) == (words is not None) and all(text.startswith(words or "") for text in found)
    # an igc's Drop has what it refuses (sys/net/iflib.c of 15.0, iflib_simple_transmit)
    other = {"igc0": {**attested.facts["interfaces"]["ix1"], "flow_control": "1"}}
    shown = [text for text in doubts({**attested.facts, "interfaces": other}) if text.startswith("igc0")]
    assert shown == ["igc0 sends no PAUSE (dev.igc.0.fc=1): frames that one of several queues drops are in no counter"]


def test_a_kernel_without_pf_has_its_firewall_off(tmp_path: Path) -> None:
    bench = Bench(tmp_path, PfsenseBox())
    bench.transport.fail = {"pfctl -s info": Said("", "pfctl: /dev/pf: No such file or directory\n", 1)}
    assert "pfctl -d" not in bench.apply()
    assert bench.wrong() == [] and bench.dut.verify().facts["firewall"] == "absent"


@pytest.mark.parametrize("shown", ["permanent", "expired", "expires in 4294967295 seconds"])
def test_a_pin_that_arp_of_14_0_forgets_to_call_permanent_is_one(tmp_path: Path, shown: str) -> None:
    """usr.sbin/arp/arp_netlink.c of 14.0, and sys/netlink/route/neigh.c: chance decides which of these is printed."""
    bench = Bench(tmp_path, PfsenseBox(release=14, permanent=shown))
    assert bench.apply() == ARTICLE and bench.apply() == []
    found = bench.dut.verify()
    assert found.mismatches == ()
    assert [text.partition(" is not")[0] for text in found.doubts] == (
        [] if shown == "permanent" else ["neighbour 100.65.1.2", "neighbour 100.65.2.2"]
    )
    bench.box.arp_table["100.65.1.2"] = ("02:00:00:00:00:01", "ix0", True, False)
    assert "wanted 68:05:ca:32:45:94 permanent on ix0, found 02:00:00:00:00:01" in bench.wrong()[0]
    assert bench.apply() == ["arp -S 100.65.1.2 68:05:ca:32:45:94", "arp -n 100.65.1.2"]
    assert " ".join(bench.journal.entries()[-1].change.undo[0].argv) == "arp -S 100.65.1.2 02:00:00:00:00:01"
    bench.revert()
    assert bench.box.arp_table == {}


@pytest.mark.parametrize("date", ["1401000", "9" * 5000])
def test_an_expired_entry_of_another_kernel_is_no_pin(bench: Bench, date: str) -> None:
    bench.apply()
    bench.transport.fail = {
        "arp -an": Said("? (100.65.1.2) at 68:05:ca:32:45:94 on ix0 expired [ethernet]\n"),
        "sysctl -ei kern.osrelease": Said(
            f"kern.ostype=FreeBSD\nkern.osreldate={date}\nnet.inet.ip.forwarding=1\nnet.inet6.ip6.forwarding=1\n"
        ),
    }
    assert "found 68:05:ca:32:45:94 learnt on ix0" in bench.wrong()[0]


def test_a_pin_that_was_not_made_fails_whatever_arp_s_exit_code_is(tmp_path: Path) -> None:
    """arp_netlink.c, set_nl: xo_warnx and ``return (0)`` where no interface has the address's network."""
    bench = Bench(tmp_path, PfsenseBox(release=14))
    bench.transport.fail = {"arp -S": Said("", "arp: delete: cannot locate 100.65.1.2\n")}
    with pytest.raises(DutError, match=r"neighbour 100.65.1.2: arp -n 100.65.1.2 failed .*-- no entry"):
        bench.apply()


BLACK = ("16.0.0.0/8", "127.0.0.1", "UGSB", "lo0")
INSIDE = ("48.0.0.1/32", "192.168.1.254", "UGHS", "igc0")
LEARNT = {"100.65.1.2": ("68:05:ca:32:45:94", "ix0", False, False)}
SLOW = "Ethernet autoselect (1000baseT <full-duplex>)"
NO_SYSCTL = Said("", "sysctl: cannot stat /proc/sys/kern/ostype\n", 1)
PATH = "path to 16.255.255.254: wanted via 100.65.1.2 dev ix0,"


def _set(**values: object) -> Callable[[PfsenseBox], object]:
    return lambda box: box.__dict__.update(values)


def _nic(name: str, **values: object) -> Callable[[PfsenseBox], object]:
    return lambda box: box.nics[name].__dict__.update(values)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda it: it.box.nics["ix1"].addresses.append("100.65.1.1/16"),
            "ix1 has the address .*/16, .* ifconfig ix1 inet 100.65.1.1 -alias",
        ),
        (lambda it: it.box.nics.pop("ix1"), r"there is no interface ix1, only .*ix0.*: correct ports\[\].interface"),
        (lambda it: it.transport.fail.update({"sysctl -ei": NO_SYSCTL}), "the box is not FreeBSD"),
        # pfSense's etc/rc.initial of 2018: ``/bin/sh -c $1``, unquoted: the shell gets no script, and exits with 0
        (lambda it: it.transport.fail.update({"": Said()}), "the box runs no command: log in as root"),
    ],
)
def test_what_is_in_the_way_is_refused_before_anything_is_touched(
    bench: Bench, spoil: Callable[[Bench], object], words: str
) -> None:
    bench.box.forwarding = "0"
    spoil(bench)
    with pytest.raises(DutError, match=words):
        bench.apply()
    assert bench.changing() == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_set(forwarding="0"), ["net.inet.ip.forwarding: wanted 1, found 0"]),
        (_set(firewall="enabled"), ["firewall: wanted disabled, found enabled (pfSense enables it when"]),
        (_set(arp_table={}), ["neighbour 100.65.1.2: wanted 68:05:ca:32:45:94 permanent on ix0, found none"]),
        (lambda box: box.arp_table.update(LEARNT), ["found 68:05:ca:32:45:94 learnt on ix0"]),
        (
            _set(routes=[]),
            ["route 16.0.0.0/8: wanted via 100.65.1.2, found none", f"{PATH} found route: route has"],
        ),
        (lambda box: box.routes.__setitem__(-2, BLACK), ["via 100.65.1.2, found blackhole", f"{PATH} found blackhole"]),
        (
            lambda box: box.routes.append(INSIDE),
            [
                "routes inside 48.0.0.0/8: wanted none, found 48.0.0.1/32 via",
                "dev ix1, found via 192.168.1.254 dev igc0",
            ],
        ),
        (_nic("ix1", cable=False), ["link of ix1: wanted up, found no carrier"]),
        (_nic("ix0", up=False), ["link of ix0: wanted up, found set down"]),
        (_nic("ix0", media=SLOW), [f"speed of ix0: wanted 10.00 Gbit/s, found 1.000 Gbit/s ({SLOW}"]),
        (lambda box: box.nics.pop("ix1"), ["interface: wanted ix1, found only igc0, ix0"]),
        (_set(queues=2), ['queues of ix0: wanted 4, found 2 (write dev.ix.0.iflib.override_nrxqs="4" into /boot/']),
    ],
)
def test_what_is_not_as_wanted_is_named(
    tmp_path: Path, spoil: Callable[[PfsenseBox], object], words: list[str]
) -> None:
    bench = Bench(tmp_path, PfsenseBox(), rx_queues=4)
    bench.apply()
    assert bench.wrong() == []
    spoil(bench.box)
    found = bench.wrong()
    assert all(any(one in line for line in found) for one in words), found


def test_facts_are_the_same_for_the_same_box(bench: Bench) -> None:
    bench.apply()
    first = bench.dut.verify()
    bench.box.ticks += 500
    bench.box.nics["ix0"].rx += 1_000_000
    again = bench.dut.verify()
    assert first.digest == again.digest
    assert first.facts["pfsense"] == "21.05-RELEASE" and first.facts["cpu"].startswith("Intel(R) Atom")
    driver = {"driver": "ix", "version": "4.0.1-k", "firmware-version": "eTrack 0x80000877"}
    assert first.facts["interfaces"]["ix0"]["driver"] == driver
    assert first.facts["interfaces"]["ix0"]["speed_bps"] == 10e9 and first.facts["rx_queues"] == {"ix0": 4, "ix1": 4}


@pytest.mark.parametrize(
    ("name", "variable"),
    [("igc0", "dev.igc.0.fw_version"), ("mce1", "dev.mlx5_core.1.hw.fw_version"), ("bnxt2", "dev.bnxt.2.ver.fw_ver")],
)
def test_firmware_is_found_where_each_driver_has_it(tmp_path: Path, name: str, variable: str) -> None:
    first, other = PFSENSE.ports
    box = PfsenseBox(nics={name: Nic("90:ec:77:1b:63:58"), "ix1": Nic("90:ec:77:1b:63:56")}, sysctls={variable: "1.2"})
    config = replace(PFSENSE, cables=(replace(first, interface=name), other))
    found = Bench(tmp_path, box, config).dut.verify().facts["interfaces"]
    assert found[name]["driver"] == {"driver": name[:-1], "firmware-version": "1.2"}


@pytest.mark.parametrize(
    ("box", "microcode"),
    [
        (PfsenseBox(), "0x24"),
        (PfsenseBox(booted="CPU microcode: no matching update found\n"), None),
        (PfsenseBox(microcode="0x0000002e 0x00000000"), "0x2e"),
        (PfsenseBox(microcode="0x00000000 0x08701021"), "0x8701021"),
        (PfsenseBox(denied=True), None),
    ],
    ids=["updated-at-boot", "not-told", "intel", "amd", "cpuctl-may-have-updated-it-since"],
)
def test_firmware_and_board_are_told_by_linux_names(tmp_path: Path, box: PfsenseBox, microcode: str | None) -> None:
    bench, plain = Bench(tmp_path, box), Bench(tmp_path, PfsenseBox(bios="other"))
    found = bench.dut.verify()
    assert found.to_document()["platform"] == {
        "bios_vendor": "ADI",
        "bios_version": "ADI_PLCC-01.00.00.10",
        "bios_date": "04/02/2021",
        "product_name": "6100",
        "board_name": "Cordoba",
        **({"microcode": microcode} if microcode else {}),
    }
    assert found.platform.keys() <= PLATFORM_FILES.keys() and found.digest == plain.dut.verify().digest


@pytest.mark.parametrize(("missing", "lacks"), [("kenv", "bios_vendor"), ("cpucontrol", "microcode")])
def test_a_box_without_one_of_the_programs_tells_the_rest(tmp_path: Path, missing: str, lacks: str) -> None:
    box = PfsenseBox()
    box.programs = [program for program in box.programs if program != missing]
    assert {"microcode", "bios_vendor"} - Bench(tmp_path, box).dut.verify().platform.keys() == {lacks}


def test_queues_and_their_cpus(tmp_path: Path) -> None:
    bench = Bench(tmp_path, PfsenseBox(queues=2))
    spreading = bench.dut.verify().spreading
    assert spreading is not None
    assert spreading.queues == tuple(QueuePlace(p, q, f"cpu{q}") for p in (0, 1) for q in (0, 1))
    assert [(one.port, one.key) for one in spreading.hashes] == [(0, None), (1, None)] and spreading.hashes[0].reason
    bench.box.bound = False
    spreading = bench.dut.verify().spreading
    assert spreading is not None and {place.worker for place in spreading.queues} == {None}


@given(
    st.sampled_from(["ifconfig", "route", "arp", "pfctl", "sysctl", "netstat", "vmstat", "cpuset"]),
    st.text(),
    st.booleans(),
)
def test_any_answer_is_a_value_or_a_named_error_and_stops_no_other(program: str, text: str, fails: bool) -> None:
    transport = BoxTransport(PfsenseBox(), fail={program: Said(text, returncode=int(fails))})
    dut = PfsenseDut(Wanted(PFSENSE), transport)
    for ask in (dut.plan, dut.verify, dut.identity):
        try:
            ask()
        except DutError as error:
            assert "\n" not in str(error)
    seen = dut.observe()
    assert all(one.reason for one in seen.missing) and bool(seen.cpus) == (program != "sysctl")
    assert not fails or bool(seen.missing) == (program in ("sysctl", "netstat", "vmstat"))
