"""The trends as the page's script reads them: nights shared by all cells, figures as small integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.history.cell import Cell
from ...core.history.rows import Metric, RunRow
from ..clean import clean
from .trends import Trend, place_of

STEP = 1e-5
"""Step of a figure, as a share of its usual level."""
LONGEST_REASON = 300

Places = Mapping[str, int]


def trends_data(trends: Sequence[Trend], cells: Mapping[Cell, int]) -> dict[str, Any]:
    """nights: dates, or instants to the minute (UTC) of runs outside any; everything else refers to them by index."""
    texts = {short_instant(at) for trend in trends for at in (*trend.instants(), *(at for at, _ in trend.failed))}
    texts |= {short_instant(trend.instant_of_change(change)) for trend in trends for change in trend.changes}
    places = {text: at for at, text in enumerate(sorted(texts))}
    return {
        "nights": list(places),
        "trends": [_trend(trend, cells[trend.cell], places) for trend in trends],
    }


def short_instant(text: str) -> str:
    """A place on the time axis as it is written there: a date, or an instant to the minute, in UTC."""
    return clean(text)[:16].replace("T", " ")


def ordered_runs(trend: Trend) -> list[RunRow]:
    return sorted(trend.runs, key=place_of)


def _trend(trend: Trend, cell: int, places: Places) -> dict[str, Any]:
    """x: places of runs; bound: which of the runs are bounds; line: the rate that is 100 % of line rate."""
    runs = ordered_runs(trend)
    last = trend.runs[-1] if trend.runs else None
    rate = last and last.metric.bounded and last.metric.of(last)
    return {
        "cell": cell,
        "x": [places[short_instant(place_of(row))] for row in runs],
        "bound": [number for number, row in enumerate(runs) if row.at_least],
        "line": float(f"{rate / last.line_share:.6g}") if last and rate and last.line_share else None,
        "values": {metric.name: _values(trend, metric, runs) for metric in trend.metrics},
        "failed": [[places[short_instant(when)], clean(why)[:LONGEST_REASON]] for when, why in trend.failed],
        "changes": [
            {
                "metric": clean(change.finding.metric.name),
                "x": places[short_instant(trend.instant_of_change(change))],
                "text": clean(change.text),
                "bad": change.finding.worse,
                "before": change.finding.before,
                "after": change.finding.after,
            }
            for change in trend.changes
        ],
        "documents": [_document(row) for row in runs],
    }


def _values(trend: Trend, metric: Metric, runs: Sequence[RunRow]) -> dict[str, Any]:
    """level, noise: the usual ones; of: each run's distance from the level in steps, None without a figure."""
    values = [metric.of(row) for row in runs]
    usual = trend.usual(metric)
    level = float(f"{usual.level:.6g}") if usual is not None else 0.0
    step = STEP * (abs(level) or max(abs(value) for value in values if value is not None) or 1.0)
    return {
        "level": level,
        "noise": None if usual is None or usual.noise is None else float(f"{usual.noise:.3g}"),
        "step": float(f"{step:.6g}"),
        "of": [None if value is None else round((value - level) / float(f"{step:.6g}")) for value in values],
    }


def _document(row: RunRow) -> str:
    """The document's path; without the run's night, where that is its first folder."""
    path, night = clean(row.path), short_instant(place_of(row))
    return path.removeprefix(night) if path.startswith(f"{night}/") else path
