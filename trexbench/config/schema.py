"""DUT configs as a whole: reading by the sections of model.py, and checks of what must agree between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ..core.errors import ConfigError
from .check_endpoints import (
    IN_LAB,
    IN_VM,
    REACHED,
    check_apart,
    check_endpoints,
    check_families,
    check_form,
    check_hops,
    check_keys,
    check_way,
    idle,
)
from .commands import TESTER_MAC
from .endpoints import TransportConfig
from .lab import MANAGEMENT_PORT, LabConfig, LabVm
from .model import DRIVERS, UNREACHED, Driver, DutConfig, Port, Route
from .readers import repeated, section
from .settings import ASK_THE_DUT, POWER_READERS, VppSettings
from .yamltree import Value, as_one, parse, raise_any, read_text

_SYSTEM_KEYS = ("routes", "rx_queues", "rss")
"""Keys for drivers that know the DUT's system."""
_QUEUES_OF_VMXNET3 = {1, 2, 4}
_VETH_KEYS = ("steer", "threaded", "gro", "queues", "sysctls", "endpoints")
"""Keys of labs whose router is connected by veth pairs."""


def read_dut(path: Path) -> DutConfig:
    """Read the DUT in this file; ConfigError with all errors, each naming file, line, key and remedy."""
    return dut_of(path, read_text(path, "DUT config"))


@lru_cache(maxsize=128)  # a suite asks for each of its DUTs with every cell
def dut_of(path: Path, text: str) -> DutConfig:
    """Read the DUT in this text of the file, which need not exist yet; errors as in read_dut."""
    where = f"trexbench dut check {path}"
    root = parse(path, text)
    named = root.at("driver").raw
    driver = DRIVERS.get(named.strip() if isinstance(named, str) else "", Driver(""))
    required = [*(["transport"] if driver.transports else []), *([] if root.has("endpoints") else ["ports"])]
    try:
        dut = section(DutConfig, "a DUT config", required, name=path.stem, file=path, text=text)(root)
    except ConfigError as error:
        raise as_one(error.each, where) from None
    raise_any(_check(root, dut, driver), where)
    if not driver.transports:
        dut = replace(dut, transport=TransportConfig(UNREACHED, host=dut.name))
    return dut.with_lab_prefix(dut.lab.prefix) if dut.lab is not None else dut


def _check(root: Value, dut: DutConfig, driver: Driver) -> Iterator[ConfigError]:
    """Yield an error for each mismatch in a config whose values are all valid by themselves."""
    useless = [name for name in DRIVERS if name != dut.driver]
    useless += [] if driver.knows_system else _SYSTEM_KEYS
    useless += [] if driver.transports else ["transport", *([] if dut.in_vm else ["lab"])]
    yield from idle(root, useless, f"driver {dut.driver}", "remove it, or change the driver")
    if root.has("ports"):
        yield from _check_cables(root.at("ports"), dut, driver)
    if dut.endpoints is not None:
        yield from check_endpoints(root, dut, dut.endpoints)
    if driver.knows_system:
        yield from _check_ports(root.at("ports").items("port") if dut.cables else (), dut.ports)
        yield from _check_routes(root.at("routes"), dut.routes, dut.ports)
    yield from _check_variants(root, dut, driver)
    yield from _check_wan(root, dut)
    if dut.power is not None:
        kind = dut.power.type
        needed = POWER_READERS[kind][:1]
        yield from check_keys(root.at("power"), kind, POWER_READERS, f"a meter of type {kind}", needed)
        if kind in ASK_THE_DUT and dut.transport.type in (UNREACHED, "cli"):
            what = f"{kind} runs a program on the DUT, which transport {dut.transport.type} cannot"
            yield root.at("power", "type").wrong(what, "name another meter")
    for port, _, _ in dut.vpp.rx_placement:
        if port not in dut.tester_ports:
            place = root.at("vpp", "rx_placement")
            yield place.wrong(f"port {port} is not under ports", "name one of ports[].tester")
    if root.has("commands"):
        yield from _check_commands(root.at("commands"), dut)
    if driver.transports:
        in_lab = dut.lab is not None
        owner = "a DUT" if in_lab else f"a DUT with driver {dut.driver}"
        ways = (IN_VM if dut.in_vm else IN_LAB) if in_lab else driver.transports
        yield from check_way(root.at("transport"), dut.transport.type, owner, ways, in_lab)
        if dut.in_vm:
            yield from idle(root.at("transport"), ("host", "port"), "a lab's machine", "remove it")
    if dut.lab is not None and (driver.transports or dut.in_vm):
        yield from _check_lab(root, dut, dut.lab)


