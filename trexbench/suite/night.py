"""A suite's night from start to end: read, locked, started or resumed, measured."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..config.catalogue import SUITES
from ..config.lookup import read_suite
from ..config.suite import AS_IT_IS, Instead, Suite
from ..config.twin import TWIN_REMEDY
from ..core.errors import ConfigError, StoreError
from ..core.history.night import Night
from ..results.nights import NightWriter, is_sent
from ..results.remote import has_parquet
from ..session.keep import Output
from ..session.options import Setup
from ..session.process import utc_now
from .jobs import Job, begin_night, find_unfinished, labelled, make_jobs, resumed
from .run import NightRun
from .underway import suite_lock

MOST_NAMED = 3
"""More cells that failed for one reason are counted, not named."""


@dataclass(frozen=True)
class NightOptions:
    """Options of a night. results: where runs and nights are kept; output: of each run, except ``results``.

    say: gets a line or two per cell. date: of the night, None: today (UTC). retry_after_s: pause before a second try.
    instead: of DUTs, variants and times of the suite's own. by_fleet: measures the cells that are left; None: this
    process does.
    """

    results: Path
    setup: Setup
    output: Output
    say: Callable[[str], None]
    date: str | None = None
    retry_after_s: float = 10.0
    instead: Instead = AS_IT_IS
    by_fleet: Callable[[Sequence[Job], NightWriter, NightOptions], Night] | None = None

    def __post_init__(self) -> None:
        """ConfigError for a measurement of the future; tomorrow is where the day began before UTC's."""
        tomorrow = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86400))
        if self.date is not None and self.date > tomorrow and not self.setup.sim:
            raise ConfigError(f"--date {self.date} lies in the future", "name the day on which the night began")

    @property
    def night(self) -> str:
        return self.date or utc_now()[:10]


def read_jobs(
    name: str, setup: Setup, only: Sequence[str] = (), instead: Instead = AS_IT_IS
) -> tuple[Suite, list[Job]]:
    """The suite and its runs; ConfigError for all that can be checked before anything is opened."""
    found = read_suite(SUITES.find(name), setup.configs_dir, instead)
    return found, make_jobs(found, setup, only)


def check_twins(jobs: Sequence[Job]) -> None:
    """ConfigError where a DUT that is to be simulated has no twin."""
    for dut in (job.request.dut for job in jobs if job.request.sim):
        if dut.twin is None:
            raise ConfigError(f"{dut.file} describes no twin", TWIN_REMEDY)


def run_suite(name: str, options: NightOptions, only: Sequence[str] = (), resume: bool = False) -> NightWriter:
    """Measure every cell; one that fails is a warning, and noted in the night. TesterBusy where the suite runs already.

    resume: measure the cells that are left of the suite's latest unfinished night, or of that of the options' date.
    """
    suite, jobs = read_jobs(name, options.setup, only, options.instead)
    with suite_lock(suite.name, options.results):
        if resume:
            found = find_unfinished(options.results, suite.name, options.output.warn)
            unfinished = [one for one in found if options.date in (None, one[1].night)]
            if not unfinished:
                dated = f" with the date {options.date}" if options.date else ""
                raise ConfigError(
                    f"no night of {suite.name}{dated} in {options.results} is unfinished",
                    f"leave out --resume{' or --date' if found else ''}",
                )
            writer = resumed(options.results, *unfinished[-1], jobs)
        else:
            writer = begin_night(options.results, suite.name, options.night, jobs)
        measure_night(suite.name, jobs, writer, options)
        keep_rows(writer, options)
    return writer


def measure_night(suite: str, jobs: Sequence[Job], writer: NightWriter, options: NightOptions) -> None:
    """Measure the cells that are left of the night, and say how many were measured and which failed."""
    options.say(f"night    {writer.path}")
    output = replace(options.output, results=options.results)
    if writer.night.finished is not None:  # it is only not in the store yet
        night = writer.night
    elif options.by_fleet is not None:
        night = options.by_fleet(jobs, writer, options)
    else:
        runs = labelled(jobs, suite, writer)
        night = NightRun(runs, writer, output, options.say, options.retry_after_s).go()
    if StoreError.exit_code not in (one.code for cell in night.failed for one in cell.attempts):
        shutil.rmtree(writer.scratch, ignore_errors=True)  # else it may have what could not be kept elsewhere
    for reason, cells in night.failures.items():
        every = "all " * (len(cells) == len(night.cells))
        names = f"{every}{len(cells)} cells" if len(cells) > MOST_NAMED else ", ".join(map(str, cells))
        output.warn(f"failed   {names}: {reason}")
    options.say(f"night    {night.measured}")


def keep_judged(writer: NightWriter, night: Night, options: NightOptions) -> None:
    """Write the night with its judgement, also into the store if it is there."""
    is_kept = is_sent(writer.path)
    writer.write(night)
    if is_kept:
        from ..results.published import keep_judgement

        keep_judgement(options.results, writer.path)


def keep_rows(writer: NightWriter, options: NightOptions) -> None:
    """Keep the rows of a night that has ended where that can be done, and put it into the store, if there is one."""
    if has_parquet():
        from ..results.published import keep_night

        keep_night(options.results, writer.path, options.output.warn)
