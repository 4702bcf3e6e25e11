"""Rates that are found on real packets, and who limited them: of a slow generator, and of a router behind a shaper.

The shaper's rate is 3 % of what the lab's cores carry at least, so that its verdict stays the same while another
program has half of one of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packet_lab import lab_up, namespaces, share_lab, write_lab
from shaper import (
    RAMP,
    SEARCH,
    SHAPED_PPS,
    assert_large_frames_are_lost_first,
    assert_the_shapers_rate_is_found,
    shape,
)
from tools import trexbench

pytestmark = [
    pytest.mark.root,
    pytest.mark.measures,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it makes network namespaces"),
]

PREFIX, SLOW = f"tbq{os.getpid()}", f"tbg{os.getpid()}"


@pytest.fixture(scope="module")
def shaped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with lab_up(write_lab(tmp_path_factory.mktemp("lab") / "own.yaml", PREFIX, loss="0.1%")) as folder:
        shape(f"{PREFIX}-dut")
        yield folder
    assert not namespaces(PREFIX)


@pytest.fixture
def dut(shaped: Path, tmp_path: Path) -> Path:
    share_lab(shaped, tmp_path)
    return write_lab(tmp_path / "own.yaml", PREFIX, loss="0.1%")


def document(folder: Path) -> Any:
    (path,) = folder.glob("results/*/*/*.json")
    return json.loads(path.read_text())


def test_a_limited_generator_is_named_and_the_dut_is_not(tmp_path: Path) -> None:
    """A busy machine takes from the generator, which makes it slower still: it stays the limit."""
    dut = write_lab(tmp_path / "slow.yaml", SLOW, ramp_to="200kpps")
    assert "  txqueuelen: 1000\n" in dut.read_text()
    dut.write_text(dut.read_text().replace("  txqueuelen: 1000\n", "  txqueuelen: 1000\n  sender_limit: 50kpps\n"))
    done = trexbench(tmp_path, "ramp", "--dut", "slow.yaml", "--mode", "var2-64b", "-q", "--no-picture")
    assert done.returncode == 0, done.stderr
    (one,) = document(tmp_path)["analysis"]
    assert one["limit"] == "generator-tx" and one["at_least"]
    assert 30e3 < one["maximum_pps"] < 60e3
    assert ">=" in done.stdout.splitlines()[0]
    assert not namespaces(SLOW)


def test_saturate_counts_what_emerges(tmp_path: Path, dut: Path) -> None:
    """The shaper forwards its rate of twice as much; a busy machine may offer less, never less than that."""
    command = ("saturate", "--dut", "own.yaml", "--mode", "1flow", "--rate", "80kpps", "-q", "--json", "--no-picture")
    done = trexbench(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["analysis"]
    assert one["max_received_pps"] == pytest.approx(SHAPED_PPS, rel=0.1)


def test_a_search_finds_a_routers_rate(tmp_path: Path, dut: Path) -> None:
    run = trexbench(tmp_path, "search", "--dut", "own.yaml", *SEARCH)
    assert run.returncode == 0, run.stderr
    assert_the_shapers_rate_is_found(document(tmp_path), run.stdout)


def test_a_router_short_of_bytes_loses_the_largest_frames_first(tmp_path: Path, dut: Path) -> None:
    short = ("--warmup", "1kpps:1s", "--ramp-duration", "5s", "--hold", "1s", "--sample", "200ms")
    run = trexbench(tmp_path, "ramp", "--dut", "own.yaml", *RAMP, *short)
    assert run.returncode == 0, run.stderr
    found = document(tmp_path)
    assert_large_frames_are_lost_first(found, run.stdout)
    last = found["samples"][-1]
    received = last["ports"]["1"]["ipackets"] - found["samples"][0]["ports"]["1"]["ipackets"]
    assert sum(last["streams"]["0"]["received"]["1"]) == received
