"""A process of this machine with an end in time and a limit on what it says."""

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
"""How often the size of what a process has said is looked at; its end is noticed at once."""


@dataclass(frozen=True)
class Ended:
    """How a process ended. cut: why it was killed, ``time`` or ``size``, or empty."""

    returncode: int
    stdout: bytes
    stderr: bytes
    cut: str = ""


def run_bounded(argv: Sequence[str], input: bytes, timeout_s: float, limit_bytes: int, env: Mapping[str, str]) -> Ended:
    """Run argv in a session of its own, so that Ctrl-C reaches it through its caller only; OSError if it cannot start.

    limit_bytes holds for stdout and stderr each. The process and its children are killed when it takes longer or says
    more, and on any exception here.
    """
    # A file feeds it: communicate, called again after its time is over, would send nothing more of an input.
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
            except subprocess.TimeoutExpired as error:  # it has all that was read; the next call goes on from there
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
