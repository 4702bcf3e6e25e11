"""VLAN tags in the frames of a port: put into its packets and field engine programs, which know nothing of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ConfigError
from .headers import ADDRESSES_BYTES, TAG_BYTES, TAG_TYPES

DOT1Q, DOT1AD = TAG_TYPES[0], TAG_TYPES[1]
MOST_TAGS = 2
NAMES = {DOT1Q: "802.1Q", DOT1AD: "802.1ad"}
_OFFSETS = ("pkt_offset", "l2_len")


def tag_types(count: int) -> tuple[int, ...]:
    """The Ethernet type of each of so many tags, outer first: 802.1Q, behind a service provider's 802.1ad."""
    return (DOT1AD, DOT1Q)[MOST_TAGS - count :]


def with_tags(packet: bytes, vlans: Sequence[int]) -> bytes:
    """The packet with these tags behind its MAC addresses, outer first, and before those that it has."""
    types = tag_types(len(vlans))
    tags = b"".join(kind.to_bytes(2, "big") + vlan.to_bytes(2, "big") for kind, vlan in zip(types, vlans, strict=True))
    return packet[:ADDRESSES_BYTES] + tags + packet[ADDRESSES_BYTES:]


def behind_tags(instructions: Sequence[Mapping[str, Any]], count: int) -> list[dict[str, Any]]:
    """A field engine program for packets with so many tags more; ConfigError where it sets the packet's length."""
    if count and any(one["type"] == "trim_pkt_size" for one in instructions):
        raise ConfigError(
            "a field engine that sets the frames' length (trim_pkt_size)", "it cannot be sent with VLAN tags"
        )
    return [
        {
            key: value + TAG_BYTES * count if key in _OFFSETS and value >= ADDRESSES_BYTES else value
            for key, value in one.items()
        }
        for one in instructions
    ]


def told_tags(packet: bytes) -> str:
    """The tags of a packet in words: ``VLAN 100``, ``VLAN 100 (802.1ad) and 200``; empty without any."""
    found, at = [], ADDRESSES_BYTES
    while (kind := int.from_bytes(packet[at : at + 2], "big")) in TAG_TYPES:
        vlan = int.from_bytes(packet[at + 2 : at + 4], "big") & 0xFFF
        found.append(f"{vlan}{'' if kind == DOT1Q else f' ({NAMES.get(kind, hex(kind))})'}")
        at += TAG_BYTES
    return f"VLAN {' and '.join(found)}" if found else ""
