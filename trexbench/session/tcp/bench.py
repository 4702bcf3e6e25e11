"""The real bench of a TCP test: hosts behind transports, the router between them, and its counters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ...core.dut.telemetry import DutReading, Missing, Moment
from ...core.errors import BenchError, DutError
from ...core.protocols import Clock
from ...core.tcp.plan import HEADER_BYTES, Counters, Leg, LegReadings, Ping, Seen, TcpEnvironment, TcpPlan
from ...core.tcp.tunnel import CLIENT_DUT
from ...core.verdict.parts import RunWarning
from ...endpoint.hosts import EndpointHost
from ...endpoint.leg import run_leg, run_program, watched_processes
from ...host.ping import ping_argv, ping_limit_s, read_ping
from ...signals import uninterrupted
from ..process import RunClock
from ..temporary import Buffers
from ..wan import made_by
from ..watch import Observed
from .hosts import Endpoints, open_endpoints
from .proof import prove_bypass, prove_path
from .request import TcpRequest

TICK_S, SHORTEST_TICK_S, TICKS = 5.0, 0.5, 10
"""Longest and shortest time between readings of the DUT during a leg, and their number in a short leg."""
LONGEST_LEG_S = 60.0
"""Longest time that a leg takes besides its own."""
PING_S = 1.0
"""Time between echo requests."""


@contextmanager
def open_hosts(request: TcpRequest, say: Callable[[str], None]) -> Iterator[HostsBench]:
    """Open lab, router and endpoints, configured and read back."""
    doing = f"tcp of {request.dut.name}"
    with open_endpoints(request.dut, doing, say, request.apply) as hosts, Buffers(hosts.hosts) as buffers:
        yield HostsBench(hosts, buffers, RunClock(), say, request.dut.speed_bps)


@dataclass(frozen=True)
class HostsBench:
    """A legs.Bench of real hosts."""

    hosts: Endpoints
    buffers: Buffers
    clock: Clock
    say: Callable[[str], None] = lambda _: None
    speed_bps: float | None = None
    """Speed of the DUT's ports, if its config states it."""

    def prove(self, versions: Sequence[int]) -> None:
        for path in (*prove_path(self.hosts, versions), *prove_bypass(self.hosts, versions)):
            way = f"{path.asked_by} to {path.answered_by}, IPv{path.version}"
            self.say(f"{way}: {path.routers} router{'' if path.routers == 1 else 's'}")

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        hosts = self.hosts
        facts = {end.name: end.attestation.to_document() for end in (hosts.client, hosts.server)}
        facts["dut"] = hosts.attestation.to_document()
        if hosts.pppoe is not None:
            facts["server"] = {**facts["server"], "pppoe": dict(hosts.pppoe.told)}
        if hosts.lab is not None and hosts.lab.accelerator:
            facts["dut"] = {**facts["dut"], "accelerator": hosts.lab.accelerator}
        for role, tunnel_end in hosts.opened.ends.items() if hosts.opened is not None else ():
            facts[role] = {**facts[role], "tunnel": dict(tunnel_end.up or {})}
        return facts

    @property
    def setup(self) -> TcpEnvironment:
        hosts, lab = self.hosts, self.hosts.lab
        setup = TcpEnvironment(_slowest(hosts, self.speed_bps), _mtu(hosts), pppoe=hosts.pppoe is not None)
        if hosts.sit:
            setup = replace(setup, tunnel="6in4", tunnel_by=hosts.sit)
        if hosts.line is not None:
            setup = replace(setup, wan=hosts.line, wan_by=made_by(hosts.line))
        if (opened := hosts.opened) is not None:
            setup = replace(setup, tunnel=opened.tunnel.kind, tunnel_by=opened.by)
            setup = replace(setup, tunnel_between=opened.tunnel.between, tunnel_mtu=opened.mtu)
        if lab is None:
            return setup
        wired = lab.host_facts["lab"]["endpoints"]
        return replace(
            setup,
            one_kernel=True,
            napi_threads=wired["steer"] == "threaded" or setup.dut_programs,  # which move packets in a thread
            cpus={"dut": lab.placement.router, **lab.placement.endpoints},
            dut_is_guest=lab.spec.is_vm,
            line_bps=wired["line_bps"],
        )

    @property
    def warnings(self) -> tuple[RunWarning, ...]:
        hosts = self.hosts
        warnings = [RunWarning("lab", text) for text in (hosts.lab.warnings if hosts.lab is not None else ())]
        ends = {end.name: end.attestation for end in (hosts.client, hosts.server)}
        for host, attestation in {"DUT": hosts.attestation, **ends}.items():
            if not attestation.attested:
                text = f"the {host}'s configuration was neither applied nor read back ({attestation.reason})"
                warnings.append(RunWarning("not-attested", text))
        if hosts.line is not None and not self._tries_line:
            text = f"the WAN of {hosts.line} was not tried: all ways from client to server lead through the tunnel"
            warnings.append(RunWarning("wan-untried", text))
        return tuple(warnings)

    @property
    def _tries_line(self) -> bool:
        opened = self.hosts.opened
        return self.hosts.line is not None and (opened is None or opened.tunnel.between != CLIENT_DUT)

    def ping_line(self, leg: Leg, count: int) -> Ping | None:
        outside = replace(self, hosts=self.hosts.beneath)
        return outside.ping(leg, count, False, threading.Event()) if self._tries_line else None

    def ping(self, leg: Leg, count: int, loaded: bool, over: threading.Event) -> Ping:
        client, server = self.hosts.client, self.hosts.server
        own, address = client.addresses[leg.version], server.addresses[leg.version]
        argv = ping_argv(address, count, PING_S, leg.version, own)
        series = read_ping(run_program(client, argv, ping_limit_s(count, PING_S), over), client.transport.place)
        return Ping(leg, loaded, series.sent, series.times_s)

    def look(self, moment: Moment) -> DutReading | None:
        reading = _read(self.hosts.dut.observed, self.clock, moment)
        return reading if isinstance(reading, DutReading) else None

    def flow(self, leg: Leg, plan: TcpPlan, seen: Seen, counters: Counters | None) -> LegReadings:
        self.buffers.set(leg.buffer_bytes)
        length_s, hosts = plan.omit_s + plan.time_s, self.hosts
        tick_s = min(TICK_S, max(SHORTEST_TICK_S, length_s / TICKS))
        if hosts.lab is not None and hosts.lab.spec.is_vm:  # its few cores would forward less meanwhile
            tick_s = LONGEST_LEG_S + length_s
        router = EndpointHost("dut", hosts.dut.transport, {}) if counters is not None and hosts.runs_linux else None
        with (
            _watching(hosts.dut.observed, self.clock, tick_s, counters),
            watched_processes(router, length_s + LONGEST_LEG_S) as processes,
        ):
            try:
                flow = run_leg(self._placed(plan), leg, hosts.client, hosts.server, seen=seen, clock=self.clock.now)
            except DutError as error:  # it ended before anything flowed
                if lost := self._lost():
                    raise type(error)("; ".join([str(error), *lost])) from error
                raise
            took = processes()
        if took is not None:
            flow = replace(flow, processes={**flow.processes, "dut": took})
        return flow if flow.error is None else replace(flow, error="; ".join([flow.error, *self._lost()]))

    def _lost(self) -> list[str]:
        """Say why the tunnel or the PPPoE session is down, if one is."""
        kept_up = (self.hosts.pppoe, self.hosts.opened)
        return [reason for connection in kept_up if connection is not None and (reason := connection.lost)]

    def around(self, leg: Leg, plan: TcpPlan) -> LegReadings | None:
        if not self.hosts.client.bypass:
            return None
        client, server = (replace(end, addresses=end.bypass) for end in (self.hosts.client, self.hosts.server))
        return run_leg(self._placed(plan), leg, client, server, clock=self.clock.now)

    def _placed(self, plan: TcpPlan) -> TcpPlan:
        """Pin programs in a lab to their endpoint's CPU; else they would land on the router's."""
        return plan if self.hosts.lab is None else replace(plan, pinned=True)


