"""Faults that are no limit of the DUT in a search: stalls, cables that lose, switches that double, weak receivers."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import pytest
from effort import by_day, scaled
from faulty import Faults, measure_with
from runs import SimulatedGenerator, World, codes, judged, make_plan, make_result, measured
from twins import Twin

from trexbench.core.load.plan import Direction
from trexbench.core.load.sample import Phase
from trexbench.core.units import format_share
from trexbench.core.verdict.parts import DirectionResult, Limit

CAPACITY = 7e5
FORTH = Direction(0, 1)


searched = partial(judged, kind="search", warmup_s=2.0, hold_s=0.0)


def is_the_knee(one: DirectionResult, pps: float = CAPACITY, by: float = 0.004) -> bool:
    return one.limit is Limit.DUT and abs(one.maximum_pps / pps - 1) < by and one.confirmed_pps is not None


@pytest.mark.parametrize("noise", [0.0, 0.002])
@pytest.mark.parametrize("length_s", [1.0, 2.5, 5.0])
def test_a_stall_at_any_moment_of_the_search_is_no_knee_and_is_told(length_s: float, noise: float) -> None:
    rng = random.Random(length_s)
    for number in range(scaled(8, 1)):
        plan = make_plan(kind="search", warmup_s=2.0, hold_s=0.0)
        twin = Twin(plan, {0: [1.0]}, noise=noise, noise_s=0.25, seed=number, step_s=0.05)
        capacity = rng.uniform(0.2, 0.9) * plan.offers[0].target_pps
        begin_s = rng.uniform(2.5, 14.0)
        result = measure_with(replace(twin, queue_pps={0: [capacity]}), Faults([(begin_s, begin_s + length_s)]))
        (one,) = result.analysis.directions
        assert is_the_knee(one, capacity, 0.006 if noise else 0.004), (number, capacity, begin_s, one)
        assert result.samples[-1].t_s < 60
        if length_s > 2:
            (stall,) = result.analysis.stalls
            assert stall.begin_s == pytest.approx(begin_s, abs=2.2)
            assert stall.length_s == pytest.approx(length_s, abs=2.2) and "stall" in codes(result.analysis)


@pytest.mark.parametrize("seed", range(scaled(60, 8)))
def test_a_dut_that_restarts_has_no_limit_where_it_was_away(seed: int) -> None:
    """All looks at the interval's upper end may be of that time: higher rates were never offered again."""
    rng = random.Random(seed)
    capacity, begin_s, length_s = rng.uniform(2e5, 1.1e6), rng.uniform(3, 20), rng.uniform(12, 40)
    (one,) = searched(World(capacity, blips=((begin_s, begin_s + length_s),))).directions
    if one.limit is Limit.DUT:
        assert (one.low_pps or 0) <= 1.0011 * capacity and capacity <= 1.001 * (one.high_pps or 0)
    else:
        assert one.limit is Limit.UNKNOWN and one.maximum_pps <= 1.0011 * capacity


@pytest.mark.parametrize("seed", range(scaled(20, 4)))
def test_a_dut_that_forwards_nothing_beyond_its_limit_has_one(seed: int) -> None:
    capacity = random.Random(seed).uniform(2e5, 1.1e6)

    class Choked(SimulatedGenerator):
        def _forward(self, direction: Direction, frames: int, _: float) -> int:
            return frames if self.rates.get(direction.tx, 0) <= capacity * self._rng.gauss(1, 1e-3) else 0

    (one,) = judged(World(capacity, seed=seed), Choked, kind="search").directions
    assert one.limit is Limit.DUT and (one.low_pps or 0) * 0.997 <= capacity <= (one.high_pps or 0) * 1.003