def _check_variants(root: Value, dut: DutConfig, driver: Driver) -> Iterator[ConfigError]:
    if dut.variants and not driver.has_variants:
        able = " or ".join(name for name, other in DRIVERS.items() if other.has_variants)
        what = f"driver {dut.driver} cannot set variants"
        yield root.at("variants").wrong(what, f"remove it, or use driver {able}")
    for name, variant in dut.variants:
        if variant.tunnel is not None and (lack := dut.no_tunnel(variant.tunnel)) is not None:
            yield root.at("variants", name, "tunnel").wrong(*lack)
        if variant.wan is not None and (lack := dut.no_wan) is not None:
            yield root.at("variants", name, "wan").wrong(*lack)
    for name, _ in dut.twin.variants if dut.twin is not None else ():
        if name not in dict(dut.variants):
            yield root.at("twin", "variants", name).wrong("is not under variants", "add it there, or remove it")


def _check_wan(root: Value, dut: DutConfig) -> Iterator[ConfigError]:
    if dut.wan is not None and (lack := dut.no_wan) is not None:
        yield root.at("wan").wrong(*lack)
    if dut.wan_host is None:
        return
    here, way = root.at("wan_host", "transport"), dut.wan_host.transport
    yield from check_way(here, way.type, "a WAN host", REACHED)
    if dut.lab is not None:
        remedy = "remove it: the lab makes the line itself"
        yield root.at("wan_host").wrong("a lab has no host between DUT and server", remedy)
    elif way == dut.transport:
        yield here.wrong("the same host as the DUT", "remove wan_host: a DUT with Linux makes the WAN itself")


def _check_cables(value: Value, dut: DutConfig, driver: Driver) -> Iterator[ConfigError]:
    items, cables = value.items("port"), dut.cables
    if len(cables) < 2 or len(cables) % 2:
        remedy = "list an even number; neighbours in the list pair up"
        yield value.wrong(f"{len(cables)} port(s) make no pairs", remedy)
    for key, what in (("tester", "the tester's port"), ("interface", "the interface")):
        named = [item for item in items if item.has(key)]
        yield from repeated(named, [item.at(key).text() for item in named], what, key)
    for item, cable in zip(items, cables, strict=True):
        if not driver.knows_system:
            remedy = "remove it, or change the driver"
            yield from idle(item, ("address", "neighbour"), f"driver {dut.driver}", remedy)
        elif not isinstance(cable, Port):
            keys = [key for key in ("interface", "address", "neighbour") if not item.has(key)]
            yield item.missing(keys, f"a port of driver {dut.driver}")
        if len(cable.vlan) != len(cables[0].vlan):
            what = f"{len(cable.vlan)} VLAN tags, the first port has {len(cables[0].vlan)}"
            yield item.wrong(what, "give all ports as many: frames that change their length have no one line rate")


def _check_ports(items: Sequence[Value], ports: Sequence[Port]) -> Iterator[ConfigError]:
    if len(ports) < len(items):  # _check_cables reports this
        return
    for index, (item, port) in enumerate(zip(items, ports, strict=True)):
        yield from check_hops(item.at("neighbour"), port.addresses, port.neighbour.addresses, "the DUT's")
        for before in ports[:index]:
            yield from check_apart(item.at("address"), port.addresses, before.addresses, before.interface)
    yield from check_families(items, [port.addresses for port in ports], "other ports have")


def _check_routes(value: Value, routes: Sequence[Route], ports: Sequence[Port]) -> Iterator[ConfigError]:
    items = value.items("route") if routes else ()
    neighbours = [other for port in ports for other in port.neighbour.addresses]
    for item, route in zip(items, routes, strict=True):
        if route.via not in neighbours:
            remedy = f"route via one of {', '.join(map(str, neighbours))}"
            yield item.at("via").wrong(f"{route.via} is not a port's neighbour", remedy)
        if route.via.version != route.to.version:
            what = f"an IPv{route.to.version} network via an IPv{route.via.version} address"
            yield item.at("via").wrong(what, "name a neighbour of the network's family")
        if route.to.prefixlen == 0:
            yield item.at("to").wrong("a default route", "name the networks that the test traffic goes to")
    yield from repeated(items, [str(route.to) for route in routes], "the network", "to")


def _check_commands(value: Value, dut: DutConfig) -> Iterator[ConfigError]:
    named = [*value.leaves("what")]
    yield from repeated(named, [name.text() for name in named], "what is set or read:")
    yield from check_form(value.leaves("run", "check", "undo"), dut.transport.type, "[ip, link, show]")
    ports = [(node, node.text()) for node in value.leaves("port")]
    ports += [(node, port) for node in value.texts() for port in TESTER_MAC.findall(node.text())]
    for node, port in ports:
        if int(port) not in dut.tester_ports:
            yield node.wrong(f"port {port} is not under ports", "name one of ports[].tester")
    if dut.commands.clock_hz is not None and not any(counters.cpus for counters in dut.commands.counters):
        yield value.at("clock").wrong("no counters have cpus:", "add them, or remove it")


