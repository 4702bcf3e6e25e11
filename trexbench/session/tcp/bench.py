"""The bench of a TCP test, real: hosts behind transports, a router between them, and what it counts meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ...core.dut.telemetry import DutReading, Missing, Moment
from ...core.errors import BenchError, DutError
from ...core.protocols import Clock
from ...core.tcp.model import HEADER_BYTES, Leg, LegReadings, Ping, Seen, TcpEnvironment, TcpPlan
from ...core.tcp.tunnel import CLIENT_DUT
from ...core.verdict.model import RunWarning
from ...endpoint import EndpointHost, run_leg, run_program, watched_processes
from ...host.ping import ping_argv, ping_limit_s, read_ping
from ...signals import uninterrupted
from ..process import RunClock
from ..temporary import Buffers
from ..watch import Observed
from .endpoints import Endpoints, open_endpoints
from .path import prove_bypass, prove_path
from .request import TcpRequest

TICK_S, SHORTEST_TICK_S, TICKS = 5.0, 0.5, 10
"""Between readings of the DUT while a leg runs: at most, at least, and so many in a short one."""
LONGEST_LEG_S = 60.0
"""Longest time that a leg takes besides its own."""
PING_S = 1.0
"""Between echo requests."""


@contextmanager
def open_hosts(request: TcpRequest, say: Callable[[str], None]) -> Iterator[HostsBench]:
    """Lab, router and endpoints, configured and read back."""
    doing = f"tcp of {request.dut.name}"
    with open_endpoints(request.dut, doing, say, request.apply) as found, Buffers(found.hosts) as buffers:
        yield HostsBench(found, buffers, RunClock(), say, request.dut.speed_bps)


@dataclass(frozen=True)
class HostsBench:
    """A run.Bench. speed_bps: of the DUT's ports, where its config states it."""

    found: Endpoints
    buffers: Buffers
    clock: Clock
    say: Callable[[str], None] = lambda _: None
    speed_bps: float | None = None

    def prove(self, versions: Sequence[int]) -> None:
        for one in (*prove_path(self.found, versions), *prove_bypass(self.found, versions)):
            way = f"{one.asked_by} to {one.answered_by}, IPv{one.version}"
            self.say(f"{way}: {one.routers} router{'' if one.routers == 1 else 's'}")

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        ends = {one.name: one.attestation.to_document() for one in (self.found.client, self.found.server)}
        if self.found.pppoe is not None:
            ends["server"] = {**ends["server"], "pppoe": dict(self.found.pppoe.told)}
        found = {**ends, "dut": self.found.attestation.to_document()}
        if self.found.lab is not None and self.found.lab.accelerator:
            found["dut"] = {**found["dut"], "accelerator": self.found.lab.accelerator}
        for role, end in self.found.opened.ends.items() if self.found.opened is not None else ():
            found[role] = {**found[role], "tunnel": dict(end.up or {})}
        return found

    @property
    def setup(self) -> TcpEnvironment:
        lab, pppoe = self.found.lab, self.found.pppoe
        found = TcpEnvironment(_slowest(self.found, self.speed_bps), _mtu(self.found), pppoe=pppoe is not None)
        if self.found.sit:
            found = replace(found, tunnel="6in4", tunnel_by=self.found.sit)
        if self.found.line is not None:
            found = replace(found, wan=self.found.line.wan, wan_by=self.found.line.by)
        if (opened := self.found.opened) is not None:
            found = replace(found, tunnel=opened.tunnel.kind, tunnel_by=opened.by)
            found = replace(found, tunnel_between=opened.tunnel.between, tunnel_mtu=opened.mtu)
        if lab is None:
            return found
        placed, wired = lab.placement, lab.host_facts["lab"]["endpoints"]
        cpus = {
            "dut": tuple(placed["router_cpus"]),
            **{role: tuple(own) for role, own in placed["endpoint_cpus"].items()},
        }
        threads = wired["steer"] == "threaded" or found.dut_programs  # which move packets in a thread
        found = replace(found, one_kernel=True, napi_threads=threads, cpus=cpus, dut_is_guest=lab.spec.is_vm)
        return replace(found, line_bps=wired["line_bps"])

    @property
    def warnings(self) -> tuple[RunWarning, ...]:
        found = [RunWarning("lab", text) for text in (self.found.lab.warnings if self.found.lab is not None else ())]
        hosts = {one.name: one.attestation for one in (self.found.client, self.found.server)}
        for host, attestation in {"DUT": self.found.attestation, **hosts}.items():
            if not attestation.attested:
                text = f"the {host}'s configuration was neither applied nor read back ({attestation.reason})"
                found.append(RunWarning("not-attested", text))
        if (line := self.found.line) is not None and not self._tries_line:
            text = f"the WAN of {line.wan} was not tried: all ways from client to server lead through the tunnel"
            found.append(RunWarning("wan-untried", text))
        return tuple(found)

    @property
    def _tries_line(self) -> bool:
        opened = self.found.opened
        return self.found.line is not None and (opened is None or opened.tunnel.between != CLIENT_DUT)

    def ping_line(self, leg: Leg, count: int) -> Ping | None:
        outside = replace(self, found=self.found.beneath)
        return outside.ping(leg, count, False, threading.Event()) if self._tries_line else None

    def ping(self, leg: Leg, count: int, loaded: bool, over: threading.Event) -> Ping:
        client, server = self.found.client, self.found.server
        own, address = client.addresses[leg.version], server.addresses[leg.version]
        argv = ping_argv(address, count, PING_S, leg.version, own)
        series = read_ping(run_program(client, argv, ping_limit_s(count, PING_S), over), client.transport.place)
        return Ping(leg, loaded, series.sent, series.times_s)

    def look(self, moment: Moment) -> DutReading | None:
        seen = _read(self.found.dut.observed, self.clock, moment)
        return seen if isinstance(seen, DutReading) else None

    def flow(self, leg: Leg, plan: TcpPlan, seen: Seen, watched: bool) -> LegReadings:
        self.buffers.set(leg.buffer_bytes)
        client, server = self.found.client, self.found.server
        tick_s = min(TICK_S, max(SHORTEST_TICK_S, (plan.omit_s + plan.time_s) / TICKS))
        if self.found.lab is not None and self.found.lab.spec.is_vm:  # its few cores would forward less meanwhile
            tick_s = LONGEST_LEG_S + plan.omit_s + plan.time_s
        router, over_s = EndpointHost("dut", self.found.dut.transport, {}), plan.omit_s + plan.time_s + LONGEST_LEG_S
        with (
            _watching(self.found.dut.observed if watched else None, self.clock, tick_s) as read,
            watched_processes(router if watched and self.found.runs_linux else None, over_s) as processes,
        ):
            try:
                found = run_leg(self._placed(plan), leg, client, server, seen=seen, clock=self.clock.now)
            except DutError as error:  # it ended before anything flowed
                if lost := list(self._lost()):
                    raise type(error)("; ".join([str(error), *lost])) from error
                raise
            took = processes()
        found = found if took is None else replace(found, processes={**found.processes, "dut": took})
        if found.error is not None:
            found = replace(found, error="; ".join([found.error, *self._lost()]))
        dut = tuple(one for one in read if isinstance(one, DutReading))
        missing = [one for one in read if isinstance(one, Missing)]
        return replace(found, dut=dut, missing=(*found.missing, *missing))

    def _lost(self) -> Iterator[str]:
        """Yield why the tunnel or the PPPoE session is down."""
        for one in (self.found.pppoe, self.found.opened):
            if one is not None and (reason := one.lost):
                yield reason

    def around(self, leg: Leg, plan: TcpPlan) -> LegReadings | None:
        if not self.found.client.bypass:
            return None
        client, server = (replace(one, addresses=one.bypass) for one in (self.found.client, self.found.server))
        return run_leg(self._placed(plan), leg, client, server, clock=self.clock.now)

    def _placed(self, plan: TcpPlan) -> TcpPlan:
        """In a lab each program stays on its endpoint's CPU, or it would land on the router's."""
        return plan if self.found.lab is None else replace(plan, pinned=True)


