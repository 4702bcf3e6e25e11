"""Known changes: what somebody has looked at, and said why it is so. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from .errors import StoreError
from .history import Cell

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


def known_to_dict(known: Iterable[Known]) -> dict[str, Any]:
    """JSON values."""
    return {"schema": SCHEMA, "version": VERSION, "acknowledged": [asdict(one) for one in known]}


def known_from_dict(values: Mapping[str, Any]) -> list[Known]:
    """StoreError for what is no list of known changes, or a newer one."""
    if values.get("schema") != SCHEMA:
        raise StoreError("not a list of known changes", f"expected schema {SCHEMA!r}")
    version = values.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise StoreError(f"known changes of version {version!r}, this trexbench reads up to {VERSION}", "upgrade it")
    entries = values.get("acknowledged")
    if not isinstance(entries, list):
        raise StoreError("known changes that are no list", "the file is damaged")
    return [_known(entry) for entry in entries]


def is_date(text: object) -> bool:
    return isinstance(text, str) and _DATE.fullmatch(text) is not None


def _known(entry: object) -> Known:
    if not isinstance(entry, dict) or not is_date(entry.get("date")):
        raise StoreError("a known change without its date", "the file is damaged")
    cell, metric, note = (entry.get(key) for key in ("cell", "metric", "note"))
    if not isinstance(cell, str) or not isinstance(note, str) or not (metric is None or isinstance(metric, str)):
        raise StoreError(f"a known change of {entry['date']} that is no text", "the file is damaged")
    return Known(entry["date"], cell, metric, note)
