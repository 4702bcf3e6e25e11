"""A suite's cells -> requests, in the order in which they are run; what a night of them is to begin with."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..config.suite import Suite, SuiteCell
from ..config.suite import sessions as sessions_of
from ..core.errors import ConfigError, StoreError
from ..core.night import Attempt, CellRecord, Night, State
from ..nights import NightWriter, find_nights
from ..store import load_run
from .request import Request, expected_s
from .session import make_request

SPEEDUP = 10_000.0
TWIN_PACE = 100.0
"""So many seconds of a run about can a twin compute in one of ours, however fast the clock is told to pass."""


@dataclass(frozen=True)
class Job:
    """One cell and the run that fills it. cell.rx_queues: as the run's document will have them."""

    cell: SuiteCell
    request: Request

    @property
    def expected_s(self) -> float:
        """By our clock."""
        pace = min(self.request.speedup, TWIN_PACE) if self.request.sim else 1.0
        return expected_s(self.request) / pace

    @property
    def key(self) -> tuple[str, str, bool, int | None]:
        return key_of(self.cell)


def key_of(cell: SuiteCell | CellRecord) -> tuple[str, str, bool, int | None]:
    return cell.dut, cell.mode, cell.bidir, cell.rx_queues


def make_jobs(suite: Suite, options: Mapping[str, Any], only: Sequence[str] = ()) -> list[Job]:
    """Every cell's run; ConfigError for a wish that cannot be right. only: globs, of which each cell matches one."""
    jobs = [_job(cell, options) for cell in suite.cells]
    chosen = [job for job in jobs if not only or any(fnmatchcase(str(job.cell), pattern) for pattern in only)]
    if not chosen:
        raise ConfigError(f"no cell of {suite.name} is like {', '.join(only)}", f"'{jobs[0].cell}' is one of its cells")
    for job in chosen:
        expected_s(job.request)
    return chosen


def _job(cell: SuiteCell, options: Mapping[str, Any]) -> Job:
    asked = {
        **options,
        "dut": cell.dut,
        "mode": cell.mode,
        "bidir": cell.bidir,
        "rx_queues": cell.rx_queues,
        **dict.fromkeys(("profile", "tunables", "ports", "telemetry")),
        "speedup": options["speedup"] or (SPEEDUP if options["sim"] else None),
    }
    request = make_request("ramp", asked, cell.plan)
    queues = request.queues if request.apply else request.rx_queues
    return Job(replace(cell, rx_queues=queues), request)


def sessions(jobs: Sequence[Job], places: Iterable[int]) -> list[list[int]]:
    """These places of the jobs, those together that share a session. A simulated run has one of its own, so that its
    noise depends on seed, night and cell alone, whatever was measured before it or resumed."""
    left = list(places)
    if left and jobs[left[0]].request.sim:
        return [[at] for at in left]
    ahead = iter(left)
    return [[next(ahead) for _ in group] for group in sessions_of([jobs[at].cell for at in left])]


def labelled(jobs: Sequence[Job], suite: str, writer: NightWriter) -> list[Job]:
    """The jobs as runs of this night, which their documents name; a simulation has its own noise in each."""
    return [replace(job, request=_of_night(job, suite, writer)) for job in jobs]


def _of_night(job: Job, suite: str, writer: NightWriter) -> Request:
    labels = {**job.request.labels, "suite": suite, "night": writer.night.night}
    if not job.request.sim:
        return replace(job.request, labels=labels)
    base = 1 if job.request.seed is None else job.request.seed
    mixed = sha256(f"{base} {writer.name} {job.cell}".encode()).digest()
    return replace(job.request, labels=labels, seed=int.from_bytes(mixed[:4], "big"))


def begin_night(results: Path, suite: str, date: str, jobs: Sequence[Job], error: str | None = None) -> NightWriter:
    """A new night of these cells, written down."""
    night = Night(
        suite=suite,
        night=date,
        started=now(),
        simulated=any(job.request.sim for job in jobs),
        cells=tuple(CellRecord(*job.key) for job in jobs),
        finished=now() if error is not None else None,
        error=error,
    )
    return NightWriter.begin(results, night)


def find_unfinished(results: Path, suite: str, warn: Any) -> list[tuple[Path, Night]]:
    """Nights of the suite that did not come to their end, the latest last."""
    return [one for one in find_nights(results, warn) if one[1].suite == suite and one[1].finished is None]


def resumed(results: Path, path: Path, night: Night, jobs: Sequence[Job]) -> NightWriter:
    """The night as it is taken up again; ConfigError where it is not one of these cells."""
    if [key_of(cell) for cell in night.cells] != [job.key for job in jobs]:
        raise ConfigError(
            f"{path} has other cells than are to be measured now", "resume it as it was begun, or begin a new night"
        )
    if night.simulated != any(job.request.sim for job in jobs):
        kind = "simulated" if night.simulated else "measured"
        raise ConfigError(f"{path} is {kind}", "resume it as it was begun, or begin a new night")
    cells = tuple(_taken_up(results, cell) for cell in night.cells)
    writer = NightWriter(path, night)
    writer.write(replace(night, cells=cells, error=None))
    return writer


def _taken_up(results: Path, cell: CellRecord) -> CellRecord:
    """A cell in flight is measured again, unless its document was finished before its runner was killed."""
    if cell.state is not State.RUNNING:
        return cell
    if cell.path is not None and _complete(results / cell.path):
        return replace(cell, state=State.DONE)
    attempts = cell.attempts
    if attempts and attempts[-1].error is None:
        attempts = (*attempts[:-1], replace(attempts[-1], error="its runner was killed", code=137))
    return replace(cell, state=State.WAITING, attempts=attempts)


def _complete(path: Path) -> bool:
    try:
        return load_run(path).status.value == "complete"
    except StoreError:
        return False


def failed_attempt(error: BaseException, started: str, path: str | None = None) -> Attempt:
    code = getattr(error, "exit_code", 1)
    return Attempt(started, path, " ".join(str(error).split()), code if isinstance(code, int) and code else 1)


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def today() -> str:
    return now()[:10]
