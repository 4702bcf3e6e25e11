"""``suite plan --fleet``: who would measure what, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from ..config.fleet import find_fleet
from ..core.fleet.roster import Roster, make_roster
from ..core.units import format_duration
from ..report.fit import format_sheet
from ..report.room import room_of, wrapped
from ..report.sheet import Sheet, figure, make_sheet
from ..report.words import format_count
from ..session.options import Setup
from .forms import OutputForm

if TYPE_CHECKING:
    from ..config.suite import Suite
    from ..suite.jobs import Job


def show_roster(suite: Suite, jobs: Sequence[Job], text: str, setup: Setup, form: OutputForm) -> None:
    """Write which tester would measure which cell."""
    reach = find_fleet(text, setup.configs_dir, setup.sim).reach(job.cell.dut for job in jobs)
    roster = make_roster([(job.cell.dut, job.expected_s) for job in jobs], reach)
    pairs = list(zip(jobs, roster.turns, strict=True))
    values = [
        {
            "cell": str(job.cell),
            "tester": turn.tester,
            "begin_s": round(turn.begin_s, 1),
            "end_s": round(turn.end_s, 1),
            "reason": turn.reason,
        }
        for job, turn in pairs
    ]
    sheet = _sheet(jobs, roster)

    def text_lines(out: TextIO) -> Iterator[str]:
        there, room = [turn for turn in roster.turns if turn.tester], room_of(out)
        testers = format_count(len({turn.tester for turn in there}), "tester")
        yield f"{suite.name}: {len(there)} of {format_count(len(jobs), 'cell')} by {testers}, {_about(roster)}"
        for line in format_sheet(sheet):
            yield from wrapped([line], room)
        for reason in dict.fromkeys(turn.reason for turn in roster.turns if turn.reason):
            yield f"cannot be measured: {reason}"

    form.write(
        lambda out: "\n".join(text_lines(out)),
        lambda: {"suite": suite.name, "expected_s": round(roster.length_s, 1), "cells": values},
        lambda: [sheet],
    )


def _about(roster: Roster) -> str:
    return f"about {format_duration(roster.length_s)} plus setup"


def _sheet(jobs: Sequence[Job], roster: Roster) -> Sheet:
    rows = (
        (
            str(job.cell),
            turn.tester or "none",
            figure(turn.begin_s if turn.tester else None, format_duration),
            figure(turn.end_s if turn.tester else None, format_duration),
        )
        for job, turn in zip(jobs, roster.turns, strict=True)
    )
    return make_sheet("::cell; :tester; begin [s]; end [s]", rows, "fleet", "Cells and their testers")
