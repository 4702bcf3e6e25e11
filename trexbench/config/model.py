"""DUT configs as data: values are checked, nothing is looked up."""

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
from .lab import MANAGEMENT_PORT, LabConfig
from .readers import Address, Interface, Network, section
from .settings import LinuxSettings, PfsenseSettings, PowerConfig, VppSettings
from .twin import TWIN_REMEDY, RssSpec, TwinSpec
from .variants import NO_VARIANT, Variant, variants
from .yamltree import Value


@dataclass(frozen=True)
class Driver:
    """A driver's place and abilities."""

    folder: str
    """Folder of dut/ whose driver.py has the code."""
    transports: tuple[str, ...] = ("netns", "local", "ssh")
    """Types of transport to its DUT; empty: trexbench does not reach the DUT."""
    knows_system: bool = True
    """True if it sets addresses, routes and queues, and reads the counters, by itself."""
    has_variants: bool = False
    """True if it can set what a variant asks for."""
    unsteady: bool = False
    """True if its system may undo settings by itself, so that they are also read back after a run."""
    vlan_name: str = ""
    """Format of the name of a VLAN's interface, made of the port, its tags joined, a number, or one for both tags."""


DRIVERS: Mapping[str, Driver] = {
    # by the tester's port: with the NIC's name it could be too long for a Linux interface (15)
    "linux": Driver("linux", has_variants=True, vlan_name="tb{port.tester}.{tags}"),
    "pfsense": Driver("freebsd", unsteady=True, vlan_name="vlan{number}"),
    # one sub-interface takes both tags
    "vpp": Driver("vpp", vlan_name="{port.interface}.{both}"),
    "commands": Driver("commands", transports=("netns", "local", "ssh", "cli"), knows_system=False),
    "none": Driver("commands", transports=(), knows_system=False),
}
"""Drivers by name: a driver is a line here and its folder."""
UNREACHED = "none"
"""Transport type of a DUT that trexbench does not reach."""

MOST_QUEUES, MOST_WINDOWS = 256, 1000
"""Largest numbers of a port's receive queues, and of windows in a row."""


@dataclass(frozen=True)
class Neighbour:
    """The tester's end of a cable, as the DUT is to see it."""

    addresses: Annotated[tuple[Address, ...], r.addresses, "address"]  # one for each of the port's, in its network
    mac: Annotated[str | None, r.mac_or_tester] = None
    """Its MAC address; ``tester``, as None: that of the tester's port, which the TRex server is asked for."""
    pinned: bool = True
    """True if it answers no ARP, so that the DUT needs a static entry; a host that answers needs none."""


@dataclass(frozen=True)
class Cable:
    """A cable between a port of the tester and an interface of the DUT; drivers commands and none need no more."""

    tester: Annotated[int, r.integer(0, 127)]  # the tester's port, by its number in TRex
    interface: Annotated[str, r.interface] = ""
    """The DUT's interface; drivers commands and none need it only in labs and fleets."""
    vlan: Annotated[tuple[int, ...], r.vlans] = ()
    """VLAN tags that all frames on the cable have: one (802.1Q), or outer (802.1ad) and inner; as many on all ports."""


@dataclass(frozen=True, kw_only=True)
class Port(Cable):
    """A cable whose end at the DUT a driver configures: linux, pfsense or vpp."""

    interface: Annotated[str, r.interface] = field()
    addresses: Annotated[tuple[Interface, ...], r.interface_addresses, "address"]
    """The DUT's own, at most one per family; with VLAN tags, those of the VLAN."""
    neighbour: Annotated[Neighbour, section(Neighbour, "a neighbour")]
    """The tester's end, with one address in the network of each of the port's."""

    @property
    def address(self) -> Interface:
        """First of its addresses."""
        return self.addresses[0]

    @property
    def ends(self) -> tuple[tuple[Interface, Address], ...]:
        """DUT's and tester's address per family in use; empty unless the tester is pinned."""
        if not self.neighbour.pinned:
            return ()
        others = {other.version: other for other in self.neighbour.addresses}
        return tuple((own, others[own.version]) for own in self.addresses)


