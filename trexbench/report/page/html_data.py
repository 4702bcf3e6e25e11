"""The data of the page's plots, as compact JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.dut.cycles import Cost
from ...core.history.cell import Cell
from ...core.history.regression import Finding
from ...core.history.rows import Metric
from ...core.tcp.result import FlowResult
from ...core.verdict.latency import Latency
from ..clean import clean
from ..palette import page_palette
from ..plots import short
from .columns import column_of
from .latency import LatencyRow
from .older import Older
from .overlay import Curve
from .parts import Part
from .report import Report, night_of_run
from .tcp import TcpCell, mode_words, points_of
from .trend_data import trends_data

SCALE: Mapping[str, tuple[float, str]] = {
    "pps": (1e-6, "Mpps"),
    "share": (100.0, "%"),
    "us": (1.0, "\u00b5s"),
    "bit/s": (1e-6, "Mbit/s"),
}
"""By a metric's unit: the factor and the unit of its axis."""


def page_data(report: Report, parts: Sequence[Part]) -> dict[str, Any]:
    """The cells once; everything else refers to them by index."""
    curves, trends, costs = report.curves, report.trends, report.costs
    found = [*(c.cell for c in curves), *(t.cell for t in trends), *costs, *(one.cell for one in report.tcp_cells)]
    found += [cell for part in parts for one in part.figures for line in one.lines for cell in line.cells]
    cells = {cell: at for at, cell in enumerate(dict.fromkeys(found))}
    every = report.columns
    older = [(cell, one) for cell, some in report.older.items() if cell in cells for one in some]
    return {
        "palette": page_palette(),
        "columns": [{"name": clean(column.name), "simulated": column.simulated} for column in every],
        "cells": [
            {
                "name": clean(str(cell)),
                "mode": clean(cell.mode),
                "bidir": cell.bidir,
                "strategy": cell.kind_words,
                **({"given": cell.kind} if cell.held_pps is not None else {}),
                "column": every.index(column_of(cell)),
                **({"tcp": clean(mode_words(cell))} if cell.tcp else {}),
                **({"night": clean(report.dated[cell])} if cell in report.dated else {}),
            }
            for cell in cells
        ],
        "metrics": [_metric(metric) for metric in report.metrics],
        "curves": [
            _curve(curve, cells[curve.cell]) | {"night": clean(night_of_run(report.runs[curve.cell]))}
            for curve in curves
        ],
        "older": [
            _curve(curve, cells[cell], 3) | _about(one) | {"otherwise": one.otherwise}
            for cell, one in older
            for curve in one.curves
        ],
        "latency": [
            *_latencies(report.latency.rows, cells),
            *(found | _about(one) for _, one in older for found in _latencies(one.latencies, cells)),
        ],
        **trends_data(trends, cells),
        "tcp": [_tcp(one, cells[one.cell]) for one in report.tcp_cells],
        "figures": {part.name: [one.data(cells) for one in part.figures] for part in parts if part.figures},
        "costs": [
            *(_cost(cost, cells[cell]) for cell, stretches in costs.items() for cost in stretches),
            *(_cost(cost, cells[cell]) | _about(one) for cell, one in older for cost in one.costs),
        ],
    }


def default_choice(curves: Sequence[Curve], alarming: Finding | None) -> tuple[str, bool] | None:
    """The mode, as the data name it, and the direction that are shown first: those of the alarming change.

    Without one, those in which the DUTs differ most, in shares of line rate.
    """
    if alarming is not None and not alarming.cell.tcp:
        return clean(alarming.cell.mode), alarming.cell.bidir
    totals: dict[Cell, float] = {}
    for curve in curves:
        share = curve.result.maximum_pps / curve.line_rate_pps / (1 + curve.cell.bidir)
        totals[curve.cell] = totals.get(curve.cell, 0.0) + share
    groups: dict[tuple[str, bool], list[float]] = {}
    for cell, total in totals.items():
        groups.setdefault((clean(cell.mode), cell.bidir), []).append(total)
    return max(groups, key=lambda key: max(groups[key]) - min(groups[key]), default=None)


