"""The search: simulated routers whose knees are known, and what it makes of the ways in which a run can go wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from effort import scaled
from hypothesis import example, given, settings
from hypothesis import strategies as st
from runs import SimulatedGenerator, World, codes, judged, make_plan, make_result, simulate, simulate_with

from trexbench.core.errors import ConfigError
from trexbench.core.load.plan import Direction
from trexbench.core.load.sample import CONFIRM_PHASES, Phase, Sample
from trexbench.core.strategy.analysis import analyse
from trexbench.core.strategy.search import MOST_LOOKS
from trexbench.core.verdict.belief import Belief, Flag, believe
from trexbench.core.verdict.parts import Limit
from trexbench.report.run.summary import answer_words

FORTH, BACK = Direction(0, 1), Direction(1, 0)
K = 1000.0


plan_of = partial(make_plan, kind="search", warmup_s=2.0, hold_s=0.0)
searched = partial(judged, kind="search", warmup_s=2.0, hold_s=0.0)


@pytest.fixture(params=["search", "mlrsearch"])
def kind(request: pytest.FixtureRequest) -> str:
    """Name each search, ours and FD.io's."""
    if request.param == "mlrsearch":
        pytest.importorskip("MLRsearch")
    return str(request.param)


@settings(max_examples=scaled(30, 3))
@given(
    st.floats(40 * K, 1400 * K),
    st.sampled_from([0.0, 0.3, 0.9]),
    st.sampled_from([(0.001,), (0.0, 0.005), (0.01, 0.0)]),
    st.booleans(),
)
@example(1248597.0, 0.3, (0.0, 0.005), False)
@example(696917.0, 0.9, (0.001,), False)
@example(40000.0, 0.9, (0.0, 0.005), False)  # the rate confirmed is one of whole frames
def test_a_steady_knee_lies_within_its_interval_which_is_as_narrow_as_asked(
    capacity: float, collapse: float, goals: tuple[float, ...], bidir: bool
) -> None:
    analysis = searched(World(capacity, collapse=collapse), goals=goals, loss_threshold=goals[0], bidir=bidir)
    for one in analysis.directions:
        assert (one.limit, one.at_least) == (Limit.DUT, False)
        for goal in one.goals:
            assert goal.low_pps is not None and goal.high_pps is not None
            width = 0.00505 if one.trials[0].passed or goal is not one.goals[0] else 0.0602  # then it reaches down
            assert goal.high_pps / goal.low_pps - 1 <= width and goal.sure >= 0.8
            assert goal.low_pps <= capacity * (1.0002 + goal.loss), "what is lossy is not good"
            assert goal.low_pps <= goal.maximum_pps <= goal.high_pps
            assert goal.high_pps >= capacity, "what is good is not lossy"
            assert goal.received_pps == pytest.approx(min(goal.low_pps, capacity), rel=goal.loss + 0.002)
        assert one.goals[0].maximum_pps == one.maximum_pps
        rates = [goal.maximum_pps for goal in sorted(one.goals, key=lambda goal: goal.loss)]
        assert rates == sorted(rates)
        assert all(goal.loss or goal.maximum_pps == goal.low_pps for goal in one.goals[1:])


def test_a_knee_below_the_whole_ramp_is_found_and_no_reason_for_doubt() -> None:
    analysis = searched(World(20 * K))
    assert analysis.directions[0].maximum_pps == pytest.approx(20 * K, rel=0.005)
    assert not analysis.warnings, "the ramp had no good rate, and the search one"


def test_it_is_over_in_half_a_minute_and_never_stops_sending_before() -> None:
    plan = plan_of(bidir=True)
    samples = simulate(plan, World(7e5)).samples
    searching = [s for s in samples if s.phase not in CONFIRM_PHASES]
    assert samples[-1].t_s < 30 and searching[-1].phase is Phase.DRAIN
    assert all(sample.asked_pps for sample in searching[1:-1])
    assert 4 <= max(s.trial for s in searching) <= MOST_LOOKS / 2
    assert plan.duration_s == pytest.approx(samples[-1].t_s, abs=4) and plan.time_left(Phase.CONFIRM, 1, 1.0) == 5.0
    assert list(plan.words("97 %"))[-1] == "confirm 5 s"


def held(samples: Sequence[Sample]) -> list[tuple[int, dict[Direction, float], float]]:
    """Number, rates and seconds of each trial, which begins in silence and ends drained."""
    found = []
    for number in sorted({s.trial for s in samples if s.phase is Phase.CONFIRM}):
        inside = [i for i, s in enumerate(samples) if s.phase is Phase.CONFIRM and s.trial == number]
        before, last, drained = samples[inside[0] - 1], samples[inside[-1]], samples[inside[-1] + 1]
        assert not before.asked_pps and (drained.phase, drained.asked_pps) == (Phase.CONFIRM_DRAIN, {})
        found.append((number, dict(last.asked_pps), last.t_s - before.t_s))
    return found


