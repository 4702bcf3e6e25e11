"""Runs trexbench as a user does, and an embedded server that moves no packets."""

from __future__ import annotations

import atexit
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine_fake import FakeEngine

from trexbench.stlserver.rpc.server import StlServer

ROOT = Path(__file__).resolve().parents[2]
TREXBENCH = (sys.executable, "-m", "trexbench")


def environment(run_dir: Path) -> dict[str, str]:
    state = {"TREXBENCH_RUN_DIR": str(run_dir), "TREXBENCH_STATE_DIR": str(run_dir.parent / "state")}
    return {**os.environ, "PYTHONPATH": str(ROOT), **state}


class Forks:
    """Commands in forks of one process (preload.py), which spares each of them a second or two of imports."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests" / "helpers" / "preload.py")],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # select() does not see a second line that was read along with the first
        )

    def begin(self, cwd: Path, arguments: Sequence[str], out: Path, err: Path, loads: Sequence[str] = ()) -> int:
        """Its process id. It gets the environment as it is now, which a test may have changed.

        loads: modules that add themselves to trexbench's tables.
        """
        assert self._process.stdin is not None
        asked = [str(cwd), arguments, [str(out), str(err)], environment(cwd / "run"), loads]
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def has_ended(self, within_s: float) -> bool:
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], within_s)[0])

    def exit_code(self) -> int:
        """Wait for the end of the command begun last and return its exit code."""
        return self._answer()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def _answer(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


@cache
def shared_forks() -> Forks:
    """For all tests, one command after the other."""
    forks = Forks()
    atexit.register(forks.close)
    return forks


def trexbench(
    cwd: Path, *arguments: str, timeout_s: float = 120, loads: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """The command, in a directory of its own; configs and profiles are the checkout's."""
    forks = shared_forks()
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        child = forks.begin(cwd, arguments, out, err, loads)
        if not (ended := forks.has_ended(timeout_s)):
            os.kill(child, signal.SIGKILL)
        code = forks.exit_code()
        done = subprocess.CompletedProcess(arguments, code, out.read_text(errors="replace"), err.read_text())
    if not ended:
        raise subprocess.TimeoutExpired(arguments, timeout_s, done.stdout, done.stderr)
    return done


def succeed(cwd: Path, *arguments: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """The command, which ends with 0."""
    done = trexbench(cwd, *arguments, timeout_s=timeout_s)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
    return done


def documents(cwd: Path) -> list[Any]:
    """The runs in this directory's results, in the order in which they were begun."""
    return [json.loads(path.read_text()) for path in sorted(cwd.glob("results/20*/*/*.json"))]


def document(cwd: Path) -> Any:
    """The only one of them."""
    (only,) = documents(cwd)
    return only


def begin(cwd: Path, *arguments: str, command: Sequence[str] = TREXBENCH) -> subprocess.Popen[str]:
    """Start the command as a process of its own, without waiting for its end."""
    return subprocess.Popen(
        [*command, *arguments],
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
    rpc_port: int
    pub_port: int

    @property
    def where(self) -> tuple[str, ...]:
        return ("--server", "127.0.0.1", "--rpc-port", str(self.rpc_port), "--pub-port", str(self.pub_port))

    @property
    def options(self) -> tuple[str, ...]:
        return (*self.where, "--no-apply")


@contextmanager
def fake_server() -> Iterator[Server]:
    """The embedded server, in this process, with an engine that forwards perfectly and moves nothing."""
    with StlServer(FakeEngine()) as server:
        yield Server(server.rpc_port, server.pub_port)


@contextmanager
def server_apart(*faults: str, ports: int = 2) -> Iterator[tuple[Server, subprocess.Popen[str]]]:
    """The same as a process of its own, which fails in these ways."""
    options = ["--ports", str(ports), "--rpc-port", "0", "--pub-port", "0", "--die-with-parent"]
    options += [word for fault in faults for word in ("--fault", fault)]
    with subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "helpers" / "engine_fake.py"), *options],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if faults else None,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            rpc, pub = re.findall(r":(\d+)", process.stdout.readline())
            yield Server(int(rpc), int(pub)), process
        finally:
            process.stdin.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()  # or Popen's own end waits for ever
                raise
