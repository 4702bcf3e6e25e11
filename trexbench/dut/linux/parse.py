"""Parse what Linux tools print about links, routes and NICs. Pure; absent is None, never zero."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...config.firewall import TABLE
from ...core.errors import DutError
from ...host.linux import parse_json

_COUNT = re.compile(r"^(RX|TX|Other|Combined):\s+([0-9]{1,9}|n/a)", re.MULTILINE)
_DELAY = re.compile(r"((rx|tx)-(?:usecs|frames)):\s+([0-9]{1,9})")
_ROW = re.compile(r"\s*[0-9]{1,6}:\s*([0-9]+(?: +[0-9]+)*):?")
_KEY = re.compile(r"^RSS hash key:\s*([0-9a-f]{2}(?::[0-9a-f]{2})+)\s*$", re.MULTILINE)
_FUNCTION = re.compile(
    r"^RSS (?:hash function|input transformation):[ \t]*\n(?:[ \t]+\S+: off[ \t]*\n)*[ \t]+(\S+): on[ \t]*$",
    re.MULTILINE,
)
_QUEUE = re.compile(r"(?:txrx|tx-rx|rxtx|rx|comp|input)[-.]?([0-9]{1,5})(?![0-9])", re.IGNORECASE)
"""Drivers' names for a receive queue's interrupt: enp3s0f0-TxRx-0, i40e-eth0-TxRx-0, ens5-Tx-Rx-0, eth0-rx-0,
ens192-rxtx-0, mlx5_comp0@pci:..., virtio0-input.0."""
_FIELDS = {"IP SA": "src", "IP DA": "dst", "bytes 0 & 1": "sport", "bytes 2 & 3": "dport"}


class _Ruleset(msgspec.Struct):
    nftables: list[dict[str, Any]]


def parse_links(text: str) -> dict[str, dict[str, Any]]:
    """Parse ``ip -json -details link show`` by interface. state is UP, DOWN, UNKNOWN (no carrier detection) ...

    vlan: what it is of another interface. ends: of a tunnel.
    """
    links = {}
    for entry in parse_json(text, "ip link"):
        info = mapping_at(entry, "linkinfo")
        data = mapping_at(info, "info_data")
        links[str(entry.get("ifname"))] = {
            "state": entry.get("operstate"),
            "admin_up": "UP" in _list(entry, "flags"),
            "carrier": "LOWER_UP" in _list(entry, "flags"),
            "mac": entry.get("address"),
            "mtu": entry.get("mtu"),
            "kind": info.get("info_kind"),
            "qdisc": entry.get("qdisc"),
            "txqueuelen": entry.get("txqlen"),
            "rx_queues": entry.get("num_rx_queues"),
            "tx_queues": entry.get("num_tx_queues"),
            "vlan": {"parent": entry.get("link"), "tag": data.get("id"), "protocol": data.get("protocol")},
            "ends": {key: data.get(key) for key in ("local", "remote", "ttl")},
            "xdp": mapping_at(mapping_at(entry, "xdp"), "prog").get("name"),
        }
    return links


def parse_addresses(text: str) -> dict[str, list[str]]:
    """Parse ``ip -json address show``: addresses with prefix lengths, by interface; not IPv6's link-local ones."""
    return {
        str(entry.get("ifname")): [
            f"{info.get('local')}/{info.get('prefixlen')}"
            for info in _dicts(entry, "addr_info")
            if info.get("family") == "inet" or (info.get("family") == "inet6" and info.get("scope") != "link")
        ]
        for entry in parse_json(text, "ip address")
    }


def parse_neighbours(text: str, interface: str) -> dict[str, dict[str, Any]]:
    """Parse ``ip -json neigh show dev D``: by ``address%D``, MAC (None when unresolved) and state."""
    return {
        f"{entry.get('dst')}%{entry.get('dev', interface)}": {
            "mac": entry.get("lladdr"),
            "state": "+".join(map(str, _list(entry, "state"))) or None,
        }
        for entry in parse_json(text, "ip neigh")
    }


def parse_routes(text: str, version: int = 4) -> list[dict[str, Any]]:
    """Parse ``ip -json route show``: to, hops (``via 1.2.3.4 dev d0``, several when multipath), type, metric.

    words: arguments of ``ip route replace`` that set the same route.
    """
    return [
        {
            "to": _destination(entry, version),
            "hops": [_hop(hop) for hop in _dicts(entry, "nexthops") or [entry]],
            "type": str(entry.get("type", "unicast")),
            "metric": entry.get("metric", 0),
            "words": _route_words(entry, version),
        }
        for entry in parse_json(text, "ip route")
    ]


def parse_path(text: str) -> str | None:
    """Parse ``ip -json route get``: where the kernel would send the packet, ``via 1.2.3.4 dev d0``; None: nowhere."""
    entries = parse_json(text, "ip route get")
    if not entries or entries[0].get("type", "unicast") != "unicast":
        return None
    return _hop(entries[0])


def parse_offloads(text: str) -> dict[str, bool]:
    """Parse ``ethtool --json -k``: the features that are on or off."""
    features = next(iter(parse_json(text, "ethtool")), {})
    return {
        name: bool(value["active"])
        for name, value in features.items()
        if isinstance(value, Mapping) and "active" in value
    }


def queue_files(files: Mapping[str, str], interface: str, name: str) -> dict[str, str]:
    """One file of every queue of an interface: ``{"rx-0": "2"}`` for rps_cpus."""
    start, end = f"/sys/class/net/{interface}/queues/", f"/{name}"
    return {
        path[len(start) : -len(end)]: value
        for path, value in sorted(files.items())
        if path.startswith(start) and path.endswith(end)
    }


