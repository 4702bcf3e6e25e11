"""A DUT config as data: every value checked, nothing looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from ..core.errors import ConfigError
from ..core.tcp.tunnel import CLIENT_DUT, CLIENT_SERVER, NO_TUNNEL, parse_tunnel
from ..core.tcp.wan import Wan
from ..core.units import Rate, parse_duration, parse_rate
from . import readers as r
from .commands import TESTER_MAC, CommandsSettings
from .endpoints import EndpointsConfig, TransportConfig, WanHost, lab_namespace, wan
from .readers import Address, Interface, Network, section
from .settings import LabEndpoints, LinuxSettings, PfsenseSettings, PowerConfig, VppSettings, sysctls
from .twin import TWIN_REMEDY, RssSpec, TwinSpec
from .variants import NO_VARIANT, Variant, variants
from .vm import MANAGEMENT_PORT, LabVm
from .yamltree import Value


@dataclass(frozen=True)
class Driver:
    """A driver's requirements of a config, and where its code is."""

    folder: str
    """The folder of dut/ whose driver.py has the code."""
    transports: tuple[str, ...] = ("netns", "local", "ssh")
    """Types by which its DUT can be reached; none: it is not reached."""
    knows_system: bool = True
    """It sets addresses, routes and queues, and reads the counters, by itself."""
    has_variants: bool = False
    """It can set what a variant asks for."""
    unsteady: bool = False
    """Its system may undo settings by itself, so that they are read back after a run, too."""
    vlan_name: str = ""
    """Name of a VLAN's interface: of the port, its tags joined, a number of its own, or one made of both tags."""


DRIVERS: Mapping[str, Driver] = {
    # by the tester's port: with the NIC's name it could be too long for a Linux interface (15)
    "linux": Driver("linux", has_variants=True, vlan_name="tb{port.tester}.{tags}"),
    "pfsense": Driver("freebsd", unsteady=True, vlan_name="vlan{number}"),
    # one sub-interface takes both tags
    "vpp": Driver("vpp", vlan_name="{port.interface}.{both}"),
    "commands": Driver("commands", transports=("netns", "local", "ssh", "cli"), knows_system=False),
    "none": Driver("commands", transports=(), knows_system=False),
}
"""All drivers by their names in a config: a driver is a line here and its folder."""
UNREACHED = "none"
"""The transport of a DUT that is not reached."""

_NO_COMMANDS = CommandsSettings()
MOST_QUEUES = 256
"""Receive queues of a port, at most."""
_CPU = r.or_word(("auto", "any"), r.integer(0, 4095))
_CPUS = r.or_word(("auto", "any"), r.integers(0, 4095))


@dataclass(frozen=True)
class Neighbour:
    """The tester's end of a cable, as the DUT is to see it; mac: None for the tester's own port MAC.

    pinned: it has to be, since it answers no ARP; a host that answers is not.
    """

    addresses: Annotated[tuple[Address, ...], r.addresses, "address"]
    mac: Annotated[str | None, r.mac_or_tester] = None
    pinned: bool = True


@dataclass(frozen=True)
class Cable:
    """The tester's port index at one end, the DUT's interface at the other, named where anything needs it.

    vlan: the tags that all frames on the cable have, outer first.
    """

    tester: Annotated[int, r.integer(0, 127)]
    interface: Annotated[str, r.interface] = ""
    vlan: Annotated[tuple[int, ...], r.vlans] = ()


@dataclass(frozen=True, kw_only=True)
class Port(Cable):
    """A cable whose end at the DUT a driver configures.

    Of each family one address at most; the neighbour has as many, each in the network of one of the port's. With VLAN
    tags the addresses are those of the VLAN.
    """

    interface: Annotated[str, r.interface] = field()
    addresses: Annotated[tuple[Interface, ...], r.interface_addresses, "address"]
    neighbour: Annotated[Neighbour, section(Neighbour, "a neighbour")]

    @property
    def address(self) -> Interface:
        """The first of its addresses."""
        return self.addresses[0]

    @property
    def ends(self) -> tuple[tuple[Interface, Address], ...]:
        """The DUT's and the tester's address, for each family in use, where the tester is pinned."""
        if not self.neighbour.pinned:
            return ()
        others = {other.version: other for other in self.neighbour.addresses}
        return tuple((own, others[own.version]) for own in self.addresses)


