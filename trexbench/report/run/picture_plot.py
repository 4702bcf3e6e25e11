"""Plots of lines as a picture: throughput over the frame size (RFC 2544, section 26.1), costs over the rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from ...core.dut.cycles import Cost
from ...core.result import RunResult
from ..palette import BLUE, GREY, RED, find_look
from ..plots import BAD, INK, SOFT, PlotAxis, PlotFigure, PlotLine
from ..words import name_of, text_of, typeset
from .costs import cost_plots
from .picture import new_figure, render, titled
from .sizes import size_figure
from .summary import sent_words, traffic_words

_COLOURS = {INK: "#222222", SOFT: GREY, BAD: RED}
_DASHES = {"solid": "-", "dash": "--", "dot": ":"}


def draw_sizes(results: Sequence[RunResult]) -> bytes:
    """Draw the throughput of runs that differ by their frame size only; return the PNG's bytes."""
    return render(compose_sizes(results), "png", f"throughput by frame size of {name_of(results[0])}")


def compose_sizes(results: Sequence[RunResult]) -> Figure:
    """Compose the picture without rendering it."""
    first = results[0]
    title = f"{text_of(first.dut, 'name', '?')}: throughput by frame size"
    figure = compose_plot(size_figure([("throughput", (), results)]))
    return titled(figure, title, f"{first.plan.kind}  ·  {first.started}", first.mark)


def draw_costs(result: RunResult, costs: Sequence[Cost]) -> bytes:
    """Draw the costs; return the PNG's bytes. result: any of the runs, for name, traffic and the mark."""
    source = next((cost.source for cost in costs if cost.cycles_per_packet is not None), None)
    about = f"{'; '.join(sent_words(result, traffic_words))}  ·  from {source}  ·  {result.started}"
    title = f"{text_of(result.dut, 'name', '?')}: what a packet costs"
    figure = titled(compose_plot(*cost_plots(costs)), title, about, result.mark)
    return render(figure, "png", name_of(result, "efficiency"))


def compose_plot(*plots: PlotFigure) -> Figure:
    """Draw the plots below each other, with a legend; hollow markers are lower bounds."""
    figure = new_figure(9.6, 6.4)
    ratios = [2, 1][: len(plots)]
    rows: Any = figure.subplots(len(plots), 1, sharex=True, squeeze=False, height_ratios=ratios)
    measured = [line for plot in plots for line in plot.lines if line.bounds is not None]
    for (axes,), plot in zip(rows, plots, strict=True):
        axes.margins(0.08, 0.2)
        for line in plot.lines:
            _draw_line(axes, line, measured.index(line) if line in measured else 0)
        _set_axis(axes, "y", plot.y)
        _set_axis(axes, "x", plot.x)
        axes.label_outer()
        axes.grid(color="#dddddd", linewidth=0.6)
    if any(any(line.bounds or ()) for line in measured):
        axes.plot([], [], "o", color=GREY, markerfacecolor="white", label="hollow: a lower bound")
    figure.legend(loc="outside lower center", fontsize=8, ncols=2, frameon=False)
    return figure


def _draw_line(axes: Axes, line: PlotLine, number: int) -> None:
    style: dict[str, Any] = {"linestyle": _DASHES[line.dash], "linewidth": 1.4, "label": typeset(line.name)}
    if line.bounds is None:
        axes.plot(line.x, line.y, color=_COLOURS.get(str(line.colour), BLUE), **style)
        return
    look = find_look(number).style | {"markersize": 6 + 2 * number, "zorder": 3 - number / 10}
    axes.plot(line.x, line.y, **(look | style))
    if line.apart:
        half = [value or 0.0 for value in line.apart]
        axes.errorbar(line.x, line.y, yerr=half, fmt="none", ecolor=look["color"], capsize=3)
    hollow = [point for *point, bound in zip(line.x, line.y, line.bounds, strict=True) if bound]
    white = {"markerfacecolor": "white", "linestyle": "none", "zorder": 4 - number / 10}
    axes.plot([x for x, _ in hollow], [y for _, y in hollow], **(look | white))
    for x, y, words in zip(line.x, line.y, line.words, strict=False):
        place: dict[str, Any] = {"xytext": (0, 7 + number) if number else (-6, -16), "textcoords": "offset points"}
        axes.annotate(typeset(words), (x, y), color=look["color"], fontsize=8, ha="center", **place)


def _set_axis(axes: Axes, which: str, axis: PlotAxis) -> None:
    side = axes.xaxis if which == "x" else axes.yaxis
    axes.set(**{f"{which}label": axis.title})
    if axis.ticks:
        names = dict(axis.ticks)
        axes.set(**{f"{which}scale": "log"})
        side.set_major_locator(FixedLocator(list(names)))
        side.set_minor_locator(NullLocator())
        side.set_major_formatter(FuncFormatter(lambda value, _: names.get(value, "")))
        side.set_tick_params(labelsize=8)
    axes.set(**{f"{which}lim": axis.span or (None if axis.ticks else (0, None))})
