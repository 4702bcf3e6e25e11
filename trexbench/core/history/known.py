"""Known changes, which somebody acknowledged with a note. Pure."""

from __future__ import annotations

import re
from calendar import monthrange, timegm
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..errors import ConfigError, StoreError
from ..typed import read_stored
from ..units import Rate
from .cell import Cell, is_like

SCHEMA, VERSION = "trexbench/acknowledged", 1
NEWS_NIGHTS, GRACE_NIGHTS = 14, 3
"""Nights for which a change that does not alarm is reported; nights after its date that an acknowledgement made
beforehand covers, if no change is news then."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


@dataclass(frozen=True)
class Known:
    """One acknowledgement."""

    date: str
    cell: str
    """Glob of cells' names."""
    metric: str | None
    """None: all of a cell."""
    note: str

    def is_about(self, cell: Cell, metric: str) -> bool:
        names = [str(cell), str(replace(cell, emulated=False))]
        if cell.held_pps is not None:  # notes may be older than the way in which rates are written
            given = f"{cell.kind} at {Rate(cell.held_pps, 'pps')}"
            names += [name.replace(cell.kind_words, given) for name in names]
        return self.metric in (None, metric) and any(is_like(name, self.cell) for name in names)


def find_note(known: Iterable[Known], nights: list[str], places: list[int], at: int) -> str | None:
    """Find the note that covers the change at ``nights[at]``; ``places``: ascending indexes of this history's changes.

    A note covers changes up to its date; if the nights before had none, one right after it. The latest note wins.
    """
    for entry in sorted(known, key=lambda entry: entry.date, reverse=True):
        if nights[at] <= entry.date:
            return entry.note
        first = sum(night <= entry.date for night in nights)
        pending = any(first - NEWS_NIGHTS <= place < first for place in places)
        if not pending and first <= at < first + GRACE_NIGHTS:
            return entry.note
    return None


@dataclass(frozen=True)
class _Acknowledged:
    acknowledged: list[Known]


def known_to_dict(known: Iterable[Known]) -> dict[str, Any]:
    return {"schema": SCHEMA, "version": VERSION, "acknowledged": [asdict(entry) for entry in known]}


def known_from_dict(values: Mapping[str, Any]) -> list[Known]:
    """Read known changes; StoreError for a newer version, or other values."""
    known = read_stored(values, "list of known changes", SCHEMA, VERSION, _Acknowledged).acknowledged
    if not all(is_date(entry.date) for entry in known):
        raise StoreError("a known change without its date", "the file is damaged")
    return known


def parse_date(text: str) -> str:
    """Parse a calendar date in the form of documents, ``2026-11-21``; ConfigError for anything else."""
    if not is_date(text.strip()):
        raise ConfigError(f"{text!r} is not a date", "write it as 2026-11-21")
    return text.strip()


def day_number(date: str) -> int:
    """Return the number of the day, to count the days between two."""
    return timegm((*map(int, date.split("-")), 0, 0, 0)) // 86400


def is_date(text: object) -> bool:
    """Test whether this is a day of the calendar in the form of documents."""
    if not isinstance(text, str) or not _DATE.fullmatch(text):
        return False
    year, month, day = map(int, text.split("-"))
    return year > 0 and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]
