"""Checks that a DUT's endpoints, their cables and the rest of its config agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..core.errors import ConfigError
from .agree import check_way, idle
from .endpoints import ROLES, EndpointConfig, EndpointsConfig
from .model import UNREACHED, DutConfig, LabConfig
from .pppoe import check_pppoe
from .readers import Address, Interface
from .yamltree import Value

REACHED = ("netns", "local", "ssh")
"""Transports by which Linux hosts are reached."""


def check_endpoints(root: Value, dut: DutConfig, found: EndpointsConfig) -> Iterator[ConfigError]:
    """Everything by which client and server could not test this DUT."""
    value = root.at("endpoints")
    yield from _check_hosts(value, dut, found)
    for role, one, other in found.roles:
        yield from _check_cable(value.at(role), one, other)
    for own in found.client.addresses:
        yield from _overlaps(value.at("server", "address"), own, found.server.addresses, "the client")
    yield from _check_sides(value, dut, found)
    yield from _check_bypass(value, found)
    if (lack := dut.no_tunnel(found.tunnel)) is not None:
        yield value.at("tunnel").wrong(*lack)
    yield from _check_pppoe(root, dut, found)
    if dut.lab is not None:
        yield from _check_lab(root, dut, dut.lab, found)


def _check_hosts(value: Value, dut: DutConfig, found: EndpointsConfig) -> Iterator[ConfigError]:
    """Each is reached, and none is the other or the DUT: between two addresses of one host nothing is sent."""
    taken = {} if dut.transport.type == UNREACHED else {dut.transport: "the DUT"}
    for role, one, _ in found.roles:
        here = value.at(role, "transport")
        if one.transport.type not in REACHED:
            ways = ", ".join(REACHED)
            yield here.at("type").wrong(f"an endpoint is reached by {ways}", f"write one of {ways}")
            continue
        yield from check_way(here, one.transport.type, "an endpoint of a lab" if dut.lab is not None else "")
        if dut.lab is None:
            key = replace(one.transport, user=None)
            if key in taken:
                remedy = "name another host or namespace: traffic between two addresses of one host never leaves it"
                yield here.wrong(f"the same host as {taken[key]}", remedy)
            taken.setdefault(key, f"the {role}")


def _check_cable(value: Value, one: EndpointConfig, other: EndpointConfig) -> Iterator[ConfigError]:
    """Require one address, and one next hop in its network, for each family that the other endpoint has."""
    versions = {own.version for own in one.addresses}
    for family in sorted({own.version for own in other.addresses} - versions):
        remedy = "give both one of each family that is tested"
        yield value.at("address").wrong(f"no IPv{family} address, but the other endpoint has one", remedy)
    yield from _one_of_family(value.at("address"), one.addresses)
    if (one.dut is None) == (not one.gateway):
        remedy = "name the router's interface and address as dut:, or its address alone as gateway:"
        yield value.wrong("both dut and gateway" if one.gateway else "no way to the router", remedy)
        return
    here = value.at("gateway") if one.dut is None else value.at("dut", "address")
    yield from _one_of_family(here, one.dut.addresses if one.dut is not None else one.gateway)
    hops = {hop.version: hop for hop in one.hops}
    for own in one.addresses:
        hop = hops.pop(own.version, None)
        if hop is None or hop not in own.network:
            said = f"no address in {own.network}" if hop is None else f"{hop} is not in {own.network}"
            yield here.wrong(said, f"write the router's address in {own.network}")
        elif hop == own.ip:
            yield here.wrong(f"{hop} is the endpoint's own address", f"write the router's address in {own.network}")
    for hop in hops.values():
        yield here.wrong(f"{hop}: the endpoint has no IPv{hop.version} address", "add one, or take this one out")


def _check_pppoe(root: Value, dut: DutConfig, found: EndpointsConfig) -> Iterator[ConfigError]:
    """Check the router's own PPPoE, and that of each variant."""
    versions = {own.version for own in found.server.addresses}, {hop.version for hop in found.server.hops}
    if found.pppoe is not None:
        yield from check_pppoe(root.at("endpoints", "pppoe"), versions)
    for name, variant in dut.variants:
        here = root.at("variants", name, "pppoe")
        if variant.pppoe and found.server.dut is None:
            yield here.wrong("the router's side of the server's cable is not known", "name it as endpoints.server.dut")
        elif variant.pppoe and found.pppoe is not None:
            yield here.wrong("the router dials in by itself (endpoints.pppoe)", "take one of the two out")
        elif variant.pppoe:
            yield from check_pppoe(here, versions)


