"""Temporary settings on a host: journalled before they are made, undone when their part of the test is over."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from ..core.errors import BenchError, DutError
from ..core.tcp.wan import format_size
from ..dut import Change, Command
from ..dut.apply import run
from ..dut.journal import Entry
from ..dut.linux.firewall import sysctl_file
from ..transport import Transport, run_checked
from .dut import ConnectedDut

NAME = "for this test"
"""Variant name of such changes: those of a killed run are undone before the next run's are applied."""
BUFFER_SYSCTLS = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")


class Temporary:
    """Changes of one host, which are undone at the end of the block, the last one first."""

    def __init__(self, host: ConnectedDut) -> None:
        self._host, self._identity = host, ""
        self._made: list[Entry] = []

    def __enter__(self) -> Temporary:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Undo all changes; DutError names those that could not be undone, which the journal keeps."""
        failed: list[str] = []
        while self._made:
            entry = self._made.pop()
            try:
                for command in entry.change.undo:
                    run(self._host.transport, command)
                self._host.journal.remove(entry)
            except BenchError as failure:
                failed.append(f"{entry.change.what}: {failure}")
        if failed and error is None:  # else the first error is the one to report
            raise DutError(f"not everything was restored: {'; '.join(failed)}", "trexbench dut revert")

    def make(self, change: Change) -> None:
        """Make a change; DutError if one of its commands fails, which is undone with the rest."""
        self._identity = self._identity or self._host.dut.identity()
        entry = Entry(self._identity, self._host.transport.place, change)
        self._host.journal.add(entry)
        self._made.append(entry)
        for command in change.do:
            run(self._host.transport, command)


class Buffers(ExitStack):
    """Limit of the size of sockets' buffers on these hosts. None: as it was found."""

    def __init__(self, hosts: Sequence[ConnectedDut]) -> None:
        super().__init__()
        self._hosts = hosts
        self._size: int | None = None

    def set(self, size: int | None) -> None:
        """Set the largest size that tcp_rmem and tcp_wmem allow, in bytes. DutError if a host does not take it."""
        if size == self._size:
            return
        self.close()
        self._size = None
        for host in self._hosts if size is not None else ():
            made = self.enter_context(Temporary(host))
            for name in BUFFER_SYSCTLS:
                change = _change(host.transport, name, size or 0)
                made.make(change)
                if (now := _read(host.transport, name)) != change.wanted:
                    raise DutError(f"{name} on {host.transport.place} is {now[:60]!r}, not {change.wanted}")
        self._size = size


def _change(transport: Transport, name: str, size: int) -> Change:
    was = _read(transport, name)
    try:
        least, first, _ = map(int, was.split())
    except ValueError:
        raise DutError(f"{name} on {transport.place} is {was[:60]!r}", "it should be three numbers") from None
    wanted = f"{min(least, size)} {min(first, size)} {size}"

    def write(value: str) -> Command:
        return Command(("tee", sysctl_file(name)), f"buffers of up to {format_size(size)}", value + "\n")

    return Change(name, was, wanted, (write(wanted),), (write(was),), variant=NAME)


def _read(transport: Transport, name: str) -> str:
    return " ".join(run_checked(transport, ("cat", sysctl_file(name))).split())
