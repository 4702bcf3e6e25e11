"""Cost of dropping frames in a simulated router, beside the law.

A worker of C clocks per second that is offered r frames per second, more than it can forward, spends all of them: of f
forwarded, each c clocks, and r - f dropped, each d clocks,

    f c + (r - f) d = C,   so that   f = (C - r d) / (c - d)

is forwarded, and at least what a twentieth of the clocks is enough for. If dropping a frame takes longer than
forwarding one (d >= c), each frame dropped makes another one be dropped, until only that twentieth is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from effort import scaled
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trexbench.config.twin import TwinSpec
from trexbench.twin.router import TwinRouter
from trexbench.twin.workers import LEAST_CLOCK
from trexbench.twin.world import Arrival

CLOCK_HZ, CYCLES = 1e9, 1000.0
KNEE_PPS, LEAST = CLOCK_HZ / CYCLES, LEAST_CLOCK
PLAIN = TwinSpec(workers=1, clock_hz=CLOCK_HZ, packet_cycles=CYCLES)
SPANS_S = (0.01, 0.037, 0.05, 0.1)


def forwarded(pps: float, drop_cycles: float) -> float:
    """The law: frames per second."""
    if pps <= KNEE_PPS:
        return pps
    least_pps = LEAST * KNEE_PPS
    if drop_cycles >= CYCLES:
        return least_pps
    return max((CLOCK_HZ - pps * drop_cycles) / (CYCLES - drop_cycles), least_pps)


def lost(pps: float, drop_cycles: float) -> float:
    """The law: the share that is lost."""
    return 1 - forwarded(pps, drop_cycles) / pps


def send(router: TwinRouter, pps: float, spread: Sequence[float], seconds: float, span_s: float) -> float:
    """Frames forwarded over frames sent, as the router counts them."""
    before, spans = sum(one.packets for one in router.workers()), round(seconds / span_s)
    for _ in range(spans):
        router.carry(span_s, [Arrival(0, 0, tuple(spread), pps * span_s, 64.0)])
    return (sum(one.packets for one in router.workers()) - before) / (pps * span_s * spans)


def lost_with_full_rings(spec: TwinSpec, pps: float, spread: Sequence[float], span_s: float) -> float:
    router = TwinRouter(spec)
    held, before = 0.0, -1e9
    while held - before > pps / 1e6:  # a queue that little comes to fills slowly, and what it gains is not lost
        before = held
        send(router, pps, spread, 1.0, 0.1)
        held = router.kept(0, 0)
    return 1 - send(router, pps, spread, 1.0, span_s)


@pytest.mark.parametrize(
    ("pps", "drop_cycles", "share"),
    [
        (1.1e6, 0.0, 1 / 11),
        (1.1e6, 500.0, 2 / 11),  # 0.9 Mpps forwarded: 0.9e9 clocks, and 0.1e9 for 0.2 Mpps dropped
        (1.5e6, 100.0, 10 / 27),  # 0.944 Mpps
        (1.001e6, 900.0, 0.01 / 1.001),  # 0.991 Mpps
        (3e6, 500.0, 1 - 0.05 / 3),  # dropping takes all but the least
        (1.01e6, 1500.0, 1 - 0.05 / 1.01),  # livelock
    ],
)
def test_what_is_lost_past_the_knee(pps: float, drop_cycles: float, share: float) -> None:
    assert lost(pps, drop_cycles) == pytest.approx(share, rel=1e-9)
    spec = replace(PLAIN, ring=512, drop_cycles=drop_cycles)
    assert lost_with_full_rings(spec, pps, (1.0,), 0.05) == pytest.approx(share, rel=1e-4, abs=2 / pps)


@settings(max_examples=scaled(60, 12))
@example(1.6640625, 0.38671875, 1085, [0.8125, 0.9375, 0.1875, 0.1875], 0.01)
@example(1.005, 1.0, 240, [1.0], 0.01)
@given(
    over=st.floats(1.005, 12),
    share=st.one_of(st.floats(0, 0.95), st.floats(1, 4)),
    ring=st.integers(0, 8192),
    spread=st.lists(st.floats(0.05, 1), min_size=1, max_size=4),
    span_s=st.sampled_from(SPANS_S),
)
def test_the_law_holds_for_any_ring_queues_and_step(
    over: float, share: float, ring: int, spread: Sequence[float], span_s: float
) -> None:
    spread = [one / sum(spread) for one in spread]
    spec = replace(PLAIN, ring=ring, drop_cycles=share * CYCLES, queues=len(spread))
    found = lost_with_full_rings(spec, over * KNEE_PPS, spread, span_s)
    assert found == pytest.approx(lost(over * KNEE_PPS, share * CYCLES), rel=1e-3, abs=3e-4)


@pytest.mark.parametrize("drop_cycles", [500.0, 1500.0])
def test_nothing_is_charged_until_the_ring_is_full(drop_cycles: float) -> None:
    router = TwinRouter(replace(PLAIN, ring=4096, drop_cycles=drop_cycles))
    assert send(router, 1.1e6, (1.0,), 0.04, 0.04) == pytest.approx(1 / 1.1, rel=1e-9)
    assert router.workers()[0].queues[0].drops == 0
    assert send(router, 1e6, (1.0,), 10.0, 0.05) == pytest.approx(1.0, rel=1e-9)  # a ring nearly full is no loss


def test_a_ring_that_was_full_empties_when_less_comes() -> None:
    router = TwinRouter(replace(PLAIN, ring=4096, drop_cycles=1500.0))
    assert send(router, 1.5e6, (1.0,), 2.0, 0.05) < 0.1
    assert send(router, 0.8e6, (1.0,), 1.0, 0.05) > 1.0
