"""Finds stored runs by a file, directory, glob, date, label, suite, DUT, or ``latest``; and asks them in SQL."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from ..core.errors import ConfigError, StoreError
from ..core.history.known import is_date
from ..core.history.rows import RunRow
from ..core.history.series import night_of
from ..core.load.profile import full_mode_name
from ..results.document import EXPORT
from ..results.index import open_index
from ..results.latest import find_latest
from ..results.nights import FOLDER, KNOWN_FILE, KNOWN_FOLDER
from ..results.remote import INSTALL, can_import, fetch_missing, has_parquet, require_parquet, store_of
from ..results.store import load_rows

Warn = Callable[[str], None]
LATEST = "latest"
_REMEDY = "name a file, a directory, a glob, a date, a label, a suite, a DUT, or latest"


def check_results(results: Path) -> None:
    """StoreError if this is not a directory, or mirrors a store that is not there."""
    if not results.is_dir():
        raise StoreError(f"{results}: no such directory", "name the results with --results")
    if (store := store_of(results)) is not None:
        store.check_there()


def read_index(
    results: Path, warn: Warn, mode: str | None = None, **filters: Any
) -> tuple[list[RunRow], list[tuple[str, str]]]:
    """Read every stored run, oldest first, and each unreadable document with the reason, which warn gets as well.

    mode: may be an alias. filters: see Index.rows.
    """
    check_results(results)
    mode = mode and full_mode_name(mode)
    if (store := store_of(results)) is not None:
        require_parquet(store.address)
        from ..results.published import read_stored_rows

        return read_stored_rows(results, store, warn, mode=mode, **filters), []
    index = open_index(results, warn)
    rows, problems = index.rows(mode=mode, **filters), index.problems()
    for path, reason in problems:
        warn(f"not read: {results / path}: {reason}")
    return rows, problems


def require_choice(only: Sequence[str], chosen: Sequence[RunRow], every: Sequence[RunRow]) -> None:
    """ConfigError if the patterns of --only match nothing of what there is."""
    if every and not chosen:
        name = every[-1].cell.unmarked
        raise ConfigError(f"no cell matches {', '.join(only)}", f"'{name}' is one of the cells")


def require_named(results: Path, dut: str | None, mode: str | None, suite: str | None) -> None:
    """ConfigError if there are runs, but none of this DUT, mode and suite."""
    rows = all_rows(results, lambda _: None)
    known = {
        "DUT": (dut, {row.cell.dut for row in rows}),
        "mode": (mode and full_mode_name(mode), {str(row.cell.mode) for row in rows}),
        "suite": (suite, {row.suite for row in rows if row.suite}),
    }
    asked = {what: (name, names) for what, (name, names) in known.items() if rows and name is not None}
    for what, (name, names) in asked.items():
        if name not in names:
            raise ConfigError(
                f"no run in {results} is of {what} {name}", f"it has {', '.join(sorted(names)) or 'none'}"
            )
    if asked:
        words = ", ".join(f"{what} {name}" for what, (name, _) in asked.items())
        raise ConfigError(f"no run in {results} is of {words} at once", "see `trexbench results list`")


def all_rows(results: Path, warn: Warn, **filters: Any) -> list[RunRow]:
    """Read every stored run, oldest first, without the list of unreadable documents."""
    return read_index(results, warn, **filters)[0]


def query(sql: str, results: Path, warn: Warn) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Ask in DuckDB's SQL; return column names and rows.

    ConfigError without DuckDB, for anything but one SELECT, and for one that takes too long.
    """
    check_results(results)
    if not has_parquet() or not can_import("duckdb"):
        raise ConfigError("query: it needs DuckDB and pyarrow", INSTALL)
    from ..results.sql import ask

    if (store := store_of(results)) is not None:
        from ..results.parquet import check_columns
        from ..results.published import MonthFiles

        return ask(sql, MonthFiles(results, store, warn).read(check_columns), [])
    index = open_index(results, warn)
    return ask(sql, index.rows(), index.problems())


def latest_run(results: Path) -> Path:
    """Find the document of the run that started last; StoreError if there is none."""
    if (store := store_of(results)) is not None:
        store.check_there()
        require_parquet(store.address)
        from ..results.published import read_stored_rows

        last = max((Path(name).stem[:10] for name in store.find(FOLDER)), default=None)
        read = partial(read_stored_rows, results, store, lambda _: None, limit=1)
        path = next((results / row.path for row in read(since=last) or read()), None)
    else:
        path = find_latest(results)
    if path is None:
        raise StoreError(f"no run in {results}", "name a run document, or another --results directory")
    return path


def find_document(name: str, results: Path) -> Path | None:
    """Find the one document that the name means; None if it means a set of runs."""
    if name == LATEST:
        return latest_run(results)
    path = Path(name)
    if path.is_file() or (name.endswith(".json") and not _is_glob(name)):
        return path if path.exists() or store_of(results) is None else results / path
    return None


def find_rows(name: str, results: Path, warn: Warn) -> list[RunRow]:
    """Find the runs that the name means, oldest first; ConfigError if there are none."""
    if not name.strip():
        raise ConfigError("an empty name means no run", _REMEDY)
    path = find_document(name, results) or Path(name)
    if path.is_file() or fetch_missing(path):
        return list(load_rows(path, str(path)))
    if path.is_dir() and ("/" in name or not is_date(name)):
        # hidden directories hold no runs: below .fleet are documents that are being written
        places = ((file, file.relative_to(path).parts[:-1]) for file in path.rglob("*.json"))
        files = (file for file, folders in places if not any(folder.startswith(".") for folder in folders))
        return _load_rows(files, name, warn)
    if _is_glob(name):
        matches = glob.glob(name, recursive=True) or glob.glob(str(results / name), recursive=True)
        if not matches and store_of(results) is not None:
            return _require([row for row in all_rows(results, warn) if fnmatchcase(row.path, name)], name)
        return _load_rows(map(Path, matches), name, warn)
    word, _, date = name.rpartition("@") if "@" in name else ("", "", name) if is_date(name) else (name, "", "")
    rows = [
        row
        for row in all_rows(results, warn)
        if (not date or date == night_of(row)) and (not word or word in (row.label, row.suite, row.cell.dut))
    ]
    if not rows:
        raise ConfigError(f"no run in {results} matches {name!r}", f"{_REMEDY}; see `trexbench results list`")
    return rows


def _load_rows(files: Iterable[Path], name: str, warn: Warn) -> list[RunRow]:
    """Read the runs of these files, oldest first, warning of unreadable ones; ConfigError if there is no run."""
    rows: list[RunRow] = []
    for file in sorted(files):
        # beside runs lie nights, known changes, and exports
        if file.parent.name in (FOLDER, KNOWN_FOLDER) or file.name == KNOWN_FILE or file.name.endswith(EXPORT):
            continue
        try:
            rows += load_rows(file, str(file))
        except StoreError as error:
            warn(f"not read: {error}")
    return sorted(_require(rows, name), key=lambda row: row.started)


def _require(rows: list[RunRow], name: str) -> list[RunRow]:
    if not rows:
        raise ConfigError(f"no run matches {name!r}", _REMEDY)
    return rows


def _is_glob(name: str) -> bool:
    return any(letter in name for letter in "*?[")