def parse_channels(text: str) -> dict[str, dict[str, int]]:
    """Parse ``ethtool -l`` (queues) or ``-g`` (descriptors): ``{"max": {"rx": 2, "tx": 2}, "now": {...}}``."""
    maximums, heading, current = text.partition("Current hardware settings")
    if not heading:
        raise DutError(f"ethtool -l or -g printed no settings ({_brief(text)})")
    parts = {"max": maximums.partition("Pre-set maximums")[2], "now": current}
    return {
        name: {match[1].lower(): int(match[2]) for match in _COUNT.finditer(part) if match[2] != "n/a"}
        for name, part in parts.items()
    }


def parse_coalescing(text: str) -> dict[str, bool | int] | None:
    """Parse ``ethtool -c``: adaptive-rx, rx-usecs, rx-frames, and tx's; None where it prints none of them.

    Numbers of a direction that is adaptive are left out, since they change by themselves.
    """
    adaptive = re.search(r"^Adaptive RX: (on|off|n/a) +TX: (on|off|n/a)", text, re.MULTILINE)
    words = zip(("rx", "tx"), adaptive.groups(), strict=True) if adaptive else ()
    settings: dict[str, bool | int] = {f"adaptive-{end}": word == "on" for end, word in words if word != "n/a"}
    for line in text.splitlines():
        if (match := _DELAY.fullmatch(line.strip())) and not settings.get(f"adaptive-{match[2]}"):
            settings[match[1]] = int(match[3])
    return settings or None


def parse_hash(text: str) -> dict[str, Any]:
    """Parse ``ethtool -x``: table (queue of each entry), key (digits only), function; None for what is not printed.

    A function has the transformation of its input behind it: ``toeplitz, symmetric-or-xor``.
    """
    rows = filter(None, map(_ROW.fullmatch, text.partition("RSS hash key")[0].splitlines()))
    table = [int(word) for row in rows for word in row[1].split() if len(word) <= 6]
    key, function = _KEY.search(text), ", ".join(_FUNCTION.findall(text))
    return {
        "table": table or None,
        "key": key[1].replace(":", "") if key else None,
        "function": function or None,
    }


def parse_hash_fields(text: str) -> list[str] | None:
    """Parse ``ethtool -n DEV rx-flow-hash udp4``: which of src, dst, sport, dport; None where it does not say."""
    if "use these fields" not in text:
        return None
    return [name for words, name in _FIELDS.items() if words in text]


def queue_of(name: str) -> int | None:
    """Receive queue that an interrupt of this name serves; None for others."""
    match = None if re.search(r"output|-tx(?!rx|-rx)", name, re.IGNORECASE) else _QUEUE.search(name)
    return int(match[1]) if match else None


def count_nft_rules(text: str) -> int:
    """Count the rules of ``nft -j list ruleset``."""
    return sum("rule" in entry for entry in _nft_entries(text))


def own_nft_rules(text: str) -> dict[str, int]:
    """Count the rules in each chain of trexbench's own table, from ``nft -j list ruleset``."""
    rules: Counter[str] = Counter()
    for entry in _nft_entries(text):
        for kind, key, count in (("chain", "name", 0), ("rule", "chain", 1)):
            item = mapping_at(entry, kind)
            if item.get("family") == "inet" and item.get("table") == TABLE:
                rules[f"inet {item.get(key)}"] += count
    return dict(rules)


def _nft_entries(text: str) -> Sequence[dict[str, Any]]:
    try:
        return msgspec.json.decode(text, type=_Ruleset).nftables
    except (ValueError, RecursionError):
        raise DutError(f"nft -j list ruleset printed no ruleset ({_brief(text)})") from None


def count_iptables_rules(text: str) -> int:
    """Count the rules of ``iptables-save``."""
    return sum(line.startswith("-A ") for line in text.splitlines())


def _route_words(entry: Mapping[str, Any], version: int) -> list[str]:
    words = [] if entry.get("type", "unicast") == "unicast" else [str(entry["type"])]
    words += [_destination(entry, version), *_hop_words(entry)]
    for key, word in (("protocol", "proto"), ("scope", "scope"), ("prefsrc", "src"), ("metric", "metric")):
        words += [word, str(entry[key])] if entry.get(key) else []
    for metrics in _dicts(entry, "metrics"):
        for key, value in metrics.items():
            words += [str(key), str(value)]
    for hop in _dicts(entry, "nexthops"):
        words += ["nexthop", *_hop_words(hop), *(["weight", str(hop["weight"])] if hop.get("weight") else [])]
    return words


def _hop_words(entry: Mapping[str, Any]) -> list[str]:
    gateway = ["via", str(entry["gateway"])] if "gateway" in entry else []
    device = ["dev", str(entry["dev"])] if "dev" in entry else []
    return gateway + device + (["onlink"] if "onlink" in _list(entry, "flags") else [])


def _hop(entry: Mapping[str, Any]) -> str:
    via = f"via {entry['gateway']} " if "gateway" in entry else ""
    return f"{via}dev {entry.get('dev')}" if "dev" in entry else str(entry.get("type", "nowhere"))


def mapping_at(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Object at this key; empty where there is none."""
    value = entry.get(key)
    return value if isinstance(value, dict) else {}


def _list(entry: Mapping[str, Any], key: str) -> list[Any]:
    value = entry.get(key)
    return value if isinstance(value, list) else []


def _dicts(entry: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    return [value for value in _list(entry, key) if isinstance(value, dict)]


def _destination(entry: Mapping[str, Any], version: int) -> str:
    to = str(entry.get("dst"))
    if to == "default":
        return "::/0" if version == 6 else "0.0.0.0/0"
    return to if "/" in to else f"{to}/{128 if ':' in to else 32}"


def _brief(text: str) -> str:
    return repr(" ".join(text.split())[:60])
