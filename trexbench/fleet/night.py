"""A night by a fleet: every cell a task of Dask, of each DUT one at a time; the night's file is kept current."""

from __future__ import annotations

import contextlib
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.fleet import Fleet
from ..core.errors import BenchError, TesterBusy, as_bench_error
from ..core.history.night import Attempt, CellState, Night
from ..results.nights import NightWriter
from ..results.store import make_directory
from ..session.process import signals_as_exceptions, utc_now
from ..session.run import Interrupted, as_error
from ..suite.jobs import Job
from ..suite.night import NightOptions, read_jobs
from ..suite.run import nothing_measured
from .cluster import DEATHS, as_one_line, keys_by_tester, needs_of, on_this_machine
from .task import CellOrder, CellOutcome, digest_of, measure_cell, place_of, plain

if TYPE_CHECKING:
    from distributed import Client, Future

WRITE_EVERY_S, WRITE_SHARE = 1.0, 20
"""Time between two writes of the night's file: at least the first, and so many times what the last write took.

A cell's document is in the store by then, where it is looked for first.
"""
LOOK_EVERY_S = 1.0
MISSING_LEASES = 4.0
"""A DUT that no tester reaches for so many lengths of a lease is given up."""


@dataclass
class FleetNight:
    """Measures a night's cells by testers. suite: its name or file, as given; work: the task; opened: the testers."""

    suite: str
    fleet: Fleet
    work: Callable[[Mapping[str, Any]], dict[str, Any]] = measure_cell
    opened: Callable[[Mapping[str, Sequence[str]], float, Path], AbstractContextManager[Client]] = on_this_machine
    _ended: queue.SimpleQueue[Future] = field(default_factory=queue.SimpleQueue)
    _waiting: dict[str, deque[int]] = field(default_factory=dict)
    _running: dict[Any, tuple[int, str]] = field(default_factory=dict)
    """Future's key -> its cell, and when it was given to Dask."""
    _able: dict[str, set[str]] = field(default_factory=dict)
    """DUT -> testers that reach it."""
    _next_write_s: float = 0.0
    _done: int = 0

    def __call__(self, jobs: Sequence[Job], writer: NightWriter, options: NightOptions) -> Night:
        """Measure the cells that are left. Interrupted ends it early: the same command with --resume goes on."""
        self._jobs, self._writer, self._options = jobs, writer, options
        self._reach = self.fleet.reach(job.cell.dut for job in jobs)
        for dut in {job.cell.dut for job in jobs}:
            self._able[dut] = {name for name, duts in self._reach.items() if dut in duts}
        orders, self._done = self._orders(), len(jobs) - len(writer.night.left)
        for at in writer.night.left:
            self._waiting.setdefault(jobs[at].cell.dut, deque()).append(at)
        try:
            scratch = make_directory(writer.scratch)
            with signals_as_exceptions(), self.opened(self._reach, self.fleet.lease_s, scratch) as client:
                self._measure(client, orders)
        except (BenchError, Interrupted, KeyboardInterrupt) as error:
            writer.write(replace(writer.night, error=str(as_error(error))))
            raise
        writer.write(replace(writer.night, finished=utc_now(), error=nothing_measured(writer.night)))
        return writer.night

    def _orders(self) -> list[CellOrder]:
        options, writer = self._options, self._writer
        found, every = read_jobs(self.suite, options.setup, (), options.instead)
        name = str(found.file.resolve())
        common = CellOrder(
            name, found.name, plain(options.setup), plain_instead(options), "", 0, writer.night.night, writer.name,
            str(options.results.resolve()), "", digest_of(found, options.setup), self.fleet.lease_s,
        )  # fmt: skip
        started = writer.night.started
        numbers = {str(job.cell): number for number, job in enumerate(every)}
        return [
            replace(common, cell=name, number=numbers[name], place=place_of(started, writer.name, job.cell))
            for name, job in ((str(job.cell), job) for job in self._jobs)
        ]

    def _measure(self, client: Client, orders: Sequence[CellOrder]) -> None:
        futures: dict[str, Future] = {}
        missing_s = dict.fromkeys(self._waiting, time.monotonic())
        for dut in self._waiting:
            if not self._able[dut]:
                self._give_up(dut, utc_now(), f"no tester has links to all ports of {dut}")
        while futures or any(self._waiting.values()):
            with as_one_line():
                keys = client.run_on_scheduler(keys_by_tester)
            self._give_up_unreached(keys, futures, missing_s)
            for dut in self._startable(keys, futures):
                at = self._waiting[dut].popleft()
                future = client.submit(
                    self.work, asdict(orders[at]), key=f"{orders[at].suite_name}/{orders[at].night}/{orders[at].cell}",
                    resources=needs_of(dut), retries=1, pure=False,
                )  # fmt: skip
                futures[dut], self._running[future.key] = future, (at, utc_now())
                future.add_done_callback(self._ended.put)
            with contextlib.suppress(queue.Empty):
                future = self._ended.get(timeout=LOOK_EVERY_S)
                while True:  # all that ended by now
                    if future.key in self._running:
                        at, since = self._running.pop(future.key)
                        del futures[self._jobs[at].cell.dut]
                        self._note(at, since, _outcome_of(future))
                    future = self._ended.get_nowait()

    def _startable(self, keys: Mapping[str, Sequence[Any]], futures: Mapping[str, Future]) -> Iterator[str]:
        """Yield DUTs of which a cell surely gets an idle tester, those with the most cells left first.

        A cell that waits at a tester would count as one that it died of. keys: of the cells at each tester.
        """
        placed = {key for its_keys in keys.values() for key in its_keys}
        free = {name for name, its_keys in keys.items() if not its_keys}
        unplaced = [self._jobs[at].cell.dut for key, (at, _) in self._running.items() if key not in placed]
        left = [dut for dut, cells in self._waiting.items() if cells and dut not in futures]
        for dut in sorted(left, key=lambda dut: -len(self._waiting[dut])):
            idle = free & self._able[dut]
            if len(idle) > sum(1 for other in unplaced if idle & self._able[other]):
                unplaced.append(dut)
                yield dut

    def _give_up(self, dut: str, since: str, error: str) -> None:
        for at in self._waiting[dut]:
            self._note(at, since, CellOutcome("", error=error, code=TesterBusy.exit_code))
        self._waiting[dut].clear()

    def _give_up_unreached(self, there: Iterable[str], futures: dict[str, Future], missing_s: dict[str, float]) -> None:
        """Note the cells of DUTs that no tester has reached for long, and wait for them no more."""
        now_s = time.monotonic()
        for dut in self._waiting:
            able = self._able[dut]
            if not able.isdisjoint(there):
                missing_s[dut] = now_s
            elif now_s - missing_s[dut] > MISSING_LEASES * self.fleet.lease_s:
                since = utc_now()
                if (future := futures.pop(dut, None)) is not None:
                    at, since = self._running.pop(future.key)
                    future.cancel()
                    self._waiting[dut].appendleft(at)
                self._give_up(dut, since, f"no tester that reaches {dut} is there ({', '.join(sorted(able))})")

    def _note(self, at: int, since: str, outcome: CellOutcome) -> None:
        night, job = self._writer.night, self._jobs[at]
        state = CellState.DONE if outcome.error is None else CellState.FAILED
        attempt = Attempt(since, outcome.place, outcome.error, outcome.code)
        record = night.cells[at]
        night = night.with_cell(at, replace(record, state=state, attempts=(*record.attempts, attempt)))
        self._done += 1
        words = outcome.error or " ".join(filter(None, (outcome.answer or "measured before", outcome.place)))
        by = f" by {outcome.tester}" if outcome.tester else ""
        self._options.say(f"{self._done} of {len(night.cells)}{by}: {job.cell}: {words}")
        if (begun_s := time.monotonic()) > self._next_write_s:
            self._writer.write(night)
            took_s = time.monotonic() - begun_s
            self._next_write_s = begun_s + max(WRITE_EVERY_S, WRITE_SHARE * took_s)
        else:
            self._writer.night = night


def plain_instead(options: NightOptions) -> dict[str, Any]:
    instead = options.instead
    return {"dut": list(instead.dut), "variant": list(instead.variant), "time": instead.time}


def _outcome_of(future: Future) -> CellOutcome:
    if future.status == "finished":
        return CellOutcome(**future.result())
    if future.status == "cancelled":
        raise BenchError("the fleet's scheduler was lost", "the same command with --resume goes on")
    raised = future.exception()
    if type(raised).__name__ == "KilledWorker":
        return CellOutcome("", error=f"{DEATHS} testers died while they measured it", code=1)
    error = as_bench_error(raised)
    return CellOutcome("", error=str(error), code=error.exit_code)
