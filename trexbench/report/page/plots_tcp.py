"""Plots of TCP: rate and cost of each way, in rows; and each leg over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isnan, nan
from statistics import fmean
from typing import Any

from ..plots import PlotAxis, PlotFigure, PlotLine
from ..sheet import heads_of
from ..words import format_plain, typeset
from .columns import Looks
from .plots_packets import BOUND, WIDE
from .report import Report, night_of_run
from .sheets_tcp import RATES, rate_items
from .tcp import TcpCell, pool_intervals

PANELS = ("mean rate, Mbit/s", "router CPU, %", "Mbit/s per % of a core", "ping, ms", "power, W")
FEW = 3
"""Fewer points than these are not joined by a line."""


def bar_figure(report: Report, looks: Looks) -> PlotFigure:
    """Plot a row for each DUT and way, with a panel for each figure that any of them has."""
    lines = [line for tcp_cell in report.tcp_cells for line in _row(tcp_cell, looks)]
    shown = sorted({line.panel for line in lines})
    axes = [PlotAxis(PANELS[panel], span=(0.0, 100.0) if panel == 1 else None) for panel in shown]
    lines = [replace(line, panel=shown.index(line.panel)) for line in lines]
    return PlotFigure(axes[0], PlotAxis(), lines, follows="duts", form="rows", below=axes[1:], cells=True)


def _row(one: TcpCell, looks: Looks) -> Iterator[PlotLine]:
    summary, rate = one.summary, 1e-6 * one.summary.rate_bps
    look: dict[str, Any] = {"colour": looks.of(one.cell).hue, "marker": "circle", "size": 11}
    figures = zip(heads_of(RATES)[1:], rate_items(one), strict=True)
    known = [f"{head.name}: {item.text}" for head, item in figures if item.raw]
    texts = typeset("; ".join([night_of_run(one.result), *known, *one.reasons]))

    def row(panel: int, words: str, idle: float | None, loaded: float | None = None, **more: Any) -> PlotLine:
        """Make the row's line in a panel; the mark of the loaded figure is hollow."""
        known = [(value, hollow) for value, hollow in ((loaded, True), (idle, False)) if value is not None]
        bounds = [hollow for _, hollow in known]
        tags = {"tcp-way": (str(one.cell.mode),)}
        fields = look | {"bounds": bounds, "words": [words], "panel": panel, "tags": tags} | more
        return PlotLine("", [value for value, _ in known], [], [texts] * len(known), (one.cell,), **fields)

    apart = None if summary.uncertainty_bps is None else 1e-6 * summary.uncertainty_bps
    sign: dict[str, Any] = {"marker": BOUND, "bounds": None} if summary.at_least else {}
    yield row(0, f"{'≥ ' * summary.at_least}{format_plain(rate)}", rate, apart=[apart], **sign)
    if one.cores:
        hottest = None if one.hottest is None else 100 * one.hottest.busy
        mean = 100 * fmean(one.cores)
        several = len(one.cores) > 1 and hottest is not None
        words = f"{format_plain(mean)}{f' ({format_plain(hottest or 0.0)})' * several}"
        yield row(1, words, mean, hottest if several else None)
    if one.bps_per_percent is not None:
        yield row(2, format_plain(1e-6 * one.bps_per_percent), 1e-6 * one.bps_per_percent)
    idle, loaded = (None if s is None else 1e3 * s for s in (summary.ping_idle_s, summary.ping_loaded_s))
    if idle is not None or loaded is not None:
        known = [format_plain(value) for value in (idle, loaded) if value is not None]
        yield row(3, f"{known[0]} ({known[1]})" if len(known) > 1 else known[0], idle, loaded)
    if summary.power_w is not None:
        yield row(4, f"{summary.power_w:.4g}", summary.power_w)


def _pings(one: TcpCell) -> str:
    """``ping 0.3 ms idle, 1.2 ms loaded``"""
    known = (("idle", one.summary.ping_idle_s), ("loaded", one.summary.ping_loaded_s))
    words = ", ".join(f"{format_plain(1e3 * seconds)} ms {name}" for name, seconds in known if seconds is not None)
    return f"ping {words}" if words else ""


def series_figure(report: Report, looks: Looks) -> PlotFigure:
    """Plot each leg over time: payload, retransmitted segments, the kernel's round trip."""
    lines = [line for one in report.tcp_cells for line in _series(report, one, looks)]
    trips = [value for line in lines if line.panel == 2 for value in line.y if value > 0]
    trip = PlotAxis("round trip, ms", fit=bool(trips) and max(trips) > WIDE * min(trips))
    x, below = PlotAxis("since the leg began, s"), (PlotAxis("retransmits/s"), trip)
    return PlotFigure(x, PlotAxis("Mbit/s"), lines, follows="cells", below=below, cells=True)


def _series(report: Report, one: TcpCell, looks: Looks) -> Iterator[PlotLine]:
    both = len({flow.flow.sender for flow in one.flows}) > 1
    pings = _pings(one)
    for number, flow in enumerate(one.flows):
        points, look = [*pool_intervals(flow)], looks.latest(one.cell, str(number))
        look |= {"dash": "none"} if len(points) < FEW else {"marker": None}
        sender = f", {flow.flow.sender} sends" if both else ""
        panels = (
            ("Mbit/s", [1e-6 * point.received_bps for point in points]),
            ("retransmitted segments/s", [_or_gap(point.retransmits) / point.length_s for point in points]),
            ("ms round trip", [1e3 * _or_gap(point.rtt_s) for point in points]),
        )
        for panel, (unit, values) in enumerate(panels):
            if not all(map(isnan, values)):
                yield PlotLine(
                    f"{sender}, repetition {flow.leg.repetition}" if flow.leg.repetition > 1 else sender,
                    [(point.begin_s + point.end_s) / 2 for point in points],
                    values,
                    f"{{y}} {unit}; at {{x}} s{f'; {pings}' if pings else ''}",
                    (one.cell,),
                    night=", ".join(filter(None, (report.dated.get(one.cell, ""), pings))),
                    panel=panel,
                    **look,
                )


def _or_gap(value: float | None) -> float:
    return nan if value is None else value