def _check_lab(root: Value, dut: DutConfig, lab: LabConfig) -> Iterator[ConfigError]:
    value = root.at("lab")
    if not dut.cables:
        yield root.missing(("ports",), "a lab")
        return
    for item, cable in zip(root.at("ports").items("port"), dut.cables, strict=True):
        if not cable.interface:
            yield item.missing(("interface",), "a port of a lab")
    if dut.endpoints is None:
        yield from idle(value, ("endpoints",), "a lab without endpoints", "remove it, or add endpoints:")
    if dut.in_vm:
        yield from _check_lab_vm(root, dut, lab.vm)
        return
    yield from idle(value, ("vm",), f"lab.router: {lab.router}", "remove it, or write router: vm")
    if lab.threaded and not lab.gro:
        yield value.at("threaded").wrong("threaded NAPI on veth needs GRO", "write gro: true too")
    if (lab.router == "vpp") != (dut.driver == "vpp"):
        router = "vpp" if dut.driver == "vpp" else "kernel"
        yield value.wrong(f"lab.router: {lab.router} with driver: {dut.driver}", f"write lab.router: {router}")
    elif lab.router == "vpp":
        base = VppSettings()
        for key in ("socket", "startup_conf", "restart", "workers"):
            if getattr(dut.vpp, key) != getattr(base, key):
                remedy = "remove it; see lab.router_cpus"
                yield root.at("vpp", key).wrong("the lab itself sets this for its VPP", remedy)
        if dut.vpp.interfaces != "af_packet":
            yield root.at("vpp").wrong("a lab's interfaces are veth pairs", "write vpp.interfaces: af_packet")


def _check_lab_vm(root: Value, dut: DutConfig, machine: LabVm) -> Iterator[ConfigError]:
    value, own = root.at("lab"), machine.image is not None or machine.kernel is not None
    if not own and (machine.guest == "vpp") != (dut.driver == "vpp"):
        what = f"lab.vm.guest: {machine.guest} with driver: {dut.driver}"
        yield value.wrong(what, f"write lab.vm.guest: {'vpp' if dut.driver == 'vpp' else 'linux'}")
    owner = "lab.router: vm, whose router has a kernel and NICs of its own"
    yield from idle(value, (*_VETH_KEYS, "mtu"), owner, "remove it")
    yield from _check_vm_nics(root, dut, machine, own)
    if machine.login is not None and machine.login.password_env and machine.login.password_file:
        yield value.at("vm", "login", "password_file").wrong("two places for one password", "remove one of them")
    if machine.login is not None and dut.transport.type == "ssh":
        yield value.at("vm", "login").wrong("has no effect with transport ssh", "remove it, or write type: console")
    for key, port in (("rpc_port", dut.generator.rpc_port), ("pub_port", dut.generator.pub_port)):
        if dut.transport.type == "ssh" and port == MANAGEMENT_PORT:
            yield root.at("generator", key).wrong(f"{port} is that of the machine's ssh", "write another port")
    if machine.boot_s <= 0:
        yield value.at("vm", "boot").wrong("no machine starts in 0 s", "write the longest that it may take, as in 60s")
    if value.has("vm"):
        vm = value.at("vm")
        if own:
            yield from idle(vm, ("guest",), "a machine with an image or kernel of its own", "remove it")
        if machine.image is not None:
            yield from idle(vm, ("kernel", "initrd", "append"), "a machine with image:", "remove it")
        elif (machine.kernel is None) != (machine.initrd is None):
            yield vm.wrong("kernel and initrd belong together", "name both, or neither")


def _check_vm_nics(root: Value, dut: DutConfig, machine: LabVm, own: bool) -> Iterator[ConfigError]:
    """own: the machine starts from files of the user's."""
    nic = root.at("lab", "vm", "nic")
    if not own and machine.guest == "vpp" and machine.nic != "virtio":
        remedy = "write nic: virtio, or name kernel and initrd of your own"
        yield nic.wrong("the VPP of trexbench lab image drives virtio only", remedy)
    if not own and machine.guest == "vpp" and dut.vpp.interfaces != "native":
        yield root.at("vpp").wrong("the image's VPP drives its NICs itself", "write vpp.interfaces: native")
    able = _QUEUES_OF_VMXNET3 if machine.cores is None else _QUEUES_OF_VMXNET3 & {machine.cores}
    if machine.nic == "vmxnet3" and dut.driver == "linux" and not able.issuperset(dut.rx_queues):
        what = "Linux gives vmxnet3 as many queues as it has cores: 1, 2 or 4"
        yield nic.wrong(what, "remove cores, and write rx_queues: [1, 2, 4]")
    if machine.nic == "e1000e" and max(dut.rx_queues, default=1) > 1:
        yield nic.wrong("e1000e has one queue in QEMU", "write nic: virtio, or rx_queues: [1]")
