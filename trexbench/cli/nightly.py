"""``trexbench nightly``: a night of a suite, judged, reported and told, for cron and systemd."""

from __future__ import annotations

import json
import time
from calendar import timegm
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import BenchError, ConfigError, StoreError
from .run import WHERE
from .suite import CONFIGS, NAME, NIGHT, SIM, carry_out, date_of, read, suite_lock

if TYPE_CHECKING:
    from ..config.suite import Suite
    from ..core.history import RunRow
    from ..core.night import Night
    from ..core.regression import Judgement
    from ..nights import NightWriter
    from .suite_jobs import Job

RESUME_WITHIN_S = 12 * 3600.0
"""An unfinished night that is older is left as it is: a new one has begun."""
REGRESSION, TOO_LITTLE = 3, 4

_EXAMPLES = """\b
Examples:
  trexbench nightly netgate-6100
  trexbench nightly suites/lab.yaml --prometheus /var/lib/node_exporter/trexbench.prom
  TREXBENCH_WEBHOOK=https://chat.example.net/hooks/x trexbench nightly netgate-6100
  trexbench nightly netgate-6100 --sim
"""


@click.command(epilog=_EXAMPLES)
@NAME
@CONFIGS
@SIM
@NIGHT
@WHERE
@click.option("--strict", is_flag=True, help="Exit with 4 while there are too few nights to judge by (0).")
@click.option(
    "--prometheus", type=click.Path(path_type=Path, dir_okay=False), help="Write gauges to this file, at once."
)
@click.option("--json", "as_json", is_flag=True, help="The night and its judgement as JSON on standard output.")
def nightly(name: str, strict: bool, prometheus: Path | None, as_json: bool, **options: Any) -> int:
    """Measure a suite, judge what was found by the nights before, write results/report.html, prune, and tell.

    A night of the last 12 hours that was not finished is gone on with. TREXBENCH_WEBHOOK names where a summary is
    posted, if it is set.
    Exit codes: of the first cell that failed; else 3 with a regression; else 0.
    """
    from ..notify import check_textfile, webhook_url

    url, results = webhook_url(), options["results"]
    check_textfile(prometheus)
    suite, jobs, error = _read(name, options)
    label = suite.name if suite is not None else Path(name).stem
    with suite_lock(label, results):
        end = _End(options["quiet"], as_json)
        if suite is None:
            end.writer = _told_of_trouble(url, label, options, lambda: _not_run(results, label, options, error))
            end.keep(error)
        else:
            end.writer = _told_of_trouble(url, suite.name, options, lambda: _measure(suite, jobs, options))
            end.found(_code_of(end.writer.night))
            end.step("judge", lambda: _judge(end, results, label, strict))
        end.step("report", lambda: _report(end, results, label))
        if suite is not None:
            end.step("prune", lambda: _prune(end, results, suite))
        night = end.writer.night
        if prometheus is not None:
            end.step("gauges", lambda: _write_gauges(prometheus, night, results, end.code))
        if url is not None:
            _tell(url, night, end.findings)
    if as_json:
        click.echo(json.dumps(_values(end), indent=1, allow_nan=False))
    return end.code


@dataclass
class _End:
    """What the night comes to. findings: lines for people; code: the worst so far; judged: None until it was."""

    quiet: bool
    as_json: bool = False
    writer: NightWriter = field(init=False)
    judged: Judgement | None = None
    findings: list[str] = field(default_factory=list)
    code: int = 0

    def found(self, code: int) -> None:
        """Failures go before regressions, and these before too little data; of failures the first counts."""
        rank = {0: 0, TOO_LITTLE: 1, REGRESSION: 2}
        if rank.get(code, 3) > rank.get(self.code, 3):
            self.code = code

    def keep(self, error: BenchError | None) -> None:
        if error is not None:
            text = " ".join(str(error).split())
            self.findings.append(text)
            _warn(text)
            self.found(error.exit_code)

    def step(self, what: str, do: Callable[[], None]) -> None:
        """Do it; a failure is told, and stops nothing that comes after."""
        try:
            do()
        except Exception as error:  # a defect of ours, too, costs its own step only
            from .suite_run import as_bench_error

            found = as_bench_error(error)
            self.keep(type(found)(f"{what}: {found}"))

    def say(self, text: str) -> None:
        if not self.quiet:
            click.echo(text, err=True)


def _values(end: _End) -> dict[str, Any]:
    """What ``--json`` prints; judgement: null where the nights could not be judged."""
    from ..core.night import night_to_dict
    from ..report.regress_forms import judgement_values

    judgement = judgement_values(end.judged) if end.judged is not None else None
    return {"exit_code": end.code, "night": night_to_dict(end.writer.night), "judgement": judgement}


