"""A run in ten lines at most: what was measured, rate and limit of each direction, cost, warnings, the document."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from os import path as paths

from ...core.load.sample import Phase
from ...core.result import RunResult
from ...core.units import format_pps
from ...core.verdict.model import DirectionResult
from ..clean import clean
from ..fit import format_sheet
from ..words import format_count, format_limit, interval_words, name_of
from .costs import cost_sheet, cost_words
from .summary import answer_words, held_cost_of, limit_words, rate_words, summarise

LINES = 10
DIRECTIONS = 4


def format_brief(result: RunResult, document: str | None, width: int) -> str:
    """document: the path of the run's; width: longer lines are cut, but for the answer and the path."""
    if held_cost_of(result) is not None:
        return format_brief_costs([result], [document] if document else [], width)
    lines = [*_banners([result]), clean(f"{name_of(result)}: {answer_words(result, brief=True)}")]
    found = result.analysis.directions
    shown = found if len(found) <= DIRECTIONS else found[: DIRECTIONS - 1]
    lines += [_cut(str(one.direction), _direction_words(result, one), width) for one in shown]
    if len(found) > len(shown):
        lines.append(_cut("", f"and {len(found) - len(shown)} more directions", width))
    held = [cost for cost in result.costs if cost.phase is not Phase.RAMP]
    lines += [_cut("cost", cost_words(cost, cpus=False), width) for cost in held[-1:]]
    end = [f"{'result':<10} {document}"] if document else []
    return _joined(lines, summarise(result).warnings, end, width)


def format_brief_costs(results: Sequence[RunResult], documents: Sequence[str], width: int) -> str:
    """Format the cost of a packet, a line per rate; below it the warnings and where the runs are."""
    costs = [cost for result in results for cost in result.costs]
    kind = None if len(results) == 1 else "efficiency"
    table = format_sheet(cost_sheet(costs), width)[: len(costs) + 1]
    lines = [*_banners(results), clean(f"{name_of(results[0], kind)}: cost of a packet"), *table]
    end = [f"{'result':<10} {one}" for one in documents]
    if len(documents) > 1:
        place = paths.commonpath([paths.dirname(one) for one in documents])
        end = [f"{'results':<10} {place}, {format_count(len(documents), 'run')}"]
    warnings = dict.fromkeys(text for result in results for text in summarise(result).warnings)
    return _joined(lines, list(warnings), end, width)


def _banners(results: Sequence[RunResult]) -> list[str]:
    banners = dict.fromkeys(banner.partition(":")[0] for result in results for banner in summarise(result).banners)
    return [f"*** {', '.join(banners)} ***"] if banners else []


def _direction_words(result: RunResult, one: DirectionResult) -> str:
    known = one.low_pps is not None and one.high_pps is not None
    rate = f"{rate_words(one)} ({interval_words(one)})" if known else rate_words(one)
    goals = [f"{format_pps(goal.maximum_pps)} with loss <= {format_limit(goal.loss)}" for goal in one.goals[1:]]
    return f"{rate}: {'; '.join([limit_words(result, one), *goals, *one.reasons])}"


def _joined(lines: Sequence[str], warnings: Sequence[str], end: Sequence[str], width: int) -> str:
    """With as many of the warnings as there is room for, and the number of the others."""
    room = max(1, LINES - len(lines) - len(end))
    told = warnings if len(warnings) <= room else warnings[: room - 1]
    return "\n".join([*lines, *_warning_lines(told, len(warnings) - len(told), width), *end]) + "\n"


def _warning_lines(told: Sequence[str], more: int, width: int) -> Iterator[str]:
    yield from (_cut("warning", text, width) for text in told)
    if more:
        yield _cut("warning", f"{more}{' more' if told else ''}: results show", width)


def _cut(label: str, text: str, width: int) -> str:
    return f"{label:<10} {textwrap.shorten(clean(text), max(20, width - 11), placeholder=' ...')}"
