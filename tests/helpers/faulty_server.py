"""A server that fails at a moment that a test chooses, counted from the first start of traffic on the server's clock.

    die@20s           ends at once, without a word
    hang@20s:5s       answers nothing for so long; without a length for ever. Traffic runs on
    drop@20s:3        carries the next 3 commands out and loses the replies; without a number 1
    link1-down@20s:2s the link of port 1 is down for so long; without a length for ever
    reset@20s         all counters go back to zero
    steal0@20s        somebody else takes port 0 by force; its traffic runs on
    stale@20s:10s     all counters stand still for so long; without a length for ever

Where the clock jumps over a fault with a length, the fault is not seen; others happen at the end of the jump.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from trexbench.stlserver.engine import Engine, EngineCounters, EngineLoad, StreamSpec
from trexbench.stlserver.rpc.cmd_port import attributes
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
    match = re.fullmatch(
        r"(die|hang|drop|link(?=\d+-down)|reset|steal(?=\d)|stale)(\d*)(?:-down)?@([\d.]+)(m?s)(?::([\d.]+)(m?s|))?",
        text,
    )
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
        super().__init__(engine, *address, **more)
        self._faulty = FaultyEngine(engine, self._clock)
        self._ctx = type(self._ctx)(self._faulty)

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
        if self._faulty.first_start_s is None:
            return False
        since_s = self._clock() - self._faulty.first_start_s
        while self._to_come and self._to_come[0].at_s <= since_s:
            self._carry_out(self._to_come.pop(0))
        active = [fault for fault in self._faults if fault.active(since_s)]
        kinds = {fault.kind for fault in active}
        self._faulty.freeze("stale" in kinds)
        if self._faulty.cut({fault.port for fault in active if fault.kind == "link"}):
            self._ctx.watch_links(attributes)
        return "hang" in kinds

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
        elif fault.kind == "reset":
            self._faulty.reset()
            self._ctx.stats.forget()

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


_RECEIVED = ("ipackets", "ibytes", "ierrors")


class FaultyEngine:
    """Another engine, whose links may be cut and whose counters may stand still or be set back to zero.

    Over a cut link nothing is counted: the port counts nothing at all, its partner receives nothing. Counts by mark and
    latencies are left alone.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float]) -> None:
        self._engine, self._clock, self.ports = engine, clock, engine.ports
        self.first_start_s: float | None = None
        self._down: frozenset[int] = frozenset()
        self._frozen = False
        self._raw = {port.index: engine.counters(port.index) for port in engine.ports}
        self._shown = {port: asdict(raw) for port, raw in self._raw.items()}
        self._queue_full: Mapping[int, int] = dict.fromkeys(self._raw, 0)
        # all else is the engine's own
        self.check, self.update, self.stop, self.pause = engine.check, engine.update, engine.stop, engine.pause
        self.resume, self.poll, self.latency, self.flows = engine.resume, engine.poll, engine.latency, engine.flows
        self.set_promiscuous, self.close = engine.set_promiscuous, engine.close

    def start(self, port: int, streams: Sequence[StreamSpec], factor: float, duration_s: float | None) -> None:
        self._engine.start(port, streams, factor, duration_s)
        if self.first_start_s is None:
            self.first_start_s = self._clock()

    def cut(self, ports: set[int]) -> bool:
        """Exactly these links are down from now on; returns whether that is a change."""
        if ports == self._down:
            return False
        self._count()
        self._down = frozenset(ports)
        return True

    def freeze(self, frozen: bool) -> None:
        """Let frames be counted from now on, or not before this is taken back."""
        if frozen and not self._frozen:
            self._count()
        self._frozen = frozen

    def reset(self) -> None:
        """Every counter begins at zero again."""
        self._count()
        for shown in self._shown.values():
            shown.update(dict.fromkeys(shown, 0))
        self._queue_full = {port: load.queue_full for port, load in self._engine.load().ports.items()}

    def _count(self) -> None:
        if self._frozen:
            return
        for port in self.ports:
            before, after = self._raw[port.index], self._engine.counters(port.index)
            self._raw[port.index], shown = after, self._shown[port.index]
            if port.index in self._down:
                continue
            for name in shown:
                if name not in _RECEIVED or port.partner not in self._down:
                    shown[name] += getattr(after, name) - getattr(before, name)

    def counters(self, port: int) -> EngineCounters:
        self._count()
        return EngineCounters(**self._shown[port])

    def load(self) -> EngineLoad:
        load = self._engine.load()
        ports = {
            port: replace(one, queue_full=one.queue_full - self._queue_full[port]) for port, one in load.ports.items()
        }
        return replace(load, ports=ports)

    def link_up(self, port: int) -> bool:
        return port not in self._down and self._engine.link_up(port)
