"""Where the parts of an Ethernet frame begin, as TRex's flow statistics look for them."""

from __future__ import annotations

from dataclasses import dataclass

ETHERNET_BYTES, VLAN_BYTES, IPV4_BYTES, IPV6_BYTES = 14, 4, 20, 40
IPV4, IPV6, VLAN, QINQ = 0x0800, 0x86DD, 0x8100, 0x88A8
ICMP, TCP, UDP = 1, 6, 17
_EXTENSIONS = (0, 43, 44, 51, 60, 135)


@dataclass(frozen=True)
class Parts:
    """Offsets into a frame; of one without IP only the payload's means anything."""

    payload: int | None  # None where the frame is cut off before it
    version: int = 0  # of IP; 0: none
    ip: int = 0
    layer4: int = 0
    protocol: int | None = None

    @property
    def mark(self) -> tuple[int, int]:
        """Offsets of the two bytes that can hold a mark: IPv4's ID, or the lower part of IPv6's flow label."""
        return (self.ip + 4, self.ip + 5) if self.version == 4 else (self.ip + 2, self.ip + 3)

    def ip_end(self, packet: bytes) -> int:
        """End of the IP packet by its own length field."""
        return self.ip + (_u16(packet, self.ip + 2) if self.version == 4 else IPV6_BYTES + _u16(packet, self.ip + 4))


def find(packet: bytes) -> Parts:
    """Find the parts of a frame without FCS. Without a whole IP header all behind Ethernet's is payload."""
    at, kind = ETHERNET_BYTES, _u16(packet, 12)
    while kind in (VLAN, QINQ) and at + VLAN_BYTES <= len(packet):
        at, kind = at + VLAN_BYTES, _u16(packet, at + 2)
    if kind == IPV4 and at + IPV4_BYTES <= len(packet):
        layer4, protocol = at + 4 * (packet[at] & 15), packet[at + 9]
        return Parts(_payload(packet, layer4, protocol), 4, at, layer4, protocol)
    if kind == IPV6 and at + IPV6_BYTES <= len(packet):
        protocol, layer4 = packet[at + 6], at + IPV6_BYTES
        while protocol in _EXTENSIONS and layer4 + 8 <= len(packet):
            protocol, layer4 = packet[layer4], layer4 + 8 * (packet[layer4 + 1] + 1)
        return Parts(_payload(packet, layer4, protocol), 6, at, layer4, protocol)
    return Parts(ETHERNET_BYTES)


def _u16(packet: bytes, at: int) -> int:
    return int.from_bytes(packet[at : at + 2], "big")


def _payload(packet: bytes, layer4: int, protocol: int) -> int | None:
    if protocol == TCP:
        return layer4 + 4 * (packet[layer4 + 12] >> 4) if layer4 + 20 <= len(packet) else None
    return layer4 + (8 if protocol in (UDP, ICMP) else 0)
