"""results/index.cache: the rows of every run document, so that none is read twice; never the only copy of anything.

Opening it reads the documents that are new or have changed, and replaces the file as a whole: a kill leaves the former
one, and of two writers the later one's stays, which the next opening compares with the documents again. A file that
cannot be read, or that another version wrote, counts as empty.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from .. import files
from ..core.errors import ConfigError, StoreError
from ..core.history.rows import RunRow
from ..core.history.series import night_of
from ..core.result import ANALYSIS_VERSION, Status
from .columns import column_names, column_values
from .document import is_interrupted, read_bytes, read_object
from .scan import plain, scan
from .store import load_rows

INDEX_FILE = "index.cache"
QUERY_S = 60.0
MANY = 1000
"""Reading so many documents takes a while, which is said."""
_READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33)
"""Actions open to a query; 33 is SQLITE_RECURSIVE, which the module has no name for before Python 3.11."""


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
    """Names of what rows hold: those of another version's rows differ."""
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
        """Every readable run, oldest first. since: a date or the beginning of one. limit: the newest so many."""
        found = [
            row
            for entry in self.entries.values()
            for row in entry.rows
            if (dut is None or row.cell.dut == dut)
            and (mode is None or str(row.cell.mode) == mode)
            and (suite is None or row.suite == suite)
            and (label is None or row.label == label)
            and (since is None or row.started >= since)
        ]
        found.sort(key=lambda row: (row.started, night_of(row), row.path))  # simulated nights may begin in one second
        return found if limit is None else found[max(0, len(found) - limit) :]

    def problems(self) -> list[tuple[str, str]]:
        """List what could not be read, documents and directories: path below results, reason."""
        damaged = [(path, entry.problem) for path, entry in self.entries.items() if entry.problem is not None]
        return sorted([*self.unread, *damaged])

    def query(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of a SELECT on the tables ``runs`` and ``problems``; it can change nothing.

        ConfigError for any other statement, and for a query that takes longer than QUERY_S.
        """
        with contextlib.closing(sqlite3.connect(":memory:")) as db:
            _fill(db, "runs", column_names(), [column_values(row) for row in self.rows()])
            _fill(db, "problems", ["path", "reason"], self.problems())
            ends_s = time.monotonic() + QUERY_S
            db.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY)
            db.set_progress_handler(lambda: int(time.monotonic() > ends_s), 100_000)  # it also lets Ctrl-C through
            try:
                cursor = db.execute(sql)
                if cursor.description is None:
                    raise ValueError("there is no statement in it")
                return [column[0] for column in cursor.description], cursor.fetchall()
            except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
                reason = f"it took longer than {QUERY_S:g} s" if "interrupted" in str(error) else str(error).rstrip(".")
                raise ConfigError(f"query: {reason}", "it takes one SELECT on the table `runs`") from None


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Make no search for circles among many new objects, which have none: it takes most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def open_index(results: Path, warn: Callable[[str], None]) -> Index:
    """The index of this directory, up to date with its documents. ``warn`` gets a line where it cannot be written."""
    there = scan(results)
    kept, why = _read_kept(results / INDEX_FILE)
    entries = {path: entry for path, entry in kept.items() if _fits(entry, results / path, there.stamps.get(path))}
    new = there.stamps.keys() - entries.keys()
    if new and (why or len(new) >= MANY):
        warn(f"reading {len(new)} documents in {results}{why and f' anew: {why}'}")
    for path in sorted(new):
        if (entry := _read_document(results / path, path, there.stamps[path])) is not None:
            entries[path] = entry
    if entries != kept:
        _write(results, entries, warn)
    return Index(entries, there.problems)


def _fits(entry: IndexEntry, file: Path, stamp: str | None) -> bool:
    """Test whether the document need not be read again; one whose run went on must be, once its process is gone."""
    if entry.stamp != stamp:
        return False
    if any(row.status == Status.RUNNING.value for row in entry.rows):
        with contextlib.suppress(StoreError):
            return not is_interrupted(read_object(file))
    return True


def _read_document(file: Path, path: str, stamp: str) -> IndexEntry | None:
    """None for one that was removed in the meantime."""
    try:
        return IndexEntry(stamp, load_rows(file, path))
    except StoreError as error:
        problem = plain(str(error).removeprefix(f"{file}: "))
        return IndexEntry(stamp, problem=problem) if os.path.lexists(file) else None


def _read_kept(file: Path) -> tuple[dict[str, IndexEntry], str]:
    """The entries of the file; where they cannot be used, none, and why."""
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


def _write(results: Path, entries: Mapping[str, IndexEntry], warn: Callable[[str], None]) -> None:
    kept = Kept(ANALYSIS_VERSION, column_names(), msgspec.Raw(msgspec.json.encode(entries)))
    try:
        files.sweep(results)
        files.replace_file(results / INDEX_FILE, msgspec.json.encode(kept))
    except OSError as error:
        place = results / INDEX_FILE
        warn(f"{place} cannot be kept ({error.strerror}): the index is made in memory, each time again")


def _fill(db: sqlite3.Connection, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    db.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)
