"""Readers of a config file's values: each turns text into a typed value, or raises ConfigError with the remedy."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar, get_type_hints

from ..core.errors import ConfigError
from ..core.names import HOST
from ..core.units import parse_duration, parse_rate, parse_share, parse_speed
from .yamltree import Value, raise_any, read_each

T = TypeVar("T")
R = TypeVar("R", bound=Callable[..., object])
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
A = TypeVar("A", Address, Interface)

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_CLOCK = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(?P<scale>[mg])hz")
_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")

ONE_VALUE = {"type": ["string", "number"]}
"""JSON schema of a scalar, which stays text until a reader converts it."""


def takes(**schema: object) -> Callable[[R], R]:
    """Attach a JSON schema to a reader, for editors; a reader inside the schema stands for its own schema."""

    def state(reader: R) -> R:
        reader.__dict__["schema"] = schema
        return reader

    return state


def section(
    cls: Callable[..., T], what: str, required: Sequence[str] = (), also: Sequence[str] = (), **given: object
) -> Callable[[Value], T]:
    """Reader of a mapping as a dataclass, whose fields name their readers: ``Annotated[type, reader, "key"]``.

    The key is the field's name unless another is named. Fields without a default are required, and so are the keys in
    ``required``; fields without a reader are not keys of the file, but come from ``given``. also: further keys that are
    known, but not read.
    """

    @takes(section=cls)
    def read(value: Value) -> T:
        keys = keys_of(cls)
        known = tuple(dict.fromkeys(key for key, _, _ in keys.values()))
        nodes = value.mapping(what, known)
        errors = list(value.unknown(known, also))
        missing = [key for key, _, needed in keys.values() if (needed or key in required) and key not in nodes]
        if missing:
            errors.append(value.missing(missing, what))
        there = {name: (nodes[key], reader) for name, (key, reader, _) in keys.items() if key in nodes}
        return cls(**given, **dict(zip(there, read_each(there.values(), errors), strict=True)))

    return read


def as_written(read: Any) -> Any:
    """Return the values of a section under the keys of its file."""
    if is_dataclass(read) and not isinstance(read, type):
        keys = {name: key for name, (key, _, _) in keys_of(type(read)).items()}
        return {keys.get(field.name, field.name): as_written(getattr(read, field.name)) for field in fields(read)}
    return [as_written(item) for item in read] if isinstance(read, tuple) else read


@lru_cache(maxsize=64)
def keys_of(cls: Any) -> dict[str, tuple[str, Callable[[Value], Any], bool]]:
    """Map each field of a section to its key, its reader, and True if it is required."""
    hints, keys = get_type_hints(cls, include_extras=True), {}
    for field in fields(cls):
        reader, *names = getattr(hints[field.name], "__metadata__", (None,))
        if reader is not None:
            needed = field.default is MISSING and field.default_factory is MISSING
            keys[field.name] = (names[0] if names else field.name, reader, needed)
    return keys


text = Value.text


def pattern(regex: str, what: str, example: str, longest: int = 64) -> Callable[[Value], str]:
    """Reader of text that matches the regular expression. what: description of such a text."""
    compiled = re.compile(regex)

    @takes(**ONE_VALUE, title=what, pattern=f"^(?:{regex})$", maxLength=longest)
    def read(value: Value) -> str:
        raw = value.text()
        if len(raw) > longest:
            raise ConfigError(f"{raw[:80]!r} is too long for {what}", f"use at most {longest} characters")
        if not compiled.fullmatch(raw):
            raise ConfigError(f"{raw[:80]!r} is not {what}", f"write it as {example}")
        return raw

    return read


interface = pattern(r"[A-Za-z][A-Za-z0-9_.:/-]*", "an interface name", "enp3s0f0, ix0 or TenGigabitEthernet3/0/0")
namespace = pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "a namespace's name", "tbx-dut", 48)
prefix = pattern(r"[a-z][a-z0-9-]*", "a prefix for namespaces", "tbx", 40)
host = pattern(HOST, "a host name or address", "192.0.2.10 or router.example.net", 253)
platform = pattern(r"[a-z][a-z0-9_]*", "one of netmiko's platforms", "mikrotik_routeros or cisco_xe", 40)
variable = pattern(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable of the environment", "ROUTER_PASSWORD", 80)
path = pattern(r"[~/][A-Za-z0-9_./+-]*", "an absolute path", "/etc/trexbench/NAME or ~/NAME", 200)
user = pattern(r"[a-z_][a-z0-9_.-]*", "a user's name", "root", 32)


def integer(low: int, high: int) -> Callable[[Value], int]:
    """Reader of a whole number within these limits."""
    return _within(low, high, int, r"-?[0-9]{1,18}", f"a whole number from {low} to {high}")


def number(low: float, high: float) -> Callable[[Value], float]:
    """Reader of a number within these limits, in plain digits."""
    return _within(low, high, float, r"[0-9]{1,12}(?:\.[0-9]{1,9})?", f"a number from {low:g} to {high:.12g}")


def _within(low: float, high: float, kind: Callable[[str], Any], digits: str, what: str) -> Callable[[Value], Any]:
    @takes(type="integer" if kind is int else "number", minimum=low, maximum=high)
    def read(value: Value) -> Any:
        raw = value.text()
        if not re.fullmatch(digits, raw) or not low <= kind(raw) <= high:
            raise ConfigError(f"{raw[:80]!r} is not {what}", "write one of these, in plain digits")
        return kind(raw)

    return read


def integers(low: int, high: int) -> Callable[[Value], tuple[int, ...]]:
    """Reader of one whole number, or a list of different ones."""
    return one_or_more("number", integer(low, high))


def list_of(
    what: str, reader: Callable[[Value], T], named: Callable[[T], str] | None = None
) -> Callable[[Value], tuple[T, ...]]:
    """Reader of a list; with ``named``, of at least one item, and with different names."""

    @takes(type="array", items=reader, minItems=int(named is not None))
    def read(value: Value) -> tuple[T, ...]:
        nodes = value.items(what)
        items = each_of(nodes, reader)
        if named is not None:
            if not items:
                raise value.wrong(f"no {what}", f"name at least one {what}")
            raise_any(repeated(nodes, [named(item) for item in items], what))
        return items

    return read


def each_of(items: Sequence[Value], reader: Callable[[Value], T]) -> tuple[T, ...]:
    """Read each item with the reader; ConfigError with all of their errors."""
    return tuple(read_each((item, reader) for item in items))


def repeated(items: Sequence[Value], names: Sequence[str], what: str, *key: str) -> Iterator[ConfigError]:
    """Yield an error for each item that repeats an earlier name. key: path to the name in an item."""
    for index, name in enumerate(names):
        if name in names[:index]:
            first = items[names.index(name)].line
            yield items[index].at(*key).wrong(f"{what} {name} is on line {first} already", "name each once")


def pairs(what: str, name: str, example: str, reader: Callable[[Value], T]) -> Callable[[Value], Any]:
    """Reader of a mapping as pairs; its keys are names that match the regular expression ``name``."""

    @takes(type="object", propertyNames={"pattern": f"^(?:{name})$"}, additionalProperties=reader)
    def read(value: Value) -> tuple[tuple[str, T], ...]:
        nodes = value.mapping(f"{what}s")
        misnamed = [node for key, node in nodes.items() if not re.fullmatch(name, key)]
        errors = [node.wrong(f"not the name of a {what}", f"write it as {example}") for node in misnamed]
        named = [(node, reader) for node in nodes.values() if node not in misnamed]
        return tuple(zip(nodes, read_each(named, errors), strict=True))

    return read


def or_word(words: tuple[str, ...], reader: Callable[[Value], T]) -> Callable[[Value], T | str]:
    """Reader of one of these words, or of what ``reader`` reads."""

    @takes(anyOf=[{"enum": words}, reader])
    def read(value: Value) -> T | str:
        if isinstance(value.raw, str) and value.raw.strip() in words:
            return value.raw.strip()
        try:
            return reader(value)
        except ConfigError as error:
            raise ConfigError(f"{error} (or one of the words {', '.join(words)})") from None

    return read


@takes(enum=[True, False, *_WORDS])
def boolean(value: Value) -> bool:
    raw = value.text().lower()
    if raw not in _WORDS:
        raise ConfigError(f"{raw[:80]!r} is neither true nor false", "write true or false")
    return _WORDS[raw]


def choice(*allowed: str) -> Callable[[Value], str]:
    """Reader of one of these words."""

    @takes(enum=allowed)
    def read(value: Value) -> str:
        raw = value.text()
        if raw not in allowed:
            raise ConfigError(f"{raw[:80]!r} is not known", f"write one of {', '.join(allowed)}")
        return raw

    return read


def _no_ip(raw: str, what: str, v4: str, v6: str) -> ConfigError:
    """Return the error for a text that is no ``what``, with the example of the family that was probably meant."""
    family, example = ("IPv6", v6) if ":" in raw else ("IPv4", v4)
    return ConfigError(f"{raw[:80]!r} is not an {family} {what}", f"write it as {example}")


@takes(**ONE_VALUE, title="an address")
def address(value: Value) -> Address:
    try:
        return ipaddress.ip_address(value.text())
    except ValueError:
        raise _no_ip(value.text(), "address", "100.65.1.2", "2001:2:0:1::2") from None


def is_host(address: Address, network: Network) -> bool:
    """Return whether the address is a host's, not one of the ends of its network."""
    return network.num_addresses <= 2 or address not in (network.network_address, network.broadcast_address)


