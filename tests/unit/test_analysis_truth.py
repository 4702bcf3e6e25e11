"""Truth in the small: routers whose limit is known, and whether the verdict tells it."""

from __future__ import annotations

import random
from statistics import fmean, median

import pytest
from effort import scaled
from runs import World, make_plan, simulate

from trexbench.core.load.plan import Plan
from trexbench.core.strategy.analysis import analyse
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
    ("noise", "stops", "sample_s", "collapse"),
    [
        pytest.param(0.0, False, 1.0, 0.0, id="steady"),
        pytest.param(0.0, True, 1.0, 0.5, id="steady, collapsing, stopped at saturation"),
        pytest.param(0.0, False, 0.5, 0.0, id="steady, sampled twice a window"),
        pytest.param(0.005, False, 1.0, 0.0, id="noise up to 0.5 %"),
        pytest.param(0.01, False, 1.0, 0.3, id="noise up to 1 %, collapsing"),
        pytest.param(0.02, True, 1.0, 0.0, id="noise up to 2 %, stopped at saturation"),
        pytest.param(0.03, False, 1.0, 0.0, id="noise up to 3 %"),
    ],
)
def test_the_knee_lies_within_the_uncertainty_of_the_maximum(
    noise: float, stops: bool, sample_s: float, collapse: float
) -> None:
    rng, missed, errors = random.Random(7), [], []
    for seed in range(RUNS):
        threshold = rng.choice([1e-4, 1e-3, 1e-2])
        plan = random_plan(rng, stop_on_saturation=stops, sample_s=sample_s, loss_threshold=threshold)
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
    assert median(map(abs, errors)) < (0.3 if noise else 0.1) and abs(fmean(errors)) < 0.15, (
        median(map(abs, errors)),
        fmean(errors),
    )


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