def _interfaces(found: Endpoints) -> Iterator[Mapping[str, Any]]:
    """Yield what was read back of the endpoints' interfaces; nothing for those that were left as they are."""
    for one in (found.client, found.server):
        there = one.attestation.facts.get("interfaces")
        if isinstance(there, Mapping) and isinstance(there.get(one.interface), Mapping):
            yield there[one.interface]


def _slowest(found: Endpoints, stated_bps: float | None) -> float | None:
    """L1 speed of the slowest line, in bit/s; None where it is neither stated nor known of both endpoints."""
    told = [one.get("speed_mbps") for one in _interfaces(found)]
    known = [1e6 * speed for speed in told if isinstance(speed, int) and speed > 0]
    return min([*(known if len(known) == 2 else ()), *([stated_bps] if stated_bps else ())], default=None)


def _mtu(found: Endpoints) -> int:
    if found.opened is not None:  # of its longest packets, outside
        return found.opened.mtu + HEADER_BYTES[found.opened.tunnel.kind][4]
    mtus = [one["mtu"] for one in _interfaces(found) if isinstance(one.get("mtu"), int)]
    return min([*mtus, found.pppoe.mtu] if found.pppoe is not None else mtus, default=1500)


def _read(dut: Observed, clock: Clock, moment: Moment) -> DutReading | Missing:
    """The router's counters; what cannot be read is missing."""
    begun_s = clock.now()
    try:
        seen = dut.observe(moment is Moment.START)
    except BenchError as error:
        return Missing("the DUT's counters", str(error))
    return DutReading(moment, begun_s, clock.now() - begun_s, seen)


@contextmanager
def _watching(dut: Observed | None, clock: Clock, tick_s: float) -> Iterator[list[DutReading | Missing]]:
    """Read the router's counters before, during and after the block; nothing where there is no router to read."""
    found: list[DutReading | Missing] = []
    if dut is None:
        yield found
        return
    over = threading.Event()

    def tick() -> None:
        while not over.wait(tick_s):
            found.append(_read(dut, clock, Moment.TICK))

    found.append(_read(dut, clock, Moment.START))
    ticking = threading.Thread(target=tick, name="watcher", daemon=True)
    with uninterrupted():  # so that it takes no signal
        ticking.start()
    try:
        yield found
        over.set()
        ticking.join()
        found.append(_read(dut, clock, Moment.FINISH))
    finally:
        over.set()
