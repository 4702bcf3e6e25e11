"""Settings of a Linux host for TCP through a router, besides addresses and routes: no redirects. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..model import Change, Wanted
from .tuning import write

TCP_SETTINGS = {
    "congestion_control": "/proc/sys/net/ipv4/tcp_congestion_control",
    "rmem": "/proc/sys/net/ipv4/tcp_rmem",
    "wmem": "/proc/sys/net/ipv4/tcp_wmem",
    "rmem_max": "/proc/sys/net/core/rmem_max",
    "wmem_max": "/proc/sys/net/core/wmem_max",
    "default_qdisc": "/proc/sys/net/core/default_qdisc",
}
"""Settings of TCP that are read, by the names of their facts."""
TCP_OFFLOADS = ("tcp-segmentation-offload", "generic-segmentation-offload")
_CONF = {4: "/proc/sys/net/ipv4/conf", 6: "/proc/sys/net/ipv6/conf"}


def redirect_files(wanted: Wanted) -> tuple[str, ...]:
    """The files that are to be 0: with IPv4 of the interfaces and of all, for either may turn a host's on.

    IPv6 has one of each interface that counts, and none for sending: a router that forwards out of the interface of
    arrival sends them.
    """
    return tuple(_redirects(wanted)) if wanted.tcp else ()


def _redirects(wanted: Wanted) -> Iterator[str]:
    names = [wanted.routed(port) for port in wanted.config.ports]
    if 4 in wanted.config.versions:
        for setting in ("accept_redirects", "send_redirects"):
            yield from (f"{_CONF[4]}/{name}/{setting}" for name in ("all", *names))
    if 6 in wanted.config.versions:
        yield from (f"{_CONF[6]}/{name}/accept_redirects" for name in names)


def redirect_changes(wanted: Wanted, facts: Mapping[str, Any]) -> list[Change]:
    """Redirects that are on, or of which the host does not tell."""
    found = []
    for path in redirect_files(wanted):
        what = f"{path.split('/')[-1]} of {path.split('/')[-2]} ({path.split('/')[-4]})"
        found += write(what, path, facts["redirects"].get(path), 0, "all packets go through the router")
    return found
