"""Settings that TCP tests need on the three hosts: the router's sides, each endpoint as a Linux host; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..config.endpoints import End, EndpointsConfig
from ..config.model import DutConfig, Neighbour, Port, Route
from ..config.readers import Address, Interface
from .settings import TUNNEL_NAME, SixInFourEnd, Wanted


def router_wanted(config: DutConfig, host_facts: Mapping[str, Any] | None = None, tunnelled: bool = False) -> Wanted:
    """Settings of the DUT, with its sides towards the endpoints as ports 0 and 1 (one, where they share it).

    The ports towards the tester are left alone. host_facts: see Wanted. tunnelled: its last port is a tunnel to the
    server.
    """
    cabled, tunnel = _on_cables(config), None
    hosts = [own.ip for host in (cabled.client, cabled.server) for own in host.addresses]
    if tunnelled and (side := cabled.server.dut) is not None:
        outer, tunnel = _split(side, cabled.server.addresses)
        cabled = replace(cabled, server=replace(cabled.server, dut=outer))
    ports = [_port(index, side, hosts) for index, side in enumerate(cabled.sides)]
    if tunnel is not None:
        ports.append(_port(len(ports), End(TUNNEL_NAME, tunnel.addresses), hosts))
    router = replace(config, cables=tuple(ports), routes=(), rx_queues=())
    return Wanted(router, host_facts=host_facts or {}, tcp=True, tunnel=tunnel)


def _split(side: End, others: Iterable[Interface]) -> tuple[End, SixInFourEnd]:
    """Split off the end of a tunnel to the host with these addresses; IPv4 stays on the side's own interface."""
    local, remote = (next(own.ip for own in all_of if own.version == 4) for all_of in (side.addresses, others))
    inner = tuple(own for own in side.addresses if own.version == 6)
    outer = tuple(own for own in side.addresses if own.version == 4)
    return End(side.interface, outer), SixInFourEnd(side.interface, local, remote, inner)


def endpoint_wanted(config: DutConfig, role: str, tunnelled: bool = False) -> Wanted:
    """Settings of the client or the server: its addresses, and routes to the other's networks through the DUT.

    tunnelled: as for the router, whose tunnel ends at the server.
    """
    host, other = next((host, other) for name, host, other in _on_cables(config).roles if name == role)
    if role == "client":
        other = config.hosts.server
    side, tunnel = End(host.interface, host.addresses), None
    if tunnelled and role == "server" and host.dut is not None:
        side, tunnel = _split(side, host.dut.addresses)
    outer = {own.version for own in side.addresses}
    cables = [_port(0, side, [hop for hop in host.hops if hop.version in outer])]
    cables += [_port(1, host.bypass, ())] if host.bypass is not None else []
    if tunnel is not None:
        inner = [hop for hop in host.hops if hop.version not in outer]
        cables.append(_port(len(cables), End(TUNNEL_NAME, tunnel.addresses), inner))
    hops = {hop.version: hop for hop in host.hops}
    routes = tuple(Route(own.network, hops[own.version]) for own in other.addresses if own.version in hops)
    wanted = DutConfig(
        f"{config.name}-{role}",
        config.file,
        "linux",
        tuple(cables),
        host.transport,
        routes,
        description=f"the {role} of {config.name}",
        called=config.called,
    )
    return Wanted(wanted, forwards=False, tcp=True, tunnel=tunnel)


def _on_cables(config: DutConfig) -> EndpointsConfig:
    """Return the hosts; with PPPoE server and DUT without addresses on their cable, which the session has."""
    hosts = config.hosts
    if not config.dials_in:
        return hosts
    side = replace(hosts.server.dut, addresses=()) if hosts.server.dut is not None else None
    return replace(hosts, server=replace(hosts.server, addresses=(), gateway=(), dut=side))


def _port(index: int, end: End, others: Iterable[Address]) -> Port:
    neighbour = Neighbour(tuple(others), pinned=False)  # hosts answer ARP
    return Port(tester=index, interface=end.interface, addresses=end.addresses, neighbour=neighbour)
