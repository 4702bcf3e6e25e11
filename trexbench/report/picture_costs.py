"""Cycles per packet and vectors per call against the rate, as a picture: the seed's interlude at a glance."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from ..core.cycles import Cost
from ..core.result import RunResult
from .picture import BLUE, DPI, GREEN, GREY, ORANGE, RED
from .summary import name_of, text_of, traffic_words

_WATERMARK: dict[str, Any] = {"fontsize": 60, "color": RED, "alpha": 0.12, "rotation": 24, "fontweight": "bold"}


def draw_costs(result: RunResult, costs: Sequence[Cost]) -> bytes:
    """The PNG's bytes. result: any of the runs, for name, traffic and whether it was simulated."""
    figure = Figure(figsize=(8.8, 6.6), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    vectors = any(cost.vectors_per_call for cost in costs)
    rows: Any = figure.subplots(2 if vectors else 1, 1, sharex=True, squeeze=False, height_ratios=[2, 1][: 1 + vectors])
    known = [cost for cost in costs if cost.cycles_per_packet is not None]
    _draw_cycles(rows[0][0], known)
    if vectors:
        _draw_vectors(rows[1][0], [cost for cost in costs if cost.vectors_per_call])
    rows[-1][0].set_xlabel("forwarded, Mpps")
    dut = text_of(result.dut, "name", "?")
    simulated = ", simulated" if result.simulated else ""
    figure.suptitle(f"{dut}: what a packet costs{simulated}", fontsize=14, fontweight="bold")
    source = next((cost.source for cost in known), None)
    told = f"{traffic_words(result.profile)}  ·  from {source}  ·  {result.started}"
    rows[0][0].set_title(told, fontsize=9, color=GREY, parse_math=False)
    if result.simulated:
        figure.text(0.5, 0.5, "SIMULATED", ha="center", va="center", zorder=100, **_WATERMARK)
    title = f"efficiency of {name_of(result)}"
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": "trexbench", "Title": title})
    return buffer.getvalue()


def _draw_cycles(axes: Axes, costs: Sequence[Cost]) -> None:
    polling = [cost for cost in costs if cost.with_polling is not None]
    label = "without polling" if polling else "cycles/packet"
    series = [(costs, [cost.cycles_per_packet or 0.0 for cost in costs], BLUE, "o", label)]
    if polling:
        series.append((polling, [cost.with_polling or 0.0 for cost in polling], ORANGE, "s", "with polling"))
    for chosen, values, colour, marker, name in series:
        below = polling and colour == BLUE
        axes.plot(_mpps(chosen), values, color=colour, marker=marker, linewidth=1.4, label=name)
        for cost, value in zip(chosen, values, strict=True):
            offset = (0, -15 if below else 7)
            place = {"xytext": offset, "textcoords": "offset points", "ha": "center", "fontsize": 8, "color": colour}
            axes.annotate(f"{value:,.0f}".replace(",", " "), (cost.forwarded_pps / 1e6, value), **place)  # type: ignore[arg-type]
    axes.margins(x=0.08, y=0.12)
    axes.set_xscale("log")
    every = [value for _, values, *_ in series for value in values if value > 0]
    if every and max(every) > 10 * min(every):
        axes.set_yscale("log")
    else:  # a decade without a power of ten in it has no ticks
        axes.set_ylim(0, 1.15 * max(every, default=1.0))
    axes.set_ylabel("cycles/packet")
    _plain(axes)
    axes.legend(fontsize=8)


def _draw_vectors(axes: Axes, costs: Sequence[Cost]) -> None:
    values = [cost.vectors_per_call or 0.0 for cost in costs]
    axes.plot(_mpps(costs), values, color=GREEN, marker="^", linewidth=1.4)
    for cost, value in zip(costs, values, strict=True):
        place = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center", "fontsize": 8, "color": GREEN}
        axes.annotate(f"{value:.4g}", (cost.forwarded_pps / 1e6, value), **place)  # type: ignore[arg-type]
    axes.margins(y=0.25)
    axes.set_yscale("log", base=2)
    axes.set_ylabel("vectors/call")
    _plain(axes)


def _plain(axes: Axes) -> None:
    """Numbers in place of powers, and a grid."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}".replace(",", " ")))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(color="#dddddd", linewidth=0.6)


def _mpps(costs: Sequence[Cost]) -> list[float]:
    return [cost.forwarded_pps / 1e6 for cost in costs]
