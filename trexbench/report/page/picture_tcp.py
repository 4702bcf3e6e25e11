"""The report's plots of TCP for its picture files: bars over the DUTs, and a mode's legs over time, as on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..clean import clean
from ..run.picture import new_figure, watermark
from ..words import typeset
from .columns import Column, column_of
from .tcp import TcpCell, mode_words, points_of

Style = Callable[[TcpCell], Mapping[str, Any]]
"""Colour, marker and dash of a cell's DUT."""
ROOM = 1.7
"""A panel reaches so many times as far as its longest bar; the numbers stand behind."""
HEAD = 1.2
"""The height of a DUT's name, in bars."""


@dataclass(frozen=True)
class _Panel:
    """filled: a bar's length; open: that of the outlined one around it; words: the number beside them."""

    title: str
    width: float
    filled: Callable[[TcpCell], float | None]
    words: Callable[[TcpCell], str]
    open: Callable[[TcpCell], float | None] = lambda one: None
    ticks: tuple[float, ...] = ()

    def longest(self, one: TcpCell) -> float | None:
        return max((value for value in (self.filled(one), self.open(one)) if value is not None), default=None)


def _milli(value: float | None) -> float | None:
    return None if value is None else 1e3 * value


def _mega(value: float | None) -> float | None:
    return None if value is None else value / 1e6


def _both(form: str, one: float | None, other: float | None) -> str:
    """``1.41 (2.35)``, or the one that is known."""
    first, second = (None if value is None else format(value, form) for value in (one, other))
    return f"{first} ({second})" if first is not None and second is not None else first or second or ""


def _rate_words(one: TcpCell) -> str:
    mbps = one.summary.rate_bps / 1e6
    return (
        f"{'≥ ' if one.summary.at_least else ''}{mbps:.0f}"
        if mbps >= 100
        else f"{'≥ ' if one.summary.at_least else ''}{mbps:.3g}"
    )


def _cpu_words(one: TcpCell) -> str:
    return _both(".3g", _mean_busy(one), _hottest(one) if len(one.cores) > 1 else None)


def _ping_words(one: TcpCell) -> str:
    return _both(".3g", _milli(one.summary.ping_idle_s), _milli(one.summary.ping_loaded_s))


def _mean_busy(one: TcpCell) -> float | None:
    return None if one.busy is None else 100 * one.busy


def _hottest(one: TcpCell) -> float | None:
    return None if one.hottest is None else 100 * one.hottest.busy


RATE = _Panel("mean rate, Mbit/s", 2.0, lambda one: one.summary.rate_bps / 1e6, _rate_words)
PANELS = (
    RATE,
    _Panel("router CPU, % (hottest core)", 1.3, _mean_busy, _cpu_words, _hottest, (0, 50, 100)),
    _Panel(
        "Mbit/s per % of a core",
        1.0,
        lambda one: _mega(one.bps_per_percent),
        lambda one: f"{_mega(one.bps_per_percent):.3g}",
    ),
    _Panel(
        "ping idle (loaded), ms",
        1.3,
        lambda one: _milli(one.summary.ping_idle_s),
        _ping_words,
        lambda one: _milli(one.summary.ping_loaded_s),
    ),
    _Panel("power, W", 0.8, lambda one: one.summary.power_w, lambda one: f"{one.summary.power_w:.3g}"),
)


def draw_bars(cells: Sequence[TcpCell], style: Style) -> Figure:
    """Every way of every DUT; panels of which nothing is known are left out."""
    panels = [panel for panel in PANELS if any(panel.longest(one) is not None for one in cells)]
    rows, heads = _arranged(cells)
    length = max((at for at, _ in rows), default=0.0) + 0.5
    figure = new_figure(14.0, 1.2 + 0.21 * length)
    every = figure.subplots(1, len(panels), sharey=True, squeeze=False, width_ratios=[panel.width for panel in panels])[
        0
    ]
    for axes, panel in zip(every, panels, strict=True):
        _draw_panel(axes, panel, rows, style)
        for at, column in heads:
            axes.text(0, at, literal(column.name), fontsize=8, fontweight="bold", va="center", parse_math=False)
    every[0].set_yticks([at for at, _ in rows], [mode_words(one.cell) for _, one in rows], fontsize=8, parse_math=False)
    every[0].set_ylim(length, 0)
    figure.suptitle(
        "TCP through the routers; hatched and ≥: the DUT was not shown to be the limit", fontsize=11, fontweight="bold"
    )
    if any(one.cell.simulated for one in cells):
        watermark(figure, 60)
    return figure


