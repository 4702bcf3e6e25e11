"""``trexbench suite`` and ``nightly``: many runs in a row, kept as a night that can be resumed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from ..config.catalogue import SUITES
from ..config.lookup import read_suite
from ..config.option import NIGHT_SPEEDUP, of_options
from ..config.suite import Instead
from ..core.errors import ConfigError
from ..core.history.night import night_to_dict
from ..core.units import format_duration
from ..report.clean import clean
from ..report.room import room_of, wrapped
from ..report.sheet import Sheet, figure, format_sheet, make_sheet, of_count, with_columns
from ..report.words import SIMULATED, format_count, starred
from ..session.options import NightWords, Setup
from .fleet import FLEET, UNSAFE
from .options import (
    CONFIGS,
    DATE,
    ONLY,
    QUIET,
    SERVER,
    VERBOSE,
    asked,
    complete_suites,
    formats,
    path_option,
    results_option,
)
from .output import OutputForm, say_unless, warn
from .verbs import verb, verbs

if TYPE_CHECKING:
    from ..core.history.night import Night
    from ..suite.jobs import Job
    from ..suite.night import NightOptions

_EXAMPLES = """\b
Examples:
  trexbench suite list
  trexbench suite plan netgate-6100
  trexbench suite run netgate-6100 --sim
  trexbench suite run netgate-6100 --resume
  trexbench suite table home-routers-2022
"""
_RUN_EXAMPLES = """\b
Examples:
  trexbench suite run netgate-6100
  trexbench suite run netgate-6100 --resume
  trexbench suite run netgate-6100 --sim
  trexbench suite run lab --only '*64b uni*'
  trexbench suite run home-routers-2022 --sim
  trexbench suite run raspberry-pi-2015 --dut lab-linux --time 20s
  trexbench suite run home-routers-2022 --dut lab-linux --variant nat
"""
_TABLE_EXAMPLES = """\b
Examples:
  trexbench suite run home-routers-2022 --sim
  trexbench suite table home-routers-2022
  trexbench suite table raspberry-pi-2015 --date 2026-11-21 --json
"""
_NIGHTLY_EXAMPLES = """\b
Examples:
  trexbench nightly netgate-6100
  trexbench nightly suites/lab.yaml --prometheus trexbench.prom
  trexbench nightly netgate-6100 --sim
  TREXBENCH_WEBHOOK=https://example.net/hook trexbench nightly netgate-6100
"""

NAME = click.argument("name", metavar="SUITE", shell_complete=complete_suites)
_WORDS = {"speedup": NIGHT_SPEEDUP, "kept": "the night's runs", "server": f"{SERVER}its lab's"}
_SETUP = asked("setup", Setup, **_WORDS)


def _of_night(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Hand a verb its NightOptions. Each run shows its steps and progress on a terminal only; in a log that would be
    too much."""

    @asked("words", NightWords)
    @_SETUP
    @FLEET
    @UNSAFE
    @results_option("Where runs and nights are kept.")
    @QUIET
    @wraps(verb)
    def called(
        setup: Setup,
        words: NightWords,
        results: Path,
        quiet: bool,
        name: str,
        fleet: str | None,
        insecure: bool,
        **others: Any,
    ) -> Any:
        from ..suite.night import NightOptions  # heavy; --help and completion do without
        from .loads import output_of

        watched = not quiet and sys.stderr is not None and sys.stderr.isatty()
        output = output_of(None, not watched, (setup.speedup or NIGHT_SPEEDUP) if setup.sim else 1.0)
        say = say_unless(quiet)
        night = of_options(NightOptions, words, results=results, setup=setup, output=output, say=say, instead=words)
        if fleet is not None:
            from ..fleet.night import by_fleet

            night = replace(night, by_fleet=by_fleet(name, fleet, night, insecure))
        return verb(name=name, night=night, **others)

    return called


@verbs(epilog=_EXAMPLES)
def suite() -> None:
    """A suite measures every combination of DUTs, queues, directions and modes; each is a file in suites/."""


@suite.command("list", epilog="\b\nExamples:\n  trexbench suite list\n  trexbench suite list --json\n")
@CONFIGS
@formats("text", "json", "csv", "md")
def list_(configs_dir: Path | None, form: OutputForm) -> None:
    """Every suite found, with the number of its cells, or what is wrong with it."""
    values: list[dict[str, Any]] = []
    for name, path in sorted(SUITES.files().items()):
        try:
            found = read_suite(path, configs_dir)
            cells = {"cells": len(found.cells), "description": found.description, "error": None}
        except ConfigError as error:
            cells = {"cells": None, "description": None, "error": str(error)}
        values.append({"name": name, "path": str(path), **cells})
    rows = (
        (one["name"], of_count(one["cells"]), f"cannot be read: {one['error']}" if one["error"] else one["description"])
        for one in values
    )
    sheet = make_sheet(":suite; cells; ::about", rows, "suites", "Suites")
    form.write_sheet(sheet, lambda: values)


