"""Which interfaces a DUT has that could be cabled to a tester."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..config.settings import VppSettings
from .freebsd.parse import parse_interfaces as parse_ifconfig
from .linux.parse import parse_addresses, parse_channels, parse_links
from .vpp.parse_show import parse_hardware


@dataclass(frozen=True)
class ListedInterface:
    """An interface. in_use: it has an address, as the one has by which the DUT is reached. queues: it can have."""

    name: str
    in_use: bool = False
    queues: int | None = None


def _linux(text: str) -> list[ListedInterface]:
    """Interfaces of hardware, or of a virtual machine's: no loopback, bridge, tunnel or tag."""
    addresses = parse_addresses(text)
    links = ((name, one) for name, one in parse_links(text).items() if name != "lo" and one["mac"])
    return [ListedInterface(name, bool(addresses[name])) for name, one in links if one["kind"] is None]


def _linux_queues(text: str) -> int | None:
    most = parse_channels(text)["max"]
    return most.get("combined") or most.get("rx")


def _pfsense(text: str) -> list[ListedInterface]:
    return [ListedInterface(name, bool(one["addresses"])) for name, one in parse_ifconfig(text).items() if one["mac"]]


def _vpp(text: str) -> list[ListedInterface]:
    """Return the interfaces that VPP has taken over: they are there to forward, with or without an address."""
    devices = {name: one for name, one in parse_hardware(text).items() if not name.startswith(("local", "loop"))}
    return [ListedInterface(name, queues=one.max_queues) for name, one in devices.items() if one.mac]


@dataclass(frozen=True)
class Listing:
    """argv: lists interfaces; read: what it prints. queues: tells of one, named behind it, how many it can have."""

    argv: tuple[str, ...]
    read: Callable[[str], list[ListedInterface]]
    queues: tuple[tuple[str, ...], Callable[[str], int | None]] | None = None


LISTINGS: dict[str, Listing] = {
    "linux": Listing(("ip", "-json", "-details", "address", "show"), _linux, queues=(("ethtool", "-l"), _linux_queues)),
    "pfsense": Listing(("ifconfig", "-a"), _pfsense),
    "vpp": Listing(("vppctl", "-s", VppSettings().socket, "show", "hardware-interfaces"), _vpp),
}
"""Commands that list a DUT's interfaces, by driver."""
