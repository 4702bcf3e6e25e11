"""The ``twin:`` section of a DUT config: the router that ``--sim`` simulates in its place, and the tester."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from ..core.errors import ConfigError
from . import readers as r
from .twin_tcp import TcpTwinSpec, noise_share, seconds
from .variants import TwinVariant, twin_variants
from .yamltree import Value

TWIN_REMEDY = "add a twin: section, with workers, clock and cycles_per_packet at least; netgate-vpp's config has one"
HASH_FIELDS = ("src", "dst", "sport", "dport")
RSS_KEYS = ("microsoft", "random")
_KEY_DIGITS = (80, 104)
"""Number of hexadecimal digits of a 40-byte key, or of a 52-byte one as in NICs that hash IPv6 tunnels."""

_CYCLES, _AT_LEAST_ONE = r.number(0, 1e7), r.number(1, 1e7)


@r.takes(anyOf=[r.pps, {"type": "object"}])
def _port_limit(value: Value) -> float | Mapping[int, float]:
    """Read frames per second: one limit for every port, or by the tester's port, as in {0: 800kpps}."""
    if not isinstance(value.raw, Mapping):
        return r.pps(value)
    for port, limit in value.raw.items():
        if not re.fullmatch(r"0|[1-9][0-9]{0,2}", port):
            raise limit.wrong(f"{port[:80]!r} is not a port number", "write the tester's ports, as in {0: 800kpps}")
    return {int(port): limit.read(r.pps) for port, limit in value.raw.items()}


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

    tx_limit_pps: Annotated[float | Mapping[int, float] | None, _port_limit, "tx_limit"] = None
    """Highest rate at which a port sends, for every port or by port; a port that is not named has no limit."""
    rx_limit_pps: Annotated[float | Mapping[int, float] | None, _port_limit, "rx_limit"] = None
    """Highest rate at which a port receives, likewise."""
    overload: Annotated[str, r.choice("stretch", "queue-full")] = "stretch"
    """Effect of offering more than tx_limit: ``stretch`` (sending takes longer, as in TRex: fewer frames, no
    queue_full) or ``queue-full`` (frames are dropped and counted)."""
    rx_overload: Annotated[str, r.choice("ierrors", "silent")] = "ierrors"
    """Counter of frames beyond rx_limit: ``ierrors``, or none (``silent``)."""
    skew_s: Annotated[float, seconds, "skew"] = 0.0
    """Longest time between readings of different ports' counters."""

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
class BusSpec:
    """Cost of receiving on a port that also sends: cycles_per_stall x r / (1 - r) per frame, r the load of the bus."""

    limit_pps: Annotated[float, r.pps, "limit"]
    """Highest rate that a port could receive while it sends as much; r is the smaller of both rates, as a share of
    it."""
    stall_cycles: Annotated[float, _CYCLES, "cycles_per_stall"]  # cycles per frame where r is one half


@dataclass(frozen=True)
class TwinSpec:
    """A simulated router. Cycles are of one worker's clock; received frames share its time as docs/twins.md says."""

    workers: Annotated[int, r.integer(1, 256)]
    """Cores that forward."""
    clock_hz: Annotated[float, r.clock, "clock"]  # of each worker
    packet_cycles: Annotated[float, _AT_LEAST_ONE, "cycles_per_packet"]
    """Cycles per frame of all nodes but the one that fetches from the NIC."""
    fetch_cycles: Annotated[float, _CYCLES, "cycles_per_fetch"] = 0.0
    """Cycles per frame of the node that fetches from the NIC."""
    vector_cycles: Annotated[float, _CYCLES, "cycles_per_vector"] = 0.0
    """Cycles per poll that found frames."""
    byte_cycles: Annotated[float, _CYCLES, "cycles_per_byte"] = 0.0
    """Cycles per byte of a frame with FCS."""
    drop_cycles: Annotated[float, _CYCLES, "cycles_per_drop"] = 0.0
    """Cycles per frame that found the ring full."""
    idle_poll_cycles: Annotated[float, _AT_LEAST_ONE, "cycles_per_idle_poll"] = 500.0
    """Cycles of a poll that finds nothing."""
    loop_cycles: Annotated[float, _CYCLES, "cycles_per_loop"] = 0.0
    """Cycles around the polls of one loop."""
    vector: Annotated[int, r.integer(1, 65536)] = 64
    """Largest number of frames per poll and queue."""
    drive: Annotated[str, r.choice("polling", "interrupt")] = "interrupt"
    """``polling`` also polls when nothing has arrived, ``interrupt`` does not."""
    batch_s: Annotated[float, seconds, "batch"] = 0.0
    """Interval of the batches in which frames reach a queue (interrupt moderation, descriptor write-back, the sender's
    own bursts)."""
    contention: Annotated[float, r.share] = 0.0
    """Share by which each other fully busy worker makes all work dearer."""
    ring: Annotated[int, r.integer(1, 65536)] = 512
    """Number of frames that a queue holds."""
    latency_s: Annotated[float, seconds, "latency"] = 20e-6
    """Latency of a frame that need not wait, besides the work on it, through tester and router. Default: 20us."""
    noise: Annotated[float, noise_share] = 0.0
    """Standard deviation of a worker's speed, as a share of it, drawn again every 100 ms; 20% at most."""
    seed: Annotated[int, r.integer(0, 2**31 - 1)] = 1  # of the noise, unless --seed names one, and of a random RSS key
    queues: Annotated[int, r.integer(1, 256)] = 1
    """Receive queues per port unless the run says otherwise."""
    placement: Annotated[str, r.choice("round-robin", "per-port")] = "per-port"
    """Placement of queues on workers: ``round-robin`` over all ports' queues in the order of their registration, or
    ``per-port`` (queue i of each port on worker i)."""
    rss: Annotated[RssSpec, r.section(RssSpec, "RSS")] = field(default_factory=RssSpec)
    bus: Annotated[BusSpec | None, r.section(BusSpec, "a bus")] = None
    tester: Annotated[TesterSpec, r.section(TesterSpec, "a tester")] = field(default_factory=TesterSpec)
    variants: Annotated[tuple[tuple[str, TwinVariant], ...], twin_variants] = ()
    """Costs that differ in the DUT's variants."""
    tcp: Annotated[TcpTwinSpec, r.section(TcpTwinSpec, "a twin for TCP")] = field(default_factory=TcpTwinSpec)
    """Further properties that TCP depends on."""
