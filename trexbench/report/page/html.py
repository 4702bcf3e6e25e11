"""The report as one self-contained HTML page: no network, no other file; and the data of its plots, as JSON values.

Whatever comes from documents is escaped where it is put into the page (by the template engine, by the script before it
gives text to the plots; the plots' data are packed). Should that ever fail, the page's policy still keeps it from
running: only scripts with the digests of ours may run, and nothing may be loaded.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from ...core.history.cell import Cell
from ..clean import clean
from ..palette import page_palette
from ..plots import PlotFigure
from ..sheet import SheetRow
from .cards import cards_of
from .columns import column_of, find_looks
from .older import REASONS
from .parts import Part, parts_of
from .plots_packets import cost_figure, latency_figure, ramp_figure, rate_figure
from .plots_tcp import bar_figure, series_figure
from .plots_trends import nights_of, trend_data, trend_figures
from .report import Report
from .sheets import sheets_of
from .tcp import mode_words
from .templates import fill, read_static

SCRIPTS = ("cards.js", "tables.js", "view.js", "page.js")
"""They are joined to one script, in this order."""
PLOT_SCRIPTS = ("drawing.js", "lines.js", "stack.js", "grid.js", "rows.js", "documents.js", "plots.js")
"""They are packed, as the library is: without what unpacks it there is no plot."""
MOST_ROWS = 25
"""Further rows of a table are packed."""
MOST_FAILURES = 60
"""Nights without a figure whose reasons are told, of each cell."""
MOST_CARDS = 9
"""More events are folded away."""
Blocks = Sequence[tuple[str, Sequence[SheetRow]]]
"""A table's blocks and their rows."""


def render(report: Report, library: str, version: str = "") -> str:
    """The page. library: the plotting library's JavaScript; version: of a page that is served and renews itself."""
    parts = parts_of(report)
    data, rows = page_data(report, parts), list[str]()

    def set_aside(body: Markup) -> int:
        """Keep a table's rows, and return their number."""
        rows.append(str(body))
        return len(rows) - 1

    values = {
        "report": report,
        "parts": parts,
        "choice": default_choice(report),
        "modes": list(dict.fromkeys(cell["mode"] for cell in data["cells"] if "tcp" not in cell)),
        "tcp_choice": default_tcp_mode(report),
        "columns": data["columns"],
        "directions": list(dict.fromkeys(curve.direction for curve in report.curves)),
        "cards": [replace(one, trend=Markup(one.trend)) for one in cards_of(report)],
        "notes": _notes(report),
        "most_rows": MOST_ROWS,
        "most_cards": MOST_CARDS,
        "most_failures": MOST_FAILURES,
        "sheets": {sheet.name: sheet for sheet in sheets_of(report, parts)},
        "older": [
            (key, REASONS[key])
            for key in REASONS
            if any(key in one.why and one.drawn for some in report.older.values() for one in some)
        ],
        "uni_directions": {curve.direction for curve in report.curves if not curve.cell.bidir},
        "nights": data["nights"],
        "rates": "rates" in data["figures"],
        "metrics": [metric.name for metric in report.metrics],
        "split": _split,
        "set_aside": set_aside,
        "data": lambda: Markup(_packed(json.dumps(data | {"rows": rows}, separators=(",", ":"), allow_nan=False))),
    }
    return fill("page.html", values | _static_values(library, version), clean)


def _static_values(library: str, version: str) -> dict[str, Any]:
    """The page's scripts and style, and the policy that lets these scripts run, and nothing be loaded.

    Styles are inline, pictures can be saved from the page, and one that is served may ask who serves it.
    """
    script = "".join(map(read_static, (*SCRIPTS, *(["follow.js"] if version else []))))
    plots = "".join(map(read_static, PLOT_SCRIPTS))
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'"
        for one in (script, library, plots)
    )
    connect = " connect-src 'self';" if version else ""
    return {
        "version": version,
        "policy": f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data: blob:;"
        f"{connect} base-uri 'none'; form-action 'none'",
        "style": Markup(read_static("page.css")),
        "script": Markup(script),
        "library": Markup(_packed_always(library)),
        "plots": Markup(_packed_always(plots)),
    }


def _split(parts: Blocks) -> tuple[Blocks, Blocks]:
    """The parts of a table up to its row MOST_ROWS, and the rest; it begins with what is left of the last of them."""
    room = MOST_ROWS
    for at, (block, lines) in enumerate(parts):
        if len(lines) >= room:
            return [*parts[:at], (block, lines[:room])], [(block, lines[room:]), *parts[at + 1 :]]
        room -= len(lines)
    return parts, []


def _notes(report: Report) -> dict[tuple[Cell, str], int]:
    """The number of the details of every run that has any, by its cell and begin."""
    runs = [(cell, run.started) for cell, run in report.runs.items()]
    tcp = {run.id: len(runs) + at for at, (run, _) in enumerate(report.tcp_runs)}
    return {key: at for at, key in enumerate(runs)} | {
        (cell, run.started): tcp[run.id] for cell, run in report.tcp.items()
    }


def _packed(text: str) -> str:
    """Compressed to a third or less, five letters for four bytes; the page's script unpacks it.

    It has no character that means anything within a script's element: ``.`` stands for ``<``.
    """
    return base64.b85encode(gzip.compress(text.encode(), 9, mtime=0)).decode().replace("<", ".")


_packed_always = lru_cache(maxsize=2)(_packed)
"""Packs what is the same on every page."""


def page_data(report: Report, parts: Sequence[Part]) -> dict[str, Any]:
    """The cells once; everything else refers to them by index."""
    tcp = [one.cell for one in report.tcp_cells]
    found = [*(c.cell for c in report.curves), *(t.cell for t in report.trends), *report.costs, *tcp]
    found += [cell for part in parts for one in part.figures for line in one.lines for cell in line.cells]
    cells = {cell: at for at, cell in enumerate(dict.fromkeys(found))}
    every, nights, arrays = report.columns, nights_of(report.trends), dict[Sequence[float | None], int]()
    figures = find_figures(report, [*cells], nights) | {part.name: part.figures for part in parts if part.figures}
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


def find_figures(report: Report, cells: Sequence[Cell], nights: dict[str, int]) -> dict[str, Sequence[PlotFigure]]:
    """The figures of everything but the loads' own sections, by their place on the page."""
    ways: dict[Cell, list[str]] = {cell: [] for cell in cells}
    for cell, direction in [(one.cell, one.direction) for some in (report.curves, report.latency.rows) for one in some]:
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
        "trends": [*trend_figures(report.trends, report.metrics, nights, looks, cells)],
    }
    return {name: some for name, some in found.items() if some}


def default_choice(report: Report) -> tuple[str, bool] | None:
    """The mode, as the data name it, and the direction that are shown first: those of the alarming change, if any."""
    alarming = [report.alarming.cell] if report.alarming is not None and not report.alarming.cell.tcp else []
    cell = next(iter([*alarming, *(curve.cell for curve in report.curves)]), None)
    return None if cell is None else (clean(cell.mode), cell.bidir)


def default_tcp_mode(report: Report) -> str | None:
    """The mode of TCP, as the data name it, that is shown first: that of the alarming change, else of most DUTs."""
    if (alarming := report.alarming) is not None and alarming.cell.tcp:
        return clean(alarming.cell.mode)
    modes = [clean(one.cell.mode) for one in report.tcp_cells]
    return max(modes, key=modes.count, default=None)
