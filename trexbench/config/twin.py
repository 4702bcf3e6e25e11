"""The ``twin:`` section of a DUT config: the router that ``--sim`` simulates in its place, and the tester."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from ..core.errors import ConfigError
from ..core.units import format_share
from . import readers as r
from .variants import VARIANT_NAME
from .yamltree import Value

TWIN_REMEDY = "add a twin: section, with workers, clock and cycles_per_packet at least; netgate-vpp's config has one"
HASH_FIELDS = ("src", "dst", "sport", "dport")
RSS_KEYS = ("microsoft", "random")
_KEY_DIGITS = (80, 104)
"""Number of hexadecimal digits of a 40-byte key, or of a 52-byte one as in NICs that hash IPv6 tunnels."""

WAYS = ("forward", "reverse")
_CYCLES, _AT_LEAST_ONE = r.number(0, 1e7), r.number(1, 1e7)


@r.takes(**r.ONE_VALUE, title="a time")
def seconds(value: Value) -> float:
    """Read a duration of at most a second."""
    duration_s = r.seconds(value)
    if duration_s > 1:
        raise ConfigError(f"{value.text()[:80]!r} is more than a second", "write it as 20us or 1.5ms")
    return duration_s


@r.takes(**r.ONE_VALUE, title="a share")
def _noise(value: Value) -> float:
    noise = r.share(value)
    if noise > 0.2:
        raise ConfigError(f"noise of {format_share(noise)}", "at most 20%: beyond it a worker's speed would reach zero")
    return noise


def _rss_key(value: Value) -> str:
    raw = value.text()
    if raw in RSS_KEYS:
        return raw
    digits = re.sub(r"[\s:]", "", raw.lower())
    if re.fullmatch(r"[0-9a-f]*", digits) and len(digits) in _KEY_DIGITS:
        return digits
    words = " or ".join(RSS_KEYS)
    raise ConfigError(f"{raw[:80]!r} is not an RSS key", f"write {words}, or 40 bytes as ethtool -x prints them")


@r.takes(type="array", items={"enum": HASH_FIELDS})
def _hash_fields(value: Value) -> tuple[str, ...]:
    names = r.list_of("header field", r.choice(*HASH_FIELDS))(value)
    if not names or names != tuple(name for name in HASH_FIELDS if name in names):
        remedy = f"write some of [{', '.join(HASH_FIELDS)}], in this order, in which NICs hash them"
        raise ConfigError("empty, repeated or out of order", remedy)
    return names


@r.takes(type="integer", minimum=1, maximum=4096)
def _table_entries(value: Value) -> int:
    entries = r.integer(1, 4096)(value)
    if entries & (entries - 1):
        raise ConfigError(f"{entries} is not a power of two", "an indirection table has 64, 128 or 512 entries")
    return entries


@dataclass(frozen=True)
class TesterSpec:
    """Limits of the simulated TRex; by default it has none."""

    tx_limit_pps: Annotated[float | Mapping[int, float] | None, r.pps, "tx_limit"] = None
    """Highest rate at which a port sends."""
    rx_limit_pps: Annotated[float | Mapping[int, float] | None, r.pps, "rx_limit"] = None
    """Highest rate at which a port receives."""
    overload: Annotated[str, r.choice("stretch", "queue-full")] = "stretch"
    """Effect of offering more than tx_limit: ``stretch`` (sending takes longer, as in TRex: fewer frames, no
    queue_full) or ``queue-full`` (frames are dropped and counted)."""
    rx_overload: Annotated[str, r.choice("ierrors", "silent")] = "ierrors"
    """Counter of frames beyond rx_limit: ``ierrors``, or none (``silent``)."""

    def limit_of(self, side: Literal["tx", "rx"], port: int) -> float | None:
        """Return the highest rate at which this port can send or receive; None for any rate."""
        limit = self.tx_limit_pps if side == "tx" else self.rx_limit_pps
        return limit.get(port) if isinstance(limit, Mapping) else limit


@dataclass(frozen=True)
class RssSpec:
    """Spread of flows over a port's receive queues by the NIC: Toeplitz hash, then a round-robin indirection table."""

    key: Annotated[str, _rss_key] = "microsoft"
    """``microsoft`` (the RSS specification's, DPDK's default for Intel's NICs), ``random`` (drawn once from the twin's
    seed, as some drivers draw one at boot) or hexadecimal digits."""
    fields: Annotated[tuple[str, ...], _hash_fields] = HASH_FIELDS
    """Header fields that are hashed: [src, dst, sport, dport], the default, or fewer; ports of TCP and UDP only."""
    table: Annotated[int, _table_entries] = 128
    """Number of the indirection table's entries, a power of two."""


@dataclass(frozen=True)
class PerWay:
    """A quantity for each direction: forward, where the client sends, and reverse."""

    forward: float
    reverse: float


@r.takes(anyOf=[r.speed, {"type": "object", "properties": dict.fromkeys(WAYS, r.speed), "required": WAYS}])
def _speed_per_way(value: Value) -> PerWay:
    """Read one speed for both directions, or ``{forward: ..., reverse: ...}``."""
    if not isinstance(value.raw, Mapping):
        return PerWay(*(r.speed(value),) * 2)
    if {*value.raw} != {*WAYS}:
        raise ConfigError("neither one value nor one per direction", "write {forward: ..., reverse: ...}")
    return PerWay(*(value.at(way).read(r.speed) for way in WAYS))


