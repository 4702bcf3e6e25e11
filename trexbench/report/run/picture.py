"""A run as a picture: received over offered in each direction, the loss below, and the run over time.

Only the picture modules import matplotlib.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import groupby
from textwrap import fill, wrap
from typing import Any, cast

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ...core.load.plan import Direction, Offer
from ...core.load.sample import Phase
from ...core.load.windows import Window, measured_windows
from ...core.result import RunResult, Status
from ...core.strategy.base import curve_windows
from ...core.units import format_pps, format_time
from ...core.verdict.latency import Latency
from ...core.verdict.parts import DirectionResult, Limit
from ..palette import GREY, RED, find_look
from ..words import format_limit, name_of, typeset
from .live import WORDS
from .summary import answer_words, limit_words, rate_words, sent_words, traffic_words

DPI = 110
TITLE_LETTERS = 44
"""Letters that fit above a direction's curve."""
BEYOND_KNEE = 5.0
"""End of the curve's axes as a multiple of what the DUT carried; the plot over time shows all that was offered."""
LETTER = 0.0066
"""Width of a letter in a phase's name, as a share of the axis."""
LOSS_FLOOR_PERCENT = 0.01
"""Below this the loss axis is linear, so that it has a place for no loss."""
PER_ROW = 4
BEYOND = {
    Limit.GENERATOR_TX: "more than the generator sends",
    Limit.GENERATOR_RX: "more than the generator receives",
    Limit.LINK: "after the link failed",
    Limit.NONE: "not offered",
    Limit.UNKNOWN: "not known",
}
"""Labels of the area beyond a lower bound."""
_SMALL_RED: dict[str, Any] = {"fontsize": 8, "color": RED, "ha": "right", "va": "bottom"}
_STAR: dict[str, Any] = {"marker": "*", "markersize": 13, "color": "#F0E442", "mec": "black", "mew": 0.6}


def draw(result: RunResult, form: str = "png") -> bytes:
    """Draw the picture; return the file's bytes. form: png, svg or pdf."""
    return render(compose(result), form, name_of(result))


