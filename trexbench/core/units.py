"""Rates, durations and shares as people write them, and the arithmetic of frames on a wire.

Sizes are of L2 frames with 4 bytes of FCS. L1 adds 20 bytes per frame: preamble 7, start delimiter 1, gap 12.
"""

from __future__ import annotations

import re
from calendar import monthrange, timegm
from dataclasses import dataclass
from math import ceil, floor, log10

from .errors import ConfigError

L1_OVERHEAD_BYTES = 20
FCS_BYTES = 4
MIN_FRAME_BYTES = 64

_SCALE = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_NUMBER = r"(?P<number>[0-9]{1,20}(?:\.[0-9]+)?|\.[0-9]+)"
_RATE = re.compile(rf"{_NUMBER}\s*(?:(?P<percent>%)|(?P<scale>[kmgt]?)(?P<unit>pps|bpsl1|bps))")
_PART = r"[0-9]{1,20}(?:\.[0-9]+)?|\.[0-9]+"
_DURATION = re.compile(
    rf"(?P<bare>{_PART})|(?=.)"
    rf"(?:(?P<h>{_PART})\s*h\s*)?(?:(?P<m>{_PART})\s*m(?:in)?\s*)?(?:(?P<s>{_PART})\s*s(?:ec)?\s*)?"
    rf"(?:(?P<ms>{_PART})\s*ms\s*)?(?:(?P<us>{_PART})\s*us)?"
)
_SPEED = re.compile(rf"{_NUMBER}\s*(?P<scale>[mg])(?:bit(?:/s)?|bps|b)?")
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z", re.ASCII)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "bare": 1.0, "m": 60.0, "h": 3600.0}
LONGEST_S = 30 * 86400.0
"""No duration is longer: it would be a slip of the keyboard."""


@dataclass(frozen=True)
class Rate:
    """An offered load as it was written."""

    value: float
    unit: str  # pps, bps (L2), bpsl1 or percent (of L1 line rate)

    def to_pps(self, mean_frame_bytes: float, line_rate_bps: float) -> float:
        """Convert to frames per second in one direction, for frames of this mean size on a line of this L1 speed."""
        if self.unit == "pps":
            return self.value
        if self.unit == "bps":
            return self.value / (mean_frame_bytes * 8)
        if self.unit == "bpsl1":
            return self.value / l1_bits(mean_frame_bytes)
        return self.value / 100 * line_rate_pps(mean_frame_bytes, line_rate_bps)

    def __str__(self) -> str:
        """Format the rate as a user writes it: 1.2mpps."""
        if self.unit == "percent":
            return f"{self.value:g}%"
        scale = next((s for s in ("t", "g", "m", "k") if self.value >= _SCALE[s]), "")
        return f"{self.value / _SCALE[scale]:.10g}{scale}{self.unit}"


def l1_bits(mean_frame_bytes: float) -> float:
    """Number of bits that one frame of this size occupies on the wire."""
    return (mean_frame_bytes + L1_OVERHEAD_BYTES) * 8


def line_rate_pps(mean_frame_bytes: float, line_rate_bps: float) -> float:
    """Frames per second that fill a line of this L1 speed: 14 880 952 for 64 B at 10 Gbit/s."""
    return line_rate_bps / l1_bits(mean_frame_bytes)


def tcp_payload_bps(
    line_rate_bps: float,
    mtu: int = 1500,
    version: int = 4,
    timestamps: bool = True,
    vlans: int = 0,
    tunnel: int = 0,
    framing: int = FCS_BYTES + L1_OVERHEAD_BYTES,
) -> float:
    """TCP payload per second that fills a line of this L1 speed with full frames: 941.5 Mbit/s of 1 Gbit/s.

    version: of IP, without options or extension headers. timestamps: TCP's, 12 bytes. vlans: tags on the line. tunnel:
    bytes of a tunnel's headers, which the MTU includes. framing: what the rate counts besides a frame without FCS.
    """
    payload = mtu - tunnel - (20 if version == 4 else 40) - 20 - 12 * timestamps
    return line_rate_bps * max(0, payload) / (mtu + 14 + 4 * vlans + framing)


def parse_rate(text: str) -> Rate:
    """Read a rate: ``64kpps``, ``1.2mpps``, ``3gbps`` (L2), ``5gbpsl1``, ``40%``; ConfigError for other text."""
    match = _RATE.fullmatch(text.strip().lower())
    if not match:
        raise ConfigError(f"rate {text!r} not understood", "write it as 64kpps, 1.2mpps, 3gbps, 5gbpsl1 or 40%")
    number = float(match["number"])
    rate = Rate(number, "percent") if match["percent"] else Rate(number * _SCALE[match["scale"]], match["unit"])
    if rate.value <= 0:
        raise ConfigError(f"rate {text!r} is zero", "an offered load must be above 0, as in 1kpps")
    if rate.unit == "percent" and rate.value > 100:
        raise ConfigError(f"rate {text!r} is over line rate", "100% of L1 is the most a port can send")
    return rate


def format_rate(pps: float) -> str:
    """Format frames per second for parse_rate, rounded up to two digits: ``13mpps``."""
    scale, unit = (1e6, "mpps") if pps >= 1e6 else (1e3, "kpps") if pps >= 1e3 else (1.0, "pps")
    digits = 10 ** (floor(log10(max(pps / scale, 1.0))) - 1)
    return f"{ceil(round(pps / scale / digits, 6)) * digits:g}{unit}"


