"""Changes that a driver makes on a DUT and their undo, what it reads back, and the drivers' interface."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Protocol

from ..config.model import DRIVERS, DutConfig, Port, Route
from ..config.readers import Address, Interface, Network
from ..core.dut.rss import MICROSOFT_KEY, PortHash, Spreading
from ..core.dut.telemetry import Observation
from ..core.errors import ConfigError, DutError, NoInterface
from ..core.load.headers import NAMES, tag_types
from ..transport import TIMEOUT_S, Transport
from ..transport.words import typed


def ends_of(network: Network) -> tuple[Address, ...]:
    """Lowest and highest host of a network, to ask a DUT about: a more specific route may lead them elsewhere."""
    if network.num_addresses <= 2:
        return (network.network_address,)
    return network.network_address + 1, network.broadcast_address - 1


@dataclass(frozen=True)
class Vlan:
    """Interface of one VLAN on another; protocol: ``802.1Q`` or ``802.1ad``."""

    name: str
    parent: str
    tag: int
    protocol: str

    def __str__(self) -> str:
        return f"VLAN {self.tag} ({self.protocol}) of {self.parent}"


NO_DEVICE = "Unknown device type"
TUNNEL_NAME = "tb6in4"
"""Name of the tunnel's interface, on both hosts."""


@dataclass(frozen=True)
class SixInFourEnd:
    """Host's end of a 6in4 tunnel, which leaves by ``parent`` from local to remote."""

    parent: str
    local: Address
    remote: Address
    addresses: tuple[Interface, ...] = ()
    """Addresses inside the tunnel, which the parent must not have as well."""

    name = TUNNEL_NAME
    kind = "6in4"
    ttl = 255

    @property
    def device(self) -> tuple[str, ...]:
        """Linux command that makes the interface; it prints NO_DEVICE where the kernel cannot."""
        ends = ("local", str(self.local), "remote", str(self.remote), "ttl", str(self.ttl))
        return ("ip", "link", "add", "name", self.name, "type", "sit", *ends)


@dataclass(frozen=True)
class Wanted:
    """DUT's config, and what only the run knows."""

    config: DutConfig
    tester_macs: Mapping[int, str] = field(default_factory=dict)
    """MAC of each of the tester's ports, to which neighbours with ``mac: tester`` are pinned."""
    rx_queues: int | None = None
    """Receive queues of each port; None leaves them as they are."""
    host_facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts that only the host of a DUT in a namespace can see."""
    forwards: bool = True
    """It is a router, not an endpoint."""
    tcp: bool = False
    """For TCP between hosts: turn off redirects, by which they would bypass the router, and read TCP's settings."""
    tunnel: SixInFourEnd | None = None

    @property
    def variant(self) -> str | None:
        """Name of the variant and the tunnel, whose changes are undone before others are set."""
        tunnel = self.tunnel.kind if self.tunnel is not None else None
        return " in ".join(filter(None, (self.config.variant, tunnel))) or None

    @property
    def without_tunnel(self) -> Wanted:
        """Copy without the tunnel's interface and its routes."""
        ports = tuple(p for p in self.config.ports if self.tunnel is None or p.interface != self.tunnel.name)
        hops = {hop for port in ports for hop in port.neighbour.addresses}
        routes = tuple(route for route in self.config.routes if route.via in hops)
        return replace(self, config=replace(self.config, cables=ports, routes=routes))

    @property
    def interfaces(self) -> tuple[str, ...]:
        """Interfaces of the test, in the config's order."""
        return tuple(port.interface for port in self.config.ports)

    def mac(self, port: Port) -> str:
        """MAC that this port's neighbour is pinned to; ConfigError where it is not known."""
        mac = port.neighbour.mac or self.tester_macs.get(port.tester)
        if not mac:
            raise ConfigError(
                f"{self.config.file}: port {port.tester}: the generator did not name the MAC of its port {port.tester}",
                "write neighbour.mac in place of 'tester'",
            )
        return mac.lower()

    def vlans(self, port: Port) -> tuple[Vlan, ...]:
        """List the interfaces to make on the port's own, of which the last has the addresses; none without ``vlan``."""
        vlans, parent, pattern = list[Vlan](), port.interface, DRIVERS[self.config.driver].vlan_name
        for level, tag in enumerate(port.vlan):
            tags = ".".join(map(str, port.vlan[: level + 1]))
            # above all VLAN tags, after which others may have named interfaces of theirs
            number, both = 4100 + 2 * port.tester + level, 10000 * port.vlan[0] * level + tag
            name = pattern.format(port=port, tags=tags, number=number, both=both)
            vlans.append(Vlan(name, parent, tag, NAMES[tag_types(len(port.vlan))[level]]))
            parent = name
        return tuple(vlans)

    def routed(self, port: Port) -> str:
        """Interface that has the port's addresses: its own, or its VLAN's."""
        return self.vlans(port)[-1].name if port.vlan else port.interface

    def port_of(self, route: Route) -> Port:
        """Port that a route's traffic leaves by."""
        return next(port for port in self.config.ports if route.via in port.neighbour.addresses)

    def hop(self, route: Route) -> str:
        """Describe where a route's traffic leaves, ``via 1.2.3.4 dev d0``."""
        return f"via {route.via} dev {self.routed(self.port_of(route))}"


