"""The hosts that test a router with TCP, how each is reached and cabled, and what is put between them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

from ..core.errors import ConfigError
from ..core.tcp.tunnel import CLIENT_SERVER, DUT_SERVER, KINDS, NO_TUNNEL, Tunnel, parse_tunnel
from ..core.tcp.wan import parse_wan
from . import readers as r
from .commands import pattern
from .readers import Address, Interface, section
from .yamltree import Value

PPP_INTERFACE = "tbppp0"
"""Name of a PPPoE session's interface, on the server and on a DUT that trexbench dials from."""
_WORD = r"[A-Za-z0-9][A-Za-z0-9@._-]*"


@dataclass(frozen=True)
class TransportConfig:
    """Way to reach a host: a DUT, or an endpoint of TCP tests.

    type: ``netns`` (namespace), ``local`` or ``ssh`` (host, user, port); ``cli``, a prompt behind ssh; ``console``, of
    a lab's virtual machine (namespace: its name); or UNREACHED.
    host: or a name of the user's ssh config, which also decides user and port where they are None. platform: netmiko's
    name. password_env, password_file: where the password of ``cli`` is; key_file: a key. refusal: a pattern of what the
    device prints when it refuses a command, which has no exit code there.
    """

    type: Annotated[str, r.choice("netns", "local", "ssh", "cli", "console")]
    namespace: Annotated[str | None, r.namespace] = None
    host: Annotated[str | None, r.host] = None
    user: Annotated[str | None, r.user] = None
    port: Annotated[int | None, r.integer(1, 65535)] = None
    platform: Annotated[str | None, r.platform] = None
    password_env: Annotated[str | None, r.variable] = None
    password_file: Annotated[str | None, r.path] = None
    key_file: Annotated[str | None, r.path] = None
    refusal: Annotated[str | None, pattern()] = None


@dataclass(frozen=True)
class TunnelParts:
    """Parts of a tunnel by name, in the words of parse_tunnel."""

    kind: Annotated[str, r.choice(*KINDS)]
    between: Annotated[str | None, r.text] = None
    mtu: Annotated[str | None, r.text] = None
    cipher: Annotated[str | None, r.text] = None


@dataclass(frozen=True)
class WanParts:
    """Parts of a WAN by name, in the words of parse_wan."""

    delay: Annotated[str | None, r.text] = None
    rate: Annotated[str | None, r.text] = None
    queue: Annotated[str | None, r.text] = None
    loss: Annotated[str | None, r.text] = None
    jitter: Annotated[str | None, r.text] = None


tunnel = r.by_parts(TunnelParts, "a tunnel", lambda text: str(parse_tunnel(text)))
wan = r.by_parts(WanParts, "a WAN", parse_wan)


def _two(value: Value) -> tuple[str, ...]:
    interfaces = r.each_of(value.items("interface"), r.interface)
    if len(set(interfaces)) != 2 or len(interfaces) != 2:
        raise ConfigError("a WAN host stands between two cables", "name both interfaces, as in [eth0, eth1]")
    return interfaces


@dataclass(frozen=True)
class WanHost:
    """A Linux host in the path that makes the WAN in the DUT's place: a bridge, set up by hand.

    interfaces: the two that the path goes through, each of which delays what leaves by it.
    """

    transport: Annotated[TransportConfig, section(TransportConfig, "a transport")]
    interfaces: Annotated[tuple[str, ...], _two]


@dataclass(frozen=True)
class PppoeConfig:
    """Credentials of a router that dials in to the server, the provider. secret_env: the environment variable with its
    secret. service: a name that it may ask for; empty: it asks for none.
    """

    user: Annotated[str, r.pattern(_WORD, "a user's name", "router@provider")]
    secret_env: Annotated[str, r.variable]
    service: Annotated[str, r.pattern(_WORD, "a service's name", "internet")] = ""

    def secret(self) -> str:
        """ConfigError where the environment has none."""
        secret = os.environ.get(self.secret_env, "")
        if not secret:
            what = f"the environment has no {self.secret_env}, the secret that the router dials in with"
            raise ConfigError(what, f"export {self.secret_env}=...")
        return secret


@dataclass(frozen=True)
class End:
    """An interface and its addresses, of each family one at most."""

    interface: Annotated[str, r.interface]
    addresses: Annotated[tuple[Interface, ...], r.interface_addresses, "address"]


@dataclass(frozen=True)
class EndpointConfig(End):
    """One host, and its cable to the DUT.

    dut: the other end of the cable, which a driver that knows Linux configures; its addresses are this host's next
    hop. gateway: the next hop of a router that is taken as it is. bypass: this host's end of a cable that leads to the
    other host and not through the DUT. cpus: on which its programs run; none: any.
    """

    transport: Annotated[TransportConfig, section(TransportConfig, "a transport")]
    dut: Annotated[End | None, section(End, "the DUT's side")] = None
    gateway: Annotated[tuple[Address, ...], r.addresses] = ()
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
            replace(one, transport=replace(one.transport, namespace=lab_namespace(prefix, role)))
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
        between = self.through.between
        if self.through.kind == NO_TUNNEL:
            return None
        hosts = {role: host for role, host, _ in self.roles if role == "server" or between != DUT_SERVER}
        ends = [host.addresses for host in hosts.values()]
        for role, host in hosts.items() if between != CLIENT_SERVER else ():
            if host.dut is None:
                return f"the router's side of the {role}'s cable is not known", f"name it as endpoints.{role}.dut"
            ends.append(host.dut.addresses)
        versions = set.intersection(*({own.version for own in end} for end in ends))
        if between == DUT_SERVER and versions != {4, 6}:
            return "server and DUT need addresses of both families there", "add them: 6in4 carries IPv6 in IPv4"
        return None if 4 in versions else ("its ends need addresses of IPv4", "add them: its outer packets are IPv4")


def lab_namespace(prefix: str, role: str) -> str:
    """Name of a lab's namespace, by who is in it: tester, dut, client or server."""
    return f"{prefix}-{role}"
