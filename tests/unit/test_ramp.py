"""Load that is sent next: exact, rising, on time, whatever the clock does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from effort import examples, scaled
from hypothesis import example, given, settings
from hypothesis import strategies as st
from runs import HeldClock, SimulatedGenerator, World, asked, make_plan, simulate

from trexbench.core.load.plan import LATENCY_LOADS, Plan
from trexbench.core.load.sample import Phase, Sample
from trexbench.core.load.windows import RunWindows
from trexbench.core.strategy.analysis import analyse
from trexbench.core.strategy.ramp import FAR_LOWER, TRIALS_LOWER
from trexbench.core.verdict.latency import find_latencies
from trexbench.core.verdict.parts import Limit
from trexbench.session.loop import run


def of(samples: Sequence[Sample], phase: Phase) -> list[Sample]:
    return [s for s in samples if s.phase is phase]


def spent(samples: Sequence[Sample], phase: Phase) -> float:
    """Seconds from the sample before the phase to its last one."""
    first = next(i for i, s in enumerate(samples) if s.phase is phase)
    return of(samples, phase)[-1].t_s - samples[first - 1].t_s


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    sample_s = draw(st.sampled_from([0.05, 0.1, 0.25, 0.7, 1.0, 3.0]) | st.floats(0.05, 10))
    return make_plan(
        bidir=draw(st.booleans()),
        frame_bytes=draw(st.sampled_from([64, 360.2, 1514])),
        line_rate_bps=draw(st.sampled_from([1e7, 1e9, 1e11])),
        target=draw(st.floats(0.6, 1.0)),
        sample_s=sample_s,
        warmup_pps=draw(st.floats(100, 400)),
        warmup_s=sample_s * draw(st.floats(2.0, 5)),
        ramp_s=4 * max(1.0, sample_s) * draw(st.floats(1, 4)),
        hold_s=draw(st.floats(0, 8)),
        confirm_s=0.0,
    )


@examples(80)
@example(make_plan(sample_s=0.05, warmup_s=0.1, warmup_pps=100.0, ramp_s=8.625, hold_s=0.0, confirm_s=0.0))
@given(plans())
def test_the_ramp_rises_to_the_target_in_the_time_planned(plan: Plan) -> None:
    outcome = simulate(plan, World())
    assert outcome.error is None
    rates = [asked(s) for s in of(outcome.samples, Phase.RAMP)]
    assert all(0 < pps <= plan.offers[0].target_pps for pps in rates)
    assert all(a <= b for a, b in itertools.pairwise(rates))
    assert rates[-1] == pytest.approx(plan.offers[0].target_pps)
    moments = [s.t_s for s in of(outcome.samples, Phase.RAMP)]
    assert all(b - a > plan.sample_s / 2 - 1e-6 for a, b in itertools.pairwise(moments))
    assert all(asked(s) == plan.offers[0].target_pps for s in of(outcome.samples, Phase.HOLD))
    assert all(asked(s) == plan.offers[0].warmup_pps for s in of(outcome.samples, Phase.WARMUP))
    assert spent(outcome.samples, Phase.WARMUP) == pytest.approx(plan.warmup_s)
    assert spent(outcome.samples, Phase.RAMP) == pytest.approx(plan.ramp_s)
    assert outcome.samples[-1].t_s == pytest.approx(plan.duration_s)


LONG_SAMPLES = {"warmup_s": 18.0, "ramp_s": 117.0, "hold_s": 0.5, "confirm_s": 0.0, "sample_s": 9.0}


@examples(80)
@example(make_plan(line_rate_bps=1e7, warmup_pps=100.0, target=1.0, **LONG_SAMPLES), 0.375, 248)
@given(plans(), st.floats(0, 0.45), st.integers(0, 1000))
def test_lateness_neither_adds_up_nor_skips_a_phase(plan: Plan, late: float, seed: int) -> None:
    """Each sample late by up to 45 % of the interval: the whole is late by less than one such lateness a phase."""
    late_s = late * plan.sample_s
    outcome = simulate(plan, World(late_s=late_s, seed=seed))
    samples = outcome.samples
    phases = [phase for phase, _ in itertools.groupby(s.phase for s in samples)]
    hold = [Phase.HOLD] if plan.hold_s else []
    assert phases == [Phase.BASELINE, Phase.WARMUP, Phase.RAMP, *hold, Phase.DRAIN]
    assert abs(samples[-1].t_s - plan.duration_s) <= len(phases) * (late_s + plan.sample_s / 2) + 1e-6
    ramp = of(samples, Phase.RAMP)
    assert all(0 < asked(a) <= asked(b) <= plan.offers[0].target_pps for a, b in itertools.pairwise(ramp))


@settings(max_examples=scaled(80, 20))
@given(plans(), st.floats(2, 8), st.sampled_from([None, 0.3, 0.5]), st.floats(0, 0.45), st.integers(0, 1000))
def test_loads_of_the_latency_last_as_planned_one_after_the_other(
    plan: Plan, ticks: float, capacity: float | None, late: float, seed: int
) -> None:
    """After whatever ramp, and however late samples are: each load once, ascending, then silence."""
    plan = replace(plan, latency_s=ticks * plan.sample_s, confirm_s=2 * plan.sample_s)
    late_s = late * plan.sample_s
    most = math.inf if capacity is None else capacity * plan.offers[0].line_rate_pps
    outcome = simulate(plan, World(most, late_s=late_s, seed=seed))
    assert outcome.error is None
    samples = outcome.samples
    places = [place for place, _ in itertools.groupby((s.phase, s.trial) for s in samples)]
    assert len(places) == len(set(places))
    loads = [trial for phase, trial in places if phase is Phase.LATENCY]
    assert loads == list(range(len(LATENCY_LOADS) + 1 - len(loads), len(LATENCY_LOADS) + 1))
    last = [(phase, trial) for trial in loads for phase in (Phase.LATENCY, Phase.LATENCY_DRAIN)]
    assert places[len(places) - len(last) :] == last
    for trial in loads:
        at = [i for i, s in enumerate(samples) if (s.phase, s.trial) == (Phase.LATENCY, trial)]
        assert len(at) >= 2 and len({asked(samples[i]) for i in at}) == 1
        assert abs(samples[at[-1]].t_s - samples[at[0] - 1].t_s - plan.latency_s) <= plan.sample_s / 2 + late_s + 1e-6
    assert len(find_latencies(plan, samples)) == len(plan.directions) * len(loads)
    assert all(plan.time_left(s.phase, s.trial, 0.0) >= 0 for s in samples)


def test_a_loop_that_stalls_goes_on_where_the_clock_is() -> None:
    class Stalls(HeldClock):
        def sleep_until(self, t_s: float) -> None:
            super().sleep_until(t_s + (7.3 if 30 < self.now_s < 31.5 else 0))

    plan, clock = make_plan(confirm_s=0.0), Stalls()
    outcome = run(plan, SimulatedGenerator(plan, World(), clock), clock)
    assert spent(outcome.samples, Phase.RAMP) == pytest.approx(60)
    ramp = of(outcome.samples, Phase.RAMP)
    begun = ramp[0].t_s - 1
    for one in ramp:  # what was asked is the line's value at the end of the interval it was planned for
        assert asked(one) <= plan.offers[0].target_pps * (one.t_s - begun) / 60 + 1e-6


def test_a_target_below_the_least_rate_of_a_ramp_is_not_exceeded() -> None:
    plan = make_plan(line_rate_bps=1e7, frame_bytes=1514, warmup_pps=100.0)
    assert plan.offers[0].target_pps < 1000
    rates = {asked(s) for s in simulate(plan, World()).samples if s.phase in (Phase.RAMP, Phase.HOLD)}
    assert rates == {plan.offers[0].target_pps}


@pytest.mark.parametrize(
    ("world", "bidir", "rates"),
    [
        pytest.param(World(0.69e6), False, 1, id="passes at the first"),
        pytest.param(World(0.7e6), False, 2, id="second, the lower end"),
        pytest.param(World(0.7e6, blips=((72.0, 81.0),)), False, 3, id="third, 3 % lower"),
        pytest.param(World(0.7e6, blips=((66.0, 300.0),)), False, 5, id="never, so five"),
        pytest.param(World(), False, 0, id="no saturation, no trial"),
        pytest.param(World(tx_limit_pps=0.7e6), False, 0, id="the generator's limit is not confirmed"),
        pytest.param(World(rx_limit_pps=0.7e6), False, 0, id="nor that of its receiver"),
        pytest.param(World({"0->1": 0.9e6, "1->0": 0.4e6}), True, 2, id="each of two at its own"),
        pytest.param(World({"0->1": 0.9e6}, rx_limit_pps={0: 0.3e6}), True, 2, id="the receiver's loss fails nobody"),
    ],
)
def test_trials_confirm_the_estimate_or_the_lower_end_of_its_interval(world: World, bidir: bool, rates: int) -> None:
    plan = make_plan(bidir=bidir, hold_s=0.0)
    samples = simulate(plan, world).samples
    held = [*{s.trial: s.asked_pps for s in samples if s.phase is Phase.CONFIRM}.values()]
    assert len(held) == rates
    for one in analyse(plan, samples).directions:
        first_pps, *rest = [each[one.direction] for each in held] or [0.0]
        if one.confirmed_pps == first_pps or one.limit not in (Limit.DUT, Limit.UNKNOWN):
            assert {first_pps, *rest} <= {first_pps, one.maximum_pps}
            continue
        low_pps = plan.conclude(RunWindows(plan, samples), one.direction).low_pps or 0.0
        assert 0.97 * first_pps < low_pps < first_pps
        expected = [low_pps * (1 - lower) for lower in (0.0, *TRIALS_LOWER, FAR_LOWER)]
        assert rest == pytest.approx(expected[: rates - 1])


def test_a_ramp_that_may_lose_nothing_is_confirmed_in_finer_steps() -> None:
    plan = make_plan(hold_s=0.0, loss_threshold=0.0)
    (one,) = analyse(plan, simulate(plan, World(0.7e6, blips=((72.0, 81.0),))).samples).directions
    assert [trial.passed for trial in one.trials] == [False, False, True]
    assert one.maximum_pps == one.confirmed_pps == pytest.approx(0.99 * one.trials[1].offered_pps)


def hints_of(world: World, **changes: Any) -> list[str]:
    plan = make_plan(**changes)
    return list(plan.hints(analyse(plan, simulate(plan, world).samples).directions))


def test_a_coarse_step_is_hinted_at_with_the_search_that_resolves_more() -> None:
    (hint,) = hints_of(World(7e5), ramp_s=60.0)
    assert hint.startswith("0->1: a step of the ramp is ") and "trexbench search" in hint
    assert not hints_of(World(7e5), ramp_s=600.0), "0.3 % is fine"


def test_a_ramp_that_goes_far_beyond_the_dut_is_hinted_at_with_what_would_be_enough() -> None:
    (hint,) = hints_of(World(1e5), ramp_s=600.0)
    assert hint.endswith(("--ramp-to 200kpps, or trexbench search", "--ramp-to 210kpps, or trexbench search"))
