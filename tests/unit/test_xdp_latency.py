"""Timed frames: what the sender writes into them and what the receiver books; run by the tests' own machine."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from bpf_vm import Machine
from effort import by_day, examples
from frames import FIX_UDP, QINQ, VLAN, tagged, udp, var, write
from hypothesis import given
from hypothesis import strategies as st
from test_xdp_program import EPOCH_NS, Bench

from trexbench.core.load.fieldengine import checksum
from trexbench.stlserver.engine import BUCKETS_US, EngineError, LatencyTotals, StreamSpec, bucket_us
from trexbench.stlserver.kernel.timing import Timing, totals
from trexbench.stlserver.kernel.xdp_count import map_bytes as flows_bytes
from trexbench.stlserver.kernel.xdp_latency import (
    LONGEST_NS,
    SLOTS,
    LatencyWord,
    Mark,
    lines_of,
    map_bytes,
    receiver,
)
from trexbench.stlserver.kernel.xdp_layout import ReceivedWord
from trexbench.stlserver.kernel.xdp_plan import plan_port


def timed(pg_id: int = 7, packet: bytes | None = None, **more: Any) -> StreamSpec:
    return StreamSpec(1, packet or udp(), 1e5, fixed_rate=True, pg_id=pg_id, **more)


class Port:
    """A receiving port's counters as Timing sees them, and the program that fills them."""

    def __init__(self, cpus: int = 1) -> None:
        self.counters, self.map = bytearray(64 * cpus), bytearray(map_bytes(cpus) + 4096)
        self.timed: Any = SimpleNamespace(words=memoryview(self.map).cast("Q"))
        self.cpus, self.plan, self.busy = cpus, None, False
        self.flows = bytearray(flows_bytes(cpus))
        self.code = receiver(5, 6, 7, cpus)

    def take(self, frame: bytes, at_ns: int, kind: type[Machine] = Machine) -> int:
        machine = kind(self.code, {5: self.counters, 6: self.map, 7: self.flows}, len(frame))
        machine.packet[:] = frame
        machine.clock_ns = at_ns
        return machine.run()

    @property
    def received(self) -> int:
        return int(memoryview(self.counters).cast("Q")[ReceivedWord.PACKETS])


MARK = Mark(3, 9)


def ready(spec: StreamSpec | None = None) -> Any:
    """A port that knows the frames of this stream by MARK."""
    port: Any = Port()
    port.plan = plan_port(1, [spec or timed()], marks={7: MARK})
    Timing().activate(port.plan, None, [port])
    return port


def trailer(mark: Mark, number: int, sent_ns: int) -> bytes:
    return mark.word.to_bytes(4, "little") + number.to_bytes(4, "little") + sent_ns.to_bytes(8, "little")


def frame(mark: Mark, number: int, sent_ns: int, ip_id: int = 0xFFFF) -> bytes:
    packet = bytearray(udp())
    packet[18:20] = ip_id.to_bytes(2, "big")
    return bytes(packet[:-16]) + trailer(mark, number, sent_ns)


def booked(latencies_ns: Sequence[int], numbers: Sequence[int] | None = None) -> LatencyTotals:
    """Return the totals reported for frames with these latencies."""
    port = ready()
    for number, latency_ns in zip(numbers or range(1, len(latencies_ns) + 1), latencies_ns, strict=True):
        assert port.take(frame(MARK, number, EPOCH_NS), EPOCH_NS + latency_ns) == 1
    assert port.received == len(latencies_ns), "timed frames are counted as all others, too"
    return told(port)


def told(port: Any) -> LatencyTotals:
    sender = SimpleNamespace(**vars(port), memory=SimpleNamespace(words=[0] * 4000))
    return totals(0, [sender])[7]  # type: ignore[list-item]


def test_who_reads_while_a_frame_is_booked_finds_all_of_those_that_are_counted() -> None:
    """The server reads whenever it is asked; a frame that is counted but has no time yet would be the shortest ever."""
    port = ready()
    seen: list[LatencyTotals] = []

    class Watched(Machine):
        def write(self, address: int, size: int, value: int) -> None:
            super().write(address, size, value)
            seen.append(told(port))

    for number in (1, 2):
        port.take(frame(MARK, number, EPOCH_NS), EPOCH_NS + 30_000 * number, Watched)
    assert {one.received for one in seen} == {0, 1, 2}
    for one in seen:
        assert sum(one.histogram.values()) >= one.received
        assert one.sum_s >= [0.0, 30e-6, 90e-6][one.received] and (not one.received or one.min_s == 30e-6)


