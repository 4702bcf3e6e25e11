"""``--sim``: the DUT's twin and the embedded server in this very process, on a clock that the harness moves."""

from __future__ import annotations

import fcntl
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from ..config.model import DutConfig
from ..core.dut.rss import PortHash, QueuePlace, Spreading
from ..core.dut.telemetry import CpuTime, DropCount, Observation, PortCount, QueueCount
from ..core.errors import ConfigError
from ..core.load.plan import pair_directions
from ..generator.trex.connect import ServerAddress
from ..signals import uninterrupted
from ..stlserver.rpc.server import StlServer
from ..twin.router import TwinRouter
from ..twin.simulated import SimEngine
from ..twin.vpp_runtime import Runtime, worker_name
from .process import HeldClock
from .request import Request

DEFAULT_SPEED_BPS = 10e9
PATIENCE_S, TRIES = 10.0, 4
"""Real seconds for an answer, and number of tries: this machine may be busy, or stop the process for a while.

Nothing else bounds the wait for a server that is a thread of this process.
"""
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1


@dataclass(frozen=True)
class Simulation:
    """A server that answers at ``endpoint`` until the end of ``simulated``'s block."""

    clock: HeldClock
    endpoint: ServerAddress
    dut: TwinDut


class LockedEngine:
    """An engine that runs one method at a time: the server's thread and readers of the twin's counters call it."""

    def __init__(self, engine: SimEngine) -> None:
        self._engine, self._lock = engine, threading.RLock()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._engine, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                return value(*args, **kwargs)

        return call

    @contextmanager
    def held(self) -> Iterator[SimEngine]:
        with self._lock:
            yield self._engine


class TwinDut:
    """Counters of a simulated DUT, read like a real one's: VPP's are those of its ``show runtime``."""

    def __init__(self, dut: DutConfig, router: TwinRouter, engine: LockedEngine) -> None:
        self._router, self._engine = router, engine
        self._ports = [cable.interface for cable in dut.cables]
        self._vpp = Runtime(router.workers, self._ports) if dut.driver == "vpp" else None

    def spreading(self) -> Spreading:
        """Queues, workers and hash, as a DUT reports them."""
        router, spec = self._router, self._router.spec
        names = [worker_name(number) if self._vpp else f"cpu{number}" for number in range(spec.workers)]
        places = [(port, queue) for port in range(len(self._ports)) for queue in range(router.rx_queues)]
        key, table = router.rss.key.hex(), router.rss.table(router.rx_queues)
        return Spreading(
            tuple(QueuePlace(*place, names[at]) for place, at in zip(places, router.placement, strict=True)),
            tuple(PortHash(port, key, spec.rss.fields, table) for port in range(len(self._ports))),
            tuple(names),
        )

    def observe(self, clear: bool = False) -> Observation:
        with self._engine.held() as engine:
            engine.settle()
            threads = self._vpp.show() if self._vpp else ()
            if self._vpp and clear:
                self._vpp.clear()
            workers = self._router.workers()
        queues = sorted(
            (queue for worker in workers for queue in worker.queues), key=lambda queue: (queue.port, queue.queue)
        )
        ports = sorted({queue.port for queue in queues})
        fetched = {port: round(sum(queue.packets for queue in queues if queue.port == port)) for port in ports}
        clock = self._router.spec.clock_hz
        partner = {direction.tx: direction.rx for direction in pair_directions(ports, bidir=True)}
        cpus = [
            CpuTime(number, worker.time_s, worker.busy_clocks / clock, None, clock)
            for number, worker in enumerate(workers)
        ]
        return Observation(
            cpus=() if self._vpp else tuple(cpus),
            ports=tuple(PortCount(port, fetched[port], fetched.get(partner[port])) for port in ports),
            queues=tuple(QueueCount(queue.port, queue.queue, round(queue.packets)) for queue in queues),
            drops=tuple(DropCount("rx-miss", round(queue.drops), queue.port, queue.queue) for queue in queues),
            threads=threads,
            clock_hz=clock if self._vpp else None,
        )


@contextmanager
def simulated(request: Request, say: Callable[[str], None]) -> Iterator[Simulation]:
    """Simulate the request's DUT by its twin, behind a server of its own."""
    _loopback_up()
    say(f"simulating {request.dut.name}: no packet is sent")
    clock = HeldClock(request.pace)
    engine, router = twin_engine(request.dut, request.queues, request.seed, clock.now)
    locked = LockedEngine(engine)
    server: StlServer | None = None
    try:
        with uninterrupted():  # so that the server's thread takes no signal
            server = StlServer(cast(SimEngine, locked), clock=clock.now)
            server.start()
        address = ServerAddress(server.host, server.rpc_port, server.pub_port, timeout_s=PATIENCE_S, tries=TRIES)
        yield Simulation(clock, address, TwinDut(request.dut, router, locked))
    finally:
        with uninterrupted():  # else the thread would go on while the interpreter ends
            if server is not None:
                server.stop()


def twin_engine(
    dut: DutConfig, rx_queues: int | None, seed: int | None, clock: Callable[[], float]
) -> tuple[SimEngine, TwinRouter]:
    """Make an engine whose ports are wired to the DUT's twin, and the twin; ConfigError if the DUT has none.

    seed: of the twin's noise and the tester's irregularities; None takes the twin's own.
    """
    spec = dut.chosen_twin
    chosen, ports = spec.seed if seed is None else seed, len(dut.cables)
    router = TwinRouter(spec, ports=ports, rx_queues=rx_queues, seed=chosen)
    speed_bps = dut.speed_bps or DEFAULT_SPEED_BPS
    engine = SimEngine(router, ports=ports, speed_bps=speed_bps, clock=clock, tester=spec.tester, seed=chosen)
    return engine, router


def _loopback_up() -> None:
    """Bring up ``lo``, over which client and server talk, and which is down in a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        asked = fcntl.ioctl(handle, _GET_FLAGS, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack_from("H", asked, 16)[0]
        if flags & _UP:
            return
        try:
            fcntl.ioctl(handle, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP))
        except PermissionError:
            remedy = "start trexbench with 'unshare -rn', which needs no root, or run as root: ip link set lo up"
            raise ConfigError("the loopback interface is down", remedy) from None
