"""Engines that send and receive on a host: the embedded endpoint or the genuine iperf3. Both give the same readings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..core.errors import DutError
from ..core.tcp.iperf3 import Told
from ..core.tcp.model import HostReading, Leg, TcpPlan, Way
from .hosts import Agent, EndpointHost, told_by

READY_S = 15.0
"""For a server to listen, and then for its client to come."""
GRACE_S = 20.0
"""For all that a test needs besides its own time; then its programs end by themselves."""


@dataclass(frozen=True)
class LegPart:
    """One host's part in a leg. peer: the other host's address. token: both ends know it; None where one is genuine."""

    engine: TcpEngine
    plan: TcpPlan
    leg: Leg
    role: str
    host: EndpointHost
    address: str
    peer: str
    port: int
    token: str | None

    @property
    def cpu(self) -> int | None:
        return self.host.cpus[0] if self.plan.pinned and self.host.cpus else None

    @property
    def limit_s(self) -> float:
        """After which the agent ends by itself, and what it started."""
        waits_s = READY_S if self.role == "server" else 0.0
        return waits_s + self.plan.omit_s + self.plan.time_s + GRACE_S


class Embedded:
    name, takes_token = "embedded", True
    """takes_token: its client sends the cookie that it is given."""

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

    def readings(self, agent: Agent, part: LegPart) -> tuple[HostReading, ...]:
        """All of a host's readings, once its agent has ended; DutError where its program reported a failure."""
        return tuple(agent.readings)

    def about(self, agent: Agent) -> Mapping[str, str]:
        """The program's name, version and congestion control, as it reported them."""
        return {"name": "embedded", **agent.told}


@dataclass(frozen=True)
class Iperf3:
    """program: its name or path on the host."""

    program: str = "iperf3"
    name = "iperf3"
    takes_token = False

    def options(self, part: LegPart) -> Mapping[str, Any]:
        return {
            "role": "program",
            "argv": [self.program, *(self._client(part) if part.role == "client" else self._server(part))],
            "serves": part.role == "server",
            "port": part.port,
            # Finer than what is kept: iperf3 tells only at its end when its intervals were.
            "interval_s": part.plan.interval_s / 10,
            "cpu": part.cpu,
            "deadline_s": part.limit_s,
        }

    def _server(self, part: LegPart) -> list[str]:
        return ["-s", "-1", "-J", "-p", str(part.port), "-B", part.address, "-i", f"{part.plan.interval_s:g}"]

    def _client(self, part: LegPart) -> list[str]:
        plan = part.plan
        argv = ["-c", part.peer, "-B", part.address, f"-{part.leg.version}", "-J", "-p", str(part.port)]
        argv += ["-t", str(math.ceil(plan.time_s)), "-O", str(math.ceil(plan.omit_s)), "-P", str(plan.streams)]
        argv += ["-i", f"{plan.interval_s:g}", "--connect-timeout", "5000"]
        argv += {Way.FORWARD: [], Way.REVERSE: ["-R"], Way.BIDIR: ["--bidir"]}[part.leg.way]
        argv += ["-C", plan.congestion] if plan.congestion else []
        return [*argv, "-Z"] if plan.zerocopy else argv

    def readings(self, agent: Agent, part: LegPart) -> tuple[HostReading, ...]:
        if agent.output is None:
            return tuple(agent.readings)
        told = told_by(agent.output)
        readings = with_streams(told, agent.readings, float(agent.output.get("at_s", 0.0)))
        if told.error:
            agent.readings = list(readings)
            remedy = next(
                (fix for word, fix in _REMEDIES.items() if word in told.error), "see whether the other end runs"
            )
            raise DutError(f"{agent.host.place}: iperf3 tells of {told.error!r}", remedy)
        return readings

    def about(self, agent: Agent) -> Mapping[str, str]:
        told = told_by(agent.output).about if agent.output is not None else {}
        return {"name": "iperf3", **agent.told, **told}


def with_streams(told: Told, read: Sequence[HostReading], ended_s: float) -> tuple[HostReading, ...]:
    """iperf3's intervals as readings, each with the CPUs and threads that the agent read next to it.

    Their time begins with the first interval. ended_s: by the agent's clock when iperf3 had ended.
    """
    if not told.totals or not read:
        return tuple(read)
    began_s = max(0.0, ended_s - told.length_s)
    nothing = tuple(replace(one, payload_bytes=0, info={}) for one in told.totals[-1][1])
    # Its own last reading is of after its end: its threads are gone.
    whole = read[:-1] or read
    found = []
    for after_s, streams in ((0.0, nothing), *told.totals):
        at_s = began_s + after_s
        near = min(whole, key=lambda one: abs(one.at_s - at_s))
        found.append(HostReading(after_s, streams, near.cpus, near.threads))
    return tuple(found)


TcpEngine = Embedded | Iperf3
_REMEDIES = {
    "authorization": "start the server without --authorized-users-path",
    "duration": "ask for less time, or start the server without --server-max-duration",
    "busy": "wait for the end of the other test, or use another port",
}
"""By a word of what the genuine iperf3 says."""
ENGINES: Mapping[str, Callable[[], TcpEngine]] = {"embedded": Embedded, "iperf3": Iperf3}
