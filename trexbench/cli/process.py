"""This process and the machine it runs on: what a result says of them, and how signals end a run."""

from __future__ import annotations

import _thread
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from ..runner import Interrupted

SOON_S = 0.1
_LIBRARIES = ("trexbench", "lbr-trex-client", "pyzmq", "numpy", "scapy", "matplotlib")


def host_facts() -> dict[str, Any]:
    """The tester, as far as it may matter to a result."""
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
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _cpu_model() -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        return None
    return lines[0] if lines else None


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP end the block with Interrupted, once: what follows the first is clean-up's time.

    Python drops what is raised while it collects garbage or finishes an import: then the signal is sent again.
    """
    seen = False

    def handle(number: int, _frame: object) -> None:
        nonlocal seen
        if seen:
            return
        seen = True
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        raise Interrupted(name, 128 + number)

    def dropped(about: sys.UnraisableHookArgs) -> None:
        if isinstance(about.exc_value, Interrupted):
            # Not threading.Thread, whose start waits: the signal must not come while this is still running.
            _thread.start_new_thread(send_again, (about.exc_value.exit_code - 128,))
        else:
            hook(about)

    def send_again(number: int) -> None:
        nonlocal seen
        time.sleep(SOON_S)
        seen = False
        os.kill(os.getpid(), number)

    hook = sys.unraisablehook
    sys.unraisablehook = dropped
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
