"""Legs of a TCP test on loopback, where both hosts are this machine."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from trexbench.core.tcp.plan import HostReading, Leg, LegReadings, TcpPlan, Way
from trexbench.endpoint.engines import TcpEngine
from trexbench.endpoint.hosts import Agent, EndpointHost
from trexbench.endpoint.leg import run_leg
from trexbench.transport import LocalTransport, Transport

LOOPBACK = {4: "127.0.0.1", 6: "::1"}


def host(name: str, transport: Transport | None = None, cpus: tuple[int, ...] = ()) -> EndpointHost:
    return EndpointHost(name, transport or LocalTransport(), LOOPBACK, cpus)


def free_port(version: int = 4) -> int:
    """A port that nobody listens on. It lies below those that the kernel gives to connections: one of them could take
    it before its server is there."""
    family = socket.AF_INET6 if version == 6 else socket.AF_INET
    for _ in range(100):
        port = random.SystemRandom().randrange(10_000, 32_000)  # other workers may have been seeded alike
        with socket.socket(family) as one, suppress(OSError):
            one.bind((LOOPBACK[version], port))
            return port
    raise AssertionError("100 ports in a row are in use")


def run(
    engines: tuple[TcpEngine, TcpEngine] | None = None,
    way: Way = Way.FORWARD,
    version: int = 4,
    client: EndpointHost | None = None,
    server: EndpointHost | None = None,
    port: int | None = None,
    seen: Any = lambda name, reading: None,
    **plan: Any,
) -> LegReadings:
    asked = TcpPlan((), **{"time_s": 1.0, "interval_s": 0.25, **plan})
    ends = (client or host("client"), server or host("server"))
    return run_leg(asked, Leg(way, version), *ends, port or free_port(version), seen, engines=engines)


def payload(readings: tuple[HostReading, ...], sends: bool) -> int:
    """Between the first reading and the last, by all streams of this way."""
    return sum(
        (1 if one is readings[-1] else -1) * stream.payload_bytes
        for one in (readings[0], readings[-1])
        for stream in one.streams
        if stream.sends is sends
    )


def agent(**options: Any) -> Agent:
    """One on this machine, that was told this."""
    return Agent(host("server"), {"interval_s": 0.25, "deadline_s": 30, **options})


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process, which may end meanwhile."""
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in path.read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


def alive(pid: int) -> bool:
    """A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
