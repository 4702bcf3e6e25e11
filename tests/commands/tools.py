"""Runs trexbench as a user does, and an embedded server that moves no packets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREXBENCH = (sys.executable, "-c", "from trexbench.cli import main; main()")


def environment(run_dir: Path) -> dict[str, str]:
    state = {"TREXBENCH_RUN_DIR": str(run_dir), "TREXBENCH_STATE_DIR": str(run_dir.parent / "state")}
    return {**os.environ, "PYTHONPATH": str(ROOT), **state}


def trexbench(cwd: Path, *arguments: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """The command, in a directory of its own; configs and profiles are the checkout's."""
    return subprocess.run(
        [*TREXBENCH, *arguments],
        cwd=cwd,
        env=environment(cwd / "run"),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        stdin=subprocess.DEVNULL,
    )


def begin(cwd: Path, *arguments: str) -> subprocess.Popen[str]:
    """The same, without waiting for its end."""
    return subprocess.Popen(
        [*TREXBENCH, *arguments],
        cwd=cwd,
        env=environment(cwd / "run"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def folder_with(folder: Path, **suites: str) -> Path:
    """The folder, with these suites in it."""
    (folder / "suites").mkdir(parents=True, exist_ok=True)
    for name, text in suites.items():
        (folder / "suites" / f"{name}.yaml").write_text(text)
    return folder


def await_line(run: subprocess.Popen[str], *words: str) -> None:
    """Read the run's progress until a line has all of these words, or it ends."""
    assert run.stderr is not None
    for line in run.stderr:
        if all(word in line for word in words):
            return


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[str]
    rpc_port: int
    pub_port: int

    @property
    def options(self) -> tuple[str, ...]:
        ports = ("--rpc-port", str(self.rpc_port), "--pub-port", str(self.pub_port))
        return ("--server", "127.0.0.1", *ports, "--no-apply")


@contextmanager
def fake_server(ports: int = 2) -> Iterator[Server]:
    """The embedded server with an engine that forwards perfectly and moves nothing."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "trexbench.stlserver", "--fake-ports", str(ports), "--die-with-parent"),
            *("--rpc-port", "0", "--pub-port", "0"),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdin is not None
    try:
        found = re.findall(r":(\d+)", process.stdout.readline())
        yield Server(process, int(found[0]), int(found[1]))
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
