"""Stored runs, a row each, as text and as JSON values."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from ..core.history.rows import RunRow
from ..core.strategy.table import suffix_of
from ..core.units import format_share, format_time
from .clean import clean
from .words import NONE, format_bound, format_cycles, lay_out, or_dash


def format_rows(rows: Sequence[RunRow]) -> str:
    """The table, in the rows' order; runs that are incomplete or simulated are marked."""
    heads, sides, cells = zip(*_COLUMNS, strict=True)
    return "\n".join(lay_out([heads, *([cell(row) for cell in cells] for row in rows)], "".join(sides)))


def row_values(row: RunRow) -> dict[str, Any]:
    """One run for machines; rates in frames per second, shares as fractions."""
    return asdict(row)


def format_query(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: str) -> str:
    """A query's result as ``text``, ``csv`` or ``json``."""
    found = [[value.hex() if isinstance(value, bytes) else value for value in row] for row in rows]
    if form == "json":
        return json.dumps([dict(zip(columns, row, strict=True)) for row in found], indent=1) + "\n"
    if form == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(found)
        return text.getvalue()
    cells = [[NONE if value is None else clean(value) for value in row] for row in [columns, *found]]
    return "".join(f"{line}\n" for line in lay_out(cells, "l" * len(columns)))


def _measured(row: RunRow) -> bool:
    """Not killed before it measured anything."""
    return row.complete or row.rate != 0


def _limit(row: RunRow) -> str:
    marks = [] if row.complete else [row.status]
    marks += ["simulated"] if row.cell.simulated else []
    return ", ".join([clean(row.limit), *marks])


_COLUMNS: Sequence[tuple[str, str, Callable[[RunRow], str]]] = (
    ("started", "l", lambda row: clean(row.started)),
    ("DUT", "l", lambda row: clean(" ".join(filter(None, (row.cell.dut, row.cell.variant))))),
    ("mode", "l", lambda row: f"{clean(row.cell.mode)} {suffix_of(row.cell.kind)}".rstrip()),
    ("", "l", lambda row: "bidir" if row.cell.bidir else "uni"),
    ("queues", "r", lambda row: or_dash(row.cell.rx_queues, str)),
    ("maximum", "r", lambda row: format_bound(row.rate, row.at_least, row.rate_unit) if _measured(row) else NONE),
    ("of line", "r", lambda row: format_share(row.line_share) if _measured(row) and row.line_rate_bps else NONE),
    ("limit", "l", _limit),
    ("loss in hold", "r", lambda row: or_dash(row.hold_loss, format_share)),
    ("cycles/packet", "r", lambda row: or_dash(row.cycles_per_packet, format_cycles)),
    ("latency", "r", lambda row: or_dash(row.latency_s, format_time)),
    ("document", "l", lambda row: clean(row.path)),
)
"""Head, alignment and cell of each column."""
