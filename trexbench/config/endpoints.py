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
"""Name of a PPPoE session's interface, on the server and on a DUT on which trexbench dials in."""
_WORD = r"[A-Za-z0-9][A-Za-z0-9@._-]*"


@dataclass(frozen=True)
class TransportConfig:
    """Access to a host: a DUT, or an endpoint of TCP tests."""

    type: Annotated[str, r.choice("netns", "local", "ssh", "cli", "console")]
    """``netns``: a network namespace of this machine. ``local``: this machine. ``ssh``: a shell on a host. ``cli``: a
    prompt behind ssh, without a shell. ``console``: that of a lab's virtual machine."""
    namespace: Annotated[str | None, r.namespace] = None
    """Name of the namespace; in a lab unset, as ``lab.prefix`` decides it."""
    host: Annotated[str | None, r.host] = None
    """Address, or a name of your ssh config, which also decides user and port where they are not given."""
    user: Annotated[str | None, r.user] = None  # login of ssh
    port: Annotated[int | None, r.integer(1, 65535)] = None  # port of ssh
    platform: Annotated[str | None, r.platform] = None
    """Netmiko's name for the system behind the prompt of ``cli``: mikrotik_routeros."""
    password_env: Annotated[str | None, r.variable] = None
    """Environment variable with the password, for ``cli``."""
    password_file: Annotated[str | None, r.path] = None
    """File whose first line is the password, for ``cli``."""
    key_file: Annotated[str | None, r.path] = None
    """Private key without a passphrase, for ``cli``; with no key or password named, your agent and keys are tried."""
    refusal: Annotated[str | None, pattern()] = None
    """Pattern of what the device prints when it refuses a command, since those at a prompt have no exit code."""


@dataclass(frozen=True)
class TunnelParts:
    """Parts of a tunnel, each as in --tunnel."""

    kind: Annotated[str, r.choice(*KINDS)]  # see docs/tcp.md; none: no tunnel
    between: Annotated[str | None, r.text] = None
    """Its ends: ``client-server`` or ``client-dut``; unset: the first, or the DUT and the server (6in4)."""
    mtu: Annotated[str | None, r.text] = None  # of packets inside, 576 to 9000; unset: what the line leaves
    cipher: Annotated[str | None, r.text] = None
    """AES-256-GCM (unset), AES-128-GCM, or for openvpn CHACHA20-POLY1305; only openvpn and ipsec have a choice."""


@dataclass(frozen=True)
class WanParts:
    """Parts of a WAN, each as in --wan."""

    delay: Annotated[str | None, r.text] = None  # 20ms: added to the round trip, half each way; 2s at most
    rate: Annotated[str | None, r.text] = None  # 1gbit: each way, of Ethernet frames without FCS; unset: no limit
    queue: Annotated[str | None, r.text] = None
    """2.5mb: bytes that wait for the rate before frames are dropped; unset: the BDP, at least 10 ms at the rate."""
    loss: Annotated[str | None, r.text] = None  # 0.01%: share lost at random each way, half at most
    jitter: Annotated[str | None, r.text] = None
    """1ms: most by which a packet's delay differs each way, order kept; half of the delay at most."""


tunnel = r.by_parts(TunnelParts, "a tunnel", lambda text: str(parse_tunnel(text)))
wan = r.by_parts(WanParts, "a WAN", parse_wan)


@r.takes(type="array", items=r.interface, minItems=2, maxItems=2)
def _two(value: Value) -> tuple[str, ...]:
    interfaces = r.each_of(value.items("interface"), r.interface)
    if len(set(interfaces)) != 2 or len(interfaces) != 2:
        raise ConfigError("a WAN host stands between two cables", "name both interfaces, as in [eth0, eth1]")
    return interfaces


@dataclass(frozen=True)
class WanHost:
    """A Linux host in the path that makes the WAN in the DUT's place: a bridge, set up by hand."""

    transport: Annotated[TransportConfig, section(TransportConfig, "a transport")]  # as root, by netns, local or ssh
    interfaces: Annotated[tuple[str, ...], _two]
    """Both interfaces of the path, each of which delays the frames that it sends."""


