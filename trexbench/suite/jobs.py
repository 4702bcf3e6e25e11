"""A suite's cells as jobs, in the order in which they are run; nights of these jobs, begun and resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

from ..config.model import PlanDefaults
from ..config.suite import Suite
from ..config.suite import sessions as sessions_of
from ..core.errors import ConfigError, StoreError
from ..core.history.night import CellRecord, Night, State
from ..core.history.rows import Cell
from ..results.nights import NightWriter, find_nights
from ..results.store import load_run
from ..session.process import utc_now
from ..session.request import NIGHT_DEFAULTS, NIGHT_SPEEDUP, Case, Request, Setup, expected_s, make_request, merged

TWIN_PACE = 100.0
"""A twin computes about so many simulated seconds per second, whatever the speed-up."""


@dataclass(frozen=True)
class Job:
    """One cell and the run that fills it. cell.rx_queues: as the run's document will have them."""

    cell: Cell
    request: Request

    @property
    def expected_s(self) -> float:
        """In real seconds."""
        return expected_s(self.request) / min(self.request.pace, TWIN_PACE)


def make_jobs(suite: Suite, setup: Setup, only: Sequence[str] = ()) -> list[Job]:
    """Every cell's run; ConfigError for what cannot be measured. only: globs; cells that match none are left out."""
    jobs = [_job(cell, suite.plan, setup) for cell in suite.cells]
    chosen = [job for job in jobs if not only or any(fnmatchcase(str(job.cell), pattern) for pattern in only)]
    if not chosen:
        raise ConfigError(f"no cell of {suite.name} matches {', '.join(only)}", f"'{jobs[0].cell}' is one of its cells")
    for job in chosen:
        expected_s(job.request)
    return chosen


def _job(cell: Cell, plan: PlanDefaults, setup: Setup) -> Job:
    if setup.sim and setup.speedup is None:
        setup = replace(setup, speedup=NIGHT_SPEEDUP)
    case = Case(cell.dut, cell.mode, bidir=cell.bidir, rx_queues=cell.rx_queues)
    request = make_request(cell.kind, case, plan, setup)
    request = replace(request, wished=merged(plan, request.dut.plan, NIGHT_DEFAULTS))
    queues = request.queues if request.apply else request.rx_queues
    return Job(replace(cell, rx_queues=queues), request)


def sessions(jobs: Sequence[Job], places: Iterable[int]) -> list[list[int]]:
    """These places of the jobs, grouped by session: neighbours with the same DUT and queues share one.

    Each simulated run has a session of its own: its noise depends on seed, night and cell only, not on earlier runs.
    """
    left = list(places)
    if left and jobs[left[0]].request.sim:
        return [[at] for at in left]
    ahead = iter(left)
    return [[next(ahead) for _ in group] for group in sessions_of([jobs[at].cell for at in left])]


def labelled(jobs: Sequence[Job], suite: str, writer: NightWriter) -> list[Job]:
    """The jobs with the night's labels for their documents; each simulated one with a seed of its own."""
    return [replace(job, request=_of_night(job, suite, writer)) for job in jobs]


def _of_night(job: Job, suite: str, writer: NightWriter) -> Request:
    labels = {**job.request.labels, "suite": suite, "night": writer.night.night}
    if not job.request.sim:
        return replace(job.request, labels=labels)
    base = 1 if job.request.seed is None else job.request.seed
    mixed = sha256(f"{base} {writer.name} {job.cell}".encode()).digest()
    return replace(job.request, labels=labels, seed=int.from_bytes(mixed[:4], "big"))


def begin_night(results: Path, suite: str, date: str, jobs: Sequence[Job], error: str | None = None) -> NightWriter:
    """Start a new night of these cells and write its file."""
    night = Night(
        suite=suite,
        night=date,
        started=utc_now(),
        simulated=any(job.request.sim for job in jobs),
        cells=tuple(_record(job.cell) for job in jobs),
        finished=utc_now() if error is not None else None,
        error=error,
    )
    return NightWriter.begin(results, night)


def _record(cell: Cell) -> CellRecord:
    return CellRecord(cell.dut, cell.mode, cell.bidir, cell.rx_queues, kind=cell.kind)


def find_unfinished(results: Path, suite: str, warn: Callable[[str], None]) -> list[tuple[Path, Night]]:
    """Nights of the suite that have not finished, the latest last."""
    return [one for one in find_nights(results, warn) if one[1].suite == suite and one[1].finished is None]


def resumed(results: Path, path: Path, night: Night, jobs: Sequence[Job]) -> NightWriter:
    """The night, ready to be resumed; ConfigError where its cells are not those of these jobs."""
    if [str(cell) for cell in night.cells] != [str(job.cell) for job in jobs]:
        raise ConfigError(
            f"{path} was started with other cells", "repeat its --only, or start a new night without --resume"
        )
    if night.simulated != any(job.request.sim for job in jobs):
        kind = "simulated" if night.simulated else "measured"
        raise ConfigError(f"{path} is {kind}", "resume it as it was started, or start a new night without --resume")
    cells = tuple(_resumed_cell(results, cell) for cell in night.cells)
    writer = NightWriter(path, night)
    writer.write(replace(night, cells=cells, error=None))
    return writer


def _resumed_cell(results: Path, cell: CellRecord) -> CellRecord:
    """A cell in flight is measured again, unless its document was complete before the kill."""
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