@r.takes(anyOf=[section(Port, "a port"), section(Cable, "a port")])
def _cable(value: Value) -> Cable:
    """A port with an address, or only a cable; which of them the driver needs is checked in schema.py."""
    if value.has("address") or value.has("neighbour"):
        return section(Port, "a port")(value)
    return section(Cable, "a port", also=("address", "neighbour"))(value)


@dataclass(frozen=True)
class Route:
    """to: a network behind the tester; via: the tester's address."""

    to: Annotated[Network, r.network]
    via: Annotated[Address, r.address]


@dataclass(frozen=True)
class GeneratorConfig:
    """Where the STL server (TRex or the embedded one) listens."""

    server: Annotated[str, r.host] = "127.0.0.1"
    rpc_port: Annotated[int, r.integer(1, 65535)] = 4501
    pub_port: Annotated[int, r.integer(1, 65535)] = 4500


@dataclass(frozen=True)
class LabConfig:
    """Build of a DUT in network namespaces on this machine; every field is a key of the ``lab:`` section.

    sender_cpu: core of the generator's packet engine; ``auto`` is the first usable core, ``any`` does not pin.
    router_cpus: cores that forward; ``auto`` is the first core that shares no hardware with the sender's.
    harness_cpu: core of trexbench itself, as sender_cpu; ``auto`` keeps it off the router's cores.
    steer: how frames that arrive at the DUT get to router_cpus, veth having no interrupt of its own: ``cpumap`` (a
    queue that a kernel thread on the first of them empties), ``rps`` (receive packet steering) or ``none``.
    threaded: NAPI of the DUT's interfaces in kernel threads, pinned to router_cpus.
    gro: generic receive offload on the DUT's interfaces; veth only polls with it (or with an XDP program).
    queues: receive and transmit queues of every veth. txqueuelen, mtu: of every veth.
    sender_limit_pps: the embedded server's highest rate per port, to see how a weak generator is reported.
    sysctls: set in the DUT's namespace where they exist there, else on the host and put back afterwards.
    router: what forwards: the ``kernel``, or a ``vpp`` that is started in the DUT's namespace with its workers on
    router_cpus; a ``vm`` on router_cpus, as in vm; or nothing: in a ``bypass`` the tester's ports are cabled to one
    another, to calibrate it.
    endpoints: of the cables to client and server.
    """

    prefix: Annotated[str, r.prefix] = "tbx"
    sender_cpu: Annotated[int | str, _CPU] = "auto"
    router_cpus: Annotated[tuple[int, ...] | str, _CPUS] = "auto"
    harness_cpu: Annotated[int | str, _CPU] = "auto"
    steer: Annotated[str, r.choice("cpumap", "rps", "none")] = "cpumap"
    threaded: Annotated[bool, r.boolean] = False
    gro: Annotated[bool, r.boolean] = True
    router: Annotated[str, r.choice("kernel", "vpp", "vm", "bypass")] = "kernel"
    vm: Annotated[LabVm, section(LabVm, "a virtual machine")] = field(default_factory=LabVm)
    queues: Annotated[int, r.integer(1, 64)] = 1
    txqueuelen: Annotated[int, r.integer(0, 1_000_000)] = 1000
    mtu: Annotated[int, r.integer(576, 65535)] = 1500
    sender_limit_pps: Annotated[float | None, r.pps, "sender_limit"] = None
    sysctls: Annotated[tuple[tuple[str, str], ...], sysctls(r.text)] = (("net.core.netdev_max_backlog", "4096"),)
    endpoints: Annotated[LabEndpoints, section(LabEndpoints, "a lab's endpoints")] = field(default_factory=LabEndpoints)


