"""Known changes: what somebody has looked at, and said why it is so. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from ..errors import ConfigError, StoreError
from ..typed import read_stored
from .rows import Cell

SCHEMA, VERSION = "trexbench/acknowledged", 1
GRACE_NIGHTS = 3
"""A change that is announced may come so many nights later."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


@dataclass(frozen=True)
class Known:
    """date: of the acknowledgement; cell: a glob of cells' names; metric: None means all of the cell's figures."""

    date: str
    cell: str
    metric: str | None
    note: str

    def is_about(self, cell: Cell, metric: str) -> bool:
        return (self.metric is None or self.metric == metric) and fnmatchcase(str(cell), self.cell)


def find_note(known: Iterable[Known], nights: list[str], places: list[int], at: int) -> str | None:
    """The note that explains the change at ``nights[at]``; ``places``: of all changes of this history, ascending.

    One that lies before the acknowledgement, or the first after it if there was none to be acknowledged in the nights
    before. The latest note wins.
    """
    for one in sorted(known, key=lambda known: known.date, reverse=True):
        if nights[at] <= one.date:
            return one.note
        first = sum(night <= one.date for night in nights)
        pending = any(first - GRACE_NIGHTS * 5 <= place < first for place in places)
        if not pending and first <= at < first + GRACE_NIGHTS:
            return one.note
    return None


@dataclass(frozen=True)
class _Acknowledged:
    acknowledged: list[Known]


def known_to_dict(known: Iterable[Known]) -> dict[str, Any]:
    """JSON values."""
    return {"schema": SCHEMA, "version": VERSION, "acknowledged": [asdict(one) for one in known]}


def known_from_dict(values: Mapping[str, Any]) -> list[Known]:
    """StoreError for what is no list of known changes, or a newer one."""
    known = read_stored(values, "list of known changes", SCHEMA, VERSION, _Acknowledged).acknowledged
    if not all(is_date(one.date) for one in known):
        raise StoreError("a known change without its date", "the file is damaged")
    return known


def parse_date(text: str) -> str:
    """A day as it stands in documents: ``2026-11-21``; ConfigError for anything else."""
    date = text.strip()
    if not is_date(date) or not 1 <= int(date[5:7]) <= 12 or not 1 <= int(date[8:]) <= 31:
        raise ConfigError(f"{text!r} is not a date", "write it as 2026-11-21")
    return date


def is_date(text: object) -> bool:
    return isinstance(text, str) and _DATE.fullmatch(text) is not None
