"""A DUT that is configured by hand, through whole commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import document, fake_server, succeed, trexbench
from verbs import run_in

from trexbench.generator.trex import ports

NONE = """\
driver: none
description: a router that somebody else looks after
speed: 1gbit
ports: [{tester: 0}, {tester: 1, interface: wan}]
plan: {warmup: 10kpps:400ms, ramp_duration: 2s, hold: 400ms, confirm: 400ms, sample: 200ms, window: 200ms}
"""


@pytest.fixture
def box(tmp_path: Path) -> str:
    (tmp_path / "box.yaml").write_text(NONE)
    return "box.yaml"


def test_a_run_says_that_nothing_was_applied(tmp_path: Path, box: str) -> None:
    with fake_server() as server:
        done = trexbench(tmp_path, "ramp", "--dut", box, "--mode", "var2-64b", "--no-picture", *server.where)
    assert done.returncode == 0, done.stderr
    assert "box: driver: none: the DUT is configured by hand" in done.stderr and "configuring" not in done.stderr
    found = document(tmp_path)
    (warning,) = [one for one in found["warnings"] if one["code"] == "not-attested"]
    assert "driver: none: the DUT is configured by hand, its config names nothing to read back" in warning["text"]
    assert (
        "driver: none" in done.stdout and found["telemetry"]["readings"] == [] and found["dut"]["facts_sha256"] is None
    )
    assert "driver: none" in succeed(tmp_path, "results", "show").stdout
    succeed(tmp_path, "report", "--output", "page")


def test_flow_control_at_the_testers_ports_is_a_warning(
    tmp_path: Path, box: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PAUSE frames stop a sender: it sends less than asked, and no frame is lost."""
    monkeypatch.setattr(ports, "has_flow_control", lambda status: status["owner"] != "")
    with fake_server() as server:
        run_in(tmp_path, "ramp", "--dut", box, "--mode", "var2-64b", "--no-picture", *server.where)
    (warning,) = [one for one in document(tmp_path)["warnings"] if one["code"] == "flow-control"]
    assert "on at the tester's ports 0, 1: PAUSE frames" in warning["text"]


def test_the_dut_verbs_say_that_there_is_nothing(tmp_path: Path, box: str) -> None:
    def said(*words: str, code: int = 0) -> str:
        done = trexbench(tmp_path, "dut", *words)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    assert said("plan", box) == "nothing to change\n"
    assert "not attested: driver: none" in said("apply", box) and "what its config says" not in said("apply", box)
    assert "not attested: driver: none" in said("verify", box)
    assert json.loads(said("verify", box, "--json"))["attested"] is False
    assert "on box: driver: none: its config names no counters" in said("telemetry", box, "--seconds", "1", code=6)
    assert f"{box} answered nothing: its config names nothing to read" in said("record", box, code=6)
    assert said("revert", box) == "nothing to revert\n"
    assert said("show", box) == f"# {box}\n{NONE}"
    assert not (tmp_path / "state").exists()
