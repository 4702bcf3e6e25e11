"""VPP's commands that change something."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address

from ...config.model import Port
from ..settings import Command, Wanted, resolver
from .parse_show import VppNeighbour

AF_PACKET = "host-"
"""VPP's name of an af_packet interface is this and the name of the Linux interface."""
NATIVE = re.compile(r"(virtio|vmxnet3)-([0-9a-f]{1,4})/([0-9a-f]{1,2})/([0-9a-f]{1,2})/([0-7])")
"""VPP's name of an interface of its own drivers: the driver, and the PCI device's domain, bus, slot and function."""
APPEARS_S = 20.0
"""Time for which interfaces may be missing after VPP's start."""
_CONFLICT = "conflicts with {address} for interface {name}"
_TABLE: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "no VLAN": ("delete sub-interface {name}", "as it was", ("unknown interface",)),
    "MAC": ("set interface mac address {name} {mac}", "the tester sends to the Linux interface's", ()),
    "polling": ("set interface rx-mode {name} polling", "as it was", ()),
    # the line end keeps host-d0 from matching host-d01; vppctl ends its lines with CRLF
    "address": ("set interface ip address {name} {address}", "its address", (f"{_CONFLICT}\r\n", f"{_CONFLICT}\n")),
    "no address": (
        "set interface ip address del {name} {address}",
        "its address no longer",
        ("not found for interface",),
    ),
    "no neighbour": ("set ip neighbor del {name} {address} {mac}", "no longer pinned", ("specify interface",)),
    "route": ("ip route add {prefix} via {hop}", "where the test traffic goes", ()),
    "no route": ("ip route del {prefix}", "with all its paths", ()),
    "placement": ("set interface rx-placement {name} queue {queue} {thread}", "who serves this queue", ()),
}
"""Words of each command, why it is run, and what it prints where nothing is left to do."""


def linux_file(interface: str, name: str) -> str:
    """File of the Linux interface that an af_packet interface is on."""
    return f"/sys/class/net/{interface.removeprefix(AF_PACKET)}/{name}"


def pci_device(native: re.Match[str]) -> str:
    """Linux's name of the device in a match of NATIVE."""
    domain, bus, slot, function = (int(digits, 16) for digits in native.groups()[1:])
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"


def cli(
    wanted: Wanted, words: str, why: str, says: str = "", fine_if: tuple[str, ...] = (), retry_s: float = 0.0
) -> Command:
    """Build a vppctl command. It exits 0 whatever happens: a change that prints anything else than ``says`` failed."""
    argv = ("vppctl", "-s", wanted.config.vpp.socket, *words.split())
    return Command(argv, why, fine_if=fine_if, says=says, retry_s=retry_s)


def command(wanted: Wanted, key: str, why: str = "", **values: object) -> Command:
    """Build a command of the table with these values. why: in place of the table's."""
    words, usual, fine_if = _TABLE[key]
    return cli(wanted, words.format(**values), why or usual, fine_if=tuple(text.format(**values) for text in fine_if))


def create(wanted: Wanted, name: str, queues: int, mac: str | None) -> Command:
    """Create an interface. mac: the Linux interface's, which the tester sends to; without it af_packet makes one up."""
    if (native := NATIVE.fullmatch(name)) is not None:
        kind = native[1]
        # a virtio NIC is used with all queues that it has
        more = "rss-enabled" if kind == "virtio" else f"num-rx-queues {queues}"
        words = f"create interface {kind} {pci_device(native)} {more}"
        says = name if kind == "vmxnet3" else ""
        return cli(wanted, words, "on the PCI device", says, ("address in use",))
    address = f" hw-addr {mac}" if mac else ""
    words = f"create host-interface name {name[len(AF_PACKET) :]} num-rx-queues {queues}{address}"
    # a start-up script may have created it; VPP spells it "elready"
    return cli(wanted, words, "on the Linux interface", name, ("ready exists",))


def delete(wanted: Wanted, name: str) -> Command:
    native = NATIVE.fullmatch(name)
    words = f"delete interface {native[1]} {name}" if native else f"delete host-interface name {name[len(AF_PACKET) :]}"
    return cli(wanted, words, "it is created again")


def create_vlan(wanted: Wanted, port: Port) -> Command:
    """Create a sub-interface for exactly the port's tags; its number is the last part of its name."""
    routed = wanted.routed(port)
    # The kernel takes the outer tag off; af_packet puts it back as 802.1Q, whatever it was (seen with 26.06).
    af_packet = wanted.config.vpp.interfaces == "af_packet"
    kind = "dot1q" if len(port.vlan) == 1 or af_packet else "dot1ad"
    tags = " inner-dot1q ".join(map(str, port.vlan))
    words = f"create sub-interfaces {port.interface} {routed.rpartition('.')[2]} {kind} {tags} exact-match"
    return cli(wanted, words, "the port's VLAN", routed)


def state(wanted: Wanted, name: str, word: str, after_start: bool = False) -> Command:
    retry_s = APPEARS_S if after_start else 0.0
    return cli(wanted, f"set interface state {name} {word}", "VPP creates interfaces down", retry_s=retry_s)


def pin(wanted: Wanted, name: str, address: str, neighbour: VppNeighbour) -> Command:
    words = f"set ip neighbor {name} {address} {neighbour.mac} {'static' if neighbour.static else ''}"
    return cli(wanted, words, f"the tester answers no {resolver(ip_address(address))}")


def place(wanted: Wanted, name: str, queue: int, worker: str) -> Command:
    thread = "main" if worker == "vpp_main" else f"worker {worker.rpartition('_')[2]}"
    return command(wanted, "placement", name=name, queue=queue, thread=thread)