def _one_of_family(value: Value, found: tuple[Interface | Address, ...]) -> Iterator[ConfigError]:
    if len({one.version for one in found}) < len(found):
        yield value.wrong("two addresses of one family", "write one IPv4 and one IPv6 address at most")


def _overlaps(value: Value, own: Interface, others: tuple[Interface, ...], whose: str) -> Iterator[ConfigError]:
    for other in others:
        if own.version == other.version and own.network.overlaps(other.network):
            yield value.wrong(f"{other.network} overlaps {own.network} of {whose}", "give each cable its own network")


def _check_sides(value: Value, dut: DutConfig, found: EndpointsConfig) -> Iterator[ConfigError]:
    """The DUT's side of a cable is in no network of another of its interfaces."""
    for role, one, _ in found.roles:
        for port in dut.ports if one.dut is not None else ():
            if one.dut is not None and port.interface != one.dut.interface:
                for own in port.addresses:
                    here = value.at(role, "dut", "address")
                    yield from _overlaps(here, own, one.dut.addresses, f"port {port.tester}")


def _check_bypass(value: Value, found: EndpointsConfig) -> Iterator[ConfigError]:
    """One cable: two ends, in one network that the test does not use."""
    client, server = found.client.bypass, found.server.bypass
    if client is None or server is None:
        for role, end in zip(ROLES, (client, server), strict=True):
            if end is not None:
                yield value.at(role, "bypass").wrong(
                    "only one end of a cable", "give both endpoints a bypass:, or none"
                )
        return
    here = value.at("server", "bypass", "address")
    ours, theirs = ({own.version: own for own in end.addresses} for end in (client, server))
    if {version: own.network for version, own in ours.items()} != {
        version: own.network for version, own in theirs.items()
    }:
        yield here.wrong("not the networks of the client's end", "give both ends addresses of the same networks")
    elif any(own == theirs[version] for version, own in ours.items()):
        yield here.wrong("the address of the client's end", "give each end its own")
    for role, one, _ in found.roles:
        if one.bypass is not None and one.bypass.interface == one.interface:
            what = f"{one.interface} is the interface towards the DUT"
            yield value.at(role, "bypass", "interface").wrong(what, "name the one of the other cable")
        for own in one.addresses:
            ends = client.addresses
            yield from _overlaps(value.at(role, "bypass", "address"), own, ends, f"the {role}'s cable to the DUT")


def _check_lab(root: Value, dut: DutConfig, lab: LabConfig, found: EndpointsConfig) -> Iterator[ConfigError]:
    value = root.at("endpoints")
    if lab.router == "bypass" or dut.driver == "vpp":
        yield value.wrong(
            f"lab.router: {lab.router} has no cables to endpoints", "take it out, or write router: kernel"
        )
    names = {cable.interface: f"port {cable.tester}" for cable in dut.cables}
    for role, one, _ in found.roles:
        if one.dut is None:
            yield from idle(value.at(role), ("gateway",), "an endpoint of a lab", "name the router's side as dut:")
        elif one.dut.interface in names:
            here = value.at(role, "dut", "interface")
            what = f"{one.dut.interface} is cabled to {names[one.dut.interface]} already"
            yield here.wrong(what, "give each cable of a lab an interface of its own")
        else:
            names[one.dut.interface] = f"the {role}"
    if lab.endpoints.line_bps is not None and lab.endpoints.offloads == "full":
        here = root.at("lab", "endpoints", "offloads")
        yield here.wrong("a line carries no frames of 64 KB", "write mtu or packet, or take line: out")
