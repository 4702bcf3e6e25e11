"""A suite's cells as jobs, in the order in which they are run; nights of these jobs, begun and resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..config.option import NIGHT_SPEEDUP, of_options
from ..config.suite import METHODS, Suite
from ..config.suite import sessions as sessions_of
from ..core.errors import ConfigError, StoreError
from ..core.history.cell import TCP_KIND, Cell, is_chosen
from ..core.history.night import CellRecord, CellState, Night
from ..core.run import Run
from ..core.typed import Status
from ..report.run.summary import answer_words as _packets_answer
from ..report.tcp.text import answer_words
from ..results.nights import NightWriter, find_nights
from ..results.remote import address_of
from ..results.store import load_document
from ..session.keep import Begun, Measured, Output, Say
from ..session.measure import Session
from ..session.opening import open_session
from ..session.options import Case, Setup
from ..session.process import utc_now
from ..session.request import NIGHT_DEFAULTS, Request, expected_s, make_request, merged
from ..session.tcp.legs import open_bench, run_tcp
from ..session.tcp.options import TcpSetup, TcpWish
from ..session.tcp.request import TcpRequest, make_tcp_request
from ..session.tcp.request import expected_s as tcp_expected_s

TWIN_PACE = 100.0
"""Simulated seconds that a twin of packets computes per second at most, whatever the speed-up."""


@dataclass(frozen=True)
class SuiteLoad:
    """Functions by which suites measure a load. They get requests and runs of this load only."""

    request: Callable[[Suite, Cell, Setup], tuple[Cell, Any]]
    """Return the cell as its run's document will have it, and the run's request; ConfigError for a wrong one."""
    length_s: Callable[[Any], float]
    """Duration of the request's run by its own clock; ConfigError for what cannot be measured."""
    open: Callable[[Any, Say], AbstractContextManager[Any]]
    """Open the session that runs with the same DUT, variant and queues share."""
    measure: Callable[[Any, Any, Output, Begun], Measured[Any]]
    """Measure a request in such a session."""
    answer: Callable[[Any], str]
    """A run's figure, in words."""
    fastest: float = NIGHT_SPEEDUP
    """Simulated seconds per real second at most, whatever was asked for."""
    find_twin: Callable[[Any], object] = lambda request: request.dut.chosen_twin
    """Find what a simulated run of this request needs; ConfigError where the DUT's twin lacks it."""


@dataclass(frozen=True)
class Job:
    """One cell and the run that fills it."""

    cell: Cell
    request: Any
    """RunRequest of the load."""
    load: SuiteLoad

    @property
    def expected_s(self) -> float:
        """Expected duration in real seconds."""
        return self.load.length_s(self.request) / min(float(self.request.pace), self.load.fastest)

    def measure(self, session: Any, output: Output, begun: Begun) -> Measured[Run]:
        """Measure the cell in this session of its load."""
        return self.load.measure(session, self.request, output, begun)

    def answer(self, result: Run) -> str:
        """The result in one line, marked where the DUT's processor was emulated."""
        return f"{'emulated: ' * result.emulated}{self.load.answer(result)}"

    def with_labels(self, labels: Mapping[str, str], seed: int | None) -> Job:
        """Return the job with these labels in its document, and with this seed of its noise unless that is None."""
        request = replace(self.request, labels={**self.request.labels, **labels})
        return replace(self, request=request if seed is None else replace(request, seed=seed))


def make_jobs(suite: Suite, setup: Setup, only: Sequence[str] = ()) -> list[Job]:
    """Make each cell's run once; ConfigError for one that cannot be measured. only: globs that select the cells."""
    jobs = list({job.cell: job for job in (make_job(suite, cell, setup) for cell in suite.cells)}.values())
    chosen = [job for job in jobs if is_chosen(job.cell, only)]
    if not chosen:
        raise ConfigError(f"no cell of {suite.name} matches {', '.join(only)}", f"'{jobs[0].cell}' is one of its cells")
    for job in chosen:
        try:
            _ = job.expected_s
        except ConfigError as error:
            raise _not_measurable(job.cell, suite, error) from None
    return chosen


def _not_measurable(cell: Cell, suite: Suite, error: ConfigError) -> ConfigError:
    return ConfigError(f"{cell} of suite {suite.name} cannot be measured: {error}")


def make_job(suite: Suite, cell: Cell, setup: Setup) -> Job:
    """Make the run of one of the suite's cells."""
    load = LOADS[suite.method]
    return Job(*load.request(suite, cell, setup), load)


def _packets_request(suite: Suite, cell: Cell, setup: Setup) -> tuple[Cell, Request]:
    if setup.sim and setup.speedup is None:
        setup = replace(setup, speedup=NIGHT_SPEEDUP)
    case = Case(cell.dut, str(cell.mode), bidir=cell.bidir, rx_queues=cell.rx_queues, variant=cell.variant)
    request = make_request(cell.kind, case, suite.plan, setup)
    request = replace(request, wished=merged(suite.plan, request.dut.plan, NIGHT_DEFAULTS))
    return replace(cell, rx_queues=request.queues if request.apply else request.rx_queues), request


