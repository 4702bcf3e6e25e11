"""Two runs compared, as text and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..core.compare import Pair, Verdict, find_pairs
from ..core.compare_sets import CellPair, SetComparison
from ..core.history import Cell
from ..core.result import RunResult
from ..core.units import format_pps, format_share
from ..core.verdict import DirectionResult
from .clean import clean
from .columns import lay_out
from .summary import name_of

WORDS = {
    Verdict.SAME: "the same, as far as can be told",
    Verdict.FASTER: "faster",
    Verdict.SLOWER: "slower",
    Verdict.UNKNOWN: "unknown: the DUT was not the limit",
}
HEAD = ("direction", "first", "second", "difference", "noise", "second is")


def format_comparison(first: RunResult, second: RunResult, unlike: Sequence[str]) -> str:
    """Who is compared, what makes them unlike, and a line per direction."""
    lines = [f"first   {name_of(first)}, {first.started}", f"second  {name_of(second)}, {second.started}"]
    lines += [f"*** UNLIKE: {reason} ***" for reason in unlike]
    rows = [HEAD, *(_row(pair) for pair in find_pairs(first, second))]
    return "\n".join([*lines, "", *lay_out(rows, "lrrrrl")])


def comparison_values(first: RunResult, second: RunResult, unlike: Sequence[str]) -> dict[str, Any]:
    """The same for machines; rates in frames per second, shares as fractions."""
    return {
        "first": {"id": first.id, "simulated": first.simulated},
        "second": {"id": second.id, "simulated": second.simulated},
        "unlike": list(unlike),
        "directions": [
            {
                "direction": str(pair.direction),
                "first_pps": pair.first.maximum_pps,
                "first_at_least": pair.first.at_least,
                "second_pps": pair.second.maximum_pps,
                "second_at_least": pair.second.at_least,
                "difference_pps": pair.difference_pps,
                "difference": pair.share,
                "noise_pps": pair.noise_pps,
                "verdict": pair.verdict.value,
            }
            for pair in find_pairs(first, second)
        ],
    }


SET_HEAD = ("cell", "runs", "first", "second", "difference", "noise", "second is")


def format_set_comparison(first: str, second: str, compared: SetComparison) -> str:
    """What was asked for, a line per cell of both sets, then what makes cells unlike, and what has no partner."""
    lines = [f"first   {clean(first)}", f"second  {clean(second)}", ""]
    marks = [f"[{number}]" if pair.unlike else "" for number, pair in enumerate(compared.pairs, start=1)]
    rows = [_set_row(pair, mark) for pair, mark in zip(compared.pairs, marks, strict=True)]
    lines += lay_out([SET_HEAD, *rows], "lrrrrrl")
    for pair, mark in zip(compared.pairs, marks, strict=True):
        lines += [f"*** {mark} UNLIKE: {clean(reason)} ***" for reason in pair.unlike]
    for which, cells in (("first", compared.only_first), ("second", compared.only_second)):
        lines += [f"only in the {which}: {clean(cell)}" for cell in cells]
    lines += [f"left out, {clean(row.status)}: {clean(row.path)}" for row in compared.left_out]
    return "\n".join(lines)


def set_comparison_values(first: str, second: str, compared: SetComparison) -> dict[str, Any]:
    """The same for machines; rates in frames per second, shares as fractions."""
    return {
        "first": first,
        "second": second,
        "cells": [_set_values(pair) for pair in compared.pairs],
        "only_first": [_cell_values(cell) for cell in compared.only_first],
        "only_second": [_cell_values(cell) for cell in compared.only_second],
        "left_out": [row.path for row in compared.left_out],
    }


def _set_values(pair: CellPair) -> dict[str, Any]:
    return {
        "cell": _cell_values(pair.cell),
        "second_cell": _cell_values(pair.second[0].cell),
        "first_runs": [row.path for row in pair.first],
        "second_runs": [row.path for row in pair.second],
        "first_pps": pair.first_pps,
        "first_at_least": pair.first_at_least,
        "second_pps": pair.second_pps,
        "second_at_least": pair.second_at_least,
        "difference_pps": pair.difference_pps,
        "difference": pair.share,
        "noise_pps": pair.noise_pps,
        "verdict": pair.verdict.value,
        "unlike": list(pair.unlike),
    }


def _cell_values(cell: Cell) -> dict[str, Any]:
    return asdict(cell)


def _set_row(pair: CellPair, mark: str) -> tuple[str, ...]:
    other = pair.second[0].cell
    queues = f" {other.rx_queues}q" if other.rx_queues is not None and other.rx_queues != pair.cell.rx_queues else ""
    name = clean(pair.cell) + (f" | {clean(other.dut)}{queues}" if other.dut != pair.cell.dut else "")
    noise = f"+- {format_pps(pair.noise_pps)}" if pair.noise_pps else "-"
    runs = f"{len(pair.first)}:{len(pair.second)}"
    rates = _bounded(pair.first_pps, pair.first_at_least), _bounded(pair.second_pps, pair.second_at_least)
    return name, runs, *rates, _signed(pair.share), noise, f"{WORDS[pair.verdict]} {mark}".rstrip()


def _row(pair: Pair) -> tuple[str, ...]:
    noise = f"+- {format_pps(pair.noise_pps)}" if pair.noise_pps else "-"
    return str(pair.direction), _rate(pair.first), _rate(pair.second), _signed(pair.share), noise, WORDS[pair.verdict]


def _signed(share: float | None) -> str:
    return "-" if share is None else f"{'+' if share >= 0 else '-'}{format_share(abs(share))}"


def _rate(one: DirectionResult) -> str:
    return _bounded(one.maximum_pps, one.at_least)


def _bounded(pps: float, at_least: bool) -> str:
    return f"{'>= ' if at_least else ''}{format_pps(pps)}"
