"""Can this machine host a lab? And what its cores are."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import LabError

LIVE_FRAMES_KERNEL = (5, 18)
"""The first Linux whose BPF_PROG_TEST_RUN sends live frames: what the embedded server's engine needs."""


def check(embedded: bool, euid: int | None = None, release: str | None = None, ip: str | None = None) -> None:
    """LabError, in one line with the remedy, for a machine that cannot; arguments replace what the machine says."""
    if (os.geteuid() if euid is None else euid) != 0:
        raise LabError("the lab makes network namespaces, which takes root", "run it with sudo")
    found = release or os.uname().release
    match = re.match(r"(\d+)\.(\d+)", found)
    if embedded and match and (int(match[1]), int(match[2])) < LIVE_FRAMES_KERNEL:
        raise LabError(
            f"Linux {found} is too old for the embedded server: it sends with XDP live frames, in Linux since 5.18",
            "boot a newer kernel, or put a real TRex on the ports with --trex-dir",
        )
    if not (shutil.which("ip") if ip is None else ip):
        raise LabError("the program ip is not installed", "install the package iproute2")


def usable_cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def siblings(cpus: Sequence[int]) -> dict[int, list[int]]:
    """For each core, those that share its hardware (hyper-threads), itself included."""
    return {cpu: _siblings_of(cpu) for cpu in cpus}


def _siblings_of(cpu: int) -> list[int]:
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
    except OSError:
        return [cpu]
    found: list[int] = []
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found or [cpu]
