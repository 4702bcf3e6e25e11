"""A night by a fleet: every cell is a task of Dask, one at a time for each DUT and each tester.

Dask gives no cell to a second tester by itself: when a tester dies it would let the cell wait at another, and blame it
for that one's death as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.fleet import INSECURE, Fleet, find_fleet
from ..core.errors import BenchError, ConfigError, FleetError, as_bench_error
from ..core.fleet.roster import assign_testers, choose_testers
from ..core.history.night import Attempt, CellState, Night
from ..results.nights import NightWriter
from ..results.remote import address_of
from ..results.store import make_directory
from ..session.loop import Interrupted, as_error
from ..session.process import signals_as_exceptions, utc_now
from ..suite.cells import nothing_measured
from ..suite.jobs import Job, make_job
from ..suite.night import NightOptions, read_jobs
from .cluster import RESUME, as_one_line, on_this_machine, require_dask, resources_of
from .compared import ANSWER_S, ComparedTesters
from .join import joined
from .leases import DutLeased
from .task import CellOrder, CellOutcome, digest_of, measure_cell, place_of

if TYPE_CHECKING:
    from distributed import Client, Future

WRITE_EVERY_S, WRITE_SHARE = 1.0, 20
"""Minimum time between two writes of the night's file, also as a multiple of the time that the last write took.

