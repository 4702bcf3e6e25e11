"""Judges the stored nights: what got slower, since when and why; and notes acknowledged changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from glob import escape
from pathlib import Path

from ..core.errors import ConfigError
from ..core.history.cell import Cell, is_chosen
from ..core.history.known import Known, is_date
from ..core.history.levels import Kind
from ..core.history.regression import Judgement, judge_rows
from ..core.history.series import night_of
from ..core.load.modes import full_mode_name
from ..report.commands import REASON
from ..results.index import without_collection
from ..results.nights import add_known, load_known, load_nights
from ..results.testers import load_ratios
from .differences import with_differences
from .find import Warn, all_rows, require_choice

LATELY_DAYS = 60
"""Older nights of a suite that was measured since say nothing about what is missing."""


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
    """The judgement of the runs below ``results``, or of those of a DUT, a mode, a suite, and of cells of these names.

    ConfigError where no cell is of such a name.
    """
    mode = mode and full_mode_name(mode)
    every, known = all_rows(results, warn, dut=dut, mode=mode, suite=suite), load_known(results)
    rows = [row for row in every if is_chosen(row.cell, only)]
    require_choice(only, rows, every)
    last = max(map(night_of, every), default="")
    since_night = str(date.fromisoformat(last) - timedelta(days=LATELY_DAYS)) if suite and is_date(last) else None
    nights = [one for one in load_nights(results, warn, suite, since_night) if suite in (None, one.suite)]

    def is_named(cell: Cell) -> bool:
        return dut in (None, cell.dut) and mode in (None, str(cell.mode)) and is_chosen(cell, only)

    judged = judge_rows(rows, known, nights, since, is_named, load_ratios(results))
    return with_differences(judged, rows, results, warn)


def acknowledge(
    results: Path, patterns: Sequence[str], metrics: Sequence[str], day: str, note: str, warn: Warn
) -> list[Known]:
    """Note changes of these figures of cells of these names as known, and return the notes.

    metrics: none for what has changed now, each figure of each cell by itself, so that no later change is covered.
    ConfigError without a reason, or where nothing has changed; a warning for each name that no cell has yet.
    """
    if note.strip() in ("", REASON):
        raise ConfigError("an acknowledged change needs its reason", f"say with --note why, not {REASON}")
    if metrics:
        cells = {row.cell for row in all_rows(results, warn)}
        changes = [Known(day, pattern, name, note) for pattern in patterns for name in metrics]
        for one in (Known(day, pattern, None, note) for pattern in dict.fromkeys(patterns)):
            if not any(one.is_about(cell, "") for cell in cells):
                warn(f"no cell in {results} matches {one.cell} yet: names are as `regress` prints them")
    else:
        changes = _changed_now(results, patterns, day, note, warn)
    for change in changes:
        add_known(results, change)
    return changes


def _changed_now(results: Path, patterns: Sequence[str], day: str, note: str, warn: Warn) -> list[Known]:
    """A note for each figure with a finding; ConfigError for a pattern without any."""
    findings = [one for one in judge(results, warn).findings if one.kind not in (Kind.KNOWN, Kind.INSUFFICIENT)]
    changes: list[Known] = []
    for asked in (Known(day, pattern, None, note) for pattern in patterns):
        own = [one for one in findings if asked.is_about(one.cell, one.metric.name)]
        if not own:
            raise ConfigError(
                f"nothing has changed in {asked.cell}", "name the figure of a change to come with --metric"
            )
        changes += [Known(day, escape(str(one.cell)), one.metric.name, note) for one in own]
    return [*dict.fromkeys(changes)]
