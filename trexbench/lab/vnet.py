"""Frames as a TAP with IFF_VNET_HDR hands them over: ten bytes before each say what is left to do to it. Pure.

A frame of up to 64 KB stands for several TCP segments, which the kernel has not cut yet (GSO): each of gso_size bytes
of payload with a copy of the headers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

VNET_BYTES = 10
_VNET = struct.Struct("=BBHHHH")
"""flags, gso_type, hdr_len, gso_size, csum_start, csum_offset."""
_FIN_PSH, _CWR = 0x09, 0x80
_IPV4, _TAGS = 0x0800, (0x8100, 0x88A8)


@dataclass(frozen=True)
class Segments:
    """Segments of a GSO frame. headers: bytes before the payload, without the vnet header; payload: bytes of it.

    size: bytes on the wire of all; each: of every one but the last.
    """

    count: int
    each: int
    size: int
    headers: int
    payload: int


def segments_of(frame: bytes) -> Segments | None:
    """None: it is one packet."""
    if not frame[1]:
        return None
    _, _, _, gso_size, start, _ = _VNET.unpack_from(frame)
    headers = start + (frame[VNET_BYTES + start + 12] >> 4) * 4
    payload = len(frame) - VNET_BYTES - headers
    if not gso_size or payload <= gso_size:
        return None
    count = -(-payload // gso_size)
    return Segments(count, headers + gso_size, payload + count * headers, headers, payload)


def runs_of(kept: int, lost: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the runs, each as (first, end), that the lost segments leave of the ``kept`` first ones."""
    edges = [-1, *lost, kept]
    return [(before + 1, after) for before, after in pairwise(edges) if after > before + 1]


def cut(frame: bytes, whole: Segments, first: int, end: int) -> bytes:
    """The segments [first, end) of a GSO frame as one of its own, as the kernel would have cut it."""
    flags, kind, _, gso_size, start, offset = _VNET.unpack_from(frame)
    begin, stop = first * gso_size, min(end * gso_size, whole.payload)
    out = bytearray(frame[: VNET_BYTES + whole.headers])
    single = stop - begin <= gso_size
    _VNET.pack_into(out, 0, flags, 0 if single else kind, whole.headers, 0 if single else gso_size, start, offset)
    tcp, removed = VNET_BYTES + start, whole.payload - (stop - begin)
    sequence = struct.unpack_from("!I", out, tcp + 4)[0]
    struct.pack_into("!I", out, tcp + 4, (sequence + begin) & 0xFFFFFFFF)
    out[tcp + 13] &= ~((_FIN_PSH if stop < whole.payload else 0) | (_CWR if begin else 0)) & 0xFF
    # its checksum field holds the sum of the pseudo header, in which the length is one of the words
    length = len(frame) - tcp
    partial = struct.unpack_from("!H", out, tcp + offset)[0]
    struct.pack_into("!H", out, tcp + offset, _fold(partial + (~length & 0xFFFF) + length - removed))
    at = VNET_BYTES + 12
    while struct.unpack_from("!H", out, at)[0] in _TAGS:
        at += 4
    _shorten_ip(out, at, removed, first)
    return bytes(out) + frame[VNET_BYTES + whole.headers + begin : VNET_BYTES + whole.headers + stop]


def _shorten_ip(out: bytearray, at: int, removed: int, first: int) -> None:
    """at: of the EtherType. removed: bytes that the packet has no more; first: number of its first segment."""
    is_v4, ip = struct.unpack_from("!H", out, at)[0] == _IPV4, at + 2
    place = ip + (2 if is_v4 else 4)
    struct.pack_into("!H", out, place, struct.unpack_from("!H", out, place)[0] - removed)
    if is_v4:
        number = struct.unpack_from("!H", out, ip + 4)[0]
        struct.pack_into("!H", out, ip + 4, (number + first) & 0xFFFF)
        struct.pack_into("!H", out, ip + 10, 0)
        words = struct.unpack_from(f"!{(out[ip] & 15) * 2}H", out, ip)
        struct.pack_into("!H", out, ip + 10, ~_fold(sum(words)) & 0xFFFF)


def _fold(total: int) -> int:
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total
