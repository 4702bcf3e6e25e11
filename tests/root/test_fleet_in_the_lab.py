"""Two labs of this machine as two testers of a fleet: real packets, and what a killed tester leaves behind."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import LEASE_S, FleetHere, fleet_here
from packet_lab import lab_up, namespaces, plan, servers, share_lab, write_lab
from sshd import eventually
from tools import documents, folder_with, succeed, trexbench

pytest.importorskip("distributed")
pytestmark = pytest.mark.nightly

PREFIXES = {"one": f"tbfa{os.getpid()}", "two": f"tbfb{os.getpid()}"}
"""DUT -> the prefix of its lab, which keeps it apart from the other."""
TESTERS = {"one": "t1", "two": "t2"}
WIRING = """\
testers:
  - {name: t1, ports: [0, 1]}
  - {name: t2, ports: [0, 1]}
duts: [one, two]
links: [["t1:0", "one:d0"], ["t1:1", "one:d1"], ["t2:0", "two:d0"], ["t2:1", "two:d1"]]
"""
SUITE = f"""
duts: [one, two]
modes: [64b, imix]
directions: [uni]
plan: {plan(ramp_duration="6s", hold="2s")}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[FleetHere]:
    """Both testers have joined."""
    for dut, prefix in PREFIXES.items():
        write_lab(tmp_path / "dut_configs" / f"{dut}.yaml", prefix)
    folder_with(tmp_path, pair=SUITE)
    with fleet_here(tmp_path, WIRING) as fleet:
        for tester in TESTERS.values():
            fleet.start_tester(tester)
        yield fleet
    for dut, prefix in PREFIXES.items():
        trexbench(tmp_path, "lab", "down", "--dut", dut, "--force")
        assert not namespaces(prefix)


def is_measured(folder: Path, dut: str) -> bool:
    """Test whether a run of this DUT has begun: its document is there, though not yet in its place."""
    return any((folder / "results" / ".fleet").glob(f"2*/{TESTERS[dut]}-*/20*/{dut}/*.json"))


def night_of(folder: Path) -> Any:
    (path,) = folder.glob("results/nights/*.json")
    return json.loads(path.read_text())


def test_a_night_goes_on_after_testers_were_killed_in_the_middle(fleet: FleetHere, tmp_path: Path) -> None:
    """First a tester's process is killed, which its command starts again; then a whole command, started by hand."""
    night = fleet.begin_night("suite", "run", "pair")
    eventually(lambda: is_measured(tmp_path, "one") and is_measured(tmp_path, "two"), "both are measured", 120)
    assert all(len(namespaces(prefix)) >= 2 and servers(prefix) for prefix in PREFIXES.values())
    now = fleet.status()
    assert {now[tester]["state"] for tester in TESTERS.values()} == {"measuring"}, now
    os.kill(fleet.process_of("t1"), signal.SIGKILL)
    eventually(lambda: not servers(PREFIXES["one"]) and not namespaces(PREFIXES["one"]), "lab one is gone", LEASE_S)
    fleet.await_words("t1", "it is started again")
    fleet.kill("t2")
    eventually(lambda: not servers(PREFIXES["two"]) and not namespaces(PREFIXES["two"]), "lab two is gone", LEASE_S)
    eventually(lambda: fleet.status()["t2"]["state"] == "lost", "t2 is lost", 60)
    fleet.start_tester("t2")
    out, err = night.communicate(timeout=240)
    assert night.returncode == 0 and "4 of 4 cells measured" in err, out + err + fleet.log("t1") + fleet.log("t2")
    found = documents(tmp_path)
    assert len(found) == 4 and {one["status"] for one in found} == {"complete"}
    for one in found:
        assert one["simulated"] is False and one["dut"]["attested"]
        assert one["command"]["tester"] == TESTERS[one["dut"]["name"]]
        assert all(each["received"] > 0.8 * each["sent"] > 1000 for each in one["analysis"]), one["analysis"]
    cells = night_of(tmp_path)["cells"]
    assert [cell["state"] for cell in cells] == ["done"] * 4
    places = {cell["attempts"][-1]["path"] for cell in cells}
    assert places == {str(one.relative_to(tmp_path / "results")) for one in tmp_path.glob("results/20*/*/*.json")}
    assert [one.name for one in (tmp_path / "results" / ".fleet").iterdir()] == ["leases"]


def test_what_a_dead_tester_left_configured_is_undone_first(tmp_path: Path) -> None:
    """Else the DUT would be what its config says already, and nothing would be applied to it."""
    dut = write_lab(tmp_path / "dut_configs" / "one.yaml", PREFIXES["one"])
    folder_with(tmp_path, single=SUITE.replace("[one, two]", "[one]").replace("[64b, imix]", "[64b]"))
    wiring = WIRING.replace("[one, two]", "[one]").replace(', ["t2:0", "two:d0"], ["t2:1", "two:d1"]', "")
    share_lab(dut.parent, tmp_path)
    with lab_up(dut), fleet_here(tmp_path, wiring) as fleet:
        fleet.start_tester("t1")
        night = fleet.begin_night("suite", "run", "single")
        eventually(lambda: is_measured(tmp_path, "one"), "it is measured", 120)
        journal = tmp_path / "results" / ".fleet" / "changes" / "one.json"
        left = json.loads(journal.read_text())["entries"]
        assert left and now_leased(tmp_path) == ["t1"]
        os.kill(fleet.process_of("t1"), signal.SIGKILL)
        _, err = night.communicate(timeout=240)
        assert night.returncode == 0, err + fleet.log("t1")
        (found,) = documents(tmp_path)
        assert len(found["dut"]["applied"]) == len(left) == len(json.loads(journal.read_text())["entries"])


def now_leased(folder: Path) -> list[str]:
    """Testers that hold a lease, as whoever is at the DUT sees them."""
    done = succeed(folder, "fleet", "status", "--json")
    return [one["tester"] for one in json.loads(done.stdout)["leases"]]
