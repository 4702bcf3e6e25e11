"""Stored runs as an Apache Parquet file, for DuckDB, pandas and their like. All that uses pyarrow."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from importlib import metadata
from typing import Any

from ..core.errors import ConfigError
from ..core.history.rows import RunRow

MISSING = "pyarrow is not installed", "pip install 'trexbench[parquet]'"


@dataclass(frozen=True)
class _Field:
    """A column: its name with the value's unit, and the kind of its values."""

    name: str
    kind: str
    of: Callable[[RunRow], Any]


def _same(kind: str, *names: str) -> list[_Field]:
    """Fields of a RunRow that keep their names."""
    return [_Field(name, kind, lambda row, name=name: getattr(row, name)) for name in names]  # type: ignore[misc]


def _instant(text: str) -> datetime | None:
    """UTC; None for what is none."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text or "")
    except ValueError:
        return None


_FIELDS: Sequence[_Field] = (
    *_same("text", "path", "id"),
    _Field("started", "instant", lambda row: _instant(row.started)),
    _Field("night", "date", lambda row: _date(row.night)),
    *_same("text", "suite", "label", "status"),
    _Field("simulated", "truth", lambda row: row.cell.simulated),
    _Field("dut", "text", lambda row: row.cell.dut),
    _Field("variant", "text", lambda row: row.cell.variant),
    _Field("over", "text", lambda row: row.cell.over or None),
    _Field("mode", "text", lambda row: row.cell.mode),
    _Field("bidir", "truth", lambda row: row.cell.bidir),
    _Field("rx_queues", "integer", lambda row: row.cell.rx_queues),
    _Field("kind", "text", lambda row: row.cell.kind),
    *_same("text", "traffic", "facts"),
    _Field("limited_by", "text", lambda row: row.limit),
    *_same("truth", "at_least"),
    _Field("total_pps", "number", lambda row: row.packet_rate),
    _Field("uncertainty_pps", "number", lambda row: None if row.packet_rate is None else row.uncertainty_pps),
    *_same("number", "total_bps"),
    _Field("uncertainty_bps", "number", lambda row: None if row.total_bps is None else row.uncertainty_bps),
    *_same("number", "line_rate_bps", "line_share"),
    _Field("loss_threshold_share", "number", lambda row: row.loss_threshold),
    _Field("hold_loss_share", "number", lambda row: row.hold_loss),
    *_same("number", "latency_s", "cycles_per_packet"),
    _Field("with_polling_cycles_per_packet", "number", lambda row: row.with_polling),
    _Field("nodes_cycles_per_packet", "numbers", lambda row: list(row.nodes.items())),
    *_same("number", "vectors_per_call", "power_w", "idle_power_w", "uj_per_packet", "round_trip_ns"),
    _Field("retransmitted_share", "number", lambda row: row.retransmitted),
    *_same("number", "cores_per_gbps", "ping_idle_s", "ping_loaded_s"),
    *_same("integer", "warnings"),
)


def to_parquet(rows: Iterable[RunRow]) -> bytes:
    """The file's bytes: a row for each run, of TCP one for each way and version. ConfigError without pyarrow."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ConfigError(*MISSING) from None
    kinds = {
        "text": pyarrow.string(),
        "instant": pyarrow.timestamp("us", tz="UTC"),
        "date": pyarrow.date32(),
        "truth": pyarrow.bool_(),
        "integer": pyarrow.int64(),
        "number": pyarrow.float64(),
        "numbers": pyarrow.map_(pyarrow.string(), pyarrow.float64()),
    }
    told = {"trexbench_version": metadata.version("trexbench")}
    schema = pyarrow.schema([(one.name, kinds[one.kind]) for one in _FIELDS], metadata=told)
    found = list(rows)
    columns = [[one.of(row) for row in found] for one in _FIELDS]
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns, schema=schema), file)
    return file.getvalue()
