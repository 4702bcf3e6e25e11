"""A night: a suite's cells, session by session, each written down before and after it is measured."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..core.errors import BenchError, DutLost, GeneratorError, LabError, StoreError, TesterBusy
from ..core.night import Attempt, CellRecord, Night, State
from ..core.ports import Sink
from ..core.result import RunResult
from ..core.units import format_duration, format_pps, format_share
from ..lab.net import returning
from ..nights import NightWriter
from ..runner import Interrupted
from .measure import Bench, bench
from .process import signals_as_exceptions
from .request import Request
from .session import Desk
from .suite_jobs import Job, failed_attempt, now, sessions

RETRIED = (GeneratorError, TesterBusy, LabError, DutLost)
"""The tester's or the connection's fault: worth a second try. What a DUT answers, it would answer again."""


OpenBench = Callable[[Request, Callable[[str], None]], AbstractContextManager[Bench]]


@dataclass
class NightRun:
    """Carries a night out. say: gets the progress; retry_after_s: pause before a second try.

    The night is on disk before and after each cell, so that whoever is killed loses the one in flight.
    """

    jobs: Sequence[Job]
    writer: NightWriter
    results: Path
    say: Callable[[str], None]
    quiet: bool = False
    retry_after_s: float = 10.0
    open_bench: OpenBench = bench
    _tries: dict[int, int] = field(default_factory=dict)
    _expected_s: float = 0.0
    _took_s: float = 0.0

    def go(self) -> Night:
        """All cells that are left. Interrupted, or StoreError where the night cannot be kept, end it before its end."""
        try:
            with signals_as_exceptions():
                for places in sessions(self.jobs, self.writer.night.left):
                    self._session(places)
        except (Interrupted, KeyboardInterrupt) as error:
            self.writer.write(replace(self.writer.night, error=str(error) or "interrupted"))
            raise
        self.writer.write(replace(self.writer.night, finished=now(), error=_nothing(self.writer.night)))
        return self.writer.night

    def _session(self, places: Sequence[int]) -> None:
        """Cells of one session, which is opened anew after every failure."""
        waiting = deque(places)
        while waiting:
            opened, again = False, False
            failure: BenchError | None = None
            try:
                with _own_place(self.jobs[waiting[0]].request), self._bench(waiting[0]) as there:
                    opened = True
                    again = self._cells(there, waiting)
            except StoreError:
                raise
            except Exception as error:
                failure = as_bench_error(error)
            if failure is not None and opened:
                self.say(f"  the session did not end as it should: {failure}")
            elif failure is not None:
                again = self._not_opened(failure, waiting)
            if again:
                self.say(f"  a second try in {format_duration(self._pause_s)}")
                time.sleep(self._pause_s)

    def _bench(self, at: int) -> AbstractContextManager[Bench]:
        self._announce(at)
        return self.open_bench(self.jobs[at].request, (lambda _: None) if self._in_a_log else self.say)

    def _cells(self, there: Bench, waiting: deque[int]) -> bool:
        """Measure until something fails; whether that is worth a second try, for which the cell is left waiting."""
        state = State.DONE
        while waiting and state is State.DONE:
            state = self._measure(there, waiting[0])
            if state is not State.WAITING:
                waiting.popleft()
            if waiting and state is State.DONE:
                self._announce(waiting[0])
        return state is State.WAITING

    def _not_opened(self, failure: BenchError, waiting: deque[int]) -> bool:
        """The session's cells fail with it, or are tried once more; whether they are."""
        self.say(f"  {_one_line(failure)}")
        again = self._worth_it(waiting[0], failure)
        state, night = State.WAITING if again else State.FAILED, self.writer.night
        for at in waiting:
            cell = night.cells[at]
            attempts = (*cell.attempts, failed_attempt(failure, now()))
            night = night.with_cell(at, replace(cell, state=state, attempts=attempts))
        self.writer.write(night)
        if not again:
            waiting.clear()
        return again

    def _worth_it(self, at: int, failure: BaseException) -> bool:
        self._tries[at] = self._tries.get(at, 0) + 1
        return isinstance(failure, RETRIED) and self._tries[at] == 1

    def _measure(self, there: Bench, at: int) -> State:
        """One cell: done, failed, or waiting for a second try. The night is written before, meanwhile and after."""
        job, begun = self.jobs[at], time.monotonic()
        keeping = _Keeping(self, at, Desk({"results": self.results, "quiet": self._in_a_log}, job.request.speedup))
        self._put(at, State.RUNNING, (*self._cell(at).attempts, Attempt(now())))
        try:
            with keeping.desk:
                result, outcome = there.measure(keeping, job.request)
            failure: BaseException | None = outcome.error or keeping.misplaced()
        except (Exception, Interrupted, KeyboardInterrupt) as error:
            failure = error
        if failure is not None:
            return self._failed(at, failure)
        self._expected_s += job.expected_s
        self._took_s += time.monotonic() - begun
        self._put(at, State.DONE, self._cell(at).attempts)
        self.say(f"  {_figure(result)}  {keeping.desk.kept}")
        return State.DONE

    def _failed(self, at: int, failure: BaseException) -> State:
        """Note why; an interruption is raised again, and its cell waits for the night to be resumed."""
        ended = isinstance(failure, (Interrupted, KeyboardInterrupt))
        if not ended:
            failure = as_bench_error(failure)
        state = State.WAITING if ended or self._worth_it(at, failure) else State.FAILED
        *before, last = self._cell(at).attempts
        self._put(at, state, (*before, failed_attempt(failure, last.started, last.path)))
        if ended:
            raise failure
        self.say(f"  {_one_line(failure)}")
        return state

    def note_path(self, at: int, path: str) -> None:
        """Where the cell's document is, from the moment on at which there is one."""
        attempts = self._cell(at).attempts
        self._put(at, State.RUNNING, (*attempts[:-1], replace(attempts[-1], path=path)))

    def _cell(self, at: int) -> CellRecord:
        return self.writer.night.cells[at]

    def _put(self, at: int, state: State, attempts: tuple[Attempt, ...]) -> None:
        cell = replace(self._cell(at), state=state, attempts=attempts)
        self.writer.write(self.writer.night.with_cell(at, cell))

    def _announce(self, at: int) -> None:
        pace = self._took_s / self._expected_s if self._expected_s else 1.0
        left_s = pace * sum(self.jobs[place].expected_s for place in self.writer.night.left)
        about = f"cell {at + 1} of {len(self.jobs)}, {format_duration(left_s)} left"
        self.say(f"{about}: {self.jobs[at].cell}")

    @property
    def _pause_s(self) -> float:
        return 0.0 if self.jobs[0].request.sim else self.retry_after_s

    @property
    def _in_a_log(self) -> bool:
        """There nobody needs a line every five seconds of the night."""
        return self.quiet or not sys.stderr.isatty()


