"""Truth in the large: twins whose limit is known, through the simulating engine and the real loop."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import pytest
from twins import Box, SkewedTester, Twin, random_box, random_twin

from trexbench.core.strategy.analysis import analyse
from trexbench.core.verdict.parts import DirectionResult, Limit

RUNS = 30


def verdicts(twin: Twin | Box) -> tuple[DirectionResult, ...]:
    outcome = twin.run()
    assert outcome.error is None
    return analyse(twin.plan, outcome.samples).directions


def verdicts_and_knees(twin: Twin | Box) -> list[tuple[DirectionResult, float]]:
    return [(result, twin.knee_pps(result.direction)) for result in verdicts(twin)]


def all_verdicts(twins: Sequence[Twin | Box]) -> Iterator[tuple[Twin | Box, DirectionResult, float]]:
    """With the knee, of each direction of each of them; on all cores."""
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as pool:
        for twin, found in zip(twins, pool.map(verdicts_and_knees, twins), strict=True):
            for result, knee_pps in found:
                yield twin, result, knee_pps


def beside(twin: Twin | Box, rng: random.Random, skew: float) -> SkewedTester:
    """A tester that is fast enough, if not by much, for what the DUT carries.

    skew: at most, as a multiple of the threshold's share of a window. More than one such share would itself be a loss
    above the threshold, seen now and then in as many windows in a row as it takes.
    """
    most = max(twin.knee_pps(direction) for direction in twin.plan.directions)
    # the windows that are judged reach some steps past the knee, and a CPU counts as full at 85 %
    limit = 1.3 * (most + (twin.plan.windows + 2) * twin.plan.step_pps(twin.plan.directions[0]))
    return SkewedTester(
        tx_limit_pps=rng.choice([None, limit]),
        rx_limit_pps=rng.choice([None, limit]),
        overload=rng.choice(["stretch", "queue-full"]),
        skew_s=skew * rng.uniform(0, twin.plan.loss_threshold * twin.plan.window_s),
    )


@pytest.mark.parametrize(
    ("make", "noise", "skew", "runs"),
    [
        pytest.param(random_twin, 0.0, 0.0, 50, id="steady"),
        pytest.param(random_twin, 0.0, 1.0, 50, id="steady, counters of different instants"),
        pytest.param(random_twin, 0.03, 0.0, 100, id="noise up to 3 %"),
        pytest.param(random_twin, 0.03, 1.0, 100, id="noise up to 3 %, counters of different instants"),
        pytest.param(random_box, 0.0, 0.0, 12, id="routers of DUT files, steady"),
        pytest.param(random_box, 0.02, 1.0, 40, id="routers of DUT files, noise up to 2 %, different instants"),
    ],
)
def test_the_knee_lies_within_the_uncertainty_of_the_maximum(
    make: Callable[[random.Random, int, float], Twin | Box], noise: float, skew: float, runs: int
) -> None:
    rng, missed, judged, twins = random.Random(17), [], 0, []
    for seed in range(runs):
        twin = make(rng, seed, noise)
        twins.append(replace(twin, tester=beside(twin, rng, skew)))
    for twin, result, knee in all_verdicts(twins):
        judged += 1
        assert (result.limit, result.at_least) == (Limit.DUT, False), twin
        if not abs(knee - result.maximum_pps) <= result.uncertainty_pps + 2:  # frames are whole
            missed.append((knee, result, twin))
    assert len(missed) <= judged * (0.05 if noise or skew else 0), missed


def limited(rng: random.Random, seed: int, kind: str, noisy: bool) -> tuple[Twin, float]:
    """A twin whose tester ends first, and the rate at which it does; the router ends a fifth above, or far above."""
    share = rng.uniform(0.15, 0.9)
    twin = random_twin(rng, seed, 0.03 if noisy else 0.0, knee=1.2 * share if noisy else 2.0)
    pps = share * twin.plan.offers[0].target_pps
    tester = SkewedTester(rx_limit_pps=pps) if kind == "rx" else SkewedTester(tx_limit_pps=pps, overload=kind)
    skew_s = rng.choice([0.0, twin.plan.loss_threshold * twin.plan.window_s])
    return replace(twin, tester=replace(tester, skew_s=skew_s)), pps


@pytest.mark.parametrize("noisy", [False, True], ids=["router well above", "noisy router little above"])
@pytest.mark.parametrize("kind", ["stretch", "queue-full", "rx"])
def test_what_the_generator_limits_is_never_laid_to_the_dut(kind: str, noisy: bool) -> None:
    rng = random.Random(19)
    twins, limits_pps = zip(*(limited(rng, seed, kind, noisy) for seed in range(RUNS)), strict=True)
    limit_of = dict(zip(map(id, twins), limits_pps, strict=True))
    for twin, result, _ in all_verdicts(twins):
        expected = Limit.GENERATOR_RX if kind == "rx" else Limit.GENERATOR_TX
        assert (result.limit, result.at_least) == (expected, True), twin
        most_pps = limit_of[id(twin)] * (1.001 + twin.tester.skew_s + twin.plan.loss_threshold)
        assert result.maximum_pps <= most_pps, twin
