"""A simulated fleet that loses testers, and the whole night's process, at random moments; and what a cell costs.

    python benchmarks/fleet_faults.py [--faults 80] [--seed 1] [--cells 1000] [--testers 50]

Nights of four DUTs by three testers, each a process of this machine; a fault is kill -9 of a tester, SIGSTOP and later
SIGCONT, or kill -9 of scheduler and client, after which the same command goes on. Every second night is a cluster's,
whose scheduler, client, testers and their commands are killed apart, and whose connections are cut or held up and
healed. Half of the nights are for an S3 server on loopback, which is killed and started again, stopped, cut off, full
or in trouble, too; judged is what another machine sees there. A fifth are two at once. Aim: no document lost, torn or
doubled, no moment with two drivers of a DUT, every night ends. Then empty cells, which are looked up, leased, committed
and noted, but not measured, by testers in one process. Aim: under 20 ms of a core each.
"""

from __future__ import annotations

import contextlib
import logging
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import _ratios  # noqa: F401  # first, for the path to the tests' helpers
import lost_testers
from _faulty_nights import FAULTS_OF_STORES, ClusterNight, FaultyStore, Night
from _ratios import note, options, skip

from trexbench.fleet.guard import LeaseGuard
from trexbench.fleet.task import CellOrder, CellOutcome, measure_cell

DUTS, MOST_A_NIGHT = 4, 20
AIM_MS = 20.0
NIGHT_LIMIT_S = 400.0
"""A night ends so long after its last fault."""
MODES = "64b, 512b"


@dataclass
class Storm:
    """Faults that are still to come, and what they left."""

    left: int
    a_night: int
    rng: random.Random
    faults: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    nights: int = 0
    seconds: float = 0.0

    def strike(self, there: Night) -> bool:
        """One fault, or two at once; while no DUT is driven, only of the store: else nights would not get that far.

        Return whether there was one.
        """
        before = self.left
        is_busy, faults = bool(lost_testers.driving(there.folder, *there.parents)), there.faults
        if not is_busy:
            faults = FAULTS_OF_STORES if there.store is not None and self.rng.random() < 0.2 else {}
        for _ in range(2 if faults and self.rng.random() < 0.2 else 1 if faults else 0):
            kind = self.rng.choices([*faults], [*faults.values()])[0]
            if there.do(kind, self.rng):
                self.faults[kind] += 1
                self.left -= 1
        return self.left < before

    def night(self, folder: Path) -> None:
        """A night under faults, gone on with by the same command until it has ended."""
        begun_s, self.nights = time.monotonic(), self.nights + 1
        spared = max(0, self.left - self.a_night)
        kind = ClusterNight if self.nights % 2 == 0 else Night
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(FaultyStore(folder.with_name("s3"))) if self.nights % 4 > 1 else None
            lost_testers.make_place(folder, DUTS, MODES, **(store.variables if store is not None else {}))
            there = stack.enter_context(kind(folder, store))
            struck_s = begun_s
            while time.monotonic() - struck_s < NIGHT_LIMIT_S:
                with contextlib.suppress(TimeoutExpired):
                    there.night.wait(self.rng.uniform(0.1, 2.5))
                there.mend()
                if there.night.poll() is None:
                    if self.left > spared and (folder / "results" / "nights").exists():
                        struck_s = time.monotonic() if self.strike(there) else struck_s
                elif there.night.returncode == 0:
                    break
                else:
                    there.begin()
            else:
                self.bad["nights without an end"] += 1
            self.seconds += time.monotonic() - begun_s
            self._judge(folder, store)

    def _judge(self, folder: Path, store: FaultyStore | None) -> None:
        after = lost_testers.aftermath(folder, store.fetch(folder.with_name("seen")) if store is not None else None)
        for name in ("lost", "torn", "doubled", "two_drivers", "left"):
            self.bad[name] += getattr(after, name)
        self.bad["failed cells"] += len(after.failed)
        where = "a cluster's" * (self.nights % 2 == 0) + ", to S3" * (store is not None)
        print(f"night {self.nights} {where}, {self.faults.total()} faults, {self.seconds:.0f} s: {after}", flush=True)
        if not after.is_clean or after.failed:
            shutil.copytree(folder, Path(tempfile.gettempdir()) / f"fleet-night-{self.nights}", dirs_exist_ok=True)


