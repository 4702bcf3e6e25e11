"""Signals at any moment: Ctrl-C, SIGTERM and SIGHUP end a command soon and properly, wherever it is just then."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from effort import NIGHTLY, scaled
from tools import ROOT, TREXBENCH, begin, environment, fake_server, shared_forks, trexbench

from trexbench.core.result import Status
from trexbench.results.store import load_run

MOMENTS = scaled(200, 16)
"""Number of random moments; 2000 were tried when this was written."""
SOON_S = 5.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RAMP = ("ramp", "--dut", "netgate-vpp", "--mode", "64b")
SIMULATED = (*RAMP, "--sim", "--speedup", "10000", "--ramp-duration", "60")
TELLS_ITS_FIRST_IMPORT = """
import os, sys, trexbench.__main__ as entry
sys.addaudithook(lambda event, args: event == "import" and args[0] == "trexbench.cli" and os.write(2, b"begun\\n"))
entry.main()
"""
"""Python's own start, a few hundredths of a second before this, is Python's own: it shows a traceback."""
QUICK = ("--ramp-duration", "4s", "--hold", "1s", "--warmup", "10kpps:1s", "--sample", "200ms", "--confirm", "0s")


def cpu_wait_s(process: int) -> float:
    """Return the time for which the process's threads have waited for a processor that others kept busy."""
    waited_ns = 0
    with suppress(FileNotFoundError):  # it ends now
        for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
            with suppress(OSError):  # a thread that has ended
                waited_ns += int(file.read_text().split()[1])
    return waited_ns / 1e9


def ends_soon(process: int, has_ended: Callable[[float], bool]) -> bool:
    """Await the end of a process for ``SOON_S``, in which its waiting for a processor does not count."""
    begun_s = time.monotonic()
    before_s = waited_s = cpu_wait_s(process)
    while not has_ended(0.1):
        waited_s = max(waited_s, cpu_wait_s(process))  # which threads that end take with them
        if time.monotonic() - begun_s - (waited_s - before_s) > SOON_S:
            return False
    return True


def interrupted_at_random(folder: Path, arguments: Sequence[str], count: int, longest_s: float, seed: int) -> list[int]:
    """Begin the command so often, each time ended at a random moment of its first ``longest_s``; return exit codes."""
    forks, log = shared_forks(), folder / "log"
    moments, codes = random.Random(seed), list[int]()
    for number in range(count):
        log.unlink(missing_ok=True)
        child = forks.begin(folder, arguments, log, log)
        sent, moment_s = moments.choice(SIGNALS), moments.uniform(0.0, longest_s)
        if not forks.has_ended(moment_s):
            os.kill(child, sent)
        if not (ended := ends_soon(child, forks.has_ended)):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGUSR1)  # where it hangs
                time.sleep(0.5)
                os.kill(child, signal.SIGKILL)
        code, said = forks.exit_code(), log.read_text()
        codes.append(code)
        told = f"number {number}, {sent.name} after {moment_s:.3f} s, exit code {code}:\n{said}"
        assert ended, f"it goes on: {told}"
        assert code in (0, 128 + sent, -sent) and "Traceback" not in said and "defect" not in said, told
    return codes


def test_a_simulated_run_ends_soon_at_any_moment(tmp_path: Path) -> None:
    codes = interrupted_at_random(tmp_path, (*SIMULATED, "--no-picture"), MOMENTS, 0.7, seed=MOMENTS)
    assert sum(code > 128 for code in codes) > MOMENTS / 4
    for path in tmp_path.glob("results/*/*/*.json"):
        assert load_run(path).status in (Status.COMPLETE, Status.INCOMPLETE)


def test_a_run_against_a_server_ends_soon_and_gives_the_ports_back(tmp_path: Path) -> None:
    count = max(5, MOMENTS // 4)
    with fake_server() as server:
        arguments = (*RAMP, *QUICK, *server.options, "-q", "--no-picture")
        interrupted_at_random(tmp_path, arguments, count, 1.5, seed=MOMENTS)
        done = trexbench(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("moment_s", [0.0, 0.5, 1.6, *([0.02, 0.05, 0.1, 0.2, 1.0, 2.3, 3.0] if NIGHTLY else [])])
def test_a_whole_process_ends_soon(tmp_path: Path, moment_s: float) -> None:
    """Its imports, too: those of the STL client and of matplotlib make errors of their own of an interruption."""
    run = begin(tmp_path, *SIMULATED, "-q", command=(sys.executable, "-c", TELLS_ITS_FIRST_IMPORT))
    assert run.stderr is not None and run.stderr.readline() == "begun\n"
    time.sleep(moment_s)
    run.send_signal(signal.SIGINT)

    def has_ended(within_s: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            run.wait(within_s)
        return run.returncode is not None

    ended = ends_soon(run.pid, has_ended)
    run.kill()
    _, said = run.communicate()
    assert ended, f"it goes on: {said}"
    assert run.returncode in (0, 130, -signal.SIGINT), said  # the last: Python no longer handles signals at its end
    assert "Traceback" not in said and (moment_s > 0.2 or len(said.splitlines()) <= 1), said


def test_a_connection_that_a_signal_cut_short_is_closed() -> None:
    """A ZeroMQ context with an open socket, left to the garbage collector, waited there for ever."""
    code = """
import gc, signal, time
from trexbench.generator.trex import connect
from trexbench.session.process import signals_as_exceptions
from trexbench.session.loop import Interrupted
from trexbench.signals import uninterrupted
from engine_fake import FakeEngine
from trexbench.stlserver.rpc.server import StlServer

class Clock:
    now = staticmethod(time.monotonic)

with uninterrupted():
    server = StlServer(FakeEngine(2)).__enter__()
name = connect._owner_name
connect._owner_name = lambda: signal.raise_signal(signal.SIGINT) or name()
there = connect.ServerAddress(server.host, server.rpc_port, server.pub_port)
try:
    with signals_as_exceptions(), connect.connect(there, (0, 1), Clock(), guarded=False):
        print("connected")
except Interrupted as ended:
    print(ended)
gc.collect()
"""
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/tests/helpers"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("interrupted by Ctrl-C\n", "")


@pytest.mark.parametrize("ignored", [signal.SIGHUP, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)])
def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path, ignored: signal.Signals) -> None:
    """Ignore it as ``nohup`` and the background jobs of a shell do."""
    run = subprocess.Popen(
        [*TREXBENCH, *SIMULATED[:-4], "--speedup", "200", "--ramp-duration", "30", "--no-picture"],
        cwd=tmp_path,
        env=environment(tmp_path / "run"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(ignored, signal.SIG_IGN),
    )
    assert run.stderr is not None
    for line in run.stderr:
        if "warm-up" in line:
            run.send_signal(ignored)
    assert run.wait(60) == 0
