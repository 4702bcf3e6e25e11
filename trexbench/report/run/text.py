"""A run as text: its summary, plain or in colours, the brief summary, and the table of its directions."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import path as paths
from typing import TextIO

from ...core.result import RunResult
from ...core.verdict.latency import Latency
from ...core.verdict.parts import DirectionResult
from ..clean import clean
from ..room import room_of, wrapped
from ..sheet import (
    Item,
    Sheet,
    figure,
    format_sheet,
    make_sheet,
    of_bits,
    of_count,
    of_interval,
    of_line_share,
    of_pps,
    of_share,
    of_time,
    raw_of,
    turned,
)
from ..words import NONE, format_count, format_limit, name_of
from .costs import cost_sheet, cost_words
from .live import Live
from .summary import (
    answer_words,
    format_frames,
    goal_items,
    held_cost_of,
    known_pps,
    limit_words,
    offered_pps,
    rate_words,
    summarise,
)

WIDTH = 100
LINES, DIRECTIONS = 10, 4
"""Most lines of a brief summary, and most directions that have one each."""
TOTALS = "Offered in the hold [pps]; On the wire (L1) [bit/s]; Of line rate [%]; Frames sent; Frames received"
LATENCY_HEADS = (
    ":Direction; Load [% of the throughput]; Offered [pps]; Mean [\u00b5s]; p50 <= [\u00b5s]^1; p99 <= [\u00b5s]; "
    "Max [\u00b5s]^1; Min [\u00b5s]^2; Jitter [\u00b5s]^2; Loss [%]; Tagged^3; Back^3"
)
LATENCIES = "Latency at shares of the throughput"
Line = Sequence[tuple[str, str]]
"""Parts of a line, each with its style."""


def open_live(result: RunResult, stream: TextIO, speedup: float = 1.0) -> Live:
    """Make a sink that shows progress, in place on a terminal, in lines elsewhere. speedup: as of Live."""
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        from .terminal import TerminalLive  # rich: only where it draws

        return TerminalLive(result, stream, speedup)
    return Live(result, stream, speedup)


def print_summary(result: RunResult, stream: TextIO) -> None:
    """Print the summary, on a terminal in colours and in its width, elsewhere as plain text."""
    if stream.isatty():
        from .terminal import print_lines  # rich: only where it draws

        print_lines(_lines(result, width_of(stream)), stream)
    else:
        stream.write(format_summary(result, room_of(stream)))


def width_of(stream: TextIO) -> int:
    """Columns of text of a stream; WIDTH where there is no limit."""
    return room_of(stream) or WIDTH


def format_summary(result: RunResult, room: int | None = None) -> str:
    """Format the summary: headline, table, limits, warnings, what was sent and how. room: as of room_of."""
    lines = ("".join(text for text, _ in line) for line in _lines(result, room))
    return "".join(f"{line}\n" for line in wrapped([*lines], room))


def _lines(result: RunResult, room: int | None) -> Iterator[Line]:
    width = room or WIDTH
    summary, directions, latencies = summarise(result), direction_sheet(result), latency_sheet(result)
    directions = replace(directions, heads=directions.heads[:-1])  # the verdicts say the limits
    name, _, answer = clean(summary.headline).partition(": ")
    blocks: list[list[Line]] = [
        [[(f"*** {clean(banner)} ***", "bold white on red")] for banner in summary.banners],
        [[(f"{name}: ", "bold"), (answer, "bold green")]],
        *(_table(sheet) for sheet in turned(directions, width)),
        [[(line, "")] for line in format_sheet(latencies, room)] if latencies.lines else [],
        _pairs(summary.verdicts, "bold", width),
        _pairs([("warning", text) for text in summary.warnings], "bold yellow", width),
        _pairs(summary.facts, "dim", width),
    ]
    for number, block in enumerate(filter(None, blocks)):
        if number:
            yield []
        yield from block


def _table(sheet: Sheet) -> list[Line]:
    lines = enumerate(format_sheet(sheet))
    return [[(line, "bold" if not number or line.startswith("Rate") else "")] for number, line in lines]


def _pairs(pairs: Sequence[tuple[str, str]], style: str, width: int) -> list[Line]:
    texts = [textwrap.fill(clean(f"{label:<10} {text}"), width, subsequent_indent=" " * 11) for label, text in pairs]
    return [[(text[:10], style), (text[10:], "")] for text in texts]


def format_brief(result: RunResult, document: str | None, width: int) -> str:
    """Format the answer, rate and limit of each direction, cost, warnings and the document's path, in LINES at most.

    width: longer lines are cut, except the answer and the path.
    """
    if held_cost_of(result) is not None:
        return format_brief_costs([result], [document] if document else [], width)
    lines = [*_banners([result]), clean(f"{name_of(result)}: {answer_words(result, brief=True)}")]
    directions = result.analysis.directions
    shown = directions if len(directions) <= DIRECTIONS else directions[: DIRECTIONS - 1]
    for one in shown:
        interval = of_interval(None if one.at_least else one)
        rate = f"{rate_words(one)} ({interval.text})" if interval.raw else rate_words(one)
        goals = [f"{goal_items(one, goal)[0].text} with loss <= {format_limit(goal.loss)}" for goal in one.goals[1:]]
        words = f"{rate}: {'; '.join([limit_words(result, one), *goals, *one.reasons])}"
        lines.append(_cut(str(one.direction), words, width))
    if len(directions) > len(shown):
        lines.append(_cut("", f"and {len(directions) - len(shown)} more directions", width))
    if result.held_cost is not None:
        lines.append(_cut("cost", cost_words(result.held_cost, cpus=False), width))
    return _with_warnings(lines, summarise(result).warnings, [f"{'result':<10} {document}"] if document else [], width)


def format_brief_costs(results: Sequence[RunResult], documents: Sequence[str], width: int) -> str:
    """Format the cost of a packet, a line per rate, warnings, and where the runs are stored."""
    costs = [cost for result in results for cost in result.costs]
    kind = None if len(results) == 1 else "efficiency"
    table = format_sheet(cost_sheet(costs), width)[: len(costs) + 1]
    lines = [*_banners(results), clean(f"{name_of(results[0], kind)}: cost of a packet"), *table]
    end = [f"{'result':<10} {one}" for one in documents]
    if len(documents) > 1:
        place = paths.commonpath([paths.dirname(one) for one in documents])
        end = [f"{'results':<10} {place}, {format_count(len(documents), 'run')}"]
    warnings = dict.fromkeys(text for result in results for text in summarise(result).warnings)
    return _with_warnings(lines, list(warnings), end, width)


def _banners(results: Sequence[RunResult]) -> list[str]:
    banners = dict.fromkeys(banner.partition(":")[0] for result in results for banner in summarise(result).banners)
    return [f"*** {', '.join(banners)} ***"] if banners else []


def _with_warnings(lines: Sequence[str], warnings: Sequence[str], end: Sequence[str], width: int) -> str:
    """Insert as many warnings as there is room for, and the number of the others."""
    room = max(1, LINES - len(lines) - len(end))
    shown = [*(warnings if len(warnings) <= room else warnings[: room - 1])]
    more = len(warnings) - len(shown)
    shown += [f"{more}{' more' if shown else ''}: results show"] if more else []
    return "\n".join([*lines, *(_cut("warning", text, width) for text in shown), *end]) + "\n"


def _cut(label: str, text: str, width: int) -> str:
    return f"{label:<10} {textwrap.shorten(clean(text), max(20, width - 11), placeholder=' ...')}"


def sheets_of_packets(run: RunResult) -> Iterator[Sheet]:
    """Yield the run's tables: of its directions, and those of latencies and costs that have a row."""
    yield direction_sheet(run)
    yield from (sheet for sheet in (latency_sheet(run), cost_sheet(run.costs)) if sheet.lines)


