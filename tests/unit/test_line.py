"""One direction of a long line: rate, queue, loss, delay and jitter as arithmetic."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.tcp.line import OneWay
from trexbench.core.tcp.wan import Wan

ROUNDING_S = 1e-9

lines = st.builds(
    Wan,
    delay_s=st.floats(0, 1),
    rate_bps=st.none() | st.floats(1e5, 1e11),
    loss=st.sampled_from([0.0, 0.001, 0.1, 0.5]),
)
jittery = st.builds(
    lambda wan, share: Wan(wan.delay_s, wan.rate_bps, None, 0.0, wan.delay_s / 2 * share), lines, st.floats(0, 1)
)
gaps = st.floats(0, 0.1)
packets = st.lists(st.tuples(gaps, st.integers(60, 1514)), min_size=1, max_size=60)


def fed(line: OneWay, arrivals: list[tuple[float, int]]) -> list[tuple[float, float, int, bool]]:
    """(came, arrives, size, passed) of single packets, each so long after the one before."""
    found, now_s = [], 1000.0
    for gap_s, size in arrivals:
        now_s += gap_s
        arrives_s, kept, lost = line.take(now_s, size)
        found.append((now_s, arrives_s, size, bool(kept and not lost)))
    return found


@given(jittery, packets)
def test_nothing_overtakes_nor_arrives_before_its_time(wan: Wan, arrivals: list[tuple[float, int]]) -> None:
    passed = [one for one in fed(OneWay(wan, Random(1)), arrivals) if one[3]]
    byte_s = 0.0 if wan.rate_bps is None else 8 / wan.rate_bps
    for came_s, arrives_s, size, _ in passed:
        assert arrives_s >= came_s + size * byte_s + wan.delay_s / 2 - wan.jitter_s - ROUNDING_S
    assert all(after[1] >= before[1] for before, after in pairwise(passed))


@given(lines, packets)
def test_no_more_leaves_than_the_rate_and_no_more_waits_than_the_queue_holds(
    wan: Wan, arrivals: list[tuple[float, int]]
) -> None:
    seen = fed(OneWay(wan, Random(1)), arrivals)
    if wan.rate_bps is None or wan.queue_bytes is None:
        assert all(passed for *_, passed in seen) or wan.loss
        return
    byte_s = 8 / wan.rate_bps
    passed = [one for one in seen if one[3]]
    for number, (_, first_s, _, _) in enumerate(passed):
        for later, (_, last_s, _, _) in enumerate(passed[number + 1 :], number + 1):
            carried = sum(size for _, _, size, _ in passed[number + 1 : later + 1])
            assert last_s - first_s >= carried * byte_s - ROUNDING_S
    for came_s, arrives_s, size, _ in passed:
        longest_s = max(wan.queue_bytes, size) * byte_s
        assert arrives_s - came_s <= longest_s + wan.delay_s / 2 + ROUNDING_S


def test_tail_drop_at_the_byte() -> None:
    line = OneWay(Wan(0.0, 8e6, 3000), Random(1))  # a byte takes 1 us
    assert [line.take(0.0, 1000)[:2] for _ in range(4)] == [(0.001, 1), (0.002, 1), (0.003, 1), (0.003, 0)]
    assert line.waiting_bytes(0.0015) == pytest.approx(1500)
    assert line.take(0.0011, 1000)[:2] == (pytest.approx(0.004), 1)


def test_an_empty_queue_takes_a_packet_of_any_size() -> None:
    line = OneWay(Wan(0.0, 8e6, 100), Random(1))
    assert line.take(0.0, 1000)[1:] == (1, ()) and line.take(0.0, 60)[1] == 0
    assert line.take(1.0, 5 * 1000, 5, 1000)[:2] == (pytest.approx(1.001), 1), "of a frame of five the first one"


@given(
    st.integers(1, 44), st.integers(100, 1514), st.integers(60, 1514), st.integers(1, 80_000), st.integers(0, 80_000)
)
def test_of_a_large_frame_pass_as_many_segments_as_would_have_one_by_one(
    count: int, each: int, last: int, queue: int, before: int
) -> None:
    last = min(last, each)
    wan = Wan(0.002, 1e9, queue)
    whole, single = OneWay(wan, Random(1)), OneWay(wan, Random(1))
    for line in (whole, single):
        line.take(5.0, before)
    sizes = [each] * (count - 1) + [last]
    arrives_s, kept, _ = whole.take(5.0, sum(sizes), count, each)
    one_by_one = [single.take(5.0, size) for size in sizes]
    # one by one the last segment may find room that a full one before it did not
    full = [found[1] for found in one_by_one[:-1]]
    assert kept == sum(full) + (one_by_one[-1][1] if all(full) else 0)
    if kept:
        assert arrives_s == pytest.approx(one_by_one[kept - 1][0], abs=ROUNDING_S)


@pytest.mark.parametrize("count", [1, 44])
@pytest.mark.parametrize("loss", [0.5, 0.01, 0.0005])
def test_each_packet_is_lost_on_its_own(loss: float, count: int) -> None:
    line, frames = OneWay(Wan(0.02, loss=loss), Random(7)), 200_000 // count
    lost = [len(line.take(float(number), 1000 * count, count, 1000)[2]) for number in range(frames)]
    packets = frames * count
    spread = (packets * loss * (1 - loss)) ** 0.5
    assert abs(sum(lost) - packets * loss) < 5 * spread
    hit = sum(1 for one in lost if one) / frames
    assert hit == pytest.approx(1 - (1 - loss) ** count, rel=0.5 if loss < 0.001 else 0.1)


def test_jitter_spreads_what_is_far_apart_and_keeps_the_order_of_what_is_not() -> None:
    line = OneWay(Wan(0.02, jitter_s=0.004), Random(3))
    delays = [line.take(float(number), 100)[0] - number for number in range(2000)]
    assert 0.006 <= min(delays) < 0.0065 and 0.0135 < max(delays) <= 0.014
    assert sum(delays) / len(delays) == pytest.approx(0.01, abs=0.0003)


@given(lines, lines, packets)
def test_other_settings_hold_at_once(before: Wan, after: Wan, arrivals: list[tuple[float, int]]) -> None:
    line = OneWay(before, Random(1))
    now_s = fed(line, arrivals)[-1][0]
    waited = line.waiting_bytes(now_s)
    latest_s = line.change(after, now_s)
    if after.rate_bps is not None:
        assert line.waiting_bytes(now_s) == pytest.approx(waited, abs=1)
    longest_s = after.delay_s / 2 + (0 if after.rate_bps is None else (waited + 100) * 8 / after.rate_bps)
    assert latest_s <= now_s + longest_s + ROUNDING_S
    arrives_s, kept, _ = line.take(now_s, 100)
    if kept:
        assert now_s + after.delay_s / 2 - ROUNDING_S <= arrives_s <= now_s + longest_s + ROUNDING_S
