"""Work for agents on the hosts: a leg of a TCP test; beside it a program run to its end, or a watch on processes."""

from __future__ import annotations

import math
import secrets
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

from ..core.errors import BenchError, ConfigError, DutError
from ..core.tcp.plan import HostReading, Leg, LegReadings, Processes, Seen, TcpPlan, Way
from ..signals import Interrupted, uninterrupted
from ..transport import Completed
from .engines import ENGINES, READY_S, LegPart, TcpEngine
from .hosts import Agent, EndpointHost

PORT = 5201
OTHER_S = 1.0
"""Time for the other end to say why, after one has failed."""
EARLY_S = 3.0
"""Time for both ends of iperf3 to report, after the client's has been interrupted."""
LOOK_S = 0.2
"""Interval between looks at whether a program is to end."""
LATE_S = 5.0
"""Time for the agent to report that a program has exceeded its time."""
ANSWER_S = 10.0
"""Time for a watcher to start, and to report at its end."""


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
    """Run one leg, the server first; the router's readings are left empty. At the end the agents have ended, too.

    seen: is given each reading as it comes, with its host's name; the genuine iperf3's come without streams, and after
    an interruption again, with them. engines: of client and server; None: both as the plan says. A leg that ends early
    has its readings and ``error``; DutError where no payload was ever carried.
    """
    of_client, of_server = engines or (ENGINES[plan.engine](), ENGINES[plan.engine]())
    parts = _parts(plan, leg, (client, of_client), (server, of_server), port)
    began_s: list[float] = []

    def noted(name: str, reading: HostReading) -> None:
        if name == client.name and not began_s:
            began_s.append(clock())
        seen(name, reading)

    with ExitStack() as stack:
        agents: dict[str, Agent] = {}
        for part in parts:
            agents[part.role] = agent = stack.enter_context(Agent(part.host, part.engine.options(part)))
            if part.role == "server":
                _wait_ready(agent, part)
        try:
            both = [agents["client"], agents["server"]]
            error = _listen(both, parts[0].limit_s, noted, parts[0].flow_limit_s)
        except (Interrupted, KeyboardInterrupt):
            if of_client.is_genuine:
                _end_early(parts, agents, seen)
            raise
    readings, failure = _read_ends(parts, agents)
    if not any(agent.error for agent in agents.values()):
        error = failure or error  # says more than that the other end did not end in time
    streams = (stream for end in readings.values() for reading in end for stream in reading.streams)
    if not any(stream.payload_bytes for stream in streams if error or not stream.sends):  # a sender's may fill buffers
        sender, receiver = (server, client) if leg.way is Way.REVERSE else (client, server)
        what = f"no payload came from {sender.place} to {receiver.place}, though they connected"
        raise error or DutError(what, "see the MTUs on the way, and whether a firewall drops large packets")
    return LegReadings(
        leg,
        began_s[0] if began_s else clock(),
        readings["client"],
        readings["server"],
        program={part.role: dict(part.engine.about(agents[part.role], part)) for part in reversed(parts)},
        processes={role: agent.processes for role, agent in agents.items() if agent.processes is not None},
        error=str(error) if error else None,
    )


def _parts(
    plan: TcpPlan, leg: Leg, client: tuple[EndpointHost, TcpEngine], server: tuple[EndpointHost, TcpEngine], port: int
) -> tuple[LegPart, LegPart]:
    """Parts of server and client; ConfigError for a host without an address of the leg's IP version."""
    for host, _ in (client, server):
        if leg.version not in host.addresses:
            raise ConfigError(f"{host.place} has no IPv{leg.version} address", "name one in the DUT's config")
    ours, theirs = (host.addresses[leg.version] for host, _ in (client, server))
    token = None if client[1].is_genuine or server[1].is_genuine else secrets.token_hex(18)
    return (
        LegPart(server[1], plan, leg, "server", server[0], theirs, ours, port, token),
        LegPart(client[1], plan, leg, "client", client[0], ours, theirs, port, token),
    )


def _end_early(parts: Sequence[LegPart], agents: Mapping[str, Agent], seen: Seen) -> None:
    """End the client's program now, and with it the server's, which only then report what they carried."""
    with uninterrupted(), suppress(BenchError, OSError):
        agents["client"].running.send(b"\n")
        _listen([agents["client"], agents["server"]], EARLY_S, lambda name, reading: None)
        for role, readings in _read_ends(parts, agents)[0].items():
            for reading in readings:
                seen(role, reading)


