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
"""Hexadecimal digits of a key of 40 bytes, or of 52 as in NICs that hash IPv6 tunnels."""

_CYCLES, _AT_LEAST_ONE = r.number(0, 1e7), r.number(1, 1e7)


def _port_limit(value: Value) -> float | Mapping[int, float]:
    """Frames per second: one limit for every port, or by the tester's port, as in {0: 800kpps}."""
    if not isinstance(value.raw, Mapping):
        return r.pps(value)
    for port, one in value.raw.items():
        if not re.fullmatch(r"0|[1-9][0-9]{0,2}", port):
            raise one.wrong(f"{port[:80]!r} is not a port number", "write the tester's ports, as in {0: 800kpps}")
    return {int(port): one.read(r.pps) for port, one in value.raw.items()}


def _rss_key(value: Value) -> str:
    """One of RSS_KEYS, or the key's digits in lower case without separators."""
    raw = value.text()
    digits = re.sub(r"[\s:]", "", raw.lower())
    if raw in RSS_KEYS or (re.fullmatch(r"[0-9a-f]*", digits) and len(digits) in _KEY_DIGITS):
        return raw if raw in RSS_KEYS else digits
    words = " or ".join(RSS_KEYS)
    raise ConfigError(f"{raw[:80]!r} is not an RSS key", f"write {words}, or 40 bytes as ethtool -x prints them")


def _hash_fields(value: Value) -> tuple[str, ...]:
    found = r.list_of("header field", r.choice(*HASH_FIELDS))(value)
    if not found or found != tuple(name for name in HASH_FIELDS if name in found):
        every = ", ".join(HASH_FIELDS)
        raise ConfigError("empty, doubled or out of order", f"write some of [{every}], in this order, as NICs hash")
    return found


def _table_entries(value: Value) -> int:
    found = r.integer(1, 4096)(value)
    if found & (found - 1):
        raise ConfigError(f"{found} is not a power of two", "an indirection table has 64, 128 or 512 entries")
    return found


@dataclass(frozen=True)
class TesterSpec:
    """Limits of the simulated TRex; by default it has none. Rates in frames per second.

    tx_limit_pps, rx_limit_pps: of every port, or by port; a port that is not named has no limit. overload: what happens
    beyond tx_limit_pps: ``stretch`` (sending takes longer, as in TRex: fewer frames, no queue_full) or ``queue-full``
    (frames are dropped and counted). Frames beyond rx_limit_pps count as ierrors; with rx_overload ``silent`` nobody
    counts them. skew_s: the counters of different
    ports are read at most this far apart.
    """

    tx_limit_pps: Annotated[float | Mapping[int, float] | None, _port_limit, "tx_limit"] = None
    rx_limit_pps: Annotated[float | Mapping[int, float] | None, _port_limit, "rx_limit"] = None
    overload: Annotated[str, r.choice("stretch", "queue-full")] = "stretch"
    rx_overload: Annotated[str, r.choice("ierrors", "silent")] = "ierrors"
    skew_s: Annotated[float, seconds, "skew"] = 0.0

    def limit_of(self, side: Literal["tx", "rx"], port: int) -> float | None:
        """Return the highest rate at which this port can send or receive; None for any rate."""
        limit = self.tx_limit_pps if side == "tx" else self.rx_limit_pps
        return limit.get(port) if isinstance(limit, Mapping) else limit


@dataclass(frozen=True)
class RssSpec:
    """Spread of flows over a port's receive queues by the NIC: Toeplitz hash, then a round-robin indirection table.

    key: ``microsoft`` (the one of the RSS specification, DPDK's default for Intel's NICs), ``random`` (drawn once from
    the twin's seed, as drivers do that draw one at boot) or hexadecimal digits. fields: what is hashed, of
    HASH_FIELDS; ports of TCP and UDP only. table: its entries, a power of two.
    """

    key: Annotated[str, _rss_key] = "microsoft"
    fields: Annotated[tuple[str, ...], _hash_fields] = HASH_FIELDS
    table: Annotated[int, _table_entries] = 128


