"""Templates of the page and of its markdown form, and the formats of their figures."""

from __future__ import annotations

import json
import re
from calendar import month_name
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from ...core.history.cell import Cell, by_given_rate
from ...core.history.finding import Finding
from ..clean import clean, escape_markdown
from ..groups import NOTHING_DIFFERS, change_words, difference_lines, format_levels, format_noise, own_explanation
from ..sheet import to_markdown as sheet_to_markdown
from ..tcp.text import headline
from ..words import NONE, format_count, format_figure, typeset
from .columns import column_of
from .grid import change_text, delta_words
from .report import Report
from .sheets import facts_of, grid_item, parts_of, sheets_of

MOST_LINES = 40
"""Lines of markdown below an event, such as cells that failed for one reason."""
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_UNIT = re.compile(rf"(?<=\d) (?=%|[kMG]?(?:pps|bit/s|B|Hz)\b|[\u00b5m]?s\b|(?:{'|'.join(month_name[1:])})\b)")
"""The space between a figure and its unit, a day and its month."""


def to_markdown(report: Report) -> str:
    """Render the report as markdown, for a chat or a wiki: the verdict, events, tables, trends, warnings.

    Names cannot become links, tags or mentions. TCP's rates, latencies and the first table of each load's section are
    as on the page; of other tables there is less, and nothing of those that the page folds away.
    """
    parts = parts_of(report)
    shown = {"tcp", "latency", *(part.sheets[0].name for part in parts)}
    sheets = [sheet for sheet in sheets_of(report, parts) if sheet.name in shown]
    values = {"report": report, "most_lines": MOST_LINES, "sheets": sheets}
    return fill("report.md", values, escape)


def escape(text: object, most: int = 300) -> Markup:
    """Escape text for markdown and HTML, in the form that templates take."""
    return Markup(escape_markdown(text, most))


LIBRARY = "plotly-basic.min.js"
"""The plotting library's file: plotly.js's basic bundle."""


def read_static(name: str) -> str:
    """Read a file in static/."""
    return (resources.files(__package__) / "static" / name).read_text(encoding="utf-8")


def fill(template: str, values: Mapping[str, Any], escape: Callable[..., str]) -> str:
    """Fill a template. escape: applied to every text, before HTML's own characters are escaped."""
    return _environment(escape).get_template(template).render(values)


@lru_cache(maxsize=2)
def _environment(escape: Callable[..., str]) -> jinja2.Environment:
    """Return that of templates whose texts are escaped so, with those that it has compiled."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read_static),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup | int | float) else escape(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS, escaped=escape)
    environment.globals.update(nothing_differs=NOTHING_DIFFERS)
    return environment


def worst_of(finding: Finding) -> str:
    """``var2-imix uni 1q``: cell of a finding without its DUT, with the metric's name unless that is the rate."""
    load = str(replace(finding.cell.unmarked, dut="", variant=None, over=None))
    return load if finding.metric.bounded else f"{load}, {finding.metric.name}"


def _shows(cell: Cell, metric: str) -> str:
    """Return the settings of the page's controls that show this figure of this cell, as JSON."""
    if cell.tcp:
        return json.dumps({"tcp-mode": clean(cell.mode), "metric": metric})
    return json.dumps({"mode": clean(cell.mode), "traffic": "bidir" if cell.bidir else "uni", "metric": metric})


def _prose(text: object) -> Markup:
    """Typeset text in which no line breaks within a date, or between a figure and its unit."""
    words = _UNIT.sub("\u00a0", typeset(clean(text)))
    return Markup(_DATE.sub(r'<span class="whole">\g<0></span>', str(Markup.escape(words))))


def _figure(form: Callable[..., str], value: float | None, *more: Any) -> Markup:
    return Markup(NONE if value is None else typeset(form(value, *more)))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "headline": headline,
    "table": lambda sheet: Markup(sheet_to_markdown(sheet, typeset)),
    "shows": _shows,
    "column": column_of,
    "grid_item": grid_item,
    "change_text": change_text,
    "delta_words": delta_words,
    "prose": _prose,
    "worst_of": worst_of,
    "by_given_rate": by_given_rate,
    "cause_differences": difference_lines,
    "own_explanation": own_explanation,
    "change_share": change_words,
    "change_levels": format_levels,
    "change_noise": format_noise,
    "count": format_count,
    "flatten": facts_of,
    "typeset": lambda text: typeset(str(text)),
    "figure": partial(_figure, format_figure),
}
