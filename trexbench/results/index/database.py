"""results/index.sqlite: the rows of every run document, brought up to date at each opening, rebuilt whenever in doubt.

A document that is new or has changed is read, one that was removed is dropped, all in one transaction. A kill leaves
the former index. Where the index cannot be written it is made in memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ...core.errors import ConfigError, StoreError
from ...core.history.rows import Cell, RunRow
from ...core.history.series import night_of
from ...core.result import ANALYSIS_VERSION, Status
from ..document import is_interrupted, read_object
from ..store import load_rows
from .scan import Scan, plain, scan

INDEX_FILE = "index.sqlite"
LAYOUT = 9
"""To be raised with every change of the tables, and of the fields of a RunRow."""
ANALYSES = 10_000
SCHEMA_VERSION = LAYOUT * ANALYSES + ANALYSIS_VERSION
"""Version of the whole file: its layout, and the version of the analysis that derived its figures."""
_SQL_WORDS = {"limit": "limited_by"}
_PLACES = {field.name: field.name for field in fields(RunRow) if field.name != "cell"}
_PLACES |= {field.name: f"cell.{field.name}" for field in fields(Cell)}
"""Columns of the view ``runs``: RunRow's fields and its cell's; ``limit`` is a word of SQL. nodes: JSON."""
_TAKEN = ", ".join(f"json_extract(value, '$.{at}') AS {_SQL_WORDS.get(name, name)}" for name, at in _PLACES.items())
TABLE = "CREATE TABLE documents (path TEXT PRIMARY KEY, stamp TEXT NOT NULL, problem TEXT, line TEXT)"
VIEWS = (
    f"CREATE TEMP VIEW runs AS SELECT {_TAKEN} FROM documents, json_each(line) WHERE problem IS NULL",
    "CREATE TEMP VIEW problems AS SELECT path, problem AS reason FROM documents WHERE problem IS NOT NULL",
)
"""Temporary, for each connection: views stored in the file could have been replaced by somebody else's SQL."""

_GOES_ON = " running"
"""The end of the stamp of a document whose run went on when it was read."""
LOCKED_FOR_S = 120.0
"""Time for which another process may build the index before this one makes its own in memory."""
QUERY_S = 60.0
MANY = 1000
MEMORY = ":memory:"
rows_of_line = msgspec.json.Decoder(tuple[RunRow, ...]).decode
_READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33)
"""Actions open to a query; 33 is SQLITE_RECURSIVE, which the module has no name for before Python 3.11."""
_UNUSABLE = (sqlite3.DatabaseError, ValueError, TypeError)
T = TypeVar("T")


@contextlib.contextmanager
def open_index(results: Path, warn: Callable[[str], None]) -> Iterator[Index]:
    """The index of this directory, up to date with its documents. ``warn`` gets a line where it cannot be written."""
    index = Index(results, warn)
    try:
        index.refresh()
        yield index
    finally:
        index.close()


