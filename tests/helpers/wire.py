"""Two network namespaces and a cable between them, for what needs two hosts and nothing else; and what PPPoE needs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trexbench.endpoint.programs.common import ProgramFailure
from trexbench.endpoint.programs.pppoe import require_kernel


def ip(*words: str) -> str:
    """Run ``ip`` and return what it prints."""
    return subprocess.run(["ip", *words], check=True, timeout=20, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def wired(names: Mapping[str, str]) -> Iterator[None]:
    """Namespaces of these names, by their roles; each has one end of the cable, v0, which is up and has no address."""
    first, second = names.values()
    try:
        for name in (first, second):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", first, "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", second)
        for name in (first, second):
            ip("-n", name, "link", "set", "v0", "up")
        yield
    finally:
        for name in (first, second):
            subprocess.run(["ip", "netns", "del", name], timeout=20)


def devices(name: str) -> set[str]:
    """Return the names of this namespace's devices."""
    return {line.split()[0].partition("@")[0] for line in ip("-n", name, "-br", "link").splitlines()}


def processes(name: str) -> list[int]:
    """Return the ids of the processes in this namespace."""
    return [int(pid) for pid in ip("netns", "pids", name).split()]


def told_to(pid: int) -> bytes:
    """Arguments and environment of a process; nothing of one that has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def lacks_pppoe() -> str:
    """Reason why no PPPoE session can come up on this machine, for a skip; empty where one can."""
    try:
        require_kernel()
    except ProgramFailure as failure:
        return failure.what
    missing = [name for name in ("pppd", "pppoe-server") if shutil.which(name) is None]
    return f"{missing[0]} is not installed" if missing else ""
