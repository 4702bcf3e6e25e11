"""A 6in4 tunnel (RFC 4213) of a Linux host, pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.tcp.model import HEADER_BYTES
from ...host.linux import parse_json
from ..model import NO_DEVICE, Change, Command, Wanted
from .parse import mapping_at

_GONE = ("Cannot find device", "does not exist")


def tunnel_changes(wanted: Wanted, facts: Mapping[str, Any]) -> list[Change]:
    """The tunnel as it is to be, nothing where it is; its inner addresses are those of a port."""
    tunnel = wanted.tunnel
    if tunnel is None:
        return []
    found: Mapping[str, Any] = facts.get("tunnel") or {}
    parent = facts["interfaces"].get(tunnel.parent) or {}
    mtu = (parent.get("mtu") or 1500) - HEADER_BYTES[tunnel.kind][6]
    name, why = tunnel.name, f"IPv6 goes through {tunnel.kind}"
    there = _shown(tunnel.kind, found) if found else "none"
    as_wanted = {
        "local": str(tunnel.local),
        "remote": str(tunnel.remote),
        "ttl": tunnel.ttl,
        "mtu": mtu,
        "admin_up": True,
    }
    if there != _shown(tunnel.kind, as_wanted):
        former = [Command(("ip", "link", "del", name), "it is another one", fine_if=_GONE)] if found else []
        lack = (NO_DEVICE, "modprobe sit, or install the kernel's package that has it")
        add = Command(tunnel.device, why, remedy=lack)
        up = Command(("ip", "link", "set", "dev", name, "mtu", str(mtu), "up"), why)
        undo = (Command(("ip", "link", "del", name), "it was not there", fine_if=_GONE),)
        shown = _shown(tunnel.kind, as_wanted)
        return [Change(name, there, shown, (*former, add, up), undo, reveals=True, variant=wanted.variant)]
    # last of all, so that it comes back before the routes that lead over it do
    return [
        Change(
            f"address of {tunnel.parent}",
            address,
            f"on {name}",
            (Command(("ip", "address", "del", address, "dev", tunnel.parent), why),),
            (
                Command(
                    ("ip", "address", "replace", address, "dev", tunnel.parent, "nodad"), "as it was", fine_if=_GONE
                ),
            ),
            variant=wanted.variant,
        )
        for address in map(str, tunnel.addresses)
        if address in parent.get("addresses", [])
    ]


def _shown(kind: str, of: Mapping[str, Any]) -> str:
    state = "" if of["admin_up"] else ", down"
    return f"{kind} from {of['local']} to {of['remote']}, TTL {of['ttl']}, MTU {of['mtu']}{state}"


def parse_device(text: str, name: str) -> dict[str, Any] | None:
    """``ip -json -details link show``: the ends, TTL and MTU of this tunnel; None: it is not there."""
    for entry in parse_json(text, "ip link"):
        if entry.get("ifname") == name:
            info = mapping_at(entry, "linkinfo")
            data = mapping_at(info, "info_data")
            ends = {key: data.get(key) for key in ("local", "remote", "ttl")}
            flags = entry.get("flags")
            up = isinstance(flags, list) and "UP" in flags
            return {"kind": info.get("info_kind"), **ends, "mtu": entry.get("mtu"), "admin_up": up}
    return None
