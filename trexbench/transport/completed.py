"""Outcome of a command."""

from __future__ import annotations

from dataclasses import dataclass


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
