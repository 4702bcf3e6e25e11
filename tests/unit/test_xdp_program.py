"""The sending program in a held time: rates, order, arrears, bursts, deadlines; run by the tests' own machine."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from bpf_vm import M64, Machine
from effort import by_day
from hypothesis import given
from hypothesis import strategies as st

from trexbench.stlserver.engine import EngineError, StreamSpec
from trexbench.stlserver.kernel.bpf_asm import Assembler
from trexbench.stlserver.kernel.port import CREDIT_NS, CREDIT_PACKETS, OWED_MOST_S, KernelPort
from trexbench.stlserver.kernel.xdp_count import map_bytes as flows_bytes
from trexbench.stlserver.kernel.xdp_latency import Mark, map_bytes, receiver
from trexbench.stlserver.kernel.xdp_layout import (
    CATCH_UP,
    FRACTION_BITS,
    NEVER,
    PORT_WORDS_MAX,
    XDP_PASS,
    CoreWord,
    Gate,
    PortWord,
    StreamWord,
    interval,
    ticks,
)
from trexbench.stlserver.kernel.xdp_plan import plan_port
from trexbench.stlserver.kernel.xdp_program import SenderProgram

CORE_FD, FIRST_PORT_FD, FIRST_ROWS_FD, DEVICES_FD, EPOCH_NS = 1, 2, 12, 22, 10**15
XDP_REDIRECT = 4
FRAME = bytes.fromhex("0200000000020200000000010800") + bytes(46)


def stream(number: int, rate_pps: float, **more: Any) -> StreamSpec:
    return replace(StreamSpec(number, FRAME[:-1] + bytes([number]), rate_pps), **more)


def burst(number: int, total: int, **more: Any) -> StreamSpec:
    return stream(number, 1e6, **{"mode": "single_burst", "total_pkts": total, **more})


def unreached(code: bytes) -> list[int]:
    """Instructions that no way through the program comes to."""
    words = list(struct.iter_unpack("<BBhi", code))
    reached: set[int] = set()
    waiting = [0]
    while waiting:
        at = waiting.pop()
        if at in reached:
            continue
        reached.add(at)
        opcode, _, off, _ = words[at]
        if opcode == 0x18:  # a constant of 64 bits takes two
            reached.add(at + 1)
            waiting.append(at + 2)
        elif opcode == 0x05:
            waiting.append(at + 1 + off)
        elif opcode != 0x95:
            waiting.append(at + 1)
            if opcode & 7 in (5, 6) and opcode != 0x85:
                waiting.append(at + 1 + off)
    return sorted(set(range(len(words))) - reached)


@given(st.integers(0, M64))
def test_every_constant_survives_mov(value: int) -> None:
    asm = Assembler()
    asm.exit(value)
    assert Machine(asm.assemble(), {}).run() == value


@dataclass(frozen=True)
class Sent:
    """A frame: number is its last byte."""

    at_ns: int
    port: int
    frame: bytes

    @property
    def number(self) -> int:
        return self.frame[59]


class Bench:
    """Ports with their streams, the program over them, and a clock."""

    def __init__(
        self,
        ports: Sequence[Sequence[StreamSpec]],
        limit_pps: float | None = None,
        marks: Mapping[int, Mark] | None = None,
        skb: bool = False,
    ) -> None:
        self.maps = {CORE_FD: bytearray(64)}
        self.core = memoryview(self.maps[CORE_FD]).cast("Q")
        self.ports: list[Any] = []
        for number, specs in enumerate(ports):
            fd = FIRST_PORT_FD + number
            self.maps[fd] = bytearray(8 * PORT_WORDS_MAX)
            memory: Any = SimpleNamespace(fd=fd, words=memoryview(self.maps[fd]).cast("Q"))
            nothing: Any = None
            port = KernelPort(nothing, limit_pps, memory, nothing, nothing, nothing, nothing)
            plan = plan_port(number, specs, limited=limit_pps is not None, skb=skb, seed=1, marks=marks)
            port.prepare(plan, 1.0, None)
            self.maps[FIRST_ROWS_FD + number] = bytearray(plan.rows())
            self.ports.append(port)
        size = max(port.plan.frame_size for port in self.ports)
        program = SenderProgram(
            [(port.plan, port.memory.fd, FIRST_ROWS_FD + number) for number, port in enumerate(self.ports)],
            core_fd=CORE_FD,
            devices_fd=DEVICES_FD,
            frame_size=size,
            epoch_ns=EPOCH_NS,
        )
        code = program.code()
        assert unreached(code) == [], "the kernel refuses code that nothing reaches"
        self.machine = Machine(code, self.maps, size)
        self.now_ns = 1_000_000
        self.sent: list[Sent] = []

    def open(self, port: int = 0, duration_s: float = 0.0) -> None:
        self.ports[port].memory.words[PortWord.DURATION] = ticks(duration_s * 1e9)
        self.ports[port].gate = Gate.ARMED

    def turn(self) -> int:
        self.machine.clock_ns = EPOCH_NS + self.now_ns
        action = self.machine.run()
        if action in (XDP_PASS, XDP_REDIRECT):
            port = self.machine.redirected if action == XDP_REDIRECT else int.from_bytes(self.machine.head, "little")
            self.sent.append(Sent(self.now_ns, port, bytes(self.machine.packet[: self.machine.size])))
        return action

    def run(self, for_ns: int, turn_ns: int = 100) -> list[Sent]:
        """Turns of equal length; gives what they sent."""
        first, end = len(self.sent), self.now_ns + for_ns
        while self.now_ns < end:
            self.turn()
            self.now_ns += turn_ns
        return self.sent[first:]


def test_a_steady_stream_keeps_its_slots_and_is_never_early() -> None:
    bench = Bench([[stream(1, 700_000.0)]])
    bench.open()
    sent = bench.run(200_000)
    begin_ns = 1_000_000  # the first turn opened the port
    for number, one in enumerate(sent):
        assert 0 <= one.at_ns - begin_ns - number * 1e9 / 700_000 < 200
    assert len(sent) == 140


def test_a_fraction_of_a_nanosecond_does_not_add_up() -> None:
    assert abs(interval(14_880_952.0) / (1 << FRACTION_BITS) * 14_880_952.0 / 1e9 - 1) < 5e-6


@pytest.mark.parametrize("skb", [False, True])
def test_streams_of_several_ports_interleave_by_their_rates(skb: bool) -> None:
    specs = [[stream(1, 280_000.0), stream(2, 160_000.0), stream(3, 40_000.0)], [stream(4, 500_000.0)]]
    bench = Bench(specs, skb=skb)
    bench.open(0)
    bench.open(1)
    counts = Counter((one.port, one.number) for one in bench.run(500_000, turn_ns=400))
    for key, wanted in {(0, 1): 140, (0, 2): 80, (0, 3): 20, (1, 4): 250}.items():
        assert abs(counts[key] - wanted) <= 1


def test_too_much_is_shared_by_the_rates_and_the_rest_given_up() -> None:
    bench = Bench([[stream(1, 28e6), stream(2, 16e6), stream(3, 4e6)]])
    bench.open()
    counts = Counter(one.number for one in bench.run(800_000, turn_ns=400))
    total = sum(counts.values())
    assert total >= 1_990, "every turn sends"
    for number, share in ((1, 28 / 48), (2, 16 / 48), (3, 4 / 48)):
        assert abs(counts[number] / total - share) < 0.01
    bench.ports[0].gate = Gate.CLOSED
    bench.ports[0].settle_losses()
    assert bench.ports[0].lost_slots > 10_000


def test_after_a_pause_only_the_credit_is_caught_up_at_once() -> None:
    bench = Bench([[stream(1, 1e6)]])
    bench.open()
    bench.run(50_000)
    bench.now_ns += 20_000_000
    sent = bench.run(250_000)
    credit = max(CREDIT_NS / 1000, CREDIT_PACKETS)
    assert len(sent) <= (250 + credit) * (1 + 1 / CATCH_UP) + 2
    bench.ports[0].settle_losses()
    assert bench.ports[0].lost_slots == pytest.approx(20_000 - credit - 1e6 * OWED_MOST_S, abs=3)


@pytest.mark.parametrize("streams", by_day(1, [4, 1]))
def test_what_is_owed_is_sent_bit_by_bit_at_a_slightly_higher_rate(streams: int) -> None:
    bench = Bench([[stream(number, 1e5 / streams) for number in range(streams)]])
    bench.open()
    bench.run(100_000, turn_ns=5000)
    bench.now_ns += round(1e4 * (CREDIT_PACKETS + 20))
    first, *later = (len(bench.run(5_000_000, turn_ns=5000)) for _ in range(4))
    assert first <= (500 + CREDIT_PACKETS) * (1 + 1 / CATCH_UP) + 2
    assert max(later) <= 500 * (1 + 1 / CATCH_UP) + 2
    assert len(bench.sent) == pytest.approx(2010 + CREDIT_PACKETS + 20, abs=2)
    assert bench.ports[0].memory.words[PortWord.OWED] == 0
    bench.ports[0].settle_losses()
    assert bench.ports[0].lost_slots == 0


@pytest.mark.parametrize("factor", [None, 0.7])
def test_what_is_owed_at_the_end_or_at_a_change_of_rate_is_lost(factor: float | None) -> None:
    bench = Bench([[stream(1, 1e6)]])
    bench.open()
    bench.run(50_000)
    bench.now_ns += 10_000_000
    bench.run(100_000)
    port = bench.ports[0]
    port.update(1.0)
    port.settle_losses()
    assert port.lost_slots == 0, "the rate is the same"
    if factor is None:
        port.gate = Gate.CLOSED
        port.settle_losses()
    else:
        port.update(factor)
        bench.run(500_000, turn_ns=250)
        assert len(bench.run(500_000, turn_ns=500)) == pytest.approx(500 * factor, abs=2), "as asked, and no more"
    assert port.lost_slots == pytest.approx(10_000 - max(CREDIT_NS / 1000, CREDIT_PACKETS), abs=10)
    assert port.memory.words[PortWord.OWED] == 0


def test_a_burst_that_was_held_up_is_sent_whole_and_nothing_of_it_lost() -> None:
    bench = Bench([[burst(1, 1000)]])
    bench.open()
    bench.run(50_000)
    bench.now_ns += 800_000
    bench.ports[0].settle_losses()
    bench.run(1_000_000, turn_ns=400)
    port = bench.ports[0]
    assert port.gate == Gate.ENDED and len(bench.sent) == 1000
    assert port.memory.words[PortWord.OWED] > 0
    port.settle_losses()
    assert port.lost_slots == 0


def test_more_owed_than_allowed_leaves_no_room_for_more() -> None:
    bench = Bench([[stream(1, 1e6)]])
    bench.open()
    bench.run(50_000)
    words, most = bench.ports[0].memory.words, 1000
    words[PortWord.OWED_MOST], words[PortWord.OWED] = most, 2 * most
    bench.now_ns += 1_000_000
    bench.turn()
    assert most - 1 <= words[PortWord.OWED] <= most
    bench.ports[0].settle_losses()
    assert bench.ports[0].lost_slots == pytest.approx(1000 - max(CREDIT_NS / 1000, CREDIT_PACKETS), abs=2)


@pytest.mark.parametrize("waited_ns", by_day(1, [300_000, 50_000, 900_000]))
def test_an_update_counts_at_once_and_blames_nobody(waited_ns: int) -> None:
    bench = Bench([[stream(1, 1000.0), stream(2, 1000.0, fixed_rate=True)]])
    bench.open()
    bench.run(waited_ns, turn_ns=400)
    bench.ports[0].update(500.0)
    counts = Counter(one.number for one in bench.run(1_000_000, turn_ns=400))
    assert abs(counts[1] - 500) <= 2 and counts[2] <= 2
    bench.ports[0].update(0.0)
    assert [one for one in bench.run(900_000, turn_ns=400) if one.number == 1] == []
    bench.ports[0].settle_losses()
    assert bench.ports[0].lost_slots == 0


def test_a_pause_shifts_time_and_a_closed_gate_sends_nothing() -> None:
    bench = Bench([[stream(1, 1e6)]])
    assert bench.run(10_000) == []
    bench.open()
    bench.run(10_000)
    bench.ports[0].gate = Gate.PAUSED
    assert bench.run(1_000_000, turn_ns=1000) == []
    bench.ports[0].resume()
    assert len(bench.run(100_000)) <= 102
    assert bench.ports[0].memory.words[PortWord.OWED] == 0


def test_a_deadline_ends_the_port_with_the_exact_count() -> None:
    bench = Bench([[stream(1, 1e6)], [stream(2, 1e5)]])
    bench.open(0, duration_s=0.0002)
    bench.open(1)
    sent = bench.run(250_000)
    counts = Counter(one.number for one in sent)
    assert counts[1] == 200 and counts[2] == 25
    assert bench.ports[0].gate == Gate.ENDED and bench.ports[1].gate == Gate.RUNNING


ORDERS: dict[str, tuple[list[StreamSpec], list[tuple[int, float]]]] = {
    "a burst": ([burst(1, 3)], [(1, 0), (1, 1), (1, 2)]),
    "a gap before": ([burst(1, 1, isg_us=7.0), burst(2, 2)], [(2, 0), (2, 1), (1, 7)]),
    "bursts with gaps": (
        [burst(1, 2, mode="multi_burst", count=2, ibg_us=9.0)],
        [(1, 0), (1, 1), (1, 10), (1, 11)],
    ),
    "a chain with a gap": (
        [burst(1, 2, next_stream_id=2), burst(2, 1, self_start=False, isg_us=5.0)],
        [(1, 0), (1, 1), (2, 6)],
    ),
    "an action count": (
        [burst(1, 1, next_stream_id=2, action_count=2), burst(2, 1, self_start=False, next_stream_id=1)],
        [(1, 0), (2, 0), (1, 0)],
    ),
    "a stream that follows itself": (
        [burst(1, 2, next_stream_id=1, action_count=2)],
        [(1, 0), (1, 1), (1, 1), (1, 2)],
    ),
    "a link to a stream that runs": ([burst(1, 1, next_stream_id=2), burst(2, 2)], [(1, 0), (2, 0), (2, 1)]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_bursts_and_chains_are_sent_when_trex_would(name: str) -> None:
    specs, wanted = ORDERS[name]
    bench = Bench([specs])
    bench.open()
    sent = bench.run(60_000)
    assert [one.number for one in sent] == [number for number, _ in wanted]
    for one, (_, at_us) in zip(sent, wanted, strict=True):
        assert one.at_ns - sent[0].at_ns == pytest.approx(at_us * 1000, abs=300)
    assert bench.ports[0].gate == Gate.ENDED


def test_bursts_without_end_go_on() -> None:
    bench = Bench([[burst(1, 2, mode="multi_burst", count=0, ibg_us=9.0), stream(2, 1e5)]])
    bench.open()
    assert Counter(one.number for one in bench.run(500_000, turn_ns=250))[1] == pytest.approx(100, abs=2)
    assert bench.ports[0].gate == Gate.RUNNING


def test_a_limit_holds_each_port_back_and_is_counted() -> None:
    bench = Bench([[stream(1, 2e6)], [stream(2, 1e5)]], limit_pps=5e5)
    bench.open(0)
    bench.open(1)
    counts = Counter(one.number for one in bench.run(1_000_000, turn_ns=400))
    assert counts[1] == pytest.approx(500, abs=20) and counts[2] == pytest.approx(100, abs=1)
    bench.ports[0].gate = Gate.CLOSED
    bench.ports[0].settle_losses()
    held_back = 1500 - max(CREDIT_NS * 2e6 / 1e9, CREDIT_PACKETS)
    assert bench.ports[0].lost_slots == pytest.approx(held_back, abs=30)


@pytest.mark.parametrize(("turns", "share"), [(1, 0.0), (2, 0.5), (10, 0.9)])
def test_idle_time_is_that_of_the_turns_that_do_not_send(turns: int, share: float) -> None:
    bench = Bench([[stream(1, 1e6)]])
    bench.open()
    bench.run(300_000, turn_ns=1000 // turns)
    idle_ns = bench.core[CoreWord.IDLE_TIME] / (1 << FRACTION_BITS)
    assert idle_ns / 300_000 == pytest.approx(share, abs=0.01)


def test_numbers_that_no_word_holds_are_never() -> None:
    slow, fast = stream(2, 5e-324), stream(3, 1e306)
    (port,) = Bench([[burst(1, 2, mode="multi_burst", isg_us=1e308, ibg_us=1e308), slow, fast]]).ports
    port.prepare(port.plan, 1.0, duration_s=1e308)
    words = port.memory.words
    pause = port.plan.streams[1].word(StreamWord.INTERVAL)
    assert {words[at] for at in (PortWord.DURATION, PortWord.OWED_MOST, pause)} == {NEVER}


def test_too_many_streams_are_refused_not_cut() -> None:
    with pytest.raises(EngineError, match="use fewer streams"):
        plan_port(1, [stream(number % 256, 1.0, stream_id=number) for number in range(1000)])


def test_the_receiver_counts_unicast_and_drops_all() -> None:
    memory = bytearray(64)
    machine = Machine(receiver(5, 6, 7, 1), {5: memory, 6: bytearray(map_bytes(1)), 7: bytearray(flows_bytes(1))})
    counters = memoryview(memory).cast("Q")
    for first in (0x02, 0xFF, 0x33, 0x00):
        machine.packet[0] = first
        assert machine.run() == 1
    assert counters[0] == 2 and counters[1] == 2 * 64
