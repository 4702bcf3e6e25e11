"""A night by a fleet: every cell a task of Dask, of each DUT one at a time; the night's file is kept current."""

from __future__ import annotations

import queue
import shutil
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..config.fleet import Fleet
from ..core.errors import BenchError, TesterBusy, as_bench_error
from ..core.history.night import Attempt, CellState, Night
from ..results.nights import NightWriter
from ..session.process import signals_as_exceptions, utc_now
from ..session.run import Interrupted, as_error
from ..suite.jobs import Job
from ..suite.night import NightOptions, read_jobs
from ..suite.run import nothing_measured
from .cluster import needs_of, on_this_machine
from .task import FOLDER, CellOrder, CellOutcome, digest_of, measure_cell, place_of, plain

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
    opened: Callable[[Mapping[str, Sequence[str]], float], AbstractContextManager[Client]] = on_this_machine
    _ended: queue.SimpleQueue[Future] = field(default_factory=queue.SimpleQueue)
    _waiting: dict[str, deque[int]] = field(default_factory=dict)
    _running: dict[Any, tuple[int, str]] = field(default_factory=dict)
    """Future's key -> its cell, and when it was given to Dask."""
    _next_write_s: float = 0.0
    _done: int = 0

    def __call__(self, jobs: Sequence[Job], writer: NightWriter, options: NightOptions) -> Night:
        """Measure the cells that are left. Interrupted ends it early: the same command with --resume goes on."""
        self._jobs, self._writer, self._options = jobs, writer, options
        self._reach = self.fleet.reach(job.cell.dut for job in jobs)
        orders, self._done = self._orders(), len(jobs) - len(writer.night.left)
        for at in writer.night.left:
            self._waiting.setdefault(jobs[at].cell.dut, deque()).append(at)
        try:
            with signals_as_exceptions(), self.opened(self._reach, self.fleet.lease_s) as client:
                self._measure(client, orders)
        except (BenchError, Interrupted, KeyboardInterrupt) as error:
            writer.write(replace(writer.night, error=str(as_error(error))))
            raise
        shutil.rmtree(options.results / FOLDER / writer.name, ignore_errors=True)
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

        def submit(dut: str) -> None:
            if self._waiting[dut]:
                at = self._waiting[dut].popleft()
                order = asdict(orders[at])
                future = client.submit(
                    self.work, order, key=f"{orders[at].suite_name}/{orders[at].night}/{orders[at].cell}",
                    resources=needs_of(dut), retries=1, pure=False,
                )  # fmt: skip
                futures[dut], self._running[future.key] = future, (at, utc_now())
                future.add_done_callback(self._ended.put)
            else:
                futures.pop(dut, None)

        for dut in self._waiting:
            if self._able(dut):
                submit(dut)
            else:
                self._give_up(dut, utc_now(), f"no tester has links to all ports of {dut}")
        while futures:
            try:
                future = self._ended.get(timeout=LOOK_EVERY_S)
            except queue.Empty:
                self._give_up_unreached(client, futures, missing_s)
                continue
            if future.key in self._running:
                at, since = self._running.pop(future.key)
                self._note(at, since, _outcome_of(future))
                submit(self._jobs[at].cell.dut)

    def _able(self, dut: str) -> list[str]:
        """Testers that reach the DUT."""
        return [name for name, duts in self._reach.items() if dut in duts]

    def _give_up(self, dut: str, since: str, error: str) -> None:
        for at in self._waiting[dut]:
            self._note(at, since, CellOutcome("", error=error, code=TesterBusy.exit_code))
        self._waiting[dut].clear()

    def _give_up_unreached(self, client: Client, futures: dict[str, Future], missing_s: dict[str, float]) -> None:
        """Note the cells of DUTs that no tester has reached for long, and wait for them no more."""
        there = {str(one["name"]) for one in client.scheduler_info(n_workers=-1)["workers"].values()}
        now_s = time.monotonic()
        for dut, future in list(futures.items()):
            able = self._able(dut)
            if there & set(able):
                missing_s[dut] = now_s
            elif now_s - missing_s[dut] > MISSING_LEASES * self.fleet.lease_s:
                at, since = self._running.pop(future.key)
                future.cancel()
                del futures[dut]
                self._waiting[dut].appendleft(at)
                self._give_up(dut, since, f"no tester that reaches {dut} is there ({', '.join(able)})")

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
        return CellOutcome("", error=f"each tester that measured it died: {raised}", code=1)
    error = as_bench_error(raised)
    return CellOutcome("", error=str(error), code=error.exit_code)