def same_family(addresses: Iterable[str], own: Interface) -> str:
    """List the addresses of the same IP version as ``own``, in words."""
    return ", ".join(address for address in addresses if (":" in address) == (own.version == 6)) or "none"


def counted(count: int, noun: str) -> str:
    """Put a number before a noun, with its plural."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def require_interfaces(config: DutConfig, facts: Mapping[str, Any]) -> None:
    """Raise NoInterface, before anything is changed, for an interface of the config that the DUT does not have."""
    for name in (port.interface for port in config.ports):
        if facts["interfaces"].get(name) is None:
            there = ", ".join(facts["links"]) or "none"
            what = f"{config.name}: there is no interface {name}, only {there}"
            raise NoInterface(what, "correct ports[].interface")


@dataclass(frozen=True)
class Command:
    """One command, why it is run, and how its outcome is judged."""

    argv: tuple[str, ...]
    why: str
    input: str | None = None
    fine_if: tuple[str, ...] = ()
    """A failure whose output contains one of these is none: nothing was left to do."""
    says: str | None = None
    """Whole output of success, for programs whose exit code is always 0; None: any output."""
    timeout_s: float = TIMEOUT_S
    retry_s: float = 0.0
    """Run it again until it succeeds, for this long at most."""
    remedy: tuple[str, str] | None = None
    """Words of its output, and what helps where they are there."""

    def __str__(self) -> str:
        return typed(self.argv)


@dataclass(frozen=True)
class Change:
    """One setting of the DUT, the commands that change it, and those that undo the change."""

    what: str
    was: str | None
    """Former value; None where it is not known."""
    wanted: str
    do: tuple[Command, ...]
    undo: tuple[Command, ...]
    lasts: bool = False
    """It is written to the DUT's disk and outlives a restart of the DUT, or of its daemon."""
    reveals: bool = False
    """Other changes show only after it, in the next plan: new queues have interrupts of their own."""
    variant: str | None = None
    """Variant of the DUT that asks for it; None: all do."""

    def __str__(self) -> str:
        return f"{self.what}: {self.wanted}" + (f" (was {self.was})" if self.was is not None else "")


@dataclass(frozen=True)
class Mismatch:
    """Setting that differs from the config. remedy: what a person can do where no driver can."""

    what: str
    wanted: str
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.what}: wanted {self.wanted}, found {self.found}" + (f" ({self.remedy})" if self.remedy else "")


class LinkDown(Mismatch):
    """Link that is down; it may be negotiating."""


def unmet(changes: Iterable[Change]) -> list[Mismatch]:
    """Turn the changes of a plan into mismatches."""
    return [Mismatch(c.what, c.wanted, "unknown" if c.was is None else c.was) for c in changes]


def resolver(address: Address) -> str:
    """Name the protocol that asks for the MAC of an address, which the tester does not answer."""
    return "ARP" if address.version == 4 else "neighbour solicitation"


def is_inside(network: Network, other: Network) -> bool:
    """Test whether one network is part of the other, or equal to it; False for two of different families."""
    if isinstance(network, IPv4Network):
        return isinstance(other, IPv4Network) and network.subnet_of(other)
    return isinstance(other, IPv6Network) and network.subnet_of(other)


def compare_route(
    config: DutConfig, route: Route, hop: str, table: Iterable[tuple[str, Sequence[str]]]
) -> list[Mismatch]:
    """Require the route with this hop only, and no more specific one that takes a part of its traffic elsewhere.

    table: networks of the DUT's routing table with their hops; a network may occur more than once.
    """
    ours, hops, wrong = {other.to for other in config.routes}, list[str](), list[Mismatch]()
    for to, its_hops in table:
        network = ip_network(to)
        if network == route.to:
            hops += its_hops
        elif network not in ours and is_inside(network, route.to) and list(its_hops) != [hop]:
            wrong.append(Mismatch(f"routes inside {route.to}", "none", f"{to} {' and '.join(its_hops)}"))
    if hops != [hop]:
        wrong.insert(0, Mismatch(f"route {route.to}", hop, " and ".join(hops) or "none"))
    return wrong


