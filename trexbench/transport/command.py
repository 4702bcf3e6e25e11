"""What every transport offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..core.errors import DutError
from .words import shown

TIMEOUT_S = 15.0
"""For a command that reads or sets something."""


@dataclass(frozen=True)
class Completed:
    """A command that ran to its end. argv: as the caller gave it, without what the transport puts around it."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    duration_s: float

    @property
    def complaint(self) -> str:
        """The last line of its output, or its exit code: for messages about its failure."""
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return lines[-1].strip() if lines else f"exit code {self.returncode}"


class Transport(Protocol):
    @property
    def place(self) -> str:
        """Where commands run, for messages: ``namespace tbx-dut``."""

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        """Run argv, fed with input; DutError if it cannot be started or takes longer than timeout_s."""

    def close(self) -> None:
        """Close the connection; a later command opens it again."""


def run_checked(transport: Transport, argv: Sequence[str], timeout_s: float = TIMEOUT_S) -> str:
    """What a command prints; DutError with its complaint where its exit code is not 0."""
    done = transport.run(argv, timeout_s)
    if done.returncode:
        raise DutError(f"{shown(argv)} failed on {transport.place}", done.complaint)
    return done.stdout
