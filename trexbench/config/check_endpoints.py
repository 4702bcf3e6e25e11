"""Checks of a DUT config beyond single values: keys that belong together, addresses that fit, and the endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from ..core.errors import ConfigError
from .endpoints import EndpointConfig, EndpointsConfig
from .lab import LabConfig
from .model import UNREACHED, DutConfig
from .readers import Address, Interface, is_host
from .yamltree import Value

REACHED = ("netns", "local", "ssh")
"""Transports to Linux hosts."""
IN_LAB, IN_VM = ("netns",), ("console", "ssh")
"""Transports to hosts of a lab, and to a virtual machine there."""
_OF_CLI = ("platform", "password_env", "password_file", "key_file", "refusal")
_TRANSPORT_KEYS = {
    "netns": ("namespace",),
    "local": (),
    "ssh": ("host", "user", "port"),
    "cli": ("host", "user", "port", *_OF_CLI),
    "console": ("namespace",),
}
_REQUIRED_KEYS = {"netns": ("namespace",), "local": (), "ssh": ("host",), "cli": ("host", "platform"), "console": ()}


def idle(
    value: Value, keys: Iterable[str], owner: str, remedy: str = "remove it, or change the type"
) -> Iterator[ConfigError]:
    """Yield an error for each of these keys, which have no effect on the owner."""
    for key in keys:
        if value.has(key):
            yield value.at(key).wrong(f"has no effect on {owner}", remedy)


def check_keys(
    value: Value, kind: str, keys_of: Mapping[str, Sequence[str]], owner: str, needed: Sequence[str]
) -> Iterator[ConfigError]:
    """Yield errors for keys of other kinds than this, and for missing keys."""
    others = dict.fromkeys(key for keys in keys_of.values() for key in keys if key not in keys_of[kind])
    yield from idle(value, others, owner)
    missing = [key for key in needed if not value.has(key)]
    if missing:
        yield value.missing(missing, owner)


def check_form(commands: Iterable[Value], way: str, example: str) -> Iterator[ConfigError]:
    """Require commands in the form that this transport takes: lines at a prompt, else words, as in the example."""
    for command in commands:
        is_line = isinstance(command.raw, str)
        if is_line and way != "cli":
            yield command.wrong(f"a line, which transport {way} does not take", f"write its words, as in {example}")
        if not is_line and way == "cli":
            yield command.wrong("a list of words, where transport cli takes lines", "write it as it would be typed")


def check_way(value: Value, kind: str, owner: str, ways: Sequence[str], in_lab: bool = False) -> Iterator[ConfigError]:
    """Yield errors of a transport of this kind to ``owner``, which can be reached in these ways."""
    owner = f"{owner} of a lab" if in_lab else owner
    if kind not in ways:
        what = f"{owner} is reached by {', '.join(ways)}, not {kind}"
        yield value.at("type").wrong(what, f"write type: {' or '.join(ways)}")
    yield from check_keys(value, kind, _TRANSPORT_KEYS, f"a {kind} transport", () if in_lab else _REQUIRED_KEYS[kind])
    if value.has("password_env") and value.has("password_file"):
        yield value.at("password_file").wrong("two places for one password", "remove one of them")
    if in_lab and value.has("namespace"):
        yield value.at("namespace").wrong("a lab names its own namespace", "remove it; lab.prefix decides the name")


def check_hops(here: Value, own: Sequence[Interface], hops: Sequence[Address], whose: str) -> Iterator[ConfigError]:
    """Require one hop in the network of each of the interface's addresses. here: node that lists the hops."""
    of_version = {each.version: each for each in own}
    for hop in hops:
        base = of_version.pop(hop.version, None)
        if base is None or hop not in base.network:
            networks = " or ".join(str(each.network) for each in own)
            yield here.wrong(f"{hop} is not in {networks}", f"pick an address of {networks}")
        elif hop == base.ip:
            yield here.wrong(f"{hop} is {whose} own address", f"pick another of {base.network}")
        elif not is_host(hop, base.network):
            yield here.wrong(f"{hop} is not a host's address", f"pick one between the ends of {base.network}")
    for base in of_version.values():
        yield here.wrong(f"no address in {base.network}", f"add one: the other end's, in {base.network}")


