"""results/ <-> nights of suites: ``results/nights/<date>-<suite>[-<n>].json``, replaced as a whole or not at all."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from .core.errors import StoreError
from .core.night import Night, night_from_dict, night_to_dict
from .store import read_object, replace_file

FOLDER = "nights"
MAX_BYTES = 8 << 20
"""Larger files are not read: a night of a thousand cells has half a megabyte."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class NightWriter:
    """Keeps one night's file current. ``name`` is the file's without its ending: this night's and no other's."""

    def __init__(self, path: Path, night: Night) -> None:
        self.path, self.night = path, night

    @property
    def name(self) -> str:
        return self.path.stem

    @staticmethod
    def begin(results: Path, night: Night) -> NightWriter:
        """Give the night a place that no other has; StoreError where that cannot be written."""
        if not _DATE.fullmatch(night.night):
            raise StoreError(f"{night.night!r} is no night", "write its date as 2026-11-21")
        folder = results / FOLDER
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{folder} cannot be written: {error.strerror}", "name another place with --results"
            ) from None
        stem = f"{night.night}-{re.sub('[^A-Za-z0-9_.-]+', '-', night.suite).strip('.-')[:64] or 'unnamed'}"
        number = 1
        while True:
            path = folder / f"{stem}{f'-{number}' if number > 1 else ''}.json"
            with contextlib.suppress(FileExistsError):
                replace_file(path, _encoded(night), exclusive=True)
                return NightWriter(path, night)
            number += 1

    def write(self, night: Night) -> None:
        """The night as it stands now is what the next reader finds; StoreError where it cannot be written."""
        replace_file(self.path, _encoded(night))
        self.night = night


def read_night(path: Path) -> Night:
    """The night of a file; StoreError names the file and what is wrong with it, in one line."""
    values = read_object(path, MAX_BYTES)
    try:
        night = night_from_dict(values)
    except StoreError as error:
        raise StoreError(f"{path}: {' '.join(str(error).split())}") from None
    except (RecursionError, OverflowError):
        raise StoreError(f"{path}: a number or a nesting beyond all measure", "the file is damaged") from None
    for problem in _problems(night):
        raise StoreError(f"{path}: {problem}", "the file is damaged")
    return night


def find_nights(results: Path, warn: Callable[[str], None]) -> list[tuple[Path, Night]]:
    """Every night with its file, oldest first. Of a file that cannot be read ``warn`` gets one line that names it."""
    found = []
    for path in _files(results, warn):
        try:
            found.append((path, read_night(path)))
        except StoreError as error:
            warn(_printable(str(error)))
    return sorted(found, key=lambda one: (one[1].night, one[1].started, one[0].name))


def load_nights(results: Path, warn: Callable[[str], None]) -> list[Night]:
    """Every night, oldest first. Of a file that cannot be read ``warn`` gets one line that names it."""
    return [night for _, night in find_nights(results, warn)]


def _files(results: Path, warn: Callable[[str], None]) -> list[Path]:
    folder = results / FOLDER
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json" and not path.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        warn(f"{folder}: {error.strerror}")
        return []


def _problems(night: Night) -> Iterator[str]:
    """What no writer of ours puts into a night; its paths are followed by others."""
    if not _DATE.fullmatch(night.night):
        yield f"{night.night[:40]!r} is no date"
    for cell in night.cells:
        for attempt in cell.attempts:
            path = attempt.path
            if path is not None and not _below(path):
                yield f"{path[:80]!r} is no path below the results"


def _below(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and path.isprintable() and not path.startswith("/") and ".." not in parts


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _encoded(night: Night) -> bytes:
    return (json.dumps(night_to_dict(night), indent=1, allow_nan=False) + "\n").encode()
