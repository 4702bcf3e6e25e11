"""Words and figures of the page's tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ..core.history import Metric
from ..core.units import format_pps, format_share, format_time
from .html_data import spark
from .overlay import Curve
from .trends import Trend

NONE = "-"


def figure(value: float | None, metric: Metric) -> str:
    """A metric's value with its unit."""
    if value is None:
        return NONE
    if metric.unit == "pps":
        return format_pps(value)
    if metric.unit == "us":
        return duration(value / 1e6)
    return share(value) if metric.unit == "share" else f"{value:.4g} {metric.unit}"


def share(value: float | None) -> str:
    """A loss of nothing deserves no zeros after the point."""
    return NONE if value is None else format_share(value) if value else "0 %"


def duration(value_s: float | None) -> str:
    return NONE if value_s is None else format_time(value_s).replace("us", "\u00b5s")


def against(latest: Curve | None, older: Curve) -> str:
    """How much more or less the latest run's direction carried than an older one's; bounds say nothing of that."""
    if latest is None or latest.result.at_least or older.result.at_least or not older.result.maximum_pps:
        return NONE
    return f"{100 * (latest.result.maximum_pps / older.result.maximum_pps - 1):+.1f} %"


def sparks(trend: Trend, metric: Metric) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in spark(trend, metric))


def at_least(text: str) -> str:
    """The sign that people write for it."""
    return text.replace(">= ", "\u2265 ")


def tojson_text(value: Any) -> str:
    """JSON for an attribute: escaped like any other text when it is put there."""
    return json.dumps(value)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "figure": figure,
    "sparks": sparks,
    "against": against,
    "duration": duration,
    "at_least": at_least,
    "tojson_text": tojson_text,
    "pps": lambda value: NONE if value is None else format_pps(value),
    "cycles": lambda value: NONE if value is None else f"{value:.4g}",
    "share": share,
}