@dataclass(frozen=True)
class PppoeConfig:
    """Credentials of a router that dials in to the server, the provider."""

    user: Annotated[str, r.pattern(_WORD, "a user's name", "router@provider")]  # with which it logs in
    secret_env: Annotated[str, r.variable]
    """Environment variable with the secret, which is stored nowhere."""
    service: Annotated[str, r.pattern(_WORD, "a service's name", "internet")] = ""
    """Service name that it may ask for; empty: it asks for none."""

    def secret(self) -> str:
        """Return the secret; ConfigError where the environment has none."""
        secret = os.environ.get(self.secret_env, "")
        if not secret:
            what = f"the environment has no {self.secret_env}, the secret with which the router dials in"
            raise ConfigError(what, f"export {self.secret_env}=...")
        return secret


@dataclass(frozen=True)
class End:
    """An interface and its addresses."""

    interface: Annotated[str, r.interface]  # its name on the host, or on the DUT
    addresses: Annotated[tuple[Interface, ...], r.interface_addresses, "address"]  # at most one per family


@dataclass(frozen=True)
class EndpointConfig(End):
    """A host, and its cable to the DUT."""

    transport: Annotated[TransportConfig, section(TransportConfig, "a transport")]  # by netns, local or ssh
    dut: Annotated[End | None, section(End, "the DUT's side")] = None
    """DUT's end of the cable, which driver linux configures; its addresses are this host's next hops."""
    gateway: Annotated[tuple[Address, ...], r.addresses] = ()
    """Next hop, in place of ``dut``, where the router's end is set up by hand."""
    bypass: Annotated[End | None, section(End, "a bypass")] = None
    """This host's end of a cable that leads to the other host without the DUT."""
    cpus: Annotated[tuple[int, ...], r.integers(0, 4095)] = ()
    """CPUs on which its programs run; none: any, in a lab those that do not forward."""

    @property
    def hops(self) -> tuple[Address, ...]:
        """Next hop to the other host, one per family."""
        return tuple(own.ip for own in self.dut.addresses) if self.dut is not None else self.gateway


@dataclass(frozen=True)
class EndpointsConfig:
    """Hosts of TCP tests."""

    client: Annotated[EndpointConfig, section(EndpointConfig, "an endpoint")]
    """Host that opens the connections."""
    server: Annotated[EndpointConfig, section(EndpointConfig, "an endpoint")]
    """Host that accepts the connections."""
    tunnel: Annotated[str, tunnel] = NO_TUNNEL
    """Tunnel that tests go through; text as for --tunnel, or its parts."""
    pppoe: Annotated[PppoeConfig | None, section(PppoeConfig, "PPPoE")] = None
    """Credentials of a router that dials in to the server by itself; None: it does not."""

    @property
    def roles(self) -> Iterator[tuple[str, EndpointConfig, EndpointConfig]]:
        """Each endpoint by its role, with the other one."""
        yield "client", self.client, self.server
        yield "server", self.server, self.client

    @property
    def versions(self) -> tuple[int, ...]:
        """IP versions of the client's addresses, ascending; only IPv4 inside a PPPoE session or an opened tunnel."""
        if self.pppoe is not None or self.through.is_opened:
            return (4,)
        return tuple(sorted({own.version for own in self.client.addresses}))

    @property
    def sides(self) -> tuple[End, ...]:
        """The DUT's interfaces towards the endpoints, each once, with all of its addresses."""
        merged: dict[str, tuple[Interface, ...]] = {}
        for end in (self.client.dut, self.server.dut):
            if end is not None:
                merged[end.interface] = (*merged.get(end.interface, ()), *end.addresses)
        return tuple(End(name, addresses) for name, addresses in merged.items())

    def in_namespaces(self, prefix: str) -> EndpointsConfig:
        """Return these hosts in the namespaces of the lab with this prefix."""
        client, server = (
            replace(host, transport=replace(host.transport, namespace=lab_namespace(prefix, role)))
            for role, host, _ in self.roles
        )
        return replace(self, client=client, server=server)

    @property
    def through(self) -> Tunnel:
        """Parsed tunnel."""
        return parse_tunnel(self.tunnel)

    @property
    def no_tunnel(self) -> tuple[str, str] | None:
        """Reason why the tunnel is impossible, and the remedy; None: it is possible."""
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
    """Name the namespace of a lab for this role: tester, dut, client or server."""
    return f"{prefix}-{role}"
