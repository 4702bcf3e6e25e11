"""Stored runs, a row each, as text and as JSON values."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

from ..core.history.rows import RunRow
from ..core.units import format_share, format_time
from ..core.verdict.model import Limit
from .clean import clean
from .fit import TableColumn, format_fitting
from .words import NONE, format_bound, format_cycles, lay_out, or_dash


def format_rows(rows: Sequence[RunRow], room: int | None = None) -> str:
    """The table, in the rows' order; runs that are incomplete or simulated are marked. room: columns, as of fit."""
    return "\n".join(format_fitting(_COLUMNS, rows, room))


def row_values(row: RunRow) -> dict[str, Any]:
    """One run for machines; rates in frames per second, shares as fractions."""
    return row.to_dict()


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


def _has_maximum(row: RunRow) -> bool:
    """Neither killed before it measured anything, nor a run at a given rate, which looks for no maximum."""
    return (row.complete or row.rate != 0) and row.cell.held_pps is None


def _limit(row: RunRow) -> str:
    marks = [] if row.complete else [row.status]
    marks += ["simulated"] if row.cell.simulated else []
    carried = row.cell.held_pps is not None and row.limit == Limit.NONE.value
    return ", ".join([*([] if carried else [clean(row.limit)]), *marks]) or NONE


_COLUMNS: Sequence[TableColumn[RunRow]] = (
    TableColumn("started, UTC", "l", lambda row: clean(row.started)[:16].replace("T", " ")),
    TableColumn("DUT", "l", lambda row: clean(row.cell.dut_words), wraps=True),
    TableColumn("mode", "l", lambda row: f"{clean(row.cell.mode)} {row.cell.kind_words}".rstrip(), wraps=True),
    TableColumn("", "l", lambda row: "bidir" if row.cell.bidir else "uni"),
    TableColumn("queues", "r", lambda row: or_dash(row.cell.rx_queues, str), 2),
    TableColumn(
        "maximum", "r", lambda row: format_bound(row.rate, row.at_least, row.rate_unit) if _has_maximum(row) else NONE
    ),
    TableColumn(
        "of line", "r", lambda row: format_share(row.line_share) if _has_maximum(row) and row.line_rate_bps else NONE, 1
    ),
    TableColumn("limit", "l", _limit, wraps=True),
    TableColumn("loss in hold", "r", lambda row: or_dash(row.hold_loss, format_share), 4),
    TableColumn("cycles/packet", "r", lambda row: or_dash(row.cycles_per_packet, format_cycles), 3),
    TableColumn("latency", "r", lambda row: or_dash(row.latency_s, format_time), 5),
    TableColumn("document", "l", lambda row: clean(row.path), 6),
)
