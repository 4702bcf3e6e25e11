"""Time that frames take in a simulated router, and what the simulating engine counts of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest
from effort import by_day, examples, scaled
from engine_fake import PerfectRouter
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import shipped_twin, stream

from trexbench.config import twin as specs
from trexbench.config.twin import TwinSpec
from trexbench.stlserver.engine import LatencyTotals, StreamSpec, bucket_us
from trexbench.twin.latency import Delay, LatencyGroup
from trexbench.twin.router import TwinRouter
from trexbench.twin.simulated import SimEngine
from trexbench.twin.world import Arrival, Router

TWINS = ("netgate-vpp", "netgate-linux", "lab-linux")
PLAIN = TwinSpec(workers=2, clock_hz=1e9, packet_cycles=1000, ring=100, queues=2, latency_s=20e-6)
"""One worker forwards a million frames per second; one frame takes 21 us."""


class Bench:
    """A simulating engine on a clock in the hand."""

    def __init__(self, router: Router, **options: Any) -> None:
        self.now_s = 0.0
        self.engine = SimEngine(router, clock=lambda: self.now_s, **options)

    def at(self, now_s: float) -> SimEngine:
        self.now_s = now_s
        return self.engine


def tagged(pps: float = 1000.0, pg_id: int = 7, flows: int = 251, **changes: Any) -> StreamSpec:
    return stream(64, pps, flows, 100 + pg_id, fixed_rate=True, pg_id=pg_id, **changes)


def measured(spec: TwinSpec, pps: float, seconds: float = 3.0, flows: int = 251, seed: int = 1) -> LatencyTotals:
    """Totals of a thousand tagged frames per second among so many in all, of port 0 only."""
    bench = Bench(TwinRouter(spec, seed=seed), seed=seed)
    bench.engine.start(0, [stream(64, pps - 1000, flows), tagged(flows=flows)], 1.0, None)
    return bench.at(seconds).latency(0)[7]


def mean_us(totals: LatencyTotals) -> float:
    return totals.sum_s / totals.received * 1e6


def check(totals: LatencyTotals) -> None:
    """Check what holds of any totals."""
    assert sum(totals.histogram.values()) == totals.received
    assert totals.received + totals.missing <= totals.sent
    assert (totals.received == 0) == (totals.max_s == 0)
    if totals.received:
        mean_s = totals.sum_s / totals.received
        assert 0 < totals.min_s <= mean_s * (1 + 1e-9) and mean_s <= totals.max_s * (1 + 1e-9)
        assert (min(totals.histogram), max(totals.histogram)) == (bucket_us(totals.min_s), bucket_us(totals.max_s))
        assert 0 <= totals.jitter_s <= totals.max_s - totals.min_s + 1e-12


PARTS = st.lists(st.tuples(st.floats(0.01, 50), st.floats(1e-6, 1e-3), st.floats(0, 1e-3)), min_size=1, max_size=6)


@examples(100)
@given(steps=st.lists(st.tuples(st.floats(0, 500), PARTS), max_size=12), phase=st.floats(0, 1, exclude_max=True))
def test_every_whole_frame_has_a_time_within_the_ranges(
    steps: Sequence[tuple[float, Sequence[tuple[float, float, float]]]], phase: float
) -> None:
    group, before = LatencyGroup(phase), LatencyTotals(rx_port=1)
    group.sent.add(64, 1e6)
    for frames, parts in steps:
        delays = [Delay(share, least_s, least_s + width_s) for share, least_s, width_s in parts]
        group.receive(64, frames, delays)
        now = group.totals(1, 0.0)
        check(now)
        assert all(now.histogram[bucket] >= count for bucket, count in before.histogram.items())
        if came := now.received - before.received:
            least_s, most_s = min(one.least_s for one in delays), max(one.most_s for one in delays)
            assert least_s - 1e-9 <= (now.sum_s - before.sum_s) / came <= most_s + 1e-9
        before = now
    assert before.received == pytest.approx(sum(frames for frames, _ in steps), abs=1.001)


@pytest.mark.parametrize("frames", [0.7, 3.0, 50.0, 5000.0])
def test_few_frames_a_step_come_to_the_distribution_of_many(frames: float) -> None:
    group, delays = LatencyGroup(0.3), (Delay(3.0, 20e-6, 40e-6), Delay(1.0, 100e-6, 200e-6))
    for _ in range(400):
        group.receive(64, frames, delays)
    found = group.totals(1, 0.0)
    shares = {bucket: count / found.received for bucket, count in found.histogram.items()}
    assert shares == pytest.approx({20: 3 / 8, 30: 3 / 8, 100: 1 / 4}, abs=0.02)
    assert mean_us(found) == pytest.approx(60, rel=0.03)


RATES = st.tuples(st.floats(0, 4e6), st.floats(0, 4e6))


@settings(max_examples=scaled(40, 12))
@given(
    rates=st.lists(RATES, min_size=1, max_size=5), batch_s=st.sampled_from([0.0, 1e-5, 1e-4]),
    tagged_pps=st.floats(1, 2e5), rx_limit=st.none() | st.floats(1e5, 2e6), flows=st.sampled_from([1, 251]),
)  # fmt: skip
def test_what_is_counted_is_consistent(
    rates: Sequence[tuple[float, float]], batch_s: float, tagged_pps: float, rx_limit: float | None, flows: int
) -> None:  # fmt: skip
    spec = replace(PLAIN, batch_s=batch_s, noise=0.05, vector_cycles=500, drop_cycles=20)
    bench = Bench(TwinRouter(spec), tester=specs.TesterSpec(rx_limit_pps=rx_limit))
    for port in (0, 1):
        streams = [stream(64, 1e6, flows), tagged(tagged_pps, 3, flows), tagged(tagged_pps / 3, 4)]
        bench.engine.start(port, streams, rates[0][port] / 1e6 + 1e-6, None)
    at_s = 0.0
    for both in rates:
        at_s += 0.21
        bench.at(at_s)
        for port in (0, 1):
            bench.engine.update(port, both[port] / 1e6 + 1e-6)
            for totals in bench.engine.latency(port).values():
                check(totals)
    for port in (0, 1):
        bench.engine.stop(port)
    bench.at(at_s + 0.5)
    for port in (0, 1):
        found = bench.engine.latency(port)
        assert set(found) == {3, 4}
        for pg_id, totals in found.items():
            check(totals)
            assert totals.rx_port == port ^ 1 and totals.out_of_order == 0
            assert totals.sent == pytest.approx(at_s * tagged_pps / (1 if pg_id == 3 else 3), abs=2), "fixed rate"
            assert (totals.sent_bytes, totals.received_bytes) == (64 * totals.sent, 64 * totals.received)
            if totals.received:
                assert totals.min_s >= spec.latency_s
                assert totals.received + totals.missing == pytest.approx(totals.sent, abs=2), "none is left inside"


def test_tagged_frames_are_lost_as_the_others_are() -> None:
    bench = Bench(TwinRouter(replace(PLAIN, ring=1)))
    bench.engine.start(0, [stream(64, 2e6), tagged(2e4, flows=1)], 1.0, 5.0)
    totals, all_of_them = bench.at(6.0).latency(0)[7], bench.engine.counters(1).ipackets / 10.1e6
    assert totals.received / totals.sent == pytest.approx(all_of_them, rel=1e-3)
    assert all_of_them < 0.5 and totals.missing == pytest.approx(totals.sent - totals.received, abs=1)


def test_looking_changes_nothing() -> None:
    def run(looks: Sequence[float], seed: int) -> tuple[Mapping[int, LatencyTotals], ...]:
        bench = Bench(TwinRouter(shipped_twin("netgate-vpp", noise=0.02), seed=seed), seed=seed)
        bench.engine.start(0, [stream(64, 8e5, 251), tagged()], 1.0, 2.0)
        bench.engine.start(1, [stream(64, 3e5, 251), tagged(137.0)], 1.0, None)
        before: Mapping[int, LatencyTotals] = {}
        for at_s in looks:
            bench.at(at_s).counters(0)
            bench.engine.load(), bench.engine.poll()
            now = bench.engine.latency(0)
            assert not before or all(now[7].histogram[b] >= n for b, n in before[7].histogram.items())
            before = now
        bench.at(3.0)
        return bench.engine.latency(0), bench.engine.latency(1)

    often = run([number * 0.0131 for number in range(220)], 1)
    assert often == run([], 1)
    assert often != run([], 2)


def capacity_pps(spec: TwinSpec) -> float:
    """Return the rate that the twin forwards of one flow when far more is offered."""
    router, out = TwinRouter(replace(spec, noise=0.0, drop_cycles=0.0)), 0.0
    for _ in range(4):
        out = sum(router.carry(0.1, [Arrival(0, 0, (1.0, *(0.0,) * (router.rx_queues - 1)), 2e6, 64.0)]))
    return out / 0.1


def test_frames_wait_for_their_round_and_in_a_full_ring() -> None:
    spec = replace(PLAIN, workers=1, queues=1, ring=1000)
    alone, full = measured(spec, 0.99e6, flows=1), measured(replace(spec, vector=1), 3e6, flows=1)
    assert (alone.min_s, alone.max_s) == (pytest.approx(21e-6),) * 2, "without a cost per poll, none waits"
    assert full.max_s == pytest.approx(21e-6 + 1e-3, rel=1e-6), "a thousand frames at a million per second"
    batches = measured(replace(spec, clock_hz=1e11, batch_s=1e-4), 1e6, flows=1)
    assert mean_us(batches) == pytest.approx(20 + 50, rel=0.03) and batches.max_s == pytest.approx(120e-6, rel=0.02)
    # n = rate x (20000 + 400 n) / clock: 200 frames fetched every 100 us, which take 80 of these
    rounds = replace(spec, packet_cycles=400.0, vector_cycles=20_000.0, vector=256, ring=4096)
    assert mean_us(measured(rounds, 2e6, flows=1)) == pytest.approx(20 + 20 + (100 + 80) / 2, rel=0.01)


@pytest.mark.parametrize("name", by_day(1, TWINS))
def test_latency_grows_with_load(name: str) -> None:
    spec = shipped_twin(name, noise=0.0)
    top = capacity_pps(spec)
    loads = [0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.05, 1.5]
    found = [measured(spec, top * share, flows=1) for share in loads]
    for totals in found:
        check(totals)
    means = [mean_us(totals) for totals in found]
    # a draw in a step of its own may miss the mean by a few parts in a thousand
    assert all(two >= one * 0.998 for one, two in pairwise(means)), means
    alone_us = 1e6 * (spec.latency_s + (spec.vector_cycles + spec.packet_cycles) / spec.clock_hz)
    assert 0.999 * alone_us < means[0] < 1.15 * alone_us
    assert means[loads.index(0.9)] > means[loads.index(0.1)] + 3


def test_only_who_falls_into_the_hot_queue_waits() -> None:
    bench = Bench(TwinRouter(replace(PLAIN, ring=1000, vector=1)))
    router = bench.engine._world.router
    one = next(number for number in range(50) if hot(router, number))
    other = next(number for number in range(50) if not hot(router, number))
    streams = [replace(stream(64, 3e6), packet=packet(one)), replace(tagged(1000, 1, 1), packet=packet(one))]
    bench.engine.start(0, [*streams, replace(tagged(1000, 2, 1), packet=packet(other)), tagged(1000, 3)], 1.0, None)
    found = bench.at(3.0).latency(0)
    assert mean_us(found[1]) == pytest.approx(1021, rel=0.001)
    assert found[2].max_s < 25e-6 and found[2].missing == 0
    assert found[3].min_s < 25e-6 and found[3].max_s > 1e-3, "its flows fall into both"
    share = found[3].received / found[3].sent
    assert 0.5 < share < 0.8, "half of them into the one that loses two thirds"


def packet(number: int) -> bytes:
    """A frame of a flow of its own."""
    base = stream().packet
    return base[:26] + bytes([10, 0, 0, number]) + base[30:]


def hot(router: Router, number: int) -> bool:
    return router.spread(0, [packet(number)]) == (1.0, 0.0)


def test_each_start_begins_at_zero_and_what_was_under_way_is_nobodys() -> None:
    bench = Bench(TwinRouter(replace(PLAIN, ring=50_000)))
    bench.engine.start(0, [stream(64, 2e6), tagged(1e4, flows=1)], 1.0, None)
    assert bench.at(1.0).latency(0)[7].sent == 10_000
    bench.engine.stop(0)
    assert bench.engine.latency(0)[7].sent == 10_000, "what was sent last can still be read"
    bench.engine.start(0, [tagged(100.0, flows=1), tagged(50.0, pg_id=9, flows=1)], 1.0, None)
    assert {pg_id: (one.sent, one.received) for pg_id, one in bench.engine.latency(0).items()} == {7: (0, 0), 9: (0, 0)}
    found = bench.at(3.0).latency(0)
    assert (found[7].sent, found[9].sent) == (200, 100)
    assert all(one.received <= one.sent for one in found.values())
    assert bench.engine.latency(1) == {}


def test_the_factor_is_not_for_latency_streams() -> None:
    bench = Bench(PerfectRouter())
    bench.engine.start(0, [stream(64, 10.0), tagged(500.0)], 100.0, None)
    bench.at(1.0).update(0, 200.0)
    found = bench.at(2.0).latency(0)[7]
    assert (found.sent, found.received, found.min_s, found.max_s) == (1000, 1000, 5e-6, 5e-6)
    assert found.histogram == {0: 1000} and bench.engine.counters(0).opackets == 1000 + 1000 + 2000


@pytest.mark.parametrize("frames", [1.0, 20.0])
def test_the_jitter_is_that_of_frames_that_know_nothing_of_one_another(frames: float) -> None:
    group = LatencyGroup(0.1)
    for _ in range(100):
        group.receive(64, frames, [Delay(1.0, 0.0, 90e-6)])
    # two even draws from 0 to 1 are a third apart
    assert group.jitter_s == pytest.approx(30e-6, rel=0.1)
    assert fmean([group.min_s, group.max_s]) == pytest.approx(45e-6, rel=0.05)
