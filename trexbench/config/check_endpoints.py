"""Checks that a DUT's endpoints, their cables and the rest of its config agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from ..core.errors import ConfigError
from .agree import IN_LAB, REACHED, check_apart, check_families, check_hops, check_way, idle
from .endpoints import EndpointConfig, EndpointsConfig
from .model import UNREACHED, DutConfig, LabConfig
from .yamltree import Value


def check_endpoints(root: Value, dut: DutConfig, found: EndpointsConfig) -> Iterator[ConfigError]:
    """Everything by which client and server could not test this DUT."""
    value, client, server = root.at("endpoints"), found.client, found.server
    yield from _check_hosts(value, dut, found)
    for role, endpoint, _ in found.roles:
        yield from _check_cable(value.at(role), endpoint)
        for port in dut.ports if endpoint.dut is not None else ():
            if endpoint.dut is not None and port.interface != endpoint.dut.interface:
                here = value.at(role, "dut", "address")
                yield from check_apart(here, endpoint.dut.addresses, port.addresses, f"port {port.tester}")
    ends = [value.at("client"), value.at("server")]
    yield from check_families(ends, [client.addresses, server.addresses], "the other endpoint has")
    yield from check_apart(value.at("server", "address"), server.addresses, client.addresses, "the client")
    yield from _check_bypass(value, found)
    if (lack := dut.no_tunnel(found.tunnel)) is not None:
        yield value.at("tunnel").wrong(*lack)
    yield from _check_pppoe(root, dut, found)
    if dut.lab is not None:
        yield from _check_lab(root, dut, dut.lab, found)


def _check_hosts(value: Value, dut: DutConfig, found: EndpointsConfig) -> Iterator[ConfigError]:
    """Each is reached, and none is the other or the DUT: between two addresses of one host nothing is sent."""
    taken = {} if dut.transport.type == UNREACHED else {dut.transport: "the DUT"}
    for role, endpoint, _ in found.roles:
        here, key = value.at(role, "transport"), replace(endpoint.transport, user=None)
        yield from check_way(
            here,
            endpoint.transport.type,
            "an endpoint",
            IN_LAB if dut.lab is not None else REACHED,
            dut.lab is not None,
        )
        if dut.lab is None and key in taken:
            remedy = "name another host or namespace: traffic between two addresses of one host never leaves it"
            yield here.wrong(f"the same host as {taken[key]}", remedy)
        taken.setdefault(key, f"the {role}")


def _check_cable(value: Value, endpoint: EndpointConfig) -> Iterator[ConfigError]:
    """Require one next hop, in the network of each of the endpoint's addresses."""
    if (endpoint.dut is None) == (not endpoint.gateway):
        remedy = "name the router's interface and address as dut:, or its address alone as gateway:"
        yield value.wrong("both dut and gateway" if endpoint.gateway else "no way to the router", remedy)
    else:
        here = value.at("gateway") if endpoint.dut is None else value.at("dut", "address")
        yield from check_hops(here, endpoint.addresses, endpoint.hops, "the endpoint's")


def _check_pppoe(root: Value, dut: DutConfig, found: EndpointsConfig) -> Iterator[ConfigError]:
    """Check the router's own PPPoE, and that of each variant; the session gives out the server's addresses."""
    dialled = [root.at("variants", name, "pppoe") for name, variant in dut.variants if variant.pppoe]
    for here in dialled:
        if found.server.dut is None:
            yield here.wrong("the router's side of the server's cable is not known", "name it as endpoints.server.dut")
        elif found.pppoe is not None:
            yield here.wrong("the router dials in by itself (endpoints.pppoe)", "take one of the two out")
    dialled += [root.at("endpoints", "pppoe")] if found.pppoe is not None else []
    for whose, addresses in (("server", found.server.addresses), ("router", found.server.hops)):
        for here in dialled if 4 not in {each.version for each in addresses} else ():
            what = f"PPPoE gives the {whose} an IPv4 address, and there is none"
            yield here.wrong(what, "write one for both ends")


def _check_bypass(value: Value, found: EndpointsConfig) -> Iterator[ConfigError]:
    """One cable: two ends, in one network that the test does not use."""
    ends = {role: endpoint.bypass for role, endpoint, _ in found.roles if endpoint.bypass is not None}
    if len(ends) == 1:
        yield value.at(*ends, "bypass").wrong("only one end of a cable", "give both endpoints a bypass:, or none")
    if len(ends) < 2:
        return
    here, hops = value.at("server", "bypass", "address"), [each.ip for each in ends["server"].addresses]
    yield from check_hops(here, ends["client"].addresses, hops, "the client's")
    for ours, theirs in product(ends["client"].addresses, ends["server"].addresses):
        if theirs.ip in ours.network and theirs.network != ours.network:
            yield here.wrong(f"{theirs.network} is not {ours.network}, the client's network", "write the same one")
    for role, endpoint, _ in found.roles:
        if ends[role].interface == endpoint.interface:
            what = f"{endpoint.interface} is the interface towards the DUT"
            yield value.at(role, "bypass", "interface").wrong(what, "name the one of the other cable")
        here, whose = value.at(role, "bypass", "address"), f"the {role}'s cable to the DUT"
        yield from check_apart(here, ends[role].addresses, endpoint.addresses, whose)


def _check_lab(root: Value, dut: DutConfig, lab: LabConfig, found: EndpointsConfig) -> Iterator[ConfigError]:
    value = root.at("endpoints")
    if lab.router in ("bypass", "vm") or dut.driver == "vpp":
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
