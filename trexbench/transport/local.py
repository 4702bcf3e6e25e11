"""Run commands on this machine, and in its network namespaces."""

from __future__ import annotations

import contextlib
import logging
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import DutError
from .command import Completed, Running, Transport, kill_group, missing, started, starting
from .words import shown

_LOG = logging.getLogger(__name__)
OUTPUT_LIMIT_BYTES = 16 << 20
_NETNS_DIR = Path("/run/netns")

_LOOK_EVERY_S = 0.05
"""Interval at which the size of a process's output is checked; its end is noticed at once."""


class LocalTransport(Transport):
    """Transport to this machine itself."""

    place = "this machine"

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        return run_here(argv, argv, self.place, timeout_s, input)

    def start(self, argv: Sequence[str]) -> Running:
        return Running(argv, argv, self.place, lambda done: done)


class NetnsTransport(LocalTransport):
    """Transport to a namespace by ``ip netns exec``, which mounts its /sys, where queues and RPS are set."""

    def __init__(self, namespace: str, bring_up: str = "") -> None:
        self.namespace, self._bring_up = namespace, bring_up or f"ip netns add {namespace}"
        self.place = f"namespace {namespace}"

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        return self._checked(run_here(self._inside(argv), argv, self.place, timeout_s, input))

    def start(self, argv: Sequence[str]) -> Running:
        return Running(self._inside(argv), argv, self.place, self._checked)

    def _inside(self, argv: Sequence[str]) -> Sequence[str]:
        if not (_NETNS_DIR / self.namespace).exists():
            raise DutError(f"{self.place} does not exist", f"bring it up: {self._bring_up}")
        return ["ip", "netns", "exec", self.namespace, *argv]

    def _checked(self, done: Completed) -> Completed:
        # only these words distinguish ip's own failures from the command's: its exit code varies
        if done.returncode and done.stderr.startswith(f'exec of "{done.argv[0]}" failed: No such file'):
            raise missing(done.argv[0], self.place)
        if done.returncode and re.match(r"setting the network namespace|Cannot open network namespace", done.stderr):
            raise DutError(f"{self.place} cannot be entered ({done.complaint})", "run as root")
        return done


def run_here(argv: Sequence[str], asked: Sequence[str], place: str, timeout_s: float, input: str | None) -> Completed:
    """Run a command as Transport.run does. argv: ``asked``, with what the transport puts around it."""
    what = f"{shown(asked)} on {place}"
    with starting(argv, asked, place):
        ended = run_bounded(argv, (input or "").encode(), timeout_s, OUTPUT_LIMIT_BYTES)
    if ended.cut == "time":
        raise DutError(f"{what} did not end within {timeout_s:g} s", "see whether the DUT still answers")
    if ended.cut == "size":
        raise DutError(f"{what} printed more than {OUTPUT_LIMIT_BYTES} bytes", "it was cut off: ask for less")
    stdout, stderr = ended.stdout.decode(errors="replace"), ended.stderr.decode(errors="replace")
    done = Completed(tuple(asked), ended.returncode, stdout, stderr)
    if done.returncode:
        _LOG.debug("%s: exit code %d: %s", what, done.returncode, done.complaint)
    return done


@dataclass(frozen=True)
class Ended:
    """Outcome of a process. cut: the limit that it exceeded and was killed for, ``time`` or ``size``, or empty."""

    returncode: int
    stdout: bytes
    stderr: bytes
    cut: str = ""


def run_bounded(argv: Sequence[str], input: bytes, timeout_s: float, limit_bytes: int) -> Ended:
    """Run argv to its end; OSError if it cannot start.

    limit_bytes holds for stdout and stderr each. The process and its children are killed when it takes longer or prints
    more, and on any exception here.
    """
    # Its input is a file: communicate, when called again after a timeout, would not send the rest.
    with tempfile.TemporaryFile() as fed:
        fed.write(input)
        fed.seek(0)
        process = started(argv, fed)
    deadline, output, cut, ended = time.monotonic() + timeout_s, (b"", b""), "", False
    try:
        while not (ended or cut):
            left_s = deadline - time.monotonic()
            try:
                output, ended = process.communicate(timeout=min(_LOOK_EVERY_S, max(0.0, left_s))), True
            except subprocess.TimeoutExpired as error:  # it has all output so far; the next call continues
                output, cut = (error.stdout or b"", error.stderr or b""), "" if left_s > 0 else "time"
            cut = "size" if any(len(stream) > limit_bytes for stream in output) else cut
    finally:
        kill_group(process)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
    return Ended(process.returncode, *output, cut)