A cell's document is in the store by then, and is looked for there first.
"""
LOOK_EVERY_S = 1.0
UNPLACED_S = 5.0
"""A cell that is at no tester for this long is taken back: its tester left, or came back under another address."""
LEASED_S = 4 * 3600.0
"""A cell whose DUT others hold for this long, such as the testers of a night that was killed, fails."""
DEATHS = 10
"""A cell during which this many testers died is given up."""
MISSING_LEASES, START_S = 4.0, 60.0
"""A DUT that no tester reaches for this many lengths of a lease is given up, but not before one had time to start."""


@dataclass
class GivenCell:
    """A cell that was given to a tester. at: its index in the night; since: when, UTC; begun_s: by a steady clock."""

    future: Future
    dut: str
    at: int
    tester: str
    since: str
    begun_s: float
    seen_s: float
    """When it was last seen at a tester, or given."""


@dataclass
class FleetNight:
    """Measures a night's cells by testers. suite: its name or file, as given; work: the task; opened: the testers."""

    suite: str
    fleet: Fleet
    work: Callable[[CellOrder], CellOutcome] = measure_cell
    opened: Callable[[Mapping[str, Sequence[str]], float, Path], AbstractContextManager[Client]] = on_this_machine
    is_cluster: bool = False
    """The testers are processes of others: they find suites and results by themselves, and are compared first."""
    _ended: queue.SimpleQueue[Future] = field(default_factory=queue.SimpleQueue)
    _waiting: dict[str, deque[int]] = field(default_factory=dict)
    _running: dict[Any, GivenCell] = field(default_factory=dict)
    """Key of its future -> cell."""
    _deaths: Counter[int] = field(default_factory=Counter)
    """Cell -> number of testers that died while they measured it."""
    _leased_s: dict[int, float] = field(default_factory=dict)
    """Cell -> when its DUT was first found leased by others."""
    _keys: itertools.count[int] = field(default_factory=itertools.count)
    _able: dict[str, set[str]] = field(default_factory=dict)
    """DUT -> testers that reach it."""
    _own: dict[str, str] = field(default_factory=dict)
    """DUT -> its tester by the roster: others measure it only while that one is lost."""
    _seen_s: dict[str, float] = field(default_factory=dict)
    """Tester -> when it was last there, or was first looked for."""
    _next_write_s: float = 0.0
    _reported: set[str] = field(default_factory=set)
    """Warnings of the store, without places and addresses."""
    _written: Night | None = None
    _done: int = 0

    def __call__(self, jobs: Sequence[Job], writer: NightWriter, options: NightOptions) -> Night:
        """Measure the cells that are left. Interrupted ends this early: the same command with --resume goes on."""
        self._jobs, self._writer, self._options = jobs, writer, options
        self._reach = self.fleet.reach(job.cell.dut for job in jobs)
        for dut in {job.cell.dut for job in jobs}:
            self._able[dut] = {name for name, duts in self._reach.items() if dut in duts}
        common, numbers, every = self.common_order(options, writer.night.night, writer.name)
        # for the whole suite, so that nights of some of its cells have the same roster
        reach = self.fleet.reach(job.cell.dut for job in every)
        self._own = assign_testers([(job.cell.dut, job.expected_s) for job in every], reach)
        orders = list[CellOrder]()
        for job in jobs:
            cell, place = str(job.cell), place_of(writer.night.started, writer.name, job.cell)
            orders.append(replace(common, cell=cell, number=numbers[cell], place=place))
        self._done = len(jobs) - len(writer.night.left)
        for at in writer.night.left:
            self._waiting.setdefault(jobs[at].cell.dut, deque()).append(at)
        try:
            scratch = make_directory(writer.scratch)
            with signals_as_exceptions(), self.opened(self._reach, self.fleet.lease_s, scratch) as client:
                self._measure(client, orders)
        except (BenchError, Interrupted, KeyboardInterrupt) as error:
            for given in self._running.values():
                self._wait_again(given)
            writer.write(replace(writer.night, error=str(as_error(error))))
            raise
        writer.write(replace(writer.night, finished=utc_now(), error=nothing_measured(writer.night)))
        return writer.night

    def common_order(
        self, options: NightOptions, date: str, name: str
    ) -> tuple[CellOrder, Mapping[str, int], Sequence[Job]]:
        """Return an order without its cell, for a night of this date and name; each cell's number; and all runs."""
        suite, every = read_jobs(self.suite, options.setup, (), options.instead)
        instead = replace(options.instead, dut=tuple(options.instead.dut), variant=tuple(options.instead.variant))
        common = CellOrder(
            suite=suite.name if self.is_cluster else str(suite.file.resolve()),
            suite_name=suite.name,
            setup=options.setup,
            instead=instead,
            cell="",
            number=0,
            date=date,
            night=name,
            results=str(options.results.resolve()),
            place="",
            digest=digest_of(suite, options.setup),
            lease_s=self.fleet.lease_s,
            fleet=self.fleet.digest[:12] if self.is_cluster else "",
            store=(address_of(options.results) or "") if self.is_cluster else "",
        )
        # Of the suite's cells, two of which may be one run: the DUT's own number of queues, and the same number stated.
        numbers = {str(make_job(suite, cell, options.setup).cell): at for at, cell in enumerate(suite.cells)}
        return common, numbers, every

    def _measure(self, client: Client, orders: Sequence[CellOrder]) -> None:
        missing_s = dict.fromkeys(self._waiting, time.monotonic())
        testers = ComparedTesters(self._options.output.warn)
        for dut in self._waiting:
            if not self._able[dut]:
                self._give_up(dut, ConfigError(f"no tester has links to all ports of {dut}"))
        with as_one_line():
            testers.there(client, orders[0], strict=True)
        if len(testers.trex) > 1:
            words = "; ".join(f"{', '.join(names)}: {trex}" for trex, names in testers.trex.items())
            self._options.output.warn(f"testers have different TRex, as each result says ({words})")
        while self._running or any(self._waiting.values()):
            with as_one_line():
                there = testers.there(client, orders[0])
            self._take_back_unplaced(there)
            self._give_up_unreached(there, missing_s)
            for dut, tester in self._chosen(there).items():
                self._give(client, dut, tester, orders)
            self._write_if_due()
            with contextlib.suppress(queue.Empty):
                future = self._ended.get(timeout=LOOK_EVERY_S)
                while True:  # all that ended by now
                    if (ended := self._running.pop(future.key, None)) is not None:
                        self._end(ended)
                    future = self._ended.get_nowait()

    def _chosen(self, there: Mapping[str, Sequence[Any]]) -> Mapping[str, str]:
        """Choose testers for the next cell of DUTs. there: keys of the cells at each tester."""
        given = {cell.tester for cell in self._running.values()}
        idle = sorted(name for name, keys in there.items() if not keys and name not in given)
        busy = {cell.dut for cell in self._running.values()}
        left = {dut: len(cells) for dut, cells in self._waiting.items() if dut not in busy}
        now_s = time.monotonic()
        self._seen_s |= dict.fromkeys(there, now_s)
        away_s = {name: now_s - self._seen_s.setdefault(name, now_s) for name in self._own.values()}
        own = {dut: name for dut, name in self._own.items() if away_s[name] <= self.fleet.lease_s}
        return choose_testers(left, idle, self._able, own)

    def _give(self, client: Client, dut: str, tester: str, orders: Sequence[CellOrder]) -> None:
        at = self._waiting[dut].popleft()
        key = f"{orders[at].suite_name}/{orders[at].night}/{orders[at].cell}/{next(self._keys)}"
        future = self.submit(client, orders[at], key, tester, dut)
        now_s = time.monotonic()
        self._running[key] = GivenCell(future, dut, at, tester, since := utc_now(), now_s, now_s)
        self._keep(at, CellState.RUNNING, Attempt(since))
        future.add_done_callback(self._ended.put)

    def submit(self, client: Client, order: CellOrder, key: str, tester: str, dut: str) -> Future:
        """Give the order to this tester."""
        needs = resources_of([dut])
        return client.submit(self.work, order, key=key, workers=[tester], resources=needs, retries=1, pure=False)

    def _take_back(self, given: GivenCell) -> None:
        del self._running[given.future.key]
        given.future.cancel()
        self._wait_again(given)

    def _wait_again(self, given: GivenCell) -> None:
        self._waiting[given.dut].appendleft(given.at)
        self._keep(given.at, CellState.WAITING)

    def _end(self, given: GivenCell) -> None:
        cell = self._jobs[given.at].cell
        try:
            outcome = outcome_of(given.future)
        except DutLeased as error:
            begun_s = self._leased_s.setdefault(given.at, time.monotonic())
            if time.monotonic() - begun_s < LEASED_S:
                self._options.say(f"{cell} waits: {error}")
                self._wait_again(given)
                return
            outcome = CellOutcome(given.tester, error=str(error), code=error.exit_code)
        if outcome is None:
            self._deaths[given.at] += 1
            if self._deaths[given.at] < DEATHS:
                self._options.say(f"tester {given.tester} was lost while it measured {cell}")
                self._wait_again(given)
                return
            outcome = CellOutcome("", error=f"{DEATHS} testers died while they measured it", code=1)
        # else it was measured before, or not at all
        took_s = round(time.monotonic() - given.begun_s, 3) if outcome.answer else None
        self._note(given.at, given.since, outcome, took_s)

    def _take_back_unplaced(self, there: Mapping[str, Sequence[Any]]) -> None:
        """Let cells wait again that have been at no tester for long, though no try of theirs has ended."""
        placed, now_s = {key for keys in there.values() for key in keys}, time.monotonic()
        for key, given in list(self._running.items()):
            if key in placed:
                given.seen_s = now_s
            elif now_s - given.seen_s > UNPLACED_S:
                self._take_back(given)

    def _give_up(self, dut: str, error: BenchError) -> None:
        for at in self._waiting[dut]:
            self._note(at, utc_now(), CellOutcome("", error=str(error), code=error.exit_code))
        self._waiting[dut].clear()

    def _give_up_unreached(self, there: Collection[str], missing_s: dict[str, float]) -> None:
        now_s = time.monotonic()
        for dut in self._waiting:
            able = self._able[dut]
            if not able.isdisjoint(there):
                missing_s[dut] = now_s
            elif now_s - missing_s[dut] > max(START_S, MISSING_LEASES * self.fleet.lease_s):
                for given in [given for given in self._running.values() if given.dut == dut]:
                    self._take_back(given)
                self._give_up(dut, FleetError(f"no tester that reaches {dut} is there ({', '.join(sorted(able))})"))

    def _note(self, at: int, since: str, outcome: CellOutcome, took_s: float | None = None) -> None:
        state = CellState.DONE if outcome.error is None else CellState.FAILED
        self._done += 1
        words = outcome.error or " ".join(filter(None, (outcome.answer or "measured before", outcome.place)))
        by = f" by {outcome.tester}" if outcome.tester else ""
        self._options.say(f"{self._done} of {len(self._jobs)}{by}: {self._jobs[at].cell}: {words}")
        reason = " ".join(word for word in (outcome.unsent or "").split() if "/" not in word)
        if outcome.unsent is not None and reason not in self._reported:
            self._options.output.warn(outcome.unsent)
            self._reported.add(reason)
        self._keep(at, state, Attempt(since, outcome.place, outcome.error, outcome.code, took_s))

    def _keep(self, at: int, state: CellState, *attempt: Attempt) -> None:
        """Record the cell's state, with an attempt that replaces the running one."""
        night, record = self._writer.night, self._writer.night.cells[at]
        before = record.attempts[:-1] if record.state is CellState.RUNNING else record.attempts
        self._writer.night = night.with_cell(at, replace(record, state=state, attempts=(*before, *attempt)))
        self._write_if_due()

    def _write_if_due(self) -> None:
        if self._writer.night is not self._written and (begun_s := time.monotonic()) > self._next_write_s:
            self._writer.write(self._writer.night)
            took_s = time.monotonic() - begun_s
            self._next_write_s, self._written = begun_s + max(WRITE_EVERY_S, WRITE_SHARE * took_s), self._writer.night


