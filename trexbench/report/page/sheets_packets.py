"""The page's tables of packets: ramps, older nights, costs, latencies, searches and frame sizes."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.units import format_share, format_time
from ..run.sheets import HEADS, direction_items
from ..run.sizes import size_items
from ..run.summary import LIMIT_WORDS
from ..sheet import (
    Item,
    Sheet,
    SheetRow,
    figure,
    heads_of,
    of_change,
    of_count,
    of_interval,
    of_pps,
    of_share,
    of_text,
    of_time,
    raw_of,
)
from ..words import NONE, format_cycles
from .overlay import Curve
from .report import Report


def curve_sheet(report: Report) -> Sheet:
    heads = heads_of(f":Run; {HEADS}")
    lines = tuple(SheetRow((*_curve(curve), of_text(curve.limit_words)), curve.cell) for curve in report.curves)
    return Sheet("ramps", "The latest ramp of each cell", heads, lines)


def _curve(curve: Curve) -> Iterator[Item]:
    yield of_text(curve.cell)
    yield from direction_items(curve.result)


def older_sheet(report: Report) -> Sheet:
    heads = heads_of(
        ":Run; :Night; :Which; :Direction; Rate [pps]; 95 % interval [pps]; Change since [%]; "
        "First bad [pps]; Max received [pps]; Loss in the hold [share]; :Note"
    )
    latest = {(curve.cell, curve.direction): curve for curve in report.curves}
    lines = []
    for cell, some in report.older.items():
        for one in some:
            about = (of_text(cell), of_text(one.night), of_text(one.words))
            for curve in one.curves:
                of = curve.result
                note = of_text("the DUT was configured differently" if one.otherwise else "")
                figures = map(of_pps, (of.first_bad_pps, of.max_received_pps))
                way, *_, interval = list(_curve(curve))[1:4]
                since = of_change(_against(latest.get((cell, curve.direction)), curve))
                rate = of_pps(of.maximum_pps, of.at_least)
                loss = of_share(of.hold_loss)
                lines.append(SheetRow((*about, way, rate, interval, since, *figures, loss, note), cell))
            if not one.curves and (one.unlike or not (one.costs or one.latencies)):
                why = of_text(f"not drawn over the latest: {one.unlike or 'no ramp was measured'}")
                lines.append(SheetRow((*about, *[Item(NONE, "")] * 7, why), cell))
    return Sheet("older-nights", "Older nights beside the latest", heads, tuple(lines))


def _against(latest: Curve | None, older: Curve) -> float | None:
    """Share by which a direction of the latest run forwarded more or less than an older run's; None for bounds."""
    if latest is None or latest.result.at_least or older.result.at_least or not older.result.maximum_pps:
        return None
    return latest.result.maximum_pps / older.result.maximum_pps - 1


def cost_sheet(report: Report) -> Sheet:
    heads = heads_of(
        ":Run; :Phase; Forwarded [pps]; Cycles/packet; With polling; Vectors/call; Energy [\u00b5J/packet]"
    )
    lines = []
    measured = [
        (cell, name, cost)
        for cell, latest in report.costs.items()
        for name, costs in (
            (str(cell), latest),
            *((f"{cell}, {one.night}", one.costs) for one in report.older.get(cell, ())),
        )
        for cost in costs
    ]
    for cell, name, cost in measured:
        if cost.phase.value != "ramp":
            phase = f"{cost.phase.value} {cost.trial}" if cost.trial > 1 else cost.phase.value
            cycles = (figure(value, format_cycles) for value in (cost.cycles_per_packet, cost.with_polling))
            more = (figure(value) for value in (cost.vectors_per_call, cost.uj_per_packet))
            lines.append(SheetRow((of_text(name), of_text(phase), of_pps(cost.forwarded_pps), *cycles, *more), cell))
    return Sheet("cycles", "Cycles per packet", heads, tuple(lines))


def latency_sheet(report: Report) -> Sheet:
    heads = heads_of(
        ":Run; :Direction; Load [% of the throughput]; Offered [pps]; Mean [\u00b5s]; p50 [\u00b5s]; "
        "p99 [\u00b5s]; Max [\u00b5s]; Min [\u00b5s]; Jitter [\u00b5s]; Loss [share]; "
        "Tagged sent; Back"
    )
    lines = []
    for row in report.latency.rows:
        for one in filter(None, row.loads):
            times = (one.mean_s, one.p50_s, one.p99_s, one.max_s, one.min_s, one.jitter_s)
            loss = of_share(one.loss)
            items = (
                of_text(row.cell),
                of_text(row.direction),
                Item(f"{100 * one.share:g} %", raw_of(100 * one.share)),
                of_pps(one.offered_pps),
                *map(of_time, times),
                Item(f"{loss.text} (full queues)", loss.raw, "bad") if one.lossy else loss,
                *map(of_count, (one.sent, one.received)),
            )
            lines.append(SheetRow(items, row.cell))
    return Sheet("latency", "Latency at shares of the throughput", heads, tuple(lines))


def search_sheet(report: Report) -> Sheet:
    heads = heads_of(
        ":Run; :Direction; :Goal; Rate [pps]; Of line rate [%]; Interval [pps]; Confirmed [pps]; Rates looked at; "
        "Duration [s]; :Limit"
    )
    lines = []
    for one in report.searches:
        goal, first = one.goal, one.goal == one.verdict.goals[0]
        items = (
            of_text(one.cell),
            of_text(one.direction),
            of_text(one.goal_words),
            of_pps(goal.maximum_pps, one.at_least),
            figure(goal.maximum_pps / one.line_rate_pps, format_share, 100),
            of_interval(goal.low_pps, goal.high_pps),
            of_pps(one.verdict.confirmed_pps if first else None),
            of_count(one.looks or None),
            figure(one.length_s, format_time),
            of_text(LIMIT_WORDS[one.verdict.limit]),
        )
        lines.append(SheetRow(items, one.cell))
    return Sheet("searches", "Searches", heads, tuple(lines))


def size_sheet(report: Report) -> Sheet:
    heads = heads_of(
        ":Run; Frame [B]; Line rate per direction [pps]; Loss allowed [%]; Throughput [pps]; L2 [bit/s]; "
        "Of line rate [%]; :Limit"
    )
    lines = (SheetRow((of_text(dut.name), *size_items(one))) for dut in report.sized for one in dut.rows)
    return Sheet("frame-sizes", "Throughput by frame size", heads, tuple(lines))
