"""A server that fails in the middle of a ramp: what trexbench says, what it saves, and what it leaves behind."""

from __future__ import annotations

import fcntl
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rpc import ask
from tools import await_line, begin, document, fake_server, trexbench

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
    rpc_port: int
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

    def status(self) -> list[tuple[str, str]]:
        """Owner and state of both ports."""
        status = [ask(self.rpc_port, "get_port_status", port_id=port) for port in (0, 1)]
        return [(one["owner"], one["state"]) for one in status]

    def comes_to(self, wanted: list[tuple[str, str]]) -> bool:
        """Wait in bounded time until owners and states become these; fail if they do not."""
        end = time.monotonic() + QUIET_WITHIN_S
        while (found := self.status()) != wanted:
            if time.monotonic() > end:
                pytest.fail(f"the ports are {found}, not {wanted}")
            time.sleep(0.1)
        return True


FREE = [("", "IDLE"), ("", "IDLE")]
STREAMS_LEFT = [("", "STREAMS"), ("", "STREAMS")]
"""State in which the watchdog leaves the ports: it stops and releases, and does no more."""


@contextmanager
def ramp_against(folder: Path, *faults: str) -> Iterator[Faulty]:
    (folder / "mine.yaml").write_text(DUT)
    with fake_server(*faults) as server:
        options = ("--mode", "64b", "--bidir", "--no-picture", "-q", *server.options)
        done = trexbench(folder, "ramp", "--dut", "mine.yaml", *options, timeout_s=40)
        yield Faulty(server.process, server.rpc_port, folder, done)


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


HANGS = "TRex server .* does not answer: it listens, but hangs; look at its log"
ENDED = [
    ("die@1600ms", "TRex server .* does not answer .Connection refused.: it ended or .*; look at its log", None),
    ("hang@1600ms", HANGS, None),
    pytest.param("hang@1600ms:8s", HANGS, FREE, marks=pytest.mark.nightly),
    pytest.param("drop@1600ms:3", HANGS, STREAMS_LEFT, marks=pytest.mark.nightly),
]
"""Faults that end a run, the line that says so, and what the ports come to; None: the server is lost.

Links that go down and counters that stand still or go back are in unit/test_runner.py.
"""


@pytest.mark.parametrize(("fault", "said", "ports"), ENDED)
def test_a_fault_that_ends_the_run(folder: Path, fault: str, said: str, ports: list[tuple[str, str]] | None) -> None:
    with ramp_against(folder, fault) as faulty:
        assert faulty.done.returncode == 5
        assert re.fullmatch(f"trexbench: {said}", faulty.said)
        assert_kept(faulty)
        if "die" in fault:
            assert faulty.process.wait(30) == -9
            assert faulty.process.stderr is not None and faulty.process.stderr.read() == ""
        if fault == "hang@1600ms":
            assert any(one["code"] == "not-stopped" for one in faulty.document["warnings"])
        assert ports is None or faulty.comes_to(ports)


@pytest.mark.parametrize("fault", ["hang@1600ms:4s", "drop@1600ms:1"])
def test_an_answer_that_is_late_or_lost_is_asked_for_once_more(folder: Path, fault: str) -> None:
    """The first exchange after a pause between two samples reads; what it was to say is asked for again."""
    with ramp_against(folder, fault) as faulty:
        assert faulty.done.returncode == 0, faulty.done.stderr
        assert faulty.document["status"] == "complete"
        codes = [one["code"] for one in faulty.document["warnings"]]
        # A busy machine may pause between the readings of two ports: that looks like loss for one window.
        assert [code for code in codes if code != "transient-loss"] == ["not-attested", "gap"]
        assert faulty.comes_to(FREE)


def test_a_port_that_is_stolen(folder: Path) -> None:
    with ramp_against(folder, "steal0@1600ms") as faulty:
        assert faulty.done.returncode == 5
        thief = "port 0 was taken away by 'somebody else': agree on who measures, then rerun"
        assert faulty.said == f"trexbench: {thief}"
        assert_kept(faulty)
        assert any(one["code"] == "not-stopped" and thief in one["text"] for one in faulty.document["warnings"])
        # ours is stopped and given back; the other one is the thief's, and the duration of its start ends its traffic
        (owner, _), ours = faulty.status()
        assert owner == "somebody else" and ours == ("", "IDLE")


@pytest.mark.nightly
def test_a_process_that_was_stopped_has_a_gap_that_is_a_doubt_and_no_verdict(folder: Path) -> None:
    (folder / "mine.yaml").write_text(DUT)
    with fake_server() as server:
        options = ("--mode", "64b", "--bidir", "--no-picture", *server.options)
        run = begin(folder, "ramp", "--dut", "mine.yaml", *options)
        await_line(run, "  ramp  ")
        run.send_signal(signal.SIGSTOP)
        time.sleep(4.5)  # for longer than the client waits: an answer under way is asked for, or waited for, again
        run.send_signal(signal.SIGCONT)
        out, said = run.communicate(timeout=40)
    assert run.returncode == 0, said
    found = document(folder)
    times = [sample["t_s"] for sample in found["samples"]]
    assert max(after - before for before, after in pairwise(times)) > 2.0
    assert found["status"] == "complete" and "gap" in [one["code"] for one in found["warnings"]]
    assert "dut" not in [one["limit"] for one in found["analysis"]]
    assert "no sample was taken from" in " ".join(out.split())
