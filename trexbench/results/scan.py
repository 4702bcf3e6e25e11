"""Which documents lie below results/, and for each a stamp that changes when it does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..core.history.known import is_date
from .document import EXPORT
from .journal import SUFFIX


@dataclass
class Scan:
    stamps: dict[str, str] = field(default_factory=dict)
    """Stamp of every document that may be a run, by its path below results."""
    running: set[str] = field(default_factory=set)
    """Documents that have a journal."""
    problems: list[tuple[str, str]] = field(default_factory=list)
    """Places that could not be read, and why."""


def scan(results: Path) -> Scan:
    """A document's stamp is its size, inode and times, and those of its journal while it has one."""
    found = Scan()
    for day in _folders(found, results, ""):
        if is_date(day) or day == "undated":
            for dut in _folders(found, results, day):
                _add_documents(found, results, f"{day}/{dut}")
    return found


def _folders(found: Scan, results: Path, below: str) -> Iterator[str]:
    for entry in _entries(found, results, below):
        try:
            if not entry.name.startswith(".") and entry.is_dir():
                yield entry.name
        except OSError as error:  # such as a link to itself
            found.problems.append((plain(f"{below}/{entry.name}".lstrip("/")), str(error.strerror)))


def _add_documents(found: Scan, results: Path, below: str) -> None:
    entries = {entry.name: entry for entry in _entries(found, results, below)}
    for name, entry in entries.items():
        path = f"{below}/{name}"
        if not name.endswith(".json") or name.endswith(EXPORT) or name.startswith("."):
            continue
        if plain(path) != path:
            found.problems.append((plain(path), "its name is not Unicode: rename it"))
            continue
        journal = entries.get(name.removesuffix(".json") + SUFFIX)
        if journal is not None:
            found.running.add(path)
        found.stamps[path] = _stamp(entry) + (f" {_stamp(journal)}" if journal else "")


def _entries(found: Scan, results: Path, below: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(results / below) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
    except OSError as error:
        found.problems.append((plain(below), str(error.strerror)))
        return []


def _stamp(entry: os.DirEntry[str]) -> str:
    try:
        about = entry.stat()
    except OSError as error:  # a link to nowhere is a document that cannot be read
        return f"{error.errno}"
    return f"{about.st_size} {about.st_ino} {about.st_mtime_ns} {about.st_ctime_ns}"


def plain(text: str) -> str:
    """Text that can be stored: a name on disk need not be Unicode."""
    return text.encode("utf-8", "backslashreplace").decode()