@dataclass(frozen=True)
class CyclesSpec:
    """Cycles that a packet of TCP's payload takes in the router, with its share of ACKs, by IP version."""

    ipv4: Annotated[float | None, _AT_LEAST_ONE] = None  # None: the twin's
    ipv6: Annotated[float | None, _AT_LEAST_ONE] = None  # None: the twin's


@dataclass(frozen=True)
class TcpLimits:
    """Limits of a router tested with TCP. In a variant, None: as without it."""

    cycles: Annotated[CyclesSpec, r.section(CyclesSpec, "cycles by IP version"), "cycles_per_packet"] = CyclesSpec()
    line_bps: Annotated[float | None, r.speed, "line"] = None
    """L1 rate of the line; None: the DUT's speed."""
    endpoint_bps: Annotated[float | None, r.speed, "endpoint"] = None
    """Payload that a sender's and a receiver's core can handle; None: 20gbit."""
    path_bps: Annotated[PerWay | None, _speed_per_way, "path"] = None
    """Payload that the path carries for reasons that the model does not know; or by direction, as in {forward: 10mbit,
    reverse: 5mbit}."""


@dataclass(frozen=True)
class TcpTwinSpec(TcpLimits):
    """Properties of router and hosts when tested with TCP."""

    ping_s: Annotated[float, seconds, "ping"] = 0.5e-3
    """Mean round trip of the idle path. Default: 0.5ms."""


@dataclass(frozen=True)
class TwinVariant:
    """Costs of the twin in a variant of the DUT, each as under ``twin``; None: as without it."""

    packet_cycles: Annotated[float | None, _AT_LEAST_ONE, "cycles_per_packet"] = None
    """Cycles per frame; what ``tcp`` states grows alike, unless the variant states it, too."""
    tcp: Annotated[TcpLimits, r.section(TcpLimits, "a variant's twin for TCP")] = field(default_factory=TcpLimits)

    def applied_to(self, twin: TwinSpec) -> TwinSpec:
        """Return the twin with what is stated here."""
        packet_cycles = self.packet_cycles or twin.packet_cycles
        dearer = packet_cycles / twin.packet_cycles
        pairs = ((self.tcp.cycles.ipv4, twin.tcp.cycles.ipv4), (self.tcp.cycles.ipv6, twin.tcp.cycles.ipv6))
        cycles = CyclesSpec(*(own or (plain and plain * dearer) for own, plain in pairs))
        stated = {name: one for name, one in vars(self.tcp).items() if one is not None}
        return replace(twin, packet_cycles=packet_cycles, tcp=replace(twin.tcp, **{**stated, "cycles": cycles}))


_VARIANTS = r.pairs("variant", VARIANT_NAME, "stateful", r.section(TwinVariant, "a twin's variant"))


@dataclass(frozen=True)
class TwinSpec:
    """A simulated router. Cycles are of one worker's clock; received frames share its time as docs/twins.md says."""

    workers: Annotated[int, r.integer(1, 256)]
    """Cores that forward."""
    clock_hz: Annotated[float, r.clock, "clock"]  # of each worker
    packet_cycles: Annotated[float, _AT_LEAST_ONE, "cycles_per_packet"]
    """Cycles per frame."""
    vector_cycles: Annotated[float, _CYCLES, "cycles_per_vector"] = 0.0
    """Cycles per poll that found frames."""
    byte_cycles: Annotated[float, _CYCLES, "cycles_per_byte"] = 0.0
    """Cycles per byte of a frame with FCS."""
    drop_cycles: Annotated[float, _CYCLES, "cycles_per_drop"] = 0.0
    """Cycles per frame that found the ring full."""
    vector: Annotated[int, r.integer(1, 65536)] = 64
    """Largest number of frames per poll and queue."""
    batch_s: Annotated[float, seconds, "batch"] = 0.0
    """Interval of the batches in which frames reach a queue (interrupt moderation, descriptor write-back, the sender's
    own bursts)."""
    ring: Annotated[int, r.integer(1, 65536)] = 512
    """Number of frames that a queue holds."""
    latency_s: Annotated[float, seconds, "latency"] = 20e-6
    """Latency of a frame that need not wait, besides the work on it, through tester and router. Default: 20us."""
    noise: Annotated[float, _noise] = 0.0
    """Standard deviation of a worker's speed, as a share of it, drawn again every 100 ms; 20% at most."""
    seed: Annotated[int, r.integer(0, 2**31 - 1)] = 1  # of the noise, unless --seed names one, and of a random RSS key
    queues: Annotated[int, r.integer(1, 256)] = 1
    """Receive queues per port unless the run says otherwise."""
    placement: Annotated[str, r.choice("round-robin", "per-port")] = "per-port"
    """Placement of queues on workers: ``round-robin`` over all ports' queues in the order of their registration, or
    ``per-port`` (queue i of each port on worker i)."""
    rss: Annotated[RssSpec, r.section(RssSpec, "RSS")] = field(default_factory=RssSpec)
    tester: Annotated[TesterSpec, r.section(TesterSpec, "a tester")] = field(default_factory=TesterSpec)
    variants: Annotated[tuple[tuple[str, TwinVariant], ...], _VARIANTS] = ()
    """Costs that differ in the DUT's variants."""
    tcp: Annotated[TcpTwinSpec, r.section(TcpTwinSpec, "a twin for TCP")] = field(default_factory=TcpTwinSpec)
    """Further properties that TCP depends on."""
