"""``trexbench fleet``: testers on several machines: plan, calibration, scheduler, workers and status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from ..config.fleet import HERE, INSECURE, Cluster, Fleet, find_fleet
from ..config.option import NIGHT_SPEEDUP
from ..config.suite import Instead
from ..core.errors import ConfigError
from ..core.fleet.roster import assign_testers, make_roster
from ..core.history.rows import METRICS
from ..core.units import format_duration, format_share
from ..report.clean import clean
from ..report.room import room_of, wrapped
from ..report.sheet import figure, format_sheet, make_sheet, of_count
from ..report.words import format_count
from ..session.options import Setup, TesterChoice
from .options import CONFIGS, ONLY, QUIET, SERVER, asked, complete_suites, formats, number_option, results_option
from .output import OutputForm, note, say_unless, warn
from .verbs import Heading, Option, rare, removed, verbs

if TYPE_CHECKING:
    from ..fleet.status import FleetNow
    from ..suite.jobs import Job

FLEET = click.option(
    "--fleet",
    metavar="FILE",
    cls=Option,
    heading=Heading.THROUGH,
    help="Testers that measure at once: a fleet.yaml, or local:3 (three simulated testers). Default: this machine.",
)
UNSAFE = rare(
    "--insecure",
    heading=Heading.THROUGH,
    is_flag=True,
    help="Allow a scheduler on another machine without TLS; each result warns of it.",
)
_HERE = click.option(
    "--fleet", metavar="FILE", cls=Option, default=str(HERE), show_default=True, help="Testers, DUTs and their cables."
)
_AT = removed("--scheduler", "the scheduler's address is the fleet.yaml's", "name it there")
_EXAMPLES = """\b
Examples:
  trexbench fleet plan lab --sim --fleet local:2
  trexbench fleet calibrate lab --sim --fleet local:2
  trexbench fleet scheduler
  trexbench fleet worker --tester t1 --results /srv/trexbench/results
  trexbench fleet status
"""
LEAST_ROUNDS = 4
"""Number of rounds below which the ratios' intervals are too wide to be of use."""


@verbs(epilog=_EXAMPLES)
def fleet() -> None:
    """Measure a night with testers on several machines: a scheduler at which they meet, and a worker on each."""


@fleet.command("plan")
@click.argument("name", metavar="SUITE", shell_complete=complete_suites)
@ONLY
@asked("instead", Instead)
@asked("setup", Setup, speedup=1, kept="the runs", server="")
@_HERE
@formats("text", "json", "csv", "md")
def plan_(name: str, only: Sequence[str], instead: Instead, setup: Setup, fleet: str, form: OutputForm) -> None:
    """List which tester would measure which cell and when, and which cells cannot be measured and why."""
    from ..suite.night import check_twins, read_jobs

    suite, jobs = read_jobs(name, setup, only, instead)
    check_twins(jobs)
    _, every = read_jobs(name, setup, (), instead)  # all cells decide which tester a DUT gets
    _show_roster(suite.name, jobs, every, find_fleet(fleet, setup.configs_dir, setup.sim), form)


def _joining(text: str, configs_dir: Path | None, insecure: bool) -> tuple[Fleet, Cluster]:
    """Return the fleet and its scheduler."""
    fleet = find_fleet(text, configs_dir, sim=False)
    cluster = fleet.cluster(insecure)
    if cluster.is_insecure:
        warn(f"each result says: {INSECURE}")
    return fleet, cluster


