"""The ``twin: tcp:`` section: properties of the simulated router that only TCP depends on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from ..core.errors import ConfigError
from ..core.tcp.plan import HEADER_BYTES
from ..core.units import format_share, parse_duration
from . import readers as r
from .yamltree import Value

WAYS = ("forward", "reverse")
_MICROSECONDS = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9})?)\s*us")


@r.takes(**r.ONE_VALUE, title="a time")
def seconds(value: Value) -> float:
    """Read a duration of at most a second, which may be written in microseconds."""
    raw = value.text()
    match = _MICROSECONDS.fullmatch(raw.lower())
    duration_s = float(match["number"]) * 1e-6 if match else parse_duration(raw)
    if duration_s > 1:
        raise ConfigError(f"{raw[:80]!r} is more than a second", "write it as 20us or 1.5ms")
    return duration_s


@r.takes(**r.ONE_VALUE, title="a share")
def noise_share(value: Value) -> float:
    noise = r.share(value)
    if noise > 0.2:
        raise ConfigError(f"noise of {format_share(noise)}", "at most 20%: beyond it a worker's speed would reach zero")
    return noise


@dataclass(frozen=True)
class PerWay:
    """A quantity for each direction: forward, where the client sends, and reverse."""

    forward: float
    reverse: float


def per_way(reader: Callable[[Value], float]) -> Callable[[Value], PerWay]:
    """Reader of one value for both directions, or of ``{forward: ..., reverse: ...}``."""

    @r.takes(anyOf=[reader, {"type": "object", "properties": dict.fromkeys(WAYS, reader), "required": WAYS}])
    def read(value: Value) -> PerWay:
        if not isinstance(value.raw, Mapping):
            both = reader(value)
            return PerWay(both, both)
        if {*value.raw} != {*WAYS}:
            raise ConfigError("neither one value nor one per direction", "write {forward: ..., reverse: ...}")
        return PerWay(*(value.at(way).read(reader) for way in WAYS))

    return read


_CYCLES = per_way(r.number(1, 1e7))


@dataclass(frozen=True)
class CyclesSpec:
    """Cycles that a packet of data, and likewise an ACK, takes in the router, encapsulation and filter included."""

    ipv4: Annotated[PerWay | None, _CYCLES] = None  # of a leg over IPv4, by the payload's direction; None: the twin's
    ipv6: Annotated[PerWay | None, _CYCLES] = None  # likewise over IPv6

    def of(self, version: int) -> PerWay | None:
        return self.ipv4 if version == 4 else self.ipv6

    def over(self, other: CyclesSpec) -> CyclesSpec:
        """Return the cycles of ``other`` where these name none."""
        return CyclesSpec(self.ipv4 or other.ipv4, self.ipv6 or other.ipv6)


_OF_CYCLES = r.section(CyclesSpec, "cycles by IP version")


@dataclass(frozen=True)
class TunnelSpec:
    """A tunnel through or to the router; its kind decides its headers."""

    kind: Annotated[str, r.choice(*(name for name, each in HEADER_BYTES.items() if 4 in each and name != "pppoe"))]
    between: Annotated[str, r.choice("client-server", "client-dut")] = "client-server"  # its ends


@dataclass(frozen=True)
class TcpVariant:
    """Properties that a variant changes, each as under ``twin.tcp``; NAME-pinned applies to pinned runs of NAME."""

    cycles: Annotated[CyclesSpec, _OF_CYCLES, "cycles_per_packet"] = field(default_factory=CyclesSpec)
    line_bps: Annotated[float | None, r.speed, "line"] = None
    endpoint_bps: Annotated[PerWay | None, per_way(r.speed), "endpoint"] = None
    path_bps: Annotated[PerWay | None, per_way(r.speed), "path"] = None
    tunnel: Annotated[TunnelSpec | None, r.section(TunnelSpec, "a tunnel")] = None  # that its tests go through

    def applied_to(self, tcp: TcpTwinSpec) -> TcpTwinSpec:
        stated = {name: value for name, value in vars(self).items() if value is not None}
        return replace(tcp, **{**stated, "cycles": self.cycles.over(tcp.cycles)})


@dataclass(frozen=True)
class EncapsulationSpec:
    """Encapsulation of each IP version's packets on one of the router's sides."""

    ipv4: Annotated[str, r.choice("none", "pppoe")] = "none"  # ``pppoe`` adds 8 bytes
    ipv6: Annotated[str, r.choice("none", "pppoe", "6in4")] = "none"  # ``pppoe`` adds 8 bytes, ``6in4`` 20


@dataclass(frozen=True)
class PingSpec:
    """Round-trip times over the idle path, as ping prints them; by default 0.4, 0.5, 0.7 and 0.05 ms."""

    min_s: Annotated[float, seconds, "min"]
    avg_s: Annotated[float, seconds, "avg"]
    max_s: Annotated[float, seconds, "max"]
    mdev_s: Annotated[float, seconds, "mdev"]


@r.takes(section=PingSpec)
def _ping(value: Value) -> PingSpec:
    ping = r.section(PingSpec, "round trips")(value)
    if not 0 < ping.min_s < ping.avg_s < ping.max_s:
        raise ConfigError("min, avg and max do not ascend", "write them as ping prints them")
    return ping


@dataclass(frozen=True)
class TcpPowerSpec:
    """Power of the router."""

    idle_w: Annotated[float, r.number(0, 1e6), "idle"]
    """Power in W that the router draws, whatever it does."""


_VARIANTS = r.pairs("variant", r"[a-z0-9][a-z0-9-]{0,39}", "firewall", r.section(TcpVariant, "a variant"))


@r.takes(type="string")
def _buffer_sizes(value: Value) -> tuple[int, int, int]:
    """Read three sizes in the sysctl's order: minimum, default, maximum."""
    sizes = tuple(map(int, re.findall(r"[0-9]{1,10}", value.text())))
    if len(sizes) != 3 or not 0 < sizes[0] <= sizes[1] <= sizes[2] < 2**31:
        raise ConfigError(f"{value.text()[:60]!r} are not three ascending sizes", "write them as 4096 131072 6291456")
    return sizes[0], sizes[1], sizes[2]


