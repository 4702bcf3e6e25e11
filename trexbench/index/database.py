"""results/index.sqlite: a line for every run document, brought up to date at each opening, rebuilt whenever in doubt.

A document is known by its size, inode and times; one that is new or another is read, one that is gone is forgotten, all
in one transaction. Whoever kills it leaves the former index. Where it cannot be written it is made in memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ..core.errors import ConfigError, StoreError
from ..core.history import RunRow
from .reading import RowReader
from .schema import COLUMNS, CREATE, SCHEMA_VERSION, VIEW, row_from_values, values_of

INDEX_FILE = "index.sqlite"
LOCKED_FOR_S = 120.0
"""How long another process may be building the index before ours is made in memory."""
QUERY_S = 60.0
MANY = 1000
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}|undated")
_READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33)
"""What a query may do; 33 is SQLITE_RECURSIVE, which the module has no name for before Python 3.11."""
T = TypeVar("T")


@contextlib.contextmanager
def open_index(results: Path, warn: Callable[[str], None]) -> Iterator[Index]:
    """The index of this directory, in agreement with its documents. ``warn``: a line where it cannot be kept."""
    index = Index(results, warn)
    try:
        index.refresh()
        yield index
    finally:
        index.close()


class Index:
    """Every run of a results directory in a line each; see open_index."""

    def __init__(self, results: Path, warn: Callable[[str], None]) -> None:
        self._results, self._warn = results, warn
        self._reader = RowReader()
        self._unreadable: list[tuple[str, str]] = []
        self._nameless: set[str] = set()
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
        """Every readable run, oldest first. since: a date or the beginning of one. limit: only the newest so many."""
        wanted = [
            ("dut = ?", dut),
            ("mode = ?", mode),
            ("suite = ?", suite),
            ("label = ?", label),
            ("started >= ?", since),
        ]
        given = [(words, _plain(value)) for words, value in wanted if value is not None]
        where = f" WHERE {' AND '.join(words for words, _ in given)}" if given else ""
        sql = f"SELECT {', '.join(COLUMNS)} FROM {VIEW}{where} ORDER BY started DESC, path DESC LIMIT ?"
        values = [*(value for _, value in given), -1 if limit is None else max(0, limit)]
        found = self._guarded(lambda db: [row_from_values(one) for one in db.execute(sql, values)])
        return found[::-1]

    def problems(self) -> list[tuple[str, str]]:
        """Documents that could not be read: path below results, reason."""
        sql = "SELECT path, reason FROM problems"
        return sorted([*self._unreadable, *self._guarded(lambda db: list(db.execute(sql)))])

    def query(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Names of the columns and the rows of a SELECT on the views ``runs`` and ``problems``; nothing can be changed.

        ConfigError for what is no such thing, or takes longer than QUERY_S.
        """
        db, ends_s = self._open(), time.monotonic() + QUERY_S
        db.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY)
        db.set_progress_handler(lambda: int(time.monotonic() > ends_s), 100_000)  # also where Ctrl-C is heard
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
        """The work's result; an index that is damaged is made anew, one that cannot be kept is made in memory."""
        try:
            return work(self._open())
        except sqlite3.OperationalError as error:
            if _is_damage(error):
                self._discard()
            else:
                self._open_in_memory(str(error))
        except (sqlite3.DatabaseError, ValueError, TypeError):
            self._discard()
        try:
            self._update(self._open())
            return work(self._open())
        except (sqlite3.Error, ValueError, TypeError) as error:
            self._open_in_memory(str(error))
        try:
            self._update(self._open())
            return work(self._open())
        except sqlite3.Error as error:
            place = self._results / INDEX_FILE
            raise StoreError(f"{place}: {error}", "remove it: it is made anew from the documents") from error

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            there = self._results.is_dir()
            place = str(self._results / INDEX_FILE) if there else ":memory:"
            self._connection = _connected(place)
            _prepare(self._connection)
        return self._connection

    def _open_in_memory(self, reason: str) -> None:
        self._warn(
            f"{self._results / INDEX_FILE} cannot be kept ({reason}): the index is made in memory, each time anew"
        )
        self.close()
        self._connection = _connected(":memory:")
        with contextlib.suppress(sqlite3.Error, ValueError):  # what is there spares reading it again
            place = (self._results / INDEX_FILE).absolute().as_uri()
            with contextlib.closing(sqlite3.connect(f"{place}?mode=ro&immutable=1", uri=True)) as kept:
                kept.backup(self._connection)
        try:
            _prepare(self._connection)
        except sqlite3.Error:
            self._connection.close()
            self._connection = _connected(":memory:")
            _prepare(self._connection)

    def _discard(self) -> None:
        """Remove an index that is no database; by one process at a time, and not one that another has just made."""
        self.close()
        place = self._results / INDEX_FILE
        with contextlib.suppress(OSError):
            descriptor = os.open(self._results, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is_damaged(place):
                    for name in (INDEX_FILE, f"{INDEX_FILE}-journal", f"{INDEX_FILE}-wal", f"{INDEX_FILE}-shm"):
                        with contextlib.suppress(FileNotFoundError):
                            (self._results / name).unlink()
            finally:
                os.close(descriptor)

    def _update(self, db: sqlite3.Connection) -> None:
        if self._scan() == _stamps(db):
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            self._bring_up_to_date(db)
            db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise

    def _bring_up_to_date(self, db: sqlite3.Connection) -> None:
        there, known = self._scan(), _stamps(db)  # again: before the lock was ours, others may have written
        gone = [(path,) for path in known if path not in there]
        new = [path for path, stamp in there.items() if known.get(path) != stamp]
        if len(new) >= MANY:
            self._warn(f"indexing {len(new)} documents in {self._results}")
        db.executemany("DELETE FROM documents WHERE path = ?", gone)
        marks = ", ".join("?" * (len(COLUMNS) + 2))
        sql = f"INSERT OR REPLACE INTO documents ({', '.join(COLUMNS)}, stamp, problem) VALUES ({marks})"
        with _no_collection():
            db.executemany(sql, (values for path in new if (values := self._document(path, there[path])) is not None))

    def _document(self, path: str, stamp: str) -> tuple[Any, ...] | None:
        """What the index keeps of a document; None where it went away meanwhile."""
        file = self._results / path
        try:
            if path in self._nameless:
                raise StoreError("a name that is no Unicode", "rename it")
            return (*values_of(self._reader.row(file, path)), stamp, None)
        except StoreError as error:
            if not os.path.lexists(file) and path not in self._nameless:
                return None
            nothing = (None,) * (len(COLUMNS) - 1)
            return (path, *nothing, stamp, _plain(" ".join(str(error).split())))

    def _scan(self) -> dict[str, str]:
        """Every document that may be a run -> what tells whether it is the same as before."""
        self._unreadable, self._nameless = [], set()
        found: dict[str, str] = {}
        for day in self._listed(""):
            if _DATE.fullmatch(day):
                for dut in self._listed(day):
                    found.update(self._stamped(f"{day}/{dut}"))
        return found

    def _listed(self, below: str) -> list[str]:
        """Directories in this one."""
        try:
            with os.scandir(self._results / below) as entries:
                return [entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            self._unreadable.append((_plain(below), str(error.strerror)))
            return []

    def _stamped(self, below: str) -> Iterator[tuple[str, str]]:
        try:
            with os.scandir(self._results / below) as entries:
                for entry in entries:
                    name = entry.name
                    if name.endswith(".json") and not name.endswith(".loadtest.json") and name[0] != ".":
                        path = _plain(f"{below}/{name}")
                        if path != f"{below}/{name}":
                            self._nameless.add(path)
                        yield path, _stamp(entry)
        except FileNotFoundError:
            return
        except OSError as error:
            self._unreadable.append((_plain(below), str(error.strerror)))


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Documents are trees: looking for cycles in them is a tenth of the time that thousands of them take."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _connected(place: str) -> sqlite3.Connection:
    """Transactions are ours to begin; nothing is written to disk before the commit."""
    db = sqlite3.connect(place, timeout=LOCKED_FOR_S, isolation_level=None)
    db.execute("PRAGMA cache_spill = OFF")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA trusted_schema = OFF")
    return db


def _prepare(db: sqlite3.Connection) -> None:
    """Tables and views of this version; those of another one go."""
    if _version(db) == SCHEMA_VERSION:
        return
    db.execute("BEGIN IMMEDIATE")
    if _version(db) != SCHEMA_VERSION:
        things = list(db.execute("SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view')"))
        for kind, name in things:
            if not name.startswith("sqlite_"):
                quoted = name.replace('"', '""')
                db.execute(f'DROP {kind} IF EXISTS "{quoted}"')
        for statement in CREATE:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    db.execute("COMMIT")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _stamps(db: sqlite3.Connection) -> dict[str, str]:
    return dict(db.execute("SELECT path, stamp FROM documents"))


def _stamp(entry: os.DirEntry[str]) -> str:
    try:
        about = entry.stat()
    except OSError as error:  # a link to nowhere is a document that cannot be read
        return f"{error.errno}"
    return f"{about.st_size} {about.st_ino} {about.st_mtime_ns} {about.st_ctime_ns}"


def _is_damage(error: sqlite3.OperationalError) -> bool:
    """The database is there and can be used, but is not what it should be."""
    return bool(re.search(r"no such|has no column|values for|malformed", str(error)))


def _is_damaged(place: Path) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(place, timeout=LOCKED_FOR_S)) as db:
            good = db.execute("PRAGMA quick_check").fetchone() == ("ok",) and _version(db) == SCHEMA_VERSION
            list(map(row_from_values, db.execute(f"SELECT {', '.join(COLUMNS)} FROM {VIEW}")))
            db.execute("SELECT path, reason FROM problems").fetchall()
            _stamps(db)
            return not good
    except (sqlite3.Error, ValueError, TypeError):
        return True


def _plain(text: str) -> str:
    """Text that can be stored: a name on disk need not be Unicode."""
    return text.encode("utf-8", "backslashreplace").decode()
