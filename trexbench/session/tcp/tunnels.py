"""The tunnel and the PPPoE session of a TCP test, which programs on its hosts keep up for as long as it runs."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from ...config.endpoints import PPP_INTERFACE, End
from ...config.model import DutConfig
from ...core.errors import ConfigError, DutError
from ...core.tcp.tunnel import CLIENT_SERVER, Tunnel
from ...dut import Change, Command
from ...dut.apply import run
from ...endpoint.held import PppEnd, TunnelEnd, lost_of
from ...endpoint.programs.relay import TABLE, WIREGUARD, masquerading
from ...host.ping import ping, ping_argv, ping_limit_s
from ...transport import Transport, run_checked
from ..dut import ConnectedDut
from ..temporary import NAME, Temporary
from .keys import make_keys

NETWORK = IPv4Network("10.2.0.0/24")
FAR, CLIENT = str(NETWORK[1]), str(NETWORK[2])
"""Addresses inside: of the end that is not the client's, and of the client."""
PORT = 51941
UP_S = 30.0
_PPP_S = 30.0
"""Time for an end of a PPPoE session to begin, and then for the session to come up."""
_DIALS_S = 180.0
"""Time for a router that dials by itself: it tries again after a minute or more."""
_COUNT, _EVERY_S = 5, 0.2
_ECHO_BYTES = 28
"""Headers of IPv4 and ICMP."""
_TCP_BYTES = 40
"""Headers of IPv4 and TCP, which an MSS leaves out."""
_GONE = ("Cannot find device", "No such file or directory")


class CommandedEnd(TunnelEnd):
    """End of a WireGuard tunnel on a DUT whose console holds no program open: commands make and remove it.

    All but its keys is journalled: the end of a killed run is removed before the next. options: those of the program
    that other hosts run.
    """

    def __init__(self, dut: ConnectedDut, options: dict[str, Any]) -> None:
        self.place, self.done, self.error = f"the DUT ({dut.transport.place})", False, None
        self.up = {"by": "the kernel", "pid": None, "interface": options["name"], "mtu": options["mtu"]}
        self._dut, self._made = dut, Temporary(dut)
        try:
            self._make(options)
        except BaseException as error:
            self._made.__exit__(type(error), error, None)
            raise

    def _make(self, options: dict[str, Any]) -> None:
        device, name, why = ("dev", str(options["name"])), str(options["name"]), "a tunnel ends here"
        lack = ("Unknown device type", "modprobe wireguard, or use another tunnel")
        add = Command(("ip", "link", "add", "name", name, "type", "wireguard"), why, remedy=lack)
        remove = Command(("ip", "link", "del", *device), why, fine_if=_GONE)
        self._made.make(Change(f"tunnel {name}", "none", "wireguard", (add,), (remove,), variant=NAME))
        keys = Command(("wg", "setconf", name, "/proc/self/fd/0"), why, WIREGUARD.format(**options))
        up = Command(("ip", "link", "set", *device, "mtu", str(options["mtu"]), "up"), why)
        own = Command(("ip", "address", "add", str(options["own"]), "peer", str(options["peer"]), *device), why)
        for command in (keys, up, own):
            run(self._dut.transport, command)
        load = Command(("nft", "-f", "-"), "it masquerades", masquerading(options))
        unload = Command(("nft", "delete", "table", "ip", TABLE), "it masquerades", fine_if=_GONE)
        self._made.make(Change(f"table {TABLE}", "none", "masquerade", (load,), (unload,), variant=NAME))

    def hear(self, within_s: float = 0.0) -> None:
        """Return at once: no program reports anything."""

    def __exit__(self, *how: Any) -> None:
        self._made.__exit__(*how)

    def close(self) -> None:
        self.__exit__(None, None, None)


@dataclass(frozen=True)
class OpenTunnel:
    """A tunnel that is up."""

    tunnel: Tunnel
    far: str
    """Role of the end that is not the client's: ``server`` or ``dut``."""
    by: str
    line_mtu: int
    """MTU of the line between its ends."""
    mtu: int
    """MTU inside."""
    ends: Mapping[str, TunnelEnd]
    """By role."""

    @property
    def mss(self) -> int:
        """MSS of TCP inside the tunnel, in bytes, without options."""
        return self.mtu - _TCP_BYTES

    @property
    def addresses(self) -> Mapping[str, Mapping[int, str]]:
        """Inner addresses by role, then by version of IP."""
        return {"client": {4: CLIENT}, self.far: {4: FAR}}

    @property
    def masquerades(self) -> bool:
        """True if the server sees the DUT's address instead of the client's."""
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
    """Open the tunnel that the config asks for; None: it asks for none, or for one of the hosts' configuration.

    The end of the block leaves nothing of it. hosts, cpus: of ``client``, ``server`` and ``dut``; a program stays off
    the first CPU, which is the test's. DutError if none comes up, or if packets do not pass as they should.
    """
    wished = config.hosts.through
    if not wished.is_opened:
        yield None
        return
    far, places = _places(config, wished)
    parents = {role: str(place["parent"]) for role, place in places.items()}
    mtus = (read_number(hosts[role], f"/sys/class/net/{name}/mtu", f"MTU of {name}") for role, name in parents.items())
    line_mtu = min(mtus)
    mtu = wished.inner_mtu(line_mtu)
    keys = make_keys(wished)
    with ExitStack() as stack:
        ends = dict[str, TunnelEnd]()
        for role in (far, "client"):
            shared = {"kind": wished.kind, "cipher": wished.cipher, "mtu": mtu, "port": PORT, "first": role == far}
            others = cpus[role] if role == "dut" else cpus[role][1:]
            own = {"name": f"tbvpn{secrets.token_hex(4)}", "cpus": others or cpus[role]}
            options = {**shared, **own, **places[role], "keys": keys[role == far]}
            name = "the DUT" if role == "dut" else role
            by_commands = role == "dut" and config.transport.type == "console"
            end = CommandedEnd(dut, options) if by_commands else TunnelEnd(name, hosts[role], options)
            ends[role] = stack.enter_context(end)
        until = time.monotonic() + UP_S
        while any(end.up is None for end in ends.values()) and time.monotonic() < until:
            for end in ends.values():  # the first that fails is reported
                end.hear(0.05)
                end.require_running()
        by = " and ".join(dict.fromkeys(str(end.wait_up(0.0)["by"]) for end in ends.values()))
        by = f"{by}, {wished.cipher}" if wished.cipher else by
        tunnel = OpenTunnel(wished, far, by, line_mtu, mtu, ends)
        prove_tunnel(hosts["client"], tunnel)
        say(f"tunnel: {wished} by {by}, MTU {mtu}, MSS {tunnel.mss}: packets of {mtu} bytes pass, longer ones do not")
        yield tunnel


