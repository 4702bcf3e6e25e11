"""A program on a host of a TCP test that does not outlive this process, and can be ended before its time."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Sequence

from ..core.errors import DutError
from ..transport import Completed
from .hosts import Agent, EndpointHost

LOOK_S = 0.2
"""Interval between looks at whether the program is to end."""
LATE_S = 5.0
"""For the agent to tell that the program has exceeded its time."""


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
    return Completed(tuple(argv), int(said.get("code", 0)), stdout, stderr, time.monotonic() - begun_s)
