"""Kills a tester's process at the end of its lease: ``python -I guard.py PID``.

Reads lines, each a time of CLOCK_BOOTTIME that replaces the one before, or ``free``. At that time the process is
killed, even if it is stopped or hangs, and the watchdog of its traffic generator stops the traffic. The end of input
means that the process has ended. Uses only the standard library, in a session of its own.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time

_FREE = "free"
LOOK_EVERY_S = 1.0
"""Time between two looks at the clock, as the clock of select stands still while the machine sleeps."""


def now() -> float:
    """Return seconds of the clock that also counts while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def main(pid: int) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return guard(pid)


def guard(pid: int, lines: int = 0) -> int:
    """Guard a process; return 0 if it ended by itself, 1 if it was killed. lines: the descriptor that is read."""
    try:
        guarded = os.pidfd_open(pid)
    except ProcessLookupError:
        return 0
    deadline_s, unread = None, b""
    while True:
        left_s: float | None = None if deadline_s is None else max(0.0, deadline_s - now())
        wait_s: float | None = None if left_s is None else min(left_s, LOOK_EVERY_S)
        if not select.select([lines], [], [], wait_s)[0]:
            if left_s != wait_s:
                continue
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(guarded, signal.SIGKILL)
            return 1
        if not (data := os.read(lines, 4096)):
            return 0
        *whole, unread = (unread + data).split(b"\n")
        if whole:
            deadline_s = None if whole[-1] == _FREE.encode() else float(whole[-1])


class LeaseGuard:
    """Guard of this process, started with the first lease."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock, self._times_s = threading.Lock(), dict[object, float]()

    def kill_at(self, when_s: float | None, lease: object) -> None:
        """Set the time of this lease, in place of an earlier one; None: none. The earliest kills this process."""
        with self._lock:
            self._times_s.pop(lease, None)
            if when_s is not None:
                self._times_s[lease] = when_s
            self.send_time(min(self._times_s.values(), default=None))

    def send_time(self, when_s: float | None) -> None:
        """Send the time at which it kills this process to the guard's own; None: never."""
        line = f"{_FREE if when_s is None else when_s}\n".encode()
        for _ in range(2):
            if self._process is None or self._process.poll() is not None:
                argv = [sys.executable, "-I", __file__, str(os.getpid())]
                self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, bufsize=0, start_new_session=True)
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(line)
                return
            except BrokenPipeError:
                self._process.wait()
        raise OSError("the guard of this tester's leases does not stay alive")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
