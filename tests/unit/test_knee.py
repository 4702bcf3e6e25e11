"""The knee's estimate from windows alone: what received over offered past it says."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from statistics import fmean, median

import pytest
from runs import make_plan

from trexbench.core.load.sample import Phase
from trexbench.core.load.windows import Window
from trexbench.core.verdict.knee import Knee, find_knee

KNEE, STEP = 1e6, 4e4


def ramp(received: Callable[[float], float], begin: float, count: int = 40, step: float = STEP) -> Knee:
    """The knee of windows of a second, a step apart; received: of the offered rate."""
    windows = []
    for number in range(count):
        pps = begin + number * step
        came = min(pps, received(pps))
        times = (Phase.RAMP, float(number), number + 1.0, pps)
        windows.append(Window(*times, round(pps), round(came), pps, came, 0, 0, 0, 10.0, True))
    found = find_knee(make_plan(loss_threshold=1e-3), windows, step)
    assert found is not None
    return found


def queues(pps: float) -> float:
    """Two of them: the first has half of the frames and is full at the knee, the other 6 % later."""
    return min(pps, KNEE) / 2 + min(pps, 1.06 * KNEE) / 2


def _varying(rng: random.Random, _: float, share: float = 0.01) -> float:
    return KNEE * rng.gauss(1, share)


@pytest.mark.parametrize("past", [0.2, 0.5, 0.8])
@pytest.mark.parametrize(
    ("received", "error"),
    [
        pytest.param(lambda pps: KNEE, 1e-3, id="levels off"),
        pytest.param(lambda pps: KNEE - 0.4 * (pps - KNEE), 1e-3, id="livelock"),
        pytest.param(
            lambda pps: 0.5 * KNEE if pps > KNEE else pps, 0.021, id="collapses at once: the bracket's middle"
        ),
        pytest.param(queues, 0.02, id="another queue is full two windows later"),
    ],
)
def test_a_steady_knee_is_found_however_throughput_goes_on(
    received: Callable[[float], float], error: float, past: float
) -> None:
    found = ramp(received, KNEE - (20 - past) * STEP)
    low, high = found.interval_pps
    assert abs(found.maximum_pps - KNEE) <= error * KNEE + 1e-3 * KNEE, found
    assert low <= KNEE * 1.0015 and high >= KNEE  # a bend may hide before the first bad window


def test_where_the_limit_varies_many_windows_past_the_knee_say_where_it_is() -> None:
    errors, held = [], 0
    for seed in range(60):
        rng = random.Random(seed)
        found = ramp(partial(_varying, rng), KNEE - rng.uniform(19, 20) * STEP)
        errors.append(abs(found.maximum_pps / KNEE - 1))
        held += found.interval_pps[0] <= KNEE <= found.interval_pps[1]
    assert median(errors) < 0.006 and sorted(errors)[56] < 0.014 and held >= 56, (median(errors), sorted(errors)[50:])


def test_many_windows_about_a_varying_limit_say_as_much_from_below_it_as_from_above() -> None:
    errors, held, knee = [], 0, KNEE / 0.999
    for seed in range(60):
        rng = random.Random(seed)
        varying = partial(_varying, rng, share=0.02)
        found = ramp(varying, KNEE - rng.uniform(29, 30) * 2.5e3, count=60, step=2.5e3)
        errors.append(found.maximum_pps / knee - 1)
        held += found.interval_pps[0] <= knee <= found.interval_pps[1]
    assert abs(fmean(errors)) < 0.005 and held >= 54, (fmean(errors), held)


def test_where_loss_grows_gently_the_interval_reaches_down_to_the_last_good_rate() -> None:
    found = ramp(lambda pps: pps - 2e-3 * pps * pps / (2 * KNEE), KNEE - 19.9 * STEP)
    assert found.interval_pps[0] <= KNEE <= found.interval_pps[1]
