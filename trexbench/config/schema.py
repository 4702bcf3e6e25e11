"""The keys of a DUT config, section by section, and what must agree between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from . import readers as r
from .model import (
    DutConfig,
    GeneratorConfig,
    LabConfig,
    Neighbour,
    PlanDefaults,
    Port,
    Route,
    TransportConfig,
    dut_namespace,
    vpp_socket,
)
from .read_settings import read_linux, read_pfsense, read_power, read_vpp
from .read_twin import read_rss, read_twin
from .settings import LinuxSettings, PfsenseSettings, VppSettings
from .yamltree import Table, Value, load

DRIVERS = ("linux", "pfsense", "vpp")
TRANSPORTS = ("netns", "local", "ssh")
_CPU = r.or_word(("auto", "any"), r.integer(0, 4095))

_TOP = (
    *("description", "driver", "transport", "speed", "ports", "routes"),
    *("rx_queues", "linux", "vpp", "pfsense", "rss", "power", "plan", "generator", "lab", "twin", "notes"),
)
_PLAN = (
    *("warmup", "ramp_to", "ramp_duration", "hold", "confirm", "latency", "drain"),
    *("sample", "window", "loss", "windows", "stop_on_saturation"),
)
_LAB = (
    *("prefix", "sender_cpu", "router_cpus", "harness_cpu", "steer", "threaded"),
    *("router", "gro", "queues", "txqueuelen", "mtu", "sender_limit", "sysctls"),
)


def read_dut(path: Path) -> DutConfig:
    """The DUT that this file describes; ConfigError naming file, line, key and fix."""
    root = load(path, "DUT config")
    top = root.table("a DUT config", _TOP)
    lab = top.get("lab", _lab, None)
    ports = top.get("ports", _ports)
    driver = top.get("driver", r.choice(*DRIVERS))
    for other in DRIVERS:
        if other != driver and top.has(other):
            raise top.at(other).wrong(f"means nothing to driver {driver}", "take it out, or change the driver")
    return DutConfig(
        name=path.stem,
        file=path,
        driver=driver,
        transport=top.get("transport", lambda value: _transport(value, lab)),
        ports=ports,
        routes=top.get("routes", lambda value: _routes(value, ports), ()),
        description=top.get("description", r.text, ""),
        speed_bps=top.get("speed", r.speed, None),
        rx_queues=top.get("rx_queues", r.integers(1, 256), ()),
        generator=top.get("generator", _generator, GeneratorConfig()),
        plan=top.get("plan", read_plan, PlanDefaults()),
        linux=top.get("linux", read_linux, LinuxSettings()),
        vpp=_of_lab(top, top.get("vpp", lambda value: read_vpp(value, ports), VppSettings()), driver, lab),
        pfsense=top.get("pfsense", read_pfsense, PfsenseSettings()),
        rss=top.get("rss", read_rss, None),
        power=top.get("power", read_power, None),
        lab=lab,
        twin=top.get("twin", read_twin, None),
        notes=top.get("notes", r.text, ""),
        text=path.read_text(encoding="utf-8-sig"),
    )


def _of_lab(top: Table, settings: VppSettings, driver: str, lab: LabConfig | None) -> VppSettings:
    """The settings of a lab's own VPP; ConfigError where the lab's router is not what the driver speaks to."""
    if lab is None:
        return settings
    if (lab.router == "vpp") != (driver == "vpp"):
        router = "vpp" if driver == "vpp" else "kernel"
        raise top.at("lab").wrong(
            f"a router of kind {lab.router} and the driver {driver}", f"write lab.router: {router}"
        )
    if lab.router == "kernel":
        return settings
    base = VppSettings()
    for key in ("socket", "startup_conf", "restart", "workers"):
        if getattr(settings, key) != getattr(base, key):
            raise top.at("vpp").wrong(f"{key} of a lab's VPP is the lab's affair", "take it out; lab: has the cores")
    if settings.interfaces != "af_packet":
        raise top.at("vpp").wrong("a lab's interfaces are veth pairs", "write vpp.interfaces: af_packet")
    return replace(settings, socket=vpp_socket(lab.prefix))


def _transport(value: Value, lab: LabConfig | None) -> TransportConfig:
    table = value.table("a transport", ("type", "namespace", "host", "user", "port"))
    kind = table.get("type", r.choice(*TRANSPORTS))
    allowed = {"netns": ("namespace",), "local": (), "ssh": ("host", "user", "port")}[kind]
    for key in ("namespace", "host", "user", "port"):
        if table.has(key) and key not in allowed:
            raise table.at(key).wrong(f"means nothing to a {kind} transport", "take it out, or change the type")
    if lab is not None and kind != "netns":
        raise table.at("type").wrong(f"a DUT with a lab: section is reached by netns, not {kind}", "write type: netns")
    if lab is not None and table.has("namespace"):
        raise table.at("namespace").wrong("the lab's own namespace is meant", "take it out; lab.prefix names it")
    if kind == "netns":
        named = dut_namespace(lab.prefix) if lab else table.get("namespace", r.namespace)
        return TransportConfig(kind, namespace=named)
    if kind == "ssh":
        user, port = table.get("user", r.user, None), table.get("port", r.integer(1, 65535), None)
        return TransportConfig(kind, host=table.get("host", r.host), user=user, port=port)
    return TransportConfig(kind)


def _ports(value: Value) -> tuple[Port, ...]:
    items = value.items("port")
    ports = tuple(item.read(_port) for item in items)
    if len(ports) < 2 or len(ports) % 2:
        raise value.wrong(f"{len(ports)} port(s) make no pairs", "list an even number; neighbours in the list pair up")
    _unique(items, [str(p.tester) for p in ports], "tester", "the tester's port")
    _unique(items, [p.interface for p in ports], "interface", "the interface")
    for index, port in enumerate(ports):
        for other in ports[:index]:
            if port.address.network.overlaps(other.address.network):
                raise _child(items[index], "address").wrong(
                    f"{port.address} overlaps {other.address} of {other.interface}", "give every port its own network"
                )
    return ports


def _port(value: Value) -> Port:
    table = value.table("a port", ("tester", "interface", "address", "neighbour"))
    address = table.get("address", r.interface_address)
    neighbour = table.get("neighbour", _neighbour)
    if neighbour.address not in address.network:
        raise table.at("neighbour").wrong(
            f"{neighbour.address} is not in {address.network}", f"pick an address of {address.network}"
        )
    if neighbour.address == address.ip:
        raise table.at("neighbour").wrong(
            f"{neighbour.address} is the DUT's own address", f"pick another of {address.network}"
        )
    return Port(table.get("tester", r.integer(0, 127)), table.get("interface", r.interface), address, neighbour)


def _neighbour(value: Value) -> Neighbour:
    table = value.table("a neighbour", ("address", "mac"))
    return Neighbour(table.get("address", r.address), table.get("mac", r.mac_or_tester, None))


def _routes(value: Value, ports: Sequence[Port]) -> tuple[Route, ...]:
    items = value.items("route")
    neighbours = [str(port.neighbour.address) for port in ports]
    routes = []
    for item in items:
        table = item.table("a route", ("to", "via"))
        route = Route(table.get("to", r.network), table.get("via", r.address))
        if str(route.via) not in neighbours:
            raise table.at("via").wrong(
                f"{route.via} is no port's neighbour", f"route by way of one of {', '.join(neighbours)}"
            )
        if route.to.prefixlen == 0:
            raise table.at("to").wrong("a default route", "name the networks that the test traffic goes to")
        routes.append(route)
    _unique(items, [str(route.to) for route in routes], "to", "the network")
    return tuple(routes)


def _generator(value: Value) -> GeneratorConfig:
    table = value.table("a generator", ("server", "rpc_port", "pub_port"))
    port = r.integer(1, 65535)
    return GeneratorConfig(
        table.get("server", r.host, GeneratorConfig.server),
        table.get("rpc_port", port, GeneratorConfig.rpc_port),
        table.get("pub_port", port, GeneratorConfig.pub_port),
    )


def read_plan(value: Value) -> PlanDefaults:
    """The ``plan:`` of a DUT or a suite."""
    table = value.table("plan defaults", _PLAN)
    warmup_rate, warmup_s = table.get("warmup", r.warmup, (None, None))
    return PlanDefaults(
        warmup=warmup_rate,
        warmup_s=warmup_s,
        ramp_to=table.get("ramp_to", r.rate, None),
        ramp_s=table.get("ramp_duration", r.seconds, None),
        hold_s=table.get("hold", r.seconds, None),
        confirm_s=table.get("confirm", r.seconds, None),
        latency_s=table.get("latency", r.seconds, None),
        drain_s=table.get("drain", r.seconds, None),
        sample_s=table.get("sample", r.seconds, None),
        window_s=table.get("window", r.seconds, None),
        loss=table.get("loss", r.share, None),
        windows=table.get("windows", r.integer(1, 1000), None),
        stop_on_saturation=table.get("stop_on_saturation", r.boolean, None),
    )


def _lab(value: Value) -> LabConfig:
    table = value.table("a lab", _LAB)
    base = LabConfig()
    found = LabConfig(
        prefix=table.get("prefix", r.prefix, base.prefix),
        sender_cpu=table.get("sender_cpu", _CPU, base.sender_cpu),
        router_cpus=table.get("router_cpus", r.or_word(("auto", "any"), r.integers(0, 4095)), base.router_cpus),
        harness_cpu=table.get("harness_cpu", _CPU, base.harness_cpu),
        steer=table.get("steer", r.choice("cpumap", "rps", "none"), base.steer),
        threaded=table.get("threaded", r.boolean, base.threaded),
        router=table.get("router", r.choice("kernel", "vpp"), base.router),
        gro=table.get("gro", r.boolean, base.gro),
        queues=table.get("queues", r.integer(1, 64), base.queues),
        txqueuelen=table.get("txqueuelen", r.integer(0, 1_000_000), base.txqueuelen),
        mtu=table.get("mtu", r.integer(576, 65535), base.mtu),
        sender_limit_pps=table.get("sender_limit", r.pps, base.sender_limit_pps),
        sysctls=table.get("sysctls", r.sysctls, base.sysctls),
    )
    if found.threaded and not found.gro:
        raise table.at("threaded").wrong("a veth polls in threads only where it polls", "write gro: true too")
    return found


def _unique(items: Sequence[Value], names: Sequence[str], key: str, what: str) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            first = items[names.index(name)].line
            raise _child(items[index], key).wrong(f"{what} {name} stands on line {first} already", "name each once")


def _child(item: Value, key: str) -> Value:
    table: Table = Table(item, "")
    return table.at(key)
