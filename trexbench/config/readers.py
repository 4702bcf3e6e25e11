"""Text -> typed values of a DUT config. Each reader raises ConfigError with what is wrong and how to write it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import TypeVar

from ..core.errors import ConfigError
from ..core.units import Rate, parse_duration, parse_rate, parse_share, parse_speed
from .yamltree import Value

T = TypeVar("T")

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")


def text(value: Value) -> str:
    return value.text().strip()


def pattern(regex: str, what: str, example: str, longest: int = 64) -> Callable[[Value], str]:
    """Text of this form."""
    compiled = re.compile(regex)

    def read(value: Value) -> str:
        raw = text(value)
        if not compiled.fullmatch(raw) or len(raw) > longest:
            raise ConfigError(f"{raw[:80]!r} is not {what}", f"write it as {example}")
        return raw

    return read


interface = pattern(r"[A-Za-z][A-Za-z0-9_.:/-]*", "an interface name", "enp3s0f0, ix0 or TenGigabitEthernet3/0/0")
namespace = pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "a namespace's name", "tbx-dut", 48)
prefix = pattern(r"[a-z][a-z0-9-]*", "a prefix for namespaces", "tbx", 40)
host = pattern(r"[A-Za-z0-9:][A-Za-z0-9.:_-]*", "a host name or address", "192.0.2.10 or router.example.net", 253)
user = pattern(r"[a-z_][a-z0-9_.-]*", "a user's name", "root", 32)


def integer(low: int, high: int) -> Callable[[Value], int]:
    """A whole number within these limits."""

    def read(value: Value) -> int:
        raw = text(value)
        if not re.fullmatch(r"-?[0-9]{1,18}", raw) or not low <= int(raw) <= high:
            raise ConfigError(f"{raw[:80]!r} is not a whole number from {low} to {high}", "write it in plain digits")
        return int(raw)

    return read


def integers(low: int, high: int) -> Callable[[Value], tuple[int, ...]]:
    """One whole number, or a list of different ones."""
    one = integer(low, high)

    def read(value: Value) -> tuple[int, ...]:
        if isinstance(value.raw, str):
            return (one(value),)
        numbers = tuple(item.read(one) for item in value.items("number"))
        if not numbers or len(set(numbers)) != len(numbers):
            raise ConfigError("empty, or a number stands twice", f"write different ones, as in [{low}, {low + 1}]")
        return numbers

    return read


def or_word(words: tuple[str, ...], reader: Callable[[Value], T]) -> Callable[[Value], T | str]:
    """One of these words, or what the reader reads."""

    def read(value: Value) -> T | str:
        if isinstance(value.raw, str) and value.raw.strip() in words:
            return value.raw.strip()
        try:
            return reader(value)
        except ConfigError as error:
            raise ConfigError(f"{error} (or one of the words {', '.join(words)})") from None

    return read


def boolean(value: Value) -> bool:
    raw = text(value).lower()
    if raw not in _WORDS:
        raise ConfigError(f"{raw[:80]!r} is neither true nor false", "write true or false")
    return _WORDS[raw]


def choice(*allowed: str) -> Callable[[Value], str]:
    """One of these words."""

    def read(value: Value) -> str:
        raw = text(value)
        if raw not in allowed:
            raise ConfigError(f"{raw[:80]!r} is not known", f"write one of {', '.join(allowed)}")
        return raw

    return read


def address(value: Value) -> IPv4Address:
    raw = text(value)
    try:
        return IPv4Address(raw)
    except ValueError:
        raise ConfigError(f"{raw[:80]!r} is not an IPv4 address", "write it as 100.65.1.2") from None


def interface_address(value: Value) -> IPv4Interface:
    """An address with its prefix length; a host of that network, not the network itself."""
    raw = text(value)
    try:
        if "/" not in raw:
            raise ValueError
        found = IPv4Interface(raw)
    except ValueError:
        raise ConfigError(
            f"{raw[:80]!r} is not an IPv4 address with its prefix length", "write it as 100.65.1.1/24"
        ) from None
    network = found.network
    if network.prefixlen < 31 and found.ip in (network.network_address, network.broadcast_address):
        raise ConfigError(f"{raw!r} is no host's address", f"pick one between the ends of {network}")
    return found


def network(value: Value) -> IPv4Network:
    raw = text(value)
    try:
        return IPv4Network(raw)
    except ValueError:
        fix = "write it as 16.0.0.0/8"
        with contextlib.suppress(ValueError):
            fix = f"write it as {IPv4Network(raw, strict=False)}"
        raise ConfigError(f"{raw[:80]!r} is not an IPv4 network", fix) from None


def mac(value: Value) -> str:
    """A unicast MAC address, in lower case."""
    raw = text(value).lower()
    if not _MAC.fullmatch(raw):
        raise ConfigError(f"{raw[:80]!r} is not a MAC address", "write it as 68:05:ca:32:45:94")
    if int(raw[:2], 16) & 1 or raw == "00:00:00:00:00:00":
        raise ConfigError(f"{raw!r} is not the MAC of one port", "multicast and all-zero addresses cannot be pinned")
    return raw


def mac_or_tester(value: Value) -> str | None:
    return None if text(value) == "tester" else mac(value)


def speed(value: Value) -> float:
    return parse_speed(text(value))


def rate(value: Value) -> Rate:
    return parse_rate(text(value))


def pps(value: Value) -> float:
    found = rate(value)
    if found.unit != "pps":
        raise ConfigError(f"{found} is not in frames per second", "write it as 200kpps")
    return found.value


def seconds(value: Value) -> float:
    return parse_duration(text(value))


def share(value: Value) -> float:
    return parse_share(text(value))


def warmup(value: Value) -> tuple[Rate, float]:
    """``1kpps:10s``: rate and seconds."""
    raw, colon, length = text(value).partition(":")
    if not colon:
        raise ConfigError(f"{raw[:80]!r} is not a warm-up", "write rate and duration, as in 1kpps:10s")
    return parse_rate(raw), parse_duration(length)


def sysctls(value: Value) -> tuple[tuple[str, str], ...]:
    """A mapping of kernel settings, dots between the parts."""
    pairs = []
    key_of = re.compile(r"(?:net|kernel|vm)(?:\.[A-Za-z0-9_-]+)+")
    table = value.table("kernel settings", value.raw if isinstance(value.raw, dict) else ())
    for key in value.raw if isinstance(value.raw, dict) else ():
        if not key_of.fullmatch(key):
            raise table.at(key).wrong("not a kernel setting", "write it as net.core.netdev_max_backlog")
        pairs.append((key, table.get(key, text)))
    return tuple(pairs)
