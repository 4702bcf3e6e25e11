"""A fleet whose scheduler and testers are commands of their own, on loopback; the testers simulate."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from clusters import fleet_here
from tools import documents, folder_with, trexbench

from suites import FOUR

pytest.importorskip("distributed")

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
        fleet.kill("t2")
        fleet.start_tester("t2")
        done = trexbench(tmp_path, *NIGHT, "fleet.yaml", "--resume", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        assert {name: one["state"] for name, one in fleet.status().items()} == {"t1": "idle", "t2": "idle"}
        testers = {one["dut"]["name"]: one["command"]["tester"] for one in documents(tmp_path)}
        assert testers == {"netgate-vpp": "t1", "netgate-linux": "t2"}
        assert [cell["state"] for cell in json.loads(done.stdout)["cells"]] == ["done", "done"]
        with_address = trexbench(tmp_path, *NIGHT, fleet.address)
        assert with_address.returncode == 0 and len(documents(tmp_path)) == 4
        stranger = trexbench(tmp_path, "fleet", "status", "--scheduler", fleet.address.replace("tls", "tcp"))
        assert stranger.returncode == 1 and "the fleet's scheduler" in stranger.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("worker", "--tester", "t9"), "fleet.yaml has no tester t9: it has t1, t2"),
        (("scheduler", "--scheduler", "tcp://10.9.9.9:8786"), "could run anything on every tester: write tls://"),
        (
            ("worker", "--tester", "t1", "--scheduler", "tls://h:1"),
            "tls://h:1 needs certificates: name their",
        ),
        (("worker", "--tester", "t1", "--fleet", "local:3"), "local:3 has simulated testers only"),
    ],
)
def test_who_is_not_safe_or_not_known_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "fleet.yaml").write_text(f"{WIRING}scheduler: tcp://127.0.0.1:1\n")
    done = trexbench(tmp_path, "fleet", *words)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
