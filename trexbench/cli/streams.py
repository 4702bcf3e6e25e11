"""Standard output and error that cannot harm a measurement when their readers block or fail."""

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
"""Largest number of waiting writes to standard error; beyond it, the oldest are dropped."""
PATIENCE_S = 1.0
"""Longest time that the end of the program, and writes to standard output, wait for standard error."""


class Messages(io.FileIO):
    """Standard error: a write never waits and never fails.

    A thread writes, since nothing else works wherever a write can block: non-blocking mode would help with a stopped
    terminal or a full pipe, but our parent shares it, and a hung network disk ignores it. The thread lives only while
    writes are waiting.
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
                threading.Thread(target=self._write_waiting, name="stderr", daemon=True).start()
        return len(data)

    def drain(self) -> None:
        """Wait up to PATIENCE_S until everything is written; once that was in vain, never again."""
        if not self._empty.wait(self._patience_s):
            self._patience_s = 0.0

    def _write_waiting(self) -> None:
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
    """Standard output: a write may wait, but does not fail; after the first error, output is lost."""

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
        """Return the exit code; if output was lost, report it and turn 0 into an error."""
        if self.error is None:
            return code
        if self.error.errno == errno.EPIPE:
            return code or 128 + signal.SIGPIPE  # the reader has closed the pipe
        print(f"trexbench: standard output is lost: {self.error.strerror}", file=sys.stderr)
        return code or 1


@contextmanager
def safe_streams() -> Iterator[StandardOutput | None]:
    """Make both streams safe within the block; None if they have been replaced, as in a test."""
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
