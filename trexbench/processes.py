"""Processes by pid and start time, since pids are reused; and the machine and boot that they belong to."""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from .core.errors import LabError

_HOST_PIDS = 0xEFFFFFFC
"""The inode of the pid namespace that a Linux machine boots with."""


@dataclass(frozen=True)
class Process:
    pid: int
    start: int
    """Start time in clock ticks since boot, which no other process of this pid has."""

    @classmethod
    def of(cls, pid: int) -> Process:
        fields = stat_fields(pid)
        if fields is None:
            raise LabError(f"process {pid} has ended")
        return cls(pid, int(fields[19]))

    @property
    def alive(self) -> bool:
        return start_of(self.pid) == self.start


@dataclass(frozen=True)
class Writer:
    """The process that writes a document, for readers on any machine."""

    process: Process
    boot: str
    pids: int
    """Inode of its pid namespace."""
    host: str
    """The machine's id and name; empty if it has no id."""

    @property
    def gone(self) -> bool:
        """True if it has certainly ended."""
        here = this_writer()
        return here is not None and self.gone_seen_from(here)

    def gone_seen_from(self, here: Writer) -> bool:
        """Return whether the processes of this boot, or a reboot since, prove it ended; containers prove nothing."""
        if self.boot == here.boot:
            return self.pids == here.pids and not self.process.alive and not _is_hidden(self.process.pid)
        return bool(here.host) and self.host == here.host and self.pids == here.pids == _HOST_PIDS


def this_writer() -> Writer | None:
    """Describe this process; None on a system without Linux's /proc."""
    with contextlib.suppress(OSError, LabError):
        try:
            host = f"{Path('/etc/machine-id').read_text().strip()} {platform.node()}".lstrip()
        except OSError:
            host = ""
        pids = os.stat("/proc/self/ns/pid").st_ino
        return Writer(Process.of(os.getpid()), boot_id(), pids, host if " " in host else "")
    return None


def _is_hidden(pid: int) -> bool:
    """Return whether it is another user's process, which /proc does not show (hidepid)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return stat_fields(pid) is None
    except (OSError, OverflowError):
        pass
    return False


def stat_fields(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third (state) on; the second may contain blanks and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def start_of(pid: int) -> int | None:
    """Start time of a running process; None if it has ended or is a zombie."""
    fields = stat_fields(pid)
    return None if fields is None or fields[0] in "ZX" else int(fields[19])


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
