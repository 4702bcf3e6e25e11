"""Cycles per packet and vectors per call over the rate, as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from ...core.dut.cycles import Cost
from ...core.result import RunResult
from ..palette import BLUE, GREEN, VERMILION
from ..words import format_cycles, name_of, text_of
from .picture import new_figure, render, titled
from .summary import traffic_words


def draw_costs(result: RunResult, costs: Sequence[Cost]) -> bytes:
    """The PNG's bytes. result: any of the runs, for name, traffic and whether it was simulated."""
    figure = new_figure(8.8, 6.6)
    vectors = any(cost.vectors_per_call for cost in costs)
    rows: Any = figure.subplots(2 if vectors else 1, 1, sharex=True, squeeze=False, height_ratios=[2, 1][: 1 + vectors])
    _draw_cycles(rows[0][0], costs)
    if vectors:
        _draw_vectors(rows[1][0], costs)
    rows[-1][0].set_xlabel("forwarded, Mpps")
    source = next((cost.source for cost in costs if cost.cycles_per_packet is not None), None)
    told = f"{traffic_words(result.profile)}  ·  from {source}  ·  {result.started}"
    titled(figure, f"{text_of(result.dut, 'name', '?')}: what a packet costs", told, result.simulated)
    return render(figure, "png", {"Software": "trexbench", "Title": name_of(result, "efficiency")})


def _draw_cycles(axes: Axes, costs: Sequence[Cost]) -> None:
    polls = any(cost.with_polling is not None for cost in costs)
    label = "without polling" if polls else "cycles/packet"
    style: dict[str, Any] = {"color": BLUE, "marker": "o", "label": label}
    values = _plot(axes, costs, lambda cost: cost.cycles_per_packet, format_cycles, -15 if polls else 7, **style)
    if polls:
        style = {"color": VERMILION, "marker": "s", "label": "with polling"}
        values += _plot(axes, costs, lambda cost: cost.with_polling, format_cycles, **style)
    axes.margins(x=0.08, y=0.12)
    axes.set_xscale("log")
    every = [value for value in values if value > 0]
    if every and max(every) > 10 * min(every):
        axes.set_yscale("log")
    else:  # a decade without a power of ten in it has no ticks
        axes.set_ylim(0, 1.15 * max(every, default=1.0))
    axes.set_ylabel("cycles/packet")
    _plain(axes)
    axes.legend(fontsize=8)


def _draw_vectors(axes: Axes, costs: Sequence[Cost]) -> None:
    _plot(axes, costs, lambda cost: cost.vectors_per_call or None, "{:.4g}".format, color=GREEN, marker="^")
    axes.margins(y=0.25)
    axes.set_yscale("log", base=2)
    axes.set_ylabel("vectors/call")
    _plain(axes)


def _plot(
    axes: Axes,
    costs: Sequence[Cost],
    of: Callable[[Cost], float | None],
    form: Callable[[float], str],
    up: int = 7,
    **style: Any,
) -> list[float]:
    """Draw a curve over the forwarded rate, with each point's figure ``up`` points above it; returns the figures."""
    points = [(cost.forwarded_pps / 1e6, value) for cost in costs if (value := of(cost)) is not None]
    axes.plot([x for x, _ in points], [y for _, y in points], linewidth=1.4, **style)
    place: dict[str, Any] = {"xytext": (0, up), "textcoords": "offset points", "ha": "center", "fontsize": 8}
    for x, y in points:
        axes.annotate(form(y), (x, y), color=style["color"], **place)
    return [y for _, y in points]


def _plain(axes: Axes) -> None:
    """Plain numbers instead of powers of ten, and a grid."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}".replace(",", " ")))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(color="#dddddd", linewidth=0.6)
