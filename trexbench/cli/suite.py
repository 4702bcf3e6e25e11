"""``trexbench suite``: many runs, one after the other, kept as a night that can be resumed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ConfigError
from .params import DURATION, LABEL, complete_suites
from .run import WHERE, options_of

if TYPE_CHECKING:
    from ..config.suite import Suite
    from ..nights import NightWriter
    from .suite_jobs import Job

_EXAMPLES = """\b
Examples:
  trexbench suite list
  trexbench suite plan netgate-6100
  trexbench suite run netgate-6100 --sim
  trexbench suite run netgate-6100 --resume
  trexbench suite run lab --only '*64b uni*'
"""

NAME = click.argument("name", metavar="SUITE", shell_complete=complete_suites)
CONFIGS = click.option("--configs-dir", type=click.Path(path_type=Path), help="Where DUT configs are.")
ONLY = click.option(
    "--only", multiple=True, metavar="PATTERN", help="Only cells like this, as in '*vpp* bidir*'; may be repeated."
)
SIM = options_of(
    click.option(
        "--sim", is_flag=True, help="Simulate testers and DUTs, each by its config's twin; marked as simulated."
    ),
    click.option(
        "--speedup", type=click.FloatRange(1, 10000), help="With --sim: seconds of the run in one of ours (10000)."
    ),
    click.option("--seed", type=click.IntRange(0), help="With --sim: of the noise, which is another each night (1)."),
)
NIGHT = options_of(
    click.option("--no-apply", is_flag=True, help="Leave the DUTs as they are; results are marked as not attested."),
    click.option("--date", type=click.DateTime(["%Y-%m-%d"]), help="Of the night; today's (UTC) by default."),
    click.option(
        "--retry-after", type=DURATION, default=10.0, help="Pause before the second try of what the tester failed (10)."
    ),
    click.option(
        "--results", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Where they go."
    ),
    click.option("--label", type=LABEL, help="A word kept with the night's runs, to find and compare them by."),
    click.option("-q", "--quiet", is_flag=True, help="No progress."),
)


@click.group(epilog=_EXAMPLES)
def suite() -> None:
    """Suites cross DUTs, modes, directions and queues; files in suites/ (docs/nightly.md)."""


@suite.command("list", epilog="\b\nExamples:\n  trexbench suite list\n  trexbench suite list --json\n")
@CONFIGS
@click.option("--json", "as_json", is_flag=True, help="JSON on standard output.")
def list_(configs_dir: Path | None, as_json: bool) -> None:
    """The suites there are, with the number of their cells."""
    from ..config.read_suite import find_suites, read_suite

    values: list[dict[str, Any]] = []
    for name, path in sorted(find_suites().items()):
        try:
            found = read_suite(path, configs_dir)
            told = {"cells": len(found.cells), "description": found.description, "error": None}
        except ConfigError as error:
            told = {"cells": None, "description": None, "error": " ".join(str(error).split())}
        values.append({"name": name, "path": str(path), **told})
    if as_json:
        click.echo(json.dumps(values, indent=1))
        return
    for one in values:
        about = f"cannot be read: {one['error']}" if one["error"] else f"{one['cells']:4} cells  {one['description']}"
        click.echo(f"{one['name']:16} {about}")


@suite.command(
    "plan",
    epilog="\b\nExamples:\n  trexbench suite plan netgate-6100\n"
    "  trexbench suite plan netgate-6100 --sim --only '*vpp* bidir*' --json\n",
)
@NAME
@ONLY
@CONFIGS
@SIM
@click.option("--json", "as_json", is_flag=True, help="JSON on standard output.")
def plan(name: str, only: Sequence[str], configs_dir: Path | None, as_json: bool, **options: Any) -> None:
    """The cells in their order, how long each is expected to take, and where a DUT is reconfigured."""
    from .suite_jobs import sessions

    found, jobs = read(name, only, {**_UNTOLD, **options, "configs_dir": configs_dir})
    numbers = {at: number for number, places in enumerate(sessions(jobs, range(len(jobs))), 1) for at in places}
    values = [
        {
            "dut": job.cell.dut,
            "mode": job.cell.mode,
            "direction": "bidir" if job.cell.bidir else "uni",
            "rx_queues": job.cell.rx_queues,
            "expected_s": round(job.expected_s, 1),
            "session": numbers[at],
        }
        for at, job in enumerate(jobs)
    ]
    total = sum(job.expected_s for job in jobs)
    if as_json:
        click.echo(json.dumps({"suite": found.name, "expected_s": round(total, 1), "cells": values}, indent=1))
    else:
        click.echo("\n".join(_lines(found, jobs, total)))


def _lines(found: Suite, jobs: Sequence[Job], total_s: float) -> Iterator[str]:
    from ..core.units import format_duration

    yield f"{found.name}: {len(jobs)} cells, {format_duration(total_s)} expected, and what opening takes"
    width = max(len(str(job.cell)) for job in jobs)
    before = None
    for number, job in enumerate(jobs, 1):
        state = job.cell.dut, job.cell.rx_queues
        if state != before:
            count = job.cell.rx_queues
            queues = "" if count is None else f" with {count} receive queue{'' if count == 1 else 's'} per port"
            yield f"{job.cell.dut} is configured{queues}"
        before = state
        yield f"  {number:4}  {job.cell!s:{width}}  {format_duration(job.expected_s):>9}"


@suite.command("run", epilog=_EXAMPLES)
@NAME
@click.option("--resume", is_flag=True, help="Go on with the latest night of this suite that was not finished.")
@ONLY
@CONFIGS
@SIM
@NIGHT
@WHERE
@click.option("--json", "as_json", is_flag=True, help="The night as JSON on standard output.")
def run(name: str, resume: bool, only: Sequence[str], as_json: bool, **options: Any) -> int:
    """Measure every cell. What fails is noted (and tried once more if the tester failed), and the rest goes on.

    The night is kept in results/nights/, its runs where every run is. Kill it anywhere: --resume loses the cell in
    flight. Exit code: of the first cell that failed.
    """
    from ..core.night import night_to_dict
    from .session import note
    from .suite_jobs import begin_night, find_unfinished, resumed
    from .suite_run import night_code

    found, jobs = read(name, only, options)
    results = options["results"]
    with suite_lock(found.name, results):
        if resume:
            unfinished = find_unfinished(results, found.name, note)
            if not unfinished:
                raise ConfigError(f"no night of {found.name} in {results} waits to be resumed", "leave out --resume")
            writer = resumed(results, *unfinished[-1], jobs)
        else:
            writer = begin_night(results, found.name, date_of(options), jobs)
        carry_out(found, jobs, writer, options)
    if as_json:
        click.echo(json.dumps(night_to_dict(writer.night), indent=1))
    return night_code(writer.night)


_UNTOLD: dict[str, Any] = dict.fromkeys(("server", "rpc_port", "pub_port", "trex_dir", "force", "no_apply"))


def read(name: str, only: Sequence[str], options: dict[str, Any]) -> tuple[Suite, list[Job]]:
    """The suite and its runs; ConfigError for whatever can be known to be wrong before anything is opened."""
    from ..config.read_suite import find_suite, read_suite
    from .suite_jobs import make_jobs

    found = read_suite(find_suite(name), options["configs_dir"])
    return found, make_jobs(found, options, only)


def carry_out(found: Suite, jobs: Sequence[Job], writer: NightWriter, options: dict[str, Any]) -> None:
    """Measure what is left of the night, and say what became of it."""
    from ..core.night import State
    from .session import note
    from .suite_jobs import labelled
    from .suite_run import NightRun

    def say(text: str) -> None:
        if not options["quiet"]:
            note(text)

    say(f"night    {writer.path}")
    runs = labelled(jobs, found.name, writer)
    night = NightRun(runs, writer, options["results"], say, options["quiet"], options["retry_after"]).go()
    for at, cell in enumerate(night.cells):
        if cell.state is State.FAILED:
            note(f"failed   {jobs[at].cell}: {cell.attempts[-1].error}")
    say(f"night    {len(night.cells) - len(night.failed)} of {len(night.cells)} cells measured")


@contextmanager
def suite_lock(name: str, results: Path, verb: str = "suite") -> Iterator[None]:
    """One night of a suite at a time for these results; TesterBusy names who has it."""
    from hashlib import sha256

    from ..lock import locked

    place = sha256(str(results.resolve()).encode()).hexdigest()[:12]
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:64]
    with locked(f"{verb}-{safe}-{place}", f"a night of {name} is under way in {results}", f"{verb} {name}"):
        yield


def date_of(options: dict[str, Any]) -> str:
    from .suite_jobs import today

    return f"{options['date']:%Y-%m-%d}" if options["date"] is not None else today()
