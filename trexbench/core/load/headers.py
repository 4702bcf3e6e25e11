"""Places of a frame's headers, whatever its address family and its VLAN tags; and tags that a port adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from ..errors import ConfigError

TAG_TYPES = (0x8100, 0x88A8, 0x9100)
"""Ethernet types after which a VLAN tag follows: 802.1Q, 802.1ad, and the one in use before that."""
DOT1Q, DOT1AD = TAG_TYPES[:2]
NAMES = {DOT1Q: "802.1Q", DOT1AD: "802.1ad"}
ADDRESSES_BYTES, TAG_BYTES, MOST_TAGS = 12, 4, 2
_OFFSETS = ("pkt_offset", "l2_len")
_LAYOUTS: Mapping[int, tuple[str, int, Mapping[str, tuple[int, int]]]] = {
    0x0800: ("IP", 20, {"src": (12, 4), "dst": (16, 4), "proto": (9, 1)}),
    0x86DD: ("IPv6", 40, {"src": (8, 16), "dst": (24, 16), "nh": (6, 1)}),
}
"""By Ethernet type the header's name in profiles, length, and the (offset, length) of its fields, the protocol last."""
VERSIONS = {"IP": 4, "IPv6": 6}
"""IP versions by the names of their headers."""


@dataclass(frozen=True)
class Tuple5:
    """Places of a frame's addresses, protocol and ports: (offset, length) by field name."""

    fields: Mapping[str, tuple[int, int]]

    def of(self, frame: bytes) -> bytes:
        return b"".join(frame[start : start + size] for start, size in self.fields.values())

    @property
    def version(self) -> int | None:
        """The IP version, 4 or 6; None for a frame that is not IP."""
        return next((VERSIONS[name.partition(".")[0]] for name in self.fields), None)

    def written(self, packet: bytes, offset: int, size: int, value: int) -> tuple[str, str]:
        """Name the field that a value written there changes, and its new content: an address, or a number."""
        for name, (start, length) in self.fields.items():
            if name.endswith((".src", ".dst")) and start <= offset and offset + size <= start + length:
                at, data = offset - start, packet[start : start + length]
                new = (value % (1 << 8 * size)).to_bytes(size, "big")
                return name, str(ip_address(data[:at] + new + data[at + size :]))
            if (offset, size) == (start, length):
                return name, str(value)
        return f"bytes {offset} to {offset + size - 1}", str(value)


def find_tuple5(packet: bytes) -> Tuple5:
    """The 5-tuple of an Ethernet frame, VLAN tags skipped; empty for a frame without a whole IPv4 or IPv6 header."""
    l3 = _header_bytes(packet)
    name, size, layout = _LAYOUTS.get(_u16(packet, l3 - 2), ("", 0, {}))
    if not layout or len(packet) < l3 + size:
        return Tuple5({})
    fields = {f"{name}.{field}": (l3 + at, length) for field, (at, length) in layout.items()}
    *_, (protocol_at, _) = fields.values()
    l4 = l3 + (size if name == "IPv6" else (packet[l3] & 15) * 4)
    if transport := {17: "UDP", 6: "TCP"}.get(packet[protocol_at]):
        fields |= {f"{transport}.sport": (l4, 2), f"{transport}.dport": (l4 + 2, 2)}
    return Tuple5(fields)


def mtu_needed(packet: bytes) -> int:
    """Length of an Ethernet frame behind its header and VLAN tags, which an interface's MTU limits."""
    return len(packet) - _header_bytes(packet)


def with_room(packet: bytes, room: int) -> bytes:
    """Grow a packet to at least ``room`` bytes behind IPv6 and UDP; the smallest IPv6 frames have 12."""
    fields = find_tuple5(packet).fields
    if "IPv6.src" not in fields or "UDP.sport" not in fields:
        return packet
    l3, l4 = fields["IPv6.src"][0] - 8, fields["UDP.sport"][0]
    missing = max(0, l4 + 8 + room - len(packet))
    grown = bytearray(packet + bytes(missing))
    for at in (l3 + 4, l4 + 4):
        grown[at : at + 2] = (_u16(packet, at) + missing).to_bytes(2, "big")
    return bytes(grown)


def _header_bytes(packet: bytes) -> int:
    """Length of the Ethernet header with its VLAN tags."""
    offset = ADDRESSES_BYTES
    while _u16(packet, offset) in TAG_TYPES:
        offset += TAG_BYTES
    return offset + 2


def _u16(packet: bytes, at: int) -> int:
    return int.from_bytes(packet[at : at + 2], "big")


def tag_types(count: int) -> tuple[int, ...]:
    """Ethernet types of ``count`` tags, outer first: 802.1Q, behind a service provider's 802.1ad."""
    return (DOT1AD, DOT1Q)[MOST_TAGS - count :]


def with_tags(packet: bytes, vlans: Sequence[int]) -> bytes:
    """Insert these tags, outer first, between the packet's MAC addresses and the tags that it has."""
    types = tag_types(len(vlans))
    tags = b"".join(kind.to_bytes(2, "big") + vlan.to_bytes(2, "big") for kind, vlan in zip(types, vlans, strict=True))
    return packet[:ADDRESSES_BYTES] + tags + packet[ADDRESSES_BYTES:]


def behind_tags(instructions: Sequence[Mapping[str, Any]], count: int) -> list[dict[str, Any]]:
    """Move a field engine program behind ``count`` more tags; ConfigError where it sets the packet's length."""
    if count and any(instruction["type"] == "trim_pkt_size" for instruction in instructions):
        what = "a field engine that sets the frames' length (trim_pkt_size)"
        raise ConfigError(what, "it cannot be sent with VLAN tags")

    def moved(key: str, value: Any) -> Any:
        return value + TAG_BYTES * count if key in _OFFSETS and value >= ADDRESSES_BYTES else value

    return [{key: moved(key, value) for key, value in instruction.items()} for instruction in instructions]


def describe_tags(packet: bytes) -> str:
    """Describe the tags of a packet: ``VLAN 100``, ``VLAN 100 (802.1ad) and 200``; empty without any."""
    tags, at = [], ADDRESSES_BYTES
    while (kind := _u16(packet, at)) in TAG_TYPES:
        vlan = _u16(packet, at + 2) & 0xFFF
        tags.append(f"{vlan}{'' if kind == DOT1Q else f' ({NAMES.get(kind, hex(kind))})'}")
        at += TAG_BYTES
    return f"VLAN {' and '.join(tags)}" if tags else ""
