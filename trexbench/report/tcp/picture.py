"""A TCP run as a picture: payload received over time and the hosts' CPUs; for legs that differ in their buffers the
rate over the buffers' size and what bounds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, PercentFormatter

from ...core.tcp.bdp import find_product, find_rows
from ...core.tcp.result import FlowResult, TcpResult
from ...core.tcp.wan import format_size
from ...core.units import format_bits
from ..palette import BLUE, GREEN, GREY, VERMILION, find_look
from ..run.picture import new_figure, render, titled
from ..run.picture_plot import compose_plot
from ..words import NONE
from .curves import find_plot
from .text import answer_words, name_of_flow, where_words

_HOSTS = {"client": (BLUE, "client"), "dut": (VERMILION, "DUT"), "server": (GREEN, "server")}


def draw_tcp(result: TcpResult, form: str = "png") -> bytes:
    """Draw the picture; return the file's bytes. form: png, svg or pdf."""
    return render(compose_bdp(result) or compose_tcp(result), form, f"TCP through {where_words(result)}")


def compose_tcp(result: TcpResult) -> Figure:
    """Compose the picture without rendering it."""
    flows = [flow for flow in result.flows if flow.flow.intervals]
    figure = new_figure(9.6, 6.4)
    upper, lower = figure.subplots(2, 1, height_ratios=[3, 2])
    _draw_rates(upper, flows)
    _draw_cpus(lower, flows)
    return _titled(figure, result, "", answer_words(result))


def compose_bdp(result: TcpResult) -> Figure | None:
    """Compose the picture without rendering it; None where the legs do not differ in the size of their buffers."""
    plot = find_plot(result, find_rows(result))
    if plot is None:
        return None
    # The page says so in the caption: so long a title is wider than a phone.
    sizes = replace(plot.x, title=f"{plot.x.title}: the last number of tcp_rmem and tcp_wmem")
    setup, product = result.setup, find_product(result)
    words = [f"scaled down from {setup.wan_asked}"] if setup.wan_asked is not None else []
    words += [f"BDP {format_size(product.size_bytes)}"] if product is not None else []
    return _titled(compose_plot(replace(plot, x=sizes)), result, ", buffers and BDP", *words)


def _titled(figure: Figure, result: TcpResult, what: str, *words: str) -> Figure:
    title = f"TCP through {where_words(result)}{what}"
    return titled(figure, title, "  ·  ".join((*words, result.started)), result.mark)


def _draw_rates(axes: Axes, flows: Sequence[FlowResult]) -> None:
    for number, flow in enumerate(flows):
        middles = [(interval.begin_s + interval.end_s) / 2 for interval in flow.flow.intervals]
        rates = [interval.received_bps for interval in flow.flow.intervals]
        mean = NONE if flow.statistics is None else format_bits(flow.statistics.mean)
        label = f"{name_of_flow(flow)}: mean {'≥ ' if flow.verdict.at_least else ''}{mean}, {flow.verdict.limit.value}"
        axes.plot(middles, rates, label=label, linewidth=1.2, markersize=3.5, **find_look(number).style)
    for line_bps in sorted({flow.verdict.link_bps for flow in flows if flow.verdict.link_bps}):
        label = f"payload rate of the line: {format_bits(line_bps)}"
        axes.axhline(line_bps, color=GREY, linestyle="--", linewidth=1, label=label)
    axes.set_ylim(0)
    axes.set_xlabel("time since the leg began, s")
    axes.set_ylabel("payload received")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda bps, _: format_bits(bps, chosen=True) if bps else "0"))
    axes.grid(color="#dddddd", linewidth=0.6)
    if flows:
        axes.legend(fontsize=8, loc="lower right")


def _draw_cpus(axes: Axes, flows: Sequence[FlowResult]) -> None:
    """Draw a bar for each flow's hosts: the busiest core, and the part of it spent on packets (soft interrupts)."""
    width, style = 0.26, dict[str, Any](edgecolor="white", linewidth=0.5)
    for at, (host, (colour, name)) in enumerate(_HOSTS.items()):
        cores = {number: cpu for number, flow in enumerate(flows) if (cpu := flow.shares[host].busiest) is not None}
        places = [number + (at - 1) * width for number in cores]
        axes.bar(places, [cpu.busy for cpu in cores.values()], width, color=colour, label=name, **style)
        shares = [cpu.packet_busy or 0.0 for cpu in cores.values()]
        axes.bar(places, shares, width, color="none", hatch="////", edgecolor="white", linewidth=0.0)
    packets = Patch(facecolor=GREY, hatch="////", edgecolor="white", label="of it soft interrupts")
    axes.set_ylim(0, 1.05)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylabel("busiest core")
    axes.set_xticks(range(len(flows)), [name_of_flow(one) for one in flows], fontsize=8)
    axes.set_xlim(-0.6, max(len(flows), 1) - 0.4)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    if flows:
        handles, place = [*axes.get_legend_handles_labels()[0], packets], (0.5, -0.12)
        axes.legend(handles=handles, fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=place, frameon=False)
