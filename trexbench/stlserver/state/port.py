"""One port of the server: its owner, its profiles and their states, its layer 2 and 3 settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..engine import EnginePort
from ..wire import cannot_execute
from .graph import NO_GRAPH, Graph
from .stream import ServerStream

DEFAULT_PROFILE = "_"


class PortState:
    """State of a profile or a port, in TRex's words."""

    IDLE, STREAMS, TX, PAUSE = "IDLE", "STREAMS", "TX", "PAUSE"
    ACTIVE = (TX, PAUSE)
    BY_ACTIVITY = (TX, PAUSE, STREAMS, IDLE)


def mac_bytes(text: str) -> bytes:
    """Parse aa:bb:cc:dd:ee:ff; ValueError for anything else."""
    parts = text.split(":")
    if len(parts) != 6:
        raise ValueError(f"invalid MAC address: {text!r}")
    return bytes(int(part, 16) for part in parts)


@dataclass
class PortProfile:
    """A named set of streams on one port."""

    name: str
    state: str = PortState.IDLE
    streams: dict[int, ServerStream] = field(default_factory=dict)
    factor: float = 1.0  # of the last start or update
    duration_s: float = -1.0  # of the last start; 0 or less: until stopped
    graph: Graph = NO_GRAPH  # of the streams as last started

    def require(self, command: str, *states: str) -> None:
        """Refuse a command that does not suit the profile's state."""
        if self.state not in states:
            text = f"command '{command}' cannot be executed on current state: '{self.state} on profile_id({self.name})."
            raise cannot_execute(text)


@dataclass
class Owner:
    """Session that holds a port."""

    name: str
    session_id: int
    handler: str  # secret that every modifying call must carry


@dataclass
class ServerPort:
    """One port: the engine's description of it, and what clients have set since."""

    info: EnginePort
    src_mac: bytes
    dst_mac: bytes  # of the neighbour; while not ``resolved``, of the former one
    resolved: bool
    src_ipv4: str | None
    dst_ipv4: str | None
    owner: Owner | None = None
    state: str = PortState.IDLE
    profiles: dict[str, PortProfile] = field(default_factory=lambda: {DEFAULT_PROFILE: PortProfile(DEFAULT_PROFILE)})
    service: bool = False
    service_filtered: bool = False
    promiscuous: bool = False
    vlans: tuple[int, ...] = ()
    link_up: bool = True

    @classmethod
    def of(cls, info: EnginePort) -> ServerPort:
        dst_mac = mac_bytes(info.dst_mac) if info.dst_mac else bytes(6)
        return cls(info, mac_bytes(info.src_mac), dst_mac, info.dst_mac is not None, info.src_ipv4, info.dst_ipv4)

    @property
    def index(self) -> int:
        return self.info.index

    def profile(self, name: str) -> PortProfile:
        """Profile of this name; an unknown one is refused."""
        if name not in self.profiles:
            raise cannot_execute(f"profile_id {name} does not exists")
        return self.profiles[name]

    def require(self, command: str, *states: str) -> None:
        """Refuse a command that does not suit the port's state."""
        if self.state not in states:
            raise cannot_execute(f"command '{command}' cannot be executed on current state: '{self.state}'")