@examples(60)
@given(st.lists(st.integers(0, LONGEST_NS), min_size=1, max_size=8))
def test_the_receiver_adds_up_what_frames_took(latencies_ns: list[int]) -> None:
    found = booked(latencies_ns)
    count = len(latencies_ns)
    assert (found.received, found.received_bytes) == (count, 64 * count)
    assert found.sum_s == pytest.approx(sum(latencies_ns) / 1e9)
    assert (found.min_s, found.max_s) == (min(latencies_ns) / 1e9, max(latencies_ns) / 1e9)
    assert (found.out_of_order, found.missing) == (0, 0)
    wanted: dict[int, int] = {}
    for one in latencies_ns:
        bucket = bucket_us(one // 1000 / 1e6)
        wanted[bucket] = wanted.get(bucket, 0) + 1
    assert found.histogram == wanted
    jitter_16 = 0
    for before, after in itertools.pairwise(latencies_ns):
        jitter_16 += abs(after - before) - (jitter_16 >> 4)
    assert found.jitter_s == pytest.approx(jitter_16 / 16e9)


@pytest.mark.parametrize("bound_us", BUCKETS_US)
def test_every_bucket_begins_where_it_says(bound_us: int) -> None:
    assert booked([1000 * bound_us]).histogram == {bound_us: 1}
    if bound_us:
        assert booked([1000 * bound_us - 1]).histogram == {BUCKETS_US[BUCKETS_US.index(bound_us) - 1]: 1}


ORDERS = [
    ("in order", [1, 2, 3], 0, 0, 0),
    ("a loss", [1, 2, 5], 0, 0, 2),
    ("swapped", [2, 1, 3], 1, 0, 0),
    ("late, after a loss", [1, 4, 2], 1, 0, 1),
    ("twice", [1, 2, 2], 0, 1, 0),
    ("twice, after a loss", [1, 4, 4, 4], 0, 2, 2),
    ("the first are lost", [4], 0, 0, 3),
]


@pytest.mark.parametrize(("about", "numbers", "behind", "twice", "missing"), ORDERS, ids=[row[0] for row in ORDERS])
def test_order_and_loss_show_in_numbers(about: str, numbers: list[int], behind: int, twice: int, missing: int) -> None:
    found = booked([20_000] * len(numbers), numbers)
    assert (found.out_of_order, found.duplicate, found.missing) == (behind, twice, missing)


STRANGERS = [
    ("another IP ID", frame(MARK, 1, EPOCH_NS, ip_id=0xFFFE)),
    ("another magic", frame(MARK, 1, EPOCH_NS)[:-16] + b"\0\0" + trailer(MARK, 1, EPOCH_NS)[2:]),
    ("another slot", frame(Mark(4, 9), 1, EPOCH_NS)),
    ("no slot at all", frame(Mark(SLOTS, 9), 1, EPOCH_NS)),
    ("an earlier start", frame(Mark(3, 8), 1, EPOCH_NS)),
    ("a time to come", frame(MARK, 1, EPOCH_NS + 30_000)),
    ("a time long ago", frame(MARK, 1, EPOCH_NS - LONGEST_NS)),
    ("not IPv4", frame(MARK, 1, EPOCH_NS).replace(b"\x08\x00\x45", b"\x86\xdd\x45")),
    ("cut short", frame(MARK, 1, EPOCH_NS)[:33]),
    ("without a header", frame(MARK, 1, EPOCH_NS)[:16]),
]


@pytest.mark.parametrize(("about", "packet"), STRANGERS, ids=[row[0] for row in STRANGERS])
def test_other_frames_are_counted_and_not_timed(about: str, packet: bytes) -> None:
    port = ready()
    assert port.take(packet, EPOCH_NS + 20_000) == 1
    assert port.received == 1 and told(port).received == 0
    assert not any(port.timed.words[SLOTS:].tolist())


def sent(spec: StreamSpec, longest: int = 60) -> list[bytes]:
    """The frames that the program sends for one port."""
    other = StreamSpec(2, udp(longest), 1.0)
    bench = Bench([[spec, other]], marks={7: MARK})
    bench.open()
    word = MARK.word.to_bytes(4, "little")
    return [one.frame for one in bench.run(100_000) if one.frame[-16:-12] == word]


def test_the_sender_writes_number_and_time_into_every_frame() -> None:
    frames = sent(timed())
    assert len(frames) == 10
    for number, packet in enumerate(frames, 1):
        assert int.from_bytes(packet[-12:-8], "little") == number
        sent_ns = int.from_bytes(packet[-8:], "little") - EPOCH_NS
        assert 0 <= sent_ns - 1_000_000 - (number - 1) * 10_000 < 200
        assert packet[18:20] == b"\xff\xff" and packet[40:42] == b"\0\0"
        assert checksum(packet[14:34]) == 0, "the header's checksum is right"
        assert packet[42:-16] == udp()[42:-16] and packet[:18] == udp()[:18]


def test_a_wrong_header_checksum_stays_wrong_and_tcp_keeps_its_own() -> None:
    wrong = bytearray(udp(80, protocol=6))
    wrong[24] ^= 0x40
    wrong[46] = 0x50
    (packet, *_) = sent(timed(packet=bytes(wrong)))
    assert checksum(packet[14:34]) != 0
    assert packet[50:52] == bytes(wrong[50:52])


def test_a_checksum_that_the_field_engine_renews_is_taken_out_again() -> None:
    program = [var("s", "inc", 4, 0x10000004, 0x100000FE), write("s", 26), FIX_UDP]
    frames = sent(timed(instructions=program))
    assert [packet[29] for packet in frames[:3]] == [4, 5, 6]
    for packet in frames:
        assert packet[40:42] == b"\0\0" and checksum(packet[14:34]) == 0


@pytest.mark.parametrize("tags", by_day(2, [b"", QINQ + VLAN, VLAN, VLAN + VLAN]))
@pytest.mark.parametrize("packet", [udp(), udp(82, 6)], ids=["IPv4", "IPv6"])
def test_frames_of_either_family_are_timed_behind_tags(packet: bytes, tags: bytes) -> None:
    """They are stamped at their own end, which is not that of the longest."""
    packet = tagged(packet, tags)
    frames = sent(timed(packet=packet), longest=1514)
    port = ready(timed(packet=packet))
    for one in frames:
        sent_ns = int.from_bytes(one[-8:], "little")
        assert port.take(one, sent_ns + 25_000) == 1
    found = told(port)
    assert len(frames) == found.received == port.received == 10
    assert found.received_bytes == 10 * (len(packet) + 4)
    assert found.min_s == found.max_s == pytest.approx(25e-6) and found.missing == found.out_of_order == 0
    at = 14 + len(tags)
    checksum = at + (46 if packet[at] >> 4 == 6 else 26)
    assert all(one[checksum : checksum + 2] == b"\0\0" for one in frames), "the time makes any checksum wrong"


def test_slots_are_handed_out_once_and_anew() -> None:
    timing, ports = Timing(), [Port(2), Port(2)]
    busy: Any = ports
    marks = timing.reserve(0, [timed(pg_id) for pg_id in range(100)], busy)
    assert sorted(mark.slot for mark in marks.values()) == list(range(100))
    first = plan_port(1, [timed(pg_id) for pg_id in range(3)], marks=marks)
    timing.activate(first, None, busy)
    busy[0].plan, busy[0].busy = first, True
    again = timing.reserve(1, [timed(pg_id) for pg_id in range(125)], busy)
    assert {mark.slot for mark in again.values()} == set(range(3, SLOTS))
    with pytest.raises(EngineError, match="126 latency streams and 3 on other ports: 128 can be timed"):
        timing.reserve(1, [timed(pg_id) for pg_id in range(126)], busy)
    busy[0].busy = False
    assert len(timing.reserve(1, [timed(pg_id) for pg_id in range(128)], busy)) == 128
    renewed = timing.reserve(0, [timed(0)], busy)
    assert (renewed[0].slot, renewed[0].generation) == (0, marks[0].generation + 1)
    timing.activate(plan_port(1, [timed(0)], marks=renewed), first, busy)
    for port in busy:
        assert port.timed.words[:4].tolist() == [renewed[0].control, 0, 0, 0]


def test_lines_fill_their_map() -> None:
    assert LatencyWord.BUCKETS + len(BUCKETS_US) == LatencyWord.WORDS
    assert lines_of(SLOTS - 1, 4).stop * 8 == map_bytes(4)