@dataclass
class _Keeping:
    """The desk, and word to the night of where its document is (a measure.Recorder)."""

    night: NightRun
    at: int
    desk: Desk

    def begin(self, result: RunResult) -> Sink:
        sink = self.desk.begin(result)
        if (path := self._below()) is not None:
            self.night.note_path(self.at, path)
        return sink

    def end(self, result: RunResult) -> None:
        self.desk.end(result)

    def misplaced(self) -> StoreError | None:
        """Why the document is not where results are looked for, if it is not."""
        if self._below() is not None:
            return None
        return StoreError(f"{self.night.results} could not be written", f"the result is {self.desk.kept}")

    def _below(self) -> str | None:
        kept, results = self.desk.kept, self.night.results
        return kept.relative_to(results).as_posix() if kept is not None and kept.is_relative_to(results) else None


@contextlib.contextmanager
def _own_place(request: Request) -> Iterator[None]:
    """A lab moves its user into a namespace, onto a core, ahead of others; back from there for the next session."""
    if not request.uses_lab:
        yield
        return
    cpus, policy, priority = os.sched_getaffinity(0), os.sched_getscheduler(0), os.sched_getparam(0)
    with returning():
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, cpus)
                os.sched_setscheduler(0, policy, priority)


def _nothing(night: Night) -> str | None:
    """Why there is no figure of the whole night, if there is none."""
    if not night.cells or len(night.failed) < len(night.cells):
        return None
    return f"nothing was measured: {night.cells[0].attempts[-1].error}"


def night_code(night: Night) -> int:
    """Exit code: of the first cell that failed."""
    return next((cell.attempts[-1].code or 1 for cell in night.failed if cell.attempts), 0)


def as_bench_error(error: BaseException) -> BenchError:
    """What nobody foresaw, as an error of ours; our own as they are."""
    if isinstance(error, BenchError):
        return error
    found = BenchError(f"{type(error).__name__}: {error}", "this is a defect of trexbench; please report it")
    found.__cause__ = error
    return found


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _figure(result: RunResult) -> str:
    total = result.analysis.total_pps
    at_least = ">= " if result.analysis.at_least else ""
    return f"{at_least}{format_pps(total)}, {format_share(result.plan.line_share(total))} of line rate"
