"""What handlers work on: the tester's state, its statistics, and the few facts about this server."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from trexbench.stlserver.engine import Engine
from trexbench.stlserver.params import Params
from trexbench.stlserver.port import Port, random_name
from trexbench.stlserver.state import Box
from trexbench.stlserver.stats import Stats
from trexbench.stlserver.wire import Json, cannot_execute

API_NAME = "STL"
API_MAJOR, API_MINOR = 5, 1


@dataclass
class Context:
    """One server. outbox: events to publish after the call; shutdown: asked for by a client."""

    engine: Engine
    box: Box = field(init=False)
    stats: Stats = field(init=False)
    api_handler: str = field(default_factory=random_name)
    uptime: str = field(default_factory=lambda: time.strftime("%b %d %Y @ %H:%M:%S"))
    outbox: list[Json] = field(default_factory=list)
    shutdown: bool = False

    def __post_init__(self) -> None:
        self.box = Box(self.engine)
        self.stats = Stats(self.engine)

    @property
    def now_s(self) -> float:
        return self.box.now_s

    @property
    def core_count(self) -> int:
        """One sending core a pair of ports, as TRex counts them."""
        return max(1, (len(self.box.ports) + 1) // 2)

    def port(self, p: Params) -> Port:
        """The port that a call names."""
        port_id = p.byte("port_id")
        if port_id not in self.box.ports:
            listed = " ".join(str(index) for index in self.box.ports)
            raise cannot_execute(f"invalid port id - should be: {listed}")
        return self.box.ports[port_id]

    def announce(self, baseline: bool) -> None:
        """Put a ``trex-global`` event into the outbox."""
        sending = {port.index: port.state == "TX" for port in self.box.ports.values()}
        self.outbox.append(self.stats.event_json(self.now_s, sending, baseline))
