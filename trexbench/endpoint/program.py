"""Programs beside a leg: one that is run to its end, unless it is ended before, and one that watches processes."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..core.errors import BenchError, DutError
from ..core.tcp.model import Processes
from ..transport import Completed
from .hosts import Agent, EndpointHost

LOOK_S = 0.2
"""Interval between looks at whether the program is to end."""
LATE_S = 5.0
"""For the agent to tell that the program has exceeded its time."""
ANSWER_S = 10.0
"""For a watcher to start there, and to tell at its end."""


def run_program(host: EndpointHost, argv: Sequence[str], within_s: float, over: threading.Event) -> Completed:
    """Run argv to its end; DutError where it cannot be started, does not end in time, or ``over`` is set meanwhile."""
    begun_s = time.monotonic()
    agent = Agent(host, {"role": "program", "argv": list(argv), "interval_s": within_s, "deadline_s": within_s})
    try:
        while not agent.ended:
            if over.is_set():
                raise DutError(f"{host.place}: {argv[0]} was ended before its time")
            if time.monotonic() > begun_s + within_s + LATE_S:
                raise DutError(f"{host.place}: {argv[0]} did not end in time", "see whether it still answers")
            if select.select([agent.running], [], [], LOOK_S)[0]:
                agent.hear()
    finally:
        agent.close()
    if agent.error is not None:
        raise agent.error
    said = agent.output or {}
    stdout, stderr = (str(said.get(name, "")) for name in ("stdout", "stderr"))
    return Completed(tuple(argv), int(said.get("code", 0)), stdout, stderr)


@contextmanager
def watched_processes(host: EndpointHost | None, within_s: float) -> Iterator[Callable[[], Processes | None]]:
    """Yield a function that ends the time and returns what was found: None without a host, a python3 there, or an
    answer in time.

    Nothing is read there in between. within_s: the longest time between.
    """
    if host is None:
        yield lambda: None
        return
    options = {"role": "watcher", "deadline_s": within_s + 2 * ANSWER_S}
    try:
        agent = Agent(host, options)
    except BenchError:
        yield lambda: None
        return

    def finish() -> Processes | None:
        try:
            agent.running.send(b"\n")
        except (BenchError, OSError):
            return None
        agent.listen_until(lambda: agent.processes is not None, ANSWER_S)
        return agent.processes

    try:
        agent.listen_until(lambda: agent.ready, ANSWER_S)
        yield finish if agent.ready else lambda: None
    finally:
        agent.close()
