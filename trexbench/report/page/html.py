"""The report as one self-contained HTML page: no network, no other file.

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
from functools import lru_cache, partial
from typing import Any

from markupsafe import Markup

from ...core.history.cell import Cell
from ..clean import clean
from ..sheet import SheetRow
from .cards import cards_of
from .html_data import default_choice, default_tcp_mode, page_data
from .older import REASONS
from .parts import parts_of
from .report import Report
from .sheets import sheets_of
from .sparks import sparks
from .templates import fill, read_static
from .warned import group_warnings

SCRIPTS = ("cards.js", "tables.js", "view.js", "page.js")
"""They are joined to one script, in this order."""
PLOT_SCRIPTS = ("drawing.js", "lines.js", "stack.js", "grid.js", "rows.js", "documents.js", "plots.js")
"""They are packed, as the library is: without what unpacks it there is no plot."""
MOST_ROWS = 25
"""Further rows of a table are packed."""
MOST_FAILURES = 60
"""Nights without a figure whose reasons are told, of each cell."""
Parts = Sequence[tuple[str, Sequence[SheetRow]]]
"""A table's blocks and their rows."""
MOST_CARDS = 9
"""More events are folded away."""


def render(report: Report, library: str, version: str = "") -> str:
    """The page. library: the plotting library's JavaScript; version: of a page that is served and renews itself."""
    parts = parts_of(report)
    data, rows = page_data(report, parts), list[str]()
    spark = sparks(report.trends, report.metrics)
    values = {
        "report": report,
        "parts": parts,
        "choice": default_choice(report.curves, report.alarming),
        "modes": list(dict.fromkeys(cell["mode"] for cell in data["cells"] if "tcp" not in cell)),
        "tcp_choice": default_tcp_mode(report.tcp_cells, report.alarming),
        "columns": data["columns"],
        "directions": list(dict.fromkeys(curve.direction for curve in report.curves)),
        "cards": [replace(one, trend=Markup(one.trend)) for one in cards_of(report)],
        "warned": group_warnings(report),
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
        "set_aside": partial(_set_aside, rows),
        "data": lambda: Markup(_packed(json.dumps(data | {"rows": rows}, separators=(",", ":"), allow_nan=False))),
        "spark": lambda trend, metric: Markup(spark(trend, metric)),
    }
    return fill("page.html", values | _static_values(library, version), clean)


def _static_values(library: str, version: str) -> dict[str, Any]:
    """The page's scripts and style, and the policy that lets these scripts run."""
    script = "".join(map(read_static, (*SCRIPTS, *(["follow.js"] if version else []))))
    plots = "".join(map(read_static, PLOT_SCRIPTS))
    return {
        "version": version,
        "policy": _policy(script, library, plots, asks=bool(version)),
        "style": Markup(read_static("page.css")),
        "script": Markup(script),
        "library": Markup(_packed_always(library)),
        "plots": Markup(_packed_always(plots)),
    }


def _split(parts: Parts) -> tuple[Parts, Parts]:
    """The parts of a table up to its row MOST_ROWS, and the rest; it begins with what is left of the last of them."""
    room = MOST_ROWS
    for at, (block, lines) in enumerate(parts):
        if len(lines) >= room:
            return [*parts[:at], (block, lines[:room])], [(block, lines[room:]), *parts[at + 1 :]]
        room -= len(lines)
    return parts, []


def _set_aside(rows: list[str], body: Markup) -> int:
    """Keep a table's rows, and return their number."""
    rows.append(str(body))
    return len(rows) - 1


def _notes(report: Report) -> dict[tuple[Cell, str], int]:
    """The number of the details of every run that has any, by its cell and begin."""
    runs = [(cell, run.started) for cell, run in report.runs.items()]
    tcp = {run.id: len(runs) + at for at, (run, _) in enumerate(report.tcp_runs)}
    return {key: at for at, key in enumerate(runs)} | {
        (cell, run.started): tcp[run.id] for cell, run in report.tcp.items()
    }


def _policy(*scripts: str, asks: bool = False) -> str:
    """Nothing is loaded, only these scripts run; styles are inline, and pictures can be saved from the page.

    asks: the page may ask who serves it.
    """
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    connect = " connect-src 'self';" if asks else ""
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data: blob:;"
        f"{connect} base-uri 'none'; form-action 'none'"
    )


@lru_cache(maxsize=2)
def _packed_always(script: str) -> str:
    """Return what is the same on every page, packed."""
    return _packed(script)


def _packed(text: str) -> str:
    """Compressed to a third or less, five letters for four bytes; the page's script unpacks it.

    It has no character that means anything within a script's element: ``.`` stands for ``<``.
    """
    return base64.b85encode(gzip.compress(text.encode(), 9, mtime=0)).decode().replace("<", ".")
