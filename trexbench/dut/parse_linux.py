"""What Linux tools print -> facts. Pure; absent is None, never zero."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..core.errors import DutError


def parse_json(text: str, what: str) -> list[dict[str, Any]]:
    """The list that ``ip -json`` and ``ethtool --json`` print; nothing at all is an empty list."""
    try:
        found = json.loads(text, parse_float=_finite, parse_constant=_finite) if text.strip() else []
    except (ValueError, RecursionError):
        raise DutError(
            f"{what} printed no JSON ({text.strip()[:60]!r})", "it takes iproute2 of 2018 or later"
        ) from None
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise DutError(f"{what} printed JSON of another form", "it takes iproute2 of 2018 or later")
    return [entry for entry in found if entry]  # iproute2 prints {} for what a filter left out


def _finite(text: str) -> float:
    """Facts are kept as JSON, which has no NaN and no infinity; Python's reader takes both, and 1e999."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]!r} is no number")
    return value


def parse_links(text: str) -> dict[str, dict[str, Any]]:
    """``ip -json -details link show`` by interface. state is UP, DOWN, UNKNOWN (no carrier detection) ..."""
    links = {}
    for entry in parse_json(text, "ip link"):
        links[str(entry.get("ifname"))] = {
            "state": entry.get("operstate"),
            "admin_up": "UP" in _list(entry, "flags"),
            "carrier": "LOWER_UP" in _list(entry, "flags"),
            "mac": entry.get("address"),
            "mtu": entry.get("mtu"),
            "kind": _dict(entry, "linkinfo").get("info_kind"),
            "qdisc": entry.get("qdisc"),
            "txqueuelen": entry.get("txqlen"),
            "rx_queues": entry.get("num_rx_queues"),
            "tx_queues": entry.get("num_tx_queues"),
            "xdp": _dict(_dict(entry, "xdp"), "prog").get("name"),
        }
    return links


def parse_addresses(text: str) -> dict[str, list[str]]:
    """``ip -json address show``: IPv4 addresses with their prefix lengths, by interface."""
    return {
        str(entry.get("ifname")): [
            f"{info.get('local')}/{info.get('prefixlen')}"
            for info in _dicts(entry, "addr_info")
            if info.get("family") == "inet"
        ]
        for entry in parse_json(text, "ip address")
    }


def parse_neighbours(text: str, interface: str) -> dict[str, dict[str, Any]]:
    """``ip -json neigh show dev D``: by ``address%D``, MAC (None when unresolved) and state."""
    return {
        f"{entry.get('dst')}%{entry.get('dev', interface)}": {
            "mac": entry.get("lladdr"),
            "state": "+".join(map(str, _list(entry, "state"))) or None,
        }
        for entry in parse_json(text, "ip neigh")
    }


def parse_routes(text: str) -> list[dict[str, Any]]:
    """``ip -json route show``: to, hops (``via 1.2.3.4 dev d0``, several when multipath), type, metric.

    words: those that set the same route with ``ip route replace``.
    """
    return [
        {
            "to": "0.0.0.0/0" if entry.get("dst") == "default" else _with_length(str(entry.get("dst"))),
            "hops": [_hop(hop) for hop in _dicts(entry, "nexthops") or [entry]],
            "type": str(entry.get("type", "unicast")),
            "metric": entry.get("metric", 0),
            "words": _route_words(entry),
        }
        for entry in parse_json(text, "ip route")
    ]


def parse_path(text: str) -> str | None:
    """``ip -json route get``: where the kernel would send this packet, as ``via 1.2.3.4 dev d0``."""
    entries = parse_json(text, "ip route get")
    if not entries or entries[0].get("type", "unicast") != "unicast":
        return None
    return _hop(entries[0])


def parse_files(text: str) -> dict[str, str]:
    """``grep -sH ""`` over /proc and /sys: the first line of each file, stripped."""
    files: dict[str, str] = {}
    for line in text.splitlines():
        path, colon, value = line.partition(":")
        if colon and path.startswith("/"):
            files.setdefault(path, value.strip())
    return files


def parse_offloads(text: str) -> dict[str, bool]:
    """``ethtool --json -k``: the features that are on or off."""
    entries = parse_json(text, "ethtool")
    features = entries[0] if entries else {}
    return {
        name: bool(value["active"])
        for name, value in features.items()
        if isinstance(value, Mapping) and "active" in value
    }


def number(text: str | None) -> int | None:
    """A whole number of a /proc or /sys file; None where the file was not there or says something else."""
    return int(text) if text is not None and re.fullmatch("-?[0-9]{1,20}", text) else None


def queue_files(files: Mapping[str, str], interface: str, name: str) -> dict[str, str]:
    """One file of every queue of an interface: ``{"rx-0": "2"}`` for rps_cpus."""
    start, end = f"/sys/class/net/{interface}/queues/", f"/{name}"
    found: Iterable[str] = (path for path in files if path.startswith(start) and path.endswith(end))
    return {path[len(start) : -len(end)]: files[path] for path in sorted(found)}


def _route_words(entry: Mapping[str, Any]) -> list[str]:
    words = [] if entry.get("type", "unicast") == "unicast" else [str(entry["type"])]
    words += [str(entry.get("dst")), *_hop_words(entry)]
    for key, word in (("protocol", "proto"), ("scope", "scope"), ("prefsrc", "src"), ("metric", "metric")):
        words += [word, str(entry[key])] if entry.get(key) else []
    for metrics in _dicts(entry, "metrics"):
        for key, value in metrics.items():
            words += [str(key), str(value)]
    for hop in _dicts(entry, "nexthops"):
        words += ["nexthop", *_hop_words(hop), *(["weight", str(hop["weight"])] if hop.get("weight") else [])]
    return words


def _hop_words(entry: Mapping[str, Any]) -> list[str]:
    words = [
        word for key, name in (("gateway", "via"), ("dev", "dev")) if key in entry for word in (name, str(entry[key]))
    ]
    return words + (["onlink"] if "onlink" in _list(entry, "flags") else [])


def _hop(entry: Mapping[str, Any]) -> str:
    via = f"via {entry['gateway']} " if "gateway" in entry else ""
    return f"{via}dev {entry.get('dev')}" if "dev" in entry else str(entry.get("type", "nowhere"))


def _dict(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = entry.get(key)
    return value if isinstance(value, dict) else {}


def _list(entry: Mapping[str, Any], key: str) -> list[Any]:
    value = entry.get(key)
    return value if isinstance(value, list) else []


def _dicts(entry: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    return [value for value in _list(entry, key) if isinstance(value, dict)]


def _with_length(destination: str) -> str:
    return destination if "/" in destination else f"{destination}/32"
