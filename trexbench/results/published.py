"""Nights that have ended: their rows are kept beside them; if the results mirror a store, everything is put there.

Nights and their documents are the truth: whoever sees that a file of rows lacks a night, or is damaged, makes its rows
of the documents. So a writer that replaces what another has just put costs nobody a row. Needs pyarrow, see `parquet`.
"""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Callable, Collection, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import TypeVar

from ..core.errors import StoreError
from ..core.history.known import is_date
from ..core.history.rows import RunRow
from .document import decode
from .index import Index, IndexEntry, without_collection
from .nights import FOLDER, find_nights, is_sent, read_night
from .parquet import (
    ENDING,
    ROWS,
    add_nights,
    check_columns,
    documents_of,
    drop_removed,
    is_newer,
    month_file,
    read_nights,
    read_rows,
)
from .remote import Store, store_of
from .store import safe_name

R = TypeVar("R")
Warn = Callable[[str], None]
MANY = 10_000
TRIES = 10
"""Number of times that rows are put if others are put at the same time."""
_LATE_DAYS = 2
"""Maximum number of days after its date on which a night's runs begin."""
_MONTH = re.compile(rf"{ROWS}/[^/]+/\d{{4}}-\d\d{re.escape(ENDING)}")


class MonthFiles:
    """Files of rows of a directory, or of a store in its mirror, brought up to date with the nights as they are read.

    suite: only those of suites whose names begin so. since: only nights of this date or later.
    """

    def __init__(
        self, results: Path, store: Store | None, warn: Warn, suite: str | None = None, since: str = ""
    ) -> None:
        self._results, self._store, self._warn = results, store, warn
        begin, at = safe_name(suite, "._-") if suite else "", len("2026-11-21-")
        self._rows = {
            name: stamp
            for name, stamp in self._list(ROWS).items()
            if _MONTH.fullmatch(name) and name.startswith(f"{ROWS}/{begin}") and Path(name).stem >= since[:7]
        }
        self._nights = {
            name: stamp
            for name, stamp in self._list(FOLDER).items()
            if name.endswith(".json") and Path(name).stem >= since and Path(name).stem[at:].startswith(begin)
        }
        self.added: dict[str, list[Path]] = {}
        """Nights that were added to files, except those made by a newer version of trexbench."""

    def _list(self, folder: str) -> Mapping[str, str]:
        if self._store is not None:
            return self._store.find(folder)
        return {
            path.relative_to(self._results).as_posix(): "" for path in sorted((self._results / folder).rglob("*.*"))
        }

    def read(self, read: Callable[[Path], R], again: Collection[str] = (), skip: Collection[str] = ()) -> list[R]:
        """Read each file, with StoreError for a damaged one. again, skip: nights that count as missing, or as there."""
        if self._store is not None:
            self._store.mirror_files(self._rows)
        found, known, damaged = dict[str, R](), {*skip}, dict[str, StoreError]()
        for name in self._rows:
            try:
                found[name], nights = self._read(name, read)
                known |= nights
            except StoreError as error:
                damaged[name] = error
        missing = self._missing(known - {*again})
        for name, why in damaged.items():
            is_made = name in missing
            self._warn(f"reading the documents anew: {why}" if is_made else f"not read: {why}; its nights are gone")
        if self._store is not None and not self._rows and not again and missing:
            count = sum(map(len, missing.values()))
            self._warn(f"{self._store.address} has no rows of {count} nights: reading their documents")
        for name, of_month in missing.items():
            self._add(name, of_month, name in damaged)
            found[name] = read(self._results / name)
        return [*found.values()]

    def _read(self, name: str, read: Callable[[Path], R]) -> tuple[R, frozenset[str]]:
        path = self._results / name
        with contextlib.suppress(StoreError):
            return read(path), read_nights(path)
        if self._store is not None:
            self._store.fetch([name], self._rows)  # the copy may be torn
        return read(path), read_nights(path)

    def _missing(self, known: Collection[str]) -> dict[str, list[Path]]:
        """Map files of rows to the ended nights that they lack."""
        lacking = {name: stamp for name, stamp in self._nights.items() if Path(name).stem not in known}
        if self._store is not None:
            self._store.mirror_files(lacking)
        missing = dict[str, list[Path]]()
        for name in lacking:
            with contextlib.suppress(StoreError):
                night = read_night(self._results / name)
                if night.finished is not None:
                    missing.setdefault(month_file(night.suite, night.night), []).append(self._results / name)
        return missing

    def _add(self, name: str, nights: list[Path], is_damaged: bool) -> None:
        path = self._results / name
        if not is_newer(path):
            self.added[name] = nights
        if is_damaged or name not in self._rows:
            path.unlink(missing_ok=True)
        unread = add_nights(self._results, path, nights)
        if self._store is not None:
            self._store.mark(name, self._rows.get(name, ""))
        if unread:
            more = f"; and {len(unread) - 1} more documents" if len(unread) > 1 else ""
            self._warn(f"not read: {unread[0]}{more}")


