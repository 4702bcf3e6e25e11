"""Totals of what kept a thread from its core: others that ran there, and the machine's host."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Taken:
    """waited_ns: ready to run while others ran (its run delay). preempted: involuntary switches to others. stolen_ns:
    for which the machine's host ran others on its CPU. None where the kernel does not say.
    """

    waited_ns: int | None = None
    preempted: int | None = None
    stolen_ns: int | None = None


class TakenWatch:
    """Reads them of the thread that made it, from any thread, also once it has ended. cpu: whose stolen time is read;
    None: of none.
    """

    def __init__(self, cpu: int | None) -> None:
        self._cpu = cpu
        self._files = [_opened(f"/proc/{name}") for name in ("thread-self/schedstat", "thread-self/status", "stat")]

    def read(self) -> Taken:
        delays, status, totals = map(_content, self._files)
        return parse_taken(delays, status, totals, self._cpu)

    def close(self) -> None:
        for descriptor in self._files:
            if descriptor >= 0:
                os.close(descriptor)


def _opened(path: str) -> int:
    """The file's descriptor; -1 where there is no such file."""
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return -1


def _content(descriptor: int) -> str:
    """The file's content; "" where there is none, as of a thread that has ended."""
    with contextlib.suppress(OSError):
        return os.pread(descriptor, 1 << 16, 0).decode()
    return ""


def parse_taken(schedstat: str, status: str, totals: str, cpu: int | None) -> Taken:
    """Find the figures in /proc's files of that name (``stat``: of all CPUs)."""
    delays, switches = schedstat.split(), _after(status, "nonvoluntary_ctxt_switches:")
    times = _after(totals, f"cpu{cpu} ")
    return Taken(
        waited_ns=int(delays[1]) if len(delays) > 1 else None,
        preempted=int(switches[0]) if switches else None,
        stolen_ns=int(times[7]) * _TICK_NS if len(times) > 7 else None,
    )


def _after(text: str, name: str) -> list[str]:
    """Words of the line that begins with this name, behind it."""
    return next((line[len(name) :].split() for line in text.splitlines() if line.startswith(name)), [])