def _arranged(cells: Sequence[TcpCell]) -> tuple[list[tuple[float, TcpCell]], list[tuple[float, Column]]]:
    """Where the bars stand, and the DUTs' names above them, from the top."""
    rows: list[tuple[float, TcpCell]] = []
    heads: list[tuple[float, Column]] = []
    at = 0.0
    for one in cells:
        if not heads or heads[-1][1] != column_of(one.cell):
            heads.append((at + HEAD / 2, column_of(one.cell)))
            at += HEAD
        rows.append((at + 0.5, one))
        at += 1
    return rows, heads


def _draw_panel(axes: Axes, panel: _Panel, rows: Sequence[tuple[float, TcpCell]], style: Style) -> None:
    known = [(at, one, longest) for at, one in rows if (longest := panel.longest(one)) is not None]
    top = ROOM * max(longest for _, _, longest in known)
    for at, one, _ in known:
        colour, filled, opened = style(one)["color"], panel.filled(one), panel.open(one)
        bound = panel is RATE and one.summary.at_least
        if opened is not None:
            axes.barh(at, opened, 0.66, color="none", edgecolor=colour, linewidth=0.9)
        if filled is not None:
            look: dict[str, Any] = {"color": "none", "hatch": "////"} if bound else {"color": colour}
            axes.barh(at, filled, 0.66, edgecolor=colour, linewidth=0.6, **look)
        if panel is RATE and filled is not None and (apart_bps := one.summary.uncertainty_bps) is not None:
            axes.errorbar(filled, at, xerr=apart_bps / 1e6, color="black", linewidth=1, capsize=2)
        axes.text(0.985 * top, at, panel.words(one), ha="right", va="center", fontsize=8)
    axes.set_xlim(0, top)
    if panel.ticks:
        axes.set_xticks(panel.ticks)
    axes.set_title(panel.title, fontsize=9, loc="left")
    axes.tick_params(axis="x", labelsize=8)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def draw_series(cells: Sequence[TcpCell], style: Style) -> Figure:
    """One mode: each DUT's payload, retransmits and round trip over time."""
    figure = new_figure(8.8, 7.0)
    rate, again, rtt = figure.subplots(3, 1, sharex=True, height_ratios=[3, 1, 1.3])
    for one in cells:
        for number, flow in enumerate(one.flows):
            points = points_of(flow)
            look = {
                **style(one),
                "linewidth": 1.3 if not number else 0.9,
                "markersize": 3.5,
                "markevery": max(1, len(points) // 8),
            }
            at = [point.at_s for point in points]
            rate.plot(
                at, [point.received_bps / 1e6 for point in points], label=_label(one) if not number else None, **look
            )
            again.plot(at, [_or_gap(point.retransmitted_ps) for point in points], **look)
            rtt.plot(at, [_or_gap(_milli(point.rtt_s)) for point in points], **look)
    for axes, name in ((rate, "received, Mbit/s"), (again, "retransmits/s"), (rtt, "round trip, ms")):
        axes.set_ylabel(name, fontsize=9)
        axes.set_ylim(bottom=0)
        axes.grid(color="#dddddd", linewidth=0.6)
    rtt.set_xlabel("since the leg began, s")
    rate.set_title(f"TCP, {mode_words(cells[0].cell)}", fontsize=11, fontweight="bold", parse_math=False)
    legend = figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    if any(one.cell.simulated for one in cells):
        watermark(figure, 56)
    return figure


def _or_gap(value: float | None) -> float:
    return float("nan") if value is None else value


def _label(one: TcpCell) -> str:
    """The DUT, its mean rate and its pings."""
    pings = _ping_words(one)
    return f"{literal(column_of(one.cell).name)}: {_rate_words(one)} Mbit/s{f', ping {pings} ms' if pings else ''}"


def literal(name: str) -> str:
    """A legend's entry; matplotlib leaves out names that begin with _."""
    return typeset(clean(name, 60)).lstrip("_") or "unnamed"


def by_mode(cells: Sequence[TcpCell]) -> Iterator[tuple[str, list[TcpCell]]]:
    """The cells of each mode, those with any interval."""
    for mode in dict.fromkeys(one.cell.mode for one in cells):
        found = [one for one in cells if one.cell.mode == mode and one.flows]
        if found:
            yield mode, found
