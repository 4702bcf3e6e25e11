"""Record a DUT's answers to the commands that read it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..config.model import DutConfig
from ..core.errors import BenchError
from ..transport import Completed, Transport
from .settings import Dut

SCHEMA, VERSION = "trexbench/dut-recording", 1
MASKED = "***"
_WORDS = r"pass(?:word|wd|phrase)|secret|psk|pre-?shared[-_]?key|private[-_]?key|community|token|bcrypt-hash|crypt|prv"
_VALUE = r"(?:\"[^\"\n]*\"|'[^'\n]*'|\S+)"
_SECRETS = (
    re.compile(rf"(?i)(<([\w-]*(?:{_WORDS})[\w-]*)>)[^<]*(?=</)"),
    re.compile(r"(-----BEGIN [A-Z ]+-----).*?(?=-----END)", re.DOTALL),
    # IOS states between both how the secret is encoded: ``password 7 ...``
    re.compile(rf"(?i)(\b[\w.-]*(?:{_WORDS})[\w.-]*\s*[=:]\s*|\b(?:r[ow])?(?:{_WORDS})\s+(?:[0-9] +)?)(?!\*){_VALUE}"),
    re.compile(rf"(?i)(\b[\w.]*(?:serial|uuid)[\w.]*\s*[=:]\s*){_VALUE}"),
)
"""Patterns of secrets, and of numbers that identify one machine; group 1 is the text before them."""


@dataclass(frozen=True)
class RecordedAnswer(Completed):
    """Outcome of a command, and its input."""

    input: str | None = None


@dataclass(frozen=True)
class Recording:
    """Recording of one DUT: its driver, the text of its config, and its answers."""

    driver: str
    config: str
    answers: tuple[RecordedAnswer, ...]
    failures: Mapping[str, str] = field(default_factory=dict)
    """Readings that failed, by the driver's method."""


class RecordingTransport(Transport):
    """Transport that keeps every answer, with secrets masked."""

    def __init__(self, transport: Transport) -> None:
        self._transport, self.place = transport, transport.place
        self.answers: list[RecordedAnswer] = []

    def run(self, argv: Sequence[str], timeout_s: float, input: str | None = None) -> Completed:
        done = self._transport.run(argv, timeout_s, input)
        masked_input = None if input is None else without_secrets(input)
        out, err = without_secrets(done.stdout), without_secrets(done.stderr)
        self.answers.append(RecordedAnswer(tuple(argv), int(done.returncode), out, err, masked_input))
        return done


def without_secrets(text: str) -> str:
    """Mask what looks like a secret, or identifies one machine."""
    for pattern in _SECRETS:
        text = pattern.sub(rf"\g<1>{MASKED}", text)
    return text


def record(dut: Dut, recorder: RecordingTransport, config: DutConfig) -> Recording:
    """Run every command of the driver that only reads; readings that fail are recorded as well."""
    failures: dict[str, str] = {}
    for name in ("identity", "plan", "verify", "observe"):
        try:
            getattr(dut, name)()
        except BenchError as error:
            failures[name] = without_secrets(str(error))
    return Recording(config.driver, without_secrets(config.text), tuple(recorder.answers), failures)


def recording_to_dict(recording: Recording) -> dict[str, Any]:
    return {"schema": SCHEMA, "version": VERSION, **msgspec.to_builtins(recording)}
