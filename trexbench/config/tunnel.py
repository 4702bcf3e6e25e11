"""``tunnel:`` of endpoints, a variant or a suite: ``relay``, or its parts by name."""

from __future__ import annotations

from ..core.tcp.tunnel import parse_tunnel
from .yamltree import Value

KEYS = ("kind", "between", "mtu", "cipher")


def tunnel(value: Value) -> str:
    """Read ``--tunnel``'s form, or ``{kind: relay, between: client-dut, mtu: 1400}``, into parse_tunnel's words."""
    if not isinstance(value.raw, dict):
        return str(parse_tunnel(value.text()))
    nodes = value.mapping("a tunnel", KEYS)
    for error in value.unknown(KEYS):
        raise error
    if "kind" not in nodes:
        raise value.missing(["kind"], "a tunnel")
    parts = [f"{key}={node.text()}" for key, node in nodes.items() if key != "kind"]
    return str(parse_tunnel(",".join([nodes["kind"].text(), *parts])))