@pytest.mark.parametrize("seed", range(scaled(40, 6)))
def test_where_all_trials_near_the_figure_fail_the_interval_reaches_down_to_what_was_carried(seed: int) -> None:
    """The DUT carries less for a second or so of every five, which looks may miss and trials do not."""
    rng = random.Random(seed)
    capacity, goal = rng.uniform(2e5, 1.1e6), rng.choice([0.001, 0.005])
    floor, every_s, pause_s = rng.uniform(0.5, 0.9), rng.uniform(4.0, 4.9), rng.uniform(0.8, 1.4)
    world = World(capacity, speed=lambda t_s: floor if t_s % every_s < pause_s else 1.0)
    (one,) = searched(world, goals=(goal,), loss_threshold=goal).directions
    assert one.at_least or (one.low_pps or 0) <= 1.04 * floor * capacity, [trial.passed for trial in one.trials]


@pytest.mark.parametrize("width", [0.005, 0.05, 0.2])
def test_each_trial_is_at_a_lower_rate_than_the_one_that_failed(width: float) -> None:
    class Slowing(SimulatedGenerator):
        def _forward(self, direction: Direction, frames: int, most: float) -> int:
            was_silent = any(call[0] == "stop" for call in self.calls)
            return super()._forward(direction, frames, most * (0.2 if was_silent else 1))

    (one,) = judged(World(CAPACITY), Slowing, kind="search", width=width).directions
    rates = [trial.offered_pps for trial in one.trials]
    assert len(rates) > 2 and rates == sorted(rates, reverse=True)


@pytest.mark.parametrize("seed", range(scaled(40, 3)))
@pytest.mark.parametrize("kind", ["policer", "overload", "noise"])
def test_a_rate_that_only_the_ramp_carried_is_a_warning_and_noise_is_none(kind: str, seed: int) -> None:
    """A policer's bucket lasts for two steps of the ramp; a DUT that carries less once it was overloaded has one."""
    rng = random.Random(seed)
    capacity, less, bucket_s = rng.uniform(4e5, 1.1e6), rng.uniform(0.7, 0.85), rng.uniform(0.3, 0.5)

    class Changing(SimulatedGenerator):
        tokens, overloaded, then_s = bucket_s * capacity, False, 0.0

        def _forward(self, direction: Direction, frames: int, most: float) -> int:
            if kind == "policer":
                since_s, self.then_s = self.clock.now_s - self.then_s, self.clock.now_s
                self.tokens = min(bucket_s * capacity, self.tokens + less * capacity * since_s)
                most = self.tokens
            self.overloaded = bool(frames) and (self.overloaded or frames > most)
            passed = super()._forward(direction, frames, most * (less if kind == "overload" and self.overloaded else 1))
            self.tokens -= passed
            return passed

    noise = rng.uniform(0, 0.03) if kind == "noise" else 0.0
    analysis = judged(World(capacity, noise=noise, seed=seed), Changing, kind="search", bracket_s=10.0, warmup_s=2.0)
    (one,) = analysis.directions
    assert ("carried-more" in codes(analysis)) is (kind != "noise"), one


@pytest.mark.parametrize("seed", range(scaled(60, 4)))
def test_loss_that_grows_slowly_is_no_dut_that_carried_more_before(seed: int) -> None:
    """A ramp's window may hide as many frames as such a DUT loses well above the rate found."""
    rng = random.Random(seed)
    limit, power, goal = rng.uniform(1.5e5, 1e6), rng.choice([1, 1, 2, 4]), rng.choice([0.001, 0.001, 0.005])
    read_s, latency_s = rng.choice([0, 1e-4, 1e-3]), rng.choice([0, 2e-5, 1e-3])
    world = World(base_loss=lambda pps: goal * (pps / limit) ** power, read_s=read_s, latency_s=latency_s)
    assert "carried-more" not in codes(searched(world, goals=(goal,), loss_threshold=goal))


