"""Toeplitz with keys of any length, and the packets of a stream that stand for all."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv6Address
from typing import Any

import pytest
from effort import scaled
from hypothesis import given, settings
from hypothesis import strategies as st

from trexbench.core.dut.rss import (
    FIELDS,
    MICROSOFT_KEY,
    MOST_PACKETS,
    MOST_SEEN,
    Toeplitz,
    hash_input,
    hashed_of,
    headers_of,
    queue_of,
)

IPV4 = bytes(12) + bytes.fromhex("08004500002e0001000040110000420995bba18e64500aea06e6001a0000") + bytes(18)
"""66.9.149.187:2794 -> 161.142.100.80:1766, UDP."""
IPV6 = bytes(12) + bytes.fromhex("86dd600000000000ff40") + bytes(range(32)) + bytes(20)
ARP = bytes(12) + bytes.fromhex("0806") + bytes(46)


def by_definition(key: bytes, data: bytes) -> int:
    """The specification's own words: for each bit that is set, add the 32 bits of the key that begin there."""
    bits, found = int.from_bytes(key, "big"), 0
    for at in range(len(data) * 8):
        if data[at // 8] >> (7 - at % 8) & 1:
            found ^= bits >> (len(key) * 8 - 32 - at) & 0xFFFFFFFF
    return found


@settings(max_examples=scaled(100, 10))
@given(st.binary(min_size=20, max_size=52), st.data())
def test_the_hash_is_what_the_specification_says(key: bytes, data: st.DataObject) -> None:
    text = data.draw(st.binary(max_size=len(key) - 4))
    assert Toeplitz(key).hash(text) == by_definition(key, text)


@pytest.mark.parametrize("key", [b"", b"abc", b"abcd", MICROSOFT_KEY[:15]])
def test_a_key_too_short_for_its_input_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match=f"a key of {len(key)} bytes"):
        Toeplitz(key).hash(bytes(12))


@pytest.mark.parametrize(
    ("packet", "fields", "data"),
    [
        (IPV4, FIELDS, "420995bba18e64500aea06e6"),
        (IPV4, ("dst", "src"), "420995bba18e6450"),
        (IPV4, ("dport",), "06e6"),
        (IPV4, (), ""),
        (IPV6, FIELDS, bytes(range(32)).hex()),
        (ARP, FIELDS, ""),
    ],
    ids=["all", "in the hash's own order", "one", "none", "IPv6 without ports", "not IP"],
)
def test_what_is_hashed(packet: bytes, fields: tuple[str, ...], data: str) -> None:
    assert hash_input(packet, fields).hex() == data


def steps(op: str, count: int, offset: int = 26) -> list[dict[str, Any]]:
    return [
        {"type": "flow_var", "name": f"v{offset}", "size": 4, "min_value": 1, "max_value": count, "op": op},
        {"type": "write_flow_var", "name": f"v{offset}", "pkt_offset": offset},
        {"type": "fix_checksum_ipv4", "pkt_offset": 14},
    ]


@pytest.mark.parametrize(
    ("instructions", "packets", "inputs", "exact"),
    [
        ([], 1, 1, True),
        (steps("inc", 251), 251, 251, True),
        (steps("inc", 5000), MOST_PACKETS, 5000, True),
        (steps("inc", 20000), MOST_PACKETS, MOST_SEEN, False),
        (steps("random", 251), MOST_PACKETS, MOST_SEEN, False),
        (steps("random", 251, offset=50), MOST_PACKETS, 1, True),
        ([*steps("inc", 3), *steps("inc", 1000, offset=50)], MOST_PACKETS, 3, True),
    ],
    ids=["one flow", "few", "more", "too many", "random", "random behind the headers", "few among more"],
)
def test_packets_that_stand_for_all(instructions: list[dict[str, Any]], packets: int, inputs: int, exact: bool) -> None:
    assert len(headers_of(IPV4, instructions)) == packets
    found, whole = hashed_of(IPV4, instructions, FIELDS)
    assert (len(found), whole) == (inputs, exact)


def test_every_flow_is_as_frequent_as_it_is_sent() -> None:
    found, _ = hashed_of(IPV4, [*steps("inc", 4), *steps("inc", 6, offset=30)], ("src", "dst"))
    assert sorted(Counter(found).values()) == [1] * 12
    twice, _ = hashed_of(IPV4, [*steps("inc", 4), *steps("inc", 6, offset=30)], ("src",))
    assert len(set(twice)) == 4 == len(twice)
    cached, whole = hashed_of(IPV4, steps("inc", 1 << 20), ("src",), cache=40)
    assert len(set(cached)) == 40 == len(cached) and whole


VERIFICATION = [
    # Microsoft's "Verifying the RSS Hash Calculation", IPv6: source, port, destination, port, 2-tuple, 4-tuple
    ("3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2CC18CD5, 0x40207D3D),
    ("3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0F0C461C, 0xDDE51BBF),
    ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf", 38024, 0x4B61E985, 0x02D1FEEF),
]


@pytest.mark.parametrize("tags", ["", "810000648100000a"], ids=["plain", "two tags"])
@pytest.mark.parametrize(("source", "sport", "destination", "dport", "two", "four"), VERIFICATION)
@pytest.mark.parametrize("protocol", [6, 17])
def test_microsofts_ipv6_rows(
    source: str, sport: int, destination: str, dport: int, two: int, four: int, protocol: int, tags: str
) -> None:
    addresses = IPv6Address(source).packed + IPv6Address(destination).packed
    ports = sport.to_bytes(2, "big") + dport.to_bytes(2, "big")
    header = bytes.fromhex("86dd600000000014") + bytes([protocol, 64])
    packet = bytes(12) + bytes.fromhex(tags) + header + addresses + ports + bytes(16)
    toeplitz = Toeplitz(MICROSOFT_KEY)
    assert toeplitz.hash(hash_input(packet, FIELDS)) == four
    assert toeplitz.hash(hash_input(packet, ("src", "dst"))) == two
    assert queue_of(toeplitz, packet, FIELDS, range(128)) == four % 128