@dataclass(frozen=True)
class Attestation:
    """Result of reading a DUT back."""

    dut: str
    driver: str
    attested: bool
    """False where nothing was read; ``facts`` then give the reason."""
    facts: Mapping[str, Any]
    """JSON values; None where the DUT did not report one, which is then listed under ``unknown``."""
    mismatches: Sequence[Mismatch] = ()
    spreading: Spreading | None = None
    """Service of the DUT's queues by its CPUs; None where it was not read."""
    changed: Sequence[Change] = ()
    platform: Mapping[str, str] = field(default_factory=dict)
    """Firmware and board of its host: no part of the configuration, nor of the digest."""
    doubts: Sequence[str] = ()
    """Settings that the DUT may undo by itself, with their remedy."""

    @property
    def reason(self) -> str:
        """Reason why nothing was read back; empty where it was."""
        return "" if self.attested else str(self.facts["not attested"])

    @property
    def digest(self) -> str:
        """SHA-256 of the facts: two runs with the same digest measured the same configuration."""
        return hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode()).hexdigest()

    def to_document(self) -> dict[str, Any]:
        return {
            "dut": self.dut,
            "driver": self.driver,
            "attested": self.attested,
            "applied": [asdict(command) for change in self.changed for command in change.do],
            "facts": dict(self.facts),
            "facts_sha256": self.digest if self.attested else None,
            "platform": dict(self.platform),
            "mismatches": [asdict(mismatch) for mismatch in self.mismatches],
            "spreading": asdict(self.spreading) if self.spreading else None,
        }

    def require_match(self) -> Attestation:
        """Return itself; DutError with all mismatches where there are some."""
        if self.mismatches:
            raise DutError(self.in_words("is not"), "correct the DUT or its config")
        return self

    def in_words(self, verb: str) -> str:
        return f"{self.dut} {verb} what its config says: {'; '.join(map(str, self.mismatches))}"


def not_attested(config: DutConfig, reason: str = "--no-apply") -> Attestation:
    """Attestation of a DUT that was configured by hand."""
    return Attestation(config.name, config.driver, False, {"not attested": reason})


def attest(
    wanted: Wanted,
    facts: Mapping[str, Any],
    mismatches: Sequence[Mismatch],
    spreading: Spreading,
    platform: Mapping[str, str] | None = None,
) -> Attestation:
    """Attestation of a DUT that was read: its facts, what only its host knows, and what is unknown."""
    known = {**facts, **{key: value for key, value in wanted.host_facts.items() if facts.get(key) is None}}
    known["unknown"] = sorted(name for name, value in known.items() if value is None)
    config = wanted.config
    spread = with_config_rss(spreading, config)
    return Attestation(config.name, config.driver, True, known, tuple(mismatches), spread, platform=platform or {})


def with_config_rss(spreading: Spreading, config: DutConfig) -> Spreading:
    """Return the spreading with the config's ``rss:`` for every port whose hash the DUT itself does not report."""
    stated = config.rss
    if stated is None or stated.key == "random":
        return spreading
    queues = Counter(place.port for place in spreading.queues)
    reported = {rss.port: rss for rss in spreading.hashes if rss.key is not None}
    key = MICROSOFT_KEY.hex() if stated.key == "microsoft" else stated.key.replace(":", "").lower()
    hashes = (
        reported.get(port)
        or PortHash(port, key, stated.fields, tuple(entry % queues[port] for entry in range(stated.table)))
        for port in sorted(queues)
    )
    return replace(spreading, hashes=tuple(hashes))


class Identified(Protocol):
    """Something whose changes can be reverted."""

    def identity(self) -> str:
        """Return a string that changes whenever it forgets what was set: when it, or its daemon, restarts."""


class Dut(Identified, Protocol):
    """Router under test, behind a transport. Every method may raise DutError."""

    def plan(self) -> Sequence[Change]:
        """Return the changes to make now, in order; none where the DUT is as its config says."""

    def verify(self) -> Attestation:
        """Read back everything the config asks for, and what else affects the result."""

    def observe(self, clear: bool = False) -> Observation:
        """Read its counters. clear: begin an interval; VPP's runtime counts from zero after it."""


@dataclass(frozen=True)
class ListedInterface:
    """Interface of a DUT. in_use: it has an address, and may be how the DUT is reached. queues: most it can have."""

    name: str
    in_use: bool = False
    queues: int | None = None


@dataclass(frozen=True)
class Listing:
    """Command that lists interfaces, and the parser of its output."""

    argv: tuple[str, ...]
    read: Callable[[str], list[ListedInterface]]
    queues: tuple[tuple[str, ...], Callable[[str], int | None]] | None = None
    """Command that, with an interface's name behind it, prints how many queues it can have; and its parser."""


@dataclass(frozen=True)
class DutDriver:
    """Driver as the rest of the program uses it: ``DRIVER`` in the driver.py of its folder."""

    open: Callable[[Wanted, Transport], Dut]
    """Opens the DUT of a config, reached by a transport."""
    listing: Listing | None = None
    """Lists the interfaces that could be cabled to a tester; None where it cannot."""
