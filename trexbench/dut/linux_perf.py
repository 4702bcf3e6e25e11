"""The cycles that a Linux DUT's own performance counters count, where it lets them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ..core.errors import DutError
from ..core.telemetry import Missing
from ..transport import Transport
from .model import TIMEOUT_S
from .parse_linux_counters import parse_perf

SPAN_S = 2.0


def measure_cycles(transport: Transport, cpus: Sequence[int], span_s: float) -> float | Missing:
    """Cycles per second that these CPUs together spend not halted, over so long from now on; it waits that long.

    cpus: none are all of them.
    """
    chosen = ("-C", ",".join(map(str, cpus))) if cpus else ()
    argv = ("perf", "stat", "-x,", "-a", *chosen, "-e", "cycles", "sleep", f"{span_s:g}")
    try:
        done = transport.run(argv, span_s + TIMEOUT_S)
        if done.returncode:
            return Missing("perf stat", done.complaint)
        counted = parse_perf(done.stderr)
    except DutError as error:
        return Missing("perf stat", str(error))
    if counted is None:
        return Missing("perf stat", "it cannot count cycles there (not supported: a virtual machine without counters?)")
    return counted / span_s


class PerfBeside:
    """Counts cycles beside looks at the DUT, in a thread of its own: no look ever waits for it.

    Where perf cannot count (not installed, not permitted, not supported) it is tried once and then left alone. That is
    no doubt about any figure, CPU time being the one that decides, and so it is told nowhere.
    """

    def __init__(self, transport: Transport, span_s: float = SPAN_S) -> None:
        self._transport = transport
        self._span_s = span_s
        self._thread: threading.Thread | None = None
        self._found: list[float | Missing] = []

    def begin(self, cpus: Sequence[int]) -> None:
        """Count from now on, and forget what was counted before.

        While an earlier count still goes on none is begun: that one's belongs to no interval, and is dropped.
        """
        if any(isinstance(one, Missing) for one in self._found):
            return
        self._found = found = []
        if self._thread is not None and self._thread.is_alive():
            return

        def count() -> None:
            found.append(measure_cycles(self._transport, cpus, self._span_s))

        self._thread = threading.Thread(target=count, name="perf", daemon=True)
        self._thread.start()

    def take(self) -> float | None:
        """Cycles per second, once, if they have been counted by now."""
        if not self._found or isinstance(self._found[0], Missing):
            return None
        counted, self._found = self._found[0], []
        return counted
