"""``trexbench tcp --sim``: hosts and router as the DUT's twin, on a clock that runs ``--speedup`` times as fast."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.dut.telemetry import DutReading, Moment
from ...core.tcp.laws import USUAL_SCALE
from ...core.tcp.plan import Counters, Leg, LegReadings, Ping, Seen, TcpEnvironment, TcpPlan
from ...core.tcp.tunnel import NO_TUNNEL
from ...core.verdict.parts import RunWarning
from ...twin.tcp import TcpTwin
from ...twin.tcp_limits import BUFFERS, DEFAULT_CONGESTION, TcpModel
from ..process import HeldClock
from .request import TcpRequest

ENGINE = "simulated"
_PING_INTERVAL_S = 1.0


class SimulatedBench:
    """A bench of run_tcp without packets. ConfigError if the DUT has no twin, or its twin not this variant."""

    def __init__(self, request: TcpRequest) -> None:
        dut = request.dut
        spec, congestion = dut.chosen_twin, request.plan.congestion or DEFAULT_CONGESTION
        self._seed = spec.seed if request.seed is None else request.seed
        self._model = TcpModel(spec, dut.speed_bps, dut.wan, congestion, dut.hosts.through, dut.dials_in)
        self.clock, self._streams = HeldClock(request.pace), request.plan.streams
        self._twin, self._variant = TcpTwin(self._model, self._seed), request.variant

    @property
    def warnings(self) -> tuple[RunWarning, ...]:
        tunnel = f"what the {self._model.tunnel.kind} tunnel costs the CPUs is not simulated: a real one may be slower"
        return (RunWarning("tunnel-cpu", tunnel),) if self._model.tunnel.is_opened else ()

    @property
    def setup(self) -> TcpEnvironment:
        model, through, wan = self._model, self._model.tunnel, self._model.wan
        by = "the twin"
        return TcpEnvironment(
            model.line_bps,
            model.mtu,
            tunnel=through.kind,
            tunnel_by=by if through.kind != NO_TUNNEL else "",
            tunnel_between=through.between if through.is_opened else "",
            tunnel_mtu=model.inner_mtu,
            pppoe=model.dials,
            wan=wan,
            wan_by=by if wan is not None else "",
        )

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
            if counters is not None:
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
        began_s, instants = self.clock.now(), tuple(TcpTwin(self._model.without_router(), self._seed).run(leg, plan))
        self.clock.sleep_until(began_s + plan.omit_s + plan.time_s)
        client, server = (instant.client for instant in instants), (instant.server for instant in instants)
        return LegReadings(leg, began_s, tuple(client), tuple(server), program=self._program(leg, plan))

    def _program(self, leg: Leg, plan: TcpPlan) -> Mapping[str, Mapping[str, str]]:
        """Facts that both ends would report of themselves; buffers as session.temporary sets them."""
        facts = {"name": ENGINE, "congestion": leg.congestion or plan.congestion or DEFAULT_CONGESTION}
        most = leg.buffer_bytes or BUFFERS[2]
        facts["tcp_rmem"] = facts["tcp_wmem"] = " ".join(str(min(size, most)) for size in (*BUFFERS[:2], most))
        facts["tcp_adv_win_scale"] = str(USUAL_SCALE)
        return {"client": facts, "server": facts}
