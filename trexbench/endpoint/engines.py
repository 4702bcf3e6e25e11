"""Engines that send and receive on a host: the embedded endpoint or the genuine iperf3. Both give the same readings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..core.errors import DutError
from ..core.tcp.iperf3 import Told
from ..core.tcp.plan import HostReading, Leg, TcpPlan, Way
from ..core.tcp.wan import LONGEST_S
from .hosts import Agent, EndpointHost

READY_S = 15.0
"""Time for a server to listen, and then for its client to connect."""
GRACE_S = 20.0
"""Time for all else that a test needs besides its own duration; then its programs end by themselves."""


@dataclass(frozen=True)
class LegPart:
    """One host's part in a leg."""

    engine: TcpEngine
    plan: TcpPlan
    leg: Leg
    role: str
    host: EndpointHost
    address: str
    peer: str
    """The other host's address."""
    port: int
    token: str | None
    """Cookie that both ends know; None if one of them is the genuine iperf3."""

    @property
    def cpu(self) -> int | None:
        return self.host.cpus[0] if self.plan.pinned and self.host.cpus else None

    @property
    def limit_s(self) -> float:
        """Time after which the agent ends by itself, with what it started."""
        waits_s = READY_S if self.role == "server" else 0.0
        connections = self.plan.streams * (2 if self.leg.way is Way.BIDIR else 1)  # opened one after the other
        return waits_s + connections * LONGEST_S + self.flow_limit_s

    @property
    def flow_limit_s(self) -> float:
        """The part of it that remains once all connections are open."""
        return self.plan.omit_s + self.plan.time_s + GRACE_S


class Embedded:
    """The embedded endpoint."""

    is_genuine = False
    """True of the genuine iperf3: its client sends a cookie of its own, and only its end shows what it carried."""

    def options(self, part: LegPart) -> Mapping[str, Any]:
        """Options for the host's agent."""
        plan = part.plan
        return {
            "role": part.role,
            "address": part.address,
            "peer": part.peer,
            "port": part.port,
            "cookie": part.token or ("trexbench" if part.role == "client" else None),
            "way": part.leg.way.value,
            "streams": plan.streams,
            "time_s": plan.time_s,
            "omit_s": plan.omit_s,
            "interval_s": plan.interval_s,
            "congestion": plan.congestion,
            "zerocopy": plan.zerocopy,
            "cpu": part.cpu,
            "deadline_s": part.limit_s,
        }

    def readings(self, agent: Agent) -> tuple[HostReading, ...]:
        """All of a host's readings, once its agent has ended; DutError where its program reported a failure."""
        return tuple(agent.readings)

    def about(self, agent: Agent, part: LegPart) -> Mapping[str, str]:
        """The program's name, version and congestion control, as it reported them."""
        return {"name": "embedded", **agent.facts}


@dataclass(frozen=True)
class Iperf3:
    """The genuine iperf3."""

    program: str = "iperf3"
    """Name or path on the host."""
    is_genuine = True

    def options(self, part: LegPart) -> Mapping[str, Any]:
        plan, serves = part.plan, part.role == "server"
        argv = [self.program, "-J", "-p", str(part.port), "-B", part.address, "-i", f"{plan.interval_s:g}"]
        if serves:
            argv += ["-s", "-1"]
        else:
            argv += ["-c", part.peer, f"-{part.leg.version}", "--connect-timeout", "5000", "-P", str(plan.streams)]
            argv += ["-t", str(math.ceil(plan.time_s)), "-O", str(math.ceil(plan.omit_s))]
            argv += {Way.FORWARD: [], Way.REVERSE: ["-R"], Way.BIDIR: ["--bidir"]}[part.leg.way]
            argv += ["-C", plan.congestion] if plan.congestion else []
            argv += ["-Z"] if plan.zerocopy else []
        return {
            "role": "program",
            "argv": argv,
            "serves": serves,
            "port": part.port,
            # Finer than what is kept: only at its end iperf3 reports when its intervals were.
            "interval_s": plan.interval_s / 10,
            "cpu": part.cpu,
            "deadline_s": part.limit_s,
        }

    def readings(self, agent: Agent) -> tuple[HostReading, ...]:
        report = agent.told
        if agent.output is None or report is None:
            return tuple(agent.readings)
        readings = with_streams(report, agent.readings, float(agent.output.get("at_s", 0.0)))
        if report.error:
            agent.readings = list(readings)
            raise DutError(f"{agent.host.place}: iperf3 reports {report.error!r}", "see whether the other end runs")
        return readings

    def about(self, agent: Agent, part: LegPart) -> Mapping[str, str]:
        told = agent.told.about if agent.told is not None else {}
        # A client's knows both ends', a server's only its own.
        side = "receiver" if part.role == "client" and part.leg.way is Way.REVERSE else "sender"
        used = told.get(f"{side}_congestion", told.get("receiver_congestion"))
        return {"name": "iperf3", **agent.facts, **told, **({"congestion": used} if used else {})}


def with_streams(report: Told, read: Sequence[HostReading], ended_s: float) -> tuple[HostReading, ...]:
    """iperf3's intervals as readings, each with the CPUs and threads of the agent's nearest reading.

    Their time begins with the first interval. ended_s: end of iperf3 by the agent's clock.
    """
    if not report.totals or not read:
        return tuple(read)
    began_s = max(0.0, ended_s - report.length_s)
    at_begin = tuple(replace(stream, payload_bytes=0, info={}) for stream in report.totals[-1][1])
    # The agent's last reading is of after iperf3's end, when its threads are gone.
    running = read[:-1] or read
    readings = []
    for after_s, streams in ((0.0, at_begin), *report.totals):
        near = min(running, key=lambda reading: abs(reading.at_s - (began_s + after_s)))
        readings.append(HostReading(after_s, streams, near.cpus, near.threads))
    return tuple(readings)


TcpEngine = Embedded | Iperf3
ENGINES: Mapping[str, Callable[[], TcpEngine]] = {"embedded": Embedded, "iperf3": Iperf3}