def test_what_was_found_is_held_in_each_direction_at_the_lower_end_of_the_first_goal() -> None:
    plan = plan_of(bidir=True, goals=(0.001, 0.01), confirm_s=4.0)
    outcome, generator, _ = simulate_with(plan, World({"0->1": 1e6, "1->0": 2.5e5}))
    found = analyse(plan, outcome.samples).directions
    lows = {one.direction: one.goals[0].low_pps for one in found}
    assert held(outcome.samples) == [(1, lows, pytest.approx(4.0))]
    for one, capacity in zip(found, (1e6, 2.5e5), strict=True):
        (trial,) = one.trials
        assert trial.passed and one.confirmed_pps == one.low_pps and not one.at_least
        assert trial.sent == pytest.approx(4 * one.low_pps, rel=0.01)
        assert one.maximum_pps == pytest.approx(capacity, rel=0.005)
    starts = [call[2] for call in generator.calls if call[0] == "start"]
    assert len(starts) == 2 and 4.0 < starts[1] < 10.0 < starts[0], "the trial's start has a duration of its own"


def test_a_trial_that_fails_is_repeated_one_width_lower_then_two_and_then_much_lower() -> None:
    class Tired(SimulatedGenerator):
        """It forwards 1.2 % less as soon as the looks are over."""

        def _forward(self, direction: Direction, frames: int, most: float) -> int:
            weak = self.stops and direction == FORTH
            return super()._forward(direction, frames, most * (0.988 if weak else 1.0))

        @property
        def stops(self) -> int:
            return sum(call[0] == "stop" for call in self.calls)

    plan = make_plan(kind="search", warmup_s=2.0, bidir=True)
    world = World({"0->1": 1e6, "1->0": 2.5e5})
    samples = simulate(plan, world, of=Tired).samples
    analysis = analyse(plan, samples)
    forth, back = analysis.directions
    assert [t.passed for t in forth.trials] == [False, False, False, True] and all(t.passed for t in back.trials)
    first_pps = forth.trials[0].offered_pps
    assert [t.offered_pps / first_pps for t in forth.trials] == pytest.approx([1.0, 0.995, 0.99, 0.94])
    assert forth.low_pps == forth.confirmed_pps and forth.maximum_pps == pytest.approx(0.988e6, rel=0.002)
    assert {t.offered_pps for t in back.trials} == {back.low_pps}
    assert [warning.code for warning in analysis.warnings] == ["confirmed-lower"]
    assert analysis.warnings[0].text.endswith(" stayed within the loss threshold")


def test_nothing_is_held_without_a_length() -> None:
    plan = plan_of(confirm_s=0.0)
    samples = simulate(plan, World(7e5)).samples
    assert samples[-1].phase is Phase.DRAIN and plan.schedule[-1].phase is Phase.DRAIN
    assert not any(words.startswith("confirm") for words in plan.words("97 %"))


@pytest.mark.parametrize("seed", range(scaled(60, 2)))
def test_each_direction_has_an_interval_of_its_own(seed: int) -> None:
    """Knees apart by 0.2 to 25 %, so that the ramp sees them in one bracket or in two."""
    rng = random.Random(seed)
    slow, goals = rng.uniform(3e5, 8e5), rng.choice([(0.001,), (0.0, 0.005)])
    fast = slow * rng.uniform(1.002, 1.25)
    world = World({"0->1": slow, "1->0": fast}, noise=rng.choice([0.0, 0.002]), seed=seed)
    for one, capacity in zip(searched(world, bidir=True, goals=goals).directions, (slow, fast), strict=True):
        low, high = one.low_pps, one.high_pps
        assert low is not None and high is not None and low * 0.999 <= capacity <= high * 1.001, one


def test_directions_that_share_a_router_are_searched_together() -> None:
    forth, back = searched(World(shared_capacity_pps=8e5), bidir=True).directions
    assert forth.low_pps == back.low_pps and forth.maximum_pps == pytest.approx(4e5, rel=0.005)


@pytest.mark.parametrize(
    ("world", "limit", "pps"),
    [
        (World(), Limit.NONE, 0.97e9 / 672),
        (World(tx_limit_pps=5e5), Limit.GENERATOR_TX, 5e5),
        (World(tx_limit_pps=5e5, capacity_pps=5.2e5), Limit.GENERATOR_TX, 5e5),
        (World(rx_limit_pps=5e5), Limit.GENERATOR_RX, 5e5),
    ],
)
def test_where_the_dut_is_no_limit_the_figure_is_a_bound(kind: str, world: World, limit: Limit, pps: float) -> None:
    (one,) = searched(world, kind=kind, goals=(0.001, 0.01)).directions
    assert (one.limit, one.at_least) == (limit, True)
    assert all(goal.maximum_pps <= 1.0001 * pps / (1 - goal.loss) for goal in one.goals), "no more than was carried"
    assert one.maximum_pps == pytest.approx(pps, rel=0.001 if limit is Limit.NONE else 0.012)
    assert limit is Limit.GENERATOR_RX or (one.low_pps, one.high_pps) == (None, None)
    held = [(trial.passed, trial.offered_pps) for trial in one.trials]
    assert held == ([(True, pytest.approx(one.maximum_pps, rel=1e-5))] if kind == "search" else [])