class Index:
    """Every run of a results directory as a row; see open_index."""

    def __init__(self, results: Path, warn: Callable[[str], None]) -> None:
        self._results, self._warn = results, warn
        self._place: str | Path = results / INDEX_FILE if results.is_dir() else MEMORY
        self._inode, self._copied = -1, False
        self._scan = Scan()
        self._connection: sqlite3.Connection | None = None

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
        sql = "SELECT line FROM documents WHERE problem IS NULL"
        known = self._guarded(lambda db: [row for (line,) in db.execute(sql) for row in rows_of_line(line)])
        found = [
            row
            for row in known
            if dut in (None, row.cell.dut)
            and mode in (None, row.cell.mode)
            and suite in (None, row.suite)
            and label in (None, row.label)
            and row.started >= (since or "")
        ]
        found.sort(key=lambda row: (row.started, night_of(row), row.path))  # simulated nights may begin in one second
        return found if limit is None else found[max(0, len(found) - limit) :]

    def problems(self) -> list[tuple[str, str]]:
        """List what could not be read, documents and directories: path below results, reason."""
        sql = "SELECT path, problem FROM documents WHERE problem IS NOT NULL"
        return sorted([*self._scan.problems, *self._guarded(lambda db: list(db.execute(sql)))])

    def query(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of a SELECT on the views ``runs`` and ``problems``; it can change nothing.

        ConfigError for any other statement, and for a query that takes longer than QUERY_S.
        """
        db, ends_s = self._open(), time.monotonic() + QUERY_S
        db.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY)
        db.set_progress_handler(lambda: int(time.monotonic() > ends_s), 100_000)  # it also lets Ctrl-C through
        try:
            cursor = db.execute(sql)
            if cursor.description is None:
                raise ValueError("there is no statement in it")
            return [column[0] for column in cursor.description], cursor.fetchall()
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            reason = f"it took longer than {QUERY_S:g} s" if "interrupted" in str(error) else str(error).rstrip(".")
            raise ConfigError(f"query: {reason}", "it takes one SELECT on the view `runs`") from None
        finally:
            db.set_authorizer(lambda *_: sqlite3.SQLITE_OK)  # None takes it away since Python 3.11 only
            db.set_progress_handler(None, 0)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def refresh(self) -> None:
        """Bring the index up to date with the documents."""
        self._guarded(self._update)

    def _guarded(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The work's result; an index that is damaged is rebuilt, one that cannot be written is made in memory."""
        for remedy in (self._rebuild, self._go_to_memory):
            try:
                return work(self._open())
            except _UNUSABLE as error:
                self.close()
                remedy(error)
        return work(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            db = _connected(str(self._place))
            try:
                if isinstance(self._place, Path):
                    self._inode = self._place.stat().st_ino
                elif self._copied:
                    _copy(self._results / INDEX_FILE, db)
                self._update(db)
                for statement in VIEWS:
                    db.execute(statement)
            except BaseException:
                db.close()
                raise
            self._connection = db
        return self._connection

    def _rebuild(self, error: Exception) -> None:
        """Remove a damaged index, but not one that another process has just rebuilt."""
        if not _is_damage(error):
            self._go_to_memory(error)
            return
        with contextlib.suppress(OSError):
            directory = os.open(self._results, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(directory, fcntl.LOCK_EX)
                if (self._results / INDEX_FILE).stat().st_ino == self._inode:
                    for name in (f"{INDEX_FILE}-journal", f"{INDEX_FILE}-wal", f"{INDEX_FILE}-shm", INDEX_FILE):
                        (self._results / name).unlink(missing_ok=True)
            finally:
                os.close(directory)

    def _go_to_memory(self, error: Exception) -> None:
        if self._place == MEMORY:
            return
        self._warn(f"{self._place} cannot be kept ({error}): the index is made in memory, each time again")
        self._place, self._copied = MEMORY, not _is_damage(error)

    def _update(self, db: sqlite3.Connection) -> None:
        if _version(db) == SCHEMA_VERSION:
            self._scan = scan(self._results)
            if self._scan.stamps == self._stamps(db):
                return
        db.execute("BEGIN IMMEDIATE")
        try:
            self._bring_up_to_date(db, _prepare(db))
            db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise

    def _bring_up_to_date(self, db: sqlite3.Connection, why: str) -> None:
        """why: the reason for which all documents are read again, if any."""
        self._scan = scan(self._results)  # again: before we had the lock, others may have written
        there, known = self._scan.stamps, self._stamps(db)
        gone = [(path,) for path in known if path not in there]
        new = [path for path, stamp in there.items() if known.get(path) != stamp]
        if new and (why or len(new) >= MANY):
            self._warn(f"reading {len(new)} documents in {self._results}{why and f' anew: {why}'}")
        db.executemany("DELETE FROM documents WHERE path = ?", gone)
        sql = "INSERT OR REPLACE INTO documents (path, stamp, problem, line) VALUES (?, ?, ?, ?)"
        db.executemany(sql, (values for path in new if (values := self._document(path, there[path])) is not None))

    def _stamps(self, db: sqlite3.Connection) -> dict[str, str]:
        """Stamps of what need not be read again; a run that went on must be, once its process is gone."""
        found = dict(db.execute("SELECT path, stamp FROM documents"))
        for path in [path for path, stamp in found.items() if stamp.endswith(_GOES_ON)]:
            found[path] = found[path].removesuffix(_GOES_ON)
            with contextlib.suppress(StoreError):
                if is_interrupted(read_object(self._results / path)):
                    found[path] = ""
        return found

    def _document(self, path: str, stamp: str) -> tuple[str, str, str | None, str | None] | None:
        """Return what the index stores of a document; None for one that was removed in the meantime."""
        file = self._results / path
        if path in self._scan.nameless:
            return path, stamp, "its name is not Unicode: rename it", None
        try:
            rows = load_rows(file, path)
            goes_on = _GOES_ON if any(row.status == Status.RUNNING.value for row in rows) else ""
            return path, stamp + goes_on, None, msgspec.json.encode(rows).decode()
        except StoreError as error:
            problem = str(error).removeprefix(f"{file}: ")
            return (path, stamp, plain(problem), None) if os.path.lexists(file) else None


def _connected(place: str) -> sqlite3.Connection:
    """A connection without implicit transactions, which writes nothing to disk before a commit."""
    db = sqlite3.connect(place, timeout=LOCKED_FOR_S, isolation_level=None)
    db.execute("PRAGMA cache_spill = OFF")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA trusted_schema = OFF")
    return db


def _copy(kept: Path, db: sqlite3.Connection) -> None:
    """Copy the index into this database, so that its documents need not be read again."""
    with contextlib.suppress(sqlite3.Error, ValueError):
        place = f"{kept.absolute().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(place, uri=True)) as source:
            source.backup(db)


def _prepare(db: sqlite3.Connection) -> str:
    """Make the tables of this version in place of another one's; why that was necessary, or nothing."""
    found = _version(db)
    if found == SCHEMA_VERSION:
        return ""
    things = list(db.execute("SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view')"))
    for kind, name in things:
        if not name.startswith("sqlite_"):
            quoted = name.replace('"', '""')
            db.execute(f'DROP {kind} IF EXISTS "{quoted}"')
    db.execute(TABLE)
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    layout, analysis = divmod(found, ANALYSES)
    if not things:
        return ""
    if layout != LAYOUT:
        return "the index was made by another version of trexbench"
    return f"the index was made with version {analysis} of the analysis, this is version {ANALYSIS_VERSION}"


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _is_damage(error: Exception) -> bool:
    """The database can be opened, but its content is not what it should be."""
    return not isinstance(error, sqlite3.OperationalError) or bool(
        re.search(r"no such|has no column|values for|malformed", str(error))
    )
