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
"""Number of nights before a regression with which it is compared."""
_OF_SERIES = ("{stem}-efficiency.png", "{stem}-sizes.png")
_BESIDE = ("{stem}.png", "{stem}.svg", *_OF_SERIES, "{stem}.loadtest.json", "{stem}" + SUFFIX)
"""Names of files made from a run, which lie beside it, and of the journal of a run that was killed."""


def find_old(results: Path, keep_nights: int | None, before: str | None, warn: Callable[[str], None]) -> list[Path]:
    """Find files below ``results`` of nights before a date, or before the last so many; none that cannot be read."""
    index = open_index(results, warn)
    rows = index.rows()
    for path, reason in index.problems():
        warn(f"not read: {results / path}: {reason}")
    nights = find_nights(results, warn)
    dates = {night.night for _, night in nights} | {row.night for row in rows if row.night}
    dates = dates or {night_of(row) for row in rows}  # if no suite ran, days count as nights
    ordered = sorted(filter(is_date, dates), reverse=True)
    kept = keep_nights or 0
    first = before if before is not None else ordered[kept - 1] if 0 < kept < len(ordered) else ""
    old = list(dict.fromkeys(path for row in rows if night_of(row) < first for path in _files(results, row)))
    return old + [file for path, night in nights if night.night < first for file in _night_files(results, path)]


def find_old_nights(
    results: Path, suite: str, keep_nights: int, tonight: str, since: Mapping[bool, str], warn: Callable[[str], None]
) -> list[Path]:
    """Find files of the suite's nights before the last ``keep_nights`` that measured something.

    Simulated nights (True) and measured ones (False) are counted apart, those after ``tonight`` not at all. since: the
    night in which the oldest regression began that still stands; the nights that it is compared with stay as well. A
    night's runs come before its own file, and a run's pictures before the run: after a kill in between, the next call
    finds what is left.
    """
    every = open_index(results, warn).rows(suite=suite)
    rows = [(row, row.night) for row in every if row.suite == suite and row.night and is_date(row.night)]
    measured: dict[bool, set[str]] = {False: set(), True: set()}
    for row, date in rows:
        if row.complete:
            measured[row.cell.simulated].add(date)
    first = {
        kind: _first_of_suite([date for date in dates if date <= tonight], keep_nights, since.get(kind))
        for kind, dates in measured.items()
    }
    oldest = min((first[kind] for kind, dates in measured.items() if dates), default="")
    old: list[tuple[str, int, str, list[Path]]] = [
        (date, 0, row.path, _files(results, row)) for row, date in rows if date < first[row.cell.simulated]
    ]
    for path, night in find_nights(results, warn, suite=suite):
        # A night that knew no cells was neither simulated nor measured.
        if night.suite == suite and night.night < (first[night.simulated] if night.cells else oldest):
            old.append((night.night, 1, path.name, _night_files(results, path)))
    return list(dict.fromkeys(path for *_, paths in sorted(old) for path in paths))  # a document may have many rows


def _first_of_suite(dates: Iterable[str], keep: int, since: str | None) -> str:
    """Return the first of the nights that stay; empty if all do."""
    nights = sorted(dates, reverse=True)
    if len(nights) < keep:
        return ""
    if since is None:
        return nights[keep - 1]
    return min(nights[keep - 1], since, *[night for night in nights if night < since][:AGAINST_NIGHTS])


def remove(results: Path, paths: Sequence[Path], warn: Callable[[str], None]) -> list[Path]:
    """Remove these files, and the directories that they leave empty; return the removed files."""
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
    """List what lies beside a run's document, then that: after a kill in between, the next call finds the rest."""
    path = Path(row.path)
    beside = (path.with_name(name.format(stem=path.stem)) for name in _BESIDE)
    return [*(extra for extra in beside if os.path.lexists(results / extra)), path]


def _night_files(results: Path, path: Path) -> list[Path]:
    page = Path(page_name(path.stem))
    return [*([page] if os.path.lexists(results / page) else []), path.relative_to(results)]


def _unlink(results: Path, path: Path) -> bool:
    """Remove the file, and the directories that it leaves empty; False if there was none, OSError for a link."""
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