def outcome_of(future: Future, remedy: str = RESUME) -> CellOutcome | None:
    """Return a task's outcome; None if its tester died, or its answer was lost. DutLeased if others have the DUT."""
    if future.status == "cancelled":
        raise FleetError("the fleet's scheduler was lost", remedy)
    if future.status not in ("finished", "error"):
        return None
    try:
        raised = future.exception(timeout=ANSWER_S)
        if raised is None:
            outcome: CellOutcome = future.result(timeout=ANSWER_S)
            return outcome
    except (TimeoutError, asyncio.TimeoutError):  # one since Python 3.11
        return None
    if type(raised).__name__ == "KilledWorker":
        return None
    if isinstance(raised, DutLeased):
        raise raised
    error = as_bench_error(raised)
    return CellOutcome("", error=str(error), code=error.exit_code)


def by_fleet(name: str, text: str, night: NightOptions, insecure: bool = False) -> FleetNight:
    """Prepare a suite's night by the fleet of ``--fleet``; ConfigError for what is wrong with the fleet."""
    fleet = find_fleet(text, night.setup.configs_dir, night.setup.sim)
    if fleet.scheduler is None:
        if not night.setup.sim:
            what = f"--fleet {text[:40]}: without a scheduler its testers are simulated"
            raise ConfigError(what, "add --sim, or write scheduler: tls://HOST:8786 in the file")
        require_dask()
        return FleetNight(name, fleet)
    cluster = fleet.cluster(insecure)
    require_dask()
    if cluster.is_insecure:
        night.output.warn(f"each result of this night says: {INSECURE}")
    return FleetNight(name, fleet, opened=lambda *_: joined(cluster, fleet.lease_s), is_cluster=True)
