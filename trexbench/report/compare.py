"""Comparisons of two runs, or of two sets of runs, as text and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from ..core.history.compare import CellPair, Comparison, FigureDifference, SetComparison, find_differences
from ..core.load.plan import Direction
from ..core.result import RunResult
from ..core.units import format_share
from .clean import clean
from .fit import TableColumn, format_fitting, wrapped
from .words import format_whole, name_of

WORDS = {
    Comparison.SAME: "the same, as far as can be told",
    Comparison.FASTER: "faster",
    Comparison.SLOWER: "slower",
    Comparison.CHEAPER: "cheaper",
    Comparison.DEARER: "dearer",
    Comparison.UNKNOWN: "unknown: the DUT was not the limit",
}
HEAD = ("direction", "first", "second", "difference", "noise", "second is")


def format_comparison(first: RunResult, second: RunResult, unlike: Sequence[str], room: int | None = None) -> str:
    """Which runs are compared, what makes them unlike, and a line per direction. room: columns, as of fit."""
    lines = [f"first   {name_of(first)}, {first.started}", f"second  {name_of(second)}, {second.started}"]
    lines += [f"*** UNLIKE: {reason} ***" for reason in unlike]
    rows = [(_direction(direction), *_figure_words(one)) for direction, one in find_differences(first, second)]
    return "\n".join([*wrapped(lines, room), "", *format_fitting(_columns(HEAD), rows, room)])


def comparison_values(first: RunResult, second: RunResult, unlike: Sequence[str]) -> dict[str, Any]:
    """Return the comparison as JSON values: figures in the unit that their key names, shares as fractions."""
    return {
        "first": {"id": first.id, "simulated": first.simulated},
        "second": {"id": second.id, "simulated": second.simulated},
        "unlike": list(unlike),
        "directions": [
            {"direction": _direction(direction)} | _figures(one) for direction, one in find_differences(first, second)
        ],
    }


def _direction(one: Direction | None) -> str:
    return "all" if one is None else str(one)


def _figures(of: FigureDifference) -> dict[str, Any]:
    unit = of.metric.short
    return {
        f"first_{unit}": of.figures[0].value,
        "first_at_least": of.figures[0].at_least,
        f"second_{unit}": of.figures[1].value,
        "second_at_least": of.figures[1].at_least,
        f"difference_{unit}": of.difference,
        "difference": of.share,
        f"noise_{unit}": of.noise,
        "verdict": of.verdict.value,
    }


SET_HEAD = ("cell", "runs", "first", "second", "difference", "noise", "second is")


def format_set_comparison(first: str, second: str, compared: SetComparison, room: int | None = None) -> str:
    """The sets' names, a line per cell of both, then what makes cells unlike, and cells that only one set has.

    room: columns, as of fit.
    """
    lines = [f"first   {clean(first)}", f"second  {clean(second)}"]
    marks = [f"[{number}]" if pair.unlike else "" for number, pair in enumerate(compared.pairs, start=1)]
    rows = [_set_row(pair, mark) for pair, mark in zip(compared.pairs, marks, strict=True)]
    table = format_fitting(_columns(SET_HEAD), rows, room)
    lines, remarks = [*wrapped(lines, room), "", *table], list[str]()
    for pair, mark in zip(compared.pairs, marks, strict=True):
        remarks += [f"*** {mark} UNLIKE: {clean(reason)} ***" for reason in pair.unlike]
    for which, cells in (("first", compared.only_first), ("second", compared.only_second)):
        remarks += [f"only in the {which}: {clean(cell)}" for cell in cells]
    remarks += [
        f"left out, {clean(row.status if not row.complete else 'no figure')}: {clean(row.path)}"
        for row in compared.left_out
    ]
    return "\n".join([*lines, *wrapped(remarks, room)])


def set_comparison_values(first: str, second: str, compared: SetComparison) -> dict[str, Any]:
    """Return the comparison as JSON values: figures in the unit that their key names, shares as fractions."""
    return {
        "first": first,
        "second": second,
        "cells": [_set_values(pair) for pair in compared.pairs],
        "only_first": [cell.to_dict() for cell in compared.only_first],
        "only_second": [cell.to_dict() for cell in compared.only_second],
        "left_out": [row.path for row in compared.left_out],
    }


def _columns(heads: Sequence[str]) -> list[TableColumn[tuple[str, ...]]]:
    """The first and the last are text; the numbers of runs, then the noise can be left out."""
    ranks = {"runs": 2, "noise": 1}
    ends = (0, len(heads) - 1)
    return [
        TableColumn(head, "l" if at in ends else "r", itemgetter(at), ranks.get(head, 0), at in ends)
        for at, head in enumerate(heads)
    ]


def _set_values(pair: CellPair) -> dict[str, Any]:
    about = {
        "cell": pair.cell.to_dict(),
        "second_cell": pair.second[0].cell.to_dict(),
        "first_runs": [row.path for row in pair.first],
        "second_runs": [row.path for row in pair.second],
    }
    return about | _figures(pair) | {"unlike": list(pair.unlike)}


def _set_row(pair: CellPair, mark: str) -> tuple[str, ...]:
    other = pair.second[0].cell
    queues = f" {other.rx_queues}q" if other.rx_queues is not None and other.rx_queues != pair.cell.rx_queues else ""
    apart = [f"{other.dut}{queues}"] if other.dut != pair.cell.dut else []
    apart += [f"over {other.over or 'none'}"] if other.over != pair.cell.over else []
    name = clean(" | ".join([str(pair.cell), *apart]))
    runs = f"{len(pair.first)}:{len(pair.second)}"
    *figures, verdict = _figure_words(pair)
    return name, runs, *figures, f"{verdict} {mark}".rstrip()


def _figure_words(of: FigureDifference) -> tuple[str, ...]:
    """Both figures, the difference, the noise and the verdict."""
    metric, share = of.metric, of.share
    figures = (format_whole(metric.scale * one.value, metric, one.at_least) for one in of.figures)
    noise = f"+- {format_whole(metric.scale * of.noise, metric)}" if of.noise else "-"
    difference = "-" if share is None else f"{'+' if share >= 0 else '-'}{format_share(abs(share))}"
    return *figures, difference, noise, WORDS[of.verdict]
