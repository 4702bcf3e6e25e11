"""Suites of TCP as whole commands: the two documents' tests simulated, their tables, and what such a suite may say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import succeed, trexbench


@pytest.mark.parametrize(
    ("name", "cells"), [("raspberry-pi-2015", 24), pytest.param("home-routers-2022", 16, marks=pytest.mark.nightly)]
)
def test_a_documents_tests_and_its_table(name: str, cells: int, tmp_path: Path) -> None:
    done = succeed(tmp_path, "suite", "run", name, "--sim")
    assert f"{cells} of {cells} cells measured" in done.stderr, done.stderr
    shown = succeed(tmp_path, "suite", "table", name)
    assert shown.stdout.startswith("*** SIMULATED"), shown.stderr
    assert f"{cells} of {cells} published figures within 5 %" in shown.stdout
    found = json.loads(trexbench(tmp_path, "suite", "table", name, "--json").stdout)
    assert found["simulated"] and all(0.95 < one["ratio"] < 1.05 for one in found["cells"])
    listed = trexbench(tmp_path, "results", "list", "--json")
    assert len(json.loads(listed.stdout)["runs"]) == cells
    assert trexbench(tmp_path, "regress").returncode in (0, 4)


def test_the_bdp_laboratory_and_its_table(tmp_path: Path) -> None:
    done = succeed(tmp_path, "suite", "run", "bdp-lab8", "--sim", "--dut", "mininet-lab8")
    assert "2 of 2 cells measured" in done.stderr, done.stderr
    shown = succeed(tmp_path, "suite", "table", "bdp-lab8")
    assert "2 of 2 published figures within 5 %" in shown.stdout, shown.stderr
    assert "scaled" not in shown.stdout and " window " in shown.stdout and " link " in shown.stdout
    lab = succeed(tmp_path, "suite", "run", "bdp-lab8", "--sim")
    assert "2 of 2 cells measured" in lab.stderr, lab.stderr
    small, large = json.loads(trexbench(tmp_path, "suite", "table", "bdp-lab8", "--json").stdout)["cells"]
    assert small["published_mbps"] == 3160 and small["measured_mbps"] < 0.6 * large["measured_mbps"]
    shown = trexbench(tmp_path, "results", "show")
    assert "fills the line" in shown.stdout and "BDP     25.0 MB" in shown.stdout


def test_a_tunnels_rates_beside_the_documents(tmp_path: Path) -> None:
    """Document 003's twelve rows, whose CPU columns stay empty: the twin has no processes."""
    done = succeed(tmp_path, "suite", "run", "vpn-tunnel-2020", "--sim")
    assert "12 of 12 cells measured" in done.stderr, done.stderr
    shown = succeed(tmp_path, "suite", "table", "vpn-tunnel-2020")
    assert shown.stdout.startswith("*** SIMULATED"), shown.stderr
    assert "11 of 12 published figures within 5 %" in shown.stdout, "all but that of pinned programs"
    assert "none of 40 published CPU figures was measured" in shown.stdout
    found = json.loads(trexbench(tmp_path, "suite", "table", "vpn-tunnel-2020", "--json").stdout)["cells"]
    assert not any("cpu" in one for one in found) and all(one["published_cpu"] for one in found)
    words = [line.replace(">= ", "").split() for line in shown.stdout.splitlines() if line.startswith("vpn-i5")][:12]
    limits = [line[6] for line in words]
    assert (limits.count("link"), limits.count("endpoint-cpu"), limits.count("unknown")) == (7, 2, 3)


def test_a_table_needs_a_night(tmp_path: Path) -> None:
    done = trexbench(tmp_path, "suite", "table", "home-routers-2022")
    assert done.returncode == 9 and "measure one: trexbench suite run home-routers-2022" in done.stderr
