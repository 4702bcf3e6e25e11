"""Changes made on a DUT and not yet reverted: each is written before it is made, so that a crash loses nothing."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import msgspec

from ..core.errors import StoreError
from ..results.shared import shared_files
from .settings import Change

SCHEMA, VERSION = "trexbench/changes", 1
STATE_DIR_ENV, JOURNAL_DIR_ENV = "TREXBENCH_STATE_DIR", "TREXBENCH_JOURNAL_DIR"


def state_dir() -> Path:
    """Directory of the journals: it outlives a reboot of this machine, as the DUT's settings do."""
    if os.environ.get(STATE_DIR_ENV):
        return Path(os.environ[STATE_DIR_ENV])
    if os.geteuid() == 0:
        return Path("/var/lib/trexbench")
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "trexbench"


def journal_dir() -> Path:
    """Directory of the journals of changes: a fleet's testers share one."""
    return Path(os.environ.get(JOURNAL_DIR_ENV) or state_dir())


class Entry(msgspec.Struct, frozen=True, rename={"change": "step"}):
    """One change, with the DUT's identity when it was made and the place it was made on."""

    identity: str
    place: str
    change: Change


class _Document(msgspec.Struct, frozen=True):
    schema: str
    version: int
    dut: str
    entries: tuple[Entry, ...]


class NoJournal:
    """Journal of a DUT that is removed after the run: nothing to revert."""

    name = "nowhere"

    def entries(self) -> Sequence[Entry]:
        return ()

    def add(self, entry: Entry) -> None: ...

    def remove(self, entry: Entry) -> None: ...


class FileJournal:
    """Journal of one DUT, ``<directory>/changes/<dut>.json``: replaced as a whole, and deleted when it is empty.

    A name of other letters has its digest behind ``~``, which a journal of an earlier version lacks.
    """

    def __init__(self, dut: str, directory: Path) -> None:
        self._dut = dut
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", dut)
        digest = "" if plain == dut else f"~{sha256(os.fsencode(dut)).hexdigest()[:16]}"
        self._path = directory / "changes" / f"{plain}{digest}.json"
        self._former = self._path.with_name(f"{plain}.json")
        self._files = shared_files(self._path.parent, mode=0o700)
        self.name = str(self._path)

    def entries(self) -> Sequence[Entry]:
        """Read what is still to be reverted, the oldest first."""
        document = self._read(self._path)
        if document is not None and document.dut != self._dut:
            remedy = "revert that DUT's changes first, by this command with its name"
            raise StoreError(f"{self._path} has changes of the DUT {document.dut}", remedy)
        return document.entries if document is not None else self._former_entries()

    def _former_entries(self) -> Sequence[Entry]:
        document = self._read(self._former) if self._former != self._path else None
        return document.entries if document is not None and document.dut == self._dut else ()

    def _read(self, path: Path) -> _Document | None:
        not_ours = f"{path} is not a journal of changes"
        try:
            if (data := self._files.read(path.name)) is None:
                return None
            document = msgspec.json.decode(data, type=_Document)
        except OSError as error:
            raise StoreError(f"{path} cannot be read ({error.strerror})", "run as its owner") from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise StoreError(f"{not_ours} ({error})", "inspect it, then remove it") from None
        if (document.schema, document.version) != (SCHEMA, VERSION):
            stated = f"{document.schema!r}, version {document.version}"
            raise StoreError(f"{not_ours} ({stated})", "inspect it, then remove it")
        return document

    def add(self, entry: Entry) -> None:
        """Write an entry, which is on disk when this returns; StoreError where it cannot be written."""
        self._write([*self.entries(), entry])

    def remove(self, entry: Entry) -> None:
        """Remove an entry that was reverted: the last one that equals it, unless another has removed it."""
        left = list(reversed(self.entries()))
        with contextlib.suppress(ValueError):
            left.remove(entry)
        self._write(left[::-1])

    def _write(self, entries: Sequence[Entry]) -> None:
        try:
            if entries:
                document = msgspec.json.encode(_Document(SCHEMA, VERSION, self._dut, tuple(entries)))
                self._files.replace(self._path.name, msgspec.json.format(document, indent=1))
            else:
                self._files.remove(self._path.name)
            if self._former_entries():
                self._files.remove(self._former.name)
        except OSError as error:
            raise StoreError(
                f"{self._path} cannot be written ({error.strerror or error})",
                f"no change is made without a record of it; {STATE_DIR_ENV} names another directory",
            ) from None


Journal: TypeAlias = FileJournal | NoJournal