@suite.command(
    "plan",
    epilog="\b\nExamples:\n  trexbench suite plan netgate-6100\n"
    "  trexbench suite plan netgate-6100 --sim --only '*vpp* bidir*' --json\n",
)
@NAME
@ONLY
@asked("instead", Instead)
@_SETUP
@formats("text", "json", "csv", "md")
def plan(name: str, only: Sequence[str], instead: Instead, setup: Setup, form: OutputForm) -> None:
    """List the cells in their order, how long each is expected to take, and where a DUT is reconfigured."""
    from ..suite.jobs import sessions
    from ..suite.night import check_twins, read_jobs

    found, jobs = read_jobs(name, setup, only, instead)
    check_twins(jobs)
    numbers = {at: number for number, places in enumerate(sessions(jobs, range(len(jobs))), 1) for at in places}
    values = [
        {
            "dut": job.cell.dut,
            "variant": job.cell.variant,
            "mode": str(job.cell.mode),
            "direction": "bidir" if job.cell.bidir else "uni",
            "rx_queues": job.cell.rx_queues,
            "expected_s": round(job.expected_s, 1),
            "session": numbers[at],
        }
        for at, job in enumerate(jobs)
    ]
    total = sum(job.expected_s for job in jobs)
    rows = ((str(number), str(job.cell), figure(job.expected_s, format_duration)) for number, job in enumerate(jobs, 1))
    sheet = make_sheet("number; ::cell; expected [s]", rows, "plan", "Cells in their order")
    headline = f"{found.name}: {format_count(len(jobs), 'cell')}, about {format_duration(total)} plus setup"
    form.write(
        lambda out: "\n".join([headline, *_lines(jobs, sheet, room_of(out))]),
        lambda: {"suite": found.name, "expected_s": round(total, 1), "cells": values},
        lambda: [sheet],
    )


def _lines(jobs: Sequence[Job], sheet: Sheet, room: int | None) -> Iterator[str]:
    """Yield the sheet's rows, each session's below a line that says how its DUT is configured."""
    _, *rows = format_sheet(sheet)
    before = None
    for job, row in zip(jobs, rows, strict=True):
        state = job.cell.dut, job.cell.variant, job.cell.rx_queues
        if state != before:
            count = job.cell.rx_queues
            queues = "" if count is None else f" with {format_count(count, 'receive queue')} per port"
            variant = "" if job.cell.variant is None else f" in variant {job.cell.variant}"
            yield from wrapped([f"{job.cell.dut} is configured{variant}{queues}"], room)
        before = state
        yield from wrapped([f"  {row}"], room)


@suite.command("run", epilog=_RUN_EXAMPLES)
@NAME
@click.option(
    "--resume",
    is_flag=True,
    help="Resume the latest night of this suite that was not finished; with --date, that of this date.",
)
@ONLY
@_of_night
@VERBOSE
@formats("text", "json")
def run(name: str, resume: bool, only: Sequence[str], night: NightOptions, form: OutputForm) -> int:
    """Measure every cell. One that fails is noted (after a second try if the tester failed), and the rest is measured.

    The night is kept in results/nights/, its runs beside all others. After a kill at any moment --resume measures the
    cells that are left, the one in flight again. Exit code: of the first cell that failed.
    """
    from ..suite.night import run_suite
    from ..suite.run import night_code

    found = run_suite(name, night, only, resume).night
    form.write(None if form.is_shown else lambda out: _night_text(found), lambda: night_to_dict(found))
    return night_code(found)


def _night_text(night: Night) -> str:
    """Say which cells failed and why, and how many were measured, as standard error does, for a file."""
    failed = [f"failed   {clean(one)}: {clean(why)}" for why, cells in night.failures.items() for one in cells]
    simulated = [*starred([SIMULATED])] if night.simulated else []
    return "\n".join([*simulated, *failed, f"{clean(night.suite)}, night of {clean(night.night)}: {night.measured}"])


@suite.command(epilog=_TABLE_EXAMPLES)
@NAME
@click.option("--date", type=DATE, help="The night's date; default: the latest.")
@CONFIGS
@results_option()
@formats("text", "json", "csv", "md")
def table(name: str, date: str | None, configs_dir: Path | None, results: Path, form: OutputForm) -> None:
    """A night of a TCP suite beside what was published of the same tests."""
    from ..report.tcp.table import format_table, published_sheet, table_head
    from ..suite.table import published_table

    night, lines = published_table(name, results, configs_dir, date, warn)
    values = {"suite": night.suite, "night": night.night, "simulated": night.simulated}
    marks = ("simulated" if night.simulated else line.row.cell.mark if line.row is not None else "" for line in lines)
    form.write(
        lambda out: format_table(night, lines, room_of(out)),
        lambda: {**values, "cells": [one.to_dict() for one in lines]},
        lambda: [published_sheet(lines)],
        head=lambda: table_head(night, lines),
        table=lambda: with_columns(published_sheet(lines), ":status", ([mark or "measured"] for mark in marks)),
    )


@verb(epilog=_NIGHTLY_EXAMPLES)
@NAME
@ONLY
@_of_night
@VERBOSE
@click.option("--strict", is_flag=True, help="Exit 4 instead of 0 when there are too few nights to judge by.")
@path_option("--prometheus", "Write gauges for Prometheus' node exporter to this file.", dir_okay=False)
@formats("text", "json")
def nightly(
    name: str, only: Sequence[str], night: NightOptions, strict: bool, prometheus: Path | None, form: OutputForm
) -> int:
    """Measure a suite, judge it by the nights before, write results/report.html, prune, and send a summary.

    An unfinished night of the last 12 hours is resumed. A summary is posted to TREXBENCH_WEBHOOK, if that is set.
    Exit codes: of the first cell that failed; else 3 with a regression; else 0.
    """
    from ..report.regress import format_judgement, judgement_values
    from ..report.run.text import width_of
    from ..suite.nightly import Nightly

    end = Nightly(name, night, strict, prometheus, only)
    end.run()
    judged = end.judged

    def nightly_text(out: TextIO) -> str | None:
        if judged is not None:
            return format_judgement(judged, width_of(out))
        return None if form.is_shown else _night_text(end.night)

    form.write(
        nightly_text,
        lambda: {
            "exit_code": end.code,
            "night": night_to_dict(end.night),
            "judgement": judged and judgement_values(judged),
        },
    )
    return end.code