def test_every_beginning_of_a_search_has_a_verdict(kind: str) -> None:
    plan = plan_of(kind=kind, bidir=True, goals=(0.001, 0.01))
    samples = simulate(plan, World(7e5)).samples
    for end in [*range(0, len(samples), scaled(1, 3)), len(samples)]:
        for one in analyse(plan, samples[:end]).directions:
            assert one.maximum_pps <= (7.2e5 if kind == "search" else 7.1e5)
            assert end < len(samples) or not any("ended before" in reason for reason in one.reasons)


def test_loss_within_a_large_goal_is_no_loss_that_ended() -> None:
    analysis = searched(World(400 * K), goals=(0.499,), loss_threshold=0.499)
    assert analysis.directions[0].limit is Limit.DUT and codes(analysis) == []


def test_the_same_samples_give_the_same_next_step(kind: str) -> None:
    plan = plan_of(kind=kind)
    samples = simulate(plan, World(7e5, noise=0.01)).samples
    for end in range(1, len(samples), scaled(1, 3)):
        step, after = plan.next_step(samples[:end]), samples[end]
        assert step == plan.next_step(samples[:end])
        assert (step.phase, step.offered_pps, step.trial) == (after.phase, after.asked_pps, after.trial)
    assert plan.next_step(samples) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"width": 0.5}, "--width of 50"),
        ({"width": 0.0}, "--width of 0"),
        ({"goals": (0.0, 0.6)}, "--loss of 60 %"),
        ({"goals": (0.0, 0.1, 0.2, 0.3, 0.4, 0.45)}, "6 goals"),
        ({"kind": "mlrsearch", "width": 0.5}, "--width of 50"),
        ({"kind": "mlrsearch", "goals": (0.6,)}, "--loss of 60 %"),
        ({"kind": "mlrsearch", "trial_s": 30.0}, "trials of 30 s"),
    ],
)
def test_what_cannot_be_searched_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        plan_of(**changes)


def test_belief_follows_the_looks() -> None:
    seen = Belief(np.array([0.4, 0.5, 0.6]), np.ones(2))
    before = believe(seen, [], 0.005)
    assert before.quantile(0.5) == pytest.approx(0.5, rel=0.01)
    good, lossy = Flag(0.51, False), Flag(0.51, True)
    below = [believe(seen, looks, 0.005).below(0.51) for looks in ([good], [lossy], [lossy] * 2)]
    assert below[0] < before.below(0.51) < below[1] < below[2]
    outside = [Flag(0.7, False)] * 3
    assert believe(seen, outside, 0.005).quantile(0.5) > 0.69, "the ramp can be wrong: it may have met a stall"
    lowest = Belief.of_lowest((seen, Belief(seen.rates + 0.05, seen.weights)))
    assert [lowest.below(rate) for rate in (0.45, 0.55)] == pytest.approx([seen.below(0.45), seen.below(0.55)])


@pytest.mark.parametrize("number", range(scaled(3, 1)))
def test_a_search_that_used_its_looks_up_is_no_answer(number: int) -> None:
    """Where the rate varies from second to second by fifty times the width."""
    plan = plan_of(width=0.001)
    result = make_result(plan, World(7e5, noise=0.05, seed=number))
    assert "not-finished" in {one.code for one in result.analysis.warnings}
    assert result.analysis.unanswered.startswith(
        "0->1: 36 looks did not find the rate at a loss of 0.1 % to within 0.1 %"
    )
    assert "NO ANSWER: 0->1: 36 looks" in answer_words(result)
    assert answer_words(result, brief=True).endswith("NO ANSWER")
    assert make_result(plan, World(7e5, seed=number)).analysis.unanswered == ""


def test_the_rates_shown_beside_the_interval_of_a_dut_that_varies_were_offered() -> None:
    wider = 0
    for seed in range(scaled(6, 3)):
        plan = plan_of()
        samples = simulate(plan, World(7e5, noise=0.01, seed=seed)).samples
        (one,) = analyse(plan, samples).directions
        asked = [sample.asked_pps.get(FORTH) for sample in samples]
        for pps in (one.last_good_pps, one.first_bad_pps):
            assert any(rate == pytest.approx(pps, rel=1e-9) for rate in asked)
        assert one.low_pps is not None and one.high_pps is not None and one.last_good_pps and one.first_bad_pps
        assert one.low_pps <= one.last_good_pps <= one.first_bad_pps <= one.high_pps * (1 + 1e-9)
        wider += one.high_pps > one.first_bad_pps * (1 + 1e-9)
    assert wider
