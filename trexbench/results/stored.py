"""Rows of a store: files of rows are fetched into the mirror and read there; lost ones are made from the documents.

Needs pyarrow only to read a file of rows: the last nights are read from a file for each date, see rowfiles.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from ..core.errors import StoreError
from ..core.history.known import is_date
from ..core.history.rows import RunRow
from ..core.history.series import night_of
from ..files import written_ns
from .columns import column_names
from .index import Index, IndexEntry, without_collection
from .nights import FOLDER, read_night
from .remote import Store, require_parquet
from .rowfiles import (
    ENDING,
    ROWS,
    counting,
    decode_rows,
    folder_of,
    is_merged,
    overlap,
    period_of,
    read_day,
    rows_file,
    write_day,
)
from .store import make_directory

R = TypeVar("R")
Warn = Callable[[str], None]
MANY = 10_000
DAYS = "days"
"""Folder below a mirror with a file for each of the last dates."""
_LATE_DAYS = 2
"""Maximum number of days after its date on which a night's runs begin."""


def read_stored_rows(
    results: Path, store: Store, warn: Warn, since: str | None = None, limit: int | None = None, **wanted: str | None
) -> list[RunRow]:
    """Read the store's rows, oldest first. limit: only the newest so many; wanted: values of columns."""
    mirror = _Mirror(results, store, warn, wanted.get("suite"), since)
    by_date = since is not None and wanted.get("suite") is None
    parts = mirror.read_days(since or "") if by_date else mirror.read(lambda path: _read_rows(path, since, **wanted))
    with without_collection():
        rows = tuple(_each_once(parts) if mirror.overlaps else (row for part in parts for row in part))
        # Rows live as long as the command, and have no cycles: each collection among them takes a second. Once only,
        # since the cycles of a page that is made again would never be collected.
        if len(rows) >= MANY and not gc.get_freeze_count():
            gc.freeze()
    return Index({"": IndexEntry("", rows)}, ()).rows(since=since, limit=limit, **wanted)


def newest_row(results: Path, store: Store, warn: Warn) -> RunRow | None:
    """Find the run that began last, among those of the last nights."""
    last = max((Path(name).stem[:10] for name in store.find(ROWS)), default="")
    rows = (row for part in _Mirror(results, store, warn, since=last).read(_read_rows) for row in part)
    return max(rows, key=lambda row: (row.started, night_of(row), row.path), default=None)


def current_files(results: Path, store: Store, warn: Warn) -> list[Path]:
    """List files in the mirror that together have the store's rows, each row once."""
    from .parquet import join, read_table, write_table

    def read(path: Path) -> Path:
        read_table(path, column_names())
        return path

    files: list[Path] = []
    for folder, in_folder in groupby(_Mirror(results, store, warn).read(read), lambda path: path.parent):
        paths = [*in_folder]
        if overlap(path.name for path in paths):
            joined = make_directory(results / DAYS) / f"{folder.name}{ENDING}"
            write_table(joined, join([read_table(path) for path in paths]))
            paths = [joined]
        files += paths
    for old in {*(results / DAYS).glob(f"*{ENDING}")} - {*files}:
        old.unlink(missing_ok=True)
    return files


def _read_rows(path: Path, since: str | None = None, **wanted: str | None) -> list[RunRow]:
    from .parquet import read_rows

    return read_rows(path, since, **wanted)


def _read_both(path: Path) -> tuple[list[bytes], list[RunRow]]:
    from .parquet import read_stored

    stored = read_stored(path)
    return stored, decode_rows(stored, path)


def _each_once(parts: Iterable[list[RunRow]]) -> Iterator[RunRow]:
    """Yield the rows of files; if several files have a document's rows, those of the first."""
    seen: set[tuple[str | None, str]] = set()
    for part in parts:
        new = [row for row in part if (row.suite, row.path) not in seen]
        seen.update((row.suite, row.path) for row in new)
        yield from new


