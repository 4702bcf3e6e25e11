"""A night of a suite on real packets: one lab for the cells of a session, and none left, whatever ends the night."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packet_lab import namespaces, plan, servers, write_lab
from tools import await_line, begin, documents, folder_with, trexbench

PREFIX = f"tbs{os.getpid()}"
CELLS = 3
SUITE = f"""
duts: [own]
modes: [64b, imix, 1flow]
directions: [uni]
plan: {plan()}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """With a suite of lab-linux in namespaces of our own."""
    write_lab(tmp_path / "dut_configs" / "own.yaml", PREFIX)
    yield folder_with(tmp_path, short=SUITE)
    trexbench(tmp_path, "lab", "down", "--dut", "own", "--force")
    assert not namespaces(PREFIX)


def night(folder: Path) -> Any:
    (path,) = folder.glob("results/nights/*.json")
    return json.loads(path.read_text())


def assert_measured(run: Any) -> None:
    assert run["status"] == "complete" and run["simulated"] is False
    assert run["dut"]["attested"] and run["dut"]["facts"]["ip_forward"] == 1
    assert all(one["received"] > 0.8 * one["sent"] > 1000 for one in run["analysis"]), run["analysis"]


def test_cells_of_a_session_share_one_lab(folder: Path) -> None:
    run = begin(folder, "suite", "run", "short")
    seen, spaces = [], []
    await_line(run, f"cell 1 of {CELLS}")
    for number in range(2, CELLS + 1):
        await_line(run, f"cell {number} of {CELLS}")
        seen.append(servers(PREFIX))
        spaces.append([os.stat(f"/run/netns/{name}").st_ino for name in sorted(namespaces(PREFIX))])
    _, said = run.communicate(timeout=120)
    assert run.returncode == 0 and f"{CELLS} of {CELLS} cells measured" in said, said
    assert len(seen[0]) == 1 and seen[1:] == seen[:-1]
    assert len(spaces[0]) == 4 and spaces[1:] == spaces[:-1]
    assert not namespaces(PREFIX) and not servers(PREFIX)
    found = documents(folder)
    assert [one["command"]["mode"] for one in found] == ["var2-64b", "var2-imix", "1flow-64b"]
    for one in found:
        assert_measured(one)
        assert one["command"]["suite"] == "short"
    assert len({one["generator"]["host"]["uptime"] for one in found}) == 1, "of the server, since which it runs"
    assert [cell["state"] for cell in night(folder)["cells"]] == ["done"] * CELLS and night(folder)["finished"]
