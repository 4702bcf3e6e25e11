"""The whole line on real packets: profile, genuine client, embedded server, veth, a kernel router that forwards.

Rates are low, and none is asserted: test_rates_in_the_lab.py has those tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from packet_lab import lab_up, namespaces, share_lab, write_lab
from sshd import eventually
from tools import await_line, begin, document, succeed, trexbench
from vm_labs import processes

from trexbench.config.lookup import load_dut
from trexbench.config.model import PlanDefaults
from trexbench.core.units import Rate
from trexbench.session.calibrate import calibrate_tester, without_dut
from trexbench.session.keep import Output
from trexbench.session.options import Setup

PREFIX, OWN = f"tbr{os.getpid()}", f"tbo{os.getpid()}"
"""Prefixes of the lab that stays, and of the labs that a run makes for itself."""
RAMP = ("ramp", "--dut", "own.yaml", "--mode", "64b", "--no-picture")
LONG = (*RAMP, "--ramp-duration", "60s")


@pytest.fixture
def ephemeral(tmp_path: Path) -> Iterator[Path]:
    """lab-linux, which is down."""
    yield write_lab(tmp_path / "own.yaml", OWN)
    trexbench(tmp_path, "lab", "down", "--dut", "own.yaml", "--force")
    assert not namespaces(OWN)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("lab")
    with lab_up(write_lab(folder / "own.yaml", PREFIX)):
        yield folder
    assert not namespaces(PREFIX)


@pytest.fixture
def up(standing: Path, tmp_path: Path) -> Path:
    """lab-linux, which is up and stays."""
    share_lab(standing, tmp_path)
    return write_lab(tmp_path / "own.yaml", PREFIX)


def test_ramp_measures_a_router_that_forwards(tmp_path: Path, ephemeral: Path) -> None:
    command = ("ramp", "--dut", "own.yaml", "--mode", "var2-64b", "--bidir", "--latency", "400ms", "-q")
    succeed(tmp_path, *command, "--ramp-to", "20kpps")  # of less, a tenth is too little to be timed
    found = document(tmp_path)
    assert found["status"] == "complete" and found["simulated"] is False
    assert [one["direction"] for one in found["analysis"]] == ["0->1", "1->0"]
    assert all(one["received"] > 0.8 * one["sent"] > 1000 for one in found["analysis"]), found["analysis"]
    assert found["dut"]["attested"] and found["dut"]["facts"]["ip_forward"] == 1
    assert [one["flows"] for one in found["profiles"].values()] == [251, 251]
    assert {one["xdp_mode"] for one in found["generator"]["ports"]} == {"driver"}
    first, last = (found["samples"][at]["senders"]["0"] for at in (0, -1))
    assert 0 <= first["waited_ns"] <= last["waited_ns"] and 0 <= first["preempted"] <= last["preempted"]
    latencies = found["latency"]
    shares = sorted({one["share"] for one in latencies})
    assert shares in ([0.1, 0.5, 0.9], [0.5, 0.9]), "a tenth of what a busy machine carries may be too little"
    assert [(one["share"], one["direction"]) for one in latencies] == [
        (share, direction) for share in shares for direction in ("0->1", "1->0")
    ]
    assert all(one["received"] and one["min_s"] <= one["mean_s"] <= one["max_s"] for one in latencies)
    assert all(one["min_s"] >= 0 and one["mean_s"] > 1e-6 for one in latencies)  # counted in whole microseconds
    read = [one["conditions"]["cores"] for one in found["samples"] if "conditions" in one]
    assert len(read) > 2 and all({*cores} == {"sender", "router"} for cores in read)
    assert read[0]["router"]["stolen_s"] <= read[-1]["router"]["stolen_s"]
    assert next(tmp_path.glob("results/*/*/*.png")).read_bytes().startswith(b"\x89PNG")
    assert not namespaces(OWN)


def test_at_ctrl_c_a_runs_lab_goes_with_it(tmp_path: Path, ephemeral: Path) -> None:
    run = begin(tmp_path, *LONG)
    await_line(run, "ramp", "asked")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    assert run.returncode == 130
    eventually(lambda: not namespaces(OWN), "the lab is gone", 30)
    assert document(tmp_path)["status"] == "incomplete"


def test_a_dead_server_ends_the_run_and_is_quoted(tmp_path: Path, ephemeral: Path) -> None:
    run = begin(tmp_path, *LONG)
    await_line(run, "ramp", "asked")
    for pid in processes(OWN):
        os.kill(pid, signal.SIGKILL)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 5 and "Traceback" not in said
    found = document(tmp_path)
    assert found["status"] == "incomplete" and "the lab's server ended: " in str(found["reason"])
    assert f"{OWN}-server.log)" in str(found["reason"])
    eventually(lambda: not namespaces(OWN), "the lab is gone", 30)


@pytest.mark.nightly
def test_a_cable_pulled_in_the_ramp_ends_it(tmp_path: Path, up: Path) -> None:
    run = begin(tmp_path, *LONG)
    await_line(run, "ramp", "asked")
    subprocess.run(["ip", "-n", f"{PREFIX}-dut", "link", "set", "d1", "down"], check=True)
    _, printed = run.communicate(timeout=60)
    assert run.returncode == 5, printed
    found = document(tmp_path)
    assert found["status"] == "incomplete" and "link of port 1" in str(found["reason"])


@pytest.mark.nightly
def test_doctor_examines_a_lab_that_is_up_and_one_that_is_down(tmp_path: Path, up: Path) -> None:
    write_lab(tmp_path / "other.yaml", OWN)
    down = succeed(tmp_path, "doctor", "--dut", "other.yaml")
    assert "its lab is down" in down.stdout and "trexbench lab up" in down.stdout
    succeed(tmp_path, "dut", "apply", "own.yaml")
    examined = succeed(tmp_path, "doctor", "--dut", "own.yaml", "--json")
    named = {one["what"]: one for one in json.loads(examined.stdout) if one["area"] in ("tester", "DUT")}
    assert {"server", "port 0", "port 1", "reached", "time", "settings", "counters"} <= set(named)
    assert "veth" in named["port 0"]["found"] and named["time"]["state"] == "good"


@pytest.mark.nightly
def test_a_labs_tester_is_calibrated_through_a_bypass(
    tmp_path: Path, ephemeral: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command's own times are half a minute a mode; its options are tested on a simulated tester."""
    monkeypatch.setenv("TREXBENCH_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / "state"))
    short = PlanDefaults(
        warmup=Rate(1000.0, "pps"),
        warmup_s=0.5,
        ramp_to=Rate(10e3, "pps"),
        ramp_s=1.0,
        hold_s=0.5,
        confirm_s=0.0,
        latency_s=0.4,
        drain_s=0.3,
        sample_s=0.2,
        window_s=0.2,
    )
    series, made = calibrate_tester(without_dut(load_dut(str(ephemeral)), ()), ["var2-64b"], short, Setup(), Output())
    assert made is not None and not series.failures
    assert made.tester == f"lab-{OWN}" and not made.simulated and not namespaces(OWN)
    assert [str(one.direction) for one in made.limits] == ["0->1", "0->1", "1->0"]
    assert all(one.carried_pps > 1e3 and one.floor_s is not None and one.floor_s < 0.1 for one in made.limits), made
    examined = trexbench(tmp_path, "doctor", "--dut", "own.yaml", "--json")
    assert {one["what"]: one["state"] for one in json.loads(examined.stdout)}["calibration"] == "good"
    succeed(tmp_path, *RAMP, "-q")
    kept = document(tmp_path)["generator"]["calibration"]
    assert kept["measured"] == made.measured and [one["direction"] for one in kept["limits"]] == ["0->1"]
