"""This process and its machine: facts for results, a run's clock, and the end of a run by signals."""

from __future__ import annotations

import _thread
import math
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any

from ..signals import ENDING, Interrupted, restore

SOON_S = 0.1
CLEANUP_S = 5.0
"""Time after a signal during which others are ignored; later ones end whatever still goes on."""
_LIBRARIES = ("trexbench", "lbr-trex-client", "pyzmq", "numpy", "scapy", "matplotlib")


def utc_now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class RunClock:
    """Seconds since it was made, on the monotonic clock."""

    def __init__(self) -> None:
        self._zero = time.monotonic()

    def now(self) -> float:
        return time.monotonic() - self._zero

    def sleep_until(self, t_s: float) -> None:
        left = t_s - self.now()
        if left > 0:
            time.sleep(left)


class HeldClock:
    """The run's clock, shared by harness, server and twin: its time passes only while the harness sleeps.

    Nothing that happens between two sleeps takes any time, so a run does not depend on how fast this machine is.
    speedup: simulated seconds per real second.
    """

    def __init__(self, speedup: float) -> None:
        self._speedup = speedup
        self._now_s = 0.0

    def now(self) -> float:
        return self._now_s

    def sleep_until(self, t_s: float) -> None:
        if t_s > self._now_s:
            time.sleep((t_s - self._now_s) / self._speedup)
            self._now_s = t_s


def host_facts() -> dict[str, Any]:
    """Facts about the tester's host that may matter to a result."""
    from ..host.linux import PLATFORM_FILES, platform_of  # slow to load, and every command needs this module

    versions: dict[str, str | None] = {}
    for name in _LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "hostname": platform.node(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": next((line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if "model name" in line), None),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
        "platform": platform_of({path: "".join(_lines(path)[:1]) for path in PLATFORM_FILES.values()}),
    }


def _lines(path: str) -> list[str]:
    """Lines of a file; none if it cannot be read."""
    with suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    return []


@contextmanager
def signals_as_exceptions() -> Iterator[Ender]:
    """Let SIGINT, SIGTERM and SIGHUP end the block with Interrupted; a block inside of another adds nothing.

    A signal that is ignored, as by ``nohup`` and background shells, stays ignored. Outside of the main thread, where
    no signal arrives, this does nothing.
    """
    ender = Ender()
    outer = next((handler for handler in map(signal.getsignal, ENDING) if isinstance(handler, Ender)), None)
    if outer is not None or threading.current_thread() is not threading.main_thread():
        yield outer or ender
        return
    hook, before = sys.unraisablehook, {number: signal.getsignal(number) for number in ENDING}
    try:
        sys.unraisablehook = ender.dropped
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, ender)
        yield ender
    finally:
        try:
            restore(before)
        finally:
            sys.unraisablehook = hook


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a signal end the block at once (all is cleaned up before it), even if foreign code hides it."""
    ender = next((handler for handler in map(signal.getsignal, ENDING) if isinstance(handler, Ender)), None)
    before = None if ender is None else ender.accept()
    try:
        yield
    except Exception:
        if ender is not None and ender.interrupted is not None and ender.interrupted is not before:
            raise ender.interrupted from None
        raise


class Ender:
    """A handler that raises Interrupted. For CLEANUP_S others are ignored; later ones end what still goes on.

    Python drops exceptions raised while it collects garbage, or turns those raised within an import into others, which
    a night would take for a cell's failure: in both cases the signal is sent again.
    """

    def __init__(self) -> None:
        self.interrupted: Interrupted | None = None
        """The last exception raised."""
        self._until_s = -math.inf
        self._import_until_s = math.inf
        self._hook = sys.unraisablehook

    def accept(self) -> Interrupted | None:
        """Ignore no further signal; return the last exception raised."""
        self._until_s = -math.inf
        return self.interrupted

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if now_s < self._until_s:
            return
        if _within_import(frame) and now_s < self._import_until_s:
            self._import_until_s = min(self._import_until_s, now_s + CLEANUP_S)
            _thread.start_new_thread(self._send_again, (number,))
            return
        self._until_s, self._import_until_s = now_s + CLEANUP_S, math.inf
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        self.interrupted = Interrupted(name, 128 + number)
        raise self.interrupted

    def dropped(self, about: sys.UnraisableHookArgs) -> None:
        if isinstance(about.exc_value, Interrupted):
            # Not threading.Thread, whose start waits: the signal must not come before this has returned.
            _thread.start_new_thread(self._send_again, (about.exc_value.exit_code - 128, True))
        else:
            self._hook(about)

    def _send_again(self, number: int, dropped: bool = False) -> None:
        time.sleep(SOON_S)
        if dropped:
            self._until_s = -math.inf
        os.kill(os.getpid(), number)


def _within_import(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
