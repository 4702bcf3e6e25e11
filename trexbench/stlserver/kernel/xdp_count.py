"""Marked frames, by which packet groups of TRex's rule type ``stats`` are counted on arrival.

The mark is the IPv4 ID, from 0xfc00 on, or the lower 16 bits of the IPv6 flow label, as in TRex v3.08; 0xffff
is that of timed frames. Unlike TRex's, it leaves alone the lowest bit of TOS, at which only some NICs look.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...core.load.fieldengine import checksum
from .. import packet_parts
from ..engine import MARKS, StreamSpec
from .bpf_asm import R0, R1, R2, R3, R4, R6, R8, R9, Assembler, Helper
from .frames import Frames

FIRST_ID = 0xFC00
_NOT_RESERVED = 0xEFFF
MOST_TAGS = 2
U16 = 0xFFFF
_ROOM_SHIFT = 10
_WORDS = 2  # of one mark and CPU: packets, bytes


def map_bytes(cpus: int) -> int:
    """Size of a receiving port's map: for each CPU, packets and bytes of every mark."""
    return 8 * _WORDS * (cpus << _ROOM_SHIFT)


def words_of(mark: int, cpus: int) -> range:
    """First words of a mark, one for each CPU."""
    return range(_WORDS * mark, _WORDS * (cpus << _ROOM_SHIFT), _WORDS << _ROOM_SHIFT)


def marked_packet(spec: StreamSpec) -> bytes:
    """Write the mark into the packet; without one, an ID that is no mark. EngineError if it would not be found."""
    packet, parts = spec.packet, packet_parts.find(spec.packet)
    if spec.mark is not None:
        require_found(spec, parts, "counted")
        return with_id(packet, parts, FIRST_ID + spec.mark)
    first = parts.mark[0] - (parts.version == 6)  # all three bytes of the flow label
    identity = int.from_bytes(packet[first : parts.mark[1] + 1], "big") & 0xFFFFF if parts.version else 0
    return with_id(packet, parts, identity & _NOT_RESERVED) if identity >= FIRST_ID else packet


def require_found(spec: StreamSpec, parts: packet_parts.Parts, which: str) -> None:
    """Raise EngineError if the receiving program would not find the mark of such frames."""
    if not 0 < parts.ip <= packet_parts.ETHERNET_BYTES + MOST_TAGS * packet_parts.VLAN_BYTES:
        raise spec.refusal(f"frames are {which} in IPv4 and IPv6 behind {MOST_TAGS} VLAN tags at most")


def with_id(packet: bytes, parts: packet_parts.Parts, identity: int) -> bytes:
    """Write this IPv4 ID, or IPv6 flow label, into the packet."""
    changed, at = bytearray(packet), parts.ip
    if parts.version == 6:
        changed[at + 1 : at + 4] = (packet[at + 1] & 0xF0, identity >> 8, identity & 0xFF)
        return bytes(changed)
    changed[at + 4 : at + 6] = identity.to_bytes(2, "big")
    # RFC 1624: a checksum that is wrong on purpose stays wrong
    taken_out = bytes(byte ^ 0xFF for byte in packet[at + 10 : at + 12] + packet[at + 4 : at + 6])
    changed[at + 10 : at + 12] = checksum(taken_out + changed[at + 4 : at + 6]).to_bytes(2, "big")
    return bytes(changed)


def check_marked(frames: Frames) -> None:
    """Refuse a field engine program that writes bytes by which the receiver recognises a marked frame."""
    refuse_writes(frames, found_by(packet_parts.find(frames.packet)), "counted")


def refuse_writes(frames: Frames, kept: set[int], which: str) -> None:
    """Raise EngineError for a field engine program that changes any of these bytes."""
    if hit := kept & frames.changed:
        raise frames.spec.refusal(f"its field engine writes byte {min(hit)}, by which {which} frames are known")


def found_by(parts: packet_parts.Parts) -> set[int]:
    """Offsets of the bytes by which the receiving program finds a mark: Ethernet's types, and the mark."""
    types = range(12, parts.ip, packet_parts.VLAN_BYTES)
    return {*types, *(at + 1 for at in types), *parts.mark}


def count(asm: Assembler, flows_fd: int, cpus: int) -> None:
    """Count a marked frame. All frames go on at ``counted``, but those that may be timed, which go on right here.

    R2 holds the packet, R3 its end, R6 its length with FCS; these and R7 are left unchanged.
    """
    asm.mov(R8, R2)
    for tags in range(MOST_TAGS + 1):
        last = tags == MOST_TAGS
        asm.calc(R4, R8, "add", 20)
        asm.jump_if("gt", R4, R3, "counted")
        asm.load(2, R4, R8, 12)
        asm.jump_if("eq", R4, _wire(packet_parts.IPV4), "ipv4")
        asm.jump_if("eq", R4, _wire(packet_parts.IPV6), "ipv6")
        if not last:
            asm.jump_if("eq", R4, _wire(packet_parts.VLAN), f"tag{tags}")
            asm.jump_if("ne", R4, _wire(packet_parts.QINQ), "counted")
            asm.label(f"tag{tags}")
            asm.alu("add", R8, packet_parts.VLAN_BYTES)
    asm.jump("counted")
    asm.label("ipv6")
    asm.load(2, R9, R8, 16)
    asm.jump("identified")
    asm.label("ipv4")
    asm.load(2, R9, R8, 18)
    asm.label("identified")
    asm.swap(R9, 16)
    asm.alu("sub", R9, FIRST_ID)
    asm.jump_if("ge", R9, MARKS, "unmarked")
    asm.call(Helper.GET_SMP_PROCESSOR_ID)
    asm.alu("and", R0, cpus - 1)
    asm.alu("lsh", R0, _ROOM_SHIFT)
    asm.alu("add", R0, R9)
    asm.alu("lsh", R0, 4)
    asm.map_value(R1, flows_fd)
    asm.alu("add", R1, R0)
    asm.change("add", R1, 0, 1, R2)
    asm.change("add", R1, 8, R6, R2)
    asm.jump("counted")
    asm.label("unmarked")
    asm.jump_if("ne", R9, U16 - FIRST_ID, "counted")


def _wire(kind: int) -> int:
    """Ethernet type as the program loads it."""
    return int.from_bytes(kind.to_bytes(2, "big"), "little")


def received(words: memoryview, marks: Iterable[int], cpus: int) -> dict[int, tuple[int, int]]:
    """Read packets and octets by mark from a port's map."""
    by_cpu = {mark: [words[at : at + _WORDS].tolist() for at in words_of(mark, cpus)] for mark in marks}
    return {mark: (sum(line[0] for line in lines), sum(line[1] for line in lines)) for mark, lines in by_cpu.items()}
