"""Which interfaces a DUT has that could be cabled to a tester."""

from __future__ import annotations

from collections.abc import Callable

from ..config.settings import VppSettings
from .freebsd.parse import parse_interfaces as parse_ifconfig
from .linux.parse import parse_links
from .vpp.parse_show import parse_interfaces as parse_vpp


def _linux(text: str) -> list[str]:
    """Interfaces of hardware, or of a virtual machine's: no loopback, bridge, tunnel or tag."""
    return [name for name, one in parse_links(text).items() if name != "lo" and one["mac"] and one["kind"] is None]


def _pfsense(text: str) -> list[str]:
    return [name for name, one in parse_ifconfig(text).items() if one["mac"]]


def _vpp(text: str) -> list[str]:
    return [name for name in parse_vpp(text) if not name.startswith(("local", "loop"))]


LISTINGS: dict[str, tuple[tuple[str, ...], Callable[[str], list[str]]]] = {
    "linux": (("ip", "-json", "-details", "link", "show"), _linux),
    "pfsense": (("ifconfig", "-a"), _pfsense),
    "vpp": (("vppctl", "-s", VppSettings().socket, "show", "interface"), _vpp),
}
"""What lists a DUT's interfaces, by driver, and how that is read."""