@r.takes(anyOf=[section(Port, "a port"), section(Cable, "a port")])
def _cable(value: Value) -> Cable:
    """Read a port with an address, or a bare cable; schema.py checks which of them the driver needs."""
    if value.has("address") or value.has("neighbour"):
        return section(Port, "a port")(value)
    return section(Cable, "a port", also=("address", "neighbour"))(value)


@dataclass(frozen=True)
class Route:
    """A static route of the DUT."""

    to: Annotated[Network, r.network]  # network behind the tester, to which its frames go
    via: Annotated[Address, r.address]  # next hop: the address of a neighbour


@dataclass(frozen=True)
class GeneratorConfig:
    """Address at which the STL server (TRex or the embedded one) listens."""

    server: Annotated[str, r.host] = "127.0.0.1"  # its host
    rpc_port: Annotated[int, r.integer(1, 65535)] = 4501  # TRex's sync port, for commands
    pub_port: Annotated[int, r.integer(1, 65535)] = 4500  # TRex's async port, for events


@dataclass(frozen=True)
class PlanDefaults:
    """Figures of a DUT's runs; those of a suite, and options, take their place; None: the default."""

    warmup: Annotated[Rate | None, r.warmup(0, parse_rate)] = None
    warmup_s: Annotated[float | None, r.warmup(1, parse_duration), "warmup"] = None
    """Rate and duration of the warm-up, which proves that frames return. Default: 1kpps:10s (of a search 2s)."""
    ramp_to: Annotated[Rate | None, r.rate] = None
    """Highest rate per direction of a ramp or search. Default: 97% of line rate."""
    ramp_s: Annotated[float | None, r.seconds, "ramp_duration"] = None
    """Time in which a ramp rises from zero to that rate. Default: 600s."""
    hold_s: Annotated[float | None, r.seconds, "hold"] = None
    """Time at that rate, or at each rate of ``efficiency``; a search has none. Default: 30s."""
    confirm_s: Annotated[float | None, r.seconds, "confirm"] = None
    """Time of the trial that confirms the rate found; 0: no trial, and no recheck. Default: 10s (of a search 5s)."""
    soak_s: Annotated[float | None, r.seconds, "soak"] = None
    """Time of a search's trial where that is longer than ``confirm``. Default: 0 (in suites 60s)."""
    latency_s: Annotated[float | None, r.seconds, "latency"] = None
    """Time for which a ramp measures latency at each of 10, 50 and 90 % of the throughput. Default: 0, not at all."""
    drain_s: Annotated[float | None, r.seconds, "drain"] = None
    """Silence after traffic, in which frames come back. Default: 1s."""
    sample_s: Annotated[float | None, r.seconds, "sample"] = None
    """Time between readings of the tester's counters, 50ms to 10s. Default: 1s (of a search 500ms)."""
    window_s: Annotated[float | None, r.seconds, "window"] = None
    """Time over which each loss is judged, one sample at least. Default: 1s (of a search's ramp 500ms)."""
    loss: Annotated[float | None, r.share] = None
    """Share of the frames that a direction may lose. Default: 0.1%."""
    windows: Annotated[int | None, r.integer(1, MOST_WINDOWS)] = None
    """Number of windows in a row with more loss that mean saturation. Default: 3."""
    goals: Annotated[tuple[float, ...] | None, r.list_of("share", r.share, str)] = None
    """Shares of loss that a search finds a throughput for, as its --loss; the first takes the place of ``loss``."""
    width: Annotated[float | None, r.share] = None
    """Width to which a search narrows each interval, as a share of the rate. Default: 0.5%."""
    ignored: tuple[str, ...] | None = None
    """Lines about keys of REMOVED that the file has."""


REMOVED: Mapping[str, str] = {
    "zoom": "a ramp has no zoom",
    "stop_on_saturation": "a ramp goes on to its target",
}
"""Ignored key of a plan -> the reason. Refusing them would end nights after an upgrade."""
_KNOWN = section(PlanDefaults, "plan defaults", also=tuple(REMOVED))


@r.takes(section=PlanDefaults)
def plan_defaults(value: Value) -> PlanDefaults:
    """Read a plan's defaults, and list the keys that are ignored."""
    old = [value.at(key).wrong(f"ignored: {why}", "leave it out") for key, why in REMOVED.items() if value.has(key)]
    return replace(_KNOWN(value), ignored=tuple(map(str, old)) or None)


