"""The simulating engine on a clock in the hand: what is sent, what comes back, and that looking changes nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import floor
from typing import Any

import pytest
from effort import examples
from engine_fake import PerfectRouter
from hypothesis import example, given
from hypothesis import strategies as st
from twins import IMIX, QueueRouter, stream

from trexbench.config import twin as spec
from trexbench.stlserver.engine import EngineCounters, EngineError, StreamSpec
from trexbench.stlserver.rpc import dispatch
from trexbench.stlserver.state.server_state import ServerState
from trexbench.stlserver.wire import Params
from trexbench.twin.router import TwinRouter
from trexbench.twin.simulated import SimEngine
from trexbench.twin.tester import PortTraffic, Tally, frame_bytes
from trexbench.twin.world import Arrival, Router

LINE_64 = 1e9 / (84 * 8)


@dataclass
class Bench:
    """An engine of gigabit ports and its clock."""

    router: Router = field(default_factory=PerfectRouter)
    now_s: float = 0.0

    def engine(self, **options: Any) -> SimEngine:
        return SimEngine(self.router, speed_bps=1e9, clock=lambda: self.now_s, **options)


def counts(engine: SimEngine, port: int) -> tuple[int, int]:
    found = engine.counters(port)
    return found.opackets, found.ipackets


@pytest.mark.parametrize("sizes", [(60,), (60, 586, 1510)])
def test_what_is_missing_in_silence_are_whole_frames_that_a_queue_dropped(sizes: Sequence[int]) -> None:
    """Else a trial without loss would lose one of them."""
    router = TwinRouter(spec.TwinSpec(workers=1, clock_hz=1e9, packet_cycles=1e5, queues=2, noise=0.01, ring=64))
    bench, was = Bench(router), 0
    engine = bench.engine()
    for factor in (1.7, 0.3, 2.3, 0.31, 0.37, 1.1, 0.29):
        engine.start(0, [stream(size, 9971.3, flows=50, number=n) for n, size in enumerate(sizes)], factor, None)
        bench.now_s += 1.037
        engine.stop(0)
        bench.now_s += 1.0
        missing = counts(engine, 0)[0] - counts(engine, 1)[1]
        assert missing == sum(queue.drops for worker in engine._world.router.workers() for queue in worker.queues)
        assert (missing > was) is (len(sizes) * factor > 1)
        was = missing


def test_marked_frames_are_counted_by_mark_at_both_ends_and_at_any_time() -> None:
    bench = Bench(QueueRouter({0: [1000.0], 1: [1000.0]}, ring=10))
    engine = bench.engine()
    streams = [stream(60, 600.0, number=1, mark=5), stream(500, 900.0, number=2, mark=6), stream(500, 500.0, number=3)]
    engine.start(0, streams, 1.0, None)
    engine.start(1, [stream(60, 300.0, mark=5)], 1.0, 1.0)
    before: dict[int, Any] = {}
    for step in range(200):
        bench.now_s = step * 0.0173
        now = engine.flows()[1] if step else {}
        assert all(
            a <= b
            for mark in before
            for a, b in zip(vars(before[mark]).values(), vars(now[mark]).values(), strict=True)
        )
        before = now
    bench.now_s = 4.0
    near, far = engine.flows().values()
    assert (near[5].sent, near[6].sent, far[5].sent) == (2400, 3600, 300) and set(near) == {5, 6}
    assert near[6].sent_bytes == 500 * 3600 and near[5].received == 300
    assert far[6].received_bytes == 500 * far[6].received
    # half of what arrives there
    assert far[5].received == pytest.approx(1200, abs=15) and far[6].received == pytest.approx(1800, abs=15)
    lost = engine.counters(0).opackets - engine.counters(1).ipackets
    assert lost > sum(near[mark].sent - far[mark].received for mark in (5, 6)) > 0


def test_every_instant_counts_between_the_lines_of_the_grid() -> None:
    bench = Bench()
    engine = bench.engine()
    bench.now_s = 0.1234
    engine.start(0, [stream(pps=1e6)], 1.0, 1.0)
    bench.now_s = 0.1334
    assert (counts(engine, 0), counts(engine, 1)) == ((10_000, 0), (0, 10_000))
    bench.now_s = 0.5001
    engine.update(0, 0.5)
    bench.now_s = 1.1233
    assert (counts(engine, 0)[0], engine.poll()) == (376_700 + 311_600, [])
    bench.now_s = 1.15  # the grid's next line
    assert (engine.poll(), engine.poll(), counts(engine, 0)[0]) == ([0], [], 376_700 + 311_650)
    bench.now_s = 9.0
    assert (engine.poll(), counts(engine, 0)[0]) == ([], 376_700 + 311_650)


def test_pause_resume_stop() -> None:
    bench = Bench()
    engine = bench.engine()
    engine.start(0, [stream(pps=1000.0)], 1.0, None)
    seen = []
    for at_s, action in ((1.0, engine.pause), (2.5, engine.resume), (3.0, engine.stop), (4.0, engine.stop)):
        bench.now_s = at_s
        action(0)
        seen.append((counts(engine, 0)[0], engine._world.ports[0].tx.traffic is not None))
    assert seen == [(1000, True), (1000, True), (1500, False), (1500, False)]
    assert engine.poll() == []


@pytest.mark.parametrize(
    ("streams", "packets"),
    [
        ([stream(pps=1000.0, mode="single_burst", total_pkts=2, count=1, next_stream_id=1, action_count=4)], 8),
        (
            [
                stream(pps=1000.0, mode="single_burst", total_pkts=2, count=1, next_stream_id=2, action_count=3),
                stream(pps=1000.0, mode="single_burst", total_pkts=1, count=1, next_stream_id=1, self_start=False),
            ],
            8,
        ),
    ],
    ids=["a stream that follows itself", "a ring"],
)
def test_a_chain_ends_with_the_streams_last_turn(streams: list[StreamSpec], packets: int) -> None:
    """As in TRex's set_stateless_next_node, and in the kernel's engine (tests/root/test_engine_kernel.py)."""
    bench = Bench()
    engine = bench.engine()
    engine.start(0, [replace(one, stream_id=number) for number, one in enumerate(streams, 1)], 1.0, None)
    bench.now_s = 1.0
    assert counts(engine, 0)[0] == packets and engine.poll() == [0]


STREAMS = st.lists(
    st.builds(
        stream,
        size=st.sampled_from([64, 128]),
        pps=st.floats(1, 5000),
        mode=st.sampled_from(["continuous", "single_burst", "multi_burst"]),
        total_pkts=st.integers(1, 300),
        count=st.integers(0, 3),
        ibg_us=st.floats(0, 2e5),
        isg_us=st.floats(0, 2e5),
        self_start=st.booleans(),
        next_stream_id=st.sampled_from([-1, 1, 2]),
        action_count=st.integers(0, 2),
    ),
    min_size=1,
    max_size=3,
)
STEP_S = 0.01
STEPS = st.lists(st.tuples(st.floats(0, 0.5), st.sampled_from(["look", "update", "pause", "resume"])), max_size=12)


@examples(60)
@given(streams=STREAMS, steps=STEPS, duration_s=st.none() | st.floats(0.01, 3))
def test_with_a_perfect_router_all_that_the_model_of_traffic_sends_comes_back(
    streams: list[StreamSpec], steps: list[tuple[float, str]], duration_s: float | None
) -> None:
    bench = Bench()
    streams = [replace(one, stream_id=number) for number, one in enumerate(streams, 1)]
    engine = bench.engine(step_s=STEP_S)
    engine.start(0, streams, 1.3, duration_s)
    traffic, sent, ended = PortTraffic.begin(streams, 1.3, 0.0, duration_s), Tally(), list[int]()

    def follow(to_s: float) -> None:
        for sending, frames in traffic.advance(bench.now_s, to_s):
            sent.add(frame_bytes(sending), frames)
        bench.now_s = to_s

    for wait_s, action in steps:
        until_s = bench.now_s + wait_s
        # Of two chains that link to one stream with a limited number of entries, the order of a step's streams decides
        # which is first: so both take the same steps.
        lines = range(floor(bench.now_s / STEP_S) + 1, floor(until_s / STEP_S) + 1)
        for line_s in (*(line * STEP_S for line in lines), until_s):
            follow(line_s)
        ended += engine.poll()
        if not ended and action == "update":
            engine.update(0, 2.0)
            traffic.factor = 2.0
        elif not ended and action != "look":
            getattr(engine, action)(0)
            traffic.paused = action == "pause"
        assert not ended or traffic.over(bench.now_s + 1e-6)
        # where a whole frame falls on the very instant, the one may have it and the other not yet
        assert all(abs(counts(engine, port)[port] - sent.packets) <= len(streams) for port in (0, 1))
    over = traffic.over(bench.now_s)
    follow(bench.now_s + 1.1 * STEP_S)
    ended += engine.poll()
    assert ended == [0] or not (over or ended)


def noisy(bench: Bench, **options: Any) -> SimEngine:
    bench.router = QueueRouter({0: [3e5, 4e5, 2e5], 1: [5e5]}, noise=0.05, noise_s=0.25)
    return bench.engine(seed=4, **options)


@examples(15)
@given(looks=st.lists(st.floats(0, 6), max_size=20), tx_limit=st.none() | st.floats(1e5, 2e6))
@example(looks=[4.0078125], tx_limit=1e5)  # between the end of the traffic and the grid's next line
def test_looking_changes_nothing(looks: list[float], tx_limit: float | None) -> None:
    tester = spec.TesterSpec(tx_limit_pps=tx_limit, rx_limit_pps=8e5, overload="queue-full")

    def run(looks: list[float]) -> list[Any]:
        bench = Bench()
        engine = noisy(bench, tester=tester)
        acts = [(0.003, lambda: engine.start(0, list(IMIX), 4000.0, 4.0)),
                (0.5, lambda: engine.start(1, [stream(flows=99)], 7e5, None)),
                (2.2222, lambda: engine.update(0, 6000.0))]  # fmt: skip
        before = [EngineCounters(), EngineCounters()]
        for at_s, act in sorted([*acts, *((at_s, None) for at_s in looks)], key=lambda one: one[0]):
            bench.now_s = at_s
            if act is not None:
                act()
                continue
            now = [engine.counters(port) for port in (0, 1)]
            engine.load(), engine.poll()
            assert all(
                vars(one)[name] >= vars(old)[name] for one, old in zip(now, before, strict=True) for name in vars(one)
            )
            before = now
        bench.now_s = 7.0
        return [engine.counters(0), engine.counters(1), engine.load()]

    assert run(looks) == run([])


def test_no_more_leaves_a_port_than_its_line_takes() -> None:
    bench = Bench()
    engine = bench.engine()
    engine.start(0, [stream(pps=3 * LINE_64)], 1.0, None)
    bench.now_s = 10.0
    assert counts(engine, 0)[0] == pytest.approx(10 * LINE_64, rel=1e-6)
    engine.update(0, 1 / 3)
    before = counts(engine, 0)[0]
    bench.now_s = 20.0
    assert counts(engine, 0)[0] - before == pytest.approx(10 * LINE_64, rel=1e-6), "nothing is made up for"


def test_a_burst_over_the_line_takes_its_time_and_is_whole() -> None:
    bench = Bench()
    engine = bench.engine()
    engine.start(0, [stream(pps=100 * LINE_64, mode="single_burst", total_pkts=3_000_000, count=1)], 1.0, None)
    bench.now_s = 1.0
    assert counts(engine, 0)[0] == pytest.approx(LINE_64, rel=0.02)
    bench.now_s = 3.0
    assert (counts(engine, 0)[0], engine.poll()) == (3_000_000, [0])


@pytest.mark.parametrize(
    ("overload", "asked", "sent", "full", "cpu", "ended"),
    [
        ("stretch", 2e5, 2e5, 0, 50, True),
        ("stretch", 6e5, 4e5, 0, 100, False),
        ("queue-full", 2e5, 2e5, 0, 50, True),
        ("queue-full", 6e5, 4e5, 2e5, 100, True),
    ],
)
def test_a_sending_core_at_its_limit(
    overload: str, asked: float, sent: float, full: float, cpu: float, ended: bool
) -> None:
    bench = Bench()
    engine = bench.engine(tester=spec.TesterSpec(tx_limit_pps=4e5, overload=overload))
    engine.start(0, [stream(pps=asked)], 1.0, 10.0)
    bench.now_s = 10.0 - 1e-4
    assert engine.load()[0].cpu_percent == pytest.approx(cpu, rel=0.01)
    bench.now_s = 10.0
    assert (engine.poll() == [0]) is ended, "time that is stretched is the duration's too"
    assert counts(engine, 0)[0] == pytest.approx(10 * sent, abs=2)
    assert engine.load()[0].queue_full == pytest.approx(10 * full, abs=2)
    bench.now_s = 15.0
    engine.poll()
    assert counts(engine, 0)[0] == pytest.approx(10 * asked if overload == "stretch" else 10 * sent, abs=2)


def test_the_server_tells_a_weak_sender_by_port() -> None:
    bench = Bench()
    tester = spec.TesterSpec(tx_limit_pps={0: 4e5, 1: 5e5}, overload="queue-full")
    engine = bench.engine(ports=4, tester=tester)
    ctx = ServerState(engine)
    for port in range(4):
        engine.start(port, [stream(pps=6e5)], 1.0, None)
    for second in range(1, 31):
        bench.now_s = ctx.now_s = float(second)
        ctx.stats.forget()
        ctx.stats.read(bench.now_s)
    told = [dispatch.METHODS["get_port_stats"].handler(ctx, Params({"port_id": port})) for port in range(4)]
    sending = [ctx.stats.port_json(bench.now_s, port, True) for port in range(4)]
    assert [one["queue_full"] for one in told] == pytest.approx([6e6, 3e6, 0, 0], abs=2)
    assert ctx.stats.global_json(bench.now_s)["m_total_queue_full"] == sum(one["queue_full"] for one in told)
    assert [round(one["m_cpu_util"]) for one in sending] == [100, 100, 0, 0]
    assert {core: history[0] for core, history in ctx.stats.cpu_history.items()} == {0: 99, 1: 0}


def test_frames_go_to_the_neighbour() -> None:
    bench = Bench(TwinRouter(spec.TwinSpec(5, 2.2e9, packet_cycles=100.0), ports=5))
    engine = bench.engine(ports=5)
    for port in range(5):
        engine.start(port, [stream(pps=1000.0 * (port + 1), pg_id=port)], 1.0, None)
    bench.now_s = 2.0
    assert [counts(engine, port)[0] for port in range(5)] == pytest.approx([2e3, 4e3, 6e3, 8e3, 1e4], abs=1)
    received = [counts(engine, port)[1] for port in range(5)]
    assert received == pytest.approx([4e3, 2e3, 8e3, 6e3, 0], rel=2e-3), "the last has none"
    assert [engine.latency(port)[port].rx_port for port in range(4)] == [1, 0, 3, 2]
    assert [one.partner for one in engine.ports] == [1, 0, 3, 2, None]


def test_a_receiver_at_its_limit_counts_errors() -> None:
    bench = Bench()
    engine = bench.engine(tester=spec.TesterSpec(rx_limit_pps=4e5))
    engine.start(0, [stream(pps=6e5)], 1.0, None)
    bench.now_s = 5.0
    found = engine.counters(1)
    assert (found.ipackets, found.ierrors, engine.load()[1].queue_full) == (2_000_000, 1_000_000, 0)


def test_what_the_router_kept_comes_after_the_stop() -> None:
    bench = Bench(QueueRouter({0: [1000.0], 1: [1000.0]}, ring=500.0))
    engine = bench.engine()
    engine.start(0, [stream(pps=2000.0)], 1.0, 1.0)
    bench.now_s = 1.0
    assert counts(engine, 1)[1] == 1000
    bench.now_s = 5.0
    assert counts(engine, 1)[1] == pytest.approx(1500, abs=1)


def test_the_router_gets_each_flow_with_its_spread() -> None:
    carried: list[tuple[float, Sequence[Arrival]]] = []

    class Recorder(PerfectRouter):
        def carry(self, span_s: float, arrivals: Sequence[Arrival]) -> Sequence[float]:
            carried.append((span_s, arrivals))
            return super().carry(span_s, arrivals)

    bench = Bench(Recorder())
    engine = bench.engine()
    engine.start(0, list(IMIX), 10.0, None)
    bench.now_s = 0.0551
    engine.update(0, 20.0)
    assert [span_s for span_s, _ in carried] == pytest.approx([0.05, 0.0051])
    assert [(one.frame_bytes, one.spread, one.frames) for one in carried[0][1]] == [
        (64, (1.0,), pytest.approx(14)), (590, (1.0,), pytest.approx(8)), (1514, (1.0,), pytest.approx(2))
    ]  # fmt: skip
    assert len({one.tag for one in carried[0][1]}) == 3


def test_frames_that_change_their_size_are_refused() -> None:
    with pytest.raises(EngineError, match="trim_pkt_size"):
        Bench().engine().check(0, stream(instructions=({"type": "trim_pkt_size", "name": "v"},)))


def test_close_is_for_good_and_may_come_twice() -> None:
    bench = Bench()
    engine = bench.engine()
    engine.start(0, [stream(pps=1000.0)], 1.0, None)
    engine.close()
    engine.close()
    bench.now_s = random.Random(1).uniform(1, 2)
    assert counts(engine, 0) == (0, 0)
