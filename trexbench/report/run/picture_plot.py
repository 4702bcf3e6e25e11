"""A plot of lines as a picture; throughput over the frame size (RFC 2544, section 26.1) is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from ...core.result import RunResult
from ..palette import GREY, RED
from ..plots import BAD, INK, SOFT, PlotAxis, PlotFigure, PlotLine
from ..words import name_of, text_of, typeset
from .picture import new_figure, render, style_of, titled
from .sizes import size_figure

_COLOURS = {INK: "#222222", SOFT: GREY, BAD: RED}
_DASHES = {"solid": "-", "dash": "--", "dot": ":"}


def draw_sizes(results: Sequence[RunResult]) -> bytes:
    """The PNG's bytes; the runs are of one DUT and differ by their frame size only."""
    title = f"throughput by frame size of {name_of(results[0])}"
    return render(compose_sizes(results), "png", {"Software": "trexbench", "Title": title})


def compose_sizes(results: Sequence[RunResult]) -> Figure:
    """The picture before it is rendered."""
    first = results[0]
    title = f"{text_of(first.dut, 'name', '?')}: throughput by frame size"
    figure = compose_plot(size_figure([("throughput", (), results)]))
    return titled(figure, title, f"{first.plan.kind}  ·  {first.started}", first.simulated)


def compose_plot(plot: PlotFigure) -> Figure:
    """The lines with their axes and a legend; hollow markers are lower bounds."""
    figure = new_figure(9.6, 6.0)
    axes = figure.subplots()
    measured = [line for line in plot.lines if line.bounds is not None]
    for line in plot.lines:
        _draw_line(axes, line, measured.index(line) if line in measured else 0)
    if any(any(line.bounds or ()) for line in measured):
        axes.plot([], [], "o", color=GREY, markerfacecolor="white", label="hollow: at least so much")
    for which, axis in (("x", plot.x), ("y", plot.y)):
        _set_axis(axes, which, axis)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False)
    return figure


def _draw_line(axes: Axes, line: PlotLine, number: int) -> None:
    """number: place of a measured line among those, whose colour and marker follow from it."""
    style: dict[str, Any] = {"linestyle": _DASHES[line.dash], "linewidth": 1.4, "label": typeset(line.name)}
    if line.bounds is None:
        axes.plot(line.x, line.y, color=_COLOURS[str(line.colour)], **style)
        return
    look = {**style_of(number), "markersize": 6 + 2 * number, "zorder": 3 - number / 10}
    axes.errorbar(line.x, line.y, yerr=line.apart or None, capsize=3, **(look | style))
    hollow = [point for *point, bound in zip(line.x, line.y, line.bounds, strict=True) if bound]
    white = {"markerfacecolor": "white", "linestyle": "none", "zorder": 4 - number / 10}
    axes.plot([x for x, _ in hollow], [y for _, y in hollow], **(look | white))


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
