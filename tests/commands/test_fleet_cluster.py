"""A fleet whose scheduler and testers are commands of their own, on loopback; the testers simulate."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from clusters import fleet_here
from lasting_s3 import bucket_here
from sshd import eventually
from tools import documents, folder_with, succeed, trexbench

from suites import FOUR

pytest.importorskip("distributed")
pytestmark = pytest.mark.nightly

WIRING = """\
testers:
  - {name: t1, ports: [0, 1]}
  - {name: t2, ports: [0, 1]}
duts: [netgate-vpp, netgate-linux]
links:
  - [t1:0, netgate-vpp:TenGigabitEthernet3/0/0]
  - [t1:1, netgate-vpp:TenGigabitEthernet3/0/1]
  - [t2:0, netgate-linux:enp3s0f0]
  - [t2:1, netgate-linux:enp3s0f1]
"""
NIGHT = "suite", "run", "four", "--sim", "--speedup", "10000", "--date", "2026-11-21", "-q", "--fleet"


def test_testers_measure_what_they_have_as_the_night_has_it(tmp_path: Path) -> None:
    """One with another suite is refused before the night; then both measure, and refuse what is not wired to them."""
    folder_with(tmp_path, four=FOUR.replace("uni, bidir", "uni"))
    other = folder_with(tmp_path / "other", four=FOUR)
    with fleet_here(tmp_path, WIRING) as fleet:
        shutil.copy(tmp_path / "fleet.yaml", other)
        fleet.start_tester("t1")
        fleet.start_tester("t2", cwd=other, results="../results")
        refused = trexbench(tmp_path, *NIGHT, "fleet.yaml")
        assert refused.returncode == 2 and "tester t2 has another suite four" in refused.stderr, refused.stderr
        assert not documents(tmp_path)
        unknown = trexbench(tmp_path, "fleet", "worker", "--tester", "t9")
        assert unknown.returncode == 2 and "fleet.yaml has no tester t9: it has t1, t2" in unknown.stderr
        fleet.kill("t2")
        fleet.start_tester("t2")
        done = trexbench(tmp_path, *NIGHT, "fleet.yaml", "--resume", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        assert {name: one["state"] for name, one in fleet.status().items()} == {"t1": "idle", "t2": "idle"}
        testers = {one["dut"]["name"]: one["command"]["tester"] for one in documents(tmp_path)}
        assert testers == {"netgate-vpp": "t1", "netgate-linux": "t2"}
        assert [cell["state"] for cell in json.loads(done.stdout)["cells"]] == ["done", "done"]
        wiring = tmp_path / "fleet.yaml"
        wiring.write_text(wiring.read_text().replace("tls:", "tcp:"))
        stranger = trexbench(tmp_path, "fleet", "status")
        assert stranger.returncode == 10 and "the fleet's scheduler" in stranger.stderr


def test_testers_that_share_an_address_alone(tmp_path: Path) -> None:
    """A scheduler, a night and two testers without a common directory; one machine dies in the middle of a cell."""
    pytest.importorskip("pyarrow")
    address = "s3://lab/results"
    with bucket_here(tmp_path / "s3") as s3:
        folder_with(tmp_path, four=FOUR)
        with fleet_here(tmp_path, WIRING) as fleet:
            for machine in ("m1", "m2", "m3"):
                shutil.copy(tmp_path / "fleet.yaml", folder_with(tmp_path / machine, four=FOUR))
            fleet.start_tester("t1", tmp_path / "m1", address)
            fleet.start_tester("t2", tmp_path / "m2", address)
            night = fleet.begin_night(*NIGHT[:4], "--speedup", "10", "--date", "2026-11-21", "--results", address)
            leases = "lab/results/.fleet/leases/netgate-vpp"
            eventually(lambda: bool(s3.invalidate_cache() or s3.find(leases)), f"t1 measures: {fleet.log('t1')}", 60)
            os.kill(fleet.process_of("t1"), signal.SIGKILL)
            fleet.kill("t1")
            fleet.start_tester("t1", tmp_path / "m3", address)
            printed, said = night.communicate(timeout=120)
            assert night.returncode == 0, printed + said + fleet.log("t1")
            now = {name: one["state"] for name, one in fleet.status(address).items()}
        listed = succeed(tmp_path / "m1", "results", "list", "--json", "--results", address)
        s3.invalidate_cache()
        stored = [*map(str, s3.find("lab/results"))]
        records = sorted((json.loads(s3.cat(one)) for one in s3.find(leases)), key=lambda one: int(one["number"]))
    assert now == {"t1": "idle", "t2": "idle"}
    runs = json.loads(listed.stdout)["runs"]
    assert sorted(one["path"].split("/")[1] for one in runs) == ["netgate-linux"] * 2 + ["netgate-vpp"] * 2
    there = [one for one in stored if one.startswith("lab/results/20")]
    assert sorted(there) == sorted(f"lab/results/{one['path']}" for one in runs)
    assert {one.split("/")[4] for one in stored if "/leases/" in one} == {"netgate-linux", "netgate-vpp"}
    lengths = [one["length_s"] for one in records if one["holder"] == records[0]["holder"]]
    assert all(lengths) and records[-1]["length_s"] == 0, "the dead tester's lease was not given back, but waited for"
    mirrors = {path.parts[len(tmp_path.parts)] for path in tmp_path.glob("m*/state/stores/*/.fleet")}
    assert mirrors == {"m1", "m2", "m3"} and not [*tmp_path.glob("**/stores/*/.fleet/leases")]
