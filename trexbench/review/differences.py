"""Reads what differs between the documents of the last run before a change and of the first run since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..config.yamltree import Value, parse
from ..core.errors import ConfigError, StoreError
from ..core.history.causes import FindingGroup, groups_of
from ..core.history.cell import Cell
from ..core.history.detect import Shape
from ..core.history.differences import Difference, compare_documents
from ..core.history.regression import Judgement
from ..core.history.rows import RunRow, cells_of
from ..core.history.series import like_the_last, night_of
from ..results.document import read_object
from .find import Warn

MOST_GROUPS = 20
"""For so many groups, the first ones, two documents each are read."""


def with_differences(judgement: Judgement, rows: Sequence[RunRow], results: Path, warn: Warn) -> Judgement:
    """The judgement with what differs at its changes. A document that cannot be read costs a warning."""
    groups = groups_of(judgement)[:MOST_GROUPS]
    cells = cells_of(rows) if groups else {}
    found: dict[tuple[Cell, str], tuple[Difference, ...]] = {}
    for group in groups:
        pair = _runs_around(group, cells)
        if pair is not None:
            try:
                before, after = (_read(results / row.path) for row in pair)
            except StoreError as error:
                warn(f"{error}; what differs since {group.since} is not told")
                continue
            found[group.first.cell, group.since] = compare_documents(before, after)
    return replace(judgement, differences=found)


def _runs_around(group: FindingGroup, cells: Mapping[Cell, Sequence[RunRow]]) -> tuple[RunRow, RunRow] | None:
    """The last run before and the first since; None for a drift, which has no such night.

    Runs like the last one; else, as another tester measures now, like the first one since.
    """
    every = [row for row in cells.get(group.first.cell, ()) if row.night] or cells.get(group.first.cell, ())
    first = sum(night_of(row) < group.since for row in every)
    for rows in (every, every[: first + 1]) if group.first.shape is not Shape.DRIFT and first < len(every) else ():
        alike = like_the_last(rows)
        before = [row for row in alike if night_of(row) < group.since]
        if before and len(before) < len(alike):
            return before[-1], alike[len(before)]
    return None


def _read(path: Path) -> dict[str, Any]:
    """The document, with the DUT's config file as values where it is YAML."""
    document = read_object(path)
    dut = document.get("dut")
    if isinstance(dut, dict) and isinstance(text := dut.get("config"), str):
        with suppress(ConfigError):  # else it is compared as a text
            document["dut"] = {**dut, "config": _plain(parse(path, text))}
    return document


def _plain(value: Value) -> Any:
    raw = value.raw
    if isinstance(raw, Mapping):
        return {key: _plain(one) for key, one in raw.items()}
    return raw if isinstance(raw, str) or raw is None else [_plain(one) for one in raw]