@dataclass(frozen=True)
class BusSpec:
    """Cost of receiving while the same port sends: ``stall_cycles`` x r / (1 - r) a frame, r the load of the bus.

    limit_pps: the most frames per second that a port could receive while it sends as many; the load is the smaller of
    the two rates, as a share of it.
    """

    limit_pps: Annotated[float, r.pps, "limit"]
    stall_cycles: Annotated[float, _CYCLES, "cycles_per_stall"]


@dataclass(frozen=True)
class TwinSpec:
    """A simulated router. Cycles are of one worker's clock; frames that arrive share its time as docs/twins.md says.

    workers: cores that forward; queues: receive queues per port unless the run says otherwise. fetch_cycles and
    packet_cycles: per frame, of the node that fetches from the NIC and of all others; vector_cycles: per poll that
    found frames; vector: frames per poll and queue at most; byte_cycles: per byte of a frame with FCS; drop_cycles: per
    frame that found the ring full. idle_poll_cycles: a poll that finds nothing; loop_cycles: around the polls. drive:
    ``polling`` or ``interrupt`` (the latter has no idle polls). batch_s: frames reach a queue in batches this far apart
    (interrupt moderation, descriptor write-back, the sender's own bursts). contention: how much more everything costs
    per other worker that is fully busy. ring: frames a queue holds. latency_s: of a frame that need not wait, besides
    the work on it. noise: standard deviation of a worker's speed, drawn again every 100 ms. placement: of queues on
    workers, ``round-robin`` over all ports' queues in the order of their registration, or ``per-port`` (queue i of
    each port on worker i). variants: what differs where the DUT is in one of its variants. tcp: what TCP through it
    depends on besides.
    """

    workers: Annotated[int, r.integer(1, 256)]
    clock_hz: Annotated[float, r.clock, "clock"]
    packet_cycles: Annotated[float, _AT_LEAST_ONE, "cycles_per_packet"]
    fetch_cycles: Annotated[float, _CYCLES, "cycles_per_fetch"] = 0.0
    vector_cycles: Annotated[float, _CYCLES, "cycles_per_vector"] = 0.0
    byte_cycles: Annotated[float, _CYCLES, "cycles_per_byte"] = 0.0
    drop_cycles: Annotated[float, _CYCLES, "cycles_per_drop"] = 0.0
    idle_poll_cycles: Annotated[float, _AT_LEAST_ONE, "cycles_per_idle_poll"] = 500.0
    loop_cycles: Annotated[float, _CYCLES, "cycles_per_loop"] = 0.0
    vector: Annotated[int, r.integer(1, 65536)] = 64
    drive: Annotated[str, r.choice("polling", "interrupt")] = "interrupt"
    batch_s: Annotated[float, seconds, "batch"] = 0.0
    contention: Annotated[float, r.share] = 0.0
    ring: Annotated[int, r.integer(1, 65536)] = 512
    latency_s: Annotated[float, seconds, "latency"] = 20e-6
    noise: Annotated[float, noise_share] = 0.0
    seed: Annotated[int, r.integer(0, 2**31 - 1)] = 1
    queues: Annotated[int, r.integer(1, 256)] = 1
    placement: Annotated[str, r.choice("round-robin", "per-port")] = "per-port"
    rss: Annotated[RssSpec, r.section(RssSpec, "RSS")] = field(default_factory=RssSpec)
    bus: Annotated[BusSpec | None, r.section(BusSpec, "a bus")] = None
    tester: Annotated[TesterSpec, r.section(TesterSpec, "a tester")] = field(default_factory=TesterSpec)
    variants: Annotated[tuple[tuple[str, TwinVariant], ...], twin_variants] = ()
    tcp: Annotated[TcpTwinSpec, r.section(TcpTwinSpec, "a twin for TCP")] = field(default_factory=TcpTwinSpec)
