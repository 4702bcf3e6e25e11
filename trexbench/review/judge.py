"""Judges the stored nights: what got slower, since when and why; and notes acknowledged changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core.errors import ConfigError
from ..core.history.cell import Cell, is_chosen
from ..core.history.known import Known
from ..core.history.regression import Judgement, judge_rows
from ..core.load.modes import full_mode_name
from ..report.commands import REASON
from ..results.nights import add_known, load_known, load_nights
from .differences import with_differences
from .find import Warn, all_rows, require_choice


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
    nights = [night for night in load_nights(results, warn) if suite in (None, night.suite)]

    def is_named(cell: Cell) -> bool:
        return dut in (None, cell.dut) and mode in (None, str(cell.mode)) and is_chosen(cell, only)

    return with_differences(judge_rows(rows, known, nights, since, is_named), rows, results, warn)


def acknowledge(results: Path, changes: Sequence[Known], warn: Warn) -> None:
    """Note the changes as known; ConfigError without a reason, a warning for each of which no cell matches yet."""
    if any(change.note.strip() in ("", REASON) for change in changes):
        raise ConfigError("an acknowledged change needs its reason", f"say with --note why, not {REASON}")
    cells = {row.cell for row in all_rows(results, warn)}
    for change in changes:
        add_known(results, change)
    unlike = (one for one in changes if not any(one.is_about(cell, one.metric or "") for cell in cells))
    for pattern in dict.fromkeys(one.cell for one in unlike):
        warn(f"no cell in {results} matches {pattern} yet: names are as `regress` prints them")
