"""A TCP run whose legs differ in buffers, as a picture: the rate over the size of the buffers, and what bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from ...core.tcp.bdp import LINE, LOSS, WINDOW, find_product, find_rows
from ...core.tcp.result import TcpResult
from ...core.tcp.wan import format_size
from ...core.units import format_bits, nominal
from ..palette import GREY, RED
from ..run.picture import new_figure, style_of, watermark
from .curves import find_plot
from .text import where_words

_STYLES: Mapping[str, Mapping[str, Any]] = {
    WINDOW: {"color": "#222222", "linewidth": 1.4},
    LINE: {"color": GREY, "linestyle": "--", "linewidth": 1},
    LOSS: {"color": RED, "linestyle": ":", "linewidth": 1.4},
}


def compose_bdp(result: TcpResult) -> Figure | None:
    """The picture before it is rendered; None where the legs do not differ in the size of their buffers."""
    plot = find_plot(result, find_rows(result))
    if plot is None:
        return None
    figure = new_figure(9.6, 5.6)
    axes = figure.subplots()
    for bound in plot.bounds:
        axes.plot(*bound.points(plot.span), label=bound.label, **_STYLES[bound.kind])
    for number, (name, rows) in enumerate(plot.series.items()):
        points = [row.buffer_bytes or 0 for row in rows], [row.rate_bps for row in rows]
        errors = [row.uncertainty_bps or 0.0 for row in rows]
        style = dict[str, Any](linewidth=1.2, markersize=6, capsize=3, **style_of(number))
        axes.errorbar(*points, yerr=errors, label=f"measured, {name}", **style)
    axes.set_xscale("log", base=2)
    axes.set_xlim(*plot.span)
    axes.set_ylim(0, plot.top_bps)
    axes.set_xticks(plot.sizes, [nominal(format_size(size)) for size in plot.sizes], fontsize=8)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda bps, _: nominal(format_bits(bps)) if bps else "0"))
    axes.set_xlabel("buffers of both hosts: the last number of tcp_rmem and tcp_wmem")
    axes.set_ylabel("payload received")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False)
    name = f"TCP through {where_words(result)}, buffers and BDP{', simulated' if result.simulated else ''}"
    figure.suptitle(name, fontsize=14, fontweight="bold", parse_math=False)
    axes.set_title(fill(_under(result), 120), fontsize=9, color=GREY, parse_math=False)
    if result.simulated:
        watermark(figure, 60)
    return figure


def _under(result: TcpResult) -> str:
    setup, product = result.setup, find_product(result)
    words = [f"WAN of {setup.wan}"] if setup.wan is not None else []
    words += [f"scaled down from {setup.wan_asked}"] if setup.wan_asked is not None else []
    words += [f"BDP {format_size(product.size_bytes)}"] if product is not None else []
    return "  ·  ".join([*words, result.started])
