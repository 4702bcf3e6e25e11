"""A server that fails at a moment that a test chooses, counted from the first start of traffic on the server's clock.

die@20s     ends at once, without a word
hang@20s    answers nothing from then on. Traffic runs on
drop@20s    carries the next command out and loses the reply
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trexbench.stlserver.engine import Engine
from trexbench.stlserver.rpc.server import FAST_TICK_S, StlServer


@dataclass(frozen=True)
class Fault:
    """One fault. at_s: after the first start."""

    kind: str
    at_s: float


def parse_fault(text: str) -> Fault:
    """NAME@TIME, in s or ms; ValueError."""
    match = re.fullmatch(r"(die|hang|drop)@([\d.]+)(m?s)", text)
    if match is None:
        raise ValueError(f"no fault: {text!r}")
    kind, at, unit = match.groups()
    return Fault(kind, float(at) * (1.0 if unit == "s" else 1e-3))


class _Death(Exception):
    """The server is to end without a word."""


class FaultyServer(StlServer):
    """A server with faults. kills: a death ends the process, not just the server."""

    def __init__(self, engine: Engine, *address: Any, faults: Sequence[str], kills: bool = False, **more: Any) -> None:
        self._to_come = sorted(map(parse_fault, faults), key=lambda fault: fault.at_s)
        self._to_lose, self._hangs = 0, False
        self._kills = kills
        self.died = False
        self._first_start_s: float | None = None
        super().__init__(engine, *address, **more)
        start = engine.start

        def start_and_note(*words: Any) -> None:
            start(*words)
            if self._first_start_s is None:
                self._first_start_s = self._clock()

        noted: Any = start_and_note
        engine.start = noted  # type: ignore[method-assign]

    def run(self) -> None:
        with contextlib.suppress(_Death):
            super().run()

    def _renew(self) -> None:
        """Carry out what is due; while the server hangs, this does not return."""
        super()._renew()
        while self._advance() and not self._stopping.is_set():
            self._stopping.wait(FAST_TICK_S)
            super()._renew()

    def _advance(self) -> bool:
        """Carry out what is due; returns whether the server hangs."""
        if self._first_start_s is None:
            return False
        since_s = self._clock() - self._first_start_s
        while self._to_come and self._to_come[0].at_s <= since_s:
            self._carry_out(self._to_come.pop(0))
        return self._hangs

    def _carry_out(self, fault: Fault) -> None:
        if fault.kind == "die":
            if self._kills:
                os.kill(os.getpid(), signal.SIGKILL)
            self.died = True
            raise _Death
        if fault.kind == "drop":
            self._to_lose += 1
        else:
            self._hangs = True

    def _send(self, parts: Sequence[bytes]) -> None:
        if self._to_lose:
            self._to_lose -= 1
        else:
            super()._send(parts)

    def _close(self) -> None:
        if self.died:
            self._engine.close()
            self._zmq.destroy(linger=0)
        else:
            super()._close()
