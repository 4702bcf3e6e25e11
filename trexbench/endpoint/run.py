"""One leg of a TCP test: both hosts' agents started, the server first, heard until they end, and ended with this."""

from __future__ import annotations

import secrets
import select
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from ..core.errors import BenchError, ConfigError, DutError
from ..core.tcp.model import HostReading, Leg, LegReadings, Seen, TcpPlan
from .engines import ENGINES, GRACE_S, READY_S, LegPart, TcpEngine
from .hosts import Agent, EndpointHost

PORT = 5201
OTHER_S = 1.0
"""For the other end to say why, after one has failed."""


def run_leg(
    plan: TcpPlan,
    leg: Leg,
    client: EndpointHost,
    server: EndpointHost,
    port: int = PORT,
    seen: Seen = lambda name, reading: None,
    clock: Callable[[], float] = time.monotonic,
    engines: tuple[TcpEngine, TcpEngine] | None = None,
) -> LegReadings:
    """Run one leg; what the router did meanwhile is left empty.

    seen: is given each reading as it comes, with its host's name; the genuine iperf3's come without streams. engines:
    of client and server; None: both as the plan says. A leg that ends early has its readings and ``error``; DutError
    where no payload was ever carried. Whatever ends this ends the agents and what they started.
    """
    of_client, of_server = engines or (ENGINES[plan.engine](), ENGINES[plan.engine]())
    ours, theirs = (_address(host, leg.version) for host in (client, server))
    token = secrets.token_hex(18) if of_client.takes_token and of_server.takes_token else None
    parts = (
        LegPart(of_server, plan, leg, "server", server, theirs, ours, port, token),
        LegPart(of_client, plan, leg, "client", client, ours, theirs, port, token),
    )
    with ExitStack() as stack:
        agents: dict[str, Agent] = {}
        for part in parts:
            agents[part.role] = agent = stack.enter_context(Agent(part.host, part.engine.options(part)))
            if part.role == "server":
                _wait_ready(agent, part)
        began_s: list[float] = []

        def noted(name: str, reading: HostReading) -> None:
            if name == client.name and not began_s:
                began_s.append(clock())
            seen(name, reading)

        error = _listen([agents["client"], agents["server"]], plan.omit_s + plan.time_s + GRACE_S + READY_S, noted)
    found, said = _read_ends(parts, agents)
    if said is not None and not any(agent.error for agent in agents.values()):
        error = said  # says more than that the other end did not end in time
    carried = any(stream.payload_bytes for one in (*found["client"], *found["server"]) for stream in one.streams)
    if not carried:
        what = f"no payload came from {client.place} to {server.place}"
        raise error or DutError(what, "see whether a route leads there")
    return LegReadings(
        leg,
        began_s[0] if began_s else clock(),
        found["client"],
        found["server"],
        program={part.role: dict(part.engine.about(agents[part.role])) for part in reversed(parts)},
        processes={role: one.processes for role, one in agents.items() if one.processes is not None},
        error=str(error) if error else None,
    )


def _read_ends(
    parts: Sequence[LegPart], agents: Mapping[str, Agent]
) -> tuple[dict[str, tuple[HostReading, ...]], BenchError | None]:
    """The readings of both ends, and what the client said that has none of its own, or else the server."""
    found, said = dict[str, tuple[HostReading, ...]](), None
    for part in parts:
        try:
            found[part.role] = part.engine.readings(agents[part.role], part)
        except DutError as failure:
            found[part.role], said = tuple(agents[part.role].readings), failure
    return found, said


def _address(host: EndpointHost, version: int) -> str:
    if version not in host.addresses:
        raise ConfigError(f"{host.place} has no IPv{version} address", "name one in the DUT's config")
    return host.addresses[version]


def _wait_ready(agent: Agent, part: LegPart) -> None:
    agent.listen_until(lambda: agent.ready, READY_S)
    if agent.error is not None:
        raise agent.error
    if agent.done and not agent.ready:
        part.engine.readings(agent, part)
        raise DutError(f"{agent.host.place}: it ended before it listened", "see what it says there by hand")
    if not agent.ready:
        what = f"{agent.host.place}: it did not listen within {READY_S:g} s"
        raise DutError(what, "see whether it still answers")


def _listen(agents: Sequence[Agent], within_s: float, seen: Seen) -> BenchError | None:
    """Until both have ended; what went wrong: of the first that failed, and what the other says of it soon after."""
    deadline = time.monotonic() + within_s
    failed: list[BenchError] = []
    while waiting := [one for one in agents if not one.ended]:
        left_s = deadline - time.monotonic()
        ready = select.select([one.running for one in waiting], [], [], max(0.0, left_s))[0] if left_s > 0 else []
        if not ready:
            names = " and ".join(one.host.place for one in waiting)
            return failed[0] if failed else DutError(f"{names} did not end in time", "see whether it still answers")
        for agent in waiting:
            if agent.running in ready:
                for reading in agent.hear():
                    seen(agent.host.name, reading)
                if agent.error is not None:
                    failed.append(agent.error)
                if agent.failed:
                    deadline = min(deadline, time.monotonic() + OTHER_S)
    if len(failed) > 1:
        return DutError("; ".join(str(one) for one in failed))
    return failed[0] if failed else None