@takes(**ONE_VALUE, title="an address with its prefix length")
def interface_address(value: Value) -> Interface:
    """Read a host's address with its prefix length."""
    raw = value.text()
    try:
        if "/" not in raw:
            raise ValueError
        own = ipaddress.ip_interface(raw)
    except ValueError:
        raise _no_ip(raw, "address with its prefix length", "100.65.1.1/24", "2001:2:0:1::1/64") from None
    if not is_host(own.ip, own.network):
        raise ConfigError(f"{raw!r} is not a host's address", f"pick one between the ends of {own.network}")
    if own.ip.is_link_local or own.ip.is_multicast:
        raise ConfigError(f"{raw!r} is link-local or multicast", "pick one through which test traffic can be routed")
    return own


@takes(**ONE_VALUE, title="a network")
def network(value: Value) -> Network:
    raw = value.text()
    try:
        return ipaddress.ip_network(raw)
    except ValueError:
        examples = "16.0.0.0/8", "2001:2:0:16::/64"
        with suppress(ValueError):
            examples = (str(ipaddress.ip_network(raw, strict=False)),) * 2
        raise _no_ip(raw, "network", *examples) from None


def one_or_more(what: str, reader: Callable[[Value], T]) -> Callable[[Value], tuple[T, ...]]:
    """Reader of one value, or a list of different ones."""
    several = list_of(what, reader, str)

    @takes(anyOf=[reader, several])
    def read(value: Value) -> tuple[T, ...]:
        return (value.read(reader),) if isinstance(value.raw, str) else several(value)

    return read


