"""Nights of a simulated fleet whose testers are killed and stopped in the middle, and what then must not have happened.

A DUT notices two drivers: who drives it holds a lock of the kernel, which ends with its process and not before.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trexbench.config.fleet import Cluster, fleet_of
from trexbench.core.errors import ConfigError, StoreError
from trexbench.core.history.night import CellState
from trexbench.fleet.join import joined, serve_scheduler
from trexbench.fleet.schedule import FleetNight
from trexbench.fleet.task import CellOrder, CellOutcome, OwnSettings, measure_cell, measure_job
from trexbench.fleet.worker import keep_working
from trexbench.lock import RUN_DIR_ENV
from trexbench.results.nights import TESTERS, read_night
from trexbench.results.remote import mirror_of
from trexbench.results.store import load_document
from trexbench.session.keep import Measured, Output
from trexbench.session.options import Setup
from trexbench.suite.jobs import Job
from trexbench.suite.night import NightOptions, run_suite

ROOT = Path(__file__).resolve().parents[2]
SUITE = """
duts: [{duts}]
modes: [64b]
directions: [uni, bidir]
plan: {{warmup: 10kpps:2s, ramp_to: 40%, ramp_duration: 10s, hold: 2s, confirm: 0s}}
"""
DATE = "2026-11-21"


STORE = "FLEET_STORE"
"""Variable with the address of the store that the night's results go to, if any."""


def make_place(folder: Path, duts: int, modes: str = "64b", **store: str) -> Path:
    """A directory with a suite of so many simulated DUTs, two cells each and mode.

    store: variables of the processes of its night, one of them STORE.
    """
    (folder / "suites").mkdir(parents=True)
    (folder / "dut_configs").mkdir(parents=True)
    (folder / "drivers").mkdir()
    text = (ROOT / "dut_configs" / "netgate-linux.yaml").read_text()
    names = [f"box{number}" for number in range(duts)]
    for name in names:
        (folder / "dut_configs" / f"{name}.yaml").write_text(text)
    suite = SUITE.format(duts=", ".join(names)).replace("64b", modes)
    (folder / "suites" / "faults.yaml").write_text(suite)
    (folder / "env.json").write_text(json.dumps(store))
    return folder


def results_of(folder: Path) -> Path:
    """The results of the night there, by the variables of its processes; ``results`` leads to a mirror."""
    results = folder / "results"
    if STORE not in os.environ:
        return results
    mirror = mirror_of(os.environ[STORE])
    with contextlib.suppress(FileExistsError):
        results.symlink_to(mirror)
    return mirror


def measure_noticed(order: CellOrder) -> CellOutcome:
    """The task of a tester, at a DUT that notices."""
    drivers = Path(os.environ[RUN_DIR_ENV]).with_name("drivers")

    def drive(job: Job, output: Output) -> Measured[Any]:
        with (drivers / job.cell.dut).open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                (drivers / f"{job.cell.dut}.two-{os.getpid()}").touch()
            (drivers / f"{job.cell.dut}.pid").write_text(str(os.getpid()))
            time.sleep(random.uniform(0.2, 0.8))
            done = measure_job(job, output)
            (drivers / f"{job.cell.dut}.pid").unlink(missing_ok=True)
            return done

    return measure_cell(order, drive)


def run_night(folder: Path, testers: int, lease_s: float, address: str | None = None) -> None:
    """Run the suite's night, or go on with it. address: of a cluster's scheduler; None: its testers are children."""
    os.chdir(folder)
    setup, name = Setup(sim=True, speedup=10_000.0, configs_dir=folder / "dut_configs"), "faults"
    night = FleetNight(name, fleet_of(testers, lease_s), measure_noticed)
    if address is not None:
        cluster = Cluster(address, None, False)
        night = replace(night, opened=lambda *_: joined(cluster, lease_s), is_cluster=True)
    results = results_of(folder)
    output = Output(results=results, warn=lambda line: print(line, flush=True))
    options = NightOptions(results, setup, output, lambda _: None, DATE, by_fleet=night)
    try:
        run_suite(name, options, resume=any((results / "nights").glob("*.json")))
    except ConfigError as error:
        if "is unfinished" not in str(error):  # it was killed when all was done
            raise


