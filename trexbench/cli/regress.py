"""``trexbench regress``: finding regressions, and managing acknowledged changes."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.errors import ConfigError
from ..core.history.known import Known
from ..core.history.rows import METRICS
from ..report.clean import clean
from ..report.sheet import make_sheet
from ..session.process import utc_now
from .options import DATE, ONLY, complete_duts, complete_modes, complete_suites, formats, results_option
from .output import OutputForm, warn, write
from .verbs import Option, rare, removed, verb

if TYPE_CHECKING:
    from ..core.history.regression import Judgement

NAMES = [metric.name for metric in METRICS.values()]

EXAMPLES = """\b
Examples:
  trexbench regress
  trexbench regress --suite netgate-6100 -o regress.md --junit regress.xml
  trexbench regress --acknowledge "lab-vpp *" --metric power --note fan
  trexbench regress --known
  trexbench regress --forget 1

\b
Exit codes: 0 nothing got worse, 3 a regression, 4 nothing to judge by,
others as with every verb.
"""


@verb(epilog=EXAMPLES)
@results_option()
@click.option("--dut", metavar="NAME", shell_complete=complete_duts, help="Only this device under test.")
@click.option("--mode", metavar="MODE", shell_complete=complete_modes, help="Only this mode (or alias).")
@click.option("--suite", metavar="NAME", shell_complete=complete_suites, help="Only this suite's runs.")
@click.option("--since", type=DATE, help="Do not count regressions that began before this night, only list them.")
@ONLY
@formats("text", "json", "csv", "md")
@click.option("--junit", cls=Option, metavar="FILE", help="Also write JUnit XML to this file; - is standard output.")
@removed("--markdown", "a judgement is written in one form besides --junit", "use --format md -o FILE")
@removed("--github", "annotations are no longer printed", "use --format md -o $GITHUB_STEP_SUMMARY, or --junit FILE")
@click.option(
    "--acknowledge",
    multiple=True,
    metavar="CELLS",
    help="Acknowledge changes of the cells that match this glob, with --note; may be repeated.",
)
@rare(
    "--metric",
    multiple=True,
    type=click.Choice(NAMES),
    metavar="FIGURE",
    help=f"With --acknowledge: {', '.join(NAMES)}; may be repeated. Default: all that changed.",
)
@click.option("--note", metavar="TEXT", help="With --acknowledge: the reason, which is required.")
@rare("--date", type=DATE, help="With --acknowledge: changes up to this night. Default: that of the change.")
@click.option("--known", is_flag=True, help="List acknowledged changes with their numbers.")
@click.option(
    "--forget", multiple=True, type=click.IntRange(1), metavar="N", help="Delete acknowledgement N; may be repeated."
)
def regress(
    results: Path, dut: str | None, mode: str | None, suite: str | None, since: str | None, only: tuple[str, ...],
    form: OutputForm, junit: str | None, acknowledge: tuple[str, ...], metric: tuple[str, ...], note: str | None,
    date: str | None, known: bool, forget: tuple[int, ...],
) -> int:  # fmt: skip
    """Judge every cell's history by change-point detection: what got slower, since when, by how much.

    A regression is reported until it is acknowledged with a note or has recovered.
    """
    if [bool(acknowledge), known, bool(forget)].count(True) > 1:
        raise ConfigError("--acknowledge, --known and --forget exclude each other", "give one of them at a time")
    action = "--acknowledge" if acknowledge else "--known" if known else "--forget" if forget else None
    judging = {"--junit": junit, "--only": only, "--dut": dut, "--mode": mode, "--suite": suite, "--since": since}
    written = {} if known else {"--format": form.name != "text", "-o": form.is_named}
    excess = [name for name, value in (judging | written).items() if value]
    if action and excess:
        raise ConfigError(f"{', '.join(excess)} means nothing with {action}", "leave one of them out")
    if acknowledge:
        from ..review.judge import acknowledge as noted

        for change in noted(results, acknowledge, metric, date, note or "", utc_now()[:10], warn):
            click.echo(f"acknowledged: {_line(change)}")
        return 0
    if metric or note is not None or date is not None:
        raise ConfigError("--metric, --note and --date belong to --acknowledge", "name the cells with --acknowledge")
    if forget:
        from ..results.nights import remove_known

        for number in sorted({*forget}, reverse=True):  # the last first: those before keep their numbers
            click.echo(f"acknowledgement deleted: {_line(remove_known(results, number))}")
        return 0
    if known:
        _list_known(results, form)
        return 0
    return _judge(results, (dut, mode, suite), since, only, form, junit)


def _judge(
    results: Path,
    wanted: tuple[str | None, str | None, str | None],
    since: str | None,
    only: tuple[str, ...],
    form: OutputForm,
    junit: str | None,
) -> int:
    """Judge the histories of this DUT, mode and suite; return the exit code."""
    from ..report.regress import format_junit
    from ..review.find import require_named
    from ..review.judge import judge

    if not form.is_shown and form.file == "-" == junit:
        raise ConfigError("two outputs cannot share standard output", "give all but one of them a file")
    if junit is not None and junit != "-" and os.path.realpath(junit) == os.path.realpath(form.file):
        raise ConfigError("two outputs cannot share a file", "give each a file of its own")
    judgement = judge(results, warn, *wanted, since, only)
    if not judgement.now:
        require_named(results, *wanted)
    if junit is not None:
        write(junit, format_junit(judgement), aside=True)
    if not (form.is_shown and junit == "-"):
        _write(judgement, form)
    return judgement.exit_code


def _write(judgement: Judgement, form: OutputForm) -> None:
    from ..core.history.causes import groups_of
    from ..report.page.sheets_nights import change_sheet
    from ..report.regress import format_judgement, format_markdown, judgement_values
    from ..report.run.text import width_of

    form.write(
        lambda out: format_judgement(judgement, width_of(out)),
        lambda: judgement_values(judgement),
        lambda: [change_sheet(groups_of(judgement))],
        markdown=lambda: format_markdown(judgement),
    )


def _list_known(results: Path, form: OutputForm) -> None:
    from ..results.nights import load_known

    numbered = [*enumerate(load_known(results), 1)]
    rows = ((str(n), change.date, change.metric or "all figures", change.cell, change.note) for n, change in numbered)
    sheet = make_sheet("number; :until; :figure; ::cell; ::note", rows, "known", "Acknowledged changes")
    lines = [f"{n}  {_line(change)}" for n, change in numbered] or ["no change is acknowledged"]
    form.write_lines(lines, lambda: [{"number": n, **asdict(change)} for n, change in numbered], sheet)


def _line(change: Known) -> str:
    return clean(f"until {change.date}: {change.metric or 'all figures'} of {change.cell}: {change.note}")