@dataclass(frozen=True)
class TcpTwinSpec:
    """Properties of router and hosts when tested with TCP. A value by direction: {forward: ..., reverse: ...}."""

    cores: Annotated[int | None, r.integer(1, 256)] = None
    """Cores of the router, which forwards on the first ``workers`` of them, each connection on one; None: as many."""
    cycles: Annotated[CyclesSpec, _OF_CYCLES, "cycles_per_packet"] = field(default_factory=CyclesSpec)
    line_bps: Annotated[float | None, r.speed, "line"] = None
    """L1 rate of the line; None: the DUT's speed."""
    mtu: Annotated[int, r.integer(576, 65535)] = 1500
    """MTU of the line, encapsulation included."""
    vlans: Annotated[int, r.integer(0, 2)] = 0  # tags of each frame on the line
    timestamps: Annotated[bool, r.boolean] = True  # each segment has TCP's option of 12 bytes
    encapsulation: Annotated[EncapsulationSpec, r.section(EncapsulationSpec, "encapsulation by IP version")] = field(
        default_factory=EncapsulationSpec
    )
    one_armed: Annotated[bool, r.boolean] = False
    """True if one line carries both of the router's sides, so that data and ACKs share its directions."""
    bus_bps: Annotated[float | None, r.speed, "bus"] = None
    """Capacity of a bus behind the router's ports, for all frames with FCS, both directions in sum."""
    rmem: Annotated[tuple[int, int, int], _buffer_sizes] = (10240, 87380, 16777216)
    """tcp_rmem of both hosts in bytes. Default: 10240 87380 16777216."""
    wmem: Annotated[tuple[int, int, int], _buffer_sizes] = (10240, 87380, 16777216)
    """tcp_wmem of both hosts in bytes. Default: 10240 87380 16777216."""
    adv_win_scale: Annotated[int, r.integer(-31, 31)] = 1
    """tcp_adv_win_scale of both hosts, which decides the share of rmem that is a window."""
    segments_per_ack: Annotated[int, r.integer(1, 64)] = 2
    """Data packets that one ACK answers."""
    endpoint_bps: Annotated[PerWay, per_way(r.speed), "endpoint"] = PerWay(20e9, 20e9)
    """Payload that a sender's and a receiver's core can handle. Default: 20gbit."""
    path_bps: Annotated[PerWay | None, per_way(r.speed), "path"] = None
    """Capacity of the path for reasons that the model does not know."""
    loss: Annotated[PerWay, per_way(r.share)] = PerWay(0.001, 0.001)
    """Share of data packets that the router drops where it is the limit. Default: 0.1%."""
    noise: Annotated[PerWay | None, per_way(noise_share)] = None
    """Standard deviation of the throughput of 1 s, as a share of it; None: the twin's noise."""
    ping: Annotated[PingSpec, _ping] = PingSpec(0.4e-3, 0.5e-3, 0.7e-3, 0.05e-3)
    power: Annotated[TcpPowerSpec | None, r.section(TcpPowerSpec, "power")] = None
    variants: Annotated[tuple[tuple[str, TcpVariant], ...], _VARIANTS] = ()  # by the name that --variant takes
    tunnel: TunnelSpec | None = None
