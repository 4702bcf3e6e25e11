"""Interface that every transport offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..core.errors import DutError
from .running import Completed, Running
from .words import shown

TIMEOUT_S = 15.0
"""For a command that reads or sets something."""


class Transport(Protocol):
    @property
    def place(self) -> str:
        """Where commands run, for messages: ``namespace tbx-dut``."""

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        """Run argv, fed with input; DutError if it cannot be started or takes longer than timeout_s."""

    def start(self, argv: Sequence[str]) -> Running:
        """Start argv and hold it open; DutError if it cannot be started, or only types lines at a prompt."""

    def close(self) -> None:
        """Close the connection; a later command opens it again."""


def run_checked(transport: Transport, argv: Sequence[str], timeout_s: float = TIMEOUT_S) -> str:
    """Return what a command prints; DutError with its complaint where its exit code is not 0."""
    done = transport.run(argv, timeout_s)
    if done.returncode:
        raise DutError(f"{shown(argv)} failed on {transport.place}", done.complaint)
    return done.stdout
