"""Runs commands in forks of a process that has loaded everything, the STL client too: ``python preload.py``.

For each JSON line of standard input (the directory to run in, the arguments, the files for standard output and error,
the environment, modules beside this one that add themselves to trexbench's tables) two lines of output: the fork's
process id, and its exit code, negative where a signal killed it.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import importlib
import json
import os
import signal
import sys
import threading
from typing import NoReturn

import trexbench.cli.dut
import trexbench.cli.run
import trexbench.cli.suite
import trexbench.generator.trex.ports
import trexbench.report.run.picture
import trexbench.session.keep
import trexbench.session.simulate
import trexbench.suite.cells
import trexbench.suite.nightly  # noqa: F401
from trexbench.cli import main
from trexbench.generator.trex.client import load_client


def command(
    begun: int, folder: str, arguments: list[str], files: list[str], environment: dict[str, str], loads: list[str]
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for stream, file in zip((0, 1, 2), (os.devnull, *files), strict=True):
        opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.dup2(opened, stream)
        os.close(opened)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    faulthandler.register(signal.SIGUSR1, file=2)  # for who asks where it hangs
    for load in loads:
        importlib.import_module(load).add()
    os.close(begun)
    try:
        main(arguments)
    except SystemExit as ended:
        end(ended.code)


def end(code: int | str | None) -> NoReturn:
    """End as the interpreter does, but do not take apart what was loaded: that takes longer than most commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else 1 if code else 0)


def serve() -> None:
    load_client()
    if not os.environ.get("TREXBENCH_NIGHTLY"):  # as in conftest.py
        os.fsync = lambda _: None
    gc.freeze()  # else a collection in a fork would copy all that was loaded
    for line in sys.stdin:
        hears, begun = os.pipe()
        if (child := os.fork()) == 0:
            command(begun, *json.loads(line))
        os.close(begun)
        os.read(hears, 1)  # ends when the child closes its end
        os.close(hears)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
