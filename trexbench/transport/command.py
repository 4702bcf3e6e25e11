"""What every transport offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..core.errors import DutError
from .words import shown

TIMEOUT_S = 15.0
"""Of a command that asks for something or sets it."""


@dataclass(frozen=True)
class Completed:
    """A command that ran to its end; argv as it was asked for, without the transport's own words."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    duration_s: float

    @property
    def complaint(self) -> str:
        """What the command said when it failed, in one line."""
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return lines[-1].strip() if lines else f"exit code {self.returncode}"


class Transport(Protocol):
    @property
    def place(self) -> str:
        """Where commands run, for messages: ``namespace tbx-dut``."""

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        """Run argv, fed with input; DutError if it cannot be started or takes longer than timeout_s."""

    def close(self) -> None:
        """Give up what is open; a later command opens it again."""


def run_checked(transport: Transport, argv: Sequence[str], timeout_s: float = TIMEOUT_S) -> str:
    """What a command prints; DutError with its complaint where its exit code is not 0."""
    done = transport.run(argv, timeout_s)
    if done.returncode:
        raise DutError(f"{shown(argv)} failed on {transport.place}", done.complaint)
    return done.stdout