def check_apart(
    here: Value, own: Sequence[Interface], others: Sequence[Interface], whose: str
) -> Iterator[ConfigError]:
    """Yield an error for each of ``own`` networks, listed here, that overlaps one of the others."""
    for each, other in product(own, others):
        if each.version == other.version and each.network.overlaps(other.network):
            what = f"{each.network} overlaps {other.network} of {whose}"
            yield here.wrong(what, "give each cable a network of its own")


def check_families(
    items: Sequence[Value], addresses: Sequence[Sequence[Interface]], others: str
) -> Iterator[ConfigError]:
    """Yield an error for each item without an address of a family that another item has."""
    versions = [{each.version for each in own} for own in addresses]
    for item, there in zip(items, versions, strict=True):
        for family in sorted(set().union(*versions) - there):
            yield item.at("address").wrong(f"no IPv{family} address, but {others} one", "give each one, or none")


def check_endpoints(root: Value, dut: DutConfig, endpoints: EndpointsConfig) -> Iterator[ConfigError]:
    """Yield everything that would prevent client and server from testing this DUT."""
    value, client, server = root.at("endpoints"), endpoints.client, endpoints.server
    yield from _check_hosts(value, dut, endpoints)
    for role, endpoint, _ in endpoints.roles:
        yield from _check_cable(value.at(role), endpoint)
        for port in dut.ports if endpoint.dut is not None else ():
            if endpoint.dut is not None and port.interface != endpoint.dut.interface:
                here = value.at(role, "dut", "address")
                yield from check_apart(here, endpoint.dut.addresses, port.addresses, f"port {port.tester}")
    ends = [value.at("client"), value.at("server")]
    yield from check_families(ends, [client.addresses, server.addresses], "the other endpoint has")
    yield from check_apart(value.at("server", "address"), server.addresses, client.addresses, "the client")
    yield from _check_bypass(value, endpoints)
    if (lack := dut.no_tunnel(endpoints.tunnel)) is not None:
        yield value.at("tunnel").wrong(*lack)
    yield from _check_pppoe(root, dut, endpoints)
    if dut.lab is not None:
        yield from _check_lab(root, dut, dut.lab, endpoints)


def _check_hosts(value: Value, dut: DutConfig, endpoints: EndpointsConfig) -> Iterator[ConfigError]:
    """Require three different hosts: between two addresses of one host nothing is sent."""
    taken = {} if dut.transport.type == UNREACHED else {dut.transport: "the DUT"}
    in_lab = dut.lab is not None
    for role, endpoint, _ in endpoints.roles:
        here, key = value.at(role, "transport"), replace(endpoint.transport, user=None)
        yield from check_way(here, endpoint.transport.type, "an endpoint", IN_LAB if in_lab else REACHED, in_lab)
        if not in_lab and key in taken:
            remedy = "name another host or namespace: traffic between two addresses of one host never leaves it"
            yield here.wrong(f"the same host as {taken[key]}", remedy)
        taken.setdefault(key, f"the {role}")


def _check_cable(value: Value, endpoint: EndpointConfig) -> Iterator[ConfigError]:
    """Require one next hop in the network of each of the endpoint's addresses."""
    if (endpoint.dut is None) == (not endpoint.gateway):
        remedy = "name the router's interface and address as dut:, or its address alone as gateway:"
        yield value.wrong("both dut and gateway" if endpoint.gateway else "neither dut nor gateway", remedy)
    else:
        here = value.at("gateway") if endpoint.dut is None else value.at("dut", "address")
        yield from check_hops(here, endpoint.addresses, endpoint.hops, "the endpoint's")


