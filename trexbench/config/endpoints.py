"""The hosts that test a router with TCP: how each is reached, and how it is cabled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

from ..core.tcp.tunnel import CLIENT_DUT, NO_TUNNEL, Tunnel, parse_tunnel
from . import readers as r
from .pppoe import PppoeConfig
from .readers import Address, Interface, section
from .transport import TransportConfig
from .tunnel import tunnel

ROLES = ("client", "server")


@dataclass(frozen=True)
class End:
    """An interface and its addresses, of each family one at most."""

    interface: Annotated[str, r.interface]
    addresses: Annotated[tuple[Interface, ...], r.one_or_more("address", r.interface_address), "address"]


@dataclass(frozen=True)
class EndpointConfig(End):
    """One host, and its cable to the DUT.

    dut: the other end of the cable, which a driver that knows Linux configures; its addresses are this host's next
    hop. gateway: the next hop of a router that is taken as it is. bypass: this host's end of a cable that leads to the
    other host and not through the DUT. cpus: on which its programs run; none: any.
    """

    transport: Annotated[TransportConfig, section(TransportConfig, "a transport")]
    dut: Annotated[End | None, section(End, "the DUT's side")] = None
    gateway: Annotated[tuple[Address, ...], r.one_or_more("address", r.address)] = ()
    bypass: Annotated[End | None, section(End, "a bypass")] = None
    cpus: Annotated[tuple[int, ...], r.integers(0, 4095)] = ()

    @property
    def hops(self) -> tuple[Address, ...]:
        """Its next hop to the other host, of each family one."""
        return tuple(one.ip for one in self.dut.addresses) if self.dut is not None else self.gateway


@dataclass(frozen=True)
class EndpointsConfig:
    """client: opens the connections; server: accepts them. tunnel: in the words of parse_tunnel.

    pppoe: the router dials in to the server by itself; None: it does not.
    """

    client: Annotated[EndpointConfig, section(EndpointConfig, "an endpoint")]
    server: Annotated[EndpointConfig, section(EndpointConfig, "an endpoint")]
    tunnel: Annotated[str, tunnel] = NO_TUNNEL
    pppoe: Annotated[PppoeConfig | None, section(PppoeConfig, "PPPoE")] = None

    @property
    def roles(self) -> Iterator[tuple[str, EndpointConfig, EndpointConfig]]:
        """Each endpoint by its role, with the other one."""
        yield "client", self.client, self.server
        yield "server", self.server, self.client

    @property
    def versions(self) -> tuple[int, ...]:
        """IP versions that can be tested: 4, 6 or both, by the client's addresses; only IPv4 where the router dials in
        by itself, and inside a tunnel that does not run between DUT and server."""
        if self.pppoe is not None or self.through.is_opened:
            return (4,)
        return tuple(sorted({own.version for own in self.client.addresses}))

    @property
    def sides(self) -> tuple[End, ...]:
        """The DUT's interfaces towards them, each once, with all of its addresses."""
        merged: dict[str, tuple[Interface, ...]] = {}
        for one in (self.client.dut, self.server.dut):
            if one is not None:
                merged[one.interface] = (*merged.get(one.interface, ()), *one.addresses)
        return tuple(End(name, addresses) for name, addresses in merged.items())

    def in_namespaces(self, prefix: str) -> EndpointsConfig:
        """Return these hosts in the namespaces of the lab with this prefix."""
        client, server = (
            replace(one, transport=replace(one.transport, namespace=endpoint_namespace(prefix, role)))
            for role, one, _ in self.roles
        )
        return replace(self, client=client, server=server)

    @property
    def through(self) -> Tunnel:
        """The tunnel that is asked for."""
        return parse_tunnel(self.tunnel)

    @property
    def no_tunnel(self) -> tuple[str, str] | None:
        """Reason why the requested tunnel is impossible, and the remedy; None: it is possible."""
        if self.through.is_opened:
            return self._not_opened
        if self.through.kind == NO_TUNNEL:
            return None
        if self.server.dut is None:
            return "the router's side of the server's cable is not known", "name it as endpoints.server.dut"
        for addresses in (self.server.addresses, self.server.dut.addresses):
            if {own.version for own in addresses} != {4, 6}:
                return "server and DUT need addresses of both families there", "add them: 6in4 carries IPv6 in IPv4"
        return None

    @property
    def _not_opened(self) -> tuple[str, str] | None:
        """Return no_tunnel for a tunnel between client and server, or client and DUT."""
        ends = [self.client.addresses, self.server.addresses]
        if self.through.between == CLIENT_DUT:
            if self.client.dut is None or self.server.dut is None:
                return (
                    "the router's sides of the cables are not known",
                    "name them as endpoints.client.dut and server.dut",
                )
            ends += [self.client.dut.addresses]
        if any(4 not in {own.version for own in end} for end in ends):
            return "its ends need addresses of IPv4", "add them: its outer packets are IPv4"
        return None


def endpoint_namespace(prefix: str, role: str) -> str:
    return f"{prefix}-{role}"
