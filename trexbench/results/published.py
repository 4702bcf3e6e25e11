"""Nights that have ended: their rows are kept beside them; if the results mirror a store, everything is put there.

Needs pyarrow, see `parquet`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..core.errors import StoreError
from .document import decode
from .nights import FOLDER, find_nights, is_sent, read_night
from .parquet import drop_removed, is_newer, merge, read_whole, write_night
from .remote import Store, store_of
from .rowfiles import ENDING, PERIODS, ROWS, counting, documents_of, is_merged, next_version, period_of, rows_file

Warn = Callable[[str], None]
_NO_NIGHTS = "its nights are not there"


def _nights_of(results: Path, store: Store | None, name: str) -> tuple[list[Path], list[str]]:
    """Find the nights whose rows belong into the file of this name, and why some cannot be read."""
    suite, period = Path(name).parent.name, period_of(name)
    if store is None:
        files = sorted((results / FOLDER).glob(f"{period[:10]}*-{suite}*.json"))
    else:
        stamps = store.find(FOLDER, period[:10])
        there = {path: stamps[path] for path in sorted(stamps) if f"-{suite}" in path and path.endswith(".json")}
        store.mirror_files(there)
        files = [results / path for path in there]
    nights, unread = [], []
    for file in files:
        number = file.stem[len("2026-11-26-") + len(suite) :]
        if len(period) not in PERIODS and file.stem[:10] + number != period:
            continue
        try:
            night = read_night(file)
            if rows_file(Path(), file.stem, night).parent.name == suite and night.finished is not None:
                nights.append(file)
        except StoreError as error:
            if not number or number[1:].isdecimal():
                unread.append(str(error))
    return nights, unread


def remake(
    results: Path, store: Store | None, name: str, warn: Warn, nights: Sequence[Path] = (), stamp: str | None = None
) -> bool:
    """Make a file of rows from its nights' documents; False if there are no nights.

    stamp: of the store's file, for which this one stands if every document could be read; else that is fetched again.
    """
    nights, unread = (nights, list[str]()) if nights else _nights_of(results, store, name)
    if not nights:
        warn(f"{name} cannot be made anew: {(unread or [_NO_NIGHTS])[0]}")
        return False
    is_stand_in = store is not None and is_merged(name)
    unread += write_night(results, nights, results / name, is_stand_in or bool(unread))[1]
    _warn_of(unread, warn)
    if store is not None and stamp is not None:
        store.mark(name, "" if unread else stamp)
    return True


def _warn_of(unread: Sequence[str], warn: Warn) -> None:
    for problem in unread[:1]:
        more = f"; and {len(unread) - 1} more documents" if len(unread) > 1 else ""
        warn(f"not read: {problem}{more}")


def keep_night(results: Path, path: Path, warn: Warn) -> None:
    """Keep the rows of this file's night, and put the night into the store that the results mirror.

    Without a store a failure is a warning. With one it is a StoreError; the next night of this mirror tries again, and
    then only warns.
    """
    store = store_of(results)
    if store is None:
        try:
            made, unread = write_night(results, [path])
            _warn_of(unread, warn)
            refresh(results, warn, made.parent.name)
            _make_missing(results, made.parent, warn)
            merge(made.parent)
            merge(made.parent)  # removes the files that the first call merged
        except Exception as error:  # rows are only a cache
            warn(f"the rows of {path} are not kept: {error}")
        return
    begun = find_nights(results, warn, is_begun_here=True)
    for file in [path, *(other for other, night in begun if night.finished is not None and other != path)]:
        try:
            _put(results, store, file, warn)
        except (StoreError, OSError) as error:
            if file == path:
                raise
            warn(f"{file.name} is not in the store yet: {error}")


def refresh(results: Path, warn: Warn, suite: str = "*") -> None:
    """Bring a directory's rows in line with its documents; remake files that are partial, damaged or outdated."""
    for path in sorted((results / ROWS).glob(f"{suite}/*{ENDING}")):
        try:
            drop_removed(results, path)
        except StoreError:
            if not remake(results, None, path.relative_to(results).as_posix(), warn):
                path.unlink(missing_ok=True)


def _make_missing(results: Path, folder: Path, warn: Warn) -> None:
    """Make the rows of nights that have none, such as those from before pyarrow was installed."""
    there = {period_of(path.name) for path in folder.glob(f"*{ENDING}")}
    for file in sorted((results / FOLDER).glob(f"*-{folder.name}*.json")):
        name = file.stem[:10] + file.stem[11 + len(folder.name) :]
        if not there & {name, *(name[:length] for length in PERIODS)}:
            place = (folder / (name + ENDING)).relative_to(results).as_posix()
            if nights := _nights_of(results, None, place)[0]:
                remake(results, None, place, warn, nights)


def _put(results: Path, store: Store, path: Path, warn: Warn) -> None:
    """Put a night into the store: its documents first, so that whoever sees the night finds them."""
    night, name = read_night(path), path.relative_to(results).as_posix()
    before = store.read(name)
    if before is not None and decode(before).get("started") != night.started:
        raise StoreError(f"{store.address}/{name} is there already, of another night", "measure it with another --date")
    for place in documents_of(night):
        if not is_sent(results / place):
            store.create(place)
    made, unread = write_night(results, [path])
    _warn_of(unread, warn)
    rows = made.relative_to(results).as_posix()
    if unread and store.read(rows) is not None:
        store.mark(rows, "")  # the store's file, which may have more, is fetched again
    else:
        store.replace(rows)
    store.replace(name) if before is not None else store.create(name)
    folder = made.parent
    there = store.find(folder.relative_to(results).as_posix())
    for other in folder.glob(f"*{ENDING}"):
        if not is_sent(other) or other.relative_to(results).as_posix() not in there:
            other.unlink(missing_ok=True)  # it never arrived, or was removed: its rows are not in the store
    store.mirror_files(there)
    _repair(results, store, there, warn)
    merged, gone = merge(folder)
    for path in merged:
        if not store.create_new(path.relative_to(results).as_posix()):
            path.unlink(missing_ok=True)  # somebody else made this version: the next night merges what it lacks
    store.remove(path.relative_to(results).as_posix() for path in gone)


def _repair(results: Path, store: Store, there: Mapping[str, str], warn: Warn) -> None:
    """Make the next version of each merged file that is damaged or outdated in the store, from its documents."""
    for name in filter(is_merged, counting(Path(path).name for path in there)):
        path = Path(next(iter(there))).with_name(name)
        with contextlib.suppress(StoreError):
            read_whole(results / path)
            continue
        store.fetch([path.as_posix()], there)  # the copy may be torn, or have been made here
        try:
            read_whole(results / path)
        except StoreError as error:
            if is_newer(results / path):
                continue
            new = path.with_name(next_version(name))
            nights, unread = _nights_of(results, store, path.as_posix())
            unread += write_night(results, nights, results / new)[1] if nights else [_NO_NIGHTS]
            if not unread and store.create_new(new.as_posix()):
                warn(f"{error}: made anew of its documents, as {store.address}/{new}")
                continue
            (results / new).unlink(missing_ok=True)
            remedy = f"mend or remove that, or remove {store.address}/{path}; the next `trexbench nightly` repairs it"
            warn(f"{error}: not made anew: {(unread or ['another one does'])[0]}; {remedy}")


def keep_judgement(results: Path, path: Path) -> None:
    """Put a night into its store once more, now that it is judged; StoreError if that fails."""
    if (store := store_of(results)) is not None:
        store.replace(path.relative_to(results).as_posix())
