"""Removes old files of results/: run documents, their pictures and exports, and nights.

Only what can be read is removed, and only inside the directory: no link is followed on the way to a file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ..core.errors import StoreError
from ..core.history.detect import BASELINE
from ..core.history.known import is_date
from ..core.history.rows import RunRow
from ..core.history.series import night_of
from .index import open_index
from .journal import SUFFIX
from .nights import find_nights, page_name
from .remote import has_parquet, store_of

AGAINST_NIGHTS = BASELINE
"""Nights before a regression with which it is compared."""
_BESIDE = ("{stem}.png", "{stem}.svg", "{stem}-efficiency.png", "{stem}.loadtest.json", "{stem}" + SUFFIX)
"""Names of what is made of a run and lies beside it, and of the journal of a run that was killed."""


def find_old(
    results: Path,
    keep_nights: int | None = None,
    before: str | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Files below ``results`` of nights before a date, or before the last so many; none that cannot be read."""
    index = open_index(results, warn)
    rows = index.rows()
    for path, reason in index.problems():
        warn(f"not read: {results / path}: {reason}")
    nights = find_nights(results, warn)
    dates = {night.night for _, night in nights} | {row.night for row in rows if row.night}
    found = sorted(dates or {night_of(row) for row in rows}, reverse=True)  # where no suite ran, days count as nights
    kept = keep_nights or 0
    first = before if before is not None else found[kept - 1] if 0 < kept < len(found) else ""
    old = list(dict.fromkeys(path for row in rows if night_of(row) < first for path in _files(results, row)))
    return old + [file for path, night in nights if night.night < first for file in _night_files(results, path)]


def find_old_nights(
    results: Path,
    suite: str,
    keep_nights: int,
    tonight: str,
    since: Mapping[bool, str],
    warn: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Files of the suite's nights before the last ``keep_nights`` that measured something; no others.

    Simulated nights (True) and measured ones (False) are counted apart, those after ``tonight`` not at all. since: the
    night in which the oldest regression began that still stands; the nights that it is compared with stay as well. A
    night's runs come before its own file, and a run's pictures before the run: after a kill in between, the next call
    finds what is left.
    """
    found_rows = open_index(results, warn).rows(suite=suite)
    rows = [(row, row.night) for row in found_rows if row.suite == suite and row.night and is_date(row.night)]
    measured: dict[bool, set[str]] = {False: set(), True: set()}
    for row, night in rows:
        if row.complete:
            measured[row.cell.simulated].add(night)
    first = {
        kind: _first_of_suite([date for date in dates if date <= tonight], keep_nights, since.get(kind))
        for kind, dates in measured.items()
    }
    oldest = min((first[kind] for kind, dates in measured.items() if dates), default="")
    found: list[tuple[str, int, str, list[Path]]] = []
    for row, night in rows:
        if night < first[row.cell.simulated]:
            found.append((night, 0, row.path, _files(results, row)))
    for path, one in find_nights(results, warn, suite=suite):
        # A night that knew no cells was neither simulated nor measured.
        if one.suite == suite and one.night < (first[one.simulated] if one.cells else oldest):
            found.append((one.night, 1, path.name, _night_files(results, path)))
    return list(dict.fromkeys(path for *_, paths in sorted(found) for path in paths))  # a document may have many rows


def _first_of_suite(dates: Iterable[str], keep: int, since: str | None) -> str:
    """The first of the nights that stay; empty where all do."""
    nights = sorted(dates, reverse=True)
    if len(nights) < keep:
        return ""
    if since is None:
        return nights[keep - 1]
    return min(nights[keep - 1], since, *[night for night in nights if night < since][:AGAINST_NIGHTS])


def remove(results: Path, paths: Sequence[Path], warn: Callable[[str], None]) -> list[Path]:
    """Remove these files, and the directories that they leave empty; the files that were removed."""
    gone = []
    for path in paths:
        try:
            if _unlink(results, path):
                gone.append(path)
        except OSError as error:
            warn(f"{results / path} stays: {error.strerror}")
    if store_of(results) is None and has_parquet():
        from .published import refresh

        try:
            refresh(results, warn)
        except (OSError, StoreError) as error:
            warn(f"rows of what was removed stay: {error}")
    return gone


def _files(results: Path, row: RunRow) -> list[Path]:
    """A run's document, and before it what lies beside it: after a kill in between, the next call finds the rest."""
    path = Path(row.path)
    beside = (path.with_name(name.format(stem=path.stem)) for name in _BESIDE)
    return [*(one for one in beside if os.path.lexists(results / one)), path]


def _night_files(results: Path, path: Path) -> list[Path]:
    """A night's file, and before it the night's page."""
    page = Path(page_name(path.stem))
    return [*([page] if os.path.lexists(results / page) else []), path.relative_to(results)]


def _unlink(results: Path, path: Path) -> bool:
    """Remove the file, and the directories that it leaves empty; False where there was none.

    OSError for a link on the way.
    """
    if path.is_absolute() or (results / path).parent.resolve() != results.resolve() / path.parent:
        raise OSError(0, "not inside the results")
    try:
        (results / path).unlink()
    except FileNotFoundError:
        return False
    with contextlib.suppress(OSError):  # one is not empty
        for folder in path.parents[:-1]:
            (results / folder).rmdir()
    return True