def latency_sheet(run: RunResult) -> Sheet:
    return make_sheet(LATENCY_HEADS, map(latency_items, run.latencies), "latency", LATENCIES)


def direction_sheet(run: RunResult) -> Sheet:
    """Table of the run's directions, with a row for each goal of a search."""
    rows = (row for direction in run.analysis.directions for row in _goal_rows(run, direction))
    heads = f":Direction; Loss allowed [%]; {rate_heads(run.analysis.directions)}; {TOTALS}; :Limit"
    return make_sheet(heads, rows, "directions", "Directions")


def _goal_rows(run: RunResult, one: DirectionResult) -> Iterator[tuple[Item | str, ...]]:
    given = held_cost_of(run) is not None
    name, *items = direction_items(one, given)
    allowed = figure(run.plan.loss_threshold if run.plan.seeks_knee else None, format_limit, 100)
    yield name, allowed, *items, *_totals(run, one, one.at_least and not given), limit_words(run, one)
    for goal in one.goals[1:]:
        allowed = figure(goal.loss, format_limit, 100)
        wire = _wire_items(run, one, goal.maximum_pps, one.is_bound(goal))
        yield name, allowed, *goal_items(one, goal), *[NONE] * 5, *wire, *[NONE] * 2, limit_words(run, one, goal)


