"""FD.io's MLRsearch as a strategy: its own library on simulated routers whose knees are known."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from effort import by_day
from runs import World, make_plan, simulate, simulate_with

from trexbench.config.model import PlanDefaults
from trexbench.core.errors import ConfigError
from trexbench.core.load.sample import Phase
from trexbench.core.strategy.analysis import analyse
from trexbench.core.strategy.kinds import plan_from_dict, plan_to_dict
from trexbench.core.strategy.mlrsearch import trials_of
from trexbench.core.verdict.parts import DirectionResult, Limit
from trexbench.session.options import Case, Setup
from trexbench.session.request import expected_s, make_request


@pytest.fixture(scope="module", autouse=True)
def _library() -> None:
    """Its import reads the source of every caller ten times, which are many while tests are collected."""
    pytest.importorskip("MLRsearch")


def plan_of(**changes: Any) -> Any:
    goals = changes.setdefault("goals", (0.001,))
    return make_plan(kind="mlrsearch", **{"warmup_s": 2.0, "hold_s": 0.0, "loss_threshold": goals[0]} | changes)


def searched(world: World, **changes: Any) -> tuple[DirectionResult, ...]:
    plan = plan_of(**changes)
    outcome = simulate(plan, world)
    assert outcome.error is None and outcome.samples[-1].asked_pps == {}
    return analyse(plan, outcome.samples).directions


@pytest.mark.parametrize("capacity", by_day(2, [1e5, 1.2e6, 7e5]))
@pytest.mark.parametrize("collapse", [0.0, 0.9])
def test_the_knee_lies_between_the_relevant_bounds(capacity: float, collapse: float) -> None:
    (one,) = searched(World(capacity, collapse=collapse), goals=(0.0, 0.005))
    assert (one.limit, one.at_least) == (Limit.DUT, False)
    for goal, knee in zip(one.goals, (capacity, capacity * (1 + 0.005 / (1 + collapse))), strict=True):
        assert goal.low_pps and goal.high_pps and goal.high_pps / goal.low_pps - 1 <= 0.00503
        assert goal.low_pps <= knee * 1.0001 and goal.high_pps >= knee * 0.9999
        assert goal.maximum_pps == goal.received_pps and goal.sure is None
        assert goal.low_pps * (1 - goal.loss) - 1 <= goal.maximum_pps <= goal.low_pps + 1
    assert one.maximum_pps == one.goals[0].maximum_pps == pytest.approx(capacity, rel=0.005)
    assert one.max_received_pps == pytest.approx(capacity, rel=0.005)


def test_a_noisy_knee_is_found_in_each_direction() -> None:
    forth, back = searched(World(7e5, noise=0.002), bidir=True)
    for one in (forth, back):
        assert one.limit is Limit.DUT and one.maximum_pps == pytest.approx(7e5, rel=0.006)


def test_losses_are_not_pooled_over_directions() -> None:
    """The load is one share of all targets: the slower direction sets it, however little it adds to the sum."""
    forth, back = searched(World({"0->1": 7e5}), bidir=True)
    assert (forth.limit, back.limit) == (Limit.DUT, Limit.NONE)
    assert forth.maximum_pps == pytest.approx(7e5, rel=0.005)
    assert back.at_least and back.maximum_pps == pytest.approx(7e5, rel=0.005)


def test_every_trial_is_started_anew_and_drained() -> None:
    plan = plan_of()
    outcome, generator, _ = simulate_with(plan, World(7e5))
    starts = [call[2] for call in generator.calls if call[0] == "start"]
    trials = trials_of(plan, outcome.samples)
    assert len(starts) == 1 + len(trials) and set(starts[1:]) == {plan.trial_s + 5.0}
    rates: Any = None
    for name, *values in generator.calls:
        rates = values[0] if name == "start" else rates
        assert name != "update" or values[0] == rates, "no rate is changed while frames are sent"
    assert all(w.sent == pytest.approx(w.asked_pps * plan.trial_s, abs=2) for t in trials for w in t.windows.values())


@pytest.mark.parametrize("world", [World(7e5, latency_s=0.01), World(7e5, tx_limit_pps=1e6)])
def test_neither_frames_on_their_way_nor_a_generator_that_falls_short_far_above_the_knee_limit(world: World) -> None:
    (one,) = searched(world, goals=(0.0,))
    assert one.limit is Limit.DUT and one.maximum_pps == pytest.approx(7e5, rel=0.005)


def test_a_router_that_always_loses_too_much_has_no_lower_bound_and_that_is_said() -> None:
    (one,) = searched(World(base_loss=0.1))
    assert one.limit is Limit.UNKNOWN and "no lower bound" in one.reasons[0]
    assert (one.maximum_pps, one.low_pps, one.goals[0].received_pps) == (0.0, None, None)


def test_the_expected_length_is_about_what_it_takes() -> None:
    for goals in ((0.001,), (0.0, 0.005)):
        plan = plan_of(goals=goals)
        took_s = simulate(plan, World(7e5)).samples[-1].t_s
        assert took_s == pytest.approx(plan.duration_s, rel=0.4)
        assert plan.time_left(Phase.SEARCH, 500, 0.0) < 3 * plan.trial_s


def test_without_the_library_nothing_is_opened_but_stored_runs_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of()
    samples = simulate(plan, World(7e5)).samples
    monkeypatch.setitem(sys.modules, "MLRsearch", None)
    request = make_request("mlrsearch", Case("netgate-vpp", "64b"), PlanDefaults(), Setup(sim=True))
    with pytest.raises(ConfigError, match=r"MLRsearch is not installed: pip install 'trexbench\[mlrsearch\]'"):
        expected_s(request)
    stored = plan_from_dict(json.loads(json.dumps(plan_to_dict(plan))))
    (one,) = analyse(stored, samples).directions
    assert one.limit is Limit.NONE and "not installed" in one.reasons[0]
