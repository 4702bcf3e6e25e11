"""The picture of a trend: each cell against its usual level with the noise of its nights, below it what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num, num2date
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...core.history.rows import METRICS, Metric
from ..palette import GREEN, RED
from ..run.picture import new_figure, watermark
from .columns import column_of
from .picture_tcp import literal
from .tcp import is_tcp
from .trends import Trend, place_of

TOGETHER, MOST_PANELS, ACROSS = 6, 24, 4
"""Lines in one plot; more have a panel each, so many at most, and so many beside each other."""
BAND = 2
"""Standard deviations of a night that the band has to each side of a level."""
LEAST_SPAN = 4.0
"""Percent that an axis shows at least, so that noise does not fill it."""
PLAIN_TICKS = 10

Style = Callable[[Trend], dict[str, Any]]


def has_course(trends: Sequence[Trend]) -> bool:
    """Test whether any cell has two nights; a single one has no trend."""
    return any(len(set(trend.instants())) > 1 for trend in trends)


def draw_trend(trends: Sequence[Trend], title: str, style: Style) -> Figure:
    """Draw cells of one kind with runs: several in percent off each one's usual level, one in its own unit."""
    metric = next(one for one in METRICS if one.bounded and one in trends[0].metrics)
    relative = len(trends) > 1 and all((usual := one.usual(metric)) is not None and usual.level for one in trends)
    failed = Counter(when for trend in trends for at, _ in trend.failed if (when := instant(at)) is not None)
    shown = trends[:MOST_PANELS]
    alone = len(trends) <= TOGETHER
    across = 1 if alone else ACROSS
    rows = -(-len(shown) // across) if not alone else 1
    figure = new_figure(8.8, 5.2 if alone else 1.3 + 1.5 * rows)
    if any(trend.cell.simulated for trend in trends):
        watermark(figure, 56)
    heights = [5.0 if alone else 1.0] * rows + [0.6] * bool(failed)
    places = figure.add_gridspec(len(heights), across, height_ratios=heights)
    first: Axes | None = None
    for number, trend in enumerate(shown):
        if first is None or not alone:
            place = places[divmod(0 if alone else number, across)]
            axes = figure.add_subplot(place, sharex=first, sharey=first if relative else None)
            first = first or axes
        _draw(axes, trend, metric, relative, style(trend) | {"markersize": 3 if alone else 1.5})
        if not alone:
            axes.set_title(literal(str(trend.cell)), fontsize=7, loc="left", parse_math=False)
            axes.tick_params(labelsize=6)
    assert first is not None, "a picture is drawn of trends with runs"
    _scale(figure.axes, shown, metric, relative)
    if failed:
        _strip(figure.add_subplot(places[rows, :], sharex=first), failed)
    _finish(figure, title + (f"; and {len(trends) - len(shown)} more" if len(trends) > len(shown) else ""), alone)
    return figure


def _draw(axes: Axes, trend: Trend, metric: Metric, relative: bool, style: dict[str, Any]) -> None:
    usual = trend.usual(metric)
    factor, offset = (100 / usual.level, -100.0) if relative and usual is not None else (_factor(trend, metric), 0.0)
    placed = [(when, value, row.at_least) for row, value in trend.values(metric) if (when := instant(place_of(row)))]
    gaps = [(when, float("nan"), False) for night, _ in trend.failed if (when := instant(night))]
    points = sorted((when, value * factor + offset, bound) for when, value, bound in [*placed, *gaps])
    sides = [p[0] for p in points], [p[1] for p in points]
    axes.plot(*sides, label=literal(column_of(trend.cell).name), **style | {"linewidth": 1, "marker": ""})
    dots = style | {"linestyle": "none"}
    for bound, mark in ((False, {}), (True, {"marker": "^", "markerfacecolor": "none"})):
        chosen = [p for p in points if p[2] is bound]
        axes.plot([p[0] for p in chosen], [p[1] for p in chosen], **dots | mark)
    changes = [(at, one) for one in trend.changes_of(metric) if (at := instant(trend.instant_of_change(one)))]
    for since, change in changes:
        axes.axvline(since, color=RED if change.bad else GREEN, linestyle="--", linewidth=1.2)
    if usual is None or not placed:
        return
    first, last = min(p[0] for p in placed), max(p[0] for p in placed)
    edges_of_levels = [first, *(max(first, at) for at, _ in changes), last]
    levels = [changes[0][1].before, *(one.after for _, one in changes)] if changes else [usual.level]
    for (begin, end), level in zip(pairwise(edges_of_levels), levels, strict=True):
        if level is None:
            continue
        edges = [(level + side * BAND * (usual.noise or 0)) * factor + offset for side in (-1, 1)]
        axes.fill_between([begin, end], edges[0], edges[1], color=style["color"], alpha=0.13, linewidth=0)


def _factor(trend: Trend, metric: Metric) -> float:
    """From the figure's own unit to that of the axis: Mbit/s for TCP, else percent of line rate."""
    last = trend.runs[-1]
    return 1e-6 if is_tcp(trend.cell) or not last.line_share or not last.rate else 100 * last.line_share / last.rate


def _scale(every: Sequence[Axes], trends: Sequence[Trend], metric: Metric, relative: bool) -> None:
    for axes in every:
        low, high = axes.get_ylim()
        least = LEAST_SPAN if relative else LEAST_SPAN / 100 * max(abs(low), abs(high))
        room = max(0.0, least - (high - low)) / 2
        axes.set_ylim(low - room, high + room)
    tcp, line = is_tcp(trends[0].cell), trends[0].runs[-1].line_share
    own = "mean rate, Mbit/s" if tcp else "maximum rate, % of line rate" if line else "maximum rate, Mpps"
    words = f"{metric.name}, % off usual level" if relative else own
    every[0].figure.supylabel(words, fontsize=9)
    nights = sorted({when for trend in trends for at in trend.instants() if (when := instant(at)) is not None})
    locator = AutoDateLocator(minticks=2, maxticks=5 if len(every) > 1 else 9)
    every[0].xaxis.set_major_locator(locator)
    every[0].xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=len(every) < 3))
    if len(nights) <= PLAIN_TICKS and all(when.is_integer() for when in nights):
        kept = nights if len(every) == 1 else [nights[0], nights[-1]]
        dates = [f"{num2date(when):%m-%d}" for when in kept]
        every[0].set_xticks(kept, [f"{num2date(kept[0]):%Y-}{dates[0]}", *dates[1:]])


def _strip(axes: Axes, failed: Counter[float]) -> None:
    nights = sorted(failed)
    axes.vlines(nights, 0, [failed[night] for night in nights], color=RED, linewidth=2)
    axes.set_ylim(0, max(failed.values()) * 1.1)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=2))
    axes.set_ylabel("failed", fontsize=8)
    axes.tick_params(labelsize=7)


def _finish(figure: Figure, title: str, alone: bool) -> None:
    figure.suptitle(title, fontsize=11, fontweight="bold", parse_math=False)
    for axes in figure.axes:
        axes.grid(color="#dddddd", linewidth=0.6)
    if alone and len(figure.axes[0].get_legend_handles_labels()[0]) > 1:
        for text in figure.axes[0].legend(fontsize=8, framealpha=0.9).get_texts():
            text.set_parse_math(False)


def instant(text: str) -> float | None:
    """Convert to days, as matplotlib counts time."""
    try:
        return float(date2num(datetime.fromisoformat(text.replace("Z", "+00:00")).replace(tzinfo=None)))
    except ValueError:
        return None
