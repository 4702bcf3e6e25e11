"""Limit to which both hosts let a socket's buffers grow: set for a leg, read back, restored."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

from ..core.errors import DutError
from ..core.tcp.wan import format_size
from ..dut import Change, Command
from ..dut.linux.firewall import sysctl_file
from ..transport import Transport, run_checked
from .dut import ConnectedDut
from .temporary import NAME, Temporary

SYSCTLS = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")


class Buffers:
    """Socket buffers of these hosts. None: as they were found."""

    def __init__(self, hosts: Sequence[ConnectedDut]) -> None:
        self._hosts, self._stack = hosts, ExitStack()
        self._size: int | None = None

    def __enter__(self) -> Buffers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def set(self, size: int | None) -> None:
        """The largest that tcp_rmem and tcp_wmem allow, in bytes, on all hosts. DutError where one does not take it."""
        if size == self._size:
            return
        self._stack.close()
        self._size = None
        for host in self._hosts if size is not None else ():
            made = self._stack.enter_context(Temporary(host))
            for name in SYSCTLS:
                change = _change(host.transport, name, size or 0)
                made.make(change)
                if (found := _read(host.transport, name)) != change.wanted:
                    raise DutError(f"{name} on {host.transport.place} is {found[:60]!r}, not {change.wanted}")
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