@pytest.mark.parametrize(
    ("share", "capacity"),
    [*((share, CAPACITY) for share in (0.0008, 0.0011, 0.002, 0.05)), *((share, 2.5e5) for share in (0.002, 0.05))],
)
def test_a_knee_behind_a_path_that_loses(share: float, capacity: float) -> None:
    analysis = searched(World(capacity, back_loss=share))
    assert is_the_knee(analysis.directions[0], capacity) and codes(analysis) == ["lossy-path"]
    told = analysis.warnings[0].text
    assert "of the frames were lost at every rate" in told
    assert float(told.split()[1]) == pytest.approx(100 * share, rel=0.03)


@pytest.mark.parametrize("share", [0.0011, 0.002, 0.05, 0.1])
def test_a_path_that_loses_is_no_limit(share: float) -> None:
    analysis = searched(World(base_loss=share))
    (one,) = analysis.directions
    assert one.limit is Limit.NONE and one.maximum_pps == pytest.approx(0.97e9 / 672, rel=1e-3)
    assert codes(analysis) == ["lossy-path"]


def test_a_path_that_loses_hides_neither_of_two_goals() -> None:
    (one,) = searched(World(CAPACITY, back_loss=0.002), goals=(0.0, 0.005), loss_threshold=0.0).directions
    assert is_the_knee(one) and one.goals[1].maximum_pps == pytest.approx(CAPACITY * 1.005, rel=0.003)


@pytest.mark.parametrize("most", by_day(2, [0.005, 0.05, 0.01, 0.02]))
def test_loss_that_grows_with_the_rate_is_a_limit(most: float) -> None:
    analysis = searched(World(base_loss=lambda pps: most * pps / 1.44e6))
    (one,) = analysis.directions
    assert one.limit is Limit.DUT and "lossy-path" not in codes(analysis)
    # What frames on their way may look like, 0.01 %, is a tenth of this goal.
    assert 1.44e6 * 0.001 / most * 0.99 < one.maximum_pps < 1.44e6 * 0.0011 / most * 1.02


@pytest.mark.parametrize("share", [0.003, 0.009])
def test_frames_that_come_twice_count_once(share: float) -> None:
    analysis = searched(World(CAPACITY, duplicated=share))
    (one,) = analysis.directions
    knee = CAPACITY * 1.001  # where 0.1 % is lost
    assert (one.low_pps or 0) <= knee <= (one.high_pps or 0) and one.maximum_pps == pytest.approx(knee, rel=0.005)
    assert one.goals[0].low_pps == one.low_pps and codes(analysis) == ["duplicates"]
    assert f"{format_share(share)} more frames came back than were sent at every rate" in analysis.warnings[0].text


def test_a_receiver_that_loses_silently_is_found_by_the_counters_of_the_dut() -> None:
    plan = make_plan(kind="search", warmup_s=2.0, hold_s=0.0, goals=(0.001, 0.01))
    result = make_result(plan, World(1.3e6, rx_limit_pps=9e5, rx_silent=True), observed=True)
    (one,) = result.analysis.directions
    assert (one.limit, one.at_least, one.low_pps) == (Limit.GENERATOR_RX, True, None)
    rates = (one.maximum_pps, 0.001), *((goal.maximum_pps, goal.loss) for goal in one.goals)
    assert all(pps <= 9e5 / (1 - loss) for pps, loss in rates), "at least, not about"
    own = make_result(plan, World(CAPACITY, rx_limit_pps=9e5, rx_silent=True), observed=True)
    assert is_the_knee(own.analysis.directions[0]), "which it never reaches"
    cable = make_result(plan, World(CAPACITY, back_loss=0.0004), observed=True)
    assert is_the_knee(cable.analysis.directions[0])
    assert max(s.trial for s in own.samples if s.phase is Phase.CONFIRM) == 1


