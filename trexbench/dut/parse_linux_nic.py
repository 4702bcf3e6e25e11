"""What Linux says of a NIC's queues, its interrupts and its hash -> facts. Pure; absent is None, never zero."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..core.errors import DutError

_COUNT = re.compile(r"(RX|TX|Other|Combined):\s+([0-9]{1,9}|n/a)")
_ROW = re.compile(r"\s*([0-9]{1,6}):\s*([0-9]+(?: +[0-9]+)*:?)$")
_KEY = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2})+")
_QUEUE = re.compile(r"(?:txrx|tx-rx|rx|comp|input)[-.]?([0-9]{1,5})(?![0-9])", re.IGNORECASE)
"""How drivers name a receive queue's interrupt: enp3s0f0-TxRx-0, i40e-eth0-TxRx-0, ens5-Tx-Rx-0, eth0-rx-0,
mlx5_comp0@pci:..., virtio0-input.0."""
_FIELDS = {"IP SA": "src", "IP DA": "dst", "bytes 0 & 1": "sport", "bytes 2 & 3": "dport"}


def parse_channels(text: str) -> dict[str, dict[str, int]]:
    """``ethtool -l``: ``{"max": {"rx": 2, "tx": 2}, "now": {...}}``; what the device does not have is left out."""
    found: dict[str, dict[str, int]] = {"max": {}, "now": {}}
    part: dict[str, int] | None = None
    for line in text.splitlines():
        if line.startswith("Pre-set maximums"):
            part = found["max"]
        elif line.startswith("Current hardware settings"):
            part = found["now"]
        elif (match := _COUNT.match(line.strip())) and part is not None and match[2] != "n/a":
            part[match[1].lower()] = int(match[2])
    if part is not found["now"]:
        raise DutError(f"ethtool -l printed no channels ({_brief(text)})")
    return found


def parse_driver(text: str) -> dict[str, str]:
    """``ethtool -i``: driver, version, firmware-version, bus-info, as far as they are told."""
    pairs = (line.partition(": ") for line in text.splitlines())
    names = ("driver", "version", "firmware-version", "bus-info")
    return {name: value.strip() for name, colon, value in pairs if colon and name in names and value.strip()}


def parse_hash(text: str) -> dict[str, Any]:
    """``ethtool -x``: table (queue of each entry), key (digits only), function; None for what it does not tell."""
    table: list[int] = []
    key = function = None
    part = ""
    for line in text.splitlines():
        stripped = line.strip()
        if "indirection table" in line:
            part = "table"
        elif line.startswith("RSS hash key"):
            part = "key"
        elif line.startswith("RSS hash function"):
            part = "function"
        elif line[:1] not in (" ", "\t") and not (part == "key" and _KEY.fullmatch(stripped)):
            part = part if stripped.startswith("Operation not supported") else ""
        elif part == "table" and (row := _ROW.fullmatch(line)):
            table += [int(word) for word in row[2].rstrip(":").split() if len(word) <= 6]
        elif part == "function" and stripped.endswith(": on") and function is None:
            function = stripped[: -len(": on")]
        if part == "key" and _KEY.fullmatch(stripped):
            key = stripped.replace(":", "")
    return {"table": table or None, "key": key, "function": function}


def parse_hash_fields(text: str) -> list[str] | None:
    """``ethtool -n DEV rx-flow-hash udp4``: out of src, dst, sport, dport; None where it does not say."""
    if "use these fields" not in text:
        return None
    return [name for words, name in _FIELDS.items() if words in text]


def parse_interrupts(text: str) -> dict[int, str]:
    """/proc/interrupts: the name of each numbered interrupt, its controller's words left out."""
    lines = text.splitlines()
    cpus = len(lines[0].split()) if lines and lines[0].split()[:1] == ["CPU0"] else None
    if cpus is None:
        raise DutError(f"/proc/interrupts has no heading ({_brief(text)})")
    found = {}
    for line in lines[1:]:
        number, colon, rest = line.partition(":")
        words = rest.split()
        if colon and re.fullmatch("[0-9]{1,9}", number.strip()) and len(words) > cpus:
            found[int(number)] = words[-1]
    return found


def queue_of(name: str) -> int | None:
    """The receive queue that an interrupt of this name serves; None for others."""
    found = None if re.search(r"output|-tx(?!rx|-rx)", name, re.IGNORECASE) else _QUEUE.search(name)
    return int(found[1]) if found else None


def parse_cpus(text: str | None) -> list[int] | None:
    """``0-3,8`` as the kernel lists CPUs; None for anything else."""
    if text is None or not re.fullmatch(r"[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*", text):
        return None
    found: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return sorted(found)


def parse_mask(text: str | None) -> list[int] | None:
    """``00000000,0000000c`` as rps_cpus has it, as CPUs; None for anything else."""
    if text is None or not re.fullmatch(r"[0-9a-f]{1,8}(,[0-9a-f]{8}){0,127}", text):
        return None
    bits = int(text.replace(",", ""), 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def mask(cpus: Iterable[int]) -> str:
    """CPUs as rps_cpus takes them: hexadecimal, a comma between groups of 32."""
    bits = sum(1 << cpu for cpu in set(cpus))
    digits = f"{bits:x}"
    digits = digits.zfill(-(-len(digits) // 8) * 8)
    return ",".join(digits[at : at + 8] for at in range(0, len(digits), 8))


def count_nft_rules(text: str) -> int:
    """``nft -j list ruleset``: how many rules there are."""
    try:
        found = json.loads(text)
        entries = found["nftables"]
        return sum(1 for entry in entries if isinstance(entry, Mapping) and "rule" in entry)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DutError(f"nft -j list ruleset printed no ruleset ({_brief(text)})") from None


def count_iptables_rules(text: str) -> int:
    """``iptables-save``: how many rules there are."""
    return sum(1 for line in text.splitlines() if line.startswith("-A "))


def _brief(text: str) -> str:
    return repr(" ".join(text.split())[:60])
