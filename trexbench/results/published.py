"""Nights that have ended: their rows are kept beside them, and where the results mirror a store, all is put there.

Needs pyarrow, as `parquet`, which see.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TypeVar

from ..core.errors import StoreError
from ..core.history.known import is_date
from ..core.history.rows import RunRow
from ..core.history.series import night_of
from .document import decode
from .nights import FOLDER, read_night
from .parquet import (
    ENDING,
    PERIODS,
    ROWS,
    counting,
    documents_of,
    drop_removed,
    folder_of,
    merge,
    read_rows,
    read_table,
    rows_file,
    write_night,
)
from .remote import Store, store_of
from .store import make_directory

R = TypeVar("R")
Warn = Callable[[str], None]
MANY = 10_000
_UNSENT = "unsent"
"""Below a mirror: a file for each night that has ended and is not in the store as a whole."""
_LATE_DAYS = 2
"""A night's runs begin so many days after its date at most."""


def read_stored_rows(
    results: Path, store: Store, warn: Warn, since: str | None = None, **wanted: str | None
) -> list[RunRow]:
    """The store's rows, oldest first; wanted: values of columns."""
    parts = _read_files(results, store, warn, lambda path: read_rows(path, since, **wanted), wanted.get("suite"), since)
    rows = [row for part in parts for row in part]
    if len(rows) >= MANY:
        gc.freeze()  # rows live as long as the command, and have no circles: each search among them takes a second
    return sorted(rows, key=lambda row: (row.started, night_of(row), row.path))


def newest_row(results: Path, store: Store, warn: Warn) -> RunRow | None:
    """The run that began last of those of the last nights."""
    last = max((Path(name).stem[:10] for name in store.find(ROWS)), default="")
    rows = (row for part in _read_files(results, store, warn, read_rows, since=last) for row in part)
    return max(rows, key=lambda row: (row.started, night_of(row), row.path), default=None)


def current_files(results: Path, store: Store, warn: Warn) -> list[Path]:
    """Files of rows in the mirror, each whole and up to date with the store."""
    return [path for path, _ in _read_files(results, store, warn, lambda path: (path, read_table(path)))]


def _read_files(
    results: Path,
    store: Store,
    warn: Warn,
    read: Callable[[Path], R],
    suite: str | None = None,
    since: str | None = None,
) -> Iterator[R]:
    """Read each file of rows as it is in the store; one that cannot be read is made of the documents."""
    found = store.find(ROWS if suite is None else folder_of(Path(), suite).as_posix())
    names = [*_counting(found, _day_before(since))]
    store.mirror_files({name: found[name] for name in names})
    for name in names:
        with contextlib.suppress(StoreError):
            yield read(results / name)
            continue
        store.fetch([name])  # the copy may be torn
        store.mark(name, found[name])
        try:
            yield read(results / name)
        except StoreError as error:
            warn(f"reading the documents anew: {error}")
            if remake(results, store, name, warn, stamp=found[name]):
                yield read(results / name)
    for name, nights in _missing(results, store, suite, found, warn):
        if remake(results, store, name, warn, nights):
            yield read(results / name)


def _counting(found: Iterable[str], since: str) -> Iterator[str]:
    """Yield the files that count of these paths, and have nights since this date."""
    folders: dict[str, list[str]] = {}
    for path in found:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    for folder, names in sorted(folders.items()):
        for name in counting(names):
            if name.removesuffix(ENDING)[:10] >= since[: len(name.removesuffix(ENDING))]:
                yield f"{folder}/{name}"


def _day_before(since: str | None) -> str:
    if since is None or not is_date(since[:10]):
        return ""
    return str(date.fromisoformat(since[:10]) - timedelta(days=_LATE_DAYS))


def _missing(
    results: Path, store: Store, suite: str | None, found: Iterable[str], warn: Warn
) -> Iterator[tuple[str, list[Path]]]:
    """Files of rows that are not there though their nights are, with these nights.

    Of the last month only; where there is no file of rows, of all.
    """
    names = [path.rpartition("/") for path in found]
    newest = max((name[:10] for _, _, name in names if name[4:5] == "-" and name[7:8] == "-"), default="")
    stems = {f"{name[:10]}-{Path(folder).name}{name[10:].removesuffix(ENDING)}" for folder, _, name in names}
    nights = store.find(FOLDER, newest[:7]) if newest or not names else {}
    lost = {name: stamp for name, stamp in nights.items() if Path(name).stem not in stems and (suite or "") in name}
    if lost and not names:
        warn(f"{store.address} has no rows of {len(lost)} nights: reading their documents")
    store.mirror_files(lost)
    for name in lost:
        with contextlib.suppress(StoreError):
            night = read_night(results / name)
            if night.finished is not None and suite in (None, night.suite):
                yield rows_file(Path(), Path(name).stem, night).as_posix(), [results / name]