@pytest.mark.parametrize("share", by_day(1, [0.017, 0.002, 0.3]))
@pytest.mark.parametrize("limits", [{"rx_limit_pps": 8e3}, {"tx_limit_pps": 5e3}, {"rx_limit_pps": 50e3}])
def test_where_even_the_lowest_rate_loses_no_rate_is_the_duts(share: float, limits: dict[str, float]) -> None:
    """The ramp begins beyond what the tester receives: it does not show that the path loses at every rate."""
    (result,) = judged(World(back_loss=share, **limits), kind="search", hold_s=0.0).directions
    assert result.limit is not Limit.DUT
    assert result.limit is not Limit.UNKNOWN or "lost even at 1.000 kpps" in result.reasons[0]


@pytest.mark.parametrize("share", [0.002, 0.02, 0.3])
def test_a_target_offered_at_once_that_loses_about_as_much_as_the_warm_up_is_no_limit(share: float) -> None:
    plan, _, analysis = measured(World(back_loss=share), kind="saturate")
    (result,) = analysis.directions
    assert codes(analysis) == [], "loss from the start is a doubt of a ramp only"
    assert result.limit is Limit.UNKNOWN and "in the warm-up, and not much more now" in result.reasons[1]
    assert result.maximum_pps == pytest.approx((1 - share) * plan.offers[0].target_pps, rel=0.01)
    (limited,) = judged(World(back_loss=share, capacity_pps=700e3), kind="saturate").directions
    assert limited.limit is Limit.DUT


def test_frames_lost_once_in_the_warm_up_excuse_no_limit() -> None:
    (result,) = judged(World(1.42e6, blips=[(3.0, 3.2)]), kind="saturate").directions
    assert result.limit is Limit.DUT


@pytest.mark.parametrize("number", range(scaled(40, 4)))
def test_the_offered_load_of_a_look_is_what_was_sent(number: int) -> None:
    rng = random.Random(4100 + number)
    behind, jitter = rng.uniform(0.0, 0.08), rng.choice([0.0, 0.002, 0.01])
    if number % 4 == 3:
        behind *= -1

    class Lagging(SimulatedGenerator):
        """Sends less than is asked for, or more, at every rate, and more of it at one time than at another."""

        def _send(self, number: int, seconds: float) -> int:
            asked = self.rates.get(number, 0.0)
            self.rates[number] = asked * (1 - behind) * (1 - rng.uniform(0.0, jitter))
            try:
                return super()._send(number, seconds)
            finally:
                self.rates[number] = asked

    bidir, noise = rng.random() < 0.5, rng.choice([0.0, 0.002])
    capacity = rng.uniform(0.15, 0.85) * 0.97e9 / 672
    plan, _, analysis = measured(
        World(capacity, noise=noise, seed=number), Lagging, kind="search", bidir=bidir, warmup_s=2.0, hold_s=0.0
    )
    for one in analysis.directions:
        assert one.limit is Limit.DUT, one
        assert one.maximum_pps == pytest.approx(capacity, rel=0.01)
        assert behind >= 0 or jitter or noise or one.trials[0].passed, "the surplus alone fails no trial"
    # What jitters by more than the width may have no answer.
    assert jitter > plan.width or "not-finished" not in codes(analysis)


@pytest.mark.parametrize("kind", ["search", "saturate", "mlrsearch"])
@pytest.mark.parametrize(("base_loss", "latency_s"), [(0.0, 1e-4), (2e-5, 0.0), (2e-4, 0.0)])
def test_a_sender_that_sends_no_more_is_the_limit_despite_loss(kind: str, base_loss: float, latency_s: float) -> None:
    if kind == "mlrsearch":
        pytest.importorskip("MLRsearch")
    world = World(tx_limit_pps=8e5, reports_queue_full=False, base_loss=base_loss, latency_s=latency_s)
    (one,) = judged(world, kind=kind, warmup_s=2.0).directions
    assert one.limit is Limit.GENERATOR_TX and one.at_least
    assert one.maximum_pps == pytest.approx(8e5, rel=0.01)
    assert kind != "search" or one.first_bad_pps is None, "no look lost more than the goal"