def parse_duration(text: str) -> float:
    """Read seconds: ``600``, ``10s``, ``500ms``, ``20us``, ``2m30s``, ``1h30m``; ConfigError above LONGEST_S."""
    match = _DURATION.fullmatch(text.strip().lower())
    if not match:
        raise ConfigError(f"duration {text!r} not understood", "write it as 10s, 500ms, 2m30s or a number of seconds")
    seconds = sum(float(number) * _SECONDS[unit] for unit, number in match.groupdict().items() if number)
    if seconds > LONGEST_S:
        raise ConfigError(f"duration {text!r} is longer than 30 days", "write it as 10s, 500ms, 2m30s or 1h")
    return seconds


def parse_share(text: str) -> float:
    """Read a fraction between 0 and 1: ``0.1%``, ``0.001``. A bare ``1`` is refused: most who write it mean 1 %."""
    stripped = text.strip()
    try:
        value = float(stripped[:-1]) / 100 if stripped.endswith("%") else float(stripped)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ConfigError(f"share {text!r} not understood", "write it as 0.1% or 0.001, between 0 and 100%")
    if value == 1 and not stripped.endswith("%"):
        raise ConfigError(f"share {text!r} could be 1 % or 100 %", "write 1%, 0.01 or 100%")
    return value


def parse_speed(text: str) -> float:
    """Read a speed in bit/s at L1: ``1gbit``, ``2.5gbit``, ``100mbit``, ``10gbps``."""
    match = _SPEED.fullmatch(text.strip().lower())
    if not match or float(match["number"]) == 0:
        raise ConfigError(f"speed {text!r} not understood", "write it as 1gbit, 2.5gbit or 100mbit")
    return float(match["number"]) * _SCALE[match["scale"]]


def format_scaled(value: float, unit: str, digits: int = 4, chosen: bool = False) -> str:
    """Format with an SI prefix and ``digits`` significant digits: ``1.488 Mpps``, ``418.7 Mbit/s``.

    chosen: here and below, a figure that was chosen and not measured has no trailing zeros: ``1 Gbit/s``, ``97 %``.
    """
    if value != value:  # NaN
        return f"? {unit}"
    prefixes, least = ((1e9, "G"), (1e6, "M"), (1e3, "k")), 1 - 0.5 * 10**-digits
    divisor, prefix = next((one for one in prefixes if abs(value) >= one[0] * least), (1.0, ""))
    return f"{_significant(value / divisor, digits, chosen)} {prefix}{unit}"


def format_pps(pps: float, chosen: bool = False) -> str:
    return format_scaled(pps, "pps", chosen=chosen)


def format_bits(bps: float, chosen: bool = False) -> str:
    return format_scaled(bps, "bit/s", chosen=chosen)


def format_time(seconds: float, chosen: bool = False) -> str:
    """Format a short time in the unit that fits it: ``23.4 us``, ``1.52 ms``."""
    scale, unit = (1e6, "us") if seconds < 1e-3 else (1e3, "ms") if seconds < 1 else (1.0, "s")
    return f"{_significant(seconds * scale, 3, chosen)} {unit}"


def format_share(fraction: float, bound: bool = False) -> str:
    """Format a fraction as a percentage, a small one with more decimals: ``33.7 %``, ``0.021 %``, ``0.00002 %``.

    bound: a lower bound, which is marked and not rounded up: ``>= 99.9 %``.
    """
    percent, places = _percent(fraction)
    return f">= {round_down(percent, places):.{places}f} %" if bound else f"{percent:.{places}f} %"


def format_step(fraction: float, bound: str = "") -> str:
    """Format a difference as format_share does, with its sign: ``+3.04 %``. bound: its sign, as of round_bound."""
    percent, places = _percent(fraction)
    return f"{bound} {round_bound(percent, places, bound):+.{places}f} %".lstrip()


def _percent(fraction: float) -> tuple[float, int]:
    """Return a fraction in percent, and how many decimals it takes."""
    percent = round(fraction * 100, 9) + 0.0  # never -0.000
    size = abs(percent)
    return percent, 1 if size >= 10 else 2 if size >= 1 else max(3, -floor(log10(size or 1)))


def round_down(value: float, places: int) -> float:
    """Round to so many decimals, up by no more than rates of four digits are: 99.996 is 100."""
    nearest = round(value, places)
    return nearest if nearest <= value + 1e-4 * abs(value) else floor(value * 10.0**places) / 10.0**places


def round_bound(value: float, places: int, bound: str) -> float:
    """Round a bound so that it remains one: one of ``>=`` down, of ``<=`` up, any other value to the nearest."""
    if bound:
        return round_down(value, places) if bound == ">=" else -round_down(-value, places)
    return round(value, places)


def format_duration(seconds: float) -> str:
    """Format a duration: ``45 s``, ``2:05 min``, ``1:02:03 h``."""
    whole = round(max(0.0, seconds))
    if whole < 100:
        return f"{whole} s"
    minutes, secs = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{secs:02} h" if hours else f"{minutes}:{secs:02} min"


def format_length(seconds: float) -> str:
    """Format a duration that was chosen, and not measured: ``2.5 s``, ``10:00 min``."""
    return f"{seconds:g} s" if seconds < 100 else format_duration(seconds)


def seconds_of(text: str | None) -> float | None:
    """Read a time as in documents, 2026-11-20T02:00:00Z, as seconds since 1970; None for anything else."""
    match = _TIME.fullmatch(text or "")
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups())
    if not (year and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]):
        return None
    return float(timegm((year, month, day, hour, minute, second))) if hour < 24 and max(minute, second) < 60 else None


def _significant(value: float, digits: int, chosen: bool) -> str:
    whole = len(str(int(float(f"{abs(value):.{digits}g}"))))  # 99.9999 becomes 100.0
    text = f"{value:.{max(0, digits - whole)}f}"
    return text.rstrip("0").rstrip(".") if chosen and "." in text else text
