"""Rates that are found on real packets, and who limited them: of a slow generator, and of a router behind a shaper.

The shaper's rate is a tenth of what half a core forwards: a busy machine delays frames, which the shaper's queue evens
out as long as it is for a few milliseconds, and changes the rate by less than the 5 or 10 % that the tests leave it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

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
from tools import document, succeed

pytestmark = pytest.mark.measures

PREFIX, SLOW = f"tbq{os.getpid()}", f"tbg{os.getpid()}"


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with lab_up(write_lab(tmp_path_factory.mktemp("lab") / "own.yaml", PREFIX)) as folder:
        yield folder
    assert not namespaces(PREFIX)


@pytest.fixture
def folder(standing: Path, tmp_path: Path) -> Path:
    """With the config of a lab that is up."""
    share_lab(standing, tmp_path)
    write_lab(tmp_path / "own.yaml", PREFIX, loss="0.1%")
    return tmp_path


def test_a_limited_generator_is_named_and_the_dut_is_not(tmp_path: Path) -> None:
    """A busy machine takes from the generator, which makes it slower still: it stays the limit."""
    dut = write_lab(tmp_path / "slow.yaml", SLOW, ramp_to="200kpps")
    assert "  txqueuelen: 1000\n" in dut.read_text()
    dut.write_text(dut.read_text().replace("  txqueuelen: 1000\n", "  txqueuelen: 1000\n  sender_limit: 50kpps\n"))
    done = succeed(tmp_path, "ramp", "--dut", "slow.yaml", "--mode", "var2-64b", "-q", "--no-picture")
    (one,) = document(tmp_path)["analysis"]
    assert one["limit"] == "generator-tx" and one["at_least"]
    assert 30e3 < one["maximum_pps"] < 60e3
    assert ">=" in done.stdout.splitlines()[0]
    assert not namespaces(SLOW)


def test_saturate_counts_what_emerges(folder: Path) -> None:
    """The shaper is offered twice its rate, a share of which a busy machine may not send."""
    shape(f"{PREFIX}-dut", "20kb")
    command = ("saturate", "--dut", "own.yaml", "--mode", "1flow", "--rate", "80kpps", "-q", "--json", "--no-picture")
    done = succeed(folder, *command)
    (one,) = json.loads(done.stdout)["analysis"]
    assert one["max_received_pps"] == pytest.approx(SHAPED_PPS, rel=0.1)


def test_a_search_finds_a_routers_rate(folder: Path) -> None:
    """A busy machine's delays fill the shaper's queue for a while: within 5 % of the rate they lose nothing more."""
    shape(f"{PREFIX}-dut", "20kb")
    run = succeed(folder, "search", "--dut", "own.yaml", *SEARCH)
    assert_the_shapers_rate_is_found(document(folder), run.stdout)


def test_a_router_short_of_bytes_loses_the_largest_frames_first(folder: Path) -> None:
    """No rate is asserted, only which frames are lost first; a busy machine's delays lose more of all of them."""
    shape(f"{PREFIX}-dut")
    short = ("--warmup", "1kpps:1s", "--ramp-duration", "5s", "--hold", "1s")
    run = succeed(folder, "ramp", "--dut", "own.yaml", *RAMP, *short)
    found = document(folder)
    assert_large_frames_are_lost_first(found, run.stdout)
    last = found["samples"][-1]
    received = last["ports"]["1"]["ipackets"] - found["samples"][0]["ports"]["1"]["ipackets"]
    assert sum(last["streams"]["0"]["received"]["1"]) == received