def _interfaces(hosts: Endpoints) -> list[Mapping[str, Any]]:
    """Facts that were read back of the endpoints' interfaces, if they were."""
    read = [(end.attestation.facts.get("interfaces"), end.interface) for end in (hosts.client, hosts.server)]
    facts = [interfaces.get(name) for interfaces, name in read if isinstance(interfaces, Mapping)]
    return [interface for interface in facts if isinstance(interface, Mapping)]


def _slowest(hosts: Endpoints, stated_bps: float | None) -> float | None:
    """L1 speed of the slowest line, in bit/s; None if it is neither stated nor known of both endpoints."""
    speeds = [interface.get("speed_mbps") for interface in _interfaces(hosts)]
    known = [1e6 * speed for speed in speeds if isinstance(speed, int) and speed > 0]
    return min([*(known if len(known) == 2 else ()), *([stated_bps] if stated_bps else ())], default=None)


def _mtu(hosts: Endpoints) -> int:
    if hosts.opened is not None:  # of its longest packets, outside
        return hosts.opened.mtu + HEADER_BYTES[hosts.opened.tunnel.kind][4]
    mtus = [interface["mtu"] for interface in _interfaces(hosts) if isinstance(interface.get("mtu"), int)]
    return min([*mtus, hosts.pppoe.mtu] if hosts.pppoe is not None else mtus, default=1500)


def _read(dut: Observed, clock: Clock, moment: Moment) -> DutReading | Missing:
    begun_s = clock.now()
    try:
        observation = dut.observe(moment is Moment.START)
    except BenchError as error:
        return Missing("the DUT's counters", str(error))
    return DutReading(moment, begun_s, clock.now() - begun_s, observation)


@contextmanager
def _watching(dut: Observed, clock: Clock, tick_s: float, readings: Counters | None) -> Iterator[None]:
    """Read the router's counters before, during and after the block; nothing if ``readings`` is None."""
    if readings is None:
        yield
        return
    over = threading.Event()

    def tick() -> None:
        while not over.wait(tick_s):
            readings.append(_read(dut, clock, Moment.TICK))

    readings.append(_read(dut, clock, Moment.START))
    ticking = threading.Thread(target=tick, name="watcher", daemon=True)
    with uninterrupted():  # so that it takes no signal
        ticking.start()
    try:
        yield
        over.set()
        ticking.join()
        readings.append(_read(dut, clock, Moment.FINISH))
    finally:
        over.set()
