"""Latency timed by a real TRex in the lab: counts, what is left in it afterwards, and a session of cells on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rpc import RawClient
from shaper import RAMP, SEARCH, assert_large_frames_are_lost_first, assert_the_shapers_rate_is_found, shape
from tools import ROOT, documents, succeed, trexbench

from trexbench.core.verdict.latency import tagged_pps
from trexbench.lab.net import inside

TREX_DIR = os.environ.get("TREXBENCH_TREX_DIR", "")
PREFIX = f"trx{os.getpid()}"
LOADS, LATENCY_S = 3, 2.0
SHORT = ("--bidir", "--warmup", "1kpps:2s", "--ramp-to", "20kpps", "--ramp-duration", "4s", "--hold", "1s")
SUITE = """
duts: [own]
modes: [64b, imix]
directions: [bidir]
plan: {warmup: 1kpps:2s, ramp_to: 20kpps, ramp_duration: 4s, hold: 1s, confirm: 0s, latency: 2s}
"""

pytestmark = pytest.mark.skipif(not TREX_DIR, reason="TREXBENCH_TREX_DIR names no TRex installation")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """lab-linux in namespaces of our own, and a suite of it."""
    text = (ROOT / "dut_configs" / "lab-linux.yaml").read_text().replace("prefix: tbx ", f"prefix: {PREFIX} ")
    for place, content in (("dut_configs/own.yaml", text), ("suites/two.yaml", SUITE)):
        (tmp_path / place).parent.mkdir()
        (tmp_path / place).write_text(content)
    yield tmp_path
    trexbench(tmp_path, "lab", "down", "--dut", "own", "--force")
    assert not list(Path("/run/netns").glob(f"{PREFIX}-*"))


def assert_timed(run: Any) -> None:
    """Every load both ways, its frames counted from zero and a share of what the port sent meanwhile."""
    assert run["status"] == "complete" and run["simulated"] is False
    assert run["generator"]["kind"] == "TRex"
    assert len(run["latency"]) == 2 * LOADS
    for one in run["latency"]:
        port, far = one["direction"].split("->")
        phase = [sample for sample in run["samples"] if sample["trial"] == one["trial"]]
        samples = [sample for sample in phase if sample["phase"].startswith("latency")]
        before = run["samples"][run["samples"].index(samples[0]) - 1]
        sent = samples[-1]["ports"][port]["opackets"] - before["ports"][port]["opackets"]
        offered = one["offered_pps"]
        assert one["sent"] / sent == pytest.approx(tagged_pps(offered) / offered, rel=0.1), one
        # a TRex that shares its core sends less than was asked, and the router may lose frames; more there cannot be
        assert 0.5 * one["sent"] < one["received"] <= one["sent"] <= 1.1 * LATENCY_S * tagged_pps(offered), one
        assert samples[-1]["ports"][far]["ipackets"] - before["ports"][far]["ipackets"] <= sent
        assert 0 < one["min_s"] <= one["mean_s"] <= one["max_s"] < 1 and one["jitter_s"] < one["max_s"], one
        # not the 99th percentile: TRex leaves the first ten frames out of its maximum, and the histogram has them
        assert one["min_s"] <= one["p50_s"] <= min(one["p99_s"], one["max_s"]), one


def assert_nothing_left() -> None:
    with inside(f"{PREFIX}-tester"):
        client = RawClient("127.0.0.1", 4501)
        try:
            client.sync()
            for port in (0, 1):
                status = client.call("get_port_status", {"port_id": port, "block": False})["result"]
                streams = client.call("get_stream_list", {"port_id": port, "profile_id": "*"})["result"]
                assert (status["state"], status["owner"], streams) == ("IDLE", "", {"_": []})
            assert client.call("get_active_pgids", {})["result"] == {"ids": {"flow_stats": [], "latency": []}}
        finally:
            client.close()


def test_two_runs_of_one_trex(folder: Path) -> None:
    """The second finds nothing of the first, neither streams nor counts."""
    succeed(folder, "lab", "up", "--dut", "own", "--trex-dir", TREX_DIR)
    for number in (1, 2):
        said = succeed(folder, "ramp", "--dut", "own", "--mode", "64b", *SHORT, "--latency", "2s").stdout
        assert "Jitter" in said and " 90 % " in said
        assert len(documents(folder)) == number
        assert_nothing_left()
    first, second = documents(folder)
    assert_timed(first)
    assert_timed(second)
    assert second["samples"][0]["ports"]["0"]["opackets"] >= first["samples"][-1]["ports"]["0"]["opackets"] > 0


@pytest.mark.measures
def test_trex_counts_each_stream_by_itself(folder: Path) -> None:
    """And leaves none of their groups in it. The shaper's rate is far below what a busy machine carries."""
    succeed(folder, "lab", "up", "--dut", "own", "--trex-dir", TREX_DIR)
    shape(f"{PREFIX}-dut")
    said = succeed(folder, "ramp", "--dut", "own", *RAMP, "--confirm", "0").stdout
    (found,) = documents(folder)
    assert found["generator"]["kind"] == "TRex" and found["generator"]["streams_not_counted"] is None
    assert_large_frames_are_lost_first(found, said)
    assert_nothing_left()