class _Mirror:
    """The current files of rows of a store, in its mirror. since: the first night, by the files' names."""

    def __init__(
        self, results: Path, store: Store, warn: Warn, suite: str | None = None, since: str | None = None
    ) -> None:
        self._results, self._store, self._warn = results, store, warn
        self._suite, self._since = suite, ""
        if since is not None and is_date(since[:10]):
            self._since = str(date.fromisoformat(since[:10]) - timedelta(days=_LATE_DAYS))
        self._stamps = store.find(ROWS if suite is None else folder_of(Path(), suite).as_posix())
        self._names = [*_counting(self._stamps, self._since)]
        folders = groupby(self._names, lambda name: name.rpartition("/")[0])
        self.overlaps = any(overlap(names) for _, names in folders)
        store.mirror_files({name: self._stamps[name] for name in self._names})

    def read(self, read: Callable[[Path], R]) -> Iterator[R]:
        """Read each file; one that is missing or cannot be read is made from the documents."""
        for name in self._names:
            yield from self._read_one(name, read)
        yield from self._read_missing(read)

    def read_days(self, since: str) -> Iterator[list[RunRow]]:
        """Yield the rows, but not always those of runs that began before ``since``."""
        dates = {_date_of(name) for name in _counting(self._stamps, "")}
        nights_first = sorted(self._names, key=lambda name: (is_merged(name), _date_of(name)))
        for day, of_day in groupby(nights_first, _date_of):
            names = [*of_day]
            if not is_date(day):  # merged
                yield from (part for name in names for part in self._read_one(name, lambda p: _read_rows(p, since)))
                continue
            place, written = self._results / DAYS / f"{day}.json", self._written_ns(names)
            rows = read_day(place, written, since)
            if rows is None:
                parts = [part for name in names for part in self._read_one(name, _read_both)]
                rows = [row for _, part in parts for row in part]
                if len(parts) == len(names) and written == self._written_ns(names):  # all could be read
                    last = max((row.started for row in rows), default="")
                    write_day(place, written, [row for stored, _ in parts for row in stored], last)
                    with contextlib.suppress(OSError):
                        for old in place.parent.glob("*.json"):
                            if old.stem not in dates:
                                old.unlink(missing_ok=True)
            yield rows
        yield from self._read_missing(lambda path: _read_rows(path, since))

    def _written_ns(self, names: Iterable[str]) -> Mapping[str, int]:
        return {name: written_ns(self._results / name) for name in names}

    def _read_one(self, name: str, read: Callable[[Path], R]) -> Iterator[R]:
        require_parquet(self._store.address)
        with contextlib.suppress(StoreError):
            yield read(self._results / name)
            return
        self._store.fetch([name], self._stamps)  # the copy may be torn
        try:
            yield read(self._results / name)
        except StoreError as error:
            from .parquet import is_newer
            from .published import remake

            is_repaired = is_merged(name) and not is_newer(self._results / name)
            remedy = "; the suite's next `trexbench nightly` repairs it" if is_repaired else ""
            self._warn(f"reading the documents anew: {error}{remedy}")
            if remake(self._results, self._store, name, self._warn, stamp=self._stamps[name]):
                yield read(self._results / name)

    def _read_missing(self, read: Callable[[Path], R]) -> Iterator[R]:
        for name, nights in self._missing():
            require_parquet(self._store.address)
            from .published import remake

            if remake(self._results, self._store, name, self._warn, nights):
                yield read(self._results / name)

    def _missing(self) -> Iterator[tuple[str, list[Path]]]:
        """Yield files of rows that are missing, with their nights: those of the last month; all if no file exists."""
        names = [path.rpartition("/") for path in self._stamps]
        newest = max((name[:10] for _, _, name in names if name[4:5] == "-" and name[7:8] == "-"), default="")
        stems = {
            f"{name[:10]}-{folder.rpartition('/')[2]}{name[10:].removesuffix(ENDING)}" for folder, _, name in names
        }
        nights = self._store.find(FOLDER, newest[:7]) if newest or not names else {}
        of = {name.rpartition("/")[2].removesuffix(".json"): name for name in nights if (self._suite or "") in name}
        lost = {name: nights[name] for stem, name in of.items() if stem not in stems and stem >= self._since}
        if lost and not names:
            self._warn(f"{self._store.address} has no rows of {len(lost)} nights: reading their documents")
        self._store.mirror_files(lost)
        for name in lost:
            with contextlib.suppress(StoreError):
                night = read_night(self._results / name)
                if night.finished is not None and self._suite in (None, night.suite):
                    yield rows_file(Path(), Path(name).stem, night).as_posix(), [self._results / name]


def _date_of(name: str) -> str:
    return period_of(name)[:10]


def _counting(paths: Iterable[str], since: str) -> Iterator[str]:
    """Yield those of these paths that count, and have nights since this date."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    for folder, names in sorted(folders.items()):
        for name in counting(names):
            if _date_of(name) >= since[: len(period_of(name))]:
                yield f"{folder}/{name}"