def empty_cells(count: int, testers: int, folder: Path) -> tuple[int, float, float, float]:
    """Cells, milliseconds of CPU for each, seconds for all, and megabytes more at the end than after a tenth."""
    from trexbench.config.fleet import fleet_of
    from trexbench.fleet import task
    from trexbench.fleet.schedule import FleetNight
    from trexbench.session.keep import Output
    from trexbench.session.options import Setup
    from trexbench.suite.jobs import begin_night
    from trexbench.suite.night import NightOptions, read_jobs

    lost_testers.make_place(folder, testers)
    task._GUARD = Unguarded()  # it would end all testers of this process
    modes = ", ".join(f"var2-{64 + number}b" for number in range(max(1, count // testers // 2)))
    suite = folder / "suites" / "faults.yaml"
    suite.write_text(suite.read_text().replace("[64b]", f"[{modes}]"))
    setup, results = Setup(sim=True, configs_dir=folder / "dut_configs"), folder / "results"
    found, jobs = read_jobs(str(suite), setup)
    memory: list[float] = []
    empty_result()

    def said(_line: str) -> None:
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)

    night = FleetNight(str(suite), fleet_of(testers, 30.0), empty_cell, in_this_process)
    options = NightOptions(results, setup, Output(results=results), said)
    writer = begin_night(results, found.name, "2026-11-21", jobs)
    real = night._measure
    spent = []

    def timed(client: Any, orders: Any) -> None:
        client.submit(sum, [1], pure=False).result()
        begun = time.process_time(), time.monotonic()
        real(client, orders)
        spent.append((time.process_time() - begun[0], time.monotonic() - begun[1]))

    night._measure = timed  # type: ignore[method-assign]
    done = night(jobs, writer, options)
    assert not done.failed and not done.left, done.failures
    return len(jobs), 1000 * spent[0][0] / len(jobs), spent[0][1], memory[-1] - memory[len(memory) // 10]


def empty_cell(order: CellOrder) -> CellOutcome:
    from trexbench.session.keep import Measured, Output
    from trexbench.suite.jobs import Job

    def drive(_job: Job, output: Output) -> Measured[Any]:
        assert output.results is not None
        result, data = empty_result()
        path = output.results / "empty.json"
        path.write_bytes(data)
        return Measured(result, None, path)

    return measure_cell(order, drive)


class Unguarded(LeaseGuard):
    """No guard."""

    def kill_at(self, when_s: float | None, lease: object) -> None:
        pass


@cache
def empty_result() -> tuple[Any, bytes]:
    """A run and its document, made once before the clock starts."""
    from runs import make_result

    from trexbench.results.document import encode

    result = make_result()
    return result, encode(result)


@contextlib.contextmanager
def in_this_process(reach: Mapping[str, Sequence[str]], lease_s: float, _scratch: Path) -> Iterator[Any]:
    """All testers in this process: no port is opened, and its CPU time is everybody's."""
    import dask
    from distributed import Client, Scheduler, SpecCluster, Worker

    from trexbench.fleet.cluster import resources_of, settings

    here = {"protocol": "inproc://", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    options = {**here, "nthreads": 1, "memory_limit": None, "silence_logs": logging.CRITICAL}
    workers = {
        name: {"cls": Worker, "options": {**options, "name": name, "resources": resources_of(duts)}}
        for name, duts in reach.items()
    }
    scheduler = {"cls": Scheduler, "options": here}
    with (
        dask.config.set(settings(lease_s)),
        SpecCluster(workers=workers, scheduler=scheduler, silence_logs=logging.CRITICAL) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def main() -> int:
    asked = options(__doc__, faults=80, seed=1, cells=1000, testers=50)
    if any(find_spec(package) is None for package in ("distributed", "moto", "s3fs")):
        skip("needs trexbench[fleet,store], moto and s3fs")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # with all that it has started
    storm = Storm(asked.faults, min(MOST_A_NIGHT, max(1, asked.faults // 4)), random.Random(asked.seed))
    try:
        while storm.left > 0:
            with tempfile.TemporaryDirectory() as place:
                storm.night(Path(place) / "night")
    finally:  # also of a storm that is ended early
        bad = +storm.bad
        print(f"{storm.faults.total()} faults in {storm.nights} nights, {storm.seconds:.0f} s: {dict(storm.faults)}")
        print(f"bad: {dict(bad) or 'nothing'}")
    with tempfile.TemporaryDirectory() as place:
        cells, cpu_ms, took_s, more_mb = empty_cells(asked.cells, asked.testers, Path(place) / "empty")
    print(f"{cells} empty cells by {asked.testers} testers in {took_s:.1f} s: {cpu_ms:.1f} ms of CPU each")
    print(f"memory: {more_mb:+.0f} MB from a tenth of them to the end")
    note("fleet: documents lost, torn, doubled, two drivers", bad.total() - bad["failed cells"], noise=0.0)
    return int(bool(bad) or cpu_ms > AIM_MS)


if __name__ == "__main__":
    sys.exit(main())
