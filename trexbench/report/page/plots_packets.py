"""Plots of packets: received against offered rates, latencies, and what packets cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...core.dut.cycles import Cost
from ...core.history.cell import Cell
from ...core.history.rows import COST
from ..plots import PlotAxis, PlotFigure, PlotLine, short
from ..words import format_change, format_cycles, typeset
from .columns import Looks
from .overlay import Curve, LatencyRow, Older
from .report import Report, night_of_run

MPPS = 1e-6
LOSS_FLOOR = 0.001
"""In percent: no loss has no place on a logarithmic axis, and is drawn here."""
LOSS_TICKS = ((LOSS_FLOOR, "0"), (0.01, "0.01"), (0.1, "0.1"), (1.0, "1"), (10.0, "10"), (100.0, "100"))
OFFERED = {"share": "offered, % of line rate", "pps": "offered, Mpps"}
RECEIVED = {"share": "received, % of line rate", "pps": "received, Mpps"}
KNEE, BOUND = "x-thin", "triangle-right-open"
"""Markers of a verdict."""
SAME = 1.05
"""Ratio of rates that count as one: a line between their points would be a slope of noise."""
WIDE = 20.0
"""Ratio of figures from which on an axis need not begin at zero, which would squeeze them."""
BAND = 2.0
"""Half the width of the band of noise, in standard deviations of a night: it holds about 95 % of the nights."""


def ramp_figure(report: Report, looks: Looks) -> PlotFigure:
    """Plot received over offered rates and the loss below, for each cell's latest run and older nights."""
    lines: list[PlotLine] = []
    for curve in sorted(report.curves, key=lambda one: looks.column(one.cell)):
        cell, older = curve.cell, report.older.get(curve.cell, ())
        look = looks.latest(cell, curve.direction) | {"width": 1.8, "beside": cell not in report.dated}
        lines += _ramp_lines(curve, look, f"{night_of_run(report.runs[cell])}, latest")
        for one in older:
            look = looks.older(cell, one.why, curve.direction)
            for past in one.curves:
                if past.direction == curve.direction:
                    lines += _ramp_lines(past, look, f"{one.night}, {one.words}", cell, one)
    limit = max((100 * one.loss_threshold for one in report.curves), default=0.0)
    loss = PlotAxis("loss, %", LOSS_TICKS, (LOSS_FLOOR / 1.4, 140.0), switch="log", limit=limit or None)
    keys = (KNEE, "throughput, with its interval"), (BOUND, "at least: the DUT was not the limit")
    more: dict[str, Any] = {"follows": "cells", "below": (loss,), "keys": keys, "cells": True, "diagonal": "no loss"}
    return PlotFigure(PlotAxis(titles=OFFERED), PlotAxis(titles=RECEIVED), lines, **more)


def _ramp_lines(
    curve: Curve, look: dict[str, Any], night: str, cell: Cell | None = None, older: Older | None = None
) -> Iterator[PlotLine]:
    """Yield the curve, the run's loss, and the mark of its verdict. cell, older: for a run of an older night."""
    tags = {"direction": (curve.direction,)} | ({"older": older.why} if older else {})
    otherwise = "; the DUT was configured differently" * bool(older and older.otherwise)
    loss = [short(value, 3 if older else 4, 100) for value in curve.loss]
    line = PlotLine(
        f", {curve.direction}" if curve.cell.bidir else "",
        [MPPS * pps for pps in curve.offered_pps],
        [MPPS * pps for pps in curve.received_pps],
        f"offered {{x:pps}}, {{x.share}} % of line rate; received {{y:pps}}; loss {{loss}} %{otherwise}",
        (cell or curve.cell,),
        night=night,
        tags=tags,
        scales=_shares(curve.line_rate_pps),
        more={"loss": loss},
        **look,
    )
    yield line
    texts = f"offered {{x:pps}}; loss {{loss}} %{otherwise}"
    yield replace(line, y=[max(LOSS_FLOOR, value or 0.0) for value in loss], texts=texts, panel=1)
    rate = curve.knee_pps if curve.knee_pps is not None else curve.bound_pps
    if rate is not None:
        low, high = curve.result.low_pps, curve.result.high_pps
        is_knee = curve.knee_pps is not None
        yield replace(
            line,
            x=[MPPS * rate],
            y=[MPPS * rate],
            texts=[curve.words.replace(", ", "; ")],
            more={},
            dash="none",
            marker=KNEE if is_knee else BOUND,
            size=9 if older else 12,
            within=None if low is None or high is None else (MPPS * low, MPPS * high),
            key=0 if is_knee else 1,
        )