@dataclass(frozen=True)
class PlanDefaults:
    """Defaults of this DUT's runs, overridden by the command line; None: trexbench's own default.

    warmup and ramp_to are rates as written, ``*_s`` are seconds, loss is a fraction, windows is a count. ignored: lines
    about keys of REMOVED that the file has.
    """

    warmup: Annotated[Rate | None, r.warmup(0, parse_rate)] = None
    warmup_s: Annotated[float | None, r.warmup(1, parse_duration), "warmup"] = None
    ramp_to: Annotated[Rate | None, r.rate] = None
    ramp_s: Annotated[float | None, r.seconds, "ramp_duration"] = None
    hold_s: Annotated[float | None, r.seconds, "hold"] = None
    confirm_s: Annotated[float | None, r.seconds, "confirm"] = None
    soak_s: Annotated[float | None, r.seconds, "soak"] = None
    latency_s: Annotated[float | None, r.seconds, "latency"] = None
    drain_s: Annotated[float | None, r.seconds, "drain"] = None
    sample_s: Annotated[float | None, r.seconds, "sample"] = None
    window_s: Annotated[float | None, r.seconds, "window"] = None
    loss: Annotated[float | None, r.share] = None
    windows: Annotated[int | None, r.integer(1, 1000)] = None
    stop_on_saturation: Annotated[bool | None, r.boolean] = None
    goals: Annotated[tuple[float, ...] | None, r.list_of("share", r.share, str)] = None
    width: Annotated[float | None, r.share] = None
    ignored: tuple[str, ...] | None = None


REMOVED: Mapping[str, str] = {"zoom": "a ramp has no zoom"}
"""Keys of a plan that are ignored, so that a night survives an upgrade, and why."""
_KNOWN = section(PlanDefaults, "plan defaults", also=tuple(REMOVED))


@r.takes(section=PlanDefaults)
def plan_defaults(value: Value) -> PlanDefaults:
    """Read a plan's defaults, and which of its keys are ignored."""
    old = [value.at(key).wrong(f"ignored: {why}", "leave it out") for key, why in REMOVED.items() if value.has(key)]
    return replace(_KNOWN(value), ignored=tuple(map(str, old)) or None)


