"""The tables of the index, and a RunRow as a row of them."""

from __future__ import annotations

import json
from dataclasses import fields
from math import isfinite
from typing import Any

from ..core.errors import StoreError
from ..core.history import Cell, RunRow

SCHEMA_VERSION = 3
"""To be raised with every change of the tables, and of what a RunRow means."""
VIEW = "runs"
_CELL = ("dut", "mode", "bidir", "rx_queues", "kind", "simulated")
_TYPES = {
    "bidir": "INTEGER",
    "rx_queues": "INTEGER",
    "simulated": "INTEGER",
    "at_least": "INTEGER",
    "warnings": "INTEGER",
    "line_rate_bps": "REAL",
    "loss_threshold": "REAL",
    "total_pps": "REAL",
    "uncertainty_pps": "REAL",
    "line_share": "REAL",
    "hold_loss": "REAL",
    "latency_s": "REAL",
    "cycles_per_packet": "REAL",
    "with_polling": "REAL",
    "vectors_per_call": "REAL",
    "power_w": "REAL",
    "uj_per_packet": "REAL",
}
_FLAGS = ("bidir", "simulated", "at_least")
_OWN = tuple(field.name for field in fields(RunRow) if field.name != "cell")
_SQL_WORDS = {"limit": "limited_by"}
COLUMNS = tuple(_SQL_WORDS.get(name, name) for name in (*_OWN, *_CELL))
"""Of the view ``runs``: RunRow's fields and its cell's; ``limit`` is a word of SQL, hence limited_by. nodes: JSON."""

_TABLE = ", ".join(f"{name} {_TYPES.get(name, 'TEXT')}" for name in COLUMNS if name != "path")
CREATE = (
    f"CREATE TABLE documents (path TEXT PRIMARY KEY, stamp TEXT NOT NULL, problem TEXT, {_TABLE})",
    "CREATE INDEX documents_started ON documents (started)",
    f"CREATE VIEW {VIEW} AS SELECT {', '.join(COLUMNS)} FROM documents WHERE problem IS NULL",
    "CREATE VIEW problems AS SELECT path, problem AS reason FROM documents WHERE problem IS NOT NULL",
)


def values_of(row: RunRow) -> tuple[Any, ...]:
    """In the order of COLUMNS; StoreError for figures and texts that no table can hold."""
    values = [getattr(row, name) for name in _OWN] + [getattr(row.cell, name) for name in _CELL]
    values[_OWN.index("nodes")] = json.dumps(dict(row.nodes))
    for name, value in zip(COLUMNS, values, strict=True):
        if isinstance(value, float) and not isfinite(value):
            raise StoreError(f"{name} is not finite", "the file is damaged")
        if isinstance(value, int) and abs(value) >= 1 << 63:
            raise StoreError(f"{name} is too large", "the file is damaged")
        if isinstance(value, str) and not _is_unicode(value):
            raise StoreError(f"{name} is no Unicode text", "the file is damaged")
    return tuple(values)


def row_from_values(values: tuple[Any, ...]) -> RunRow:
    named = dict(zip((*_OWN, *_CELL), values, strict=True))
    for name in _FLAGS:
        named[name] = bool(named[name])
    named["nodes"] = json.loads(named["nodes"])
    return RunRow(cell=Cell(*(named.pop(name) for name in _CELL)), **named)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