def _places(config: DutConfig, wished: Tunnel) -> tuple[str, dict[str, dict[str, Any]]]:
    """The far end's role; and the options for addresses, interface and routes by role."""
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
    here, there = (next(str(own.ip) for own in end.addresses if own.version == 4) for end in (ends.client, side))
    client |= {"local": here, "remote": there}
    other = {"parent": side.interface, "own": FAR, "peer": CLIENT, "local": there, "remote": here, **more}
    return far, {far: other, "client": client}


def read_number(host: Transport, path: str, what: str) -> int:
    """Read a number from the kernel; DutError where the file has none."""
    text = run_checked(host, ("cat", path)).strip()
    if not re.fullmatch("[0-9]{1,9}", text):
        raise DutError(f"the {what} on {host.place} is {text[:40]!r}", f"see {path} there")
    return int(text)


def prove_tunnel(client: Transport, tunnel: OpenTunnel) -> None:
    """Prove that the far end answers, and that packets of the MTU pass unfragmented, but none of a byte more."""
    what = f"tunnel {tunnel.tunnel.kind} from {client.place}"
    if not ping(client, FAR, _COUNT, _EVERY_S, source=CLIENT).ttls:
        raise DutError(f"{what}: none of {_COUNT} echo requests was answered", "check for firewalls between its ends")
    for size, passes in ((tunnel.mtu, True), (tunnel.mtu + 1, False)):
        *words, address = ping_argv(FAR, _COUNT, _EVERY_S, 4, CLIENT)
        argv = (*words, "-M", "do", "-s", str(size - _ECHO_BYTES), address)
        done = client.run(argv, ping_limit_s(_COUNT, _EVERY_S))
        if "received" not in done.stdout:
            raise DutError(f"{what}: ping -M do failed: {done.complaint}", "install iputils-ping there")
        if (" bytes from " in done.stdout) != passes:
            otherwise = "do not pass" if passes else "pass, which its MTU forbids"
            smaller = f", or name a smaller one: mtu={size - 8}" if passes else ""
            remedy = f"check the MTU of the line between its ends{smaller}"
            raise DutError(f"{what}: packets of {size} bytes {otherwise}", remedy)


@dataclass(frozen=True)
class Pppoe:
    """A PPPoE session that is up."""

    server: PppEnd
    client: PppEnd | None
    told: Mapping[str, Any]
    """The server's report of it."""

    @property
    def by_itself(self) -> bool:
        """True if the router's own client has dialled in."""
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
    """Open the session that the config asks for, if any; the end of the block leaves nothing of it.

    cpus: of ``server`` and ``dut``, on which their programs run. DutError if no session comes up.
    """
    if not config.dials_in:
        yield None
        return
    ends, own = config.hosts, config.hosts.pppoe
    user, secret = ("trexbench", secrets.token_hex(16)) if own is None else (own.user, own.secret())
    shared: dict[str, Any] = {"user": user, "secret": secret, "tun": PPP_INTERFACE}
    ours = {address.version: str(address.ip) for address in ends.server.addresses}
    theirs = {hop.version: str(hop) for hop in ends.server.hops}
    six = own is None and 6 in ours and 6 in theirs
    serves = {
        **shared,
        "interface": ends.server.interface,
        "own": ours[4],
        "peer": theirs[4],
        "service": own.service if own is not None else "",
        "cpus": cpus["server"][:1],
        "routes": [str(address.network) for address in ends.client.addresses if six or address.version == 4],
        **({"ipv6": [ours[6], theirs[6]]} if six else {}),
    }
    with ExitStack() as stack:
        serving = stack.enter_context(PppEnd("server", server, {"role": "server", **serves}))
        serving.wait_listening(_PPP_S)
        client = None
        if own is None:
            assert ends.server.dut is not None  # check_endpoints
            dials = {**shared, "interface": ends.server.dut.interface, "cpus": cpus["dut"][:1]}
            dials |= {"ipv6": [theirs[6], ours[6]]} if six else {}
            client = stack.enter_context(PppEnd("the DUT", dut, {"role": "client", **dials}))
            client.wait_up(_PPP_S)
        else:
            say(f"waiting for {config.name} to dial in as {user}")
        up = serving.wait_up(_PPP_S if own is None else _DIALS_S)
        say(f"PPPoE: {up['user']} at {up['peer']}, {up['auth']}, MTU {up['mtu']}")
        yield Pppoe(serving, client, up)
