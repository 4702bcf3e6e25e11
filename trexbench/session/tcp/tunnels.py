"""A tunnel and a PPPoE session, which programs on the hosts of a TCP test keep up for as long as it runs."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from ...config.endpoints import PPP_INTERFACE, End
from ...config.model import DutConfig
from ...core.errors import ConfigError, DutError
from ...core.tcp.tunnel import CLIENT_SERVER, Tunnel
from ...endpoint import PppEnd, TunnelEnd, lost_of
from ...host.ping import ping, ping_argv, ping_limit_s
from ...transport import Transport, run_checked
from ..dut import ConnectedDut
from .commanded import CommandedEnd
from .keys import make_keys

NETWORK = IPv4Network("10.2.0.0/24")
FAR, CLIENT = str(NETWORK[1]), str(NETWORK[2])
"""Inside: of the end that is not the client's, and of the client."""
PORT = 51941
UP_S = 30.0
_PPP_S = 30.0
"""For an end of a PPPoE session to begin, and then for the session to come up."""
_DIALS_S = 180.0
"""For a router that dials by itself: it tries again after a minute or more."""
_COUNT, _EVERY_S = 5, 0.2
_ECHO_BYTES = 28
"""Headers of IPv4 and ICMP."""
_TCP_BYTES = 40
"""Headers of IPv4 and TCP, which an MSS leaves out."""


@dataclass(frozen=True)
class OpenTunnel:
    """A tunnel that is up. far: the role of the end that is not the client's, ``server`` or ``dut``.

    line_mtu: what the line between its ends takes. mtu: of its inside. ends: by role.
    """

    tunnel: Tunnel
    far: str
    by: str
    line_mtu: int
    mtu: int
    ends: Mapping[str, TunnelEnd]

    @property
    def mss(self) -> int:
        """MSS of TCP inside the tunnel, in bytes, without options."""
        return self.mtu - _TCP_BYTES

    @property
    def addresses(self) -> Mapping[str, Mapping[int, str]]:
        """Inner ones by role, then by version of IP."""
        return {"client": {4: CLIENT}, self.far: {4: FAR}}

    @property
    def masquerades(self) -> bool:
        """True if the server sees the DUT's address in place of the client's."""
        return self.far == "dut"

    @property
    def lost(self) -> str:
        """Reason why the tunnel has gone down; empty while it is up."""
        return lost_of(self.ends.values())


