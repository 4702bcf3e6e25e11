"""``trexbench tcp`` over simulated routers, as a user gives it, and what its documents can be asked for afterwards."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

from tools import begin, document, succeed

SIM = ("tcp", "--dut", "raspberry-pi", "--sim", "--speedup", "10000", "--time", "4s", "--no-picture", "-q")
QUIET = (*SIM, "--ping", "0")


def measured(place: Path, *arguments: str) -> Any:
    """The only document in this directory's results, after this command."""
    succeed(place, *arguments)
    return document(place)


def test_a_simulated_run_says_so_and_can_be_asked_for_again(tmp_path: Path) -> None:
    done = succeed(tmp_path, *SIM, "--ping", "2", "--label", "night-1")
    assert "SIMULATED" in done.stdout
    (document,) = tmp_path.glob("results/*/*/*.json")
    for command in (("show", str(document)), ("show", "--brief"), ("results", "compare", str(document), str(document))):
        again = succeed(tmp_path, *command)
        assert "raspberry-pi" in again.stdout
    found = succeed(tmp_path, "results", "list", "--label", "night-1")
    assert document.name in found.stdout, found.stderr


def test_each_version_way_and_repetition_has_its_leg(tmp_path: Path) -> None:
    found = measured(tmp_path, *QUIET, "--ip", "both", "--bidir", "-P", "2", "--repeat", "2")
    assert found["status"] == "complete" and len(found["legs"]) == 4


def test_ctrl_c_keeps_what_was_measured_and_a_second_ends_what_is_only_drawn(tmp_path: Path) -> None:
    arguments = ("tcp", "--dut", "raspberry-pi", "--sim", "--speedup", "2", "--time", "3s", "--ping", "0", "-q")
    with begin(tmp_path, *arguments) as running:
        deadline = time.monotonic() + 40
        while not any(json.loads(one.read_text())["legs"] for one in tmp_path.glob("results/*/*/*.json")):
            assert time.monotonic() < deadline and running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None and running.stderr.readline().startswith("result ")
        while running.poll() is None:  # more than once: the first may come before the drawing has begun
            running.send_signal(signal.SIGINT)
            time.sleep(0.1)
    assert running.returncode in (130, -signal.SIGINT)  # the last: Python no longer handles signals at its end
    assert not list(tmp_path.glob("results/*/*/*.png"))
    (path,) = tmp_path.glob("results/*/*/*.json")
    kept = json.loads(path.read_text())
    assert kept["status"] == "incomplete" and len(kept["legs"]) == 1
