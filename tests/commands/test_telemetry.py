"""Facts that runs report of the DUT itself: cost, losses, spread; on twins, as the commands print and keep them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import document, succeed

SHORT = ("--sim", "--speedup", "5000", "--ramp-duration", "60", "--hold", "10", "--confirm", "10", "-q", "--no-picture")


def test_the_articles_open_question_is_answered(tmp_path: Path) -> None:
    """Three queues, one flow both ways: two queues share one worker, and every lost frame is in their rings."""
    ramp = ("ramp", "--dut", "netgate-vpp", "--mode", "1flow", "--bidir", "--rx-queues", "3")
    done = succeed(tmp_path, *ramp, *SHORT)
    words = " ".join(done.stdout.split())
    assert "port 0 queue 0 and port 1 queue 0 share vpp_wk_0: one core for both directions" in words
    assert "50.0 % of the loss is rx-miss on port 0 queue 0, 50.0 % is rx-miss on port 1 queue 0" in words
    found = document(tmp_path)
    assert found["losses"]["lost"] == sum(place["frames"] for place in found["losses"]["places"]) > 0
    shares = {one["worker"]: one["share"] for one in found["spread"]["predicted"]["workers"]}
    assert shares == {"vpp_wk_0": 1.0, "vpp_wk_1": 0.0, "vpp_wk_2": 0.0}
    assert found["spread"]["measured"]["basis"] == "queues" and not found["spread"]["measured"]["warnings"]
    hold = found["efficiency"][0]
    assert hold["vectors_per_call"] == pytest.approx(256, rel=0.01)
    assert hold["effective_hz"] == pytest.approx(hold["clock_hz"], rel=0.02)


def test_a_packet_gets_cheaper_with_the_load(tmp_path: Path) -> None:
    """In full vectors: 358 cycles without receiving, and 438 with it."""
    run = ("efficiency", "--dut", "netgate-vpp", "--rates", "1kpps,1mpps,10mpps", "--sim", "--speedup", "5000")
    done = succeed(tmp_path, *run, "-q")
    assert done.stdout.startswith("*** SIMULATED")
    assert "packets/sec, at" in done.stdout and "cycles/packet not counting dpdk-input" in done.stdout
    costs = [json.loads(path.read_text())["efficiency"][0] for path in tmp_path.glob("results/*/*/*.json")]
    costs.sort(key=lambda cost: cost["offered_pps"])
    assert [cost["cycles_per_packet"] for cost in costs] == pytest.approx([4111, 547, 358], rel=0.06)
    assert [cost["with_polling"] for cost in costs] == pytest.approx([2_200_000, 2241, 438], rel=0.06)
    assert costs[2]["effective_hz"] == pytest.approx(2.2e9, rel=0.01)
    (picture,) = tmp_path.glob("results/*/*/*-efficiency.png")
    assert picture.read_bytes().startswith(b"\x89PNG")
