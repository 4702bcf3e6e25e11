"""The processes of a host that neither sends nor receives, told of the time between two moments: the DUT's."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..core.errors import BenchError
from ..core.tcp.model import Processes
from .hosts import Agent, EndpointHost

ANSWER_S = 10.0
"""For the program to start there, and to tell at its end."""


@contextmanager
def watched_processes(host: EndpointHost | None, within_s: float) -> Iterator[Callable[[], Processes | None]]:
    """Yield a function that ends the time and returns what was found: None without a host, a python3 there, or an
    answer in time.

    Nothing is read there in between. within_s: the longest time between.
    """
    if host is None:
        yield lambda: None
        return
    options = {"role": "watcher", "deadline_s": within_s + 2 * ANSWER_S, "tunnels": list(host.tunnels)}
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
        _wait(agent, lambda: agent.processes is not None)
        return agent.processes

    try:
        _wait(agent, lambda: agent.ready)
        yield finish if agent.ready else lambda: None
    finally:
        agent.close()


def _wait(agent: Agent, there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ANSWER_S
    while not there() and not agent.ended and (left_s := deadline - time.monotonic()) > 0:
        if select.select([agent.running], [], [], left_s)[0]:
            agent.hear()
