"""``wan:`` of a DUT, a variant or a suite: ``20ms,1gbit``, or its parts by name; and a host that makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..core.errors import ConfigError
from ..core.tcp.wan import Wan, parse_wan
from . import readers as r
from .readers import section
from .transport import TransportConfig
from .yamltree import Value

KEYS = ("delay", "rate", "queue", "loss", "jitter")


def wan(value: Value) -> Wan:
    """Read a WAN as ``--wan`` does, or from ``{delay: 20ms, rate: 1gbit}``."""
    if not isinstance(value.raw, dict):
        return parse_wan(value.text())
    nodes = value.mapping("a WAN", KEYS)
    return parse_wan(",".join(f"{key}={node.text()}" for key, node in nodes.items()))


def _two(value: Value) -> tuple[str, ...]:
    items = value.items("interface")
    found = r.each_of(items, r.interface)
    if len(set(found)) != 2 or len(found) != 2:
        raise ConfigError("a WAN host stands between two cables", "name both interfaces, as in [eth0, eth1]")
    return found


@dataclass(frozen=True)
class WanHost:
    """A Linux host in the path that makes the WAN in the DUT's place: a bridge, set up by hand.

    interfaces: the two that the path goes through, each of which delays what leaves by it.
    """

    transport: Annotated[TransportConfig, section(TransportConfig, "a transport")]
    interfaces: Annotated[tuple[str, ...], _two]
