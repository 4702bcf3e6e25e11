"""A server that fails at a moment that a test chooses, counted from the first start of traffic on the server's clock.

    die@20s           ends at once, without a word
    hang@20s:5s       answers nothing for so long; without a length for ever. Traffic runs on
    drop@20s:3        carries the next 3 commands out and loses the replies; without a number 1
    steal0@20s        somebody else takes port 0 by force; its traffic runs on

Where the clock jumps over a fault with a length, the fault is not seen; others happen at the end of the jump.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from trexbench.stlserver.engine import Engine
from trexbench.stlserver.rpc.server import FAST_TICK_S, StlServer

OTHER_USER, OTHER_SESSION = "somebody else", 0x7E1EF
_UNITS = {"s": 1.0, "ms": 1e-3}


@dataclass(frozen=True)
class Fault:
    """One fault. at_s: after the first start; length_s: inf is for ever."""

    kind: str
    at_s: float
    port: int = 0
    length_s: float = inf
    count: int = 1

    def active(self, since_s: float) -> bool:
        """Test whether the fault holds this long after the first start."""
        return self.at_s <= since_s < self.at_s + self.length_s


def parse_fault(text: str) -> Fault:
    """NAME@TIME or NAME@TIME:MORE, times in s or ms; ValueError."""
    match = re.fullmatch(r"(die|hang|drop|steal(?=\d))(\d*)@([\d.]+)(m?s)(?::([\d.]+)(m?s|))?", text)
    if match is None:
        raise ValueError(f"no fault: {text!r}")
    kind, port, at, unit, more, more_unit = match.groups()
    fault = Fault(kind, float(at) * _UNITS[unit], int(port or 0))
    if more is None:
        return fault
    return replace(fault, length_s=float(more) * _UNITS[more_unit]) if more_unit else replace(fault, count=int(more))


class _Death(Exception):
    """The server is to end without a word."""


class FaultyServer(StlServer):
    """A server with faults. kills: a death ends the process, not just the server."""

    def __init__(
        self, engine: Engine, *address: Any, faults: Sequence[str | Fault], kills: bool = False, **more: Any
    ) -> None:
        self._faults = [parse_fault(one) if isinstance(one, str) else one for one in faults]
        self._to_come = sorted(self._faults, key=lambda fault: fault.at_s)
        self._to_lose = 0
        self._kills = kills
        self.died = False
        self._first_start_s: float | None = None
        super().__init__(engine, *address, **more)
        start = engine.start

        def start_and_note(*words: Any) -> None:
            start(*words)
            if self._first_start_s is None:
                self._first_start_s = self._clock()

        engine.start = start_and_note  # type: ignore[method-assign]

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
        return any(fault.kind == "hang" and fault.active(since_s) for fault in self._faults)

    def _carry_out(self, fault: Fault) -> None:
        if fault.kind == "die":
            if self._kills:
                os.kill(os.getpid(), signal.SIGKILL)
            self.died = True
            raise _Death
        if fault.kind == "drop":
            self._to_lose += fault.count
        elif fault.kind == "steal":
            self._ctx.acquire(self._ctx.ports[fault.port], OTHER_USER, OTHER_SESSION, force=True)

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
