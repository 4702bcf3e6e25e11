"""Settings on a host for a part of a test only: journalled before they are made, undone when that part is over."""

from __future__ import annotations

from types import TracebackType

from ..core.errors import BenchError, DutError
from ..dut import Change
from ..dut.apply import run
from ..dut.journal import Entry
from .dut import ConnectedDut

NAME = "for this test"
"""Variant name of such changes: what a killed run has left is undone before the next one's are applied."""


class Temporary:
    """The changes of one host; whatever was made is undone at the end of the block, the last one first."""

    def __init__(self, there: ConnectedDut) -> None:
        self._there, self._identity = there, ""
        self._made: list[Entry] = []

    def __enter__(self) -> Temporary:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.undo()
        except BenchError:
            if error is None:  # the first error is the one to tell; the journal has what is left
                raise

    def make(self, change: Change) -> None:
        """DutError where a command of it fails; what it may have done is undone with the rest."""
        self._identity = self._identity or self._there.dut.identity()
        entry = Entry(self._identity, self._there.transport.place, change)
        self._there.journal.add(entry)
        self._made.append(entry)
        for command in change.do:
            run(self._there.transport, command)

    def undo(self) -> None:
        """DutError, at the end, names what could not be undone, which the journal keeps."""
        failed: list[str] = []
        while self._made:
            entry = self._made.pop()
            try:
                for command in entry.change.undo:
                    run(self._there.transport, command)
            except DutError as error:
                failed.append(f"{entry.change.what}: {error}")
                continue
            self._there.journal.remove(entry)
        if failed:
            raise DutError(f"not everything was restored: {'; '.join(failed)}", "trexbench dut revert")
