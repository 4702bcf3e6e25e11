"""Frames with vnet headers: what stands for several segments, and what is left when some of them are lost."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.lab.vnet import VNET_BYTES, cut, runs_of, segments_of

MSS = 1448
_OPTIONS = 12
_V4, _V6 = 1, 4


def folded(data: bytes) -> int:
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def pseudo(version: int, length: int) -> int:
    if version == 4:
        return folded(bytes([192, 0, 2, 1, 192, 0, 2, 2]) + struct.pack("!HH", 6, length))
    return folded(bytes(range(16)) + bytes(range(16, 32)) + struct.pack("!IHBB", length, 0, 0, 6))


def frame_of(
    version: int, payload: bytes, first: int = 0, flags: int = 0x18, tags: int = 0, kind: int | None = None
) -> bytes:
    """Return a frame as the kernel hands it over, from byte ``first`` of the flow on; kind: gso_type, None: by size."""
    ip_bytes, tcp_bytes = (20 if version == 4 else 40), 20 + _OPTIONS
    length = tcp_bytes + len(payload)
    ether = b"\x02" * 12 + b"\x81\x00\x00\x05" * tags + (b"\x08\x00" if version == 4 else b"\x86\xdd")
    if version == 4:
        number = 7 + first // MSS
        head = struct.pack(
            "!BBHHHBBH8B", 0x45, 0, ip_bytes + length, number, 0x4000, 64, 6, 0, 192, 0, 2, 1, 192, 0, 2, 2
        )
        ip = head[:10] + struct.pack("!H", ~folded(head) & 0xFFFF) + head[12:]
    else:
        ip = struct.pack("!IHBB", 0x60000000, length, 6, 64) + bytes(range(32))
    words = (5201, 40000, 1000 + first, 77, (tcp_bytes // 4) << 4, flags, 512, pseudo(version, length), 0)
    tcp = struct.pack("!HHIIBBHHH", *words) + b"\x01" * _OPTIONS
    gso = (_V4 if version == 4 else _V6) if len(payload) > MSS else 0
    start = len(ether) + ip_bytes
    headers = start + tcp_bytes
    vnet = struct.pack("=BBHHHH", 1, gso if kind is None else kind, headers, MSS if gso else 0, start, 16)
    return vnet + ether + ip + tcp + payload


def bytes_of(count: int) -> bytes:
    return bytes(number * 7 % 251 for number in range(count))


def test_one_packet_is_no_several() -> None:
    assert segments_of(frame_of(4, bytes_of(MSS))) is None
    assert segments_of(frame_of(4, bytes_of(100), kind=_V4)) is None, "GSO of a single segment"


@given(st.sampled_from([4, 6]), st.integers(MSS + 1, 64_000), st.integers(0, 1))
def test_wire_bytes_count_the_headers_of_each_segment(version: int, size: int, tags: int) -> None:
    frame = frame_of(version, bytes_of(size), tags=tags)
    whole = segments_of(frame)
    assert whole is not None
    single = [frame_of(version, bytes_of(min(MSS, size - at)), tags=tags) for at in range(0, size, MSS)]
    assert whole.count == len(single) and whole.size == sum(len(one) - VNET_BYTES for one in single)
    assert whole.each == len(single[0]) - VNET_BYTES


@given(st.sampled_from([4, 6]), st.integers(MSS + 1, 30_000), st.data(), st.integers(0, 1))
def test_a_cut_frame_is_what_would_have_been_sent_of_it(
    version: int, size: int, data: st.DataObject, tags: int
) -> None:
    """Every field, the checksums included, as in a frame made of that part of the flow."""
    payload = bytes_of(size)
    frame = frame_of(version, payload, flags=0x99, tags=tags)  # CWR, ACK, PSH, FIN
    whole = segments_of(frame)
    assert whole is not None
    first = data.draw(st.integers(0, whole.count - 1))
    end = data.draw(st.integers(first + 1, whole.count))
    flags = 0x10 | (0x80 if first == 0 else 0) | (0x09 if end == whole.count else 0)
    wanted = frame_of(version, payload[first * MSS : end * MSS], first * MSS, flags, tags)
    assert cut(frame, whole, first, end) == wanted


@pytest.mark.parametrize(
    ("kept", "lost", "runs"),
    [
        (5, (), [(0, 5)]),
        (0, (), []),
        (5, (0,), [(1, 5)]),
        (5, (4,), [(0, 4)]),
        (5, (1, 2), [(0, 1), (3, 5)]),
        (2, (0, 1), []),
    ],
)
def test_runs_between_the_lost_ones(kept: int, lost: tuple[int, ...], runs: list[tuple[int, int]]) -> None:
    assert runs_of(kept, lost) == runs
