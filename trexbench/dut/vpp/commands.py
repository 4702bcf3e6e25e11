"""The commands of VPP's command line that change something."""

from __future__ import annotations

import re
from ipaddress import ip_address

from ...config.model import Port
from ..model import Command, Wanted, resolver
from .parse_show import VppNeighbour

AF_PACKET = "host-"
"""VPP's name of an af_packet interface is this and the name of the Linux interface."""
NATIVE = re.compile(r"(virtio|vmxnet3)-([0-9a-f]{1,4})/([0-9a-f]{1,2})/([0-9a-f]{1,2})/([0-7])")
"""VPP's name of an interface of its own drivers: the driver, and the PCI device's domain, bus, slot and function."""
APPEARS_S = 20.0
"""Time for which interfaces may be missing after VPP's start."""


def linux_file(interface: str, name: str) -> str:
    """A file of the Linux interface that an af_packet interface is on."""
    return f"/sys/class/net/{interface.removeprefix(AF_PACKET)}/{name}"


def cli(
    wanted: Wanted, why: str, *words: str, says: str = "", fine_if: tuple[str, ...] = (), retry_s: float = 0.0
) -> Command:
    """vppctl exits 0 whatever happens: a change that prints anything was refused."""
    argv = ("vppctl", "-s", wanted.config.vpp.socket, *words)
    return Command(argv, why, fine_if=fine_if, says=says, retry_s=retry_s)


def create(wanted: Wanted, name: str, queues: int, mac: str | None) -> tuple[Command, ...]:
    """On af_packet with the MAC of the Linux interface, which the tester sends to: VPP would make one up."""
    if (native := NATIVE.fullmatch(name)) is not None:
        kind, *numbers = native.groups()
        domain, bus, slot, function = (int(one, 16) for one in numbers)
        # a virtio NIC is used with all queues that it has
        more = ("rss-enabled",) if kind == "virtio" else ("num-rx-queues", str(queues))
        words = ("create", "interface", kind, f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}", *more)
        return (
            cli(
                wanted, "on the PCI device", *words, says=name if kind == "vmxnet3" else "", fine_if=("address in use",)
            ),
        )
    words = ("create", "host-interface", "name", name[len(AF_PACKET) :], "num-rx-queues", str(queues))
    address = ("hw-addr", mac) if mac else ()
    # a start-up script may have created it; VPP spells it "elready"
    return (cli(wanted, "on the Linux interface", *words, *address, says=name, fine_if=("ready exists",)),)


def delete(wanted: Wanted, name: str) -> Command:
    native = NATIVE.fullmatch(name)
    words = ("interface", native[1], name) if native else ("host-interface", "name", name[len(AF_PACKET) :])
    return cli(wanted, "it is created again", "delete", *words)


def create_vlan(wanted: Wanted, port: Port) -> Command:
    """A sub-interface of exactly these tags; its number is the last part of its name."""
    routed = wanted.routed(port)
    number = routed.rpartition(".")[2]
    # The kernel takes the outer tag off; af_packet puts it back as 802.1Q, whatever it was (seen with 26.06).
    af_packet = wanted.config.vpp.interfaces == "af_packet"
    kind = "dot1q" if len(port.vlan) == 1 or af_packet else "dot1ad"
    inner = ("inner-dot1q", str(port.vlan[1])) if len(port.vlan) == 2 else ()
    words = ("create", "sub-interfaces", port.interface, number, kind, str(port.vlan[0]), *inner, "exact-match")
    return cli(wanted, "the port's VLAN", *words, says=routed)


def delete_vlan(wanted: Wanted, name: str) -> Command:
    return cli(wanted, "as it was", "delete", "sub-interface", name, fine_if=("unknown interface",))


def state(wanted: Wanted, name: str, word: str, after_start: bool = False) -> Command:
    words = ("set", "interface", "state", name, word)
    return cli(wanted, "VPP creates interfaces down", *words, retry_s=APPEARS_S if after_start else 0.0)


def set_mac(wanted: Wanted, name: str, mac: str) -> Command:
    return cli(wanted, "the tester sends to the Linux interface's", "set", "interface", "mac", "address", name, mac)


def add_address(wanted: Wanted, name: str, address: str) -> Command:
    words = ("set", "interface", "ip", "address", name, address)
    # the line end keeps host-d0 from matching host-d01; vppctl ends its lines with CRLF
    there = f"conflicts with {address} for interface {name}"
    return cli(wanted, "its address", *words, fine_if=(f"{there}\r\n", f"{there}\n"))


def del_address(wanted: Wanted, name: str, address: str) -> Command:
    words = ("set", "interface", "ip", "address", "del", name, address)
    return cli(wanted, "its address no longer", *words, fine_if=("not found for interface",))


def pin(wanted: Wanted, name: str, address: str, neighbour: VppNeighbour) -> Command:
    kind = ("static",) if neighbour.static else ()
    why = f"the tester answers no {resolver(ip_address(address))}"
    return cli(wanted, why, "set", "ip", "neighbor", name, address, neighbour.mac, *kind)


def add_path(wanted: Wanted, prefix: str, hop: str) -> Command:
    return cli(wanted, "where the test traffic goes", "ip", "route", "add", prefix, "via", *hop.split())


def place(wanted: Wanted, name: str, queue: int, worker: str) -> Command:
    where = ("main",) if worker == "vpp_main" else ("worker", worker.rpartition("_")[2])
    words = ("set", "interface", "rx-placement", name, "queue", str(queue), *where)
    return cli(wanted, "who serves this queue", *words)