def _tcp_request(suite: Suite, cell: Cell, setup: Setup) -> tuple[Cell, TcpRequest]:
    wishes, mode = suite.tcp, cell.tcp
    assert mode is not None  # the suite's modes were checked
    mode = replace(mode, pinned=mode.pinned or wishes.pin)
    wish = of_options(
        TcpWish,
        wishes,
        dut=cell.dut,
        way=mode.way.value,
        ip=str(mode.version),
        streams=mode.streams,
        buffers=() if mode.buffer_bytes is None else (mode.buffer_bytes,),
        pin=mode.pinned,
        cc=() if wishes.cc is None else (wishes.cc,),
    )
    own = of_options(
        TcpSetup,
        setup,
        telemetry=mode.monitored,
        variant=cell.variant,
        tunnel=wishes.tunnel,
        wan=wishes.wan,
        speedup=(setup.speedup or NIGHT_SPEEDUP) if setup.sim else None,
    )
    try:
        request = make_tcp_request(wish, own)
    except ConfigError as error:
        raise _not_measurable(cell, suite, error) from None
    legs = tuple(replace(leg, congestion=mode.congestion) for leg in request.plan.legs)
    return replace(cell, mode=mode), replace(request, plan=replace(request.plan, legs=legs))


def _tcp_twin(request: TcpRequest) -> object:
    from ..session.tcp.simulate import SimulatedBench  # real runs do without the twin

    return SimulatedBench(request)


_PACKETS = SuiteLoad(_packets_request, expected_s, open_session, Session.measure, _packets_answer, TWIN_PACE)
LOADS: dict[str, SuiteLoad] = {
    **dict.fromkeys(METHODS, _PACKETS),
    TCP_KIND: SuiteLoad(_tcp_request, tcp_expected_s, open_bench, run_tcp, answer_words, find_twin=_tcp_twin),
}
"""Loads by the methods of suites."""


def sessions(jobs: Sequence[Job], places: Iterable[int]) -> list[list[int]]:
    """Group these indices of jobs by session: neighbours with the same DUT, variant and queues share one.

    Each simulated run has a session of its own: its noise depends on seed, night and cell only, not on earlier runs.
    """
    left = list(places)
    if left and jobs[left[0]].request.sim:
        return [[at] for at in left]
    ahead = iter(left)
    return [[next(ahead) for _ in group] for group in sessions_of([jobs[at].cell for at in left])]


def labelled(jobs: Sequence[Job], suite: str, writer: NightWriter) -> list[Job]:
    return [of_night(job, suite, writer.night.night, writer.name) for job in jobs]


def of_night(job: Job, suite: str, date: str, name: str) -> Job:
    """Return the job with the labels of the night of this date and name; a simulated one with a seed of its own."""
    base = 1 if job.request.seed is None else job.request.seed
    mixed = sha256(f"{base} {name} {job.cell}".encode()).digest()
    seed = int.from_bytes(mixed[:4], "big") if job.request.sim else None
    return job.with_labels({"suite": suite, "night": date}, seed)


def begin_night(
    results: Path, suite: str, date: str, jobs: Sequence[Job], error: str | None = None, sim: bool = False
) -> NightWriter:
    """Start a new night of these cells and write its file. sim: mark it as simulated even without cells."""
    night = Night(
        suite=suite,
        night=date,
        started=utc_now(),
        simulated=sim or any(job.request.sim for job in jobs),
        cells=tuple(CellRecord(job.cell, expected_s=job.expected_s) for job in jobs),
        finished=utc_now() if error is not None else None,
        error=error,
    )
    return NightWriter.begin(results, night)


def find_unfinished(results: Path, suite: str, warn: Callable[[str], None]) -> list[tuple[Path, Night]]:
    """Find the suite's nights that have not finished or are not in the mirrored store yet, oldest first."""
    begun, is_mirror = find_nights(results, warn, suite=suite, is_begun_here=True), address_of(results) is not None
    return [(path, night) for path, night in begun if night.suite == suite and (is_mirror or night.finished is None)]


def resumed(results: Path, path: Path, night: Night, jobs: Sequence[Job]) -> NightWriter:
    """Prepare the night to be resumed; ConfigError where its cells are not those of these jobs."""
    if [record.cell for record in night.cells] != [job.cell for job in jobs]:
        raise ConfigError(
            f"{path} was started with other cells", "repeat its --only, or start a new night without --resume"
        )
    if night.simulated != any(job.request.sim for job in jobs):
        kind = "simulated" if night.simulated else "measured"
        raise ConfigError(f"{path} is {kind}", "resume it as it was started, or start a new night without --resume")
    if night.finished is not None:
        return NightWriter(path, night)
    paired = zip(night.cells, jobs, strict=True)
    cells = tuple(replace(_resumed_cell(results, cell), expected_s=job.expected_s) for cell, job in paired)
    writer = NightWriter(path, night)
    writer.write(replace(night, cells=cells, error=None))
    return writer


def _resumed_cell(results: Path, cell: CellRecord) -> CellRecord:
    if cell.state is not CellState.RUNNING:
        return cell
    if cell.path is not None:
        with suppress(StoreError):  # its document may have been complete before the kill
            if load_document(results / cell.path).status is Status.COMPLETE:
                return replace(cell, state=CellState.DONE)
    attempts = cell.attempts
    if attempts and attempts[-1].error is None:
        attempts = (*attempts[:-1], replace(attempts[-1], error="its runner was killed", code=137))
    return replace(cell, state=CellState.WAITING, attempts=attempts)
