"""Where the headers of a frame stand, whatever its address family and its VLAN tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address

TAG_TYPES = (0x8100, 0x88A8, 0x9100)
"""Ethernet types after which a VLAN tag follows: 802.1Q, 802.1ad, and what was in use before that."""
ADDRESSES_BYTES, TAG_BYTES = 12, 4


@dataclass(frozen=True)
class Layout:
    """A family's header: its name in profiles, length, and the (offset, length) of its fields by their names."""

    name: str
    size: int
    fields: Mapping[str, tuple[int, int]]
    protocol: str


_LAYOUTS = {
    0x0800: Layout("IP", 20, {"src": (12, 4), "dst": (16, 4), "proto": (9, 1)}, "proto"),
    0x86DD: Layout("IPv6", 40, {"src": (8, 16), "dst": (24, 16), "nh": (6, 1)}, "nh"),
}
VERSIONS = {"IP": 4, "IPv6": 6}
"""IP versions by the names of their headers."""


@dataclass(frozen=True)
class Tuple5:
    """Where the addresses, protocol and ports of a frame stand: (offset, length) by field name."""

    fields: Mapping[str, tuple[int, int]]

    def of(self, frame: bytes) -> bytes:
        return b"".join(frame[start : start + size] for start, size in self.fields.values())

    @property
    def version(self) -> int | None:
        """4 or 6; None for a frame that is not IP."""
        return next((VERSIONS[name.partition(".")[0]] for name in self.fields), None)

    def written(self, packet: bytes, offset: int, size: int, value: int) -> tuple[str, str]:
        """The name of what a value written there changes, and that with the value in it: an address, or a number."""
        for name, (start, length) in self.fields.items():
            whole = offset == start and size == length
            inside = start <= offset and offset + size <= start + length
            if name.endswith((".src", ".dst")) and inside:
                at, data = offset - start, packet[start : start + length]
                new = (value % (1 << 8 * size)).to_bytes(size, "big")
                return name, str(ip_address(data[:at] + new + data[at + size :]))
            if whole:
                return name, str(value)
        return f"bytes {offset} to {offset + size - 1}", str(value)


def find_tuple5(packet: bytes) -> Tuple5:
    """The 5-tuple of an Ethernet frame, VLAN tags skipped; empty for a frame without a whole IPv4 or IPv6 header."""
    l3 = _header_bytes(packet)
    layout = _LAYOUTS.get(_u16(packet, l3 - 2))
    if layout is None or len(packet) < l3 + layout.size:
        return Tuple5({})
    fields = {f"{layout.name}.{name}": (l3 + at, size) for name, (at, size) in layout.fields.items()}
    protocol = packet[fields[f"{layout.name}.{layout.protocol}"][0]]
    l4 = l3 + (layout.size if layout.name == "IPv6" else (packet[l3] & 15) * 4)
    name = {17: "UDP", 6: "TCP"}.get(protocol)
    if name:
        fields |= {f"{name}.sport": (l4, 2), f"{name}.dport": (l4 + 2, 2)}
    return Tuple5(fields)


def mtu_needed(packet: bytes) -> int:
    """The bytes of an Ethernet frame behind its header and VLAN tags, which an interface's MTU limits."""
    return len(packet) - _header_bytes(packet)


def with_room(packet: bytes, room: int) -> bytes:
    """The packet with so many bytes behind IPv6 and UDP at least: the family's smallest frames have 12."""
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
