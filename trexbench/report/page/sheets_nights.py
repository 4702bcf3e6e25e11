"""Tables over the nights: what changed, and every figure of every cell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from ...core.history.causes import FindingGroup
from ...core.history.levels import NEEDED_NIGHTS, Delta, find_delta
from ...core.history.rows import Metric
from ...core.history.series import night_of
from ..clean import clean
from ..groups import change_words, format_noise, group_kind, headline, noise_words, too_few
from ..sheet import UNITS, Item, Sheet, make_sheet, named, of_count, of_metric, raw_of, row_of
from ..words import NONE
from .grid import change_text, raw_change
from .report import Report


def change_sheet(groups: Sequence[FindingGroup], marked: Callable[[str, str], Item] = named) -> Sheet:
    """Table with a row for each finding, below its group's headline. marked: makes an item of a name and its mark."""
    heads = ":Cell; :Figure; :Which; Change [%]; Before; After; Noise [%]; Nights; :Since"
    rows = []
    for group in groups:
        kind = group_kind(group)
        for finding in (one for some in group.by_metric().values() for one in some):
            metric, before, share = finding.metric, finding.before, finding.share
            items = (
                marked(str(finding.cell.unmarked), finding.cell.mark),
                _metric(metric),
                kind,
                Item(change_words(finding), "" if share is None else f"{finding.bound}{raw_of(100 * share)}"),
                of_metric(before, metric, finding.before_at_least),
                of_metric(finding.after, metric, finding.at_least),
                Item(format_noise(finding), raw_of(100 * abs(finding.noise / finding.usual)) if finding.usual else ""),
                of_count(finding.nights),
                finding.since,
            )
            rows.append(row_of(items, block=headline(group)))
    return make_sheet(heads, rows, "changes", "What changed", "Change")


def trend_sheet(report: Report) -> Sheet:
    """Table with a row for each figure of each cell; a cell that always failed has one without a figure."""
    heads = ":Cell; :Figure; Latest; Change since baseline [%]; Baseline; Noise [%]; Runs; Not measured"
    rows = []
    for trend in report.trends:
        name = report.named(trend.cell, night="")
        counts = tuple(of_count(len(some)) for some in (trend.runs, trend.failed))
        for metric in trend.metrics:
            values = trend.values(metric)
            row, value = values[-1]
            delta = find_delta(row, trend.runs, metric, report.usual.get((trend.cell, metric.name)))
            bound = metric.bounded and row.at_least
            latest, night = of_metric(value, metric, bound), night_of(row)
            items: tuple[Item | str, ...] = (
                name,
                _metric(metric),
                latest if night == report.night else replace(latest, text=f"{latest.text} ({clean(night)})"),
                Item(
                    change_text(delta, metric) or NONE,
                    raw_change(delta),
                    "bad" if delta is not None and delta.beyond and delta.worse else "",
                ),
                Item(NONE, "") if delta is None else of_metric(delta.before, metric, delta.at_most),
                Item(NONE, "") if bound else _noise(delta, metric, {night_of(row) for row, _ in values}),
                *counts,
            )
            rows.append(row_of(items, trend.cell, metric.name))
        if not trend.metrics:
            rows.append(row_of((name, *[""] * 5, *counts), trend.cell))
    return make_sheet(heads, rows, "trends", "Every figure of every cell")


def _noise(delta: Delta | None, metric: Metric, measured: Collection[str]) -> Item:
    if delta is None or delta.noise is None:
        nights = len(measured) if delta is None else delta.measured
        return Item(NONE, "", about=too_few(nights) if nights < NEEDED_NIGHTS else "")
    words = noise_words(delta.noise * abs(delta.before), delta.before, metric)
    return Item(words, raw_of(100 * delta.noise))


def _metric(metric: Metric) -> Item:
    unit = "" if metric.unit in metric.name else f", {UNITS.get(metric.unit, metric.unit)}"
    return Item(metric.name, f"{metric.name}{unit}")