def _check_pppoe(root: Value, dut: DutConfig, endpoints: EndpointsConfig) -> Iterator[ConfigError]:
    """Check the router's own PPPoE, and that of each variant; the session gives out the server's addresses."""
    dialled = [root.at("variants", name, "pppoe") for name, variant in dut.variants if variant.pppoe]
    for here in dialled:
        if endpoints.server.dut is None:
            yield here.wrong("the router's side of the server's cable is not known", "name it as endpoints.server.dut")
        elif endpoints.pppoe is not None:
            yield here.wrong("the router dials in by itself (endpoints.pppoe)", "remove one of the two")
        elif dut.transport.type == "console":
            what = "pppd would have to run on a virtual machine, whose console cannot keep a program running"
            yield here.wrong(what, "remove it, or write transport: {type: ssh}")
    dialled += [root.at("endpoints", "pppoe")] if endpoints.pppoe is not None else []
    for whose, addresses in (("server", endpoints.server.addresses), ("router", endpoints.server.hops)):
        for here in dialled if 4 not in {each.version for each in addresses} else ():
            what = f"PPPoE gives the {whose} an IPv4 address, and there is none"
            yield here.wrong(what, "write one for both ends")


def _check_bypass(value: Value, endpoints: EndpointsConfig) -> Iterator[ConfigError]:
    """Require no bypass, or a cable with two ends in one network that the test does not use."""
    ends = {role: endpoint.bypass for role, endpoint, _ in endpoints.roles if endpoint.bypass is not None}
    if len(ends) == 1:
        yield value.at(*ends, "bypass").wrong("only one end of a cable", "give both endpoints a bypass:, or none")
    if len(ends) < 2:
        return
    here, hops = value.at("server", "bypass", "address"), [each.ip for each in ends["server"].addresses]
    yield from check_hops(here, ends["client"].addresses, hops, "the client's")
    for ours, theirs in product(ends["client"].addresses, ends["server"].addresses):
        if theirs.ip in ours.network and theirs.network != ours.network:
            yield here.wrong(f"{theirs.network} is not {ours.network}, the client's network", "write the same one")
    for role, endpoint, _ in endpoints.roles:
        if ends[role].interface == endpoint.interface:
            what = f"{endpoint.interface} is the interface towards the DUT"
            yield value.at(role, "bypass", "interface").wrong(what, "name the interface of the other cable")
        here, whose = value.at(role, "bypass", "address"), f"the {role}'s cable to the DUT"
        yield from check_apart(here, ends[role].addresses, endpoint.addresses, whose)


def _check_lab(root: Value, dut: DutConfig, lab: LabConfig, endpoints: EndpointsConfig) -> Iterator[ConfigError]:
    value = root.at("endpoints")
    if dut.in_vm and dut.driver != "linux":
        what = f"driver {dut.driver} cannot configure interfaces to endpoints in a virtual machine"
        yield value.wrong(what, "remove it, or write driver: linux")
    elif lab.router == "bypass" or dut.driver == "vpp":
        what = f"lab.router: {lab.router} has no cables to endpoints"
        yield value.wrong(what, "remove it, or write router: kernel")
    names = {cable.interface: f"port {cable.tester}" for cable in dut.cables}
    for role, endpoint, _ in endpoints.roles:
        if endpoint.dut is None:
            yield from idle(value.at(role), ("gateway",), "an endpoint of a lab", "name the router's side as dut:")
        elif (name := endpoint.dut.interface) in names:
            what = f"{name} is cabled to {names[name]} already"
            yield value.at(role, "dut", "interface").wrong(what, "give each cable of a lab an interface of its own")
        else:
            names[name] = f"the {role}"
    if lab.endpoints.line_bps is not None and lab.endpoints.offloads == "full":
        here = root.at("lab", "endpoints", "offloads")
        yield here.wrong("a line carries no frames of 64 KB", "write mtu or packet, or remove line:")
