"""Proves before anything is measured that the path between client and server crosses the router once, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.errors import DutError
from ...host.ping import PingSeries, ping
from .hosts import Endpoint, Endpoints
from .tunnels import read_number

COUNT, EVERY_S = 3, 0.2
"""Echo requests of one proof; 0.2 s is the shortest interval for users other than root."""
_TTL = "/proc/sys/net/ipv4/ip_default_ttl"
_HOPS = "/proc/sys/net/ipv6/conf/{}/hop_limit"


@dataclass(frozen=True)
class ProvedPath:
    """Path of echo replies from one host to another, which left with sent_ttl and arrived with ttl."""

    version: int
    asked_by: str
    answered_by: str
    sent_ttl: int
    ttl: int
    times_s: tuple[float, ...]

    @property
    def routers(self) -> int:
        """Number of routers that forwarded them."""
        return self.sent_ttl - self.ttl


def prove_path(hosts: Endpoints, versions: Sequence[int]) -> tuple[ProvedPath, ...]:
    """Prove both ways through the router, with these versions of IP; DutError names what is wrong with one.

    A reply has a TTL (hop limit) exactly one lower than its sender's default, no redirect comes, and no reply twice.
    A tunnel between the hosts is proved outside; inside of it no router is seen.
    """
    outside: tuple[ProvedPath, ...] = ()
    if hosts.opened is not None and not hosts.opened.masquerades:
        outside = _prove(hosts.beneath, (4,), around=False)
    return (*outside, *_prove(hosts, versions, around=False))


def prove_bypass(hosts: Endpoints, versions: Sequence[int]) -> tuple[ProvedPath, ...]:
    """Prove that the cable around the router, if there is one, is direct: the TTL is undiminished."""
    return _prove(hosts, [version for version in versions if version in hosts.client.bypass], around=True)


def _prove(hosts: Endpoints, versions: Sequence[int], around: bool) -> tuple[ProvedPath, ...]:
    ways = [(hosts.client, hosts.server), (hosts.server, hosts.client)]
    by_itself = hosts.pppoe is not None and hosts.pppoe.by_itself
    masked = hosts.opened is not None and hosts.opened.masquerades
    if (by_itself or masked) and not around:
        del ways[1]  # no connection comes in through masquerading
    routers = 0 if around or (hosts.opened is not None and not masked) else 1
    return tuple(_prove_way(*way, version, around, routers) for version in versions for way in ways)


def _prove_way(asking: Endpoint, other: Endpoint, version: int, around: bool, routers: int) -> ProvedPath:
    if around:
        source, address, interface = asking.bypass[version], other.bypass[version], other.bypass_interface
    else:
        source, address, interface = asking.addresses[version], other.addresses[version], other.interface
    series = ping(asking.transport, address, COUNT, EVERY_S, version, source)
    word = "TTL" if version == 4 else f"hop limit of {interface}"
    sent_ttl = read_number(other.transport, _TTL if version == 4 else _HOPS.format(interface), word)
    if wrong := judge(series, sent_ttl, routers, version):
        raise DutError(f"{asking.place} to {other.name} {address}: {wrong[0]}", wrong[1])
    return ProvedPath(version, asking.name, other.name, sent_ttl, series.ttls[0], series.times_s)


def judge(series: PingSeries, sent_ttl: int, routers: int, version: int) -> tuple[str, str] | None:
    """Check replies sent with this TTL through this many routers; return what is wrong and the remedy, or None."""
    word = "TTL" if version == 4 else "hop limit"
    if redirects := [message for message in series.told if "redirect" in message.lower()]:
        remedy = "turn redirects off on the router, and check that each endpoint is on a network of its own"
        return f"the router redirects it ({redirects[0]})", remedy
    if not series.ttls:
        told = f" ({series.told[-1]})" if series.told else ""
        return (
            f"none of {series.sent} echo requests was answered{told}",
            "check cables, routes and the router's firewall",
        )
    if series.duplicates:
        return f"{series.duplicates} answers came twice", "look for a loop, or for two hosts with one address"
    if (arrived := sorted({*series.ttls})) != [sent_ttl - routers]:
        ttls = " and ".join(map(str, arrived))
        crossed = [sent_ttl - ttl for ttl in arrived]
        seen = f"answers leave with {word} {sent_ttl} and arrive with {ttls}"
        if crossed == [0]:
            return f"{seen}: no router forwarded them", "check that both endpoints' routes lead through the DUT"
        if len(crossed) == 1 and crossed[0] > routers:
            what = "they cross the DUT" if routers == 0 else f"{crossed[0]} routers forwarded them"
            return f"{seen}: {what}", "cable one directly to the other"
        return f"{seen}, not with {sent_ttl - routers}", f"check whether something on the way sets the {word}"
    return None
