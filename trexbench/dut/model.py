"""Changes that a driver makes on a DUT, how each is undone, and what was read back."""

from __future__ import annotations

import hashlib
import json
import time
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

LINK_WAIT_S = 10.0
"""Time for which a port that was just set up may negotiate."""
_LINK_EVERY_S = 0.25


def ends_of(network: Network) -> tuple[Address, ...]:
    """A route's lowest and highest host, to ask a DUT about: a more specific route may lead them elsewhere."""
    if network.num_addresses <= 2:
        return (network.network_address,)
    return network.network_address + 1, network.broadcast_address - 1


@dataclass(frozen=True)
class Vlan:
    """An interface of one VLAN on another. protocol: ``802.1Q`` or ``802.1ad``."""

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
    """A host's end of a 6in4 tunnel, which leaves by ``parent`` from local to remote.

    addresses: those inside of it, which the parent must not have as well.
    """

    parent: str
    local: Address
    remote: Address
    addresses: tuple[Interface, ...] = ()

    name = TUNNEL_NAME
    kind = "6in4"
    ttl = 255

    @property
    def device(self) -> tuple[str, ...]:
        """The Linux command that makes its interface; NO_DEVICE is in what it prints where the kernel cannot."""
        ends = ("local", str(self.local), "remote", str(self.remote), "ttl", str(self.ttl))
        return ("ip", "link", "add", "name", self.name, "type", "sit", *ends)


@dataclass(frozen=True)
class Wanted:
    """A DUT's config, and what only the run knows.

    tester_macs: MAC of each of the tester's ports, which neighbours are pinned to where the config says ``mac:
    tester``. rx_queues: per port; None leaves them as they are. host_facts: of a DUT in a namespace, what only
    its host can see. forwards: it is a router, not an endpoint. tcp: it is for TCP between hosts: redirects, by which
    these would leave the router out, are off, and what else affects TCP is read. tunnel: to the other end of one.
    """

    config: DutConfig
    tester_macs: Mapping[int, str] = field(default_factory=dict)
    rx_queues: int | None = None
    host_facts: Mapping[str, Any] = field(default_factory=dict)
    forwards: bool = True
    tcp: bool = False
    tunnel: SixInFourEnd | None = None

    @property
    def variant(self) -> str | None:
        """By which changes are known that are undone before another variant, or another tunnel, is set."""
        words = (self.config.variant, self.tunnel.kind if self.tunnel is not None else None)
        return " in ".join(filter(None, words)) or None

    @property
    def without_tunnel(self) -> Wanted:
        """Copy without the tunnel's interface, for as long as there is none."""
        name = self.tunnel.name if self.tunnel is not None else ""
        ports = tuple(port for port in self.config.ports if port.interface != name)
        hops = {hop for port in ports for hop in port.neighbour.addresses}
        routes = tuple(route for route in self.config.routes if route.via in hops)
        return replace(self, config=replace(self.config, cables=ports, routes=routes))

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The test's interfaces, in the config's order."""
        return tuple(port.interface for port in self.config.ports)

    def mac(self, port: Port) -> str:
        """The MAC that this port's neighbour is pinned to; ConfigError where it is not known."""
        mac = port.neighbour.mac or self.tester_macs.get(port.tester)
        if not mac:
            raise ConfigError(
                f"{self.config.file}: port {port.tester}: the generator did not name the MAC of its port {port.tester}",
                "write neighbour.mac in place of 'tester'",
            )
        return mac.lower()

    def vlans(self, port: Port) -> tuple[Vlan, ...]:
        """The interfaces to be made on the port's own, the last of them with its addresses; none without ``vlan``."""
        found, parent, pattern = list[Vlan](), port.interface, DRIVERS[self.config.driver].vlan_name
        for level, tag in enumerate(port.vlan):
            tags = ".".join(map(str, port.vlan[: level + 1]))
            # above all VLANs' own numbers, after which others may have named theirs
            number, both = 4100 + 2 * port.tester + level, 10000 * port.vlan[0] * level + tag
            name = pattern.format(port=port, tags=tags, number=number, both=both)
            found.append(Vlan(name, parent, tag, NAMES[tag_types(len(port.vlan))[level]]))
            parent = name
        return tuple(found)

    def routed(self, port: Port) -> str:
        """The interface that has the port's addresses: its own, or its VLAN's."""
        return self.vlans(port)[-1].name if port.vlan else port.interface

    def port_of(self, route: Route) -> Port:
        """The port that a route's traffic leaves by."""
        return next(port for port in self.config.ports if route.via in port.neighbour.addresses)


