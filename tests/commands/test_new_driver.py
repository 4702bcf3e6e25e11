"""A driver is a folder and a line: one that trexbench does not have works in every verb, in a copy with just these."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools import ROOT, environment

CONFIG = """
driver: shelf
transport: {type: local}
speed: 1gbit
ports:
  - {tester: 0, interface: eth0, address: 10.0.0.1/24, neighbour: {address: 10.0.0.2, mac: "02:00:00:00:00:01"}}
  - {tester: 1, interface: eth1, address: 10.0.1.1/24, neighbour: {address: 10.0.1.2, mac: "02:00:00:00:00:02"}}
routes:
  - {to: 16.0.0.0/8, via: 10.0.0.2}
  - {to: 48.0.0.0/8, via: 10.0.1.2}
twin: {workers: 1, clock: 2ghz, cycles_per_packet: 2000, cycles_per_vector: 2000, cycles_per_drop: 10}
"""
QUICK = "--speedup 10000 --ramp-duration 30s --hold 4s --confirm 2s"
AS_WANTED = ["eth0.address", "eth1.address", "eth0.neighbour", "eth1.neighbour", "route.16.0.0.0", "route.48.0.0.0"]


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a copy of trexbench that has the driver, and the DUT's config."""
    folder = tmp_path_factory.mktemp("added")
    shutil.copytree(ROOT / "trexbench", folder / "trexbench", ignore=shutil.ignore_patterns("*.pyc.*"))
    shutil.copytree(ROOT / "stl_profiles", folder / "stl_profiles")
    (folder / "trexbench" / "dut" / "shelf").mkdir()
    for name, text in (("__init__", ""), ("driver", (ROOT / "tests" / "helpers" / "shelf_driver.py").read_text())):
        (folder / "trexbench" / "dut" / "shelf" / f"{name}.py").write_text(text)
    table = folder / "trexbench" / "config" / "model.py"
    before, line, after = table.read_text().partition('    "linux": Driver("linux"')
    table.write_text(f'{before}    "shelf": Driver("shelf"),\n{line}{after}')
    (folder / "box.yaml").write_text(CONFIG)
    return folder


COMMANDS = """
import contextlib, sys
from trexbench.cli import main
for line in sys.argv[1:]:
    with contextlib.suppress(SystemExit):
        main(line.split())
    print("--- end")
"""


def run(place: Path, *lines: str) -> list[str]:
    """Return what each of these commands prints; one process runs them, whose imports take most of its time."""
    where = {**environment(place / "run"), "PYTHONPATH": str(place)}
    command = [sys.executable, "-c", COMMANDS, *lines]
    done = subprocess.run(command, cwd=place, env=where, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split("--- end\n")[:-1]


def test_it_is_planned_applied_read_back_and_reverted(added: Path) -> None:
    (added / "eth1.address").write_text("10.9.9.9/24\n")
    verbs = ("plan", "apply", "verify --json", "revert")
    planned, applied, verified, reverted = run(added, *(f"dut {verb} ./box.yaml" for verb in verbs))
    assert planned.startswith("# eth0.address: 10.0.0.1/24\ntee eth0.address <<'END'  # eth0.address as wanted\n")
    assert applied.endswith("6 changes\nit is what its config says\n")
    facts = json.loads(verified)["facts"]
    assert {*facts} >= {*AS_WANTED}
    assert (facts["eth1.address"], facts["route.48.0.0.0"]) == ("10.0.1.1/24", "10.0.1.2")
    assert reverted.endswith("6 reverted\n")
    assert [name for name in AS_WANTED if (added / name).exists()] == ["eth1.address"]
    assert (added / "eth1.address").read_text() == "10.9.9.9/24\n"


@pytest.mark.nightly
def test_its_counters_are_read(added: Path) -> None:
    for name in ("eth0", "eth1"):
        (added / f"{name}.packets").write_text("1000\n")
    (seen,) = run(added, "dut telemetry ./box.yaml --seconds 1 --json")
    ports = json.loads(seen)["before"]["ports"]
    assert [(one["port"], one["rx_packets"]) for one in ports] == [(0, 1000), (1, 1000)]


@pytest.mark.nightly
def test_its_twin_is_measured(added: Path) -> None:
    run(added, f"ramp --dut ./box.yaml --mode 1flow-64b --sim -q --no-picture {QUICK}")
    (path,) = (added / "results").glob("*/box/*.json")
    found = json.loads(path.read_text())["dut"]
    assert found["driver"] == "shelf" and not found["attested"]