def compose(result: RunResult) -> Figure:
    """Compose the picture without rendering it."""
    directions, ramp = result.analysis.directions, result.plan.seeks_knee
    columns, rows = min(len(directions), PER_ROW), -(-len(directions) // PER_ROW)
    width, heights = max(8.8, 4.9 * columns), [3.3, 1.3] * rows + [1.7] if ramp else [3.6]
    figure = new_figure(width, sum(heights) + 0.62 * len(heights) + 1.1)
    lines = _head_lines(result, round(13 * width))
    head, body = cast(Any, figure.subfigures(2, 1, height_ratios=[len(lines) * 0.24, sum(heights) + 1.6]))
    grid = GridSpec(len(heights), columns, body, height_ratios=heights)
    top = _scale(result, directions)
    # Without a ramp there is only one offered rate: the plot over time shows all.
    for number, one in enumerate(directions if ramp else ()):
        row, column = divmod(number, PER_ROW)
        upper = body.add_subplot(grid[2 * row, column])
        _draw_direction(upper, result, one, number, top)
        _draw_loss(body.add_subplot(grid[2 * row + 1, column], sharex=upper), result, one, number)
    _draw_over_time(body.add_subplot(grid[-1, :]), result, directions)
    for number, (text, style) in enumerate(lines):
        y = 1 - (number + 0.75) / (len(lines) + 0.25)
        head.text(0.5, y, text, ha="center", va="center", parse_math=False, **style)
    watermark(figure, result.mark, 68, 28)
    return figure


def new_figure(width: float, height: float) -> Figure:
    """Make a figure without pyplot, which would keep it and look for a display."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def render(figure: Figure, form: str, title: str) -> bytes:
    """Render the picture to a file's bytes. form: png, svg or pdf."""
    buffer, maker = io.BytesIO(), "Software" if form == "png" else "Creator"
    figure.savefig(buffer, format=form, metadata={maker: "trexbench", "Title": title})
    return buffer.getvalue()


def watermark(figure: Figure, mark: str, size: float, angle: float = 24) -> None:
    """Write the mark, if any, across the whole figure."""
    if not mark:
        return
    style: dict[str, Any] = {"fontsize": size, "rotation": angle, "color": RED, "alpha": 0.12, "fontweight": "bold"}
    figure.text(0.5, 0.5, mark.upper(), ha="center", va="center", zorder=100, **style)


def titled(figure: Figure, title: str, under: str, mark: str) -> Figure:
    """Give the figure a title, these words above its first axes, and the watermark of its mark."""
    figure.suptitle(", ".join(filter(None, (title, mark))), fontsize=14, fontweight="bold", parse_math=False)
    figure.axes[0].set_title(fill(under, 110), fontsize=9, color=GREY, parse_math=False)
    watermark(figure, mark, 60)
    return figure


def _scale(result: RunResult, directions: Sequence[DirectionResult]) -> float:
    """Return the end of both axes, the same for all directions: not far beyond what the DUT can do."""
    received = [one.max_received_pps for one in directions]
    top = max(_offered(result, directions), *received)
    if all(one.limit is Limit.DUT for one in directions):
        top = min(top, BEYOND_KNEE * max(received))
    return 1.04 * top


def _offered(result: RunResult, directions: Sequence[DirectionResult]) -> float:
    """Return the highest rate that was offered, or is planned."""
    sent = [window.sent_pps for one in directions for window in _windows(result, one.direction)]
    return max([*result.plan.targets().values(), *sent])


def _windows(result: RunResult, direction: Direction) -> list[Window]:
    return [w for w in curve_windows(result.plan, result.samples, direction) if w.sent]


def _draw_direction(axes: Axes, result: RunResult, one: DirectionResult, number: int, top: float) -> None:
    plan, windows = result.plan, _windows(result, one.direction)
    axes.plot([0, top], [0, top], color=GREY, linewidth=1, linestyle=(0, (5, 3)), label="no loss", zorder=2)
    sent, received = [w.sent_pps for w in windows], [w.received_pps for w in windows]
    style = find_look(number).style | {"markersize": 3.2, "linewidth": 1.2}
    axes.plot(sent, received, label="received", zorder=3, **style)
    _mark_verdict(axes, result, one, top)
    axes.set_xlim(0, top)
    axes.set_ylim(0, top)
    _in_pps(axes.xaxis, top)
    _in_pps(axes.yaxis, top)
    axes.tick_params(labelbottom=False)
    axes.set_ylabel(f"received, {_unit(top)[1]}pps")
    share = axes.secondary_xaxis("top", functions=_percent_of(plan.offer(one.direction)))
    share.tick_params(labelsize=8)
    share.set_xlabel("offered, % of line rate", fontsize=8, color=GREY)
    words = f"{rate_words(one)}, {limit_words(result, one)}"
    if not one.maximum_pps:
        words = "too much loss at every rate" if one.limit is Limit.DUT else "nothing measured"
    title = fill(typeset(f"{one.direction}: {words}"), TITLE_LETTERS)
    axes.set_title(title, fontsize=10.5, fontweight="bold", pad=8)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(loc="upper left", fontsize=8, framealpha=0.9)


def _mark_verdict(axes: Axes, result: RunResult, one: DirectionResult, top: float) -> None:
    if one.limit is Limit.DUT and one.first_bad_pps is not None:
        good, low, high = one.maximum_pps, one.low_pps or 0.0, one.high_pps or one.maximum_pps
        area: dict[str, Any] = {"color": RED, "alpha": 0.25, "linewidth": 0, "zorder": 1}
        axes.axvspan(low, high, 0, min(1.0, high / top), label="interval", **area)
        axes.vlines(good, 0, good, color=RED, linewidth=1.4, label=typeset(f"throughput {rate_words(one)}"), zorder=2)
        if one.confirmed_pps:
            point = [one.confirmed_pps]
            name = f"confirmed {format_pps(one.confirmed_pps)}"
            axes.plot(point, point, linestyle="none", label=name, zorder=5, **_STAR)
    if one.at_least:
        hatched: dict[str, Any] = {"facecolor": "#f4f4f4", "edgecolor": "#b0b0b0", "hatch": "//", "linewidth": 0}
        axes.axvspan(one.maximum_pps, top, label=BEYOND[one.limit], zorder=0, **hatched)


def _draw_loss(axes: Axes, result: RunResult, one: DirectionResult, number: int) -> None:
    windows, threshold = _windows(result, one.direction), 100 * result.plan.loss_threshold
    losses = [max(0.0, 100 * (w.loss or 0.0)) for w in windows]  # a window may end between a frame's two counts
    axes.axhline(threshold, color=RED, linewidth=1, linestyle="--")
    place = axes.get_yaxis_transform()  # x in shares of the axes, y in data
    axes.text(0.99, threshold, f"{format_limit(result.plan.loss_threshold)} ", transform=place, **_SMALL_RED)
    style = find_look(number).style | {"marker": ".", "markersize": 4, "linewidth": 0.8}
    axes.plot([w.sent_pps for w in windows], losses, **style)
    axes.set_yscale("symlog", linthresh=LOSS_FLOOR_PERCENT, linscale=0.6)
    axes.set_ylim(-LOSS_FLOOR_PERCENT / 4, 100)
    axes.set_yticks([0, 0.01, 0.1, 1, 10, 100])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(MaxNLocator(1))
    axes.grid(color="#dddddd", linewidth=0.6)
    top, offered = axes.get_xlim()[1], _offered(result, (one,))
    _in_pps(axes.xaxis, top)
    more = f" (it went on to {format_pps(offered)})" if offered > top else ""
    axes.set_xlabel(f"offered, {_unit(top)[1]}pps{more}")
    axes.set_ylabel("loss, %")


def _draw_over_time(axes: Axes, result: RunResult, directions: Sequence[DirectionResult]) -> None:
    plan, samples, top = result.plan, result.samples, 0.0
    for number, one in enumerate(directions):
        windows = measured_windows(plan, samples, one.direction, tuple(Phase))
        times = [(w.begin_s + w.end_s) / 2 for w in windows]
        if number == 0:
            asked = [w.asked_pps for w in windows]
            axes.plot(times, asked, color=GREY, linestyle="--", linewidth=1, label="asked", zorder=4)
        label = f"received {one.direction}" + ("" if plan.seeks_knee else f", mean {format_pps(one.maximum_pps)}")
        # A later curve lies on the earlier one, which it would hide if it were as wide and without gaps.
        style = find_look(number).style | {"marker": "", "linewidth": 1.4, "linestyle": (0, (4, 3))}
        style |= {} if number else {"linewidth": 2.8, "linestyle": "-"}
        axes.plot(times, [w.received_pps for w in windows], label=typeset(label), **style)
        top = max([top, *(w.asked_pps for w in windows), *(w.received_pps for w in windows)])
    top = top or max(plan.targets().values())
    _label_phases(axes, result, top)
    begin_s, end_s = (samples[0].t_s, samples[-1].t_s) if samples else (0.0, 1.0)
    axes.set_xlim(begin_s, max(begin_s + 1e-3, end_s))
    axes.set_ylim(0, 1.2 * top)
    _in_pps(axes.yaxis, top)
    axes.set_ylabel(f"{_unit(top)[1]}pps")
    axes.set_xlabel("time, s")
    if len({offer.line_rate_pps for offer in plan.offers}) == 1:
        share = axes.secondary_yaxis("right", functions=_percent_of(plan.offers[0]))
        share.tick_params(labelsize=8)
        share.set_ylabel("% of line rate", fontsize=8, color=GREY)
    columns = min(5, len(directions) + 1)
    axes.legend(loc="lower right", bbox_to_anchor=(1.005, 0.98), ncols=columns, fontsize=8, frameon=False)


def _label_phases(axes: Axes, result: RunResult, top: float) -> None:
    """Shade the phases and name those with room for it; those of latency upright, with their load and the mean."""
    samples = result.samples
    # A search is one part, whatever its trials.
    parts = groupby(samples[1:], key=lambda one: (one.phase, 0 if one.phase is Phase.SEARCH else one.trial))
    begin_s = samples[0].t_s if samples else 0.0
    for number, ((phase, trial), some) in enumerate(parts):
        end_s = [*some][-1].t_s
        axes.axvspan(begin_s, end_s, color="#eef3f7" if number % 2 else "#dde7ef", linewidth=0, zorder=0)
        place: dict[str, Any] = {"ha": "center", "va": "top", "color": GREY}
        if phase is Phase.LATENCY:
            words = _latency_words([one for one in result.latencies if one.trial == trial])
            axes.text((begin_s + end_s) / 2, 1.17 * top, words, rotation=90, fontsize=7, zorder=5, **place)
        elif end_s - begin_s > LETTER * (len(WORDS[phase]) + 1) * samples[-1].t_s:
            axes.text((begin_s + end_s) / 2, 1.17 * top, WORDS[phase], fontsize=8, **place)
        begin_s = end_s


def _latency_words(latencies: Sequence[Latency]) -> str:
    """``latency at 50 %: 24.6 us``: the mean of the slower direction."""
    means = [one.mean_s for one in latencies if one.mean_s is not None]
    load = f" at {100 * latencies[0].share:g} %" if latencies else ""
    return typeset(f"latency{load}{f': {format_time(max(means))}' if means else ''}")


def _head_lines(result: RunResult, width: int) -> list[tuple[str, dict[str, Any]]]:
    """Return the title lines with their styles: name, why the run ended early, result, traffic. width: in letters."""
    lines: list[tuple[str, dict[str, Any]]] = [(name_of(result), {"fontsize": 15, "fontweight": "bold"})]
    if result.status is not Status.COMPLETE:
        style = {"fontsize": 9.5, "color": "white", "backgroundcolor": RED}
        words = f"{result.status.value.upper()}: {result.reason or 'its file was not brought to an end'}"
        lines += [(text, style) for text in wrap(words, width)[:2]]
    words = typeset(answer_words(result))
    parts = [words] if len(words) <= width else words.split(": ", 1)
    lines += [(text, {"fontsize": 9}) for part in parts for text in wrap(part, width)]
    lines.append(
        (f"{'; '.join(sent_words(result, traffic_words))}  ·  {result.started}", {"fontsize": 9, "color": GREY})
    )
    return lines


def _unit(top_pps: float) -> tuple[float, str]:
    return (1e6, "M") if top_pps >= 1e6 else (1e3, "k")


def _in_pps(axis: Axis, top_pps: float) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / _unit(top_pps)[0]:g}"))


def _percent_of(offer: Offer) -> Any:
    return lambda pps: 100 * offer.line_share(pps), lambda percent: percent * offer.line_rate_pps / 100
