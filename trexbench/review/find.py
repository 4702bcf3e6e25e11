"""Finds stored runs by a file, a directory, a glob, a date, a label, a suite, a DUT, or the word ``latest``."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..core.errors import ConfigError, StoreError
from ..core.history.known import is_date
from ..core.history.rows import RunRow
from ..core.history.series import night_of
from ..core.load.modes import full_mode_name
from ..results.document import EXPORT
from ..results.index import open_index
from ..results.latest import find_latest
from ..results.nights import FOLDER, KNOWN_FILE, KNOWN_FOLDER
from ..results.remote import fetch_missing, store_of
from ..results.store import load_rows

Warn = Callable[[str], None]
LATEST = "latest"
_REMEDY = "name a file, a directory, a glob, a date, a label, a suite, a DUT, or latest"


def check_results(results: Path) -> None:
    """StoreError where this is not a directory, or mirrors a store that is not there."""
    if not results.is_dir():
        raise StoreError(f"{results}: no such directory", "name the results with --results")
    if (store := store_of(results)) is not None:
        store.check_there()


def read_index(
    results: Path, warn: Warn, mode: str | None = None, **filters: Any
) -> tuple[list[RunRow], list[tuple[str, str]]]:
    """Every stored run, oldest first; and each document that cannot be read, with the reason: warn gets it as well.

    mode: may be an alias. filters: see Index.rows.
    """
    check_results(results)
    mode = mode and full_mode_name(mode)
    if (store := store_of(results)) is not None:
        from ..results.stored import read_stored_rows

        return read_stored_rows(results, store, warn, mode=mode, **filters), []
    index = open_index(results, warn)
    rows, problems = index.rows(mode=mode, **filters), index.problems()
    for path, reason in problems:
        warn(f"not read: {results / path}: {reason}")
    return rows, problems


def require_choice(only: Sequence[str], chosen: Sequence[RunRow], every: Sequence[RunRow]) -> None:
    """ConfigError where the patterns of --only leave nothing of what there is."""
    if every and not chosen:
        name = every[-1].cell.unmarked
        raise ConfigError(f"no cell matches {', '.join(only)}", f"'{name}' is one of the cells")


def all_rows(results: Path, warn: Warn, **filters: Any) -> list[RunRow]:
    """Every stored run, oldest first, as ``read_index`` finds them."""
    return read_index(results, warn, **filters)[0]


def latest_run(results: Path) -> Path:
    """The document of the run that started last; StoreError where there is none."""
    if (store := store_of(results)) is not None:
        store.check_there()
        from ..results.stored import newest_row

        row = newest_row(results, store, lambda _: None)
        found = None if row is None else results / row.path
    else:
        found = find_latest(results)
    if found is None:
        raise StoreError(f"no run in {results}", "name a run document, or another --results directory")
    return found


def find_document(name: str, results: Path) -> Path | None:
    """The one document that the name means; None where it means a set of runs."""
    if name == LATEST:
        return latest_run(results)
    path = Path(name)
    if path.is_file() or (name.endswith(".json") and not _is_glob(name)):
        return path if path.exists() or store_of(results) is None else results / path
    return None


def find_rows(name: str, results: Path, warn: Warn) -> list[RunRow]:
    """The runs that the name means, oldest first; ConfigError where there are none."""
    if not name.strip():
        raise ConfigError("an empty name means no run", _REMEDY)
    path = find_document(name, results) or Path(name)
    if path.is_file() or fetch_missing(path):
        return list(load_rows(path, str(path)))
    if path.is_dir() and ("/" in name or not is_date(name)):
        inside = (file for file in path.rglob("*.json") if not _is_hidden(file.relative_to(path)))
        return _load_rows(inside, name, warn)
    if _is_glob(name):
        found = glob.glob(name, recursive=True) or glob.glob(str(results / name), recursive=True)
        if not found and store_of(results) is not None:
            return _require([row for row in all_rows(results, warn) if fnmatchcase(row.path, name)], name)
        return _load_rows(map(Path, found), name, warn)
    return _indexed_rows(name, results, warn)


def _indexed_rows(name: str, results: Path, warn: Warn) -> list[RunRow]:
    """Runs of a night, a label, a suite, a DUT, or one of these ``@`` a night; ConfigError where there are none."""
    word, _, date = name.rpartition("@") if "@" in name else ("", "", name) if is_date(name) else (name, "", "")
    found = [
        row
        for row in all_rows(results, warn)
        if (not date or date == night_of(row)) and (not word or word in (row.label, row.suite, row.cell.dut))
    ]
    if not found:
        raise ConfigError(f"no run in {results} matches {name!r}", f"{_REMEDY}; see `trexbench results list`")
    return found


def _load_rows(files: Iterable[Path], name: str, warn: Warn) -> list[RunRow]:
    """The runs of these files, oldest first, and a warning for each that cannot be read; ConfigError for no run."""
    rows: list[RunRow] = []
    for file in sorted(filter(_may_be_run, files)):
        try:
            rows += load_rows(file, str(file))
        except StoreError as error:
            warn(f"not read: {error}")
    return sorted(_require(rows, name), key=lambda row: row.started)


def _require(rows: list[RunRow], name: str) -> list[RunRow]:
    if not rows:
        raise ConfigError(f"no run matches {name!r}", _REMEDY)
    return rows


def _may_be_run(path: Path) -> bool:
    """Not what lies beside the runs by design: nights, known changes, and exports."""
    beside = path.parent.name in (FOLDER, KNOWN_FOLDER) or path.name == KNOWN_FILE
    return not beside and not path.name.endswith(EXPORT)


def _is_hidden(path: Path) -> bool:
    """A document that is being measured, below .fleet, is none yet; and what hidden directories hold is no run."""
    return any(part.startswith(".") for part in path.parts[:-1])


def _is_glob(name: str) -> bool:
    return any(letter in name for letter in "*?[")
