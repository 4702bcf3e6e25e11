"""Run a process on this machine, with limits on its time and its output."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_LOOK_EVERY_S = 0.05
"""Interval at which the size of a process's output is checked; its end is noticed at once."""


@dataclass(frozen=True)
class Ended:
    """Outcome of a process. cut: the limit for which it was killed, ``time`` or ``size``, or empty."""

    returncode: int
    stdout: bytes
    stderr: bytes
    cut: str = ""


def run_bounded(argv: Sequence[str], input: bytes, timeout_s: float, limit_bytes: int, env: Mapping[str, str]) -> Ended:
    """Run argv in a session of its own, so that Ctrl-C does not reach it directly; OSError if it cannot start.

    limit_bytes holds for stdout and stderr each. The process and its children are killed when it takes longer or prints
    more, and on any exception here.
    """
    # Its input is a file: communicate, called again after a timeout, would not send the rest.
    with tempfile.TemporaryFile() as fed:
        fed.write(input)
        fed.seek(0)
        process = subprocess.Popen(
            list(argv),
            stdin=fed,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            start_new_session=True,
        )
    deadline, said, cut, ended = time.monotonic() + timeout_s, (b"", b""), "", False
    try:
        while not (ended or cut):
            left_s = deadline - time.monotonic()
            try:
                said, ended = process.communicate(timeout=min(_LOOK_EVERY_S, max(0.0, left_s))), True
            except subprocess.TimeoutExpired as error:  # it has all output so far; the next call continues
                said, cut = (error.stdout or b"", error.stderr or b""), "" if left_s > 0 else "time"
            cut = "size" if any(len(one) > limit_bytes for one in said) else cut
    finally:
        kill_group(process)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
    return Ended(process.returncode, *said, cut)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started in a session of its own, and what it started there; nothing if it has ended."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
