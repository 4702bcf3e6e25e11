"""Comparisons of two runs, or of two sets of runs, as text and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

from ..core.history.compare import CellPair, Comparison, FigureDifference, SetComparison, find_differences
from ..core.load.plan import Direction
from ..core.result import RunResult
from ..core.units import format_share
from .clean import clean
from .fit import format_sheet
from .room import wrapped
from .sheet import Item, Sheet, SheetRow, figure, make_sheet, of_text, raw_of, with_columns
from .words import NONE, format_whole, name_of

WORDS = {
    Comparison.SAME: "the same, as far as can be told",
    Comparison.FASTER: "faster",
    Comparison.SLOWER: "slower",
    Comparison.CHEAPER: "cheaper",
    Comparison.DEARER: "dearer",
    Comparison.UNKNOWN: "unknown: the DUT was not the limit",
}


def comparison_sheet(first: RunResult, second: RunResult) -> Sheet:
    """Table of the differences, a row per direction."""
    found = [*find_differences(first, second)]
    rows = ((_direction(direction), *_items(one)) for direction, one in found)
    return make_sheet(f"::direction; {_heads([one for _, one in found])}", rows, "comparison")


def _heads(figures: Sequence[FigureDifference]) -> str:
    unit = " or ".join(dict.fromkeys(one.metric.unit for one in figures))
    return f"first [{unit}]; second [{unit}]; difference [share]; noise [{unit}]^1; ::second is"


def format_comparison(first: RunResult, second: RunResult, unlike: Sequence[str], room: int | None = None) -> str:
    """Which runs are compared, what makes them unlike, and a line per direction. room: columns, as of fit."""
    lines = [f"first   {name_of(first)}, {first.started}", f"second  {name_of(second)}, {second.started}"]
    lines += [f"*** UNLIKE: {reason} ***" for reason in unlike]
    return "\n".join([*wrapped(lines, room), "", *format_sheet(comparison_sheet(first, second), room)])


def comparison_head(first: RunResult, second: RunResult, unlike: Sequence[str]) -> list[str]:
    """Both runs, and what makes them unlike."""
    names = [f"{which}: {name_of(one)}, {one.started}" for which, one in (("first", first), ("second", second))]
    return ["Comparison", *names, *(f"UNLIKE: {reason}" for reason in unlike)]


def marked_comparison(first: RunResult, second: RunResult, unlike: Sequence[str]) -> Sheet:
    """The table with both runs and what makes them unlike in its columns."""
    names = [f"{name_of(one)}, {one.started}" for one in (first, second)]
    return with_columns(
        comparison_sheet(first, second), "::first run; ::second run; ::unlike", repeat([*names, "; ".join(unlike)])
    )


def comparison_values(first: RunResult, second: RunResult, unlike: Sequence[str]) -> dict[str, Any]:
    """Return the comparison as JSON values: figures in the unit that their key names, shares as fractions."""
    return {
        "first": {"id": first.id, "simulated": first.simulated, "emulated": first.emulated},
        "second": {"id": second.id, "simulated": second.simulated, "emulated": second.emulated},
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


def set_sheet(compared: SetComparison) -> Sheet:
    """Table of the differences, a row per cell of both sets; unlike pairs have a mark."""
    rows = (_set_row(pair, mark) for pair, mark in zip(compared.pairs, _marks(compared), strict=True))
    return make_sheet(f"::cell; runs^2; {_heads(compared.pairs)}", rows, "comparison")


def _marks(compared: SetComparison) -> list[str]:
    return [f"[{number}]" if pair.unlike else "" for number, pair in enumerate(compared.pairs, start=1)]


def format_set_comparison(first: str, second: str, compared: SetComparison, room: int | None = None) -> str:
    """The sets' names, a line per cell of both, then what makes cells unlike, and cells that only one set has.

    room: columns, as of fit.
    """
    lines = [f"first   {clean(first)}", f"second  {clean(second)}"]
    table = format_sheet(set_sheet(compared), room)
    return "\n".join([*wrapped(lines, room), "", *table, *wrapped(_remarks(compared), room)])


def set_head(first: str, second: str, compared: SetComparison) -> list[str]:
    """The sets' names, what makes cells unlike, and cells that only one set has."""
    return ["Comparison", f"first: {first}", f"second: {second}", *_remarks(compared)]


def marked_sets(first: str, second: str, compared: SetComparison) -> Sheet:
    """The table with the sets' names and what makes cells unlike in its columns, and cells that only one set has."""
    sheet = make_sheet(f"::cell; runs^2; {_heads(compared.pairs)}", (_set_row(one, "") for one in compared.pairs))
    unlike = [(first, second, "; ".join(pair.unlike)) for pair in compared.pairs]
    for which, cells in (("first", compared.only_first), ("second", compared.only_second)):
        empty = [""] * (len(sheet.heads) - 2)
        rows = tuple(SheetRow(tuple(map(of_text, (str(cell), *empty, f"only in the {which}")))) for cell in cells)
        sheet = replace(sheet, lines=(*sheet.lines, *rows))
    return with_columns(
        sheet, "::first set; ::second set; ::unlike", [*unlike, *repeat((first, second, ""), len(sheet.lines))]
    )


def _remarks(compared: SetComparison) -> list[str]:
    """Lines that say what makes cells unlike, by their marks, and which cells only one set has."""
    remarks: list[str] = []
    for pair, mark in zip(compared.pairs, _marks(compared), strict=True):
        remarks += [f"*** {mark} UNLIKE: {clean(reason)} ***" for reason in pair.unlike]
    for which, cells in (("first", compared.only_first), ("second", compared.only_second)):
        remarks += [f"only in the {which}: {clean(cell)}" for cell in cells]
    remarks += [
        f"left out, {clean(row.status if not row.complete else 'no figure')}: {clean(row.path)}"
        for row in compared.left_out
    ]
    return remarks


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


def _set_values(pair: CellPair) -> dict[str, Any]:
    about = {
        "cell": pair.cell.to_dict(),
        "second_cell": pair.second[0].cell.to_dict(),
        "first_runs": [row.path for row in pair.first],
        "second_runs": [row.path for row in pair.second],
    }
    return about | _figures(pair) | {"unlike": list(pair.unlike)}


def _set_row(pair: CellPair, mark: str) -> Iterator[Item | str]:
    other = pair.second[0].cell
    queues = f" {other.rx_queues}q" if other.rx_queues is not None and other.rx_queues != pair.cell.rx_queues else ""
    apart = [f"{other.dut}{queues}"] if other.dut != pair.cell.dut else []
    apart += [f"over {other.over or 'none'}"] if other.over != pair.cell.over else []
    yield " | ".join([str(pair.cell), *apart])
    yield f"{len(pair.first)}:{len(pair.second)}"
    *figures, verdict = _items(pair)
    yield from (*figures, f"{verdict} {mark}".rstrip())


def _items(of: FigureDifference) -> Iterator[Item | str]:
    """Both figures, the difference, the noise and the verdict."""
    metric = of.metric
    for one in of.figures:
        words = format_whole(metric.scale * one.value, metric, one.at_least)
        yield Item(words, raw_of(metric.scale * one.value, one.at_least))
    yield figure(of.share, lambda share: f"{'+' if share >= 0 else '-'}{format_share(abs(share))}")
    noise = metric.scale * of.noise
    yield Item(f"+- {format_whole(noise, metric)}", raw_of(noise)) if of.noise else Item(NONE, "")
    yield WORDS[of.verdict]