@fleet.command("calibrate")
@click.argument("name", metavar="SUITE", shell_complete=complete_suites)
@ONLY
@number_option("--rounds", LEAST_ROUNDS, 100, 6, "Number of turns of each tester.")
@asked("instead", Instead)
@asked("setup", Setup, speedup=NIGHT_SPEEDUP, kept="the runs", server=f"{SERVER}its lab's")
@_HERE
@results_option("Directory of the results that all testers share.", anywhere=False)
@UNSAFE
@QUIET
@formats("text", "json", "csv", "md")
def calibrate_(
    name: str, only: Sequence[str], rounds: int, instead: Instead, setup: Setup, fleet: str, results: Path,
    insecure: bool, quiet: bool, form: OutputForm,
) -> None:  # fmt: skip
    """Measure how much testers differ: all that reach a DUT measure the suite's cells in turns.

    The ratios are stored in the results. When another tester then measures these DUTs, the histories of their cells
    continue, with figures converted by the ratio, instead of starting anew.
    """
    from ..fleet.calibrate import FleetComparison
    from ..fleet.schedule import by_fleet
    from ..session.keep import Output
    from ..suite.night import NightOptions, check_twins, read_jobs

    _, jobs = read_jobs(name, setup, only, instead)
    check_twins(jobs)
    options = NightOptions(results, setup, Output(results=results, warn=warn), say_unless(quiet), instead=instead)
    comparison = FleetComparison(by_fleet(name, fleet, options, insecure), jobs, options, rounds)
    ratios = comparison.run()
    rows = (
        (
            ratio.tester,
            ratio.reference,
            f"{ratio.load}, simulated" if ratio.simulated else ratio.load,
            METRICS[ratio.metric].name,
            figure(ratio.ratio, "{:.4f}".format),
            figure(ratio.share, format_share, 100),
            of_count(ratio.count),
        )
        for ratio in ratios
    )
    heads = ":tester; :beside; ::traffic; ::figure; ratio; uncertainty [%]; pairs"
    sheet = make_sheet(heads, rows, "testers", "By how much testers differ")
    form.write_sheet(sheet, lambda: [asdict(ratio) for ratio in ratios])


@fleet.command()
@_HERE
@_AT
@CONFIGS
@UNSAFE
def scheduler(fleet: str, configs_dir: Path | None, insecure: bool) -> None:
    """Run the scheduler (Dask's) to which testers and nights connect, until interrupted."""
    described, cluster = _joining(fleet, configs_dir, insecure)
    from ..fleet.join import serve_scheduler

    serve_scheduler(cluster, described.lease_s, note)


@fleet.command()
@click.option("--tester", required=True, metavar="NAME", help="Name of this tester in the fleet.yaml.")
@_HERE
@_AT
@asked("choice", TesterChoice, server=". Default: the DUTs' configs'")
@CONFIGS
@results_option("Results that all testers share.")
@UNSAFE
def worker(
    tester: str, fleet: str, choice: TesterChoice, configs_dir: Path | None, results: Path,
    insecure: bool,
) -> None:  # fmt: skip
    """Run a tester until interrupted: measure what nights ask for, with the suites and DUTs described here."""
    described, cluster = _joining(fleet, configs_dir, insecure)
    names = [each.name for each in described.testers]
    if tester not in names:
        raise ConfigError(f"{fleet} has no tester {tester}", f"it has {', '.join(names)}")
    from ..fleet.cluster import require_dask
    from ..fleet.task import OwnSettings
    from ..fleet.worker import keep_working

    require_dask()
    chosen = {**vars(choice), "configs_dir": configs_dir and configs_dir.resolve()}
    setup = {name: str(value) if isinstance(value, Path) else value for name, value in chosen.items()}
    duts = tuple(described.reach(described.duts)[tester])
    file = str(Path(fleet).resolve()) if described.switches else ""
    doubt = INSECURE if cluster.is_insecure else None
    own = OwnSettings(tester, str(results.resolve()), setup, duts, described.digest, doubt, file)
    keep_working(own, cluster, described.lease_s, note)


@fleet.command()
@_HERE
@_AT
@CONFIGS
@results_option("Results that all testers share.")
@UNSAFE
@removed("--watch", "the status is shown once", "use watch -n1 trexbench fleet status")
@formats("text", "json", "csv", "md")
def status(fleet: str, configs_dir: Path | None, results: Path, insecure: bool, form: OutputForm) -> None:
    """Show testers (idle, measuring which cell until when, lost since when), leases, waiting cells, and failures.

    Without a scheduler, as in a night of local:3, the status is that of the leases.
    """
    from ..fleet.status import read_status

    described = find_fleet(fleet, configs_dir, sim=True)
    cluster = described.cluster(insecure) if described.scheduler is not None else None
    _show_status(read_status(described, cluster, results, warn), form)


