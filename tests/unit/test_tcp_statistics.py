from __future__ import annotations

import numpy as np
import pytest
from effort import scaled
from hypothesis import given
from hypothesis import strategies as st

from trexbench.core.means import mean_uncertainty, student
from trexbench.core.tcp.statistics import combine, describe, describe_ping

FINITE = st.floats(0, 1e12)
PPPOE = [635, 546, 538, 564, 808, 713, 506, 345, 311, 295]
KERNEL_MODE = [4880, 4400, 5170, 6510, 6390, 6600, 5530, 6220, 6500, 5580]
"""Document 004's raw intervals, in Mbit/s, and below the means that it prints."""


@pytest.mark.parametrize(("raw", "printed"), [(PPPOE, 526), (KERNEL_MODE, 5780)])
def test_the_documents_raw_intervals_give_its_means(raw: list[int], printed: int) -> None:
    found = describe(raw)
    assert found is not None
    assert found.mean == pytest.approx(printed, rel=0.001)
    assert (found.min, found.max) == (min(raw), max(raw))
    assert found.median == np.median(raw)
    assert found.sstdev == pytest.approx(np.std(raw, ddof=1))


@given(st.lists(FINITE, min_size=2, max_size=80))
def test_figures_are_numpys(values: list[float]) -> None:
    found = describe(values)
    assert found is not None
    assert found.mean == pytest.approx(np.mean(values))
    assert found.sstdev == pytest.approx(np.std(values, ddof=1), rel=1e-6, abs=1e-7 * max(values) + 1e-9)
    assert (found.uncertainty is None) == (len(values) < 6)


@given(st.lists(FINITE, min_size=1, max_size=80), st.integers(0, 100))
def test_pings_figures_are_numpys(times_s: list[float], lost: int) -> None:
    found = describe_ping(times_s, len(times_s) + lost)
    assert found.mdev_s == pytest.approx(np.std(times_s), rel=1e-6, abs=1e-7 * max(times_s) + 1e-9)
    assert found.loss == pytest.approx(lost / (len(times_s) + lost))


def test_no_value_no_statistics() -> None:
    assert describe([]) is None
    assert describe_ping([], 5) == describe_ping((), 5)
    assert describe_ping([], 5).loss == 1.0
    one = describe([5.0])
    assert one is not None and (one.sstdev, one.uncertainty, one.lag1) == (None, None, None)


def series(rng: np.random.Generator, count: int, lag1: float) -> list[float]:
    values = [rng.normal()]
    for _ in range(count - 1):
        values.append(lag1 * values[-1] + rng.normal() * (1 - lag1**2) ** 0.5)
    return [float(one) for one in values]


@pytest.mark.parametrize(
    ("count", "lag1", "least", "naive_most"),
    [(60, 0.0, 0.94, 0.97), (60, 0.34, 0.93, 0.88), (60, 0.78, 0.90, 0.58), (10, 0.78, 0.78, 0.58)],
)
def test_the_means_interval_covers_it_where_the_naive_one_does_not(
    count: int, lag1: float, least: float, naive_most: float
) -> None:
    rng = np.random.default_rng(14)
    runs, batch, naive = scaled(600, 100), 0, 0
    for _ in range(runs):
        values = series(rng, count, lag1)
        mean = abs(float(np.mean(values)))
        uncertainty = mean_uncertainty(values)
        assert uncertainty is not None
        batch += mean <= uncertainty
        naive += mean <= student(count - 1) * float(np.std(values, ddof=1)) / count**0.5
    assert batch / runs >= least
    assert naive / runs <= naive_most


def test_repetitions() -> None:
    assert combine([5.0], [1.0]) == (5.0, 1.0)
    assert combine([5.0, 9.0], [1.0, 1.0]) == (7.0, 2.0)
    mean, uncertainty = combine([5.0, 6.0, 7.0], [None, None, None])
    assert mean == 6.0
    assert uncertainty == pytest.approx(4.30 / 3**0.5)
