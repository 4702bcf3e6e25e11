"""Steps, drift and what is neither."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import NormalDist, pstdev

import pytest
from effort import examples, scaled
from hypothesis import given
from hypothesis import strategies as st
from nights import noisy

from trexbench.core.history.detect import FIRST_NIGHTS, LevelChange, Shape, Smallest, find_changes


def find(values: Sequence[float]) -> list[LevelChange]:
    return find_changes(values, Smallest(0.01))


def two_modes(count: int, low: float, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [value * (0.96 if rng.random() < low else 1.0) for value in noisy(count, seed=seed)]


def even_noise(count: int, noise: float = 0.01) -> list[float]:
    """Normal noise of exactly this spread, in no order, so that scores can be reckoned by hand."""
    nights = [NormalDist().inv_cdf((night + 0.5) / count) for night in range(count)]
    random.Random(1).shuffle(nights)
    return [5e6 * (1 + noise * night / pstdev(nights)) for night in nights]


@pytest.mark.parametrize(
    ("values", "at", "told"),
    [
        ([*noisy(40), *noisy(2, 4.75e6)], 40, 42),  # 5 % less: two nights are enough
        ([*noisy(10), *noisy(2, 4.75e6)], 10, 12),  # even after ten nights
        ([*noisy(5, noise=0.0), *noisy(3, 4.75e6)], 5, 8),  # after the fewest, three
        ([*noisy(40), *noisy(2, 5.25e6)], 40, 42),  # more is a change, too
        ([*[5e6] * 40, *[4.9e6] * 2], 40, 42),  # without any noise
        ([*noisy(40), 5e6, *noisy(30), *noisy(3, 4.8e6)], 71, 73),
        ([*[0.0] * 20, *[0.5] * 2], 20, 22),  # from nothing
        ([*noisy(40), *noisy(2, 4.75e6), 1e6, *noisy(4, 4.75e6)], 40, 42),  # one bad night within it hides nothing
    ],
)
def test_a_step_is_told_after_two_nights(values: list[float], at: int, told: int) -> None:
    (change,) = find(values)
    assert (change.at, change.reported, change.shape) == (at, told, Shape.STEP)


@pytest.mark.parametrize(
    "values",
    [
        [5e6, 1e6, 5e6, 1e6],
        noisy(200),
        [*noisy(40), 2.5e6],  # one bad night, the last one
        [*noisy(40), 2.5e6, *noisy(40)],
        [*noisy(40), 2.5e6, 5e6, 2.5e6],  # and another, not in a row
        [*noisy(40), 0.0, *noisy(3)],
        [*noisy(40), *noisy(40, 4.98e6)],  # 0.4 %: too little to be told
        [*noisy(4), *noisy(10, 4e6)][: FIRST_NIGHTS + 1],  # too few nights before
        two_modes(200, 0.1, 3),
        two_modes(200, 0.2, 2),
    ],
)
def test_what_is_no_change(values: list[float]) -> None:
    assert find(values) == []


def test_two_modes_of_some_nights_each_are_not_told_every_time() -> None:
    """Without its habits, this DUT would change 40 times."""
    level = noisy(200)
    changes = find([value * (0.96 if night // 5 % 2 else 1.0) for night, value in enumerate(level)])
    assert len(changes) <= 6


def test_noise_that_trebles_is_seldom_a_change() -> None:
    """By the noise of the nights before alone, there is one change in each such history."""
    histories = [[*noisy(60, seed=seed), *noisy(60, noise=0.009, seed=1000 + seed)] for seed in range(scaled(60, 8))]
    assert sum(len(find(values)) for values in histories) <= 0.8 * len(histories)


def test_what_was_told_is_not_unsaid() -> None:
    values = [*noisy(30), *noisy(20, 4.8e6), *noisy(20, 5.1e6), *two_modes(30, 0.3, 4)]
    changes = find(values)
    for end in range(0, len(values), scaled(1, 3)):
        earlier = find(values[:end])
        assert changes[: len(earlier)] == earlier


@examples(60)
@given(st.lists(st.integers(900, 1100), min_size=7, max_size=60), st.integers(-40, 40))
def test_the_unit_does_not_matter(values: list[int], exponent: int) -> None:
    plain, scaled = find([float(value) for value in values]), find([value * 2.0**exponent for value in values])
    assert [(one.at, one.reported, one.shape) for one in plain] == [(one.at, one.reported, one.shape) for one in scaled]


@examples(100)
@given(st.lists(st.floats(0, 1e300, allow_nan=False), max_size=60))
def test_any_history_is_judged(values: list[float]) -> None:
    for change in find(values):
        assert 0 <= change.at < change.reported <= len(values)


@examples(40)
@given(st.integers(0, 10_000), st.integers(FIRST_NIGHTS, 60), st.floats(0.01, 1e6))
def test_one_bad_night_never_alarms(seed: int, count: int, bad: float) -> None:
    steady = [5e6] * count
    rng = random.Random(seed)
    at = rng.randrange(FIRST_NIGHTS, count + 1)
    assert find([*steady[:at], bad, *steady[at:]]) == []


@pytest.mark.parametrize(
    ("sigmas", "told"),
    [
        ([2.6, 2.6], None),  # 3.6 standard errors
        ([2.6, 2.6, -1.0], None),
        ([2.6, 2.6, 2.6], 3),  # 4.4
        ([2.1, 2.1, 2.1], None),  # 3.6
        ([4.0, 4.0], 2),
        ([1.9] * 8, 5),
        ([4.0, 1.0, 4.0], None),  # as many, but a third does not agree
        ([4.0, 1.0, 4.0, 4.0], 4),
    ],
)
def test_few_nights_must_show_more_and_agree(sigmas: list[float], told: int | None) -> None:
    before = even_noise(60)
    changes = find([*before, *(5e6 * (1 - 0.01 * one) for one in sigmas)])
    assert [change.reported - 60 for change in changes] == ([told] if told else [])


@pytest.mark.parametrize(
    ("lows", "nights", "told"),
    [
        (0, [0.96, 0.96], True),  # never seen before
        (1, [0.96, 0.96], True),  # one bad night is no mode
        (6, [0.96, 0.96], False),  # one in ten is: twice in a row happens
        (6, [0.96, 0.96, 0.994], False),  # nor does the noise of a night make it news
        (6, [0.96, 0.994, 0.96, 0.994], False),
        (6, [0.96, 0.96, 0.96, 0.96], True),  # four times in a row does not happen
        (6, [1.04, 1.04], True),  # there, it never was
    ],
)
def test_a_mode_seen_before_is_no_news(lows: int, nights: list[float], told: bool) -> None:
    before = even_noise(60, 0.005)
    for low in range(lows):
        before[5 + 10 * low] *= 0.96
    assert bool(find([*before, *(5e6 * night for night in nights)])) is told


def test_a_step_to_an_old_bad_night_is_found_within_three_nights() -> None:
    before = even_noise(60)
    before[10], before[40] = 4.85e6, 4.8e6
    (change,) = find([*before, 4.85e6, 4.86e6, 4.84e6])
    assert (change.at, change.reported) == (60, 63)
