"""What was changed on a DUT and not yet taken back: written before each change, so that a crash forgets nothing."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from ..core.errors import StoreError
from .model import Command, Step

SCHEMA, VERSION = "trexbench/changes", 1
STATE_DIR_ENV = "TREXBENCH_STATE_DIR"


def state_dir() -> Path:
    """Where journals lie: it outlives a boot of this machine, as the DUT does."""
    if os.environ.get(STATE_DIR_ENV):
        return Path(os.environ[STATE_DIR_ENV])
    if os.geteuid() == 0:
        return Path("/var/lib/trexbench")
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "trexbench"


@dataclass(frozen=True)
class Entry:
    """One change: the DUT's identity when it was made, the place it was made on, and the step."""

    identity: str
    place: str
    step: Step


class Journal(Protocol):
    @property
    def name(self) -> str:
        """For messages: its file."""

    def entries(self) -> Sequence[Entry]:
        """What is still to be taken back, the oldest first."""

    def add(self, entry: Entry) -> None:
        """Written when this returns; StoreError where that cannot be."""

    def strike(self, entry: Entry) -> None:
        """It was taken back."""


class NoJournal:
    """Of a DUT that goes away after the run: nothing to take back."""

    name = "nowhere"

    def entries(self) -> Sequence[Entry]:
        return ()

    def add(self, entry: Entry) -> None:
        """Nothing is kept."""

    def strike(self, entry: Entry) -> None:
        """Nothing was kept."""


class FileJournal:
    """One DUT's journal: ``<directory>/changes/<dut>.json``, replaced as a whole; gone when nothing is left."""

    def __init__(self, dut: str, directory: Path) -> None:
        self._dut = dut
        self._path = directory / "changes" / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', dut)}.json"

    @property
    def name(self) -> str:
        return str(self._path)

    def entries(self) -> Sequence[Entry]:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ()
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{self._path} cannot be read ({error})", "it says what was changed on the DUT") from None
        try:
            document = json.loads(text)
            if document["schema"] != SCHEMA or document["version"] != VERSION:
                raise ValueError(f"{document['schema']!r}, version {document['version']!r}")
            return tuple(_entry(values) for values in document["entries"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StoreError(f"{self._path} is no journal of changes ({error})", "look at it, then remove it") from None

    def add(self, entry: Entry) -> None:
        self._write([*self.entries(), entry])

    def strike(self, entry: Entry) -> None:
        left = list(self.entries())
        for index in reversed(range(len(left))):
            if left[index] == entry:
                del left[index]
                break
        self._write(left)

    def _write(self, entries: Sequence[Entry]) -> None:
        document = {"schema": SCHEMA, "version": VERSION, "dut": self._dut, "entries": [asdict(e) for e in entries]}
        try:
            if not entries:
                self._path.unlink(missing_ok=True)
                return
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=".changes-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self._path)
        except OSError as error:
            raise StoreError(
                f"{self._path} cannot be written ({error.strerror or error})",
                f"nothing is changed that is not written down; {STATE_DIR_ENV} names another directory",
            ) from None


def _entry(values: Any) -> Entry:
    step = values["step"]
    return Entry(
        str(values["identity"]),
        str(values["place"]),
        Step(
            what=str(step["what"]),
            was=step["was"],
            wanted=str(step["wanted"]),
            do=tuple(_command(one) for one in step["do"]),
            undo=tuple(_command(one) for one in step["undo"]),
            lasts=bool(step["lasts"]),
            reveals=bool(step.get("reveals", False)),
        ),
    )


def _command(values: Any) -> Command:
    return Command(
        argv=tuple(str(word) for word in values["argv"]),
        why=str(values["why"]),
        input=values["input"],
        fine_if=tuple(str(words) for words in values["fine_if"]),
        says=values.get("says"),
        timeout_s=float(values["timeout_s"]),
        retry_s=float(values["retry_s"]),
    )
