"""``trexbench suite`` and ``nightly``: suites of runs, kept as nights that can be resumed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from itertools import groupby
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
from . import options as o
from .fleet import FLEET, UNSAFE
from .output import OutputForm, say_unless, warn
from .verbs import removed, verb, verbs

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
  trexbench suite table raspberry-pi-2015 --date 2026-11-21 --format json
"""
_NIGHTLY_EXAMPLES = """\b
Examples:
  trexbench nightly netgate-6100
  trexbench nightly suites/lab.yaml --prometheus trexbench.prom
  trexbench nightly netgate-6100 --sim
  TREXBENCH_WEBHOOK=https://example.net/hook trexbench nightly netgate-6100
"""

NAME = click.argument("name", metavar="SUITE", shell_complete=o.complete_suites)
_SETUP = o.asked("setup", Setup, speedup=NIGHT_SPEEDUP, kept="the night's runs", server=f"{o.SERVER}its lab's")


def _of_night(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Pass a verb its NightOptions. Runs show steps and progress on a terminal only: they would fill a log."""

    @o.asked("words", NightWords)
    @_SETUP
    @FLEET
    @UNSAFE
    @o.results_option("Directory of runs and nights.")
    @o.QUIET
    @removed("--retry-after", "the pause before a second try is 10 s", "leave it out")
    @wraps(verb)
    def called(
        setup: Setup, words: NightWords, results: Path, quiet: bool, name: str, fleet: str | None, insecure: bool,
        **others: Any,
    ) -> Any:  # fmt: skip
        from ..suite.night import NightOptions  # heavy; --help and completion do without
        from .loads import output_of

        watched = not quiet and sys.stderr is not None and sys.stderr.isatty()
        output = output_of(None, not watched, (setup.speedup or NIGHT_SPEEDUP) if setup.sim else 1.0)
        say = say_unless(quiet)
        night = of_options(NightOptions, words, results=results, setup=setup, output=output, say=say, instead=words)
        if fleet is not None:
            from ..fleet.schedule import by_fleet

            night = replace(night, by_fleet=by_fleet(name, fleet, night, insecure))
        return verb(name=name, night=night, **others)

    return called


@verbs(epilog=_EXAMPLES)
def suite() -> None:
    """Measure every combination of a suite's DUTs, queues, directions and modes; each suite is a file in suites/."""


@suite.command("list", epilog="\b\nExamples:\n  trexbench suite list\n  trexbench suite list --format json\n")
@o.CONFIGS
@o.formats("text", "json", "csv", "md")
def list_(configs_dir: Path | None, form: OutputForm) -> None:
    """List every suite with the number of its cells, or the error in it."""
    values: list[dict[str, Any]] = []
    rows = []
    for name, path in sorted(SUITES.files().items()):
        try:
            suite = read_suite(path, configs_dir)
            facts = {"cells": len(suite.cells), "description": suite.description, "error": None}
        except ConfigError as error:
            facts = {"cells": None, "description": None, "error": str(error)}
        values.append({"name": name, "path": str(path), **facts})
        about = f"cannot be read: {facts['error']}" if facts["error"] else str(facts["description"])
        rows.append((name, of_count(values[-1]["cells"]), about))
    sheet = make_sheet(":suite; cells; ::about", rows, "suites", "Suites")
    form.write_sheet(sheet, lambda: values)


@suite.command(
    "plan",
    epilog="\b\nExamples:\n  trexbench suite plan netgate-6100\n"
    "  trexbench suite plan netgate-6100 --sim --only '*vpp* bidir*' --format json\n",
)
@NAME
@o.ONLY
@o.asked("instead", Instead)
@_SETUP
@o.formats("text", "json", "csv", "md")
def plan(name: str, only: Sequence[str], instead: Instead, setup: Setup, form: OutputForm) -> None:
    """List the cells in order, the expected duration of each, and where a DUT is reconfigured."""
    from ..suite.jobs import sessions
    from ..suite.night import check_twins, read_jobs

    suite, jobs = read_jobs(name, setup, only, instead, warn)
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
    headline = f"{suite.name}: {format_count(len(jobs), 'cell')}, about {format_duration(total)} plus setup"
    form.write(
        lambda out: "\n".join([headline, *_plan_lines(jobs, sheet, room_of(out))]),
        lambda: {"suite": suite.name, "expected_s": round(total, 1), "cells": values},
        lambda: [sheet],
    )


def _plan_lines(jobs: Sequence[Job], sheet: Sheet, room: int | None) -> Iterator[str]:
    """Yield the sheet's rows, those of each session below a line about the DUT's configuration."""
    rows = zip((job.cell for job in jobs), format_sheet(sheet)[1:], strict=True)
    for state, session in groupby(rows, lambda row: (row[0].dut, row[0].variant, row[0].rx_queues)):
        dut, variant, count = state
        queues = "" if count is None else f" with {format_count(count, 'receive queue')} per port"
        in_variant = "" if variant is None else f" in variant {variant}"
        yield from wrapped([f"{dut} is configured{in_variant}{queues}"], room)
        for _, row in session:
            yield from wrapped([f"  {row}"], room)


@suite.command("run", epilog=_RUN_EXAMPLES)
@NAME
@click.option(
    "--resume", is_flag=True, help="Resume the latest unfinished night of this suite; with --date, that of this date."
)
@o.ONLY
@_of_night
@o.VERBOSE
@o.formats("text", "json")
def run(name: str, resume: bool, only: Sequence[str], night: NightOptions, form: OutputForm) -> int:
    """Measure every cell. A cell that fails (twice, if the tester failed) is noted, and the others are measured.

    The night is stored in results/nights/, its runs beside all others. After a kill at any moment, --resume measures
    the remaining cells, and the interrupted one again. Exit code: that of the first cell that failed.
    """
    from ..suite.cells import night_code
    from ..suite.night import run_suite

    done = run_suite(name, night, only, resume).night
    form.write(None if form.is_shown else lambda out: _night_text(done), lambda: night_to_dict(done))
    return night_code(done)


def _night_text(night: Night) -> str:
    """Summarise a night for a file, as on standard error: failed cells and why, and the number of measured ones."""
    failed = [f"failed   {clean(cell)}: {clean(why)}" for why, cells in night.failures.items() for cell in cells]
    simulated = [*starred([SIMULATED])] if night.simulated else []
    return "\n".join([*simulated, *failed, f"{clean(night.suite)}, night of {clean(night.night)}: {night.measured}"])


@suite.command(epilog=_TABLE_EXAMPLES)
@NAME
@click.option("--date", type=o.DATE, help="Date of the night. Default: the latest.")
@o.CONFIGS
@o.results_option()
@o.formats("text", "json", "csv", "md")
def table(name: str, date: str | None, configs_dir: Path | None, results: Path, form: OutputForm) -> None:
    """Show a night of a TCP suite beside published figures of the same tests."""
    from ..report.tcp.table import format_table, published_sheets, table_head
    from ..suite.table import published_table

    night, lines = published_table(name, results, configs_dir, date, warn)
    values = {"suite": night.suite, "night": night.night, "simulated": night.simulated}
    marks = ("simulated" if night.simulated else line.row.cell.mark if line.row is not None else "" for line in lines)
    form.write(
        lambda out: format_table(night, lines, room_of(out)),
        lambda: {**values, "cells": [line.to_dict() for line in lines]},
        lambda: published_sheets(lines),
        head=lambda: table_head(night, lines),
        table=lambda: with_columns(published_sheets(lines)[0], ":status", ([mark or "measured"] for mark in marks)),
    )


@verb(epilog=_NIGHTLY_EXAMPLES)
@NAME
@o.ONLY
@_of_night
@o.VERBOSE
@click.option("--strict", is_flag=True, help="Exit with 4 instead of 0 if there are too few nights to judge.")
@o.path_option("--prometheus", "Write gauges for Prometheus's node exporter to this file.", dir_okay=False)
@o.formats("text", "json")
def nightly(
    name: str, only: Sequence[str], night: NightOptions, strict: bool, prometheus: Path | None, form: OutputForm
) -> int:
    """Measure a suite, judge it by earlier nights, write results/report.html, prune, and send a summary.

    An unfinished night of the last 12 hours is resumed. The summary is posted to TREXBENCH_WEBHOOK if that is set.
    Exit code: that of the first cell or step that failed; else 3 with a regression; else, with --strict, 4 with too few
    nights to judge; else 0.
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
