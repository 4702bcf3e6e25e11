"""Tables of packets: ramps, older nights, costs, latencies, searches and frame sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...core.history.cell import Cell
from ...core.load.sample import Phase
from ...core.result import RunResult
from ...core.units import format_time
from ...core.verdict.parts import DirectionResult, Goal
from ..run.costs import COSTS, cost_items
from ..run.sizes import size_sheet, throughputs
from ..run.summary import LIMIT_WORDS, goal_items, limit_words
from ..run.text import LATENCIES, LATENCY_HEADS, direction_items, interval_head, latency_items, rate_heads
from ..sheet import (
    Item,
    Sheet,
    figure,
    make_sheet,
    of_change,
    of_count,
    of_line_share,
    of_pps,
    row_of,
    with_columns,
)
from ..words import NONE, format_limit
from .report import Report

FEWEST_SIZES = 3
"""Fewest frame sizes of a DUT that make a plot over the frame size."""
_SIZE = re.compile(r"(.+)-\d+b")
SizedDut = tuple[Cell, tuple[Cell, ...], tuple[RunResult, ...]]
"""A cell without its frame size, one with it, and its runs, smaller frames first."""


def curve_sheet(report: Report) -> Sheet:
    rows = (
        row_of((report.named(curve.cell), *direction_items(curve.result), LIMIT_WORDS[curve.result.limit]), curve.cell)
        for curve in report.curves
    )
    heads = f":Run; :Direction; {rate_heads(curve.result for curve in report.curves)}; :Limit"
    return make_sheet(heads, rows, "ramps", "The latest ramp of each cell")


def older_sheet(report: Report) -> Sheet:
    head = interval_head(curve.result for some in report.older.values() for one in some for curve in one.curves)
    heads = (
        f":Run; :Night; :Which; :Direction; Rate [pps]; {head}; Change since [%]; "
        "First bad [pps]; Max received [pps]; Loss in the hold [%]; :Note"
    )
    latest = {(curve.cell, curve.direction): curve for curve in report.curves}
    rows = []
    for cell, some in report.older.items():
        for one in some:
            about = report.named(cell, night=""), one.night, one.words
            note = "the DUT was configured differently" if one.otherwise else ""
            for curve in one.curves:
                direction, rate, interval, first_bad, _, received, loss = direction_items(curve.result)
                now, change = latest.get((cell, curve.direction)), Item(NONE, "")
                if now is not None and curve.result.maximum_pps and not (now.result.at_least or curve.result.at_least):
                    change = of_change(now.result.maximum_pps / curve.result.maximum_pps - 1)
                rows.append(row_of((*about, direction, rate, interval, change, first_bad, received, loss, note), cell))
            if not one.curves and (one.unlike or not (one.costs or one.latencies)):
                why = f"not drawn over the latest: {one.unlike or 'no ramp was measured'}"
                rows.append(row_of((*about, *[NONE] * 7, why), cell))
    return make_sheet(heads, rows, "older-nights", "Older nights beside the latest")


def cost_sheet(report: Report) -> Sheet:
    rows = []
    for cell, latest in report.costs.items():
        older = ((report.named(cell, night=one.night), one.costs) for one in report.older.get(cell, ()))
        for name, cost in ((name, cost) for name, costs in ((report.named(cell), latest), *older) for cost in costs):
            if cost.phase is Phase.RAMP:
                continue
            phase = f"{cost.phase.value} {cost.trial}" if cost.trial > 1 else cost.phase.value
            rows.append(row_of((name, phase, *cost_items(cost)), cell))
    return make_sheet(f":Run; :Phase; {COSTS}", rows, "cycles", "Cycles per packet")


def latency_sheet(report: Report) -> Sheet:
    """Table with a row for each load of every direction."""
    loads = ((row.cell, one) for row in report.latencies for one in row.loads)
    rows = (row_of((report.named(cell), *latency_items(one)), cell) for cell, one in loads)
    return make_sheet(f":Run; {LATENCY_HEADS}", rows, "latency", LATENCIES)


def search_sheet(report: Report) -> Sheet:
    """Table with a row for each direction and goal of every search."""
    heads = (
        ":Run; :Direction; :Goal; Rate [pps]; Of line rate [%]; Interval [pps]; Confirmed [pps]; Rates looked at; "
        "Duration [s]; :Limit"
    )
    directions = ((cell, run, one) for cell, run in report.runs.items() for one in run.directions)
    goals = ((cell, _goal(run, one, of)) for cell, run, one in directions for of in one.goals)
    rows = (row_of((report.named(cell), *items), cell) for cell, items in goals)
    return make_sheet(heads, rows, "searches", "Searches")


def _goal(run: RunResult, one: DirectionResult, goal: Goal) -> Iterator[Item | str]:
    looks = {sample.trial for sample in run.samples if sample.phase is Phase.SEARCH}
    yield str(one.direction)
    yield f"{'PDR' if goal.loss else 'NDR'}, {format_limit(goal.loss)}"
    rate, interval = goal_items(one, goal)
    yield rate
    share = goal.maximum_pps / run.plan.offer(one.direction).line_rate_pps
    yield of_line_share(share, one.is_bound(goal))
    yield interval
    yield of_pps(one.confirmed_pps if goal == one.goals[0] else None)
    yield of_count(len(looks) or None)
    yield figure(run.samples[-1].t_s - run.samples[0].t_s if run.samples else 0.0, format_time)
    yield limit_words(run, one, goal)


def sizes_sheet(report: Report, duts: Sequence[SizedDut]) -> Sheet:
    names = ((report.named(of, night=""),) for of, _, results in duts for _ in throughputs(results))
    return with_columns(size_sheet([run for _, _, results in duts for run in results]), ":Run", names)


def find_sized(runs: Mapping[Cell, RunResult]) -> list[SizedDut]:
    """Find the runs that differ only in their frame size, for every DUT with at least FEWEST_SIZES of them."""
    groups: dict[tuple[object, ...], dict[Cell, RunResult]] = {}
    for cell, run in runs.items():
        if mode := _SIZE.fullmatch(str(cell.mode)):
            key = (cell.dut_words, mode[1], cell.bidir, cell.rx_queues, cell.kind, cell.mark)
            groups.setdefault(key, {})[cell] = run
    duts: list[SizedDut] = []
    for (_, sizeless, *_), some in groups.items():
        results = tuple(sorted(some.values(), key=_frame_bytes))
        if len({*map(_frame_bytes, results)}) >= FEWEST_SIZES:
            cell = next(iter(some))
            duts.append((replace(cell, mode=str(sizeless)), (cell,), results))
    return duts


def _frame_bytes(run: RunResult) -> float:
    return run.plan.offers[0].mean_frame_bytes
