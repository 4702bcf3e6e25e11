"""Processes by pid and start time, since pids are reused; and the machine and boot that they are of."""

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
    """start: its start time in clock ticks since boot, which no other process of this pid has."""

    pid: int
    start: int

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
    """The process that writes a document, for readers on any machine. pids: the inode of its pid namespace.

    host: the machine's id and name; empty where it has no id.
    """

    process: Process
    boot: str
    pids: int
    host: str

    @property
    def gone(self) -> bool:
        """It is certain to have ended."""
        here = this_writer()
        return here is not None and self.gone_seen_from(here)

    def gone_seen_from(self, here: Writer) -> bool:
        """By this boot's processes, or since the machine was rebooted; containers and other machines prove nothing."""
        if self.boot == here.boot:
            return self.pids == here.pids and not self.process.alive and not _is_hidden(self.process.pid)
        return bool(here.host) and self.host == here.host and self.pids == here.pids == _HOST_PIDS


def this_writer() -> Writer | None:
    """None where the system has no /proc as Linux has it."""
    with contextlib.suppress(OSError, LabError):
        try:
            host = f"{Path('/etc/machine-id').read_text().strip()} {platform.node()}".lstrip()
        except OSError:
            host = ""
        pids = os.stat("/proc/self/ns/pid").st_ino
        return Writer(Process.of(os.getpid()), boot_id(), pids, host if " " in host else "")
    return None


def _is_hidden(pid: int) -> bool:
    """Another user's process, where /proc does not show those (hidepid)."""
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
    """Start time of a running process; None where there is none, or only a zombie."""
    fields = stat_fields(pid)
    return None if fields is None or fields[0] in "ZX" else int(fields[19])


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
