"""Stored runs, a row each, as text and as JSON values."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

from ..core.history.rows import METRICS, Metric, RunRow
from ..core.units import format_share
from ..core.verdict.model import Limit
from .clean import clean
from .fit import TableColumn, format_fitting
from .words import NONE, format_figure, format_whole, lay_out, or_dash


def format_rows(rows: Sequence[RunRow], room: int | None = None) -> str:
    """The table, in the rows' order; runs that are incomplete or simulated are marked. room: columns, as of fit."""
    shown = [one for one in METRICS.values() if not one.bounded and any(one.of(row) is not None for row in rows)]
    columns = [*_COLUMNS, *map(_column, sorted(shown, key=lambda one: one.rank)), _DOCUMENT]
    return "\n".join(format_fitting(columns, rows, room))


def _column(metric: Metric) -> TableColumn[RunRow]:
    return TableColumn(metric.name, "r", lambda row: format_figure(metric.of(row), metric), 2 + metric.rank)


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
    return row.metric.bounded and (row.complete or row.metric.of(row) != 0)


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
        "maximum",
        "r",
        lambda row: format_whole(row.metric.of(row), row.metric, row.at_least) if _has_maximum(row) else NONE,
    ),
    TableColumn(
        "of line", "r", lambda row: format_share(row.line_share) if _has_maximum(row) and row.line_rate_bps else NONE, 1
    ),
    TableColumn("limit", "l", _limit, wraps=True),
)
_DOCUMENT = TableColumn[RunRow]("document", "l", lambda row: clean(row.path), 20)