def run_scheduler(folder: Path, address: str, lease_s: float) -> None:
    serve_scheduler(Cluster(address, None, False), lease_s, print)


def run_tester(folder: Path, name: str, address: str, lease_s: float) -> None:
    """Work as a tester that reaches every DUT."""
    duts = sorted(path.stem for path in (folder / "dut_configs").iterdir())
    os.chdir(folder)
    own = OwnSettings(name, str(results_of(folder)), {"configs_dir": str(folder / "dut_configs")}, duts, "")
    keep_working(own, Cluster(address, None, False), lease_s, print)


def start_night(folder: Path, testers: int, lease_s: float, address: str | None = None) -> subprocess.Popen[bytes]:
    """The night in a process of its own, whose children are its testers, unless it is a cluster's."""
    return start(folder, "night", testers, lease_s, address)


def start(folder: Path, what: str, *arguments: object) -> subprocess.Popen[bytes]:
    """Run_<what> in a process of its own."""
    paths = f"{ROOT}{os.pathsep}{ROOT / 'tests' / 'helpers'}"
    code = f"import pathlib, lost_testers as f; f.run_{what}(pathlib.Path({str(folder)!r}), *{arguments!r})"
    env = {**os.environ, "PYTHONPATH": paths, RUN_DIR_ENV: str(folder / "run")}
    env |= {"TREXBENCH_STATE_DIR": str(folder / "state"), **json.loads((folder / "env.json").read_text())}
    with (folder / f"{what}.log").open("ab") as log:
        return subprocess.Popen([sys.executable, "-c", code], env=env, stdout=log, stderr=log)


def testers_of(*parents: int) -> list[int]:
    """Process ids of testers, children of these processes."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                words = (entry / "cmdline").read_bytes()
                if parent in parents and (b"spawn_main" in words or b"trexbench.fleet.worker" in words):
                    found.append(int(entry.name))
            except (OSError, IndexError):
                continue
    return sorted(found)


def driving(folder: Path, *parents: int) -> list[int]:
    """Process ids of testers that drive a DUT now, children of these processes."""
    found, alive = [], testers_of(*parents)
    for path in (folder / "drivers").glob("*.pid"):
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):
            continue
    return [pid for pid in found if pid in alive]


def send(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


@dataclass(frozen=True)
class Aftermath:
    """Remains of a night. lost: cells said to be done without a document; doubled: complete documents besides."""

    done: int
    failed: tuple[str, ...]
    left: int
    lost: int
    torn: int
    doubled: int
    two_drivers: int
    leftovers: int

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.torn or self.doubled or self.two_drivers or self.left or self.leftovers)


def aftermath(folder: Path, seen: Path | None = None) -> Aftermath:
    """Judge what a night left. seen: the copy that another machine fetched of its store; None: it has none."""
    results = seen or folder / "results"
    (path,) = (results / "nights").glob("*.json")
    night = read_night(path)
    complete = torn = 0
    for document in _documents(results):
        try:
            run = load_document(document)
        except StoreError:
            torn += 1
            continue
        if run.status.value == "complete":
            complete += 1
    done = [cell for cell in night.cells if cell.state is CellState.DONE]
    there = {str(one.relative_to(results)) for one in _documents(results)}
    return Aftermath(
        len(done),
        tuple(str(cell.attempts[-1].error) for cell in night.failed),
        len(night.left),
        lost=sum(cell.path not in there for cell in done),
        torn=torn,
        doubled=abs(complete - len({cell.path for cell in done})),
        two_drivers=sum(1 for _ in (folder / "drivers").glob("*.two-*")),
        leftovers=sum(1 for one in (folder / "results" / TESTERS).iterdir() if one.name != "leases"),
    )


def _documents(results: Path) -> Iterator[Path]:
    yield from results.glob("20*/*/*.json")
