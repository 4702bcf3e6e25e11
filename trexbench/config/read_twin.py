"""The keys of a DUT's ``twin:`` section."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..core.errors import ConfigError
from ..core.units import parse_duration
from . import readers as r
from .twin import DRIVES, HASH_FIELDS, PLACEMENTS, RSS_KEYS, BusSpec, RssSpec, TesterSpec, TwinSpec
from .yamltree import Value

_CYCLES = (
    *("cycles_per_packet", "cycles_per_fetch", "cycles_per_vector", "cycles_per_byte", "cycles_per_drop"),
    *("cycles_per_idle_poll", "cycles_per_loop"),
)
_TWIN = (
    *("workers", "clock", *_CYCLES, "vector", "drive", "batch", "contention", "ring", "latency"),
    *("noise", "seed", "queues", "placement", "rss", "bus", "tester"),
)
_CLOCK = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(?P<scale>[mg])hz")
_MICROSECONDS = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9})?)\s*us")
_KEY_DIGITS = (80, 104)
"""40 bytes, or 52 as NICs have that hash IPv6 tunnels."""


def read_twin(value: Value) -> TwinSpec:
    """The section as a spec; ConfigError naming file, line, key and fix."""
    t = value.table("a twin", _TWIN)
    cycles, few, base = number(0, 1e7), r.integer(1, 65536), TwinSpec(1, 1.0, 1.0)
    return TwinSpec(
        workers=t.get("workers", r.integer(1, 256)),
        clock_hz=t.get("clock", clock),
        packet_cycles=t.get("cycles_per_packet", number(1, 1e7)),
        fetch_cycles=t.get("cycles_per_fetch", cycles, base.fetch_cycles),
        vector_cycles=t.get("cycles_per_vector", cycles, base.vector_cycles),
        byte_cycles=t.get("cycles_per_byte", cycles, base.byte_cycles),
        drop_cycles=t.get("cycles_per_drop", cycles, base.drop_cycles),
        idle_poll_cycles=t.get("cycles_per_idle_poll", number(1, 1e7), base.idle_poll_cycles),
        loop_cycles=t.get("cycles_per_loop", cycles, base.loop_cycles),
        vector=t.get("vector", few, base.vector),
        drive=t.get("drive", r.choice(*DRIVES), base.drive),
        batch_s=t.get("batch", seconds, base.batch_s),
        contention=t.get("contention", r.share, base.contention),
        ring=t.get("ring", few, base.ring),
        latency_s=t.get("latency", seconds, base.latency_s),
        noise=t.get("noise", noise, base.noise),
        seed=t.get("seed", r.integer(0, 2**31 - 1), base.seed),
        queues=t.get("queues", r.integer(1, 256), base.queues),
        placement=t.get("placement", r.choice(*PLACEMENTS), base.placement),
        rss=t.get("rss", read_rss, base.rss),
        bus=t.get("bus", _bus, None),
        tester=t.get("tester", _tester, base.tester),
    )


def read_rss(value: Value) -> RssSpec:
    """How a NIC chooses a receive queue."""
    t, base = value.table("RSS", ("key", "fields", "table")), RssSpec()
    return RssSpec(
        t.get("key", rss_key, base.key), t.get("fields", _fields, base.fields), t.get("table", _table, base.table)
    )


def _bus(value: Value) -> BusSpec:
    t = value.table("a bus", ("limit", "cycles_per_stall"))
    return BusSpec(t.get("limit", r.pps), t.get("cycles_per_stall", number(0, 1e7)))


def _tester(value: Value) -> TesterSpec:
    t, base = value.table("a tester", ("tx_limit", "rx_limit", "overload", "skew")), TesterSpec()
    return TesterSpec(
        tx_limit_pps=t.get("tx_limit", r.pps, None),
        rx_limit_pps=t.get("rx_limit", r.pps, None),
        overload=t.get("overload", r.choice("stretch", "queue-full"), base.overload),
        skew_s=t.get("skew", seconds, base.skew_s),
    )


def number(low: float, high: float) -> Callable[[Value], float]:
    """A number within these limits, in plain digits."""

    def read(value: Value) -> float:
        raw = r.text(value)
        if not re.fullmatch(r"[0-9]{1,12}(?:\.[0-9]{1,9})?", raw) or not low <= float(raw) <= high:
            raise ConfigError(f"{raw[:80]!r} is not a number from {low:g} to {high:g}", "write it in plain digits")
        return float(raw)

    return read


def clock(value: Value) -> float:
    """Hz."""
    raw = r.text(value)
    match = _CLOCK.fullmatch(raw.lower())
    if not match or float(match["number"]) == 0:
        raise ConfigError(f"clock {raw[:80]!r} not understood", "write it as 2.2ghz or 800mhz")
    return float(match["number"]) * {"m": 1e6, "g": 1e9}[match["scale"]]


def seconds(value: Value) -> float:
    """Microseconds too, which no duration of a run is written in; at most a second."""
    raw = r.text(value)
    match = _MICROSECONDS.fullmatch(raw.lower())
    found = float(match["number"]) * 1e-6 if match else parse_duration(raw)
    if found > 1:
        raise ConfigError(f"{raw[:80]!r} is more than a second", "write it as 20us or 1.5ms")
    return found


def noise(value: Value) -> float:
    found = r.share(value)
    if found > 0.2:
        raise ConfigError(f"noise of {found:.0%}", "at most 20%: beyond it a worker's speed would reach zero")
    return found


def rss_key(value: Value) -> str:
    """One of the words, or the digits in lower case without what separates them."""
    raw = r.text(value)
    if raw in RSS_KEYS:
        return raw
    digits = re.sub(r"[\s:]", "", raw.lower())
    if not re.fullmatch(r"[0-9a-f]*", digits) or len(digits) not in _KEY_DIGITS:
        raise ConfigError(
            f"{raw[:80]!r} is no RSS key", f"write {' or '.join(RSS_KEYS)}, or 40 bytes as ethtool -x prints them"
        )
    return digits


def _fields(value: Value) -> tuple[str, ...]:
    items = value.items("header field")
    found = tuple(item.read(r.choice(*HASH_FIELDS)) for item in items)
    if not found or found != tuple(name for name in HASH_FIELDS if name in found):
        raise ConfigError(
            "empty, doubled or out of order", f"write some of [{', '.join(HASH_FIELDS)}], in this order, as NICs hash"
        )
    return found


def _table(value: Value) -> int:
    found = r.integer(1, 4096)(value)
    if found & (found - 1):
        raise ConfigError(f"{found} is no power of two", "an indirection table has 64, 128 or 512 entries")
    return found
