"""The report for a chat or a wiki: the same tables and findings as markdown."""

from __future__ import annotations

from markupsafe import Markup

from ..clean import escape_markdown
from .report import Report
from .templates import fill

MOST_FAILURES = 40


def to_markdown(report: Report) -> str:
    """Title, changes, tables, failures, trends; names are escaped, they cannot become links, tags or mentions."""
    return fill("report.md", {"report": report, "most_failures": MOST_FAILURES}, escape)


def escape(text: object, most: int = 300) -> Markup:
    """Text that means nothing to markdown or HTML, as the templates take it."""
    return Markup(escape_markdown(text, most))
