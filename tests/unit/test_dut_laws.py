"""Promises that every driver keeps: applied once is as wanted, twice changes nothing, and all of it is taken back.

Boxes are new or have a former life; IPv4, IPv6 beside it or alone, and VLANs; a command fails, or the connection is
lost, at any moment.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench import LINUX, LINUX_FULL, LINUX_SHIPPED, NICS, PFSENSE, VLANS, VPP, VPP_HOST, Bench, dual_stack
from box_linux import LinuxBox
from box_pfsense import PfsenseBox
from box_vpp import VppBox
from boxes import Said, of_family

from trexbench.config.model import DutConfig
from trexbench.core.errors import DutError, DutLost
from trexbench.dut import Attestation
from trexbench.dut.apply import read_back, revert
from trexbench.dut.vpp import commands as vpp_commands


def vpp() -> VppBox:
    return VppBox(nics=NICS)


def used_vpp() -> VppBox:
    """With a former life: another address, another neighbour, a route elsewhere."""
    box = vpp()
    box.set_state(NICS[0], "up")
    box.set_address(None, NICS[0], "100.65.1.1/25")
    box.set_neighbour(None, NICS[0], "100.65.1.2", "02:00:00:00:00:77", "static")
    box.set_route("add", "16.0.0.0/8", "100.65.1.9", NICS[0])
    return box


# the box, its config, the receive queues
Case = tuple[Callable[[], Any], DutConfig, "int | None"]
CASES: dict[str, Case] = {
    **{f"linux {n}": (LinuxBox, LINUX, n) for n in (None, 2, 4)},
    **{f"linux shipped {n}": (LinuxBox, LINUX_SHIPPED, n) for n in (None, 2, 4)},
    **{f"linux everything {n}": (LinuxBox, LINUX_FULL, n) for n in (None, 2, 4)},
    **{f"vpp {n}": (vpp, VPP, n) for n in (None, 1, 2, 3)},
    **{f"vpp used {n}": (used_vpp, VPP, n) for n in (None, 2)},
    **{f"vpp host {n}": (VppBox, VPP_HOST, n) for n in (None, 1, 2, 3)},
    **{f"pfsense {n}": (lambda n=n: PfsenseBox(release=n), PFSENSE, None) for n in (12, 13, 14, 15)},
}
for name, vlans in VLANS.items():
    for box, config in ((vpp, VPP), (lambda: PfsenseBox(release=14), PFSENSE), *[(LinuxBox, LINUX)] * (not any(vlans))):
        both = dual_stack(config, vlans)
        CASES[f"{config.driver} dual stack {name}"] = box, both, None
        CASES[f"{config.driver} IPv6 alone {name}"] = box, of_family(both, 6), None
FAILING = ["linux everything 2", "vpp 2", "vpp host 2", "pfsense 12", "pfsense 13", "pfsense 14", "pfsense 15"]


def bench(folder: Path, name: str) -> Bench:
    box, config, queues = CASES[name]
    return Bench(folder, box(), config, queues)


@pytest.mark.parametrize("name", CASES)
def test_applied_twice_and_taken_back(tmp_path: Path, name: str) -> None:
    it = bench(tmp_path, name)
    before = it.box.settings()
    assert it.wrong() and it.apply()
    assert it.wrong() == []
    applied = it.box.settings()
    assert it.apply() == [] and it.box.settings() == applied
    assert it.dut.verify().digest == it.dut.verify().digest
    shown = str(applied)
    assert ("2001:2:0:1::1/64" in shown, "100.65.1.1/24" in shown) == (
        "IPv6" in name or "dual" in name,
        "alone" not in name,
    )
    assert it.revert() and it.box.settings() == before and it.journal.entries() == ()


@pytest.mark.parametrize("name", FAILING)
def test_half_failed_and_taken_back(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command in turn fails; none is sent after it, and whatever was made by then is taken back."""
    monkeypatch.setattr(vpp_commands, "APPEARS_S", 0.0)
    whole = bench(tmp_path / "whole", name)
    whole.apply()
    commands = [" ".join(command.argv) for step in whole.steps for command in step.do]
    assert len(commands) >= 10
    for at, command in enumerate(commands):
        if command.endswith("show version"):
            continue  # it is repeated until it succeeds
        it = bench(tmp_path / str(at), name)
        before = it.box.settings()
        it.transport.fail = {
            command: Said("set something: failed\r\n", "not today", int(not command.startswith("vppctl")))
        }
        with pytest.raises(DutError, match=r"not today|set something: failed.*dut revert"):
            it.apply()
        assert [line for line in it.transport.ran if line in commands] == commands[: at + 1]
        it.transport.fail = {}
        it.revert()
        assert it.box.settings() == before and it.journal.entries() == (), command


@pytest.mark.parametrize("name", ["linux 2", *FAILING[1:]])
def test_lost_anywhere_and_taken_back(tmp_path: Path, name: str) -> None:
    whole = bench(tmp_path / "whole", name)
    whole.apply()
    first = whole.transport.ran.index(" ".join(whole.steps[0].do[0].argv))
    for carried in (1, *range(first, len(whole.transport.ran))):
        it = bench(tmp_path / str(carried), name)
        before = it.box.settings()
        it.transport.lost_after = carried
        with pytest.raises(DutLost, match="was lost"):  # which a suite tries again
            it.apply()
        it.transport.lost_after = None
        it.revert()
        assert it.box.settings() == before and it.journal.entries() == (), carried


def boot_linux(it: Bench) -> None:
    it.box = it.transport.box = LinuxBox()
    it.box.files["/proc/sys/kernel/random/boot_id"] = "another"


def boot_pfsense(it: Bench) -> None:
    it.box.reboot()
    it.box.nics["ix0"].up = True


@pytest.mark.parametrize(
    ("name", "boot"),
    [("linux 2", boot_linux), ("vpp None", lambda it: it.box.start()), *[(one, boot_pfsense) for one in FAILING[3:]]],
)
def test_after_a_boot_nothing_is_taken_back(tmp_path: Path, name: str, boot: Callable[[Bench], None]) -> None:
    it = bench(tmp_path, name)
    it.apply()
    boot(it)
    it.transport.ran.clear()
    done = revert(it.dut, it.transport, it.journal)
    assert len(done.forgotten) == len(it.steps) and not done.reverted and not it.changing()


@pytest.mark.parametrize("name", ["linux 2", "vpp 2", "pfsense 14"])
def test_a_link_that_negotiates_is_waited_for(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trexbench.dut.apply.RETRY_EVERY_S", 0.0)
    it = bench(tmp_path, name)
    it.apply()
    port = it.config.ports[1].interface
    end, plugged = (it.box.cards[port], "link") if name == "vpp 2" else (it.box.nics[port], "cable")
    setattr(end, plugged, False)
    verify = it.dut.verify

    def negotiating() -> Attestation:
        found: Attestation = verify()
        setattr(end, plugged, True)
        return found

    monkeypatch.setattr(it.dut, "verify", negotiating)
    assert read_back(it.dut).mismatches == ()
    setattr(end, plugged, False)
    monkeypatch.setattr("trexbench.dut.apply.LINK_WAIT_S", 0.0)
    assert [one.what for one in read_back(it.dut).mismatches] == [f"link of {port}"]


@pytest.mark.parametrize("name", ["linux 2", "vpp 2", "pfsense 14"])
def test_a_dut_that_is_not_there_is_an_error_and_no_empty_reading(tmp_path: Path, name: str) -> None:
    it = bench(tmp_path, name)
    it.transport.lost_after = 0
    with pytest.raises(DutLost, match="the connection to the box was lost"):
        it.dut.observe()
