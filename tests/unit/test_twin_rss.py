"""Toeplitz and the indirection table, against the vectors of the RSS specification and the bench's own flows."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.config.twin import RssSpec
from trexbench.core.dut.rss import MICROSOFT_KEY, Toeplitz
from trexbench.twin.rss import Rss

# source, its port, destination, its port, hash with ports, hash without: Microsoft's verification suite
VECTORS = [
    ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x51CCC178, 0x323E8FC2),
    ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xC626B0EA, 0xD718262A),
    ("24.19.198.95", 12898, "12.22.207.184", 38024, 0x5C2B394A, 0xD2D0A5DE),
    ("38.27.205.30", 48228, "209.142.163.6", 2217, 0xAFC7327F, 0x82989176),
    ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x10E828A2, 0x5D1809C5),
]
X553 = RssSpec(table=512)


def packet(src: str, dst: str, sport: int = 1025, dport: int = 12, tag: bytes = b"") -> bytes:
    ends = IPv4Address(src).packed + IPv4Address(dst).packed
    ip = bytes.fromhex("4500002e00010000401100 00".replace(" ", "")) + ends
    return bytes(12) + tag + b"\x08\x00" + ip + sport.to_bytes(2, "big") + dport.to_bytes(2, "big") + bytes(22)


def var2(src: str, dst: str) -> list[bytes]:
    return [packet(f"{src}.{host}", f"{dst}.{host}") for host in range(4, 255)]


@pytest.mark.parametrize(("src", "sport", "dst", "dport", "with_ports", "without"), VECTORS)
def test_verification_suite(src: str, sport: int, dst: str, dport: int, with_ports: int, without: int) -> None:
    addresses = IPv4Address(src).packed + IPv4Address(dst).packed
    ports = sport.to_bytes(2, "big") + dport.to_bytes(2, "big")
    toeplitz = Toeplitz(Rss(RssSpec(), 1).key)
    assert (toeplitz.hash(addresses + ports), toeplitz.hash(addresses)) == (with_ports, without)


@pytest.mark.parametrize(
    ("fields", "which"), [(("src", "dst", "sport", "dport"), 4), (("src", "dst"), 5)], ids=["with ports", "without"]
)
def test_the_fields_of_the_packet_are_hashed(fields: tuple[str, ...], which: int) -> None:
    rss = Rss(RssSpec(fields=fields, table=512), 1)
    for row in VECTORS:
        src, sport, dst, dport = row[:4]
        for tag in (b"", bytes.fromhex("81000064")):
            shares = rss.shares([packet(src, dst, sport, dport, tag)], 3)
            assert shares.index(1.0) == row[which] % 512 % 3


# queues; frames of the 251 flows in each, one way and the other: DPDK on an X553
SPREAD = [(2, [125, 126], [126, 125]), (3, [83, 84, 84], [85, 84, 82]), (4, [0, 126, 125, 0], [126, 0, 0, 125])]


@pytest.mark.parametrize(("queues", "there", "back"), SPREAD)
def test_lockstep_flows_spread_as_they_do_on_the_nic(queues: int, there: list[int], back: list[int]) -> None:
    rss = Rss(X553, 1)
    assert [round(251 * one) for one in rss.shares(var2("16.0.0", "48.0.0"), queues)] == there
    assert [round(251 * one) for one in rss.shares(var2("48.0.0", "16.0.0"), queues)] == back


@given(st.integers(1, 16), st.integers(0, 1000), st.binary(max_size=60))
def test_one_flow_is_one_queue(queues: int, seed: int, junk: bytes) -> None:
    rss = Rss(RssSpec(key="random"), seed)
    for one in (packet("16.0.0.1", "48.0.0.1"), junk):
        assert sorted(rss.shares([one] * 7, queues))[-1] == 1.0


def test_what_is_not_ip_goes_to_the_first_queue() -> None:
    assert Rss(X553, 1).shares([bytes(12) + b"\x08\x06" + bytes(40)], 4) == (1.0, 0.0, 0.0, 0.0)


def test_a_random_key_is_the_seeds() -> None:
    spec = RssSpec(key="random")
    assert Rss(spec, 1).key == Rss(spec, 1).key != Rss(spec, 2).key
    assert len(Rss(spec, 1).key) == 40
    assert Rss(RssSpec(key=MICROSOFT_KEY.hex()), 5).key == MICROSOFT_KEY
