"""The report as one HTML page that needs nothing but itself: no network, no other file.

Whatever comes from documents is escaped where it is put into the page (by the template engine, by ``embed``, by the
script before it gives text to the plots). Should that ever fail, the page's policy still forbids it to run: only
scripts with the digests of ours may, and nothing may be loaded from anywhere.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from functools import lru_cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from .clean import clean
from .html_data import SPARK_HEIGHT, SPARK_WIDTH, default_choice, embed, page_data
from .html_filters import FILTERS
from .older import REASONS
from .report import Report

_STATIC = "static"
SCRIPTS = ("ramps.js", "latency.js", "page.js")
"""They become one, in this order."""


def render(report: Report, library: str) -> str:
    """The page. library: the plotting library's JavaScript."""
    script = "".join(map(_static, SCRIPTS))
    data = page_data(report)
    return (
        _environment()
        .get_template("page.html")
        .render(
            report=report,
            choice=_cleaned(default_choice(report.curves, report.alarming)),
            modes=list(dict.fromkeys(cell["mode"] for cell in data["cells"])),
            columns=data["columns"],
            directions=list(dict.fromkeys(curve.direction for curve in report.curves)),
            latest={(curve.cell, curve.direction): curve for curve in report.curves},
            older=[(key, REASONS[key]) for key in REASONS if any(key in one["why"] for one in data["older"])],
            metrics=[metric["name"] for metric in data["metrics"]],
            policy=_policy(script, library),
            style=Markup(_static("page.css")),
            script=Markup(script),
            data=Markup(embed(data)),
            library=Markup(_packed(library)),
            spark_width=SPARK_WIDTH,
            spark_height=SPARK_HEIGHT,
        )
    )


def _cleaned(choice: tuple[str, bool] | None) -> tuple[str, bool] | None:
    """As the page's data names it."""
    return None if choice is None else (clean(choice[0]), choice[1])


def _policy(*scripts: str) -> str:
    """Nothing is loaded, nothing runs but these scripts; styles stand in the page, pictures are saved from it."""
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )


@lru_cache(maxsize=1)
def _packed(library: str) -> str:
    """A third of its size; the page's script unpacks it."""
    return base64.b64encode(gzip.compress(library.encode(), 9, mtime=0)).decode()


def _static(name: str) -> str:
    return (resources.files(__package__) / _STATIC / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_static),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    return environment


def _finalize(value: Any) -> Any:
    return value if isinstance(value, Markup | int | float) else clean(value)
