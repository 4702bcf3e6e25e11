"""Judges the stored nights: what got slower, since when and why; and notes acknowledged changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from glob import escape
from pathlib import Path
from typing import Any

from ..config.yamltree import Value, parse
from ..core.errors import ConfigError, StoreError
from ..core.history.causes import FindingGroup, groups_of
from ..core.history.cell import Cell, is_chosen
from ..core.history.detect import Shape
from ..core.history.differences import Difference, compare_documents
from ..core.history.finding import Kind
from ..core.history.known import Known, is_date
from ..core.history.regression import Judgement, judge_rows
from ..core.history.rows import RunRow, cells_of
from ..core.history.series import judged_of, like_the_last, night_of
from ..core.load.profile import full_mode_name
from ..report.commands import REASON
from ..results.document import read_object
from ..results.index import without_collection
from ..results.nights import add_known, load_known, load_nights, load_ratios
from .find import Warn, all_rows, require_choice

LATELY_DAYS = 60
"""Older nights of a suite that was measured since say nothing about what is missing."""
MOST_GROUPS = 20
"""Most groups of findings for which two documents each are read."""


@without_collection()
def judge(
    results: Path,
    warn: Warn,
    dut: str | None = None,
    mode: str | None = None,
    suite: str | None = None,
    since: str | None = None,
    only: Sequence[str] = (),
) -> Judgement:
    """Judge the runs below ``results``, or those of a DUT, a mode, a suite, and of cells that match ``only``.

    ConfigError if no cell matches.
    """
    mode = mode and full_mode_name(mode)
    every, known = all_rows(results, warn, dut=dut, mode=mode, suite=suite), load_known(results)
    rows = [row for row in every if is_chosen(row.cell, only)]
    require_choice(only, rows, every)
    last = max(map(night_of, every), default="")
    since_night = str(date.fromisoformat(last) - timedelta(days=LATELY_DAYS)) if suite and is_date(last) else None
    nights = [night for night in load_nights(results, warn, suite, since_night) if suite in (None, night.suite)]

    def is_named(cell: Cell) -> bool:
        return dut in (None, cell.dut) and mode in (None, str(cell.mode)) and is_chosen(cell, only)

    judged = judge_rows(rows, known, nights, since, is_named, load_ratios(results))
    return with_differences(judged, rows, results, warn)


def acknowledge(
    results: Path, patterns: Sequence[str], metrics: Sequence[str], day: str | None, note: str, today: str, warn: Warn
) -> list[Known]:
    """Note changes of these figures, in cells that match the patterns, as known, and return the notes.

    metrics: none for each single figure that has changed now. day: of the notes; None: the last night in which what has
    changed now may have begun, so that no later change is covered; today where nothing has changed. ConfigError without
    a reason, or if nothing has changed; a warning for each pattern that no cell matches yet.
    """
    if note.strip() in ("", REASON):
        remedy = f"say with --note why{f', not {REASON}' if note else ''}"
        raise ConfigError("an acknowledged change needs its reason", remedy)
    judged, cells = judge(results, warn), {row.cell for row in all_rows(results, lambda _: None)}
    findings = [finding for finding in judged.findings if finding.kind is not Kind.KNOWN]

    def known(cell: str, metric: str) -> Known:
        wish = Known(day or today, cell, metric, note)
        own = (one for one in findings if day is None and wish.is_about(one.cell, one.metric.name))
        begun = [one.between[1] if one.between is not None else judged.now for one in own]
        return replace(wish, date=max(begun, default=wish.date))

    changes: list[Known] = []
    for pattern in dict.fromkeys(patterns):
        if not any(Known("", pattern, None, "").is_about(cell, "") for cell in cells):
            warn(f"no cell in {results} matches {pattern} yet: names are as `regress` prints them")
    if metrics:
        changes = [known(pattern, name) for pattern in patterns for name in metrics]
    else:
        for pattern in patterns:
            own = [finding for finding in findings if Known("", pattern, None, "").is_about(finding.cell, "")]
            if not own:
                remedy = "name the figure of a change to come with --metric"
                raise ConfigError(f"nothing has changed in {pattern}", remedy)
            changes += [known(escape(str(finding.cell)), finding.metric.name) for finding in own]
        changes = [*dict.fromkeys(changes)]
    for change in changes:
        add_known(results, change)
    return changes


def with_differences(judgement: Judgement, rows: Sequence[RunRow], results: Path, warn: Warn) -> Judgement:
    """Add what differs between the documents around each change, warning of those that cannot be read."""
    groups = groups_of(judgement)[:MOST_GROUPS]
    cells = cells_of(rows) if groups else {}
    differences: dict[tuple[Cell, str], tuple[Difference, ...]] = {}
    for group in groups:
        if (pair := _runs_around(group, cells)) is not None:
            try:
                before, after = (_read(results / row.path) for row in pair)
            except StoreError as error:
                warn(f"{error}; what differs since {group.since} is not shown")
            else:
                differences[group.first.cell, group.since] = compare_documents(before, after)
    return replace(judgement, differences=differences)


def _runs_around(group: FindingGroup, cells: Mapping[Cell, Sequence[RunRow]]) -> tuple[RunRow, RunRow] | None:
    """Find the last run before the change and the first since; None for a drift, which has no such night.

    They are like the last run; or, if another tester measures now, like the first one since.
    """
    every = sorted(judged_of(cells.get(group.first.cell, ())), key=night_of)  # --date may be of a former night
    first = sum(night_of(row) < group.since for row in every)
    for rows in (every, every[: first + 1]) if group.first.shape is not Shape.DRIFT and first < len(every) else ():
        alike = like_the_last(rows)
        before = [row for row in alike if night_of(row) < group.since]
        if before and len(before) < len(alike):
            return before[-1], alike[len(before)]
    return None


def _read(path: Path) -> dict[str, Any]:
    """Read a document, with the DUT's config file as values if it is YAML."""
    document = read_object(path)
    dut = document.get("dut")
    if isinstance(dut, dict) and isinstance(text := dut.get("config"), str):
        with suppress(ConfigError):  # else it is compared as a text
            document["dut"] = {**dut, "config": _plain(parse(path, text))}
    return document


def _plain(value: Value) -> Any:
    raw = value.raw
    if isinstance(raw, Mapping):
        return {key: _plain(part) for key, part in raw.items()}
    return raw if isinstance(raw, str) or raw is None else [_plain(part) for part in raw]