def same_family(addresses: Iterable[str], own: Interface) -> str:
    """List the addresses of the same IP version as ``own``, in words."""
    return ", ".join(one for one in addresses if (":" in one) == (own.version == 6)) or "none"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def require_interfaces(config: DutConfig, facts: Mapping[str, Any]) -> None:
    """NoInterface, before anything is changed, for one of the config that the DUT does not have."""
    for name in (port.interface for port in config.ports):
        if facts["interfaces"].get(name) is None:
            there = ", ".join(facts["links"]) or "none"
            what = f"{config.name}: interface {name} is not there, only {there}"
            raise NoInterface(what, "correct ports[].interface")


@dataclass(frozen=True)
class Command:
    """One command: argv, why it is run, its input.

    fine_if: output that contains one of these means that nothing was left to do: no failure. retry_s: run it again
    until it succeeds, for so long at most. says: its whole output when it succeeds, for programs whose exit code does
    not tell; None: any output. remedy: words of its output, and what helps where they are there.
    """

    argv: tuple[str, ...]
    why: str
    input: str | None = None
    fine_if: tuple[str, ...] = ()
    says: str | None = None
    timeout_s: float = TIMEOUT_S
    retry_s: float = 0.0
    remedy: tuple[str, str] | None = None

    def __str__(self) -> str:
        return typed(self.argv)


@dataclass(frozen=True)
class Change:
    """One setting of the DUT: name, former and wanted value, the commands that change it, and those that undo it.

    was: None where it is not known. lasts: written to the DUT's disk, so that it outlives a restart of the DUT (or of
    its daemon). reveals: what else has to be changed shows only afterwards (new queues have interrupts of their own);
    the next plan has it. variant: of the DUT that asks for it; None: its config does in any.
    """

    what: str
    was: str | None
    wanted: str
    do: tuple[Command, ...]
    undo: tuple[Command, ...]
    lasts: bool = False
    reveals: bool = False
    variant: str | None = None

    def __str__(self) -> str:
        return f"{self.what}: {self.wanted}" + (f" (was {self.was})" if self.was is not None else "")


@dataclass(frozen=True)
class Mismatch:
    """remedy: what a person can do about it, where no driver can."""

    what: str
    wanted: str
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.what}: wanted {self.wanted}, found {self.found}" + (f" ({self.remedy})" if self.remedy else "")


def unmet(changes: Iterable[Change]) -> list[Mismatch]:
    """Return what a plan would still change, as mismatches."""
    return [Mismatch(one.what, one.wanted, "unknown" if one.was is None else one.was) for one in changes]


def resolver(address: Address) -> str:
    """Name of the protocol that asks for the MAC of an address: the tester answers neither."""
    return "ARP" if address.version == 4 else "neighbour solicitation"


def is_inside(network: Network, other: Network) -> bool:
    """Test whether one network is part of the other, or equal to it; False for two of different families."""
    if isinstance(network, IPv4Network):
        return isinstance(other, IPv4Network) and network.subnet_of(other)
    return isinstance(other, IPv6Network) and network.subnet_of(other)


def compare_route(
    config: DutConfig, route: Route, hop: str, table: Iterable[tuple[str, Sequence[str]]]
) -> list[Mismatch]:
    """Nothing where the route is there once, alone, and no more specific one takes a part of its traffic elsewhere.

    table: the networks of the DUT's routing table, each with its hops; a network may be there more than once.
    """
    own, hops, wrong = {other.to for other in config.routes}, list[str](), list[Mismatch]()
    for to, found in table:
        inside = ip_network(to)
        if inside == route.to:
            hops += found
        elif inside not in own and is_inside(inside, route.to) and list(found) != [hop]:
            wrong.append(Mismatch(f"routes inside {route.to}", "none", f"{to} {' and '.join(found)}"))
    if hops != [hop]:
        wrong.insert(0, Mismatch(f"route {route.to}", hop, " and ".join(hops) or "none"))
    return wrong