@dataclass(frozen=True)
class DutConfig:
    """One file of dut_configs; ``name`` is the file's. rx_queues: the numbers of queues it is measured with.

    speed_bps limits the line rate (L1 bit/s); None: as the tester's ports. linux, vpp, pfsense: settings of that
    driver. rss: how the NICs choose a queue, where the DUT does not say. endpoints: hosts that test it with TCP; where
    there are some it may have no cables. wan: between the test's hosts, or the tester's ports; wan_host:
    makes it in the DUT's place. text: the file as it was read. variant: which of its variants this is, see
    with_variant; None: it is without any. called: the name by which it was looked up, where that alone leads to it.
    """

    name: str
    file: Path
    driver: Annotated[str, r.choice(*DRIVERS)]
    cables: Annotated[tuple[Cable, ...], r.list_of("port", _cable), "ports"] = ()
    transport: Annotated[TransportConfig, section(TransportConfig, "a transport")] = field(
        default_factory=lambda: TransportConfig(UNREACHED)
    )
    routes: Annotated[tuple[Route, ...], r.list_of("route", section(Route, "a route"))] = ()
    description: Annotated[str, r.text] = ""
    speed_bps: Annotated[float | None, r.speed, "speed"] = None
    rx_queues: Annotated[tuple[int, ...], r.integers(1, MOST_QUEUES)] = ()
    generator: Annotated[GeneratorConfig, section(GeneratorConfig, "a generator")] = field(
        default_factory=GeneratorConfig
    )
    plan: Annotated[PlanDefaults, plan_defaults] = field(default_factory=PlanDefaults)
    linux: Annotated[LinuxSettings, section(LinuxSettings, "a Linux DUT")] = field(default_factory=LinuxSettings)
    vpp: Annotated[VppSettings, section(VppSettings, "a VPP")] = field(default_factory=VppSettings)
    pfsense: Annotated[PfsenseSettings, section(PfsenseSettings, "a pfSense")] = field(default_factory=PfsenseSettings)
    commands: Annotated[CommandsSettings, section(CommandsSettings, "commands")] = _NO_COMMANDS
    rss: Annotated[RssSpec | None, section(RssSpec, "RSS")] = None
    power: Annotated[PowerConfig | None, section(PowerConfig, "a power meter")] = None
    lab: Annotated[LabConfig | None, section(LabConfig, "a lab")] = None
    endpoints: Annotated[EndpointsConfig | None, section(EndpointsConfig, "endpoints")] = None
    wan: Annotated[Wan | None, wan] = None
    wan_host: Annotated[WanHost | None, section(WanHost, "a WAN host")] = None
    variants: Annotated[tuple[tuple[str, Variant], ...], variants] = ()
    twin: Annotated[TwinSpec | None, section(TwinSpec, "a twin")] = None
    notes: Annotated[str, r.text] = ""
    text: str = ""
    variant: str | None = None
    called: str = ""

    @property
    def in_vm(self) -> bool:
        """True if its lab's router is a virtual machine, which has a kernel of its own."""
        return self.lab is not None and self.lab.router == "vm"

    @property
    def command_name(self) -> str:
        """Its name on the command line: as it was called, or else its file's path."""
        return self.called or str(self.file)

    @property
    def offered_queues(self) -> tuple[int, ...]:
        """Receive queues per port that it can be measured with."""
        return self.rx_queues or ((self.twin.queues,) if self.twin is not None else (1,))

    @property
    def ports(self) -> tuple[Port, ...]:
        """The cables whose ends a driver configures: all of them, or none."""
        return tuple(cable for cable in self.cables if isinstance(cable, Port))

    @property
    def tester_ports(self) -> tuple[int, ...]:
        return tuple(cable.tester for cable in self.cables)

    @property
    def asks_for_macs(self) -> bool:
        """True if a driver needs MACs of the tester's ports that only the generator knows."""
        return (
            any(port.neighbour.pinned and port.neighbour.mac is None for port in self.ports)
            or TESTER_MAC.search(str(self.commands)) is not None
        )

    @property
    def is_reached(self) -> bool:
        """True if its driver runs anything on it."""
        return bool(DRIVERS[self.driver].transports)

    @property
    def is_observed(self) -> bool:
        """True if anything is read from the DUT during a run."""
        return DRIVERS[self.driver].knows_system or bool(self.commands.counters) or self.power is not None

    @property
    def is_unsteady(self) -> bool:
        """True if its system may undo settings by itself."""
        return DRIVERS[self.driver].unsteady

    @property
    def versions(self) -> tuple[int, ...]:
        """IP versions in use on its ports: 4, 6 or both."""
        return tuple(sorted({own.version for port in self.ports for own in port.addresses}))

    @property
    def hosts(self) -> EndpointsConfig:
        """The endpoints of TCP tests; ConfigError where it has none."""
        if self.endpoints is None:
            what = f"{self.file} names no endpoints, between which TCP could flow"
            raise ConfigError(what, "state endpoints: (docs/tcp.md)")
        return self.endpoints

    @property
    def dials_in(self) -> bool:
        """True if the DUT dials in to the server of TCP tests by PPPoE."""
        return self.endpoints is not None and (self.chosen.pppoe or self.endpoints.pppoe is not None)

    @property
    def chosen(self) -> Variant:
        """Settings of its variant; all defaults without one."""
        return dict(self.variants)[self.variant] if self.variant is not None else Variant()

    def with_variant(self, name: str | None) -> DutConfig:
        """The DUT in this variant; None and NO_VARIANT leave it as it is.

        ConfigError where its config has no such variant.
        """
        if name is None or name == NO_VARIANT:
            return self
        known = dict(self.variants)
        if name not in known:
            what = f"{self.name} has no variant {name[:40]!r}: its config has {', '.join(known) or 'none'}"
            raise ConfigError(what, "add it there, under variants, or leave it out")
        offloads = tuple({**dict(self.linux.offloads), **dict(known[name].offloads)}.items())
        chosen = replace(self, variant=name, linux=replace(self.linux, offloads=offloads))
        return chosen.with_tunnel(known[name].tunnel).with_wan(known[name].wan)

    def with_wan(self, stated: Wan | None) -> DutConfig:
        """Return the DUT behind this WAN; None leaves it as it is. ConfigError where the DUT cannot have one."""
        if stated is None:
            return self
        if (lack := self.no_wan) is not None:
            raise ConfigError(f"{self.file}: WAN of {stated}: {lack[0]}", lack[1])
        return replace(self, wan=stated)

    @property
    def no_wan(self) -> tuple[str, str] | None:
        """Why there can be no WAN in its path, and what helps; None: there can."""
        if self.wan_host is not None:
            return None
        if not self.ports and self.endpoints is None:
            return "there are neither ports nor endpoints, between which it could lie", "add some (docs/configs.md)"
        if self.driver != "linux":
            return f"driver {self.driver} can set none", "take it out, use driver linux, or name a wan_host:"
        return None

    def with_tunnel(self, name: str | None) -> DutConfig:
        """Return the DUT with this tunnel, in the words of parse_tunnel; None leaves it as it is.

        ConfigError where the DUT or its endpoints cannot have it.
        """
        if name is None or self.endpoints is None:
            return self
        if (lack := self.no_tunnel(name)) is not None:
            raise ConfigError(f"{self.file}: tunnel {name}: {lack[0]}", lack[1])
        return replace(self, endpoints=replace(self.endpoints, tunnel=name))

    def no_tunnel(self, name: str) -> tuple[str, str] | None:
        """Why there cannot be this tunnel, and what helps; None: there can."""
        if name == NO_TUNNEL:
            return None
        if self.endpoints is None:
            return "there are no endpoints, between which it could lie", "add endpoints: (docs/configs.md)"
        through = parse_tunnel(name)
        if self.driver != "linux" and through.between != CLIENT_SERVER:
            return f"driver {self.driver} can set none", "take it out, or use driver linux"
        if self.transport.type == "console" and through.between == CLIENT_DUT and through.kind != "wireguard":
            what = "a virtual machine's console holds no program open, which such an end of a tunnel needs"
            return what, "take wireguard, or one between client and server"
        return replace(self.endpoints, tunnel=name).no_tunnel

    @property
    def chosen_twin(self) -> TwinSpec:
        """Its twin in its variant; ConfigError where the config does not describe one."""
        if self.twin is None:
            raise ConfigError(f"{self.file} describes no twin", TWIN_REMEDY)
        if self.variant is None or self.chosen == Variant():
            return self.twin
        stated = dict(self.twin.variants).get(self.variant)
        if stated is None:
            raise ConfigError(
                f"the twin of {self.name} does not describe variant {self.variant}",
                f"state twin.variants.{self.variant} in {self.file}, as in {{cycles_per_packet: 3000}}",
            )
        return stated.applied_to(self.twin)

    def with_lab_prefix(self, prefix: str) -> DutConfig:
        """Return the DUT with its lab's namespaces and VPP under this prefix, so that two labs can run side by side.

        ConfigError where it has no lab.
        """
        if self.lab is None:
            raise ConfigError(f"{self.name} has no lab", "leave --prefix out, or name a DUT that has one")
        by_ssh = self.transport.type == "ssh"
        transport = replace(self.transport, namespace=lab_namespace(prefix, "tester" if by_ssh else "dut"))
        if by_ssh:  # its machine's, which QEMU offers on the loopback of the tester
            transport = replace(transport, host="127.0.0.1", port=MANAGEMENT_PORT)
        return replace(
            self,
            lab=replace(self.lab, prefix=prefix),
            transport=transport,
            endpoints=self.endpoints and self.endpoints.in_namespaces(prefix),
            vpp=replace(self.vpp, socket=vpp_socket(prefix)) if self.lab.router == "vpp" else self.vpp,
        )


def vpp_socket(prefix: str) -> str:
    """The CLI socket of a lab's own VPP, which belongs to one prefix, as its namespaces do."""
    return f"/run/trexbench-vpp/{prefix}/cli.sock"
