"""Stored runs as a table, a row each, and the answer of a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from ..core.history.rows import METRICS, Metric, RunRow
from ..core.units import format_share
from ..core.verdict.model import Limit
from .clean import clean
from .sheet import Head, Item, Sheet, figure, heads_of, make_sheet, of_text
from .words import NONE, format_figure, format_whole


def run_sheet(rows: Sequence[RunRow], units: bool = False) -> Sheet:
    """Table of the runs in this order; the incomplete, simulated or emulated are marked. units: they have a column."""
    every = (one for one in METRICS.values() if not one.bounded and any(one.of(row) is not None for row in rows))
    metrics = sorted(every, key=lambda one: one.rank)
    heads = (
        *heads_of(f":started, UTC; ::DUT; ::mode; :way; maximum; {'unit; ' * units}of line [share]^1; ::limit"),
        *(Head(one.name, one.unit, rank=2 + one.rank) for one in metrics),
        Head("document", words=True, rank=20),
    )
    return make_sheet(heads, (_items(row, metrics, units) for row in rows), "runs", "Stored runs")


def _items(row: RunRow, metrics: Sequence[Metric], units: bool) -> Iterator[Item | str]:
    yield clean(row.started)[:16].replace("T", " ")
    yield row.cell.dut_words
    yield f"{row.cell.mode} {row.cell.kind_words}".rstrip()
    queues = "" if row.cell.rx_queues is None else f" {row.cell.rx_queues}q"
    yield f"{'bidir' if row.cell.bidir else 'uni'}{queues}"
    # Neither a run at a given rate has a maximum, nor one that was killed before it measured anything.
    has_maximum = row.metric.bounded and (row.complete or row.metric.of(row) != 0)
    value = row.metric.of(row) if has_maximum else None
    yield figure(value, partial(format_whole, metric=row.metric), bound=row.at_least)
    if units:
        yield row.metric.unit
    yield figure(row.line_share if value is not None and row.line_rate_bps else None, format_share)
    carried = row.cell.held_pps is not None and row.limit == Limit.NONE.value
    marks = ("" if carried else clean(row.limit), "" if row.complete else row.status, row.cell.mark)
    yield ", ".join(filter(None, marks)) or NONE
    yield from (figure(one.of(row), partial(format_figure, metric=one)) for one in metrics)
    yield row.path


def query_sheet(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Sheet:
    """Table of a query's answer, as the index has it."""
    heads = [
        Head(clean(name), words=True, wraps=any(isinstance(row[at], str) for row in rows))
        for at, name in enumerate(columns)
    ]
    items = ([of_text(NONE if value is None else _plain(value)) for value in row] for row in rows)
    return make_sheet(heads, items, "query")


def query_values(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """JSON values of a query's answer."""
    return [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
