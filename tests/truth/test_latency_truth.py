"""The arithmetic of latency beside a router in which every frame is followed: arrival, ring, vector, departure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import fmean

import pytest
from twins import stream

from trexbench.config import twin as specs
from trexbench.twin.router import TwinRouter
from trexbench.twin.simulated import SimEngine

FRAMES = 12_000
LOW, HIGH = 0.9, 1.1
"""Factors by which the engine's mean may lie beyond the times of frames that come evenly, and that come at random."""
COSTS = [
    pytest.param(4603, 420, 256, id="VPP"),
    pytest.param(3000, 3075, 64, id="NAPI"),
    pytest.param(0, 1000, 32, id="nothing is cheaper together"),
]


def followed_us(spec: specs.TwinSpec, rates_pps: Sequence[float], even: bool) -> float:
    """Return the mean time of the first queue's frames in a worker that goes round its queues, one frame after another.

    even: they come at equal intervals; else at random ones (Poisson).
    """
    rng = random.Random(5)
    coming = [_arrivals(rng, pps, FRAMES * pps / max(rates_pps), even) for pps in rates_pps]
    poll_s, frame_s, loop_s, idle_s = (
        cycles / spec.clock_hz
        for cycles in (spec.vector_cycles, spec.packet_cycles, spec.loop_cycles, spec.idle_poll_cycles)
    )
    now_s, at, took = 0.0, [0] * len(coming), []
    while all(place < len(queue) for place, queue in zip(at, coming, strict=True)):
        fetched = 0
        for number, queue in enumerate(coming):
            begin = end = at[number]
            while end < len(queue) and queue[end] <= now_s and end - begin < spec.vector:
                end += 1
            if end == begin:
                continue
            done_s = now_s + poll_s + (end - begin) * frame_s
            if number == 0:
                alone = [now_s + poll_s + (place + 1) * frame_s for place in range(end - begin)]
                left_s = [done_s] * (end - begin) if spec.drive == "polling" else alone
                took += [left - come for left, come in zip(left_s, queue[begin:end], strict=True)]
            now_s, at[number], fetched = done_s, end, fetched + end - begin
        now_s += loop_s
        if not fetched and spec.drive == "polling":
            now_s += idle_s
        elif not fetched:
            now_s = max(now_s, min(queue[place] for place, queue in zip(at, coming, strict=True) if place < len(queue)))
    return fmean(took[len(took) // 10 :]) * 1e6


def _arrivals(rng: random.Random, pps: float, count: float, even: bool) -> list[float]:
    at_s, found = rng.random() / pps, []
    for _ in range(round(count)):
        at_s += 1 / pps if even else rng.expovariate(pps)
        found.append(at_s)
    return found


def simulated_us(spec: specs.TwinSpec, rates_pps: Sequence[float]) -> float:
    """Return the mean that the simulating engine reports for the first port; a hundredth of the frames is timed."""
    now_s = 0.0
    engine = SimEngine(TwinRouter(spec), speed_bps=100e9, clock=lambda: now_s)
    for port, pps in enumerate(rates_pps):
        tagged = stream(64, pps / 100, number=2, fixed_rate=True, pg_id=1)
        engine.start(port, [stream(64, pps * 0.99), tagged], 1.0, None)
    now_s = 2.0
    found = engine.latency(0)[1]
    return found.sum_s / found.received * 1e6


@pytest.mark.parametrize("other", [0.02, 1.0], ids=["alone", "with a second queue that is as busy"])
@pytest.mark.parametrize("drive", ["polling", "interrupt"])
@pytest.mark.parametrize(("vector_cycles", "packet_cycles", "vector"), COSTS)
def test_the_mean_is_that_of_frames_that_are_followed(
    vector_cycles: float, packet_cycles: float, vector: int, drive: str, other: float
) -> None:
    """It knows no arrivals: it must lie near, or between, frames that come evenly and frames that come at random."""
    spec = specs.TwinSpec(
        workers=1, clock_hz=2.2e9, packet_cycles=packet_cycles, vector_cycles=vector_cycles, vector=vector, drive=drive,
        idle_poll_cycles=449, loop_cycles=204, ring=4096, latency_s=0.0,
    )  # fmt: skip
    full_pps = spec.clock_hz / (packet_cycles + (vector_cycles + 204) / vector) / (1 + other)
    rows = []
    for share in (0.05, 0.5, 0.9, 0.95):
        rates = (share * full_pps, share * full_pps * other)
        even, poisson = followed_us(spec, rates, True), followed_us(spec, rates, False)
        rows.append((share, simulated_us(spec, rates), even, poisson))
    wrong = [row for row in rows if not LOW * min(row[2:]) <= row[1] <= HIGH * max(row[2:])]
    assert not wrong, rows
