"""A long line in the path of TCP, or of packets: its delay, rate, queue and losses. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median

from ..errors import ConfigError
from ..typed import Amount, Count
from ..units import format_bits, format_scaled, format_share, format_time, parse_duration, parse_share, parse_speed

LONGEST_S, MOST_LOSS = 2.0, 0.5
"""Longest delay, as the ping that proves the path gives up 2 s after its last request; largest loss each way."""
SHORTEST_QUEUE_S = 0.01
"""Shortest queue, in time at its rate."""
PINGS = 5
"""Echo requests with which its delay is checked."""
LATE, LATE_S, EARLY = 0.1, 0.002, 0.02
"""Excess of round trips over the delay (a share, and the path's and hosts' own), and the share they may fall short."""
_SCALE = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([kmg]?)b?")
_TIMES = {"s": 1.0, "ms": 1e-3}
_RATES = {"gbit": 1e9, "mbit": 1e6}
_SIZES = {"gb": 1e9, "mb": 1e6, "kb": 1e3, "b": 1.0}


@dataclass(frozen=True)
class Wan:
    """One line, alike in both directions."""

    delay_s: Amount = 0.0  # added to the round trip, half of it each way
    rate_bps: Amount | None = None  # each way, in Ethernet frames without FCS, as tc counts them; None: no limit
    queued_bytes: Count | None = None
    """Bytes that wait for the rate before frames are dropped; None: the BDP, at least 10 ms at the rate."""
    loss: Amount = 0.0  # share of the frames lost at random, each way
    jitter_s: Amount = 0.0  # most by which a packet's delay differs each way; order is kept

    @property
    def bdp_bytes(self) -> int | None:
        """Bandwidth-delay product; None without a rate."""
        return None if self.rate_bps is None else round(self.rate_bps * self.delay_s / 8)

    @property
    def queue_bytes(self) -> int | None:
        """Bytes that may wait for the rate: as stated, else the BDP, at least SHORTEST_QUEUE_S; None without a rate."""
        if self.rate_bps is None or self.queued_bytes is not None:
            return self.queued_bytes
        return round(self.rate_bps * max(self.delay_s, SHORTEST_QUEUE_S) / 8)

    @property
    def asked(self) -> str:
        """Option that asks for it: ``20ms,1gbit``."""
        parts = [_compact(self.delay_s, _TIMES)] if self.delay_s else []
        parts += [_compact(self.rate_bps, _RATES)] if self.rate_bps is not None else []
        parts += [f"queue={_compact(self.queued_bytes, _SIZES)}"] if self.queued_bytes is not None else []
        parts += [f"loss={100 * self.loss:g}%"] if self.loss else []
        parts += [f"jitter={_compact(self.jitter_s, _TIMES)}"] if self.jitter_s else []
        return ",".join(parts)

    def __str__(self) -> str:
        """Format it for people: ``20 ms, 1 Gbit/s``."""
        words = [format_time(self.delay_s, chosen=True)] if self.delay_s else []
        words += [format_bits(self.rate_bps, chosen=True)] if self.rate_bps is not None else []
        words += [f"queue {format_size(self.queued_bytes, chosen=True)}"] if self.queued_bytes is not None else []
        words += [f"loss {100 * self.loss:g} %"] if self.loss else []
        words += [f"jitter {format_time(self.jitter_s, chosen=True)}"] if self.jitter_s else []
        return ", ".join(words)


def wrong_delay(wan: Wan, times_s: Sequence[float]) -> str | None:
    """Describe what is wrong with the round trips of answered echo requests; None: nothing."""
    if not times_s:
        return "no echo request was answered"
    least_s = wan.delay_s * (1 - EARLY) - 2 * wan.jitter_s
    most_s = wan.delay_s * (1 + LATE) + 2 * wan.jitter_s + LATE_S
    if min(times_s) >= least_s and median(times_s) <= most_s:
        return None
    seen = f"round trips are {format_time(min(times_s))} at least and {format_time(median(times_s))} in the median"
    return f"{seen}, with a delay of {format_time(wan.delay_s)}"


def _compact(value: float, units: Mapping[str, float]) -> str:
    """Format with the largest unit that leaves one or more: ``2.5mb``."""
    unit = next((name for name, size in units.items() if value >= size), [*units][-1])
    return f"{value / units[unit]:.4g}{unit}"


def parse_wan(text: str) -> Wan:
    """Parse ``20ms,1gbit,queue=2.5mb,loss=0.01%,jitter=1ms`` in any order; ConfigError for anything else."""
    stated: dict[str, float] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        key, value = _part(part)
        if _READERS[key][0] in stated:
            raise ConfigError(f"{text[:60]!r} states its {key} twice", "leave one out")
        stated[_READERS[key][0]] = value
    wan = Wan(**stated)  # type: ignore[arg-type]
    _check(wan)
    return wan


def _part(part: str) -> tuple[str, float]:
    """Parse ``queue=2.5mb`` to a key of _READERS and its value; alone, a duration is the delay, a speed the rate."""
    key, named, value = map(str.strip, part.partition("="))
    if named and key in _READERS:
        return key, _READERS[key][1](value)
    for alone in () if named else ("delay", "rate"):
        with suppress(ConfigError):
            return alone, _READERS[alone][1](part)
    remedy = "write it as 20ms,1gbit, with queue, loss, jitter=..."
    raise ConfigError(f"{key[:40]!r} of a WAN not understood", remedy)


def _check(wan: Wan) -> None:
    each_way_s = wan.delay_s / 2
    if wan.delay_s > LONGEST_S:
        raise ConfigError(f"a delay of {wan.delay_s:g} s", f"use at most {LONGEST_S:g} s")
    if wan.loss > MOST_LOSS:
        raise ConfigError(f"a loss of {format_share(wan.loss)}", f"use at most {format_share(MOST_LOSS)}")
    if wan.jitter_s > each_way_s:
        what = f"a jitter of {format_time(wan.jitter_s)} with a delay of {format_time(each_way_s)} each way"
        raise ConfigError(what, "use less jitter, or a longer delay")
    if wan.rate_bps is None and wan.queued_bytes is not None:
        raise ConfigError("a queue without a rate that it could wait for", "state a rate, as in 20ms,1gbit")
    if not wan.delay_s and wan.rate_bps is None and not wan.loss:
        raise ConfigError("a WAN that delays nothing and limits nothing", "write it as 20ms,1gbit")


def parse_size(text: str) -> int:
    """Parse a size in bytes: ``16777216``, ``2.5mb``, ``64kb``, in powers of ten."""
    match = _SIZE.fullmatch(text.strip().lower())
    if not match or (size := round(float(match[1]) * _SCALE[match[2]])) < 1:
        raise ConfigError(f"size {text[:40]!r} not understood", "write it as 16777216, 64kb or 2.5mb")
    return size


def format_size(size: float, chosen: bool = False) -> str:
    """Format a size in powers of ten: ``16.8 MB``."""
    return format_scaled(size, "B", 3, chosen)


_READERS: Mapping[str, tuple[str, Callable[[str], float]]] = {
    "delay": ("delay_s", parse_duration),
    "rate": ("rate_bps", parse_speed),
    "queue": ("queued_bytes", parse_size),
    "loss": ("loss", parse_share),
    "jitter": ("jitter_s", parse_duration),
}
