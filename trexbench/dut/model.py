"""What a driver did to a DUT, and what it found there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from ..core.errors import DutError


@dataclass(frozen=True)
class Command:
    """One step of bringing a DUT into its state: argv, what is fed to it, and why."""

    argv: tuple[str, ...]
    why: str
    input: str | None = None


@dataclass(frozen=True)
class Mismatch:
    what: str
    wanted: str
    found: str

    def __str__(self) -> str:
        return f"{self.what}: wanted {self.wanted}, found {self.found}"


@dataclass(frozen=True)
class Attestation:
    """What was read back from a DUT. Not ``attested``: nothing was read, and ``facts`` say why.

    facts: JSON values; None where the DUT did not say, with the reason under ``unknown``.
    """

    dut: str
    driver: str
    attested: bool
    facts: Mapping[str, Any]
    applied: Sequence[Command] = ()
    mismatches: Sequence[Mismatch] = field(default_factory=tuple)

    @property
    def digest(self) -> str:
        """SHA-256 over the facts: two runs with the same one measured the same configuration."""
        return hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode()).hexdigest()

    def to_document(self) -> dict[str, Any]:
        """JSON for the result."""
        return {
            "dut": self.dut,
            "driver": self.driver,
            "attested": self.attested,
            "applied": [asdict(command) for command in self.applied],
            "facts": dict(self.facts),
            "facts_sha256": self.digest if self.attested else None,
            "mismatches": [asdict(mismatch) for mismatch in self.mismatches],
        }

    def require_match(self) -> Attestation:
        """This, or DutError naming everything that is not as it was wanted."""
        if self.mismatches:
            found = "; ".join(str(mismatch) for mismatch in self.mismatches)
            raise DutError(f"{self.dut} is not what its config says: {found}", "measure nothing before it matches")
        return self


class Dut(Protocol):
    def apply(self) -> Sequence[Command]:
        """Bring the DUT into the state of its config; twice is the same as once."""

    def verify(self) -> Attestation:
        """Read back everything the config asks for, and what else decides the figure."""
