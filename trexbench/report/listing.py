"""Stored runs in a line each, as text and as JSON values."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from ..core.history import RunRow
from ..core.units import format_pps, format_share, format_time
from .clean import clean
from .columns import lay_out
from .costs import format_cycles

HEAD = (
    "started",
    "DUT",
    "mode",
    "",
    "queues",
    "maximum",
    "of line",
    "limit",
    "loss in hold",
    "cycles/packet",
    "latency",
    "document",
)
NONE = "-"


def format_rows(rows: Sequence[RunRow]) -> str:
    """The table, in the rows' order; what is no plain complete measurement is marked."""
    return "\n".join(lay_out([HEAD, *(_row(row) for row in rows)], "llllrrrlrrrl"))


def row_values(row: RunRow) -> dict[str, Any]:
    """One run for machines; rates in frames per second, shares as fractions."""
    return {**asdict(row), "nodes": dict(row.nodes)}


def format_query(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: str) -> str:
    """What a query found: ``text``, ``csv`` or ``json``, each ending as such a text does."""
    found = [[_value(value) for value in row] for row in rows]
    if form == "json":
        return json.dumps([dict(zip(columns, row, strict=True)) for row in found], indent=1) + "\n"
    if form == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(found)
        return text.getvalue()
    cells = [[clean(name) for name in columns], *([_cell(value) for value in row] for row in found)]
    return "".join(f"{line}\n" for line in lay_out(cells, "l" * len(columns)))


def _row(row: RunRow) -> tuple[str, ...]:
    cell, nothing = row.cell, not row.complete and row.total_pps == 0  # killed before it saw anything
    marks = [row.status] if not row.complete else []
    marks += ["simulated"] if cell.simulated else []
    kind = "" if cell.kind == "ramp" else f" {cell.kind}"
    return (
        clean(row.started),
        clean(cell.dut),
        clean(cell.mode) + kind,
        "bidir" if cell.bidir else "uni",
        NONE if cell.rx_queues is None else str(cell.rx_queues),
        NONE if nothing else f"{'>= ' if row.at_least else ''}{format_pps(row.total_pps)}",
        NONE if nothing else format_share(row.line_share),
        ", ".join([clean(row.limit), *marks]),
        NONE if row.hold_loss is None else format_share(row.hold_loss),
        NONE if row.cycles_per_packet is None else format_cycles(row.cycles_per_packet),
        NONE if row.latency_s is None else format_time(row.latency_s),
        clean(row.path),
    )


def _value(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _cell(value: Any) -> str:
    return NONE if value is None else clean(value)
