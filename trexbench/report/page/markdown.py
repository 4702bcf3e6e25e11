"""The report for a chat or a wiki: the same tables and findings as markdown."""

from __future__ import annotations

from markupsafe import Markup

from ..clean import escape_markdown
from ..words import NONE
from .parts import parts_of
from .report import Report
from .sheets import sheets_of
from .templates import fill
from .warned import group_warnings

MOST_LINES = 40
"""Lines below an event, such as cells that failed for one reason."""


def to_markdown(report: Report) -> str:
    """The verdict, events, tables, trends, warnings; names are escaped, they cannot become links, tags or mentions.

    TCP's rates and the first table of each load's section are as on the page; of others there is less, or nothing
    where the page folds them away.
    """
    parts = parts_of(report)
    shown = {"tcp", *(part.sheets[0].name for part in parts)}
    values = {
        "report": report,
        "most_lines": MOST_LINES,
        "sheets": [sheet for sheet in sheets_of(report, parts) if sheet.name in shown],
        "none_sign": NONE,
        "warned": group_warnings(report),
    }
    return fill("report.md", values, escape)


def escape(text: object, most: int = 300) -> Markup:
    """Text that means nothing to markdown or HTML, as the templates take it."""
    return Markup(escape_markdown(text, most))