def _of_each_family(reader: Callable[[Value], A]) -> Callable[[Value], tuple[A, ...]]:
    """Reader of one IPv4 address, one IPv6 address, or both."""
    several = one_or_more("address", reader)

    @takes(anyOf=[several])
    def read(value: Value) -> tuple[A, ...]:
        addresses = several(value)
        if len({address.version for address in addresses}) < len(addresses):
            raise ConfigError("two addresses of one family", "write at most one IPv4 and one IPv6 address")
        return addresses

    return read


addresses, interface_addresses = _of_each_family(address), _of_each_family(interface_address)


def by_parts(cls: Callable[..., Any], what: str, parse: Callable[[str], T]) -> Callable[[Value], T]:
    """Reader of an option's text, or of its parts as the keys of a section."""
    parts = section(cls, what)

    @takes(anyOf=[ONE_VALUE, parts])
    def read(value: Value) -> T:
        if isinstance(value.raw, str):
            return parse(value.text())
        stated = [f"{key}={text}" for key, text in vars(parts(value)).items() if text is not None]
        return parse(",".join(stated).removeprefix("kind="))

    return read


_TAG = integer(1, 4094)


@takes(anyOf=[_TAG, {"type": "array", "items": _TAG, "minItems": 1, "maxItems": 2}])
def vlans(value: Value) -> tuple[int, ...]:
    """Read the number of a VLAN, or of an outer and an inner one."""
    tags = (_TAG(value),) if isinstance(value.raw, str) else each_of(value.items("VLAN"), _TAG)
    if not 1 <= len(tags) <= 2:
        raise ConfigError(f"{len(tags)} VLANs", "write one, or the outer and the inner one: [100, 200]")
    return tags


@takes(**ONE_VALUE, title="a MAC address, or tester")
def mac_or_tester(value: Value) -> str | None:
    """Read a unicast MAC address, in lower case; None for the word ``tester``."""
    raw = value.text().lower()
    if raw == "tester":
        return None
    if not _MAC.fullmatch(raw):
        raise ConfigError(f"{raw[:80]!r} is not a MAC address", "write it as 68:05:ca:32:45:94")
    if int(raw[:2], 16) & 1 or raw == "00:00:00:00:00:00":
        raise ConfigError(f"{raw!r} is multicast or all zero", "write the MAC address of one port")
    return raw


def _parsed(parse: Callable[[str], T], what: str) -> Callable[[Value], T]:
    return takes(**ONE_VALUE, title=what)(lambda value: parse(value.text()))


speed, rate = _parsed(parse_speed, "a speed"), _parsed(parse_rate, "a rate")
seconds, share = _parsed(parse_duration, "a time"), _parsed(parse_share, "a share")


@takes(**ONE_VALUE, title="a clock rate")
def clock(value: Value) -> float:
    """Read a clock rate in Hz."""
    raw = value.text()
    match = _CLOCK.fullmatch(raw.lower())
    if not match or float(match["number"]) == 0:
        raise ConfigError(f"clock {raw[:80]!r} not understood", "write it as 2.2ghz or 800mhz")
    return float(match["number"]) * {"m": 1e6, "g": 1e9}[match["scale"]]


@takes(**ONE_VALUE, title="a rate in pps")
def pps(value: Value) -> float:
    limit = rate(value)
    if limit.unit != "pps":
        raise ConfigError(f"{limit} is not in frames per second", "write it as 200kpps")
    return limit.value


def warmup(half: int, parse: Callable[[str], T]) -> Callable[[Value], T]:
    """Reader of the first half of ``1kpps:10s`` (0), or the second (1)."""

    @takes(**ONE_VALUE, title="a rate and a time")
    def read(value: Value) -> T:
        halves = value.text().split(":", 1)
        if len(halves) < 2:
            raise ConfigError(f"{halves[0][:80]!r} is not a warm-up", "write rate and duration, as in 1kpps:10s")
        return parse(halves[half])

    return read