def _shares(line_rate_pps: float) -> dict[str, tuple[float, float]]:
    return {"pps": (1.0, 0.0), "share": (100 / (MPPS * line_rate_pps), 0.0)}


def latency_figure(report: Report, looks: Looks) -> PlotFigure:
    """Plot mean and 99th percentile of the latency at shares of the throughput; for older nights the mean."""
    lines: list[PlotLine] = []
    for row in sorted(report.latencies, key=lambda one: looks.column(one.cell)):
        night = report.dated.get(row.cell, "")
        lines += _latency_lines(row, looks.latest(row.cell, row.direction) | {"width": 1.8}, night)
        lines += _latency_lines(row, looks.latest(row.cell, row.direction, "-open-dot"), night, p99=True)
        for one in report.older.get(row.cell, ()):
            for past in one.latencies:
                if past.direction == row.direction:
                    look = looks.older(row.cell, one.why, row.direction)
                    past = replace(past, cell=row.cell)
                    lines += _latency_lines(past, look, f"{one.night}, {one.words}", one)
    values = [value for line in lines for value in line.y if value]
    y = PlotAxis("latency, \u00b5s", fit=bool(values) and max(values) > WIDE * min(values))
    keys = ("circle", "filled: mean"), ("circle-open-dot", "with a dot: p99")
    return PlotFigure(PlotAxis(titles=OFFERED), y, lines, follows="cells", keys=keys, cells=True)


def _latency_lines(
    row: LatencyRow, look: dict[str, Any], night: str, older: Older | None = None, p99: bool = False
) -> Iterator[PlotLine]:
    pairs = [(one, one.p99_s if p99 else one.mean_s) for one in row.loads]
    known = [(one, seconds) for one, seconds in pairs if seconds is not None]
    if not known:
        return
    lost = [f"; {100 * (one.loss or 0):.4g} % of the frames were lost: full queues" * one.lossy for one, _ in known]
    yield PlotLine(
        f", {row.direction}" if row.cell.bidir else "",
        [MPPS * one.offered_pps for one, _ in known],
        [1e6 * seconds for _, seconds in known],
        f"{'p99' if p99 else 'mean'} {{y}} \u00b5s; at {{share}} % of the throughput, {{x:pps}}{{lost}}",
        (row.cell,),
        night=night,
        tags={"p99": ()} if p99 else {"older": older.why} if older else {},
        scales=_shares(row.line_rate_pps),
        more={"share": [float(f"{100 * one.share:.4g}") for one, _ in known], "lost": lost},
        key=None if older else int(p99),
        **look,
    )


def rate_figure(report: Report, looks: Looks) -> PlotFigure | None:
    """Plot cycles per packet over the rate, for cells measured at several rates; None if there are none."""
    groups: dict[tuple[Cell, int], list[tuple[Cell, Cost, Older | None]]] = {}
    for cell, costs in report.costs.items():
        family = replace(cell, held_pps=None)
        groups.setdefault((family, -1), []).extend((cell, cost, None) for cost in costs)
        for number, one in enumerate(report.older.get(cell, ())):
            groups.setdefault((family, number), []).extend((cell, cost, one) for cost in one.costs)
    lines: list[PlotLine] = []
    for some in groups.values():
        some.sort(key=lambda item: item[1].forwarded_pps)
        if some and some[-1][1].forwarded_pps > SAME * some[0][1].forwarded_pps:
            lines += _cost_lines(report, looks, some)
    if not lines:
        return None
    lines.sort(key=lambda line: looks.column(line.cells[0]))
    keys = ("circle", "filled: without polling"), ("circle-open-dot", "with a dot: with polling")
    x, y = PlotAxis("forwarded, Mpps", fit=True), PlotAxis("cycles/packet", fit=True)
    return PlotFigure(x, y, lines, follows="cells", keys=keys, cells=True)