@pytest.mark.measures
def test_a_search_with_it_finds_a_routers_rate(folder: Path) -> None:
    """The shaper's rate is far below what a busy machine carries, and is found within 5 %."""
    succeed(folder, "lab", "up", "--dut", "own", "--trex-dir", TREX_DIR)
    shape(f"{PREFIX}-dut", "20kb")
    said = succeed(folder, "search", "--dut", "own", *SEARCH).stdout
    (found,) = documents(folder)
    assert found["generator"]["kind"] == "TRex"
    assert_the_shapers_rate_is_found(found, said)
    assert_nothing_left()


def test_a_second_start_is_counted_too(folder: Path) -> None:
    """The confirmation follows a silence; TRex starts counted streams without their marks if their filters remain."""
    succeed(folder, "lab", "up", "--dut", "own", "--trex-dir", TREX_DIR)
    succeed(folder, "search", "--dut", "own", "--mode", "imix", "--ramp-to", "3kpps", "--confirm", "2s")
    (found,) = documents(folder)
    before, after = (
        next(sample for sample in samples if sample["phase"] == "confirm")["streams"]["0"]
        for samples in (found["samples"], found["samples"][::-1])
    )
    sent, received = (
        sum(end) - sum(begin)
        for begin, end in ((before["sent"], after["sent"]), (before["received"]["1"], after["received"]["1"]))
    )
    assert received > 0.5 * sent > 0


def test_a_session_of_cells_on_it(folder: Path) -> None:
    said = succeed(folder, "suite", "run", "two", "--trex-dir", TREX_DIR).stderr
    assert "2 of 2 cells measured" in said
    found = documents(folder)
    assert [one["command"]["mode"] for one in found] == ["var2-64b", "var2-imix"]
    for one in found:
        assert_timed(one)
    assert len({one["generator"]["host"]["uptime"] for one in found}) == 1, "of the server, since which it runs"


def test_a_trex_that_keeps_finer_histograms(folder: Path) -> None:
    """``--hdrh`` adds to each answer about latency; the figures are made of the rest."""
    directory = folder / "trex"
    directory.mkdir()
    for entry in Path(TREX_DIR).iterdir():
        if not entry.name.startswith("_t-rex-64"):
            (directory / entry.name).symlink_to(entry)
    for name in ("_t-rex-64", "_t-rex-64-o"):
        (directory / name).write_text(f'#!/bin/sh\nexec "{TREX_DIR}/{name}" "$@" --hdrh\n')
        (directory / name).chmod(0o755)
    run = succeed(
        folder, "ramp", "--dut", "own", "--mode", "1flow", *SHORT, "--latency", "2s", "--trex-dir", str(directory)
    )
    assert "Jitter" in run.stdout and " 90 % " in run.stdout
    (found,) = documents(folder)
    assert_timed(found)
