"""Demands of TCP tests on the three hosts: the router's sides, and each endpoint as a Linux host with routes; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..config.endpoints import End, EndpointsConfig
from ..config.model import DutConfig, Neighbour, Port, Route
from ..config.readers import Address, Interface
from .model import TUNNEL_NAME, SixInFourEnd, Wanted


def router_wanted(config: DutConfig, host_facts: Mapping[str, Any] | None = None, tunnelled: bool = False) -> Wanted:
    """The DUT with its sides towards the endpoints as ports 0 and 1 (one of them only, where they share it).

    Nothing is wanted of the ports towards the tester. host_facts: see Wanted. tunnelled: its last port is
    a tunnel to the server.
    """
    found, tunnel = _on_cables(config), None
    hosts = [own.ip for one in (found.client, found.server) for own in one.addresses]
    if tunnelled and (side := found.server.dut) is not None:
        outer, tunnel = _into(side, found.server.addresses)
        found = replace(found, server=replace(found.server, dut=outer))
    ports = [_port(index, side, hosts) for index, side in enumerate(found.sides)]
    if tunnel is not None:
        ports.append(_port(len(ports), End(TUNNEL_NAME, tunnel.addresses), hosts))
    router = replace(config, cables=tuple(ports), routes=(), rx_queues=())
    return Wanted(router, host_facts=host_facts or {}, tcp=True, tunnel=tunnel)


def _into(side: End, others: Iterable[Interface]) -> tuple[End, SixInFourEnd]:
    """Return what stays on this side's own interface, and its end of the tunnel to the host with these addresses."""
    local, remote = (next(own.ip for own in all_of if own.version == 4) for all_of in (side.addresses, others))
    inner = tuple(own for own in side.addresses if own.version == 6)
    outer = tuple(own for own in side.addresses if own.version == 4)
    return End(side.interface, outer), SixInFourEnd(side.interface, local, remote, inner)


def endpoint_wanted(config: DutConfig, role: str, tunnelled: bool = False) -> Wanted:
    """The client or the server: its addresses, and a route to the other's networks through the DUT; no forwarding.

    tunnelled: as for the router, whose tunnel ends at the server.
    """
    one, other = next((one, other) for name, one, other in _on_cables(config).roles if name == role)
    if role == "client":
        other = config.hosts.server
    own_side, tunnel = End(one.interface, one.addresses), None
    if tunnelled and role == "server" and one.dut is not None:
        own_side, tunnel = _into(own_side, one.dut.addresses)
    outer = {own.version for own in own_side.addresses}
    cables = [_port(0, own_side, [hop for hop in one.hops if hop.version in outer])]
    cables += [_port(1, one.bypass, ())] if one.bypass is not None else []
    if tunnel is not None:
        inner = [hop for hop in one.hops if hop.version not in outer]
        cables.append(_port(len(cables), End(TUNNEL_NAME, tunnel.addresses), inner))
    hops = {hop.version: hop for hop in one.hops}
    routes = tuple(Route(own.network, hops[own.version]) for own in other.addresses if own.version in hops)
    host = DutConfig(
        f"{config.name}-{role}",
        config.file,
        "linux",
        tuple(cables),
        one.transport,
        routes,
        description=f"the {role} of {config.name}",
        called=config.called,
    )
    return Wanted(host, forwards=False, tcp=True, tunnel=tunnel)


def _on_cables(config: DutConfig) -> EndpointsConfig:
    """With PPPoE server and DUT have no addresses on the cable between them: the session has them."""
    found = config.hosts
    if not config.dials_in:
        return found
    side = replace(found.server.dut, addresses=()) if found.server.dut is not None else None
    return replace(found, server=replace(found.server, addresses=(), gateway=(), dut=side))


def _port(index: int, end: End, others: Iterable[Address]) -> Port:
    """Nobody at its other end needs to be pinned: hosts answer ARP."""
    neighbour = Neighbour(tuple(others), pinned=False)
    return Port(tester=index, interface=end.interface, addresses=end.addresses, neighbour=neighbour)