def _cost_lines(report: Report, looks: Looks, some: Sequence[tuple[Cell, Cost, Older | None]]) -> Iterator[PlotLine]:
    """Yield the costs without polling, and except for older nights those with it."""
    cells, older = tuple(dict.fromkeys(cell for cell, _, _ in some)), some[0][2]
    nights = list(dict.fromkeys(report.dated.get(cell, "") for cell in cells))
    night = "several nights" if len(nights) > 1 else nights[0]
    polls = any(cost.with_polling for _, cost, _ in some)
    for key in range(1 if older else 2):
        figures = ((cost, (cost.cycles_per_packet, cost.with_polling)[key]) for _, cost, _ in some)
        known = [(cost, value) for cost, value in figures if value]
        vectors = [cost.vectors_per_call for cost, _ in known]
        look = looks.older(cells[0], older.why) if older else looks.latest(cells[0], kind="-open-dot" * key)
        if known:
            yield PlotLine(
                "",
                [MPPS * cost.forwarded_pps for cost, _ in known],
                [value for _, value in known],
                "{y} cycles/packet; at {x:pps}, {phase}{vectors}",
                cells,
                night=f"{older.night}, {older.words}" if older else night,
                tags={"older": older.why} if older else {"polling": ()} if key else {},
                more={
                    "phase": [cost.phase.value for cost, _ in known],
                    "vectors": ["" if one is None else f"; {one:.4g} vectors/call" for one in vectors],
                },
                key=key if polls and not older else None,
                **look,
            )


def cost_figure(report: Report, looks: Looks) -> PlotFigure:
    """Plot a row for each cell: cycles per packet as usual and now, and the difference."""
    usual = {trend.cell: trend.usual(COST) for trend in report.trends}
    lines: list[PlotLine] = []
    for cell in sorted(report.costs, key=looks.column):
        known, held = report.costs[cell], report.runs[cell].held_cost  # which the usual level is of
        now = (known[known.index(held)] if held in known else known[-1]).cycles_per_packet or 0.0
        before = usual.get(cell)
        look: dict[str, Any] = {"colour": looks.of(cell).hue, "marker": "circle", "size": 11}
        dated = f", {report.dated[cell]}" if cell in report.dated else ""
        if before is None or not before.level or len(before.values) < 2:
            texts = [f"now{dated} {format_cycles(now)} cycles/packet"]
            lines.append(PlotLine("", [now], [], texts, (cell,), words=[format_cycles(now)], key=1, **look))
            continue
        noise = BAND * (before.noise or 0.0)
        change = now / before.level - 1
        of = "before the change" if before.loss else f"the median of {len(before.values)} nights"
        texts = [f"usual: {format_cycles(before.level)} cycles/packet, {of}"]
        texts += [f"now{dated}: {format_cycles(now)} cycles/packet, {format_change(change)}"]
        pair = {"bounds": [True, False], **look}
        words = f"{format_cycles(before.level)} \u2192 {format_cycles(now)}"
        lines.append(PlotLine("", [before.level, now], [], texts, (cell,), words=[words], apart=[noise, 0], **pair))
        apart, words = [100 * noise / before.level, 0], typeset(format_change(change))
        pair |= {"panel": 1}
        lines.append(PlotLine("", [0, 100 * change], [], texts, (cell,), words=[words], apart=apart, **pair))
    below = (PlotAxis("off the usual, %", fit=True),) if any(line.panel for line in lines) else ()
    x = PlotAxis("cycles/packet")
    return PlotFigure(x, PlotAxis(), lines, follows="cells", form="rows", below=below, cells=True)
