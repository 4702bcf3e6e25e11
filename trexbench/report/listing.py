"""Tables of stored runs and of a query's answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from ..core.history.rows import METRICS, Metric, RunRow
from ..core.verdict.parts import Limit
from .clean import clean
from .sheet import UNITS, Head, Item, Sheet, figure, heads_of, make_sheet, of_line_share, of_metric, of_text
from .words import NONE, format_whole


def run_sheet(rows: Sequence[RunRow], units: bool = False) -> Sheet:
    """Table of the runs in this order; incomplete, simulated and emulated ones are marked. units: add their column."""
    costs = [cost for cost in METRICS.values() if not cost.bounded and any(cost.of(row) is not None for row in rows)]
    costs.sort(key=lambda cost: cost.rank)
    heads = (
        *heads_of(f":started, UTC; ::DUT; ::mode; :way; maximum; {'unit; ' * units}of line [%]^1; ::limit"),
        *(Head(cost.name, UNITS.get(cost.unit, cost.unit), rank=2 + cost.rank) for cost in costs),
        Head("document", words=True, rank=20),
    )
    return make_sheet(heads, (_run_items(row, costs, units) for row in rows), "runs", "Stored runs")


def _run_items(row: RunRow, costs: Sequence[Metric], units: bool) -> Iterator[Item | str]:
    yield clean(row.started)[:16].replace("T", " ")
    yield row.cell.dut_words
    yield f"{row.cell.mode} {row.cell.kind_words}".rstrip()
    queues = "" if row.cell.rx_queues is None else f" {row.cell.rx_queues}q"
    yield f"{'bidir' if row.cell.bidir else 'uni'}{queues}"
    # A run at a given rate has no maximum, and a lower bound of 0 says nothing.
    has_maximum = row.metric.bounded and not (row.at_least and row.metric.of(row) == 0)
    value = row.metric.of(row) if has_maximum else None
    yield figure(value, partial(format_whole, metric=row.metric), bound=row.at_least)
    if units:
        yield NONE if value is None else row.metric.unit
    share = row.line_share if value is not None and row.line_rate_bps else None
    yield of_line_share(share, row.at_least)
    carried = row.cell.held_pps is not None and row.limit == Limit.NONE.value
    marks = ("" if carried else clean(row.limit), "" if row.complete else row.status, row.cell.mark)
    yield ", ".join(filter(None, marks)) or NONE
    yield from (of_metric(cost.of(row), cost) for cost in costs)
    yield row.path


def query_sheet(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Sheet:
    """Table of a query's answer."""
    texts = [any(isinstance(row[at], str) for row in rows) for at in range(len(columns))]
    heads = [Head(clean(name), words=True, wraps=wraps) for name, wraps in zip(columns, texts, strict=True)]
    items = ([of_text(NONE if value is None else _plain(value)) for value in row] for row in rows)
    return make_sheet(heads, items, "query")


def query_values(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """JSON values of a query's answer."""
    return [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
