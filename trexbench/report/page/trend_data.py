"""The trends as the page's script reads them: nights shared by all cells, figures as small integers, paths by rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median_low
from typing import Any

from ...core.history.rows import Cell, Metric, RunRow
from ..clean import clean
from .trends import Trend, place_of

STEP = 1e-5
"""Step of a figure, as a share of its usual level."""
LONGEST_REASON = 300
KEPT_PATHS = 60
"""Number of latest documents that keep a path of an unusual form; older ones are not named."""
_PATH = re.compile(r"(\d{4}-\d\d-\d\d)/([^/]+)/(\d{6})(-[^/]+)")

Places = Mapping[str, int]


def trends_data(trends: Sequence[Trend], cells: Mapping[Cell, int]) -> dict[str, Any]:
    """nights: dates, or instants to the minute (UTC) of runs outside any; everything else refers to them by index."""
    texts = {short_instant(at) for trend in trends for at in (*trend.instants(), *(at for at, _ in trend.failed))}
    texts |= {short_instant(trend.instant_of_change(change)) for trend in trends for change in trend.changes}
    places = {text: at for at, text in enumerate(sorted(texts))}
    whys = dict.fromkeys(clean(reason)[:LONGEST_REASON] for trend in trends for _, reason in trend.failed)
    reasons = {reason: at for at, reason in enumerate(whys)}
    return {
        "nights": list(places),
        "reasons": list(reasons),
        "trends": [_trend(trend, cells[trend.cell], places, reasons) for trend in trends],
    }


def short_instant(text: str) -> str:
    """A place on the time axis as it is written there: a date, or an instant to the minute, in UTC."""
    return clean(text)[:16].replace("T", " ")


def ordered_runs(trend: Trend) -> list[RunRow]:
    return sorted(trend.runs, key=place_of)


def ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Ascending numbers as stretches without a gap, first and last of each."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def _trend(trend: Trend, cell: int, places: Places, reasons: Mapping[str, int]) -> dict[str, Any]:
    """x: places of runs; bound: which of the runs are bounds; line: the rate that is 100 % of line rate."""
    runs = ordered_runs(trend)
    last = trend.runs[-1] if trend.runs else None
    return {
        "cell": cell,
        "x": ranges(places[short_instant(place_of(row))] for row in runs),
        "bound": ranges(number for number, row in enumerate(runs) if row.at_least),
        "line": float(f"{last.rate / last.line_share:.6g}") if last is not None and last.line_share else None,
        "values": {metric.name: _values(trend, metric, runs) for metric in trend.metrics},
        "failed": [[places[short_instant(when)], reasons[clean(why)[:LONGEST_REASON]]] for when, why in trend.failed],
        "changes": [
            {
                "metric": clean(change.metric),
                "x": places[short_instant(trend.instant_of_change(change))],
                "text": clean(change.text),
                "bad": change.bad,
                "before": change.before,
                "after": change.after,
            }
            for change in trend.changes
        ],
        "documents": _documents([(short_instant(place_of(row)), row) for row in runs]),
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


def _documents(runs: Sequence[tuple[str, RunRow]]) -> dict[str, Any]:
    """``<date>/<dut>/<HHMMSS><rest>`` for most; other: paths of another form, by the run's number.

    at: when each began, in seconds after ``usual`` seconds after the midnight that its place on the axis begins with.
    """
    found = [_parts(row) for _, row in runs]
    (dut, rest), _ = (
        Counter(parts for parts in found if parts is not None).most_common(1)[0] if any(found) else (("", ""), 0)
    )
    seconds = [_seconds_after(place, row.started) for place, row in runs]
    usual = median_low([one for one in seconds if one is not None] or [0])
    other = {
        number: clean(row.path)
        for number, ((_, row), parts) in enumerate(zip(runs, found, strict=True))
        if (parts != (dut, rest) or seconds[number] is None) and number >= len(runs) - KEPT_PATHS
    }
    at = [
        None if one is None or parts != (dut, rest) else one - usual for one, parts in zip(seconds, found, strict=True)
    ]
    return {"dut": clean(dut), "rest": clean(rest), "usual": usual, "at": at, "other": other}


def _parts(row: RunRow) -> tuple[str, str] | None:
    """The DUT and the end of a path whose date and time are those at which the run began; None for any other."""
    match = _PATH.fullmatch(row.path)
    began = row.started[:19].replace(":", "")
    return (match[2], match[4]) if match and f"{match[1]}T{match[3]}" == began else None


def _seconds_after(place: str, started: str) -> int | None:
    try:
        return (datetime.fromisoformat(started[:19]) - datetime.fromisoformat(place[:10])) // timedelta(seconds=1)
    except ValueError:
        return None
