"""results/index.cache: the rows of every run document, so that none is read twice; never the only copy of anything.

Opening the index reads the documents that are new or have changed, and replaces the whole file: a kill leaves the
former one, and of two writers the later one wins, which the next opening compares with the documents again. A file
that cannot be read, or that another version wrote, counts as empty.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from .. import files
from ..core.errors import StoreError
from ..core.history.known import is_date
from ..core.history.rows import RunRow
from ..core.history.series import night_of
from ..core.result import ANALYSIS_VERSION, Status
from .columns import column_names
from .document import EXPORT, is_interrupted, read_bytes, read_object
from .journal import SUFFIX
from .store import load_rows

INDEX_FILE = "index.cache"
MANY = 1000
"""Reading this many documents takes long enough to be announced."""


@dataclass
class Scan:
    """Documents below a results directory."""

    stamps: dict[str, str] = field(default_factory=dict)
    """Stamp of every document that may be a run, by its path below results."""
    running: set[str] = field(default_factory=set)
    """Documents that have a journal."""
    problems: list[tuple[str, str]] = field(default_factory=list)
    """Places that could not be read, and why."""


class IndexEntry(msgspec.Struct, frozen=True, array_like=True):
    """One document."""

    stamp: str
    rows: tuple[RunRow, ...] = ()
    problem: str | None = None
    """Why the document cannot be read."""


class Kept(msgspec.Struct, frozen=True):
    """The content of the file."""

    analysis: int
    """Version of the analysis that derived the rows."""
    fields: list[str]
    """Columns of the rows, which differ between versions."""
    documents: msgspec.Raw
    """An IndexEntry for each path below the results."""


@dataclass(frozen=True)
class Index:
    """Every run of a results directory as a row; see open_index."""

    entries: Mapping[str, IndexEntry]
    unread: Sequence[tuple[str, str]]
    """Other places that could not be read, such as directories: path below results, reason."""

    def rows(
        self,
        dut: str | None = None,
        mode: str | None = None,
        suite: str | None = None,
        label: str | None = None,
        since: str | None = None,
        limit: int | None = None,
    ) -> list[RunRow]:
        """List every readable run, oldest first. since: a date or its beginning. limit: only the newest so many."""
        rows = [
            row
            for entry in self.entries.values()
            for row in entry.rows
            if (dut is None or row.cell.dut == dut)
            and (mode is None or str(row.cell.mode) == mode)
            and (suite is None or row.suite == suite)
            and (label is None or row.label == label)
            and (since is None or row.started >= since)
        ]
        # simulated runs, and nights, may begin in one second: a.json, a-2.json, a-10.json
        rows.sort(key=lambda row: (row.started, night_of(row), len(row.path), row.path))
        return rows if limit is None else rows[max(0, len(rows) - limit) :]

    def problems(self) -> list[tuple[str, str]]:
        """List what could not be read, documents and directories: path below results, reason."""
        damaged = [(path, entry.problem) for path, entry in self.entries.items() if entry.problem is not None]
        return sorted([*self.unread, *damaged])


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Suspend garbage collection: searching many new objects, which have no cycles, takes most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def open_index(results: Path, warn: Callable[[str], None]) -> Index:
    """Open the index of this directory, up to date with its documents; ``warn`` if it cannot be written."""
    there = scan(results)
    kept, why = _read_kept(results / INDEX_FILE)
    stamps = there.stamps
    entries = {path: entry for path, entry in kept.items() if _is_current(entry, results / path, stamps.get(path))}
    new = stamps.keys() - entries.keys()
    if new and (why or len(new) >= MANY):
        warn(f"reading {len(new)} documents in {results}{why and f' anew: {why}'}")
    for path in sorted(new):
        file = results / path
        try:
            entries[path] = IndexEntry(stamps[path], load_rows(file, path))
        except StoreError as error:
            if os.path.lexists(file):  # otherwise it has been removed in the meantime
                entries[path] = IndexEntry(stamps[path], problem=plain(str(error).removeprefix(f"{file}: ")))
    if entries != kept:
        content = Kept(ANALYSIS_VERSION, column_names(), msgspec.Raw(msgspec.json.encode(entries)))
        place = results / INDEX_FILE
        try:
            files.sweep(results)
            files.replace_file(place, msgspec.json.encode(content))
        except OSError as error:
            warn(f"{place} cannot be kept ({error.strerror}): the index is made in memory, each time again")
    return Index(entries, there.problems)


def _is_current(entry: IndexEntry, file: Path, stamp: str | None) -> bool:
    """Test whether an entry still describes its document: a run in progress is read again once its process is gone."""
    if entry.stamp != stamp:
        return False
    if any(row.status == Status.RUNNING.value for row in entry.rows):
        with contextlib.suppress(StoreError):
            return not is_interrupted(read_object(file))
    return True


def _read_kept(file: Path) -> tuple[dict[str, IndexEntry], str]:
    """Return the entries of the file; or none, and why they cannot be used."""
    try:
        kept = msgspec.json.decode(read_bytes(file), type=Kept)
        if kept.fields != column_names():
            return {}, "the index was made by another version of trexbench"
        if kept.analysis != ANALYSIS_VERSION:
            made = f"the index was made with version {kept.analysis} of the analysis"
            return {}, f"{made}, this is version {ANALYSIS_VERSION}"
        return msgspec.json.decode(kept.documents, type=dict[str, IndexEntry]), ""
    except StoreError:  # there is none, or it cannot be read
        return {}, ""
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}, "the index was damaged"


def scan(results: Path) -> Scan:
    """List documents; a stamp is size, inode and times of a document, and those of its journal while it has one."""
    there = Scan()
    for day in _entries(there, results, ""):
        if is_date(day) or day == "undated":
            for dut in _entries(there, results, day):
                _add_documents(there, results, f"{day}/{dut}")
    return there


def _add_documents(there: Scan, results: Path, below: str) -> None:
    entries = _entries(there, results, below)
    for name, entry in entries.items():
        path = f"{below}/{name}"
        if not name.endswith(".json") or name.endswith(EXPORT):
            continue
        if plain(path) != path:
            there.problems.append((plain(path), "its name is not Unicode: rename it"))
            continue
        journal = entries.get(name.removesuffix(".json") + SUFFIX)
        if journal is not None:
            there.running.add(path)
        there.stamps[path] = _stamp(entry) + (f" {_stamp(journal)}" if journal else "")


def _entries(there: Scan, results: Path, below: str) -> dict[str, os.DirEntry[str]]:
    """Return what a folder has that is not hidden, by its name; nothing if it is no folder."""
    try:
        with os.scandir(results / below) as entries:
            return {entry.name: entry for entry in entries if not entry.name.startswith(".")}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:  # such as a link to itself
        there.problems.append((plain(below), str(error.strerror)))
        return {}


def _stamp(entry: os.DirEntry[str]) -> str:
    try:
        about = entry.stat()
    except OSError as error:  # a link to nowhere is a document that cannot be read
        return f"{error.errno}"
    return f"{about.st_size} {about.st_ino} {about.st_mtime_ns} {about.st_ctime_ns}"


def plain(text: str) -> str:
    """Make text storable: a name on disk need not be Unicode."""
    return text.encode("utf-8", "backslashreplace").decode()
