"""``trexbench regress``: what got slower, since when and why; and known changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.errors import BenchError, ConfigError, StoreError
from ..core.history import METRICS
from ..core.known import Known, is_date
from .params import complete_duts, complete_modes, complete_suites, mode_named

if TYPE_CHECKING:
    from ..core.regression import Judgement

NAMES = [metric.name for metric in METRICS]

EXAMPLES = """\b
Examples:
  trexbench regress
  trexbench regress --suite nightly --markdown - --junit regress.xml
  trexbench regress --acknowledge "netgate-vpp *" --metric "maximum rate" --note "new NIC firmware"
  trexbench regress --known
  trexbench regress --forget 1

\b
Exit codes: 0 nothing got worse, 3 a regression, 4 no figure has nights enough, others as ever.
"""


def judge(
    results: Path,
    warn: Callable[[str], None],
    dut: str | None = None,
    mode: str | None = None,
    suite: str | None = None,
    since: str | None = None,
) -> Judgement:
    """The verdict on the runs below ``results``; those of the DUT, mode and suite where they are named."""
    from ..core.regression import judge_rows
    from ..index import open_index
    from ..judge.jumps import levels
    from ..judge.known_file import load_known
    from ..nights import load_nights

    if not results.is_dir():
        raise StoreError(f"{results}: no such directory", "name the results with --results")
    known, mode = load_known(results), mode_named(mode)
    with open_index(results, warn) as index:
        rows = index.rows(dut=dut, mode=mode, suite=suite)
    nights = [night for night in load_nights(results, warn) if suite in (None, night.suite)]
    return judge_rows(rows, levels, known, nights, since, _named(dut, mode))


def _named(dut: str | None, mode: str | None) -> Callable[[str, str], bool]:
    return lambda its_dut, its_mode: dut in (None, its_dut) and mode in (None, its_mode)


@click.command(epilog=EXAMPLES)
@click.option(
    "--results", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Where the runs are."
)
@click.option("--dut", metavar="NAME", shell_complete=complete_duts, help="Only this device under test.")
@click.option("--mode", metavar="MODE", shell_complete=complete_modes, help="Only this mode, or its alias.")
@click.option("--suite", metavar="NAME", shell_complete=complete_suites, help="Only this suite's runs.")
@click.option("--since", metavar="DATE", help="Regressions that began before this night are listed, but no alarm.")
@click.option("--json", "as_json", is_flag=True, help="JSON on standard output.")
@click.option("--junit", metavar="FILE", help="JUnit's XML to this file, - for standard output.")
@click.option("--markdown", metavar="FILE", help="A few lines for chat to this file, - for standard output.")
@click.option("--github", is_flag=True, help="Annotations for GitHub's workflows on standard output.")
@click.option("--acknowledge", metavar="CELLS", help="Changes of these cells (a glob of their names) are known.")
@click.option("--metric", type=click.Choice(NAMES), help="With --acknowledge: of this figure alone.")
@click.option("--note", metavar="TEXT", help="With --acknowledge: why.")
@click.option("--date", metavar="DATE", help="With --acknowledge: changes up to this night (today).")
@click.option("--known", is_flag=True, help="List known changes, numbered.")
@click.option("--forget", type=click.IntRange(1), metavar="N", help="Known change N is known no longer.")
def regress(
    results: Path,
    dut: str | None,
    mode: str | None,
    suite: str | None,
    since: str | None,
    as_json: bool,
    junit: str | None,
    markdown: str | None,
    github: bool,
    acknowledge: str | None,
    metric: str | None,
    note: str | None,
    date: str | None,
    known: bool,
    forget: int | None,
) -> int:
    """Judge every cell's history by change-point detection: what got slower, since when, by how much.

    A regression alarms until it is acknowledged with a note, or has recovered. docs/regression.md says how it is found.
    """
    _check_dates(since, date)
    if acknowledge is not None:
        return _acknowledge(results, Known(date or _today(), acknowledge, metric, note or ""))
    if metric is not None or note is not None or date is not None:
        raise ConfigError("--metric, --note and --date say what is acknowledged", "name the cells with --acknowledge")
    if known or forget is not None:
        return _forget(results, forget) if forget is not None else _list_known(results, as_json)
    to_stdout = [as_json, junit == "-", markdown == "-", github].count(True)
    if to_stdout > 1:
        raise ConfigError("several forms for one standard output", "give the others a file")
    judgement = judge(results, lambda text: click.echo(text, err=True), dut, mode, suite, since)
    _write_forms(judgement, as_json, junit, markdown, github, quiet=to_stdout > 0)
    return judgement.exit_code


def _write_forms(
    judgement: Judgement, as_json: bool, junit: str | None, markdown: str | None, github: bool, quiet: bool
) -> None:
    from ..report.regress import format_github, format_judgement, format_markdown
    from ..report.regress_forms import format_junit, judgement_values

    if junit is not None:
        _put(junit, format_junit(judgement))
    if markdown is not None:
        _put(markdown, format_markdown(judgement))
    if as_json:
        click.echo(json.dumps(judgement_values(judgement), indent=1, allow_nan=False))
    if github:
        click.echo(format_github(judgement), nl=False)
    if not quiet:
        click.echo(format_judgement(judgement), nl=False)


def _put(place: str, text: str) -> None:
    if place == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(place).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BenchError(f"{place}: {error.strerror}", "name a place that can be written") from error


def _check_dates(*dates: str | None) -> None:
    for date in dates:
        if date is not None and not is_date(date):
            raise ConfigError(f"{date!r} is no date", "write it as 2026-11-21")


def _today() -> str:
    return f"{datetime.now(timezone.utc):%Y-%m-%d}"


def _acknowledge(results: Path, one: Known) -> int:
    from ..judge.known_file import add_known

    if not one.note.strip():
        raise ConfigError("a change is acknowledged without saying why", "add --note")
    add_known(results, one)
    click.echo(f"known: {_line(one)}")
    if not _is_about_any(results, one):
        click.echo(f"trexbench: no cell in {results} is like that yet: names are as `regress` prints them", err=True)
    return 0


def _is_about_any(results: Path, one: Known) -> bool:
    from ..index import open_index

    with open_index(results, lambda text: click.echo(text, err=True)) as index:
        cells = {row.cell for row in index.rows()}
    return any(one.is_about(cell, metric) for cell in cells for metric in NAMES)


def _forget(results: Path, number: int) -> int:
    from ..judge.known_file import remove_known

    click.echo(f"known no longer: {_line(remove_known(results, number))}")
    return 0


def _list_known(results: Path, as_json: bool) -> int:
    from ..judge.known_file import load_known

    known = load_known(results)
    if as_json:
        click.echo(json.dumps([{"number": number, **asdict(one)} for number, one in enumerate(known, 1)], indent=1))
        return 0
    for number, one in enumerate(known, 1):
        click.echo(f"{number}  {_line(one)}")
    return 0


def _line(one: Known) -> str:
    from ..report.regress import printable

    return printable(f"until {one.date}: {one.metric or 'all figures'} of {one.cell}: {one.note}")