@contextmanager
def tunnelled(
    config: DutConfig,
    hosts: Mapping[str, Transport],
    cpus: Mapping[str, tuple[int, ...]],
    dut: ConnectedDut,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[OpenTunnel | None]:
    """The tunnel that the config asks for, until the end of the block, which leaves nothing of it; None: it asks for
    none, or for one that is a part of the hosts' configuration.

    hosts, cpus: of ``client``, ``server`` and ``dut``; a program stays off the first CPU, where that of the test is.
    DutError where none comes up, or where packets do not pass as they should.
    """
    wished = config.hosts.through
    if not wished.is_opened:
        yield None
        return
    far, ends = _ends(config, wished)
    line_mtu = min(_mtu(hosts[role], str(one["parent"])) for role, one in ends.items())
    mtu = wished.inner_mtu(line_mtu)
    keys = make_keys(wished)
    with ExitStack() as stack:
        opened = dict[str, TunnelEnd]()
        for role in (far, "client"):
            shared = {"kind": wished.kind, "cipher": wished.cipher, "mtu": mtu, "port": PORT, "first": role == far}
            others = cpus[role] if role == "dut" else cpus[role][1:]
            own = {"name": f"tbvpn{secrets.token_hex(4)}", "cpus": others or cpus[role]}
            options = {**shared, **own, **ends[role], "keys": keys[role == far]}
            name = "the DUT" if role == "dut" else role
            by_commands = role == "dut" and config.transport.type == "console"
            end = CommandedEnd(dut, options) if by_commands else TunnelEnd(name, hosts[role], options)
            opened[role] = stack.enter_context(end)
        told = _wait_up(list(opened.values()))
        by = " and ".join(dict.fromkeys(str(one["by"]) for one in told))
        by = f"{by}, {wished.cipher}" if wished.cipher else by
        found = OpenTunnel(wished, far, by, line_mtu, mtu, opened)
        prove_tunnel(hosts["client"], found)
        say(f"tunnel: {wished} by {by}, MTU {mtu}, MSS {found.mss}: packets of {mtu} bytes pass, longer ones do not")
        yield found


def _wait_up(ends: Sequence[TunnelEnd]) -> list[Mapping[str, Any]]:
    """Wait for all ends and return what they say then; the first that fails is reported, whichever is waited for."""
    until = time.monotonic() + UP_S
    while any(one.up is None for one in ends) and time.monotonic() < until:
        for one in ends:
            one.hear(0.05)
            one.require_running()
    return [one.wait_up(0.0) for one in ends]


def _ends(config: DutConfig, wished: Tunnel) -> tuple[str, dict[str, dict[str, Any]]]:
    """The far end's role; and what each end is told of addresses, interface and routes, by role."""
    ends = config.hosts
    taken = (*ends.client.addresses, *ends.server.addresses)
    if any(own.version == 4 and own.network.overlaps(NETWORK) for own in taken):
        raise ConfigError(f"{config.file}: {NETWORK} is that of the tunnel's inside", "give the hosts other addresses")
    client: dict[str, Any] = {"parent": ends.client.interface, "own": CLIENT, "peer": FAR}
    if wished.between == CLIENT_SERVER:
        far, more = "server", dict[str, Any]()
        side: End = ends.server
    else:
        assert ends.client.dut is not None and ends.server.dut is not None  # config.endpoints: no_tunnel
        far, side, more = "dut", ends.client.dut, {"masquerade": ends.server.dut.interface}
        client["routes"] = [f"{own.ip}/32" for own in ends.server.addresses if own.version == 4]
    here, there = (next(str(own.ip) for own in one.addresses if own.version == 4) for one in (ends.client, side))
    client |= {"local": here, "remote": there}
    other = {"parent": side.interface, "own": FAR, "peer": CLIENT, "local": there, "remote": here, **more}
    return far, {far: other, "client": client}


def _mtu(host: Transport, interface: str) -> int:
    text = run_checked(host, ("cat", f"/sys/class/net/{interface}/mtu")).strip()
    if not text.isdigit():
        raise DutError(f"MTU of {interface} on {host.place} is {text[:40]!r}", "see ip link")
    return int(text)


def prove_tunnel(client: Transport, found: OpenTunnel) -> None:
    """The far end answers; its largest packet passes, undivided, and one byte more does not. DutError names which."""
    what = f"tunnel {found.tunnel.kind} from {client.place}"
    if not ping(client, FAR, _COUNT, _EVERY_S, source=CLIENT).answers:
        raise DutError(f"{what}: none of {_COUNT} echo requests was answered", "see firewalls between its ends")
    for size, passes in ((found.mtu, True), (found.mtu + 1, False)):
        *words, address = ping_argv(FAR, _COUNT, _EVERY_S, 4, CLIENT)
        argv = (*words, "-M", "do", "-s", str(size - _ECHO_BYTES), address)
        done = client.run(argv, ping_limit_s(_COUNT, _EVERY_S))
        if "received" not in done.stdout:
            raise DutError(f"{what}: ping -M do failed: {done.complaint}", "install iputils-ping there")
        if (" bytes from " in done.stdout) != passes:
            otherwise = "do not pass" if passes else "pass, which its MTU forbids"
            raise DutError(f"{what}: packets of {size} bytes {otherwise}", "see the MTU of the line between its ends")


@dataclass(frozen=True)
class Pppoe:
    """A session that is up. told: what the server says of it. by_itself: the router's own client has dialled."""

    server: PppEnd
    client: PppEnd | None
    told: Mapping[str, Any]

    @property
    def by_itself(self) -> bool:
        return self.client is None

    @property
    def mtu(self) -> int:
        return int(self.told["mtu"])

    @property
    def lost(self) -> str:
        """Reason why the session has gone down; empty while it is up."""
        return lost_of(filter(None, (self.server, self.client)))


@contextmanager
def dialled(
    config: DutConfig,
    server: Transport,
    dut: Transport,
    cpus: Mapping[str, tuple[int, ...]],
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Pppoe | None]:
    """The session that the config asks for, until the end of the block, which leaves nothing of it; None: it asks for
    none. cpus: of ``server`` and ``dut``, on which their programs run. DutError where no session comes up.
    """
    if not config.dials_in:
        yield None
        return
    ends, own = config.hosts, config.hosts.pppoe
    user = own.user if own is not None else "trexbench"
    shared: dict[str, Any] = {
        "user": user,
        "secret": own.secret() if own is not None else secrets.token_hex(16),
        "tun": PPP_INTERFACE,
    }
    ours = {one.version: str(one.ip) for one in ends.server.addresses}
    theirs = {one.version: str(one) for one in ends.server.hops}
    six = own is None and 6 in ours and 6 in theirs
    told = {
        **shared,
        "interface": ends.server.interface,
        "own": ours[4],
        "peer": theirs[4],
        "service": own.service if own is not None else "",
        "cpus": cpus["server"][:1],
        "routes": [str(one.network) for one in ends.client.addresses if six or one.version == 4],
        **({"ipv6": [ours[6], theirs[6]]} if six else {}),
    }
    with ExitStack() as stack:
        serving = stack.enter_context(PppEnd("server", server, "server", told))
        serving.wait_listening(_PPP_S)
        client = None
        if own is None:
            assert ends.server.dut is not None  # check_endpoints
            dials = {**shared, "interface": ends.server.dut.interface, "cpus": cpus["dut"][:1]}
            dials |= {"ipv6": [theirs[6], ours[6]]} if six else {}
            client = stack.enter_context(PppEnd("the DUT", dut, "client", dials))
            client.wait_up(_PPP_S)
        else:
            say(f"waiting for {config.name} to dial in as {user}")
        up = serving.wait_up(_PPP_S if own is None else _DIALS_S)
        say(f"PPPoE: {up['user']} at {up['peer']}, {up['auth']}, MTU {up['mtu']}")
        yield Pppoe(serving, client, up)