def _read(name: str, options: dict[str, Any]) -> tuple[Suite | None, Sequence[Job], BenchError | None]:
    """The suite, or why it cannot be run, which must be seen in the history, too."""
    try:
        return (*read(name, (), options), None)
    except ConfigError as error:
        return None, (), error


def _not_run(results: Path, label: str, options: dict[str, Any], error: BenchError | None) -> NightWriter:
    from .suite_jobs import begin_night

    return begin_night(results, label, date_of(options), (), " ".join(str(error).split()))


def _measure(suite: Suite, jobs: Sequence[Job], options: dict[str, Any]) -> NightWriter:
    """Tonight's night, gone on with where it was begun."""
    from .session import note
    from .suite_jobs import begin_night, find_unfinished, resumed

    results = options["results"]
    writer = None
    for path, night in reversed(find_unfinished(results, suite.name, note)):
        fresh = _age_s(night.started) < RESUME_WITHIN_S
        if fresh if options["date"] is None else night.night == date_of(options):
            try:
                writer = resumed(results, path, night, jobs)
                break
            except ConfigError as error:
                note(f"not resumed: {' '.join(str(error).split())}")
    writer = writer or begin_night(results, suite.name, date_of(options), jobs)
    carry_out(suite, jobs, writer, options)
    return writer


def _told_of_trouble(
    url: str | None, suite: str, options: dict[str, Any], measure: Callable[[], NightWriter]
) -> NightWriter:
    """The night; where none can be kept (a full disk), the webhook is the last that can be told of it."""
    from ..core.night import Night
    from .suite_jobs import now

    try:
        return measure()
    except StoreError as error:
        if url is not None:
            text = " ".join(str(error).split())
            _tell(url, Night(suite, date_of(options), now(), bool(options["sim"]), (), now(), text), ())
        raise


def _age_s(started: str) -> float:
    try:
        return time.time() - timegm(time.strptime(started, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return RESUME_WITHIN_S


def _code_of(night: Night) -> int:
    from .suite_run import night_code

    return night_code(night)


def _judge(end: _End, results: Path, suite: str, strict: bool) -> None:
    """What got worse, told on standard output and in the findings."""
    from ..report.regress import finding_line, format_judgement, summary_line
    from .regress import judge

    judgement = end.judged = judge(results, _warn, suite=suite)
    if not end.as_json:
        click.echo(format_judgement(judgement), nl=False)
    end.findings.append(summary_line(judgement))
    for finding in judgement.regressions:
        end.findings += [finding_line(finding), *(f"    {sentence}" for sentence in finding.explanation)]
    if judgement.exit_code != TOO_LITTLE or strict:
        end.found(judgement.exit_code)


def _report(end: _End, results: Path, suite: str) -> None:
    """results/report.html, of this suite's nights."""
    from ..store import replace_file
    from .report import collect, make_page

    path = results / "report.html"
    replace_file(path, make_page(collect(results, _warn, suite=suite)).encode("utf-8", "replace"))
    end.say(f"report   {path}")


def _prune(end: _End, results: Path, suite: Suite) -> None:
    """What is older than the nights that the suite keeps, and than what its regressions are held against."""
    from ..core.regression import Kind
    from ..prune import find_old_nights, remove

    if suite.keep_nights is None:
        return
    if end.judged is None:
        end.say("pruned   nothing: what must stay is not known before the nights are judged")
        return
    since: dict[bool, str] = {}
    for finding in end.judged.of(Kind.REGRESSION):
        kind, night = finding.cell.simulated, finding.since or ""
        since[kind] = min(since.get(kind, night), night)
    old = find_old_nights(results, suite.name, suite.keep_nights, end.writer.night.night, since, _warn)
    gone = remove(results, old, _warn)
    if gone:
        end.say(f"pruned   {len(gone)} file{'' if len(gone) == 1 else 's'}")


def _warn(text: str) -> None:
    click.echo(f"trexbench: {text}", err=True)


def _write_gauges(path: Path, night: Night, results: Path, code: int) -> None:
    from ..notify import textfile, write_textfile

    write_textfile(path, textfile(night, list(_rows(night, results)), code))


def _rows(night: Night, results: Path) -> list[RunRow]:
    """Of the night's complete runs; those that cannot be read are told by the index already."""
    from ..core.history import row_of
    from ..core.night import State
    from ..store import load_run

    found = []
    for cell in night.cells:
        if cell.state is State.DONE and cell.path is not None:
            try:
                found.append(row_of(load_run(results / cell.path), cell.path))
            except StoreError as error:
                _warn(" ".join(str(error).split()))
    return found


def _tell(url: str, night: Night, findings: Sequence[str]) -> None:
    """A chat server that is away does not make the night a bad one."""
    from ..notify import post, summary

    try:
        post(url, summary(night, findings))
    except BenchError as error:
        _warn(" ".join(str(error).split()))
