"""Comparisons of two runs, or of two sets of runs, as text, tables and JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from ..core.history.compare import CellPair, Comparison, FigureDifference, SetComparison, find_differences
from ..core.result import RunResult
from ..core.units import format_step
from .clean import clean
from .room import wrapped
from .sheet import Item, Sheet, figure, format_sheet, make_sheet, raw_of, with_columns
from .words import COUNTED, NONE, format_limit, format_whole, name_of

WORDS = {Comparison.SAME: "the same within the noise", Comparison.UNKNOWN: "unknown: the DUT was not the limit"}
"""Words for verdicts whose value is not enough."""


@dataclass(frozen=True)
class ComparisonForms:
    """A comparison in every form of output."""

    names: tuple[str, str]
    """Both runs or sets."""
    sheet: Sheet
    """Table of the differences, a row per direction or cell."""
    marked: Sheet
    """The table for CSV, with columns for the names and for what makes both unlike."""
    values: dict[str, Any]
    """JSON values: figures in the unit that their key names, shares as fractions."""
    unlike: Sequence[str] = ()
    """Reasons why the runs are unlike."""
    remarks: Sequence[str] = ()
    """Lines below the table."""

    @property
    def head(self) -> list[str]:
        """Lines above the table of markdown."""
        first, second = self.names
        unlike = (f"UNLIKE: {reason}" for reason in self.unlike)
        return ["Comparison", f"first: {first}", f"second: {second}", *unlike, *self.remarks]

    def text(self, room: int | None = None) -> str:
        """The comparison as text. room: as of room_of."""
        first, second = map(clean, self.names)
        lines = [f"first   {first}", f"second  {second}", *(f"*** UNLIKE: {reason} ***" for reason in self.unlike)]
        return "\n".join([*wrapped(lines, room), "", *format_sheet(self.sheet, room), *wrapped(self.remarks, room)])


def runs_compared(first: RunResult, second: RunResult, unlike: Sequence[str]) -> ComparisonForms:
    """Compare two runs, direction by direction."""
    differences = [("all" if way is None else str(way), of) for way, of in find_differences(first, second)]
    rows = ((way, *_items(difference)) for way, difference in differences)
    sheet = make_sheet(f"::direction; {_heads([difference for _, difference in differences])}", rows, "comparison")
    names = f"{name_of(first)}, {first.started}", f"{name_of(second)}, {second.started}"
    marks = repeat([*names, "; ".join(unlike)])
    about = [{"id": run.id, "simulated": run.simulated, "emulated": run.emulated} for run in (first, second)]
    searched = [
        part.goals[0].loss for part in (*first.analysis.directions, *second.analysis.directions) if part.goals[1:]
    ]
    others = "compared are the rates with loss <= {}; `trexbench results show` has those of other losses"
    remarks = [others.format(format_limit(loss)) for loss in dict.fromkeys(searched)]
    held = [run.held_cost for run in (first, second) if run.held_pps is not None]
    remarks += [COUNTED] * (len({cost.source for cost in held if cost is not None}) > 1)
    directions = [{"direction": way} | _figures(difference) for way, difference in differences]
    return ComparisonForms(
        names,
        sheet,
        with_columns(sheet, "::first run; ::second run; ::unlike", marks),
        {"first": about[0], "second": about[1], "unlike": list(unlike), "directions": directions},
        unlike,
        remarks,
    )


def sets_compared(first: str, second: str, compared: SetComparison) -> ComparisonForms:
    """Compare two sets, given by name, cell by cell; marks in the table point to lines below: why cells are unlike."""
    heads = f"::cell; runs^2; {_heads(compared.pairs)}"
    marks = [f"[{number}]" if pair.unlike else "" for number, pair in enumerate(compared.pairs, start=1)]
    alone = [(cell, "first") for cell in compared.only_first] + [(cell, "second") for cell in compared.only_second]
    empty = [""] * (heads.count(";") - 1)
    rows = ((str(cell), *empty, f"only in the {which}") for cell, which in alone)
    marked = make_sheet(heads, [*(_set_row(pair, "") for pair in compared.pairs), *rows])
    columns = [(first, second, "; ".join(pair.unlike)) for pair in compared.pairs]
    columns += repeat((first, second, ""), len(alone))
    values = {
        "first": first,
        "second": second,
        "cells": [_set_values(pair) for pair in compared.pairs],
        "only_first": [cell.to_dict() for cell in compared.only_first],
        "only_second": [cell.to_dict() for cell in compared.only_second],
        "left_out": [row.path for row in compared.left_out],
    }
    remarks = [
        f"*** {mark} UNLIKE: {clean(reason)} ***"
        for pair, mark in zip(compared.pairs, marks, strict=True)
        for reason in pair.unlike
    ]
    held = [pair for pair in compared.pairs if not pair.metric.bounded]
    remarks += [COUNTED] * any(bool(pair.first[0].nodes) != bool(pair.second[0].nodes) for pair in held)
    remarks += [f"only in the {which}: {clean(cell)}" for cell, which in alone]
    left_out = (f"{'no figure' if row.complete else row.status}: {row.path}" for row in compared.left_out)
    remarks += [f"left out, {clean(words)}" for words in dict.fromkeys(left_out)]
    return ComparisonForms(
        (first, second),
        make_sheet(heads, map(_set_row, compared.pairs, marks), "comparison"),
        with_columns(marked, "::first set; ::second set; ::unlike", columns),
        values,
        remarks=remarks,
    )


def _heads(differences: Sequence[FigureDifference]) -> str:
    unit = " or ".join(dict.fromkeys(difference.metric.unit for difference in differences))
    return f"first [{unit}]; second [{unit}]; difference [%]; noise [{unit}]^1; ::second is"


def _figures(difference: FigureDifference) -> dict[str, Any]:
    unit, is_known = difference.metric.short, difference.bound is not None
    return {
        f"first_{unit}": difference.figures[0].value,
        "first_at_least": difference.figures[0].at_least,
        f"second_{unit}": difference.figures[1].value,
        "second_at_least": difference.figures[1].at_least,
        f"difference_{unit}": difference.difference if is_known else None,
        "difference": difference.share if is_known else None,
        f"noise_{unit}": difference.noise,
        "verdict": difference.verdict.value,
    }


def _set_values(pair: CellPair) -> dict[str, Any]:
    return {
        "cell": pair.cell.to_dict(),
        "second_cell": pair.second[0].cell.to_dict(),
        "first_runs": [row.path for row in pair.first],
        "second_runs": [row.path for row in pair.second],
        **_figures(pair),
        "unlike": list(pair.unlike),
    }


def _set_row(pair: CellPair, mark: str) -> Iterator[Item | str]:
    other = pair.second[0].cell
    queues = f" {other.rx_queues}q" if other.rx_queues is not None and other.rx_queues != pair.cell.rx_queues else ""
    apart = [f"{other.dut}{queues}"] if other.dut != pair.cell.dut else []
    apart += [f"over {other.over or 'none'}"] if other.over != pair.cell.over else []
    yield " | ".join([str(pair.cell), *apart])
    yield f"{len(pair.first)}:{len(pair.second)}"
    *figures, verdict = _items(pair)
    yield from (*figures, f"{verdict} {mark}".rstrip())


def _items(difference: FigureDifference) -> Iterator[Item | str]:
    def words(value: float) -> str:
        return format_whole(difference.metric.scale * value, difference.metric)

    for one in difference.figures:
        yield figure(one.value, words, difference.metric.scale, one.at_least)
    bound, share = difference.bound, difference.share if difference.bound is not None else None
    yield Item(NONE, "") if share is None else Item(format_step(share, bound or ""), f"{bound}{raw_of(100 * share)}")
    yield figure(difference.noise or None, lambda noise: f"+- {words(noise)}", difference.metric.scale)
    yield WORDS.get(difference.verdict, difference.verdict.value)
