"""Truth in the small: routers whose limit is known, and whether the verdict tells it; the knee from windows alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from statistics import fmean, median

import pytest
from effort import scaled
from runs import World, make_plan, simulate

from trexbench.core.load.plan import Plan
from trexbench.core.load.sample import Phase
from trexbench.core.load.windows import Window
from trexbench.core.strategy.analysis import analyse
from trexbench.core.verdict.knee import Knee, find_knee
from trexbench.core.verdict.parts import DirectionResult, Limit

RUNS = scaled(200, 12)


def verdict(plan: Plan, world: World) -> DirectionResult:
    outcome = simulate(plan, world)
    assert outcome.error is None
    return analyse(plan, outcome.samples).directions[0]


def random_plan(rng: random.Random, kind: str = "ramp", **changes: object) -> Plan:
    of_ramps = {"ramp_s": rng.choice([30.0, 60.0, 120.0, 240.0]), "confirm_s": 0.0}
    return make_plan(kind=kind, **(of_ramps if kind == "ramp" else {}), **changes)


@pytest.mark.parametrize(
    ("noise", "sample_s", "collapse"),
    [
        pytest.param(0.0, 1.0, 0.0, id="steady"),
        pytest.param(0.0, 1.0, 0.5, id="steady, collapsing"),
        pytest.param(0.0, 0.5, 0.0, id="steady, sampled twice a window"),
        pytest.param(0.005, 1.0, 0.0, id="noise up to 0.5 %"),
        pytest.param(0.01, 1.0, 0.3, id="noise up to 1 %, collapsing"),
        pytest.param(0.02, 1.0, 0.0, id="noise up to 2 %"),
        pytest.param(0.03, 1.0, 0.0, id="noise up to 3 %"),
    ],
)
def test_the_knee_lies_within_the_uncertainty_of_the_maximum(noise: float, sample_s: float, collapse: float) -> None:
    rng, missed, errors = random.Random(7), [], []
    for seed in range(RUNS):
        threshold = rng.choice([1e-4, 1e-3, 1e-2])
        plan = random_plan(rng, sample_s=sample_s, loss_threshold=threshold)
        capacity = plan.offers[0].target_pps * rng.uniform(0.15, 0.85)
        world = World(capacity, noise=rng.uniform(0, noise), collapse=collapse, seed=seed, read_s=rng.choice([0, 1e-3]))
        result = verdict(plan, world)
        assert (result.limit, result.at_least) == (Limit.DUT, False), world
        # Each frame above the capacity costs 1 + collapse frames: where that comes to the threshold.
        knee = capacity * (1 + collapse) / (1 + collapse - plan.loss_threshold)
        assert result.low_pps is not None and result.high_pps is not None
        errors.append((result.maximum_pps - knee) / plan.step_pps(result.direction))
        if not result.low_pps - 2 <= knee <= result.high_pps + 2:  # frames are whole
            missed.append((plan.ramp_s, world))
    assert len(missed) <= RUNS * (0.05 if noise else 0.01), missed
    # What was one whole step wide, all of it below the truth, is an error of a fraction of it to either side.
    typical, bias = median(map(abs, errors)), fmean(errors)
    assert typical < (0.3 if noise else 0.1) and abs(bias) < 0.15, (typical, bias)


@pytest.mark.parametrize("side", ["tx", "rx", "both, and a noisy router well above"])
def test_what_the_generator_limits_is_never_laid_to_the_dut(side: str) -> None:
    rng = random.Random(11)
    for seed in range(RUNS):
        plan = random_plan(rng, kind=rng.choice(["ramp", "ramp", "saturate"]), hold_s=rng.choice([5.0, 20.0]))
        limit = plan.offers[0].target_pps * rng.uniform(0.15, 0.9)
        world = World(
            capacity_pps=limit * 1.2 if "both" in side else plan.offers[0].line_rate_pps,
            noise=0.02 if "both" in side else 0.0,
            tx_limit_pps=float("inf") if side == "rx" else limit,
            rx_limit_pps=float("inf") if side == "tx" else limit,
            reports_queue_full=rng.random() < 0.5,
            cpu_at_full_percent=rng.choice([None, 40.0, 100.0]),
            seed=seed,
        )
        result = verdict(plan, world)
        assert result.limit in (Limit.GENERATOR_TX, Limit.GENERATOR_RX) and result.at_least, world
        assert result.maximum_pps <= limit * 1.001


def test_a_saturated_line_emits_what_the_router_can_carry() -> None:
    rng = random.Random(13)
    for seed in range(RUNS):
        plan = make_plan(kind="saturate", target=1.0, hold_s=rng.choice([5.0, 10.0, 30.0]))
        capacity = plan.offers[0].target_pps * rng.uniform(0.1, 0.9)
        result = verdict(plan, World(capacity, noise=rng.uniform(0, 0.02), read_s=rng.choice([0.0, 1e-3]), seed=seed))
        assert (result.limit, result.at_least) == (Limit.DUT, False)
        # Twice the standard error is exceeded in one of twenty runs, and more often where it is made of few windows.
        assert abs(result.maximum_pps - capacity) <= 4 * result.uncertainty_pps + 2e-3 * capacity


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


def test_a_leap_as_overload_begins_leaves_the_knee_within_the_interval() -> None:
    """A router that changes its mode carries less at once: no line of what it receives leads back to the knee."""
    held = 0
    for seed in range(200):
        rng = random.Random(seed)
        leap, noise = rng.choice([0.01, 0.03, 0.07, 0.15, 0.3]), rng.choice([0.0, 0.003])
        leaping = partial(_leaping, rng, leap, noise)
        low, high = ramp(leaping, KNEE - rng.uniform(19, 20) * rng.choice([STEP, STEP / 4])).interval_pps
        held += low <= KNEE / 0.999 and high >= KNEE
    assert held >= 160, held


def _leaping(rng: random.Random, leap: float, noise: float, pps: float) -> float:
    limit = KNEE * rng.gauss(1, noise)
    return pps if pps <= limit else limit * (1 - leap)


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