def read_stored_rows(
    results: Path, store: Store, warn: Warn, since: str | None = None, limit: int | None = None, **wanted: str | None
) -> list[RunRow]:
    """Read the store's rows, oldest first. limit: only the newest so many; wanted: values of columns."""
    is_day = since is not None and is_date(since[:10])
    first = str(date.fromisoformat(since[:10]) - timedelta(days=_LATE_DAYS)) if since and is_day else ""
    files = MonthFiles(results, store, warn, wanted.get("suite"), first)
    with without_collection():
        rows = tuple(row for part in files.read(lambda path: read_rows(path, since, **wanted)) for row in part)
        # Rows live as long as the command, and have no cycles: each collection among them takes a second. Once only,
        # since the cycles of a page that is made again would never be collected.
        if len(rows) >= MANY and not gc.get_freeze_count():
            gc.freeze()
    return Index({"": IndexEntry("", rows)}, ()).rows(since=since, limit=limit, **wanted)


def refresh(results: Path, warn: Warn, suite: str | None = None, again: Collection[str] = ()) -> None:
    """Bring a directory's rows in line with its nights and documents."""
    for path in (results / ROWS).glob(f"{safe_name(suite, '._-') if suite else ''}*/*{ENDING}"):
        drop_removed(results, path)
    MonthFiles(results, None, warn, suite).read(read_nights, again)


def keep_night(results: Path, path: Path, warn: Warn) -> None:
    """Keep the rows of this file's night, and put the night into the store that the results mirror.

    Without a store a failure is a warning. With one it is a StoreError if the night is not there; the next night of
    this mirror tries again, and then only warns.
    """
    store = store_of(results)
    if store is None:
        try:
            refresh(results, warn, read_night(path).suite, [path.stem])
        except Exception as error:  # rows are only a cache
            warn(f"the rows of {path} are not kept: {error}")
        return
    begun = find_nights(results, warn, is_begun_here=True)
    for file in [path, *(other for other, night in begun if night.finished is not None and other != path)]:
        try:
            _put(results, store, file)
        except (StoreError, OSError) as error:
            if file == path:
                raise
            warn(f"{file.name} is not in the store yet: {error}")
            continue
        try:
            _put_rows(results, store, file, warn)
        except (StoreError, OSError) as error:
            warn(f"rows of {file.name} are not in the store yet: {error}")


def _put(results: Path, store: Store, path: Path) -> None:
    """Put a night into the store: its documents first, so that whoever sees the night finds them."""
    night, name = read_night(path), path.relative_to(results).as_posix()
    before = store.read(name)
    if before is not None and decode(before).get("started") != night.started:
        raise StoreError(f"{store.address}/{name} is there already, of another night", "measure it with another --date")
    for place in documents_of(night):
        if not is_sent(results / place):
            store.create(place)
    store.replace(name) if before is not None else store.create(name)


def _put_rows(results: Path, store: Store, path: Path, warn: Warn) -> None:
    """Put rows until no night lacks any: of two writers, the last one to replace a file sees the other's night."""
    suite, again, tried = read_night(path).suite, {path.stem}, set[str]()
    for _ in range(TRIES):
        files = MonthFiles(results, store, warn, suite)
        files.read(check_columns, again, tried)
        if not files.added:
            return
        for name, nights in files.added.items():
            store.mark(name, "")  # until it is there
            store.replace(name)
            tried |= {night.stem for night in nights}
        again = set()


def keep_judgement(results: Path, path: Path) -> None:
    """Put a night into its store once more, now that it is judged; StoreError if that fails."""
    if (store := store_of(results)) is not None:
        store.replace(path.relative_to(results).as_posix())
