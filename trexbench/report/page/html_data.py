"""The data of the page's plots, as compact JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.history.cell import Cell
from ...core.history.regression import Finding
from ..clean import clean
from ..palette import page_palette
from ..plots import PlotFigure
from .columns import column_of
from .looks import find_looks
from .overlay import Curve
from .parts import Part
from .plots_packets import cost_figure, latency_figure, ramp_figure, rate_figure
from .plots_tcp import bar_figure, series_figure
from .plots_trends import nights_of, trend_data, trend_figures
from .report import Report
from .tcp import TcpCell, mode_words


def page_data(report: Report, parts: Sequence[Part]) -> dict[str, Any]:
    """The cells once; everything else refers to them by index."""
    tcp = [one.cell for one in report.tcp_cells]
    found = [*(c.cell for c in report.curves), *(t.cell for t in report.trends), *report.costs, *tcp]
    found += [cell for part in parts for one in part.figures for line in one.lines for cell in line.cells]
    cells = {cell: at for at, cell in enumerate(dict.fromkeys(found))}
    every, nights, arrays = report.columns, nights_of(report.trends), dict[Sequence[float | None], int]()
    figures = find_figures(report, [*cells]) | {part.name: part.figures for part in parts if part.figures}
    return {
        "palette": page_palette(),
        "columns": [{"name": clean(report.said(column)), "mark": column.mark} for column in every],
        "cells": [
            {
                "name": clean(str(cell)),
                "mode": clean(cell.mode),
                "bidir": cell.bidir,
                "strategy": cell.kind_words,
                **({"given": cell.kind} if cell.held_pps is not None else {}),
                "column": every.index(column_of(cell)),
                **({"tcp": clean(mode_words(cell))} if cell.tcp else {}),
            }
            for cell in cells
        ],
        "nights": [*nights],
        "trends": {cells[trend.cell]: trend_data(trend, nights) for trend in report.trends},
        "figures": {name: [one.data(cells, arrays) for one in some] for name, some in figures.items()},
        "arrays": [*arrays],
    }


def find_figures(report: Report, cells: Sequence[Cell]) -> dict[str, Sequence[PlotFigure]]:
    """The figures of everything but the loads' own sections, by their place on the page."""
    ways: dict[Cell, list[str]] = {cell: [] for cell in cells}
    directions = [(curve.cell, curve.direction) for curve in report.curves]
    for cell, direction in [*directions, *((row.cell, row.direction) for row in report.latency.rows)]:
        ways[cell].append(direction)
    for of in report.tcp_cells:
        ways[of.cell] += [str(number) for number in range(len(of.flows))]
    looks = find_looks(report.columns, {cell: some or [""] for cell, some in ways.items()})
    rates = rate_figure(report, looks)
    found: dict[str, Sequence[PlotFigure]] = {
        "tcp": [bar_figure(report, looks)] if report.tcp_cells else [],
        "series": [series_figure(report, looks)] if report.tcp_cells else [],
        "ramps": [ramp_figure(report, looks)] if report.curves else [],
        "costs": [cost_figure(report, looks)] if report.costs else [],
        "rates": [rates] if rates is not None else [],
        "latency": [latency_figure(report, looks)] if report.latency.rows else [],
        "trends": [*trend_figures(report.trends, report.metrics, nights_of(report.trends), looks, cells)],
    }
    return {name: some for name, some in found.items() if some}


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
