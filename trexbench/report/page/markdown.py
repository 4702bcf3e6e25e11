"""The report for a chat or a wiki: the same tables and findings as markdown."""

from __future__ import annotations

import html
import re

from markupsafe import Markup

from ..clean import clean
from .report import Report
from .templates import fill

MOST_FAILURES = 40


def to_markdown(report: Report) -> str:
    """Title, changes, tables, failures, trends; names are escaped, they cannot become links, tags or mentions."""
    return fill("report.md", {"report": report, "most_failures": MOST_FAILURES}, escape)


def escape(text: object, most: int = 300) -> Markup:
    """Text that means nothing to markdown or HTML."""
    escaped = html.escape(re.sub(r"[\\`*_\[\]#~]", r"\\\g<0>", clean(text, most)), quote=False)
    for sign, harmless in (("|", "&#124;"), ("!", "&#33;"), ("@", "@\u200b"), ("://", ":\u200b//")):
        escaped = escaped.replace(sign, harmless)  # a name shall not call for its owner, nor become a link
    return Markup(f"\\{escaped}" if escaped[:1] in ("-", "+", "=") else escaped)
