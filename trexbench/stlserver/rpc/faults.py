"""Faults on demand: failures of the server at a moment that a test chooses.

    die@20s           ends at once, without a word
    hang@20s:5s       answers nothing for so long; without a length for ever. Traffic runs on
    drop@20s:3        carries the next 3 commands out and loses the replies; without a number 1
    link1-down@20s:2s the link of port 1 is down for so long; without a length for ever
    reset@20s         all counters go back to zero
    steal0@20s        somebody else takes port 0 by force; its traffic runs on
    stale@20s:10s     all statistics stand still for so long; without a length for ever

Times count from the first start of traffic, on the server's clock. Where that clock jumps over a fault with a length,
the fault is not seen; faults that happen once happen at the end of the jump.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf

from ..engine import Engine, EngineCounters, EngineLoad, EnginePort, FlowTotals
from ..state.server_state import ServerState
from ..state.stats import Stats

OTHER_USER, OTHER_SESSION = "somebody else", 0x7E1EF
_WITH_LENGTH = ("hang", "linkN-down", "stale")
_KINDS = ("die", "hang", "drop", "linkN-down", "reset", "stealN", "stale")
_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "": 1.0}


class FaultError(Exception):
    """A fault that cannot be made: one line with its name, what is wrong, and what to write."""


@dataclass(frozen=True)
class Fault:
    """One fault. kind: its name, with ``N`` for the port; at_s: after the first start; length_s: inf is for ever."""

    kind: str
    at_s: float
    port: int = -1
    length_s: float = inf
    count: int = 1

    @property
    def name(self) -> str:
        return self.kind.replace("N", str(self.port))

    def __str__(self) -> str:
        """The text that ``parse_fault`` makes this of."""
        more = f":{self.count}" if self.kind == "drop" else "" if self.length_s == inf else f":{_text(self.length_s)}"
        return f"{self.name}@{_text(self.at_s)}{more}"

    def active(self, since_s: float) -> bool:
        """Test whether the fault holds this long after the first start."""
        return self.at_s <= since_s < self.at_s + self.length_s


def parse_fault(text: str) -> Fault:
    """NAME@TIME or NAME@TIME:MORE; FaultError."""
    name, at, moment = text.strip().partition("@")
    moment, colon, more = moment.partition(":")
    number = re.search(r"\d+", name, re.ASCII)
    kind = name[: number.start()] + "N" + name[number.end() :] if number else name
    if kind not in _KINDS or ("N" in kind and number is None):
        raise _wrong(text, _unknown(name))
    if not at:
        raise _wrong(text, f"says not when: write {name}@20s, so long after the first start of traffic")
    port = int(number[0]) if number and len(number[0]) <= 3 else -1
    if number and port < 0:
        raise _wrong(text, f"no port has the number {number[0]}: write its number, from 0")
    at_s = _seconds(text, moment, may_be_zero=True)
    if not colon:
        return Fault(kind, at_s, port)
    if kind == "drop":
        return Fault(kind, at_s, port, count=_count(text, more))
    if kind not in _WITH_LENGTH:
        raise _wrong(text, f"{name} takes no {':' + more!r}: it happens once, leave that out")
    return Fault(kind, at_s, port, length_s=_seconds(text, more, may_be_zero=False))


def _wrong(text: str, what: str) -> FaultError:
    return FaultError(f"fault {text!r}: {what}")


def _unknown(name: str) -> str:
    numbered = next((kind for kind in _KINDS if "N" in kind and name in (kind, kind.replace("N", ""))), None)
    if numbered is not None:
        return f"{name} names no port: write {numbered.replace('N', '0')}"
    return f"no fault is called {name!r}: there are {', '.join(_KINDS)}"


def _seconds(text: str, said: str, may_be_zero: bool) -> float:
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,9})?)(ms|s|m|)", said, re.ASCII)
    value = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if match is None or not (value or may_be_zero):
        raise _wrong(text, f"{said!r} is no {'time' if may_be_zero else 'length'}: write 20s, 500ms or 2m")
    return value


def _count(text: str, said: str) -> int:
    if re.fullmatch(r"[1-9]\d{0,5}", said, re.ASCII) is None:
        raise _wrong(text, f"{said!r} is no number of replies: write 1 or more")
    return int(said)


def _text(seconds: float) -> str:
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"


class Faults:
    """The faults of one server, which calls ``advance`` before it does anything, then asks whether it still may.

    engine: what the server shall use, the given one itself unless a fault concerns links or counters.
    FaultError for a port that the engine has not.
    """

    def __init__(self, faults: Sequence[Fault], engine: Engine) -> None:
        ports = [port.index for port in engine.ports]
        for fault in faults:
            if "N" in fault.kind and fault.port not in ports:
                raise _wrong(str(fault), f"there is no port {fault.port}: there are {', '.join(map(str, ports))}")
        self._faults = tuple(faults)
        self._to_come = sorted(faults, key=lambda fault: fault.at_s)
        self._faulty = FaultyEngine(engine) if any(f.kind in ("linkN-down", "reset") for f in faults) else None
        self._to_lose = 0
        self.engine: Engine = self._faulty or engine
        self.died = self.hung = False

    def advance(self, state: ServerState, stats: Stats) -> bool:
        """Carry out what is due at ``state.now_s``; returns whether a link changed."""
        if not self._faults or state.first_start_s is None:
            return False
        since_s = state.now_s - state.first_start_s
        while self._to_come and self._to_come[0].at_s <= since_s:
            self._carry_out(self._to_come.pop(0), state, stats)
        self.hung = self._any("hang", since_s)
        stats.hold(state.now_s, self._any("stale", since_s))
        down = {fault.port for fault in self._faults if fault.kind == "linkN-down" and fault.active(since_s)}
        return self._faulty is not None and self._faulty.cut(down)

    def reply_is_lost(self) -> bool:
        """Asked once for every reply."""
        lost = self._to_lose > 0
        self._to_lose -= lost
        return lost

    def _carry_out(self, fault: Fault, state: ServerState, stats: Stats) -> None:
        if fault.kind == "die":
            self.died = True
        elif fault.kind == "drop":
            self._to_lose += fault.count
        elif fault.kind == "stealN":
            state.acquire(state.ports[fault.port], OTHER_USER, OTHER_SESSION, force=True)
        elif fault.kind == "reset" and self._faulty is not None:
            self._faulty.reset()
            stats.forget()

    def _any(self, kind: str, since_s: float) -> bool:
        return any(fault.kind == kind and fault.active(since_s) for fault in self._faults)


_RECEIVED = ("ipackets", "ibytes", "ierrors")


class FaultyEngine:
    """Another engine, whose links may be cut and whose counters may be set back to zero.

    Over a cut link nothing is counted: the port counts nothing at all, its partner receives nothing.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine, self.ports = engine, engine.ports
        self._down: frozenset[int] = frozenset()
        self._raw = {port.index: engine.counters(port.index) for port in engine.ports}
        self._shown = {port: asdict(raw) for port, raw in self._raw.items()}
        self._raw_flows = engine.flows()
        self._flows: dict[int, dict[int, FlowTotals]] = {port: {} for port in self._raw}
        self._queue_full: Mapping[int, int] = dict.fromkeys(self._raw, 0)
        # all else is the engine's own
        self.check, self.start, self.update, self.stop = engine.check, engine.start, engine.update, engine.stop
        self.pause, self.resume, self.poll, self.latency = engine.pause, engine.resume, engine.poll, engine.latency
        self.set_promiscuous, self.close = engine.set_promiscuous, engine.close

    def cut(self, ports: set[int]) -> bool:
        """Exactly these links are down from now on; whether that is a change."""
        if ports == self._down:
            return False
        self._count()
        self._down = frozenset(ports)
        return True

    def reset(self) -> None:
        """Every counter begins at zero again."""
        self._count()
        for shown in self._shown.values():
            shown.update(dict.fromkeys(shown, 0))
        self._flows = {port: {} for port in self._flows}
        self._queue_full = {port: load.queue_full for port, load in self._engine.load().ports.items()}

    def _count(self) -> None:
        raw_flows, flows_before = self._engine.flows(), self._raw_flows
        self._raw_flows = raw_flows
        for port in self.ports:
            before, after = self._raw[port.index], self._engine.counters(port.index)
            self._raw[port.index], shown = after, self._shown[port.index]
            if port.index in self._down:
                continue
            for name in shown:
                if name not in _RECEIVED or port.partner not in self._down:
                    shown[name] += getattr(after, name) - getattr(before, name)
            self._count_flows(port, flows_before.get(port.index, {}), raw_flows[port.index])

    def _count_flows(self, port: EnginePort, before: Mapping[int, FlowTotals], after: Mapping[int, FlowTotals]) -> None:
        """A port whose link is up has sent these frames; it received them unless its partner's is down."""
        flows, cut = self._flows[port.index], port.partner in self._down
        for mark, now in after.items():
            then, shown = before.get(mark, FlowTotals()), flows.get(mark, FlowTotals())
            flows[mark] = FlowTotals(
                shown.sent + now.sent - then.sent,
                shown.sent_bytes + now.sent_bytes - then.sent_bytes,
                shown.received + (0 if cut else now.received - then.received),
                shown.received_bytes + (0 if cut else now.received_bytes - then.received_bytes),
            )

    def flows(self) -> Mapping[int, Mapping[int, FlowTotals]]:
        self._count()
        return {port: dict(flows) for port, flows in self._flows.items()}

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
