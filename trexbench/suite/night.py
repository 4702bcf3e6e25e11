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
from ..core.errors import ConfigError, StoreError
from ..core.history.levels import NEEDED_NIGHTS
from ..core.history.night import Night
from ..results.nights import NightWriter, is_sent
from ..results.remote import has_parquet
from ..session.keep import Output
from ..session.options import Setup
from ..session.process import utc_now
from .cells import NightRun
from .jobs import Job, begin_night, find_unfinished, labelled, make_jobs, resumed
from .underway import suite_lock

MOST_NAMED = 3
"""Cells that failed for one reason are named up to this number, else counted."""


@dataclass(frozen=True)
class NightOptions:
    """Options of a night."""

    results: Path
    setup: Setup
    output: Output
    """Output of each run, except its ``results``."""
    say: Callable[[str], None]
    """Gets a line or two per cell."""
    date: str | None = None
    """None: today (UTC)."""
    instead: Instead = AS_IT_IS
    """DUTs, variants and times in place of the suite's own."""
    by_fleet: Callable[[Sequence[Job], NightWriter, NightOptions], Night] | None = None
    """Measures the cells that are left; None: this process does."""

    def __post_init__(self) -> None:
        # East of Greenwich it is tomorrow's date already.
        tomorrow = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86400))
        if self.date is not None and self.date > tomorrow and not self.setup.sim:
            raise ConfigError(f"--date {self.date} lies in the future", "name the day on which the night began")

    @property
    def night(self) -> str:
        return self.date or utc_now()[:10]


def read_jobs(
    name: str,
    setup: Setup,
    only: Sequence[str] = (),
    instead: Instead = AS_IT_IS,
    warn: Callable[[str], None] = lambda _: None,
) -> tuple[Suite, list[Job]]:
    """Read the suite and make its runs; ConfigError for all that can be checked before anything is opened."""
    suite = read_suite(SUITES.find(name), setup.configs_dir, instead)
    if suite.keep_nights is not None and suite.keep_nights < NEEDED_NIGHTS:
        few = f"{suite.file}: keep_nights: no figure of {suite.keep_nights} nights can be judged"
        warn(f"{few}: keep {NEEDED_NIGHTS} at least")
    return suite, make_jobs(suite, setup, only)


def check_twins(jobs: Sequence[Job]) -> None:
    """ConfigError where a DUT that is to be simulated has no twin, or one that lacks its variant."""
    for job in jobs:
        if job.request.sim:
            job.load.find_twin(job.request)


def run_suite(name: str, options: NightOptions, only: Sequence[str] = (), resume: bool = False) -> NightWriter:
    """Measure every cell; one that fails is a warning, and noted in the night. TesterBusy where the suite runs already.

    resume: continue the suite's latest unfinished night, or that of the options' date.
    """
    suite, jobs = read_jobs(name, options.setup, only, options.instead, options.output.warn)
    with suite_lock(suite.name, options.results):
        if resume:
            unfinished = find_unfinished(options.results, suite.name, options.output.warn)
            dated = [(path, night) for path, night in unfinished if options.date in (None, night.night)]
            if not dated:
                date = f" with the date {options.date}" if options.date else ""
                raise ConfigError(
                    f"no night of {suite.name}{date} in {options.results} is unfinished",
                    f"leave out --resume{' or --date' if unfinished else ''}",
                )
            writer = resumed(options.results, *dated[-1], jobs)
        else:
            writer = begin_night(options.results, suite.name, options.night, jobs)
        measure_night(suite.name, jobs, writer, options)
        keep_rows(writer, options)
    return writer


def measure_night(suite: str, jobs: Sequence[Job], writer: NightWriter, options: NightOptions) -> None:
    """Measure the night's remaining cells, and say how many were measured and which failed."""
    options.say(f"night    {writer.path}")
    output = replace(options.output, results=options.results)
    if writer.night.finished is not None:  # only not in the store yet
        night = writer.night
    elif options.by_fleet is not None:
        night = options.by_fleet(jobs, writer, options)
    else:
        runs = labelled(jobs, suite, writer)
        night = NightRun(runs, writer, output, options.say).go()
    if StoreError.exit_code not in (attempt.code for cell in night.failed for attempt in cell.attempts):
        shutil.rmtree(writer.scratch, ignore_errors=True)  # else it may hold results that could not be kept elsewhere
    for reason, cells in night.failures.items():
        every = "all " * (len(cells) == len(night.cells))
        names = f"{every}{len(cells)} cells" if len(cells) > MOST_NAMED else ", ".join(map(str, cells))
        output.warn(f"failed   {names}: {reason}")
    options.say(f"night    {night.measured}")


def keep_judged(writer: NightWriter, night: Night, options: NightOptions) -> None:
    """Write the night with its judgement, into the store as well if the night is there."""
    is_kept = is_sent(writer.path)
    writer.write(night)
    if is_kept:
        from ..results.published import keep_judgement

        keep_judgement(options.results, writer.path)


def keep_rows(writer: NightWriter, options: NightOptions) -> None:
    """Keep the rows of a finished night if pyarrow is installed, and put it into the store if there is one."""
    if has_parquet():
        from ..results.published import keep_night

        keep_night(options.results, writer.path, options.output.warn)
