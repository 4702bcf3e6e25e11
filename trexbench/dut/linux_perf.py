"""The cycles that a Linux DUT's own performance counters count, where it lets them."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.errors import DutError
from ..core.telemetry import Missing
from ..transport import Transport
from .model import TIMEOUT_S
from .parse_linux_counters import parse_perf


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
