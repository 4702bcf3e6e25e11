"""``--sim``: the DUT's twin and the embedded server in this very process, on a clock that the harness moves."""

from __future__ import annotations

import fcntl
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..config import DutConfig
from ..core.errors import ConfigError
from ..generator.connect import Endpoint
from ..stlserver.server import StlServer
from ..twin.engine import SimEngine
from ..twin.router import TwinRouter
from .request import Request

DEFAULT_SPEED_BPS = 10e9
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1


class HeldClock:
    """The run's time, which harness, server and twin share: it passes only while the harness sleeps.

    Nothing that happens between two sleeps takes any time, so a run does not depend on how fast this machine is.
    speedup: so many seconds of the run in one of ours.
    """

    def __init__(self, speedup: float) -> None:
        self._speedup = speedup
        self._now_s = 0.0

    def now(self) -> float:
        return self._now_s

    def sleep_until(self, t_s: float) -> None:
        if t_s > self._now_s:
            time.sleep((t_s - self._now_s) / self._speedup)
            self._now_s = t_s


@dataclass(frozen=True)
class Simulation:
    """A server that answers at ``endpoint``; everything about it is over at the end of ``simulated``'s block."""

    clock: HeldClock
    endpoint: Endpoint


@contextmanager
def simulated(request: Request, say: Callable[[str], None]) -> Iterator[Simulation]:
    """The request's DUT as its twin, behind a server of its own."""
    _loopback_up()
    say(f"simulating {request.dut.name}: no packet is sent")
    clock = HeldClock(request.speedup)
    with StlServer(twin_engine(request.dut, request.queues, request.seed, clock.now), clock=clock.now) as server:
        yield Simulation(clock, Endpoint(server.host, server.rpc_port, server.pub_port))


def twin_engine(dut: DutConfig, rx_queues: int | None, seed: int | None, clock: Callable[[], float]) -> SimEngine:
    """An engine whose ports are wired to the DUT's twin; ConfigError where its file describes none.

    seed: of everything random in it; None takes the twin's own.
    """
    spec = dut.twin
    if spec is None:
        raise ConfigError(f"{dut.file} describes no twin", "add a twin: section (docs/twins.md)")
    ports, seed = len(dut.ports), spec.seed if seed is None else seed
    router = TwinRouter(spec, ports=ports, rx_queues=rx_queues, seed=seed)
    speed = dut.speed_bps or DEFAULT_SPEED_BPS
    return SimEngine(router, ports=ports, speed_bps=speed, clock=clock, tester=spec.tester, seed=seed)


def _loopback_up() -> None:
    """The client and the server in this process talk over ``lo``, which is down in a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        asked = fcntl.ioctl(handle, _GET_FLAGS, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack_from("H", asked, 16)[0]
        if flags & _UP:
            return
        try:
            fcntl.ioctl(handle, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP))
        except PermissionError:
            raise ConfigError("the loopback interface is down", "bring it up as root: ip link set lo up") from None
