"""Process that owns a lab: however the run ends, it outlives the run for as long as the cleanup takes.

    run --- pipe (stdin) ---> keeper --- PDEATHSIG ---> server

It reads its request from the environment, brings the lab up, writes one line (that it is up, or the error), and waits
for the end of the pipe: the run is over, or dead. It has a session of its own, so that Ctrl-C reaches only the run.
`lab up` replies that the lab stays, and `lab down` has another keeper take it down.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from pathlib import Path

import msgspec

from ..core.errors import BenchError
from . import state
from .build import bring_up, clean_leftovers, lab_lock, take_down
from .spec import LabSpec
from .state import REQUEST_ENV


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _on_sigterm)
    request = json.loads(os.environ.pop(REQUEST_ENV))
    spec = msgspec.convert(request["spec"], LabSpec)
    trex_dir = Path(request["trex_dir"]) if request["trex_dir"] else None
    try:
        with lab_lock(spec.prefix):
            if request["what"] == "down":
                if (lab := state.load(spec.prefix)) is not None:
                    take_down(lab)
                return 0
            clean_leftovers(spec.prefix)
            _keep(spec, request["what"], trex_dir, request["user"])
    except BenchError as error:
        _reply({"error": str(error), "kind": type(error).__name__})
        return error.exit_code
    return 0


def _keep(spec: LabSpec, mode: str, trex_dir: Path | None, user: int) -> None:
    """Bring the lab up, unless a persistent one is up, and hold it until the run is over, or says that it stays."""
    stays, over = mode == "persistent", True
    if stays and state.load(spec.prefix) is not None:
        _reply({"up": True})
        return
    lab = bring_up(spec, mode, trex_dir, user, cancelled=_run_over)
    try:
        _reply({"up": True})
        while not (over := _run_over(wait_s=3600.0)) and not stays:
            continue
    finally:
        if over:
            take_down(state.load(spec.prefix) or lab)


def _run_over(wait_s: float = 0.0) -> bool:
    ready, _, _ = select.select([0], [], [], wait_s)
    return bool(ready) and os.read(0, 1) == b""


def _reply(document: dict[str, object]) -> None:
    try:
        os.write(1, (json.dumps(document) + "\n").encode())
    except BrokenPipeError:
        return  # the run is over; the pipe on stdin says so too


def _on_sigterm(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second one would end what the first one began
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main())