def _show_status(now: FleetNow, form: OutputForm) -> None:
    held = {lease.tester: lease.dut for lease in now.leases if not lease.is_over}
    rows = (
        (each.tester, each.state, held.get(each.tester, ""), each.cell or "", each.until or each.since or "")
        for each in now.testers
    )
    sheet = make_sheet(":tester; :state; :DUT; ::cell; :until, or since", rows, "testers", "Testers")
    lines = []
    for lease in now.leases:
        over = ", expired: nobody has renewed it" if lease.is_over else ""
        lines.append(f"lease    {lease.dut} by {lease.tester} until {lease.until} by its clock{over}")
    for night in now.nights:
        words = f"{night.done} measured, {night.waiting} left, {len(night.failed)} failed"
        lines.append(f"night    {clean(night.night)}: {words}")
        lines += [f"failed   {clean(cell)}: {clean(why)}" for cell, why in night.failed.items()]

    def text(out: TextIO) -> str:
        return "\n".join([*format_sheet(sheet, room_of(out)), *wrapped(lines, room_of(out))])

    form.write(text, lambda: asdict(now), lambda: [sheet])


def _show_roster(suite: str, jobs: Sequence[Job], every: Sequence[Job], fleet: Fleet, form: OutputForm) -> None:
    """Write which tester would measure which of the jobs. every: all jobs of the suite."""
    reach = fleet.reach(job.cell.dut for job in jobs)
    own = assign_testers([(job.cell.dut, job.expected_s) for job in every], fleet.reach(job.cell.dut for job in every))
    roster = make_roster([(job.cell.dut, job.expected_s) for job in jobs], own)
    values: list[dict[str, Any]] = [
        {
            "cell": str(job.cell),
            "tester": turn.tester,
            "begin_s": round(turn.begin_s, 1),
            "end_s": round(turn.end_s, 1),
            "reason": turn.reason,
            "through": [str(join) for join in fleet.joins(turn.tester or "", job.cell.dut)],
        }
        for job, turn in zip(jobs, roster.turns, strict=True)
    ]
    rows = []
    for one in values:
        times = (figure(one[at] if one["tester"] else None, format_duration) for at in ("begin_s", "end_s"))
        rows.append((one["cell"], one["tester"] or "none", *times))
    sheet = make_sheet("::cell; :tester; begin [s]; end [s]", rows, "fleet", "Cells and their testers")

    def text_lines(out: TextIO) -> Iterator[str]:
        assigned, room = [turn for turn in roster.turns if turn.tester], room_of(out)
        testers = format_count(len({turn.tester for turn in assigned}), "tester")
        about = f"about {format_duration(roster.length_s)} plus setup"
        yield f"{suite}: {len(assigned)} of {format_count(len(jobs), 'cell')} by {testers}, {about}"
        for line in format_sheet(sheet):
            yield from wrapped([line], room)
        for reason in dict.fromkeys(turn.reason for turn in roster.turns if turn.reason):
            yield f"cannot be measured: {reason}"
        for tester, duts in reach.items():
            for dut in duts:
                for join in fleet.joins(tester, dut):
                    yield from wrapped([f"through  {join.switch.name}: {join}"], room)

    form.write(
        lambda out: "\n".join(text_lines(out)),
        lambda: {"suite": suite, "expected_s": round(roster.length_s, 1), "cells": values},
        lambda: [sheet],
    )
    if not any(turn.tester for turn in roster.turns):
        remedy = "name its DUTs and links in the fleet's file"
        raise ConfigError(f"no cell of suite {suite} can be measured by this fleet", remedy)
