"""The report as one HTML page, which needs no network and no other file; and the data of its plots, as JSON values.

Text of documents is escaped where it enters the page: by the template engine, and by the script before it gives text to
the plots, whose data are packed. Should that ever fail, the page's policy still keeps it from running: only scripts
with our digests may run, and nothing may be loaded.
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
from ..palette import DARK, LIGHT, MARKERS
from ..plots import PlotFigure
from ..sheet import SheetRow
from ..words import COUNTED
from .cards import cards_of
from .columns import column_of, find_looks
from .overlay import REASONS
from .plots_packets import cost_figure, latency_figure, ramp_figure, rate_figure
from .plots_tcp import bar_figure, series_figure
from .plots_trends import nights_of, trend_data, trend_figures
from .report import Report
from .sheets import Part, parts_of, sheets_of
from .tcp import mode_words
from .templates import fill, read_static

SCRIPTS = ("cards.js", "tables.js", "view.js", "page.js")
"""Joined to one script, in this order."""
PLOT_SCRIPTS = ("drawing.js", "lines.js", "stack.js", "grid.js", "rows.js", "documents.js", "plots.js")
"""Packed like the library: a browser that cannot unpack that draws no plot anyway."""
MOST_ROWS = 25
"""Rows of a table that are not packed."""
MOST_FAILURES = 60
"""Nights without a figure whose reasons are listed, for each cell."""
MOST_CARDS = 9
"""Events that are not folded away."""
WAYS = (False, "uni", "unidirectional"), (True, "bidir", "bidirectional")
"""Directions to choose from: whether they are two, name and words."""
Blocks = Sequence[tuple[str, Sequence[SheetRow]]]
"""A table's blocks and their rows."""


def render(report: Report, library: str, version: str = "") -> str:
    """Render the page. library: JavaScript of the plots; version: of a page that is served and renews itself."""
    parts = parts_of(report)
    data, rows = page_data(report, parts), list[str]()
    drawn = {key for some in report.older.values() for one in some if one.drawn for key in one.why}

    def set_aside(body: Markup) -> int:
        """Keep rows of a table for the packed data; return their index."""
        rows.append(str(body))
        return len(rows) - 1

    runs = {(cell, run.started): at for at, (cell, run) in enumerate(report.runs.items())}
    tcp_runs = {run.id: at for at, (run, _) in enumerate(report.tcp_runs, len(runs))}
    values = {
        "report": report,
        "parts": parts,
        "choice": default_choice(report),
        "modes": list(dict.fromkeys(cell["mode"] for cell in data["cells"] if "tcp" not in cell)),
        "ways": [way for way in WAYS if any(cell["bidir"] is way[0] for cell in data["cells"] if "tcp" not in cell)],
        "tcp_choice": default_tcp_mode(report),
        "columns": data["columns"],
        "directions": list(dict.fromkeys(curve.direction for curve in report.curves)),
        "cards": [replace(one, trend=Markup(one.trend)) for one in cards_of(report)],
        "notes": runs | {(cell, run.started): tcp_runs[run.id] for cell, run in report.tcp.items()},
        "most_rows": MOST_ROWS,
        "most_cards": MOST_CARDS,
        "most_failures": MOST_FAILURES,
        "sheets": {sheet.name: sheet for sheet in sheets_of(report, parts)},
        "older": [(key, words) for key, words in REASONS.items() if key in drawn],
        "uni_directions": {curve.direction for curve in report.curves if not curve.cell.bidir},
        "nights": data["nights"],
        "counted": COUNTED,
        "rates": "rates" in data["figures"],
        "metrics": [metric.name for metric in report.metrics],
        "split": _split,
        "set_aside": set_aside,
        "data": lambda: Markup(_packed(json.dumps(data | {"rows": rows}, separators=(",", ":"), allow_nan=False))),
    }
    return fill("page.html", values | _static_values(library, version), clean)


def _static_values(library: str, version: str) -> dict[str, Any]:
    """Return the page's scripts and style, and the policy by which only these scripts run and nothing is loaded.

    Styles are inline, pictures can be saved from the page, and a page that is served may ask its server.
    """
    script = "".join(map(read_static, (*SCRIPTS, *(["follow.js"] if version else []))))
    plots = "".join(map(read_static, PLOT_SCRIPTS))
    hashes = [hashlib.sha256(text.encode()).digest() for text in (script, library, plots)]
    digests = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
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