def _read_ends(
    parts: Sequence[LegPart], agents: Mapping[str, Agent]
) -> tuple[dict[str, tuple[HostReading, ...]], DutError | None]:
    """Readings by role, and the failure that the client's program reports, else the server's."""
    readings, failure = dict[str, tuple[HostReading, ...]](), None
    for part in parts:
        agent = agents[part.role]
        try:
            readings[part.role] = part.engine.readings(agent)
        except DutError as error:
            readings[part.role], failure = tuple(agent.readings), error
    return readings, failure


def _wait_ready(agent: Agent, part: LegPart) -> None:
    agent.listen_until(lambda: agent.ready, READY_S)
    if agent.error is not None:
        raise agent.error
    if agent.done and not agent.ready:
        part.engine.readings(agent)
        raise DutError(f"{agent.host.place}: it ended before it listened", "see what it says there by hand")
    if not agent.ready:
        what = f"{agent.host.place}: it did not listen within {READY_S:g} s"
        raise DutError(what, "see whether it still answers")


def _listen(agents: Sequence[Agent], within_s: float, seen: Seen, flow_limit_s: float = math.inf) -> BenchError | None:
    """Listen until both agents have ended; return the errors of those that failed, the second if it came soon.

    flow_limit_s: time from the first reading of connections, which the embedded endpoint makes once all are open.
    """
    deadline = time.monotonic() + within_s
    errors: list[BenchError] = []
    while waiting := [agent for agent in agents if not agent.ended]:
        left_s = deadline - time.monotonic()
        ready = select.select([agent.running for agent in waiting], [], [], left_s)[0] if left_s > 0 else []
        if not ready:
            names = " and ".join(agent.host.place for agent in waiting)
            return errors[0] if errors else DutError(f"{names} did not end in time", "see whether it still answers")
        for agent in waiting:
            if agent.running in ready:
                for reading in agent.hear():
                    seen(agent.host.name, reading)
                    if reading.streams:
                        deadline = min(deadline, time.monotonic() + flow_limit_s)
                if agent.error is not None:
                    errors.append(agent.error)
                if agent.failed:
                    deadline = min(deadline, time.monotonic() + OTHER_S)
    if len(errors) > 1:
        return DutError("; ".join(map(str, errors)))
    return errors[0] if errors else None


def run_program(host: EndpointHost, argv: Sequence[str], within_s: float, over: threading.Event) -> Completed:
    """Run argv to its end; DutError where it cannot be started, does not end in time, or ``over`` is set meanwhile."""
    begun_s = time.monotonic()
    with Agent(host, {"role": "program", "argv": list(argv), "interval_s": within_s, "deadline_s": within_s}) as agent:
        while not agent.ended:
            if over.is_set():
                raise DutError(f"{host.place}: {argv[0]} was ended before its time")
            if time.monotonic() > begun_s + within_s + LATE_S:
                raise DutError(f"{host.place}: {argv[0]} did not end in time", "see whether it still answers")
            if select.select([agent.running], [], [], LOOK_S)[0]:
                agent.hear()
    if agent.error is not None:
        raise agent.error
    output = agent.output or {}
    stdout, stderr = (str(output.get(name, "")) for name in ("stdout", "stderr"))
    return Completed(tuple(argv), int(output.get("code", 0)), stdout, stderr)


@contextmanager
def watched_processes(host: EndpointHost | None, within_s: float) -> Iterator[Callable[[], Processes | None]]:
    """Watch the host's processes; yield a function that ends the watch and returns which took CPU time.

    It returns None without a host, a python3 there, or an answer in time. Between begin and end nothing is read.
    within_s: longest time between.
    """
    if host is None:
        yield lambda: None
        return
    try:
        agent = Agent(host, {"role": "watcher", "deadline_s": within_s + 2 * ANSWER_S})
    except BenchError:
        yield lambda: None
        return

    def finish() -> Processes | None:
        try:
            agent.running.send(b"\n")
        except (BenchError, OSError):
            return None
        agent.listen_until(lambda: agent.processes is not None, ANSWER_S)
        return agent.processes

    with agent:
        agent.listen_until(lambda: agent.ready, ANSWER_S)
        yield finish if agent.ready else lambda: None
