"""kill -9 at random moments of simulated ramps and suites: nothing torn, nothing lost but the last sample."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
from effort import scaled
from tools import folder_with

from trexbench.core.result import Status
from trexbench.results.index import open_index
from trexbench.results.journal import journal_of
from trexbench.results.store import RunWriter, load_rows, load_run

KILLS = scaled(50, 3)
"""Number of kills of each verb."""
SUITE = """
duts: [netgate-vpp]
modes: [64b, 1514b]
directions: [uni]
plan: {warmup: 10kpps:2s, ramp_to: 40%, ramp_duration: 30s, hold: 5s, confirm: 3s, zoom: 0s}
"""
VERBS = {
    "ramp": "ramp --dut netgate-vpp --mode 64b --sim --ramp-duration 60 --hold 5 --confirm 2 --no-picture --quiet",
    "suite": "suite run two --sim --speedup 2000",
}
PRELOADED = [
    "trexbench.suite.run",
    "trexbench.session.simulate",
    "trexbench.generator.trex.ports",
    "trexbench.cli.suite",
]


class Telling(RunWriter):
    """Says what it was given, after it has taken it: a line with the document and the number of samples."""

    told = -1

    def sampled(self, samples, step):  # type: ignore[no-untyped-def]
        super().sampled(samples, step)
        ends_s = time.monotonic() + 5.0  # a sample takes its time, but not where time is simulated
        while journal_of(self.path).read_bytes().count(b'"sample":') < len(samples) - 1 and time.monotonic() < ends_s:
            time.sleep(0.0005)
        os.write(self.told, f"{self.path} {len(samples)}\n".encode())

    def end(self, result):  # type: ignore[no-untyped-def]
        path = super().end(result)
        os.write(self.told, f"{path} ended\n".encode())
        return path


def in_a_child(folder: Path, told: Path, arguments: list[str]) -> None:
    """The command, in a process that has loaded everything already."""
    from trexbench.cli import main
    from trexbench.results import store

    os.chdir(folder)
    os.environ["TREXBENCH_RUN_DIR"] = f"{folder}/run"
    with open("log", "a") as log:
        os.dup2(log.fileno(), 2)
        os.dup2(log.fileno(), 1)
        Telling.told = os.open(told, os.O_WRONLY | os.O_APPEND)
        store.RunWriter = Telling  # type: ignore[misc]
        for module in [one for name, one in sys.modules.items() if name.startswith("trexbench.")]:
            if getattr(module, "RunWriter", None) is RunWriter:
                module.RunWriter = Telling  # type: ignore[attr-defined]
        sys.exit(main(arguments))


@pytest.mark.parametrize("verb", VERBS)
def test_a_killed_run_has_all_but_its_last_sample(tmp_path: Path, verb: str) -> None:
    rng = random.Random(verb)
    spawn = multiprocessing.get_context("forkserver")
    spawn.set_forkserver_preload(PRELOADED)
    folder_with(tmp_path, two=SUITE)
    for number in range(KILLS):
        told = tmp_path / f"told-{number}"
        told.touch()
        child = spawn.Process(target=in_a_child, args=(tmp_path, told, VERBS[verb].split()))
        child.start()
        ends_s = time.monotonic() + 60.0
        while not told.stat().st_size:
            assert child.is_alive() and time.monotonic() < ends_s, (tmp_path / "log").read_text()
            time.sleep(0.005)
        child.join(rng.uniform(0.0, 1.0))
        child.kill()
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL), (tmp_path / "log").read_text()
        check(tmp_path / "results", told)


def check(results: Path, told: Path) -> None:
    """Check that the samples that the child reported are there, also for who reads by the index."""
    handed = dict(line.rsplit(" ", 1) for line in told.read_text().splitlines() if line.count(" "))
    assert handed
    for name, count in handed.items():
        path = results.parent / name
        run = load_run(path)
        assert run.status is Status.COMPLETE if count == "ended" else len(run.samples) >= int(count) - 1
        assert run.status is not Status.RUNNING, "its process is gone"
        assert load_rows(path, "x")[0].status == run.status.value
        assert journal_of(path).exists() or run.status is Status.COMPLETE
    index = open_index(results, pytest.fail)
    assert not index.problems()
    there = {str(path.relative_to(results)) for path in results.glob("20*/*/*.json")}
    assert {row.path for row in index.rows()} == there
