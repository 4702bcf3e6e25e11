"""Interface of every transport, the outcome of a command, and a process that is held open."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from subprocess import PIPE
from typing import IO, Protocol

from ..core.errors import DutError
from .words import shown

_LOG = logging.getLogger(__name__)
TIMEOUT_S = 15.0
"""Time limit of a command that reads or sets something."""
LINE_LIMIT_BYTES = 64 << 20
_STDERR_BYTES = 65536
_SEND_S = 15.0
_PACKAGES = {"ip": "iproute2", "tc": "iproute2", "tee": "coreutils", "nft": "nftables"}
_CLOSE_S = 2.0
"""Time for a process to end by itself once its stdin is closed, before it is killed."""


@dataclass(frozen=True)
class Completed:
    """Command that ran to its end. argv: as the caller gave it, without what the transport puts around it."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str

    @property
    def complaint(self) -> str:
        """Last line of its output, else its exit code or the signal that ended it, for messages about its failure."""
        output = self.stderr.strip() or self.stdout.strip()
        # nft quotes the rule below a message, and marks the place
        lines = re.sub(r"\n.*\n[\s^~]*\^[\s^~]*$", "", output).splitlines()
        code = self.returncode
        return lines[-1].strip() if lines else f"exit code {code}" if code >= 0 else f"signal {-code}"


def environment() -> dict[str, str]:
    """This process's environment with messages in English, and without the program by which ssh asks for passwords."""
    kept = {key: value for key, value in os.environ.items() if key != "SSH_ASKPASS"}
    return {**kept, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}


def missing(program: str, place: str) -> DutError:
    """Error for a program that is not installed."""
    return DutError(f"{program} is not installed on {place}", f"install the package {_PACKAGES.get(program, program)}")


def started(
    argv: Sequence[str], stdin: int | IO[bytes], stdout: int = PIPE, stderr: int | IO[bytes] = PIPE
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, so that Ctrl-C does not reach it directly; OSError if that fails."""
    return subprocess.Popen(
        list(argv), stdin=stdin, stdout=stdout, stderr=stderr, env=environment(), start_new_session=True
    )


@contextlib.contextmanager
def starting(argv: Sequence[str], asked: Sequence[str], place: str) -> Iterator[None]:
    """Raise DutError where a program cannot be started. asked: argv without what the transport puts around it."""
    _LOG.debug("%s on %s", shown(asked), place)
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError) and error.filename == argv[0]:  # not a place for temporary files
            raise missing(argv[0], place) from None
        raise DutError(f"{shown(asked)} on {place} cannot be run: {error}") from None


class Running:
    """Process that is held open. Its pipes end with this process, however that ends."""

    def __init__(
        self,
        argv: Sequence[str],
        asked: Sequence[str],
        place: str,
        checked: Callable[[Completed], Completed],
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the process; DutError where it cannot be.

        argv: with what the transport puts around ``asked``. checked: how its ``run`` judges a command that has ended.
        """
        self.argv, self.place = tuple(asked), place
        self._checked, self._at_end = checked, at_end
        with starting(argv, asked, place):
            self._stderr = tempfile.TemporaryFile()  # noqa: SIM115, closed with the process
            try:
                self._process = started(argv, PIPE, stderr=self._stderr)
            except BaseException:
                self._stderr.close()
                raise
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        os.set_blocking(self._in.fileno(), False)
        self._begun_line = b""
        self._done: Completed | None = None
        self.ended = False
        """True once its stdout has ended."""

    def fileno(self) -> int:
        """File descriptor that is readable when ``lines`` has something to return."""
        return self._out.fileno()

    def send(self, data: bytes, timeout_s: float = _SEND_S) -> None:
        """Write to its stdin; DutError if it does not take all of it in time. If it has ended, ``finish`` says why."""
        with contextlib.suppress(BrokenPipeError):
            if not write_all(self._in.fileno(), data, timeout_s):
                what = f"{shown(self.argv)} on {self.place} does not read its input"
                raise DutError(what, "see whether it still answers")

    def lines(self) -> list[str]:
        """Wait for output, and return the lines that are complete; set ``ended`` at the end of the output."""
        chunk = os.read(self._out.fileno(), 1 << 20)
        self.ended = not chunk
        *whole, self._begun_line = (self._begun_line + chunk).split(b"\n")
        if len(self._begun_line) > LINE_LIMIT_BYTES:
            raise DutError(f"{shown(self.argv)} on {self.place} printed a line of more than {LINE_LIMIT_BYTES} bytes")
        return [line.decode(errors="replace") for line in whole]

    def end_input(self) -> None:
        """Close its stdin; its output can still be read."""
        with contextlib.suppress(OSError):
            self._in.close()

    def finish(self, within_s: float = _CLOSE_S) -> Completed:
        """Close its stdin and kill it if it does not end in time; DutError where ``run`` would raise it."""
        self._end(within_s)
        assert self._done is not None
        return self._checked(self._done)

    def close(self) -> None:
        """End it like ``finish`` but without judging its outcome; harmless when repeated."""
        self._end(_CLOSE_S)

    def _end(self, within_s: float) -> None:
        if self._done is not None:
            return
        self.end_input()
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            kill_group(self._process)
        self._out.close()
        self._stderr.seek(0)
        stderr = self._stderr.read(_STDERR_BYTES).decode(errors="replace")
        self._stderr.close()
        self._done = Completed(self.argv, self._process.returncode, "", stderr)
        self._at_end()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_all(file: int, data: bytes, timeout_s: float) -> bool:
    """Write to a file that does not block; False if it has not taken all of it in time."""
    deadline, left = time.monotonic() + timeout_s, memoryview(data)
    while left:
        if not select.select([], [file], [], max(0.0, deadline - time.monotonic()))[1]:
            return False
        left = left[os.write(file, left) :]
    return True


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started in a session of its own, and what it started there; nothing if it has ended."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Transport(Protocol):
    """Way to a DUT or a host, by which commands are run there."""

    place: str
    """Name of where commands run, for messages: ``namespace tbx-dut``."""

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        """Run argv, fed with input; DutError if it cannot be started or takes longer than timeout_s."""

    def start(self, argv: Sequence[str]) -> Running:
        """Start argv and hold it open; DutError if it cannot be started, or nothing can be held open there."""
        raise DutError(f"{shown(argv)} cannot be held open on {self.place}", "it needs a login with a shell")

    def close(self) -> None:
        """Close the connection, if there is one; a later command opens it again."""
        return  # most have none


def run_checked(transport: Transport, argv: Sequence[str], timeout_s: float = TIMEOUT_S) -> str:
    """Run a command and return its stdout; DutError with its complaint where its exit code is not 0."""
    done = transport.run(argv, timeout_s)
    if done.returncode:
        raise DutError(f"{shown(argv)} failed on {transport.place}", done.complaint)
    return done.stdout
