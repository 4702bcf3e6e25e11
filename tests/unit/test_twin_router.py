"""The simulated router: no loss below capacity, nothing appears, where the cycles go; and RSS by its vectors."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from effort import examples
from hypothesis import example, given
from hypothesis import strategies as st
from twins import shipped_twin

from trexbench.config.twin import RssSpec, TwinSpec
from trexbench.core.dut.rss import MICROSOFT_KEY
from trexbench.twin.noise import SIGMAS, drawn, normal
from trexbench.twin.router import Rss, TwinRouter, place
from trexbench.twin.world import Arrival

PLAIN = TwinSpec(workers=2, clock_hz=1e9, packet_cycles=1000, ring=100, queues=2)
"""One worker forwards a million frames per second."""


def offer(
    router: TwinRouter, pps: Sequence[float], seconds: float, spread: Sequence[float], step: float = 0.1
) -> float:
    """Frames out over frames in, from ports 0, 1, ... at these rates."""
    left = sent = 0.0
    for _ in range(round(seconds / step)):
        arrivals = [Arrival(port, 0, tuple(spread), rate * step, 64.0) for port, rate in enumerate(pps)]
        left += sum(router.carry(step, arrivals))
        sent += sum(one.frames for one in arrivals)
    return left / sent


@pytest.mark.parametrize(
    ("how", "workers", "queues", "placed"),
    [
        ("round-robin", 3, 1, [0, 1]),
        ("round-robin", 3, 2, [0, 1, 2, 0]),
        ("round-robin", 3, 3, [0, 1, 2, 0, 1, 2]),
        ("per-port", 4, 4, [0, 1, 2, 3, 0, 1, 2, 3]),
        ("per-port", 2, 3, [0, 1, 0, 0, 1, 0]),
    ],
)
def test_placement(how: str, workers: int, queues: int, placed: list[int]) -> None:
    assert place(how, workers, 2, queues) == placed


# what, offered per port, spread, what comes out of it
FLOWS = [
    ("all below capacity", (1.9e6,), (0.5, 0.5), 1.0),
    ("one queue is one worker", (2e6,), (1.0, 0.0), 0.5),
    ("the hot queue loses, the other does not", (2e6,), (0.75, 0.25), 0.75),
    ("two ports share their workers", (2e6, 2e6), (0.5, 0.5), 0.5),
    ("max-min: the smaller one gets all", (0.2e6, 1.6e6), (1.0, 0.0), 1.0 / 1.8),
]


@pytest.mark.parametrize(("pps", "spread", "out"), [row[1:] for row in FLOWS], ids=[row[0] for row in FLOWS])
def test_what_comes_out(pps: Sequence[float], spread: Sequence[float], out: float) -> None:
    assert offer(TwinRouter(PLAIN), pps, 2.0, spread) == pytest.approx(out, abs=2e-4)


@examples(60)
@given(st.lists(st.tuples(st.floats(0, 4e6), st.floats(0, 4e6), st.floats(0, 1)), min_size=1, max_size=8))
@example([(0.0, 0.0, 0.0)] * 6 + [(0.0, 2.220446049250313e-16, 5.327835975194167e-307)])
def test_every_frame_is_out_lost_or_inside(spans: list[tuple[float, float, float]]) -> None:
    spec = replace(PLAIN, noise=0.05, drop_cycles=20, vector_cycles=500, batch_s=1e-5)
    router, sent, out = TwinRouter(spec), 0.0, 0.0
    for one, other, share in spans:
        arrivals = [Arrival(p, 0, (share, 1 - share), rate * 0.03, 64.0) for p, rate in enumerate((one, other))]
        left = router.carry(0.03, arrivals)
        assert min(left) >= 0
        sent, out = sent + one * 0.03 + other * 0.03, out + sum(left)
    drops = sum(queue.drops for worker in router.workers() for queue in worker.queues)
    inside = sent - out - drops
    assert -1e-3 <= inside <= 4 * spec.ring + 1e-3
    last = router.carry(0.1, [Arrival(port, 0, (0.5, 0.5), 0.0, 64.0) for port in (0, 1)])
    assert sum(last) == pytest.approx(inside, abs=1e-3)
    for worker in router.workers():
        assert 0 <= worker.busy_clocks <= worker.time_s * worker.clock_hz * (1 + 1e-9)
        assert worker.packets == pytest.approx(sum(queue.packets for queue in worker.queues), abs=1e-3)


def test_a_copy_has_a_future_of_its_own() -> None:
    router = TwinRouter(PLAIN)
    offer(router, (3e6,), 0.2, (1.0, 0.0))
    before = router.workers()
    ahead = copy.deepcopy(router)
    assert ahead.workers() == before
    one, other = (offer(each, (3e6,), 0.1, (1.0, 0.0)) for each in (ahead, copy.deepcopy(router)))
    assert one == other
    assert router.workers() == before != ahead.workers()


@pytest.mark.parametrize(("pps", "vector", "clocks"), [(1e3, 1.0, 5023), (981_830, 18.57, 668), (10e6, 256, 438)])
def test_vectors_grow_with_the_load_and_packets_get_cheaper(pps: float, vector: float, clocks: float) -> None:
    router = TwinRouter(replace(shipped_twin("netgate-vpp"), noise=0.0), rx_queues=1)
    offer(router, (pps,), 2.0, (1.0,))
    found = router.workers()[0]
    assert found.packets / found.vectors == pytest.approx(vector, rel=0.01)
    assert found.busy_clocks / found.packets == pytest.approx(clocks, rel=0.01)


def test_noise_is_normal_and_its_own() -> None:
    found = [normal(drawn(1, worker, cell)) for worker in range(4) for cell in range(2000)]
    mean = sum(found) / len(found)
    assert abs(mean) < 0.05 and abs(sum(one * one for one in found) / len(found) - 1) < 0.05
    assert max(map(abs, found)) <= SIGMAS and normal(drawn(1, 2, 3)) == normal(drawn(1, 2, 3))
    assert len(set(found)) > len(found) * 0.99


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
