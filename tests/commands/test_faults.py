"""A server that fails in the middle of a ramp: what trexbench says, what it saves, and what it leaves behind."""

from __future__ import annotations

import fcntl
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tools import document, fake_server, trexbench

DUT = """
driver: linux
transport: {type: local}
speed: 10gbit
ports:
  - {tester: 0, interface: d0, address: 100.65.1.1/24, neighbour: {address: 100.65.1.2, mac: tester}}
  - {tester: 1, interface: d1, address: 100.65.2.1/24, neighbour: {address: 100.65.2.2, mac: tester}}
routes:
  - {to: 16.0.0.0/8, via: 100.65.1.2}
  - {to: 48.0.0.0/8, via: 100.65.2.2}
plan: {warmup: "10kpps:500ms", ramp_duration: 4s, hold: 1s, confirm: 1s, drain: 200ms, sample: 200ms}
"""
QUIET_WITHIN_S = 30.0
"""Three times the watchdog's three tries and the rest of what a start of this plan may last."""

# Faults come at 1.6 s, amid two samples (0.5 s, 0.7 s, ... after the start): at 1.5 s any command may be the first hit.


@dataclass
class Faulty:
    """A server with faults, and what a ramp against it came to."""

    process: subprocess.Popen[str]
    folder: Path
    done: subprocess.CompletedProcess[str]

    @property
    def said(self) -> str:
        """The one line with which the command ended."""
        lines = [line for line in self.done.stderr.splitlines() if line.startswith("trexbench: ")]
        assert len(lines) == 1 and "Traceback" not in self.done.stderr, self.done.stderr
        return lines[0]

    @property
    def document(self) -> Any:
        return document(self.folder)


@contextmanager
def ramp_against(folder: Path, *faults: str) -> Iterator[Faulty]:
    (folder / "mine.yaml").write_text(DUT)
    with fake_server(*faults) as server:
        options = ("--mode", "64b", "--bidir", "--no-picture", "-q", *server.options)
        done = trexbench(folder, "ramp", "--dut", "mine.yaml", *options, timeout_s=40)
        yield Faulty(server.process, folder, done)


def left_over(folder: Path) -> list[str]:
    """Processes of this run (its environment names its directory), the watchdog among them."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TREXBENCH_RUN_DIR={folder / 'run'}\0".encode() in environ.read_bytes():
                found.append((environ.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@pytest.fixture(scope="module", autouse=True)
def folders() -> Iterator[list[Path]]:
    """Folders of this module's ramps. At the end, sparing a wait for each watchdog: no process, and no lock held."""
    used: list[Path] = []
    yield used
    end = time.monotonic() + QUIET_WITHIN_S
    while processes := [one for folder in used for one in left_over(folder)]:
        assert time.monotonic() < end, processes
        time.sleep(0.1)
    locks = [lock for folder in used for lock in (folder / "run").glob("*.lock")]
    assert len(locks) == len(used)
    for lock in locks:
        with lock.open() as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.fixture
def folder(tmp_path: Path, folders: list[Path]) -> Path:
    folders.append(tmp_path)
    return tmp_path


def assert_kept(faulty: Faulty, samples: int = 6) -> None:
    """The samples so far are stored and shown, and nobody's router is blamed."""
    document, (line,) = faulty.document, faulty.said.splitlines()
    assert document["status"] == "incomplete"
    assert line == f"trexbench: {document['reason']}"
    assert len(document["samples"]) >= samples and document["samples"][-1]["phase"] in ("ramp", "hold")
    assert all(one["limit"] != "dut" for one in document["analysis"])
    assert "INCOMPLETE" in faulty.done.stdout and f"INCOMPLETE: {document['reason']}" in faulty.done.stdout
    assert "result   results/" in faulty.done.stderr


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("die@1600ms", "TRex server .* does not answer .Connection refused.: it ended or .*; look at its log"),
        ("hang@1600ms", "TRex server .* does not answer: it listens, but hangs; look at its log"),
    ],
)
def test_a_server_that_is_lost_ends_the_run(folder: Path, fault: str, said: str) -> None:
    """Other faults are in unit/test_generator_trex.py, unit/test_watchdog.py and unit/test_runner.py."""
    with ramp_against(folder, fault) as faulty:
        assert faulty.done.returncode == 5
        assert re.fullmatch(f"trexbench: {said}", faulty.said)
        assert_kept(faulty)
        if "die" in fault:
            assert faulty.process.wait(30) == -9
            assert faulty.process.stderr is not None and faulty.process.stderr.read() == ""
        else:
            assert any(one["code"] == "not-stopped" for one in faulty.document["warnings"])
