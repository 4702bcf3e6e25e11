"""Settings of a Linux host for TCP through a router: no redirects, and a 6in4 tunnel. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...core.tcp.plan import HEADER_BYTES
from ..settings import NO_DEVICE, Change, Command, Wanted
from .tuning import GONE, write

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


def redirect_files(wanted: Wanted) -> Iterator[str]:
    """Yield the files that must be 0: with IPv4 each interface's and that of all, since either turns redirects on.

    With IPv6 only the interface's counts, and sending cannot be turned off.
    """
    names = [wanted.routed(port) for port in wanted.config.ports]
    for version in wanted.config.versions if wanted.tcp else ():
        settings = ("accept_redirects", "send_redirects") if version == 4 else ("accept_redirects",)
        places = ("all", *names) if version == 4 else names
        yield from (f"/proc/sys/net/ipv{version}/conf/{name}/{leaf}" for leaf in settings for name in places)


def redirect_changes(wanted: Wanted, facts: Mapping[str, Any]) -> list[Change]:
    """Turn off the redirects that are on or unknown."""
    changes = []
    for path in redirect_files(wanted):
        *_, family, _conf, name, setting = path.split("/")
        what = f"{setting} of {name} ({family})"
        changes += write(what, path, facts["redirects"].get(path), 0, "all packets go through the router")
    return changes


def tunnel_changes(wanted: Wanted, facts: Mapping[str, Any]) -> list[Change]:
    """Create the tunnel (RFC 4213) or, once it is there, take its inner addresses off the interface beneath it."""
    tunnel = wanted.tunnel
    if tunnel is None:
        return []
    existing: Mapping[str, Any] = facts.get("tunnel") or {}
    parent = facts["interfaces"].get(tunnel.parent) or {}
    mtu = (parent.get("mtu") or 1500) - HEADER_BYTES[tunnel.kind][6]
    name, why = tunnel.name, f"IPv6 goes through {tunnel.kind}"

    def shown(of: Mapping[str, Any]) -> str:
        state = "" if of["admin_up"] else ", down"
        return f"{tunnel.kind} from {of['local']} to {of['remote']}, TTL {of['ttl']}, MTU {of['mtu']}{state}"

    as_wanted = shown({"local": tunnel.local, "remote": tunnel.remote, "ttl": tunnel.ttl, "mtu": mtu, "admin_up": True})
    there = shown(existing) if existing else "none"
    if there != as_wanted:
        gone = ("ip", "link", "del", name)
        former = [Command(gone, "it is another one", fine_if=GONE)] if existing else []
        lack = (NO_DEVICE, "modprobe sit, or install the kernel's package that has it")
        add = Command(tunnel.device, why, remedy=lack)
        up = Command(("ip", "link", "set", "dev", name, "mtu", str(mtu), "up"), why)
        undo = (Command(gone, "it was not there", fine_if=GONE),)
        return [Change(name, there, as_wanted, (*former, add, up), undo, reveals=True, variant=wanted.variant)]
    changes = []
    for address in map(str, tunnel.addresses):
        if address in parent.get("addresses", []):
            do = Command(("ip", "address", "del", address, "dev", tunnel.parent), why)
            # last of all, so that it comes back before the routes that lead over it do
            back = ("ip", "address", "replace", address, "dev", tunnel.parent, "nodad")
            undo = (Command(back, "as it was", fine_if=GONE),)
            what = f"address of {tunnel.parent}"
            changes.append(Change(what, address, f"on {name}", (do,), undo, variant=wanted.variant))
    return changes
