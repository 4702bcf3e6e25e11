"""This machine as the host of a lab: what it needs, its cores and processes."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core.errors import LabError
from ..host.files import parse_cpus
from ..stlserver.kernel.bpf import OLDEST_KERNEL, kernel_version


def check(embedded: bool, euid: int | None = None, release: str | None = None, ip: str | None = None) -> None:
    """Raise LabError if this machine cannot host a lab; arguments replace what the machine reports."""
    if (os.geteuid() if euid is None else euid) != 0:
        raise LabError("the lab makes network namespaces, which needs root", "run it with sudo")
    linux = release or os.uname().release
    if embedded and kernel_version(linux) < OLDEST_KERNEL:
        what = f"Linux {linux} is too old for the embedded server: it sends with XDP live frames, in Linux since 5.18"
        raise LabError(what, "boot a newer kernel, or put a real TRex on the ports with --trex-dir")
    if not (shutil.which("ip") if ip is None else ip):
        raise LabError("the program ip is not installed", "install the package iproute2")


def usable_cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def run_in_real_time(pid: int = 0, policy: int = os.SCHED_FIFO) -> None:
    """Give a process (0: the calling thread) the sender's real-time priority, where that is permitted."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(pid, policy, os.sched_param(1))


def processes() -> Iterator[tuple[int, str]]:
    """Yield pid and name of each process of this machine, kernel threads included."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield int(entry.name), (entry / "comm").read_text().strip()


def siblings(cpus: Sequence[int]) -> dict[int, list[int]]:
    """Map each CPU to the CPUs (hyper-threads) on the same physical core, itself included."""
    by_cpu = {cpu: [cpu] for cpu in cpus}
    for cpu in cpus:
        with contextlib.suppress(OSError):
            text = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
            by_cpu[cpu] = parse_cpus(text.strip()) or [cpu]
    return by_cpu
