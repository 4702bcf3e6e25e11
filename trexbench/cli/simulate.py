"""``--sim``: the DUT's twin and the embedded server in this very process, on a clock that the harness moves."""

from __future__ import annotations

import fcntl
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from ..config import DutConfig
from ..core.errors import ConfigError
from ..core.spread import PortHash, QueuePlace, Spreading
from ..core.telemetry import CpuTime, DropCount, Observation, PortCount, QueueCount
from ..dut.parse_vpp import parse_runtime
from ..generator.connect import Endpoint
from ..stlserver.server import StlServer
from ..twin.engine import SimEngine
from ..twin.router import TwinRouter
from ..twin.rss import key_of
from ..twin.vpp_runtime import Cli
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
    dut: TwinDut


class OneAtATime:
    """An engine whose methods exclude each other: the server's thread calls them, and who looks at the twin."""

    def __init__(self, engine: SimEngine) -> None:
        self._engine, self._lock = engine, threading.RLock()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._engine, name)
        if not callable(value):
            return value

        def alone(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                return value(*args, **kwargs)

        return alone

    @contextmanager
    def held(self) -> Iterator[SimEngine]:
        with self._lock:
            yield self._engine


class TwinDut:
    """What a simulated DUT counts about itself, read as a real one's: VPP's by the text of its ``show runtime``."""

    def __init__(self, dut: DutConfig, router: TwinRouter, engine: OneAtATime) -> None:
        self._router, self._engine = router, engine
        self._ports = [port.interface for port in dut.ports]
        self._vpp = Cli(router.workers, self._ports, router.spec.fetch_cycles) if dut.driver == "vpp" else None

    def spreading(self) -> Spreading:
        """Its queues, workers and hash, as a DUT tells them."""
        router, spec = self._router, self._router.spec
        names = [worker.name for worker in router.workers()]
        places = [(port, queue) for port in range(len(self._ports)) for queue in range(router.rx_queues)]
        key = key_of(spec.rss.key, spec.seed).hex()
        table = tuple(entry % router.rx_queues for entry in range(spec.rss.table))
        return Spreading(
            tuple(QueuePlace(*place, names[at]) for place, at in zip(places, router.placement, strict=True)),
            tuple(PortHash(port, key, spec.rss.fields, table) for port in range(len(self._ports))),
            tuple(names),
        )

    def observe(self, clear: bool = False) -> Observation:
        with self._engine.held() as engine:
            engine.settle()
            threads = parse_runtime(self._vpp.run("show runtime")) if self._vpp else ()
            if self._vpp and clear:
                self._vpp.run("clear runtime")
            workers = self._router.workers()
        queues = sorted(((queue.port, queue.queue, queue) for one in workers for queue in one.queues), key=_place)
        ports = sorted({port for port, _, _ in queues})
        fetched = {port: round(sum(queue.packets for at, _, queue in queues if at == port)) for port in ports}
        clock = self._router.spec.clock_hz
        cpus = (
            ()
            if self._vpp
            else tuple(
                CpuTime(number, one.time_s, one.busy_clocks / clock, None, clock) for number, one in enumerate(workers)
            )
        )
        return Observation(
            cpus=cpus,
            ports=tuple(PortCount(port, fetched[port], fetched.get(port ^ 1)) for port in ports),
            queues=tuple(QueueCount(port, number, round(queue.packets)) for port, number, queue in queues),
            drops=tuple(DropCount("rx-miss", round(queue.drops), port, number) for port, number, queue in queues),
            threads=threads,
            clock_hz=clock if self._vpp else None,
        )


def _place(entry: tuple[int, int, Any]) -> tuple[int, int]:
    return entry[:2]


@contextmanager
def simulated(request: Request, say: Callable[[str], None]) -> Iterator[Simulation]:
    """The request's DUT as its twin, behind a server of its own."""
    _loopback_up()
    say(f"simulating {request.dut.name}: no packet is sent")
    clock = HeldClock(request.speedup)
    router = twin_router(request.dut, request.queues, request.seed)
    engine = OneAtATime(_engine(request.dut, router, request.seed, clock.now))
    with StlServer(cast(SimEngine, engine), clock=clock.now) as server:
        there = Endpoint(server.host, server.rpc_port, server.pub_port)
        yield Simulation(clock, there, TwinDut(request.dut, router, engine))


def twin_router(dut: DutConfig, rx_queues: int | None, seed: int | None) -> TwinRouter:
    """The DUT's twin; ConfigError where its file describes none. seed: None takes the twin's own."""
    spec = dut.twin
    if spec is None:
        raise ConfigError(f"{dut.file} describes no twin", "add a twin: section (docs/twins.md)")
    return TwinRouter(spec, ports=len(dut.ports), rx_queues=rx_queues, seed=spec.seed if seed is None else seed)


def twin_engine(dut: DutConfig, rx_queues: int | None, seed: int | None, clock: Callable[[], float]) -> SimEngine:
    """An engine whose ports are wired to the DUT's twin; see twin_router."""
    return _engine(dut, twin_router(dut, rx_queues, seed), seed, clock)


def _engine(dut: DutConfig, router: TwinRouter, seed: int | None, clock: Callable[[], float]) -> SimEngine:
    """seed: of the tester's own irregularities, too."""
    spec, speed = router.spec, dut.speed_bps or DEFAULT_SPEED_BPS
    chosen = spec.seed if seed is None else seed
    return SimEngine(router, ports=len(dut.ports), speed_bps=speed, clock=clock, tester=spec.tester, seed=chosen)


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