@dataclass(frozen=True)
class DutConfig:
    """A file of dut_configs."""

    name: str
    """Name of the file without its ending."""
    file: Path
    driver: Annotated[str, r.choice(*DRIVERS)]
    """System that trexbench sets up and reads; ``commands``: one that it knows by ``commands`` of this file only;
    ``none``: it is set up by hand, and not reached."""
    cables: Annotated[tuple[Cable, ...], r.list_of("port", _cable), "ports"] = ()
    """Cables to the tester, of which neighbours in the list form pairs; required unless there are endpoints."""
    transport: Annotated[TransportConfig, section(TransportConfig, "a transport")] = field(
        default_factory=lambda: TransportConfig(UNREACHED)
    )
    """Access to the DUT; required unless the driver is ``none``."""
    routes: Annotated[tuple[Route, ...], r.list_of("route", section(Route, "a route"))] = ()
    description: Annotated[str, r.text] = ""  # for lists and reports
    speed_bps: Annotated[float | None, r.speed, "speed"] = None
    """Line rate (L1 bit/s) where it is lower than that of the tester's ports; None: as theirs."""
    rx_queues: Annotated[tuple[int, ...], r.integers(1, MOST_QUEUES)] = ()
    """Numbers of receive queues per port that it can be measured with, the default first; none: they stay as found."""
    generator: Annotated[GeneratorConfig, section(GeneratorConfig, "a generator")] = field(
        default_factory=GeneratorConfig
    )
    plan: Annotated[PlanDefaults, plan_defaults] = field(default_factory=PlanDefaults)
    linux: Annotated[LinuxSettings, section(LinuxSettings, "a Linux DUT")] = field(default_factory=LinuxSettings)
    vpp: Annotated[VppSettings, section(VppSettings, "a VPP")] = field(default_factory=VppSettings)
    pfsense: Annotated[PfsenseSettings, section(PfsenseSettings, "a pfSense")] = field(default_factory=PfsenseSettings)
    commands: Annotated[CommandsSettings, section(CommandsSettings, "commands")] = field(
        default_factory=CommandsSettings
    )
    rss: Annotated[RssSpec | None, section(RssSpec, "RSS")] = None
    """RSS of the NICs, where the DUT does not report it."""
    power: Annotated[PowerConfig | None, section(PowerConfig, "a power meter")] = None
    lab: Annotated[LabConfig | None, section(LabConfig, "a lab")] = None
    endpoints: Annotated[EndpointsConfig | None, section(EndpointsConfig, "endpoints")] = None
    """Hosts that test it with TCP."""
    wan: Annotated[Wan | None, wan] = None
    """Long line behind the DUT, between the endpoints or the tester's ports; text as for --wan, or its parts."""
    wan_host: Annotated[WanHost | None, section(WanHost, "a WAN host")] = None
    """Host that makes the WAN in the DUT's place."""
    variants: Annotated[tuple[tuple[str, Variant], ...], variants] = ()  # by the name that --variant takes
    twin: Annotated[TwinSpec | None, section(TwinSpec, "a twin")] = None
    notes: Annotated[str, r.text] = ""  # free text, which ``dut show`` prints
    text: str = ""
    variant: str | None = None
    """Variant that this is, see with_variant; None: without any."""
    called: str = ""
    """Name by which it was looked up, where that alone leads to it."""

    @property
    def in_vm(self) -> bool:
        """True if its lab's router is a virtual machine, with a kernel of its own."""
        return self.lab is not None and self.lab.router == "vm"

    @property
    def command_name(self) -> str:
        """Name on the command line: the one by which it was looked up, or else its file's path."""
        return self.called or str(self.file)

    @property
    def offered_queues(self) -> tuple[int, ...]:
        """Numbers of receive queues per port that it can be measured with."""
        return self.rx_queues or ((self.twin.queues,) if self.twin is not None else (1,))

    def require_queues(self, queues: int) -> None:
        """ConfigError for a number of receive queues that it is not measured with."""
        if queues not in self.offered_queues:
            offered = ", ".join(map(str, self.offered_queues))
            what = f"{self.name} is not measured with {queues} receive queues: its config offers {offered}"
            raise ConfigError(what, f"choose one of them, or state rx_queues: in {self.file}")

    @property
    def ports(self) -> tuple[Port, ...]:
        """Cables whose ends a driver configures: all of them, or none."""
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
    def versions(self) -> tuple[int, ...]:
        """IP versions in use on its ports: 4, 6 or both."""
        return tuple(sorted({own.version for port in self.ports for own in port.addresses}))

    @property
    def hosts(self) -> EndpointsConfig:
        """Endpoints of TCP tests; ConfigError where it has none."""
        if self.endpoints is None:
            raise ConfigError(f"{self.file} names no endpoints for TCP tests", "add endpoints: (docs/tcp.md)")
        return self.endpoints

    @property
    def dials_in(self) -> bool:
        """True if the DUT dials in to the server of TCP tests by PPPoE."""
        return self.endpoints is not None and (self.chosen.pppoe or self.endpoints.pppoe is not None)

    @property
    def chosen(self) -> Variant:
        """Settings of its variant; defaults without one."""
        return dict(self.variants)[self.variant] if self.variant is not None else Variant()

    def with_variant(self, name: str | None) -> DutConfig:
        """Return the DUT in a variant; None and NO_VARIANT leave it as it is. ConfigError for an unknown variant."""
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
        """Return the DUT with a WAN; None leaves it as it is. ConfigError where the DUT cannot have one."""
        if stated is None:
            return self
        if (lack := self.no_wan) is not None:
            raise ConfigError(f"--wan {stated} for {self.file}: {lack[0]}", lack[1])
        return replace(self, wan=stated)

    @property
    def no_wan(self) -> tuple[str, str] | None:
        """Reason why its path can have no WAN, and the remedy; None: it can."""
        if self.wan_host is not None:
            return None
        if not self.ports and self.endpoints is None:
            return "it needs ports or endpoints at its two ends", "add some (docs/configs.md)"
        if self.driver != "linux":
            return f"driver {self.driver} cannot set one", "remove it, use driver linux, or name a wan_host:"
        return None

    def with_tunnel(self, name: str | None) -> DutConfig:
        """Return the DUT with a tunnel, as parse_tunnel reads it; None leaves it as it is.

        ConfigError where the DUT or its endpoints cannot have it.
        """
        if name is None or self.endpoints is None:
            return self
        if (lack := self.no_tunnel(name)) is not None:
            raise ConfigError(f"--tunnel {name} for {self.file}: {lack[0]}", lack[1])
        return replace(self, endpoints=replace(self.endpoints, tunnel=name))

    def no_tunnel(self, name: str) -> tuple[str, str] | None:
        """Return the reason why the DUT cannot have this tunnel, and the remedy; None: it can."""
        if name == NO_TUNNEL:
            return None
        if self.endpoints is None:
            return "it needs endpoints at its two ends", "add endpoints: (docs/configs.md)"
        through = parse_tunnel(name)
        if self.driver != "linux" and through.between != CLIENT_SERVER:
            return f"driver {self.driver} cannot set one", "remove it, or use driver linux"
        if self.transport.type == "console" and through.between == CLIENT_DUT and through.kind != "wireguard":
            what = "this end of the tunnel is a program, which a virtual machine's console cannot keep running"
            return what, "use wireguard, or a tunnel between client and server"
        return replace(self.endpoints, tunnel=name).no_tunnel

    @property
    def chosen_twin(self) -> TwinSpec:
        """Twin of its variant; ConfigError where the config does not describe one."""
        if self.twin is None:
            raise ConfigError(f"{self.file} describes no twin", TWIN_REMEDY)
        if self.variant is None:
            return self.twin
        stated = dict(self.twin.variants).get(self.variant)
        if stated is None and replace(self.chosen, tunnel=None, wan=None) == Variant():
            return self.twin
        if stated is None:
            raise ConfigError(
                f"the twin of {self.name} does not describe variant {self.variant}",
                f"state twin.variants.{self.variant} in {self.file}, as in {{cycles_per_packet: 3000}}",
            )
        return stated.applied_to(self.twin)

    def with_lab_prefix(self, prefix: str) -> DutConfig:
        """Return the DUT with this prefix for its lab's namespaces and VPP, so that labs can run side by side.

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
    """Return the CLI socket of the VPP of the lab with this prefix."""
    return f"/run/trexbench-vpp/{prefix}/cli.sock"
