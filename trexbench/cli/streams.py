"""Standard output and standard error that cannot harm a measurement when what reads them blocks or fails."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from ..signals import uninterrupted

STDOUT, STDERR = 1, 2
MOST_WAITING = 1000
"""Most writes to standard error that may wait; of more the oldest are dropped."""
PATIENCE_S = 1.0
"""The end of the program, and writes to standard output, wait so long for standard error."""


class Messages(io.FileIO):
    """Standard error: a write never waits and never fails.

    A thread writes, since nothing else works wherever a write can block: non-blocking mode would help with a stopped
    terminal or a full pipe, but our parent shares it, and a hung network disk ignores it. The thread lives only while
    something waits to be written.
    """

    def __init__(self) -> None:
        super().__init__(STDERR, "w", closefd=False)
        self._waiting: deque[bytes] = deque(maxlen=MOST_WAITING)
        self._lock = threading.Lock()
        self._empty = threading.Event()
        self._empty.set()
        self._patience_s = PATIENCE_S

    def write(self, data: Any) -> int:
        with uninterrupted(), self._lock:
            self._waiting.append(bytes(data))
            if self._empty.is_set():
                self._empty.clear()
                threading.Thread(target=self._work, name="stderr", daemon=True).start()
        return len(data)

    def drain(self) -> None:
        """Wait PATIENCE_S at most until everything is written; not at all once that was in vain."""
        if not self._empty.wait(self._patience_s):
            self._patience_s = 0.0

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._empty.set()
                    return
                data = self._waiting.popleft()
            with suppress(OSError):
                while data:
                    data = data[os.write(STDERR, data) :]


class StandardOutput(io.FileIO):
    """Standard output: a write may wait, but does not fail. error: the first failure; what comes after it is lost."""

    def __init__(self, messages: Messages, error: OSError | None) -> None:
        super().__init__(STDOUT, "w", closefd=False)
        self._messages, self.error = messages, error

    def write(self, data: Any) -> int:
        self._messages.drain()  # so that both are read in the order in which they were written
        left = bytes(data)
        try:
            while left and self.error is None:
                left = left[os.write(STDOUT, left) :]
        except OSError as error:
            self.error = error
        return len(data)

    def check(self, code: int) -> int:
        """The program's exit code; another one instead of 0 where what it printed was lost, which is said."""
        if self.error is None:
            return code
        if self.error.errno == errno.EPIPE:
            return code or 128 + signal.SIGPIPE  # the reader has closed the pipe
        print(f"trexbench: standard output is lost: {self.error.strerror}", file=sys.stderr)
        return code or 1


@contextmanager
def safe_streams() -> Iterator[StandardOutput | None]:
    """Make both streams safe until the end of the block; None where they were replaced, as in a test."""
    if sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__:
        yield None
        return
    former, closed = (sys.stdout, sys.stderr), _open_closed()
    messages = Messages()
    output = StandardOutput(messages, OSError(errno.EBADF, "it is closed") if STDOUT in closed else None)
    sys.stdout, sys.stderr = _text(output, former[0], output.isatty()), _text(messages, former[1], True)
    try:
        yield output
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        messages.drain()
        sys.stdout, sys.stderr = former


def _text(raw: io.FileIO, former: TextIO | None, by_line: bool) -> TextIO:
    encoding = former.encoding if former is not None else "utf-8"
    return io.TextIOWrapper(raw, encoding, "backslashreplace", line_buffering=by_line)


def _open_closed() -> list[int]:
    """Open the null device for each standard stream that is closed: the next file opened would take its number."""
    closed = []
    for descriptor in (0, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            closed.append(descriptor)
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free
    return closed
