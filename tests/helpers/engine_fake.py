"""An engine without packets: each port's frames arrive, all of them, at its partner.

As a program it is the embedded server with this engine: ``python engine_fake.py --ports 2``, the options of
``trexbench lab serve``, and ``--fault`` (see faulty_server).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import click
from faulty_server import FaultyServer

from trexbench.stlserver import __main__ as server
from trexbench.stlserver.engine import simulated_ports
from trexbench.stlserver.rpc.server import StlServer
from trexbench.twin.latency import Delay
from trexbench.twin.simulated import SimEngine
from trexbench.twin.world import Arrival


@dataclass
class PerfectRouter:
    """Everything goes through, at once; ``latency_s`` is that of every frame."""

    latency_s: float = 5e-6

    def spread(self, port: int, packets: Sequence[bytes]) -> tuple[float, ...]:
        return (1.0,)

    def carry(self, span_s: float, arrivals: Sequence[Arrival]) -> Sequence[float]:
        return [one.frames for one in arrivals]

    def delays(self, port: int, tag: int) -> Sequence[Delay]:
        return (Delay(1.0, self.latency_s, self.latency_s),)

    def kept(self, port: int, tag: int) -> float:
        return 0.0


class FakeEngine(SimEngine):
    """Perfect forwarding between the ports of a pair, on a clock that the test may hold in its hand.

    It is the simulating engine with another router: in tests/conformance, ``embedded`` and ``simulated`` are servers
    with one engine.
    """

    def __init__(
        self,
        port_count: int = 2,
        speed_bps: float = 10e9,
        clock: Callable[[], float] = time.monotonic,
        resolved: bool = True,
    ) -> None:
        """resolved: the neighbours are known."""
        super().__init__(PerfectRouter(20e-6), ports=port_count, speed_bps=speed_bps, clock=clock)
        ports = simulated_ports("fake", port_count, speed_bps)
        self.ports = ports if resolved else tuple(replace(port, dst_mac=None) for port in ports)
        self.links = [True] * port_count
        self.promiscuous = [False] * port_count
        self.closed = False

    def link_up(self, port: int) -> bool:
        return self.links[port]

    def set_promiscuous(self, port: int, enabled: bool) -> None:
        self.promiscuous[port] = enabled

    def close(self) -> None:
        super().close()
        self.closed = True

    @property
    def sending(self) -> Sequence[int]:
        """Ports that send now, for tests."""
        return [number for number, port in enumerate(self._world.ports) if port.tx.traffic is not None]


_OWN = [click.Option(["--ports"], type=int, default=2), click.Option(["--fault"], multiple=True)]


@click.command(params=[*_OWN, *server.serve.params])
def serve(ports: int, fault: Sequence[str], **options: Any) -> None:
    make = partial(FaultyServer, faults=fault, kills=True) if fault else StlServer
    sys.exit(server.run(FakeEngine(ports), make, **options))


if __name__ == "__main__":
    serve()
