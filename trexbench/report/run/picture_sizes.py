"""Throughput and line rate over the frame size (RFC 2544, section 26.1), as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator, PercentFormatter

from ...core.result import RunResult
from ...core.units import format_pps, nominal
from ..palette import GREY
from ..words import format_limit, name_of, text_of
from .picture import new_figure, render, style_of, watermark
from .plans import line_speeds
from .sizes import Throughput, throughputs


def draw_sizes(results: Sequence[RunResult]) -> bytes:
    """The PNG's bytes; the runs are of one DUT and differ by their frame size only."""
    title = f"throughput by frame size of {name_of(results[0])}"
    return render(compose_sizes(results), "png", {"Software": "trexbench", "Title": title})


def compose_sizes(results: Sequence[RunResult]) -> Figure:
    """The picture before it is rendered."""
    first = results[0]
    figure = new_figure(8.8, 6.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    points = sorted((one for one in throughputs(results) if one.total_pps), key=lambda one: (one.loss, one.frame_bytes))
    line = sorted({result.plan.offers[0].mean_frame_bytes: throughputs([result])[0] for result in results}.items())
    sizes = [size for size, _ in line]
    label = f"line rate (theoretical maximum) at {line_speeds(first.plan)}"
    upper.plot(sizes, [one.line_rate_pps for _, one in line], "--", color=GREY, linewidth=1.2, label=label)
    for number, (loss, group) in enumerate(groupby(points, key=lambda one: one.loss)):
        _draw_goal(upper, lower, number, loss, list(group))
    if any(one.bounds for one in points):
        upper.plot([], [], "o", color=GREY, markerfacecolor="white", label="hollow: at least so much")
    _finish(upper, lower, sizes)
    ways = len(first.plan.directions)
    together = f"{ways} directions together" if ways > 1 else "one direction"
    title = f"{text_of(first.dut, 'name', '?')}: throughput by frame size{', simulated' if first.simulated else ''}"
    figure.suptitle(title, fontsize=14, fontweight="bold", parse_math=False)
    upper.set_title(f"{together}  ·  {first.plan.kind}  ·  {first.started}", fontsize=9, color=GREY, parse_math=False)
    if first.simulated:
        watermark(figure, 60)
    return figure


def _draw_goal(upper: Axes, lower: Axes, number: int, loss: float, points: Sequence[Throughput]) -> None:
    """One loss's curve in both plots, the first on top; where only a bound is known the marker is hollow."""
    style = {**style_of(number), "linewidth": 1.4, "markersize": 6 + 2 * number, "zorder": 3 - number / 10}
    sizes = [one.frame_bytes for one in points]
    upper.plot(sizes, [one.total_pps for one in points], label=f"throughput, loss <= {format_limit(loss)}", **style)
    shares = [one.result.plan.line_share(one.rates_pps) / len(one.result.plan.offers) for one in points]
    lower.plot(sizes, shares, **style)
    for one, share in zip(points, shares, strict=True):
        if one.bounds:
            hollow: dict[str, Any] = {**style, "markerfacecolor": "white", "linestyle": "none"}
            upper.plot(one.frame_bytes, one.total_pps, **hollow)
            lower.plot(one.frame_bytes, share, **hollow)
    for at, one in enumerate(points if number == 0 else ()):
        words = f"{'≥ ' if one.bounds else ''}{format_pps(one.total_pps)}"
        # Below a curve that falls to the right; the first figure would stand beyond the axis.
        side, right = ("left", -4) if at == 0 else ("right", -5)
        place: dict[str, Any] = {"xytext": (right, -16), "textcoords": "offset points", "ha": side, "fontsize": 8}
        upper.annotate(words, (one.frame_bytes, one.total_pps), color=style["color"], **place)


def _finish(upper: Axes, lower: Axes, sizes: Sequence[float]) -> None:
    upper.set_xscale("log", base=2)
    upper.set_yscale("log")
    upper.margins(y=0.14)
    upper.set_ylabel("frames per second")
    upper.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    upper.yaxis.set_major_formatter(FuncFormatter(lambda pps, _: nominal(format_pps(pps))))
    upper.yaxis.set_minor_formatter(NullFormatter())
    upper.legend(fontsize=8)
    lower.set_xlabel("frame size with FCS, bytes")
    lower.set_ylabel("of line rate")
    lower.set_ylim(0, 1.1)
    lower.yaxis.set_major_formatter(PercentFormatter(1.0))
    lower.xaxis.set_major_locator(FixedLocator(list(sizes)))
    lower.tick_params("x", labelsize=8)
    lower.xaxis.set_minor_locator(NullLocator())
    lower.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:g}"))
    for axes in (upper, lower):
        axes.grid(color="#dddddd", linewidth=0.6)