def _nights_of(results: Path, store: Store | None, name: str) -> list[Path]:
    """The nights whose rows the file of this name has."""
    path = Path(name)
    period = path.name.removesuffix(ENDING)
    if store is not None:
        suffix = f"-{path.parent.name}"
        there = store.find(FOLDER, period[:10])
        store.mirror_files({one: stamp for one, stamp in there.items() if suffix in one})
    nights = []
    for file in sorted((results / FOLDER).glob(f"{period[:10]}*-{path.parent.name}*.json")):
        with contextlib.suppress(StoreError):
            night = read_night(file)
            own = rows_file(Path(), file.stem, night)
            if own.parent.name == path.parent.name and own.name.startswith(period) and night.finished is not None:
                nights += [file] if len(period) in PERIODS or own.name == path.name else []
    return nights


def remake(
    results: Path, store: Store | None, name: str, warn: Warn, nights: Sequence[Path] = (), stamp: str | None = None
) -> bool:
    """Make a file of rows of its nights' documents; False where there are none.

    stamp: of the store's file, which it stands for if every document could be read; else that is fetched again.
    """
    nights = nights or _nights_of(results, store, name)
    if not nights:
        warn(f"{name} cannot be made anew: its nights are not there")
        return False
    _, unread = write_night(results, nights, results / name)
    _warn_of(unread, warn)
    if store is not None and stamp is not None:
        store.mark(name, "" if unread else stamp)
    return True


def _warn_of(unread: Sequence[str], warn: Warn) -> None:
    for problem in unread[:1]:
        more = f"; and {len(unread) - 1} more documents" if len(unread) > 1 else ""
        warn(f"not read: {problem}{more}")


def keep_night(results: Path, path: Path, warn: Warn) -> None:
    """Keep the rows of the night of this file, and put it into the store that the results mirror.

    What fails is a warning in a directory of results; of a store, StoreError, and the next night of this mirror tries
    again, which warns of it and no more.
    """
    store = store_of(results)
    if store is None:
        try:
            made, unread = write_night(results, [path])
            _warn_of(unread, warn)
            refresh(results, warn, made.parent.name)
            _make_missing(results, made.parent, warn)
            merge(made.parent)
        except Exception as error:  # they are only a cache
            warn(f"the rows of {path} are not kept: {error}")
        return
    unsent = results / _UNSENT
    make_directory(unsent)
    own = unsent / path.stem
    own.touch()
    for mark in [own, *sorted({*unsent.iterdir()} - {own})]:
        try:
            if (night := path.with_name(f"{mark.name}.json")).exists():
                _put(results, store, night, warn)
        except (StoreError, OSError) as error:
            if mark == own:
                raise
            warn(f"{night.name} is not in the store yet: {error}")
        else:
            mark.unlink()


def refresh(results: Path, warn: Warn, suite: str = "*") -> None:
    """Make a directory's rows fit its documents: anew where a file lacks some, is damaged or of another version."""
    for path in sorted((results / ROWS).glob(f"{suite}/*{ENDING}")):
        try:
            drop_removed(results, path)
        except StoreError:
            if not remake(results, None, path.relative_to(results).as_posix(), warn):
                path.unlink(missing_ok=True)


def _make_missing(results: Path, folder: Path, warn: Warn) -> None:
    """Make the rows of nights that have none, such as those from before pyarrow was there."""
    there = {path.stem for path in folder.glob(f"*{ENDING}")}
    for file in sorted((results / FOLDER).glob(f"*-{folder.name}*.json")):
        name = file.stem[:10] + file.stem[11 + len(folder.name) :]
        if not there & {name, *(name[:length] for length in PERIODS)}:
            place = (folder / (name + ENDING)).relative_to(results).as_posix()
            if nights := _nights_of(results, None, place):
                remake(results, None, place, warn, nights)


def _put(results: Path, store: Store, path: Path, warn: Warn) -> None:
    """Put a night into the store: its documents first, so that who sees the night finds them."""
    night, name = read_night(path), path.relative_to(results).as_posix()
    before = store.read(name)
    if before is not None and decode(before).get("started") != night.started:
        raise StoreError(f"{store.address}/{name} is there already, of another night", "measure it with another --date")
    for place in documents_of(night):
        if (results / place).exists():
            store.create(place)
    made, unread = write_night(results, [path])
    _warn_of(unread, warn)
    rows = made.relative_to(results).as_posix()
    if unread and store.read(rows) is not None:
        store.mark(rows, "")  # the store's, which may have more, is fetched again
    else:
        store.replace(rows)
    store.replace(name) if before is not None else store.create(name)
    folder = made.parent
    store.mirror_files(store.find(folder.relative_to(results).as_posix()))
    whole, gone = merge(folder)
    for path in whole:
        store.replace(path.relative_to(results).as_posix())
    store.remove(path.relative_to(results).as_posix() for path in gone)


def keep_judgement(results: Path, path: Path) -> None:
    """Put a night of the store there once more, as it is now that it is judged; StoreError where that fails."""
    if (store := store_of(results)) is not None and not (results / _UNSENT / path.stem).exists():
        store.replace(path.relative_to(results).as_posix())
