"""A process of this machine with an end in time and a limit on what it says."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

_CHUNK = 65536


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
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.PIPE if input else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env),
        start_new_session=True,
    )
    try:
        outputs, cut = _converse(process, input, time.monotonic() + timeout_s, limit_bytes)
    finally:
        kill_group(process)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
    return Ended(process.returncode, bytes(outputs[0]), bytes(outputs[1]), cut)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started in a session of its own, and what it started there; nothing if it has ended."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _converse(
    process: subprocess.Popen[bytes], input: bytes, deadline: float, limit_bytes: int
) -> tuple[tuple[bytearray, bytearray], str]:
    """Feed and read until outputs are closed and the process has ended: what it said, and why it must be killed."""
    assert process.stdout is not None and process.stderr is not None
    outputs = (bytearray(), bytearray())
    unsent = memoryview(input)
    with selectors.DefaultSelector() as ready:
        for pipe, said in ((process.stdout, outputs[0]), (process.stderr, outputs[1])):
            ready.register(pipe, selectors.EVENT_READ, said)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            ready.register(process.stdin, selectors.EVENT_WRITE)
        while ready.get_map():
            events = ready.select(max(0.0, deadline - time.monotonic()))
            if not events and time.monotonic() >= deadline:
                return outputs, "time"
            for key, _ in events:
                pipe = _pipe(key)
                if key.data is None:
                    unsent = _feed(pipe, unsent)
                    done = not unsent
                else:
                    chunk = os.read(key.fd, _CHUNK)
                    key.data.extend(chunk)
                    done = not chunk
                if done:
                    ready.unregister(pipe)
                    pipe.close()
            if any(len(said) > limit_bytes for said in outputs):
                return outputs, "size"
            if time.monotonic() >= deadline and ready.get_map():
                return outputs, "time"
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return outputs, "time"
    return outputs, ""


def _pipe(key: selectors.SelectorKey) -> IO[bytes]:
    pipe = key.fileobj
    assert not isinstance(pipe, int)
    return pipe  # type: ignore[return-value]


def _feed(pipe: IO[bytes], unsent: memoryview) -> memoryview:
    """What is left to send; nothing if the other side listens no more."""
    try:
        return unsent[os.write(pipe.fileno(), unsent[:_CHUNK]) :]
    except BlockingIOError:
        return unsent
    except BrokenPipeError:
        return unsent[:0]
