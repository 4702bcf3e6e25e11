"""``trexbench tcp`` ended in the middle of a leg: killed, or left by one of its hosts."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from endpoints import alive
from labs import ENDS, document, flows, inside, lab_up, listens, write_lab
from sshd import eventually
from tools import begin, trexbench

from trexbench.core.typed import Status
from trexbench.results.store import load_tcp

PREFIX = f"tbf{os.getpid()}"
OWN = f"{PREFIX}o"
"""The prefix of a lab of the run's own."""
LONG = ("tcp", "--dut", "./own.yaml", "-q", "--no-picture", "--reverse", "--ping", "0")
TWO = ("--repeat", "2", "--time", "5s", "--interval", "200ms")


@contextmanager
def second_leg(folder: Path, *more: str, prefix: str = PREFIX) -> Iterator[subprocess.Popen[str]]:
    """A command whose first leg is kept and whose second one flows."""
    with begin(folder, *LONG, *TWO, *more) as running:
        try:
            eventually(lambda: running.poll() is not None or legs(folder) == 1, "the first leg is kept", 90)
            eventually(lambda: running.poll() is not None or flows(prefix), "the second leg flows", 20)
            assert running.poll() is None, running.communicate()
            yield running
        finally:
            if running.poll() is None:
                running.kill()


def legs(folder: Path) -> int:
    return sum(len(load_tcp(path).legs) for path in folder.glob("results/*/own/*.json"))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a lab that stays."""
    folder = tmp_path_factory.mktemp("faults")
    write_lab(folder, PREFIX, "{offloads: packet}")
    with lab_up(folder):
        yield folder
    assert not list(Path("/run/netns").glob(f"{PREFIX}-*"))


@pytest.fixture
def stays(lab: Path) -> Path:
    """Return the directory of the lab, without results."""
    shutil.rmtree(lab / "results", ignore_errors=True)
    return lab


def told(errors: str) -> str:
    """The one line that says what went wrong."""
    assert "Traceback" not in errors
    (line,) = [one for one in errors.splitlines() if one.startswith("trexbench: ")]
    return line


def test_kill_9_takes_a_lab_of_the_runs_own_along(tmp_path: Path) -> None:
    place = tmp_path
    write_lab(place, OWN, "{offloads: packet}")
    with second_leg(place, prefix=OWN) as running:
        there = [pid for pids in inside(OWN).values() for pid in pids]
        assert len(there) >= 3
        running.kill()
        running.wait(60)
        eventually(lambda: not any(map(alive, there)), "every process has ended", 20)
        eventually(lambda: not list(Path("/run/netns").glob(f"{OWN}-*")), "the lab is gone", 20)
    (path,) = place.glob("results/*/own/*.json")
    found = load_tcp(path)
    assert found.status is Status.INCOMPLETE and [leg.error for leg in found.legs] == [None]
    listed = trexbench(place, "results", "list")
    assert listed.returncode == 0 and "own" in listed.stdout, listed.stderr
    shown = trexbench(place, "results", "show", "--brief")
    assert shown.returncode == 0 and "reverse IPv4" in shown.stdout, shown.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("engine", ["embedded", "iperf3"])
def test_kill_9_leaves_no_process_and_no_listener_in_a_lab_that_stays(stays: Path, engine: str) -> None:
    with second_leg(stays, "--engine", engine) as running:
        running.kill()
        running.wait(60)
        eventually(lambda: not any(inside(PREFIX)[name] for name in ENDS), "no process is left", 20)
        assert not listens(PREFIX)
    assert legs(stays) == 1
    again = trexbench(stays, *LONG, "--time", "1s", "--interval", "500ms", "--no-apply")
    assert again.returncode == 0, again.stderr  # nothing holds a lock


@pytest.mark.nightly
def test_an_end_behind_a_cable_that_is_cut_is_given_up(stays: Path) -> None:
    with second_leg(stays) as running:
        time.sleep(0.8)  # nothing outside tells when readings have come, every 0.2 s
        subprocess.run(["ip", "-n", f"{PREFIX}-dut", "link", "set", "e1", "down"], check=True, timeout=20)
        _, errors = running.communicate(timeout=60)
    subprocess.run(["ip", "-n", f"{PREFIX}-dut", "link", "set", "e1", "up"], check=True, timeout=20)
    assert running.returncode not in (0, 130) and "did not answer within 10 s" in told(errors)
    found = document(stays)
    assert found["status"] == "incomplete" and [bool(leg["error"]) for leg in found["legs"]] == [False, True]
    assert len(found["legs"][1]["client"]) >= 2
