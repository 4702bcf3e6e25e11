"""A suite's night, then steps that run even if one before failed: rows, judge, prune, report, gauges, webhook."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..config.catalogue import DUTS, SUITES
from ..config.lookup import load_dut
from ..config.suite import Suite
from ..core.errors import BenchError, ConfigError, StoreError, as_bench_error
from ..core.history.finding import Kind
from ..core.history.night import CellState, Night
from ..core.history.regression import Judgement
from ..core.history.rows import RunRow
from ..core.names import is_name
from ..core.units import seconds_of
from ..report.events import events_of_judgement, first_sentence
from ..results.nights import NightWriter, page_name
from ..results.prune import find_old_nights, remove
from ..results.remote import store_of
from ..results.store import load_rows, replace_file
from ..review.judge import judge
from ..review.report import collect, make_page
from ..session.process import utc_now
from .cells import night_code
from .jobs import Job, begin_night, find_unfinished, resumed
from .night import NightOptions, keep_judged, keep_rows, measure_night, read_jobs
from .notify import check_textfile, post, summary, textfile, webhook_url, write_textfile
from .table import published_lines
from .underway import suite_lock

RESUME_WITHIN_S = 12 * 3600.0
"""Age up to which an unfinished night is resumed; else a new one is started."""
REGRESSION, TOO_LITTLE = 3, 4


@dataclass
class Nightly:
    """The verb ``nightly``. After ``run`` there is ``night``, too."""

    name: str
    options: NightOptions
    strict: bool = False
    """True if too few nights to judge count as a failure."""
    prometheus: Path | None = None
    """File for gauges, if any."""
    only: Sequence[str] = ()
    """Patterns of the cells to measure; none means all."""
    judged: Judgement | None = field(default=None, init=False)
    verdict: str = field(default="", init=False)
    """The judgement in a sentence."""
    findings: list[str] = field(default_factory=list, init=False)
    """Lines for people."""
    code: int = field(default=0, init=False)
    """Exit code."""

    def run(self) -> None:
        """Carry out the whole night. ConfigError before anything runs; BenchError if the night itself cannot go on.

        A mistyped suite or cell is refused; a suite that cannot be measured makes a night with an error.
        """
        self._url = webhook_url()
        check_textfile(self.prometheus)
        suite, config_error, path = None, None, Path(self.name)
        file = SUITES.find(self.name)
        label = path.stem if path.suffix in SUITES.endings else path.name
        try:
            options = self.options
            suite, jobs = read_jobs(self.name, options.setup, self.only, options.instead, options.output.warn)
        except ConfigError as error:  # the history must show, too, that this night could not be measured
            if not is_name(label) or not os.path.isfile(file) or self._is_measurable():
                raise  # no reader would accept a night of such a name, or it is mistyped
            config_error = error
        date, sim = self.options.night, self.options.setup.sim
        with suite_lock(label, self.options.results):
            try:
                if suite is None:
                    self._writer = begin_night(self.options.results, label, date, (), str(config_error), sim)
                else:
                    self._writer = self._begin_or_resume(suite.name, jobs)
                    measure_night(suite.name, jobs, self._writer, self.options)
                self.night = self._writer.night
            except BenchError as error:  # a full disk, a fleet's scheduler: only the webhook can still report it
                self._notify(Night(label, date, utc_now(), sim, (), utc_now(), str(error)))
                raise
            self._follow_up(label, suite, config_error)

    def _is_measurable(self) -> bool:
        """Test whether the whole suite could be measured, without what the command line asks of it.

        A DUT's config that is wrong counts as the suite's own: the command line is not at fault.
        """
        configs_dir = self.options.setup.configs_dir
        with suppress(ConfigError):
            read_jobs(self.name, self.options.setup)
            known = DUTS.files(configs_dir)
            for name in self.options.instead.dut:
                if os.path.isfile(file := known.get(name, Path(name))):
                    load_dut(str(file), configs_dir)
            return True
        return False

    def _follow_up(self, label: str, suite: Suite | None, error: BenchError | None) -> None:
        if error is not None:
            self._note_failure(error)
        else:
            self._set_code(night_code(self.night))
        self.step("rows", lambda: keep_rows(self._writer, self.options))
        if error is None:
            self.step("judge", lambda: self._judge(label))
        if suite is not None:  # before the report, which links what stays
            self.step("prune", lambda: self._prune(suite))
        self.step("report", lambda: self._report(label))
        if (path := self.prometheus) is not None:
            self.step("gauges", lambda: write_textfile(path, textfile(self.night, self._rows(), self.code)))
        self._notify(self.night, sum(row.cell.emulated for row in self._rows()) if self._url is not None else 0)

    def step(self, what: str, do: Callable[[], None]) -> None:
        """Carry out a step; a failure is a warning and a finding, and stops no later step."""
        try:
            do()
        except Exception as raised:  # even a defect of trexbench costs its own step only
            error = as_bench_error(raised)
            self._note_failure(type(error)(f"{what}: {error}"))

    def _note_failure(self, error: BenchError) -> None:
        self.findings.append(str(error))
        self.options.output.warn(str(error))
        self._set_code(error.exit_code)

    def _set_code(self, code: int) -> None:
        """Keep the worse exit code: failures over regressions over too little data; of failures the first."""
        rank = {0: 0, TOO_LITTLE: 1, REGRESSION: 2}
        if rank.get(code, 3) > rank.get(self.code, 3):
            self.code = code

    def _begin_or_resume(self, suite: str, jobs: Sequence[Job]) -> NightWriter:
        """Resume a recent unfinished night, or that of the given date; else start a new one."""
        results, warn = self.options.results, self.options.output.warn
        for path, night in reversed(find_unfinished(results, suite, warn)):
            if night.finished is not None:  # put into the store with this one
                continue
            begun_s = seconds_of(night.started)
            fresh = begun_s is not None and time.time() - begun_s < RESUME_WITHIN_S
            if fresh if self.options.date is None else night.night == self.options.date:
                try:
                    return resumed(results, path, night, jobs)
                except ConfigError as error:
                    warn(f"not resumed: {error}")
        return begin_night(results, suite, self.options.night, jobs)

    def _judge(self, suite: str) -> None:
        judgement = self.judged = judge(self.options.results, self.options.output.warn, suite=suite)
        self.verdict = first_sentence(judgement)
        if judgement.now > self.night.night:
            late = f"the night of {judgement.now}, which is judged here, is later than this one ({self.night.night})"
            self.findings.append(f"{late}: check the clock, and remove runs with a wrong date")
            self.options.output.warn(self.findings[-1])
        for event in events_of_judgement(judgement):
            if event.alarms and event.group is not None and event.kind != "improvement":
                self.findings.append(event.headline)
                self.findings += [f"    {line}" for line in event.lines if event.group.section is Kind.REGRESSION]
        if judgement.exit_code != TOO_LITTLE or self.strict:
            self._set_code(judgement.exit_code)
        self.night = replace(self.night, judged=self.verdict)
        keep_judged(self._writer, self.night, self.options)

    def _report(self, suite: str) -> None:
        """Write results/report.html of this suite's nights, and the same page under the night's own name, to stay."""
        results, warn = self.options.results, self.options.output.warn
        report, own = collect(results, warn, suite=suite), page_name(self._writer.name)
        others = [page for page in report.pages if page[1] != own]
        report = replace(report, published=published_lines(report.table, results, warn), below="", pages=others)
        html = make_page(report).encode("utf-8", "replace")
        for path in (results / own, results / "report.html"):
            replace_file(path, html)
        self.options.say(f"report   {path}")

    def _prune(self, suite: Suite) -> None:
        """Remove nights that the suite does not keep, except those that regressions are compared with."""
        if suite.keep_nights is None:
            return
        if store_of(self.options.results) is not None:
            self.options.say("pruned   nothing: keep_nights is only for directories")
            return
        if self.judged is None:
            self.options.say("pruned   nothing: without a judgement it is not known what must stay")
            return
        results, warn = self.options.results, self.options.output.warn
        since: dict[bool, str] = {}
        for finding in self.judged.of(Kind.REGRESSION):
            simulated, night = finding.cell.simulated, finding.since
            since[simulated] = min(since.get(simulated, night), night)
        old = find_old_nights(results, suite.name, suite.keep_nights, self.night.night, since, warn)
        if removed := remove(results, old, warn):
            self.options.say(f"pruned   {len(removed)} file{'' if len(removed) == 1 else 's'}")

    def _rows(self) -> list[RunRow]:
        rows: list[RunRow] = []
        for cell in self.night.cells:
            if cell.state is CellState.DONE and cell.path is not None:
                try:
                    rows += load_rows(self.options.results / cell.path, cell.path)
                except StoreError as error:
                    self.options.output.warn(str(error))
        return rows

    def _notify(self, night: Night, emulated: int = 0) -> None:
        """Post a summary to the webhook, if there is one; a failure is a warning and not in the exit code."""
        if self._url is not None:
            try:
                post(self._url, summary(night, self.findings, self.verdict, emulated))
            except BenchError as error:
                self.options.output.warn(str(error))