def interval_head(directions: Iterable[DirectionResult]) -> str:
    """Return the head of a column of of_interval: MLRsearch's bounds state no probability."""
    kinds = {any(goal.sure is None for goal in one.goals) for one in directions}
    return f"{'Bounds' if kinds == {True} else '95 % interval or bounds' if True in kinds else '95 % interval'} [pps]"


def rate_heads(directions: Iterable[DirectionResult]) -> str:
    """Return the heads of direction_items, except the first."""
    interval = interval_head(directions)
    return f"Rate [pps]; {interval}; First bad [pps]; Confirmed [pps]; Max received [pps]; Loss in the hold [%]"


def direction_items(direction: DirectionResult, given: bool = False) -> Iterator[Item | str]:
    """Yield the direction, and the items of rate_heads. given: the rate was, and is no bound of a maximum."""
    yield str(direction.direction)
    bound = direction.at_least and not given
    yield of_pps(known_pps(direction), bound=bound)
    yield of_interval(None if bound else direction)
    yield of_pps(direction.first_bad_pps)
    failed = direction.trials and direction.confirmed_pps is None
    yield Item("none", "") if failed else of_pps(direction.confirmed_pps)
    yield of_pps(direction.max_received_pps)
    yield of_share(direction.hold_loss)


def _totals(run: RunResult, one: DirectionResult, bound: bool) -> Iterator[Item]:
    """Yield the items of TOTALS. bound: the rate is a lower bound."""
    yield of_pps(offered_pps(run, one) or None)
    yield from _wire_items(run, one, known_pps(one), bound)
    yield from (figure(frames, format_frames) for frames in (one.sent, one.received))


def _wire_items(run: RunResult, one: DirectionResult, pps: float | None, bound: bool) -> tuple[Item, Item]:
    """Return what the rate is on the wire (L1), and of line rate."""
    offer = run.plan.offer(one.direction)
    bps, share = (None, None) if pps is None else (offer.l1_bps(pps), offer.line_share(pps))
    return of_bits(bps, bound=bound), of_line_share(share, bound)


def latency_items(latency: Latency) -> Iterator[Item | str]:
    """Yield the items of LATENCY_HEADS."""
    yield str(latency.direction)
    yield Item(f"{100 * latency.share:g} %", raw_of(100 * latency.share))
    yield of_pps(latency.offered_pps)
    yield from map(of_time, (latency.mean_s, latency.p50_s, latency.p99_s))
    yield from map(of_time, (latency.max_s, latency.min_s, latency.jitter_s))
    loss = of_share(latency.loss)
    yield Item(f"{loss.text} (full queues)", loss.raw, "bad") if latency.lossy else loss
    yield from map(of_count, (latency.sent, latency.received))
