"""``trexbench tcp --sim``: hosts and router as the DUT's twin, on a clock that runs ``--speedup`` times as fast."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...config.twin import TWIN_REMEDY
from ...core.dut.telemetry import DutReading, Moment
from ...core.errors import ConfigError
from ...core.tcp.plan import HEADER_BYTES, TUNNELS, Counters, Leg, LegReadings, Ping, Seen, TcpEnvironment, TcpPlan
from ...core.verdict.parts import RunWarning
from ...twin.tcp import TcpTwin
from ...twin.tcp_limits import DEFAULT_CONGESTION, TcpModel
from ..process import HeldClock
from .request import TcpRequest

ENGINE = "simulated"
_PING_INTERVAL_S = 1.0


class SimulatedBench:
    """A bench of run_tcp without packets. ConfigError if the DUT has no twin, or its twin not this variant."""

    warnings: tuple[RunWarning, ...] = ()

    def __init__(self, request: TcpRequest) -> None:
        spec = request.dut.twin
        if spec is None:
            raise ConfigError(f"{request.dut.file} describes no twin", TWIN_REMEDY)
        self._seed = spec.seed if request.seed is None else request.seed
        stated, through = request.tunnel or request.dut.chosen.tunnel, request.dut.hosts.through
        opened = stated is not None and through.is_opened
        if stated is not None and not opened:  # else the twin describes it
            inside = replace(spec.tcp.encapsulation, ipv6=stated)
            spec = replace(spec, tcp=replace(spec.tcp, encapsulation=inside))
        congestion = request.plan.congestion or DEFAULT_CONGESTION
        known = dict(spec.tcp.variants)
        pinned = f"{request.variant}-pinned"
        variant = pinned if request.plan.pinned and pinned in known else request.variant
        self._model = model = TcpModel(spec, request.dut.speed_bps, variant, request.dut.wan, congestion)
        described = model.tcp.tunnel.kind if model.tcp.tunnel is not None else None
        if opened and described != through.kind:
            what = f"{request.dut.file}: the twin does not describe tunnel {stated}"
            raise ConfigError(what, "measure it for real, or without a tunnel")
        self.clock, self._streams = HeldClock(request.pace), request.plan.streams
        self._twin, self._variant = TcpTwin(model, self._seed), request.variant

    @property
    def setup(self) -> TcpEnvironment:
        tcp = self._model.tcp
        inside = tcp.tunnel.kind if tcp.tunnel is not None else tcp.encapsulation.ipv6
        tunnel, by = (inside, "the twin") if inside not in (TUNNELS[0], "pppoe") else (TUNNELS[0], "")
        dials = tcp.encapsulation.ipv4 == "pppoe"
        mtu = tcp.mtu - HEADER_BYTES["pppoe"][4] if dials else tcp.mtu
        setup = TcpEnvironment(self._model.line_bps, mtu, tcp.vlans, tunnel=tunnel, tunnel_by=by, pppoe=dials)
        if tcp.tunnel is not None:
            setup = replace(setup, tunnel_between=tcp.tunnel.between)
        wan = self._model.wan
        return setup if wan is None else replace(setup, wan=wan, wan_by="the twin")

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        ends = {host: {"system": ENGINE} for host in ("client", "server")}
        return {**ends, "dut": {"system": ENGINE, "seed": self._seed, "variant": self._variant}}

    def ping(self, leg: Leg, count: int, loaded: bool, over: threading.Event) -> Ping:
        """Simulate echo requests; those beside a leg take no time of their own."""
        if not loaded:
            self.clock.sleep_until(self.clock.now() + count * _PING_INTERVAL_S)
        return self._twin.ping(leg, count, loaded, self._streams)

    def look(self, moment: Moment) -> DutReading:
        return self._twin.idle(self.clock.now(), moment)

    def prove(self, versions: Sequence[int]) -> None:
        """Do nothing: a twin has no path to prove."""

    def ping_line(self, leg: Leg, count: int) -> None:
        """Return None: there is no line to try."""

    def flow(self, leg: Leg, plan: TcpPlan, seen: Seen, counters: Counters | None) -> LegReadings:
        began_s, instants = self.clock.now(), []
        for instant in self._twin.run(leg, plan, began_s):
            self.clock.sleep_until(began_s + instant.at_s)
            instants.append(instant)
            if counters is not None and instant.dut is not None:
                counters.append(instant.dut)
            seen("client", instant.client)
            seen("server", instant.server)
        return LegReadings(
            leg,
            began_s,
            client=tuple(instant.client for instant in instants),
            server=tuple(instant.server for instant in instants),
            program=self._program(leg, plan),
        )

    def around(self, leg: Leg, plan: TcpPlan) -> LegReadings:
        began_s, instants = self.clock.now(), tuple(self._twin.run_around(leg, plan))
        self.clock.sleep_until(began_s + plan.omit_s + plan.time_s)
        client, server = (instant.client for instant in instants), (instant.server for instant in instants)
        return LegReadings(leg, began_s, tuple(client), tuple(server), program=self._program(leg, plan))

    def _program(self, leg: Leg, plan: TcpPlan) -> Mapping[str, Mapping[str, str]]:
        """Facts that both ends would report of themselves; buffers as session.temporary sets them."""
        facts = {"name": ENGINE, "congestion": leg.congestion or plan.congestion or DEFAULT_CONGESTION}
        for name, sizes in (("tcp_rmem", self._model.tcp.rmem), ("tcp_wmem", self._model.tcp.wmem)):
            most = leg.buffer_bytes or sizes[2]
            facts[name] = " ".join(str(min(size, most)) for size in (*sizes[:2], most))
        facts["tcp_adv_win_scale"] = str(self._model.tcp.adv_win_scale)
        return {"client": facts, "server": facts}
