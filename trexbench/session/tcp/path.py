"""The way between client and server, proved before anything is measured: it crosses the router, once, and both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.errors import DutError
from ...host.ping import PingSeries, ping
from ...transport import run_checked
from .endpoints import Endpoint, Endpoints

COUNT, EVERY_S = 3, 0.2
"""Echo requests of one proof: as often as a user who is not root may send them."""
_TTL = "/proc/sys/net/ipv4/ip_default_ttl"
_HOPS = "/proc/sys/net/ipv6/conf/{}/hop_limit"


@dataclass(frozen=True)
class ProvedPath:
    """Path that the answers of one host to another show. sent_ttl: with which they left; ttl: with which they arrived.

    routers: how many forwarded them.
    """

    version: int
    asked_by: str
    answered_by: str
    sent_ttl: int
    ttl: int
    times_s: tuple[float, ...]

    @property
    def routers(self) -> int:
        return self.sent_ttl - self.ttl


def prove_path(found: Endpoints, versions: Sequence[int]) -> tuple[ProvedPath, ...]:
    """Both ways through the router, of these versions of IP; DutError names what is wrong with one.

    An answer has a TTL (hop limit) exactly one lower than its sender's default, no redirect comes, and no answer twice.
    Of a tunnel between them, outside; inside of it no router is seen.
    """
    outside: tuple[ProvedPath, ...] = ()
    if found.opened is not None and not found.opened.masquerades:
        outside = _prove(found.beneath, (4,), around=False)
    return (*outside, *_prove(found, versions, around=False))


def prove_bypass(found: Endpoints, versions: Sequence[int]) -> tuple[ProvedPath, ...]:
    """Back to back, around the router: the TTL is undiminished. Nothing where the endpoints have no such cable."""
    return _prove(found, [one for one in versions if one in found.client.bypass], around=True)


def _prove(found: Endpoints, versions: Sequence[int], around: bool) -> tuple[ProvedPath, ...]:
    ways = [(found.client, found.server), (found.server, found.client)]
    by_itself = found.pppoe is not None and found.pppoe.by_itself
    masked = found.opened is not None and found.opened.masquerades
    if (by_itself or masked) and not around:
        del ways[1]  # who masquerades lets nobody in
    routers = 0 if around or (found.opened is not None and not masked) else 1
    return tuple(_prove_way(one, other, version, around, routers) for version in versions for one, other in ways)


def _prove_way(one: Endpoint, other: Endpoint, version: int, around: bool, routers: int) -> ProvedPath:
    if around:
        source, address, interface = one.bypass[version], other.bypass[version], other.bypass_interface
    else:
        source, address, interface = one.addresses[version], other.addresses[version], other.interface
    series = ping(one.transport, address, COUNT, EVERY_S, version, source)
    sent = int(run_checked(other.transport, ("cat", _TTL if version == 4 else _HOPS.format(interface))))
    what = f"{one.place} to {other.name} {address}"
    if wrong := judge(series, sent, routers, version):
        raise DutError(f"{what}: {wrong[0]}", wrong[1])
    return ProvedPath(version, one.name, other.name, sent, series.ttls[0], series.times_s)


def judge(series: PingSeries, sent_ttl: int, routers: int, version: int) -> tuple[str, str] | None:
    """Return what is wrong with answers that left with this TTL to cross so many routers, and what helps; or None."""
    word = "TTL" if version == 4 else "hop limit"
    if series.redirects:
        remedy = "turn redirects off on the router, and see that each endpoint is on a network of its own"
        return f"the router redirects it ({series.redirects[0]})", remedy
    if not series.answers:
        told = f" ({series.told[-1]})" if series.told else ""
        return f"none of {series.sent} echo requests was answered{told}", "see cables, routes and the router's firewall"
    if series.duplicates:
        return f"{series.duplicates} answers came twice", "look for a loop, or for two hosts with one address"
    if series.ttls != (sent_ttl - routers,):
        ttls = " and ".join(map(str, series.ttls))
        crossed = [sent_ttl - one for one in series.ttls]
        seen = f"answers leave with {word} {sent_ttl} and arrive with {ttls}"
        if crossed == [0]:
            return f"{seen}: no router forwarded them", "see that both endpoints' routes lead through the DUT"
        if len(crossed) == 1 and crossed[0] > routers:
            what = "they cross the DUT" if routers == 0 else f"{crossed[0]} routers forwarded them"
            return f"{seen}: {what}", "let the cable lead from one to the other directly"
        return f"{seen}, not with {sent_ttl - routers}", f"see whether something on the way sets the {word}"
    return None
