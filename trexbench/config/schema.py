"""A DUT config as a whole: model.py says how each section is read; here is checked what must agree between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path

from .model import DRIVERS, DutConfig, LabConfig, Port, Route
from .readers import require_different, section
from .settings import POWER_READERS, VppSettings
from .yamltree import Value, parse, read_text

_TRANSPORT_KEYS = {"netns": ("namespace",), "local": (), "ssh": ("host", "user", "port")}


def read_dut(path: Path) -> DutConfig:
    """The DUT in this file; ConfigError naming file, line, key and remedy."""
    text = read_text(path, "DUT config")
    root = parse(path, text)
    dut = section(DutConfig, "a DUT config", name=path.stem, file=path, text=text)(root)
    others = [driver for driver in DRIVERS if driver != dut.driver]
    _refuse(root, others, f"driver {dut.driver}", "take it out, or change the driver")
    _check_ports(root.at("ports"), dut.ports)
    if dut.routes:
        _check_routes(root.at("routes").items("route"), dut.routes, dut.ports)
    if dut.power is not None:
        _check_keys(root.at("power"), dut.power.type, POWER_READERS, f"a meter of type {dut.power.type}")
    for port, _, _ in dut.vpp.rx_placement:
        if port not in dut.tester_ports:
            place = root.at("vpp", "rx_placement")
            raise place.wrong(f"port {port} is not under ports", "name one of ports[].tester")
    if dut.lab is not None:
        _check_lab(root, dut, dut.lab)
    transport, kind = root.at("transport"), dut.transport.type
    _check_keys(transport, kind, _TRANSPORT_KEYS, f"a {kind} transport", dut.lab is not None)
    if dut.lab is None:
        return dut
    _check_lab_transport(transport, kind)
    return dut.with_lab_prefix(dut.lab.prefix)


def _refuse(value: Value, keys: Iterable[str], owner: str, remedy: str = "take it out, or change the type") -> None:
    """ConfigError for any of these keys, which have no effect there."""
    for key in keys:
        if value.has(key):
            raise value.at(key).wrong(f"has no effect on {owner}", remedy)


def _check_keys(value: Value, kind: str, keys_of: Mapping[str, Sequence[str]], owner: str, lab: bool = False) -> None:
    """ConfigError for keys of other kinds, and where the first of its own is missing, which a lab need not have."""
    _refuse(value, [key for keys in keys_of.values() for key in keys if key not in keys_of[kind]], owner)
    needed = keys_of[kind][:1]
    if needed and not lab and not value.has(needed[0]):
        raise value.missing(needed, owner)


def _check_lab_transport(value: Value, kind: str) -> None:
    if kind != "netns":
        raise value.at("type").wrong(f"a DUT with a lab: section is reached by netns, not {kind}", "write type: netns")
    if value.has("namespace"):
        raise value.at("namespace").wrong("a lab names its own namespace", "take it out; lab.prefix decides the name")


def _check_ports(value: Value, ports: Sequence[Port]) -> None:
    items = value.items("port")
    if len(ports) < 2 or len(ports) % 2:
        raise value.wrong(f"{len(ports)} port(s) make no pairs", "list an even number; neighbours in the list pair up")
    for item, port in zip(items, ports, strict=True):
        _check_ends(item, port)
    require_different(items, [str(port.tester) for port in ports], "the tester's port", "tester")
    require_different(items, [port.interface for port in ports], "the interface", "interface")
    for index, port in enumerate(ports):
        for before in ports[:index]:
            for own, other in product(port.addresses, before.addresses):
                if own.version == other.version and own.network.overlaps(other.network):
                    overlap = f"{own} overlaps {other} of {before.interface}"
                    raise items[index].at("address").wrong(overlap, "give every port its own network")
    for item, port in zip(items, ports, strict=True):
        if len(port.vlan) != len(ports[0].vlan):
            what = f"{len(port.vlan)} VLAN tags, {ports[0].interface} has {len(ports[0].vlan)}"
            raise item.wrong(what, "give all ports as many: frames that change their length have no one line rate")
    versions = {own.version for port in ports for own in port.addresses}
    for item, port in zip(items, ports, strict=True):
        if missing := versions - {own.version for own in port.addresses}:
            what = f"no IPv{missing.pop()} address, but other ports have one"
            raise item.at("address").wrong(what, "give every port one, or none")


def _check_ends(item: Value, port: Port) -> None:
    """ConfigError unless each of the port's addresses has one neighbour in its network."""
    for kind, found in (("address", port.addresses), ("neighbour", port.neighbour.addresses)):
        if len({one.version for one in found}) < len(found):
            raise item.at(kind).wrong("two addresses of one family", "write one IPv4 and one IPv6 address at most")
    of_version = {own.version: own for own in port.addresses}
    for other in port.neighbour.addresses:
        own = of_version.pop(other.version, None)
        if own is None or other not in own.network:
            networks = " or ".join(str(one.network) for one in port.addresses)
            raise item.at("neighbour").wrong(f"{other} is not in {networks}", f"pick an address of {networks}")
        if other == own.ip:
            raise item.at("neighbour").wrong(f"{other} is the DUT's own address", f"pick another of {own.network}")
    for own in of_version.values():
        raise item.at("neighbour").wrong(f"no address in {own.network}", f"add one: the tester's, in {own.network}")


def _check_routes(items: Sequence[Value], routes: Sequence[Route], ports: Sequence[Port]) -> None:
    neighbours = [other for port in ports for other in port.neighbour.addresses]
    for item, route in zip(items, routes, strict=True):
        if route.via not in neighbours:
            remedy = f"route via one of {', '.join(map(str, neighbours))}"
            raise item.at("via").wrong(f"{route.via} is not a port's neighbour", remedy)
        if route.via.version != route.to.version:
            what = f"an IPv{route.to.version} network via an IPv{route.via.version} address"
            raise item.at("via").wrong(what, "name a neighbour of the network's family")
        if route.to.prefixlen == 0:
            raise item.at("to").wrong("a default route", "name the networks that the test traffic goes to")
    require_different(items, [str(route.to) for route in routes], "the network", "to")


def _check_lab(root: Value, dut: DutConfig, lab: LabConfig) -> None:
    if lab.threaded and not lab.gro:
        raise root.at("lab", "threaded").wrong("threaded NAPI on veth needs GRO", "write gro: true too")
    if (lab.router == "vpp") != (dut.driver == "vpp"):
        router = "vpp" if dut.driver == "vpp" else "kernel"
        raise root.at("lab").wrong(f"lab.router: {lab.router} with driver: {dut.driver}", f"write lab.router: {router}")
    if lab.router == "kernel":
        return
    base = VppSettings()
    for key in ("socket", "startup_conf", "restart", "workers"):
        if getattr(dut.vpp, key) != getattr(base, key):
            raise root.at("vpp", key).wrong("the lab itself sets this for its VPP", "take it out; see lab.router_cpus")
    if dut.vpp.interfaces != "af_packet":
        raise root.at("vpp").wrong("a lab's interfaces are veth pairs", "write vpp.interfaces: af_packet")