@dataclass(frozen=True)
class Attestation:
    """Result of reading a DUT back. Not ``attested``: nothing was read, and ``facts`` say why.

    facts: JSON values; None where the DUT did not say, and then listed under ``unknown``. changed: what apply did
    before. spreading: how the DUT's queues are served; None: not read. platform: firmware and board of its host, no
    part of the configuration and so of the digest. doubts: what the DUT may undo by itself, and its remedy.
    """

    dut: str
    driver: str
    attested: bool
    facts: Mapping[str, Any]
    mismatches: Sequence[Mismatch] = field(default_factory=tuple)
    spreading: Spreading | None = None
    changed: Sequence[Change] = ()
    platform: Mapping[str, str] = field(default_factory=dict)
    doubts: Sequence[str] = ()

    @property
    def reason(self) -> str:
        """Why nothing was read back; empty where it was."""
        return "" if self.attested else str(self.facts["not attested"])

    @property
    def digest(self) -> str:
        """SHA-256 over the facts: two runs with the same one measured the same configuration."""
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
        """Itself; DutError with every mismatch where there is one."""
        if self.mismatches:
            raise DutError(self.in_words("is not"), "correct the DUT or its config")
        return self

    def in_words(self, verb: str) -> str:
        found = "; ".join(str(mismatch) for mismatch in self.mismatches)
        return f"{self.dut} {verb} what its config says: {found}"


def not_attested(
    config: DutConfig, reason: str = "--no-apply: nothing was applied and nothing was read back"
) -> Attestation:
    """The attestation of a DUT that was configured by hand."""
    return Attestation(config.name, config.driver, False, {"not attested": reason})


def attest(
    wanted: Wanted,
    facts: Mapping[str, Any],
    mismatches: Sequence[Mismatch],
    spreading: Spreading,
    platform: Mapping[str, str] | None = None,
) -> Attestation:
    """The attestation of a DUT that was read: its facts, what only its host knows, and what is not known."""
    told = {**facts, **{key: value for key, value in wanted.host_facts.items() if facts.get(key) is None}}
    told["unknown"] = sorted(name for name, value in told.items() if value is None)
    config = wanted.config
    spread = with_config_rss(spreading, config)
    return Attestation(config.name, config.driver, True, told, tuple(mismatches), spread, platform=platform or {})


def with_config_rss(spreading: Spreading, config: DutConfig) -> Spreading:
    """Return the spreading with the config's ``rss:`` for every port whose hash the DUT itself does not report."""
    stated = config.rss
    if stated is None or stated.key == "random":
        return spreading
    queues = Counter(place.port for place in spreading.queues)
    told = {one.port: one for one in spreading.hashes if one.key is not None}
    key = MICROSOFT_KEY.hex() if stated.key == "microsoft" else stated.key.replace(":", "").lower()
    hashes = (
        told.get(port)
        or PortHash(port, key, stated.fields, tuple(entry % queues[port] for entry in range(stated.table)))
        for port in sorted(queues)
    )
    return replace(spreading, hashes=tuple(hashes))


def await_links(up: Callable[[], bool], wait_s: float) -> None:
    """Wait until all ports that are set up have a link; compare names those that get none."""
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline and not up():
        time.sleep(_LINK_EVERY_S)


class Identified(Protocol):
    """Something whose changes can be reverted."""

    def identity(self) -> str:
        """A string that changes whenever it forgets what was set: when it, or its daemon, restarts."""


class Dut(Identified, Protocol):
    """A router under test, behind a transport. Every method may raise DutError."""

    def plan(self) -> Sequence[Change]:
        """Return the changes to make now, in order; none where the DUT is as its config says."""

    def verify(self) -> Attestation:
        """Read back everything the config asks for, and what else affects the result."""

    def observe(self, clear: bool = False) -> Observation:
        """Read its counters. clear: this reading begins an interval; VPP's runtime then counts from zero."""


@dataclass(frozen=True)
class ListedInterface:
    """An interface. in_use: it has an address, as the one has by which the DUT is reached. queues: it can have."""

    name: str
    in_use: bool = False
    queues: int | None = None


@dataclass(frozen=True)
class Listing:
    """argv: lists interfaces; read: what it prints. queues: tells of one, named behind it, how many it can have."""

    argv: tuple[str, ...]
    read: Callable[[str], list[ListedInterface]]
    queues: tuple[tuple[str, ...], Callable[[str], int | None]] | None = None


@dataclass(frozen=True)
class DutDriver:
    """A driver as the rest of the program uses it: ``DRIVER`` in the driver.py of its folder."""

    open: Callable[[Wanted, Transport], Dut]
    """The DUT of a config, reached by a transport."""
    listing: Listing | None = None
    """Lists the interfaces that could be cabled to a tester; None where it cannot."""
