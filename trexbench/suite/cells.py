"""Measures a night: a suite's cells, session by session; the night's file is written before and after each cell."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..core.errors import DutChanged, DutLost, GeneratorError, LabError, StoreError, TesterBusy, as_bench_error
from ..core.history.night import Attempt, CellState, Night
from ..core.units import format_duration
from ..results.nights import NightWriter
from ..session.keep import Output
from ..session.loop import Interrupted, as_error
from ..session.process import signals_as_exceptions, utc_now
from .jobs import Job, sessions

RETRIED = (GeneratorError, TesterBusy, LabError, DutLost, DutChanged)
"""Errors worth a second try: faults of the tester or the connection, and a changed DUT, which is configured anew."""


@dataclass
class NightRun:
    """Measures a night's cells. The night is on disk before and after each, so that a kill costs only one cell."""

    jobs: Sequence[Job]
    writer: NightWriter
    output: Output
    """Output of each cell's run, with ``results``."""
    say: Callable[[str], None]
    """Gets a line or two per cell."""
    retry_after_s: float = 10.0
    """Pause before a second try."""
    _tried: set[int] = field(default_factory=set)
    _reason: str | None = None
    """Error of the last try; None if it succeeded."""
    _repeats: bool = False
    """True if the last try failed like the one before."""
    _held: str | None = None
    """The line that announces a cell, held back after a failure so that like failures are reported once."""

    def go(self) -> Night:
        """Measure all remaining cells. Interrupted, or StoreError where the night cannot be kept, ends it early."""
        try:
            with signals_as_exceptions():
                for places in sessions(self.jobs, self.writer.night.left):
                    self._measure_session(deque(places))
        except (Interrupted, KeyboardInterrupt) as error:
            self.writer.write(replace(self.writer.night, error=str(as_error(error))))
            raise
        self.writer.write(replace(self.writer.night, finished=utc_now(), error=nothing_measured(self.writer.night)))
        return self.writer.night

    def _measure_session(self, waiting: deque[int]) -> None:
        """Measure the cells of one session, which is opened again after every failure."""
        while waiting:
            self._announce(waiting[0])
            opened = retry = False
            try:
                job = self.jobs[waiting[0]]
                with job.load.open(job.request, self.output.say) as session:
                    opened = True
                    retry = self._measure_cells(session, waiting)
            except Exception as error:
                if opened and isinstance(error, StoreError):  # the night cannot be kept
                    raise
                if opened:
                    self.say(f"  closing the session failed: {as_bench_error(error)}")
                else:
                    retry = self._note_failure(waiting, len(waiting), error)
            if retry:
                pause_s = 0.0 if self.jobs[0].request.sim else self.retry_after_s
                if not self._repeats:
                    self.say(f"  a second try in {format_duration(pause_s)}")
                time.sleep(pause_s)

    def _measure_cells(self, session: Any, waiting: deque[int]) -> bool:
        """Measure until a cell fails; return True if that one stays in ``waiting`` for a second try."""
        while waiting:
            failure = self._measure_cell(session, waiting[0])
            if failure is not None:
                return self._note_failure(waiting, 1, failure)
            waiting.popleft()
            if waiting:
                self._announce(waiting[0])
        return False

    def _measure_cell(self, session: Any, at: int) -> BaseException | None:
        """Measure one cell and return its error, if any. The night is written before, during and after it."""
        job, begun = self.jobs[at], time.monotonic()

        def note_path(path: Path) -> None:
            self._release()
            if (place := self._below_results(path)) is not None:
                *before, last = self.writer.night.cells[at].attempts
                self._write_cell(at, CellState.RUNNING, *before, replace(last, path=place))

        self._write_cell(at, CellState.RUNNING, *self.writer.night.cells[at].attempts, Attempt(utc_now()))
        try:
            done = job.measure(session, self.output, note_path)
        except (Exception, Interrupted, KeyboardInterrupt) as error:
            return error
        if (failure := done.error or done.result.no_answer) is not None:
            return failure
        if self._below_results(done.path) is None:
            return StoreError(f"{self.output.results} could not be written", f"the result is in {done.path}")
        *before, last = self.writer.night.cells[at].attempts
        self._write_cell(at, CellState.DONE, *before, replace(last, took_s=round(time.monotonic() - begun, 3)))
        self._release()
        self._reason = None
        self.say(f"  {job.answer(done.result)}  {done.path}")
        return None

    def _note_failure(self, waiting: deque[int], count: int, failure: BaseException) -> bool:
        """Note why the first ``count`` cells failed; return True if they stay in ``waiting`` for a second try.

        An interruption is raised again, and its cell waits for the night to be resumed.
        """
        error, interrupted = as_error(failure), isinstance(failure, (Interrupted, KeyboardInterrupt))
        retry = interrupted or (isinstance(error, RETRIED) and waiting[0] not in self._tried)
        self._tried.add(waiting[0])
        night, state = self.writer.night, CellState.WAITING if retry else CellState.FAILED
        for at in list(waiting)[:count]:
            cell = night.cells[at]
            *before, last = cell.attempts if cell.state is CellState.RUNNING else (*cell.attempts, Attempt(utc_now()))
            attempts = (*before, replace(last, error=str(error), code=error.exit_code))
            night = night.with_cell(at, replace(cell, state=state, attempts=attempts))
            if not retry:
                waiting.popleft()
        self.writer.write(night)
        if interrupted:
            raise failure
        self._repeats, self._reason = str(error) == self._reason, str(error)
        if not self._repeats:
            self._release()
            self.say(f"  {error}")
        elif self._held is None:
            self.say("  failed for the same reason")
        self._held = None
        return retry

    def _below_results(self, path: Path | None) -> str | None:
        """The path relative to the results; None for one elsewhere, where nobody looks for documents."""
        results = self.output.results
        if path is None or results is None or not path.is_relative_to(results):
            return None
        return path.relative_to(results).as_posix()

    def _write_cell(self, at: int, state: CellState, *attempts: Attempt) -> None:
        night = self.writer.night
        self.writer.write(night.with_cell(at, replace(night.cells[at], state=state, attempts=attempts)))

    def _announce(self, at: int) -> None:
        left_s = self.writer.night.left_s(time.time())
        left = f", {format_duration(left_s)} left" if left_s is not None else ""
        self._held = f"cell {at + 1} of {len(self.jobs)}{left}: {self.jobs[at].cell}"
        if self._reason is None:
            self._release()

    def _release(self) -> None:
        if self._held is not None:
            self.say(self._held)
        self._held = None


def nothing_measured(night: Night) -> str | None:
    """Say why not one cell was measured; None if any was."""
    if not night.cells or len(night.failed) < len(night.cells):
        return None
    return f"nothing was measured: {night.cells[0].attempts[-1].error}"


def night_code(night: Night) -> int:
    """The night's exit code: that of the first cell that failed."""
    return next((cell.attempts[-1].code or 1 for cell in night.failed if cell.attempts), 0)
