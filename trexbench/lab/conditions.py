"""Conditions of the lab's cores during a measurement: stolen time, and time of other programs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..core.errors import BenchError
from ..core.load.sample import Conditions, CoreState
from ..host.linux import USER_HZ, parse_programs
from ..processes import stat_fields
from .state import LabState

EVERY_S = 0.9
"""Conditions are read with the first sample after this time: once a second, if samples are as frequent."""
_USER_TICKS, _CHILDRENS_USER_TICKS = 11, 13
"""Fields of /proc/PID/stat, as processes.stat_fields counts them."""
Cores = tuple[int, ...]


class CoreWatch:
    """Reads a lab's conditions. cores: by role, ``sender`` and ``router``.

    processes: the lab's own by pid, with the cores that their programs use.
    """

    def __init__(
        self,
        cores: Mapping[str, Cores],
        processes: Mapping[int, Cores],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cores, self._processes, self._clock = cores, processes, clock
        self._due_s = 0.0

    def read(self) -> Conditions | None:
        """Read the conditions, as far as possible; None if they were read less than EVERY_S ago."""
        now_s = self._clock()
        if now_s < self._due_s:
            return None
        self._due_s = now_s + EVERY_S
        with contextlib.suppress(OSError, BenchError, LookupError):
            return Conditions(dict(self._states()))
        return Conditions()

    def _states(self) -> Iterator[tuple[str, CoreState]]:
        times = parse_programs(Path("/proc/stat").read_text().splitlines())
        own = [(cores, _user_s(pid)) for pid, cores in self._processes.items()]
        for role, cores in self._cores.items():
            programs_s = sum(times[cpu][0] for cpu in cores) - sum(user_s for at, user_s in own if {*at} & {*cores})
            stolen_s = sum(times[cpu][1] for cpu in cores)
            yield role, CoreState(stolen_s / len(cores), programs_s / len(cores))


def watch_of(lab: LabState) -> CoreWatch:
    """Make the reader of a lab that is up."""
    placed = lab.placement
    sender, harness = (() if cpu is None else (cpu,) for cpu in (placed.sender, placed.harness))
    cores = {role: cpus for role, cpus in (("sender", sender), ("router", placed.router)) if cpus}
    server = lab.parts["server"]
    # The embedded server's sender never leaves the kernel; of VPP, only the workers run all the time.
    sending = sender if server.kind == "trex" else harness
    processes: dict[int, Cores] = {os.getpid(): harness, server.process.pid: sending}
    processes |= {part.process.pid: placed.router for part in (lab.router, lab.nudger) if part is not None}
    return CoreWatch(cores, processes)


def _user_s(pid: int) -> float:
    """Return the user time (s) of a process and its ended children; 0 once it has ended."""
    fields = stat_fields(pid)
    return (int(fields[_USER_TICKS]) + int(fields[_CHILDRENS_USER_TICKS])) / USER_HZ if fields else 0.0