def default_tcp_mode(cells: Sequence[TcpCell], alarming: Finding | None) -> str | None:
    """The mode of TCP, as the data name it, that is shown first: that of the alarming change, else of most DUTs."""
    if alarming is not None and alarming.cell.tcp:
        return clean(alarming.cell.mode)
    modes = [clean(one.cell.mode) for one in cells]
    return max(modes, key=modes.count, default=None)


def _metric(metric: Metric) -> dict[str, Any]:
    scale, unit = SCALE.get(metric.unit, (1.0, metric.unit))
    return {
        "name": metric.name,
        "unit": unit,
        "scale": scale,
        **({"bounded": True} if metric.bounded else {}),
    }


def _curve(curve: Curve, cell: int, digits: int = 6) -> dict[str, Any]:
    one = curve.result
    return {
        "cell": cell,
        "direction": curve.direction,
        "line": round(curve.line_rate_pps),
        "threshold": curve.loss_threshold,
        "x": [round(value) for value in curve.offered_pps],
        "y": [round(value) for value in curve.received_pps],
        "loss": [short(value, digits) for value in curve.loss],
        "knee": curve.knee_pps,
        "bound": curve.bound_pps,
        "low": one.low_pps,
        "high": one.high_pps,
        "words": curve.words,
    }


def _about(older: Older) -> dict[str, Any]:
    """Night of an older figure, and the reasons for showing it."""
    return {"night": clean(older.night), "why": older.why, "label": older.words}


def _cost(cost: Cost, cell: int) -> dict[str, Any]:
    return {
        "cell": cell,
        "phase": cost.phase.value,
        "x": round(cost.forwarded_pps),
        "y": short(cost.cycles_per_packet),
        "polling": short(cost.with_polling),
        "vectors": short(cost.vectors_per_call),
    }


def _latencies(rows: Sequence[LatencyRow], cells: Mapping[Cell, int]) -> list[dict[str, Any]]:
    return [_latency(one, row, cells[row.cell]) for row in rows for one in row.loads if one is not None]


def _latency(one: Latency, row: LatencyRow, cell: int) -> dict[str, Any]:
    """Times in microseconds."""
    return {
        "cell": cell,
        "direction": row.direction,
        "line": round(row.line_rate_pps),
        "share": one.share,
        "x": round(one.offered_pps),
        "loss": short(one.loss, 3),
        "lossy": one.lossy,
        "mean": short(one.mean_s, scale=1e6),
        "p99": short(one.p99_s, scale=1e6),
    }


def _tcp(one: TcpCell, cell: int) -> dict[str, Any]:
    """Rates in Mbit/s, times in milliseconds, shares in percent."""
    summary, hottest = one.summary, one.hottest
    return {
        "cell": cell,
        "night": clean(night_of_run(one.result)),
        "rate": short(summary.rate_bps, scale=1e-6),
        "apart": short(summary.uncertainty_bps, 3, scale=1e-6),
        "bound": summary.at_least,
        "limit": summary.limit.words,
        "why": [clean(reason) for reason in one.reasons],
        "line": short(summary.link_bps, scale=1e-6),
        "idle": short(summary.ping_idle_s, 4, scale=1e3),
        "loaded": short(summary.ping_loaded_s, 4, scale=1e3),
        "cores": [short(busy, 4, scale=100) for busy in one.cores],
        "hottest": None if hottest is None else [hottest.cpu, short(hottest.busy, 4, scale=100)],
        "efficiency": short(one.bps_per_percent, 4, scale=1e-6),
        "power": short(summary.power_w, 4),
        "series": [_series(flow, len({other.flow.sender for other in one.flows}) > 1) for flow in one.flows],
    }


def _series(flow: FlowResult, both: bool) -> dict[str, Any]:
    """One direction of a leg over time. name: what tells it from the others of its cell."""
    points = points_of(flow)
    names = [f"{flow.flow.sender} sends"] if both else []
    names += [f"repetition {flow.leg.repetition}"] if flow.leg.repetition > 1 else []
    return {
        "name": ", ".join(names),
        "x": [short(point.at_s) for point in points],
        "y": [short(point.received_bps, scale=1e-6) for point in points],
        "again": [short(point.retransmitted_ps, 4) for point in points],
        "rtt": [short(point.rtt_s, 4, scale=1e3) for point in points],
    }
