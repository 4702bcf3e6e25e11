"""Columns of a run's row in queries, exports and Parquet files, each with its type and unit. Pure."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from ..core.history.cell import Cell
from ..core.history.rows import RunRow, figure_columns

FLAGS = ("bidir", "simulated", "emulated", "at_least")
COUNTS = ("rx_queues", "warnings")
NUMBERS = ("line_rate_bps", "line_share", "loss_threshold", "held_pps", *figure_columns())
_UNITS = {
    **dict.fromkeys(("line_share", "loss_threshold", "hold_loss", "retransmitted", "vectors_per_call"), "1"),
    **dict.fromkeys(("cycles_per_packet", "with_polling", "nodes"), "cycles/packet"),
    "cores_per_gbps": "cores/(Gbit/s)",
    "uj_per_packet": "uJ/packet",
}
_ENDINGS = {"_pps": "pps", "_bps": "bit/s", "_s": "s", "_w": "W"}


def column_names() -> list[str]:
    """List the fields of a row and of its cell, and the columns of figures."""
    header = [item.name for kind in (RunRow, Cell) for item in fields(kind) if item.name not in ("cell", "figures")]
    names = [*header, *figure_columns()]
    return ["limited_by" if name == "limit" else name for name in names]  # LIMIT is a word of SQL


def column_values(row: RunRow) -> dict[str, Any]:
    """Map column_names, among others, to a row's values; nodes: JSON."""
    values = row.to_dict()
    nodes = json.dumps(row.nodes, separators=(",", ":"))
    return {**values, **values["cell"], "limited_by": row.limit, "nodes": nodes}


def unit_of(column: str) -> str:
    """Return the unit of a column's values; ``1``: a share or a ratio; empty: none."""
    ending = next((unit for ending, unit in _ENDINGS.items() if column.endswith(ending)), "")
    return _UNITS.get(column, ending)