def _split(blocks: Blocks) -> tuple[Blocks, Blocks]:
    """Split a table's blocks after row MOST_ROWS; the rest begins with what is left of the last block."""
    room = MOST_ROWS
    for at, (block, lines) in enumerate(blocks):
        if len(lines) >= room:
            return [*blocks[:at], (block, lines[:room])], [(block, lines[room:]), *blocks[at + 1 :]]
        room -= len(lines)
    return blocks, []


def _packed(text: str) -> str:
    """Compress to a third or less, five letters for four bytes, for the page's script to unpack.

    The letters mean nothing within a script's element: ``.`` stands for ``<``.
    """
    return base64.b85encode(gzip.compress(text.encode(), 9, mtime=0)).decode().replace("<", ".")


_packed_always = lru_cache(maxsize=2)(_packed)
"""Packs what is the same on every page."""


def page_data(report: Report, parts: Sequence[Part]) -> dict[str, Any]:
    """Return the data of the page's script, in which cells are referred to by index."""
    every = [one.cell for some in (report.curves, report.trends) for one in some]
    every += [*report.costs, *(one.cell for one in report.tcp_cells)]
    every += [cell for part in parts for plot in part.figures for line in plot.lines for cell in line.cells]
    cells = {cell: at for at, cell in enumerate(dict.fromkeys(every))}
    nights, arrays = nights_of(report.trends), dict[Sequence[float | None], int]()
    figures = find_figures(report, [*cells], nights) | {part.name: part.figures for part in parts if part.figures}
    return {
        "palette": {"light": LIGHT, "dark": DARK, "markers": [*MARKERS]},
        "columns": [{"name": clean(report.said(column)), "mark": column.mark} for column in report.columns],
        "cells": [
            {
                "name": clean(str(cell)),
                "mode": clean(cell.mode),
                "bidir": cell.bidir,
                "strategy": cell.kind_words,
                **({"given": cell.kind} if cell.held_pps is not None else {}),
                "column": report.columns.index(column_of(cell)),
                **({"tcp": clean(mode_words(cell))} if cell.tcp else {}),
            }
            for cell in cells
        ],
        "nights": [*nights],
        "trends": {cells[trend.cell]: trend_data(trend, nights) for trend in report.trends},
        "figures": {name: [plot.data(cells, arrays) for plot in plots] for name, plots in figures.items()},
        "arrays": [*arrays],
    }


def find_figures(report: Report, cells: Sequence[Cell], nights: dict[str, int]) -> dict[str, Sequence[PlotFigure]]:
    """Plots by their place on the page, except those of the loads' own sections."""
    ways: dict[Cell, list[str]] = {cell: [] for cell in cells}
    for cell, direction in [(one.cell, one.direction) for some in (report.curves, report.latencies) for one in some]:
        ways[cell].append(direction)
    for one in report.tcp_cells:
        ways[one.cell] += [str(number) for number in range(len(one.flows))]
    looks = find_looks(report.columns, {cell: directions or [""] for cell, directions in ways.items()})
    rates = rate_figure(report, looks)
    figures: dict[str, Sequence[PlotFigure]] = {
        "tcp": [bar_figure(report, looks)] if report.tcp_cells else [],
        "series": [series_figure(report, looks)] if report.tcp_cells else [],
        "ramps": [ramp_figure(report, looks)] if report.curves else [],
        "costs": [cost_figure(report, looks)] if report.costs else [],
        "rates": [rates] if rates is not None else [],
        "latency": [latency_figure(report, looks)] if report.latencies else [],
        "trends": [*trend_figures(report.trends, report.metrics, nights, looks, cells)],
    }
    return {name: plots for name, plots in figures.items() if plots}


def default_choice(report: Report) -> tuple[str, bool] | None:
    """Mode and direction of packets that are shown first: those of the alarming change, else of the first curve."""
    alarming = [report.alarming.cell] if report.alarming is not None and not report.alarming.cell.tcp else []
    cell = next(iter([*alarming, *(curve.cell for curve in report.curves)]), None)
    return None if cell is None else (clean(cell.mode), cell.bidir)


def default_tcp_mode(report: Report) -> str | None:
    """Mode of TCP that is shown first: that of the alarming change, else that of most DUTs."""
    if (alarming := report.alarming) is not None and alarming.cell.tcp:
        return clean(alarming.cell.mode)
    modes = [clean(one.cell.mode) for one in report.tcp_cells]
    return max(modes, key=modes.count, default=None)
