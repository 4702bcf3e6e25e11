"""Worlds drawn at random: losses that the drain, the trials or higher rates contradict; limits that vary slowly."""

from __future__ import annotations

import random
from collections.abc import Iterable
from math import exp
from typing import Any

import pytest
from effort import by_day, scaled
from runs import SimulatedGenerator, World, judged, make_plan, make_result, simulate

from trexbench.core.load.plan import Direction
from trexbench.core.load.sample import Phase
from trexbench.core.strategy.analysis import analyse
from trexbench.core.verdict.parts import DirectionResult, Limit

SEEDS = range(scaled(100, 6))


def holds(one: DirectionResult, pps: float, beside: float = 0.001) -> bool:
    """Test whether the rate is in the interval of a direction that the DUT limits; the model forwards whole frames."""
    low, high = one.low_pps or 0.0, one.high_pps or 0.0
    return one.limit is Limit.DUT and low * (1 - beside) <= pps <= high * (1 + beside)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_path_that_delays_frames_is_no_limit(seed: int) -> None:
    """By up to 0.4 s, in windows of a second, and more than a search lets a rate settle."""
    rng = random.Random(seed)
    capacity, plan = rng.uniform(2e5, 1.2e6), make_plan(ramp_s=rng.choice((60.0, 240.0)), warmup_s=10.0)
    plan = plan if seed % 2 else make_plan(kind="search", warmup_s=2.0)
    world = World(capacity, latency_s=rng.uniform(0.02, 0.4), noise=rng.choice((0.0, 0.002)), seed=seed)
    analysis = make_result(plan, world).analysis
    (one,) = analysis.directions
    assert holds(one, capacity, 0.001 + world.noise / 4), world  # of 95 % intervals, not all hold it
    assert not {"lossy-path", "foreign-frames", "duplicates"} & {each.code for each in analysis.warnings}, world


@pytest.mark.parametrize("seed", SEEDS)
def test_frames_lost_once_in_the_warm_up_are_no_share_at_every_rate(seed: int) -> None:
    rng = random.Random(seed)
    at_s, capacity = rng.uniform(0.5, 9.7), rng.uniform(2e5, 1.2e6)
    blip = (at_s, at_s + rng.uniform(0.005, 0.2))
    plan = make_plan(ramp_s=rng.choice((60.0, 600.0)), warmup_s=10.0)
    analysis = make_result(plan, World(capacity, blips=(blip,), seed=seed)).analysis
    assert holds(analysis.directions[0], capacity) and not analysis.warnings, (capacity, blip)


@pytest.mark.parametrize("latency_s", [1.5, 3.0])
def test_a_delay_of_more_than_a_window_ends_in_unknown(latency_s: float) -> None:
    plan = make_plan(warmup_s=10.0, drain_s=5.0)
    (one,) = make_result(plan, World(latency_s=latency_s)).analysis.directions
    assert one.limit is not Limit.DUT and one.at_least
    assert one.limit is Limit.NONE or "use a longer `window:`" in one.reasons[0]


class Lenient(SimulatedGenerator):
    """Its router carries a rate up to 4 % above its limit once it has been held for a second, as noise may have it."""

    rate_pps, since_s = 0.0, 0.0

    def _forward(self, direction: Direction, frames: int, most: float) -> int:
        rate_pps = self.rates.get(direction.tx, 0.0)
        if rate_pps != self.rate_pps:
            self.rate_pps, self.since_s = rate_pps, self.clock.now_s
        carries = self.clock.now_s - self.since_s > 1.0 and frames <= 1.04 * most
        return frames if carries else min(frames, int(most))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rate_that_chance_carries_whenever_it_is_held_again_is_the_limit(seed: int) -> None:
    capacity = random.Random(seed).uniform(3e5, 1.1e6)
    (one,) = judged(World(capacity), Lenient, ramp_s=240.0).directions
    assert one.limit is Limit.DUT and one.low_pps <= 1.04 * capacity and one.high_pps >= capacity


class OnAndOff(SimulatedGenerator):
    """Its router carries everything half of the time, and in overload little in the other half of each ``period_s``."""

    period_s, begun_s, at_s = 2.0, 0.0, 0.0

    def _forward(self, direction: Direction, frames: int, most: float) -> int:
        then_s, self.at_s = self.at_s, self.clock.now_s
        off_s = self._off_s(self.at_s) - self._off_s(then_s)
        share = off_s / (self.at_s - then_s)
        return frames if frames <= most else round(frames * (1 - share) + 0.5 * most * share)

    def _off_s(self, until_s: float) -> float:
        """The time that it was off until then."""
        periods, rest_s = divmod(until_s + self.begun_s, self.period_s)
        return self.period_s / 2 * periods + max(0.0, rest_s - self.period_s / 2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["ramp", "search"])
def test_loss_that_comes_and_goes_is_not_carried(kind: str, seed: int) -> None:
    """In overload every other window loses frames, never three in a row."""
    rng = random.Random(seed)

    class Drawn(OnAndOff):
        period_s, begun_s = rng.uniform(1.8, 2.2) if kind == "ramp" else rng.uniform(0.8, 1.2), rng.uniform(0, 2)

    capacity = rng.uniform(2e5, 1.1e6)
    plan = {"ramp_s": rng.choice([60.0, 240.0])} if kind == "ramp" else {"kind": kind}
    (one,) = judged(World(capacity), Drawn, **plan).directions
    assert one.limit in (Limit.DUT, Limit.UNKNOWN)
    assert one.at_least or one.low_pps is None or one.low_pps <= 1.05 * capacity
    assert not one.at_least or one.maximum_pps <= 1.05 * capacity, one.reasons


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bound_near_a_limit_that_varies_is_what_a_trial_confirmed(seed: int) -> None:
    """Too few windows in a row lose frames, as the ramp ends where the DUT does."""
    rng = random.Random(seed)
    plan = make_plan(ramp_s=rng.choice([30.0, 60.0]), hold_s=10.0)
    capacity, noise = plan.offers[0].target_pps * rng.uniform(0.99, 1.02), rng.uniform(0.01, 0.03)
    analysis = make_result(plan, World(capacity, noise=noise, seed=seed)).analysis
    (one,) = analysis.directions
    if one.at_least and any(not trial.passed for trial in one.trials):
        assert one.limit is Limit.UNKNOWN and one.maximum_pps == (one.confirmed_pps or 0.0)
    if one.limit is Limit.NONE and (one.hold_loss or 0.0) > plan.loss_threshold and not analysis.stalls:
        assert one.confirmed_pps is not None


def slowing(capacity: float, share: float, at_s: float) -> World:
    """A router that forwards this share of its capacity from some time on: it gets hot, or leaves its turbo clock."""
    return World(capacity, speed=lambda t_s: share if t_s > at_s else 1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_figure_that_no_trial_confirms_is_not_the_maximum(seed: int) -> None:
    rng = random.Random(seed)
    capacity, share = rng.uniform(3e5, 9e5), rng.uniform(0.8, 0.93)
    analysis = judged(slowing(capacity, share, at_s=rng.uniform(55.0, 75.0)))
    (one,) = analysis.directions
    assert not one.trials[0].passed and holds(one, capacity * share)
    assert one.maximum_pps == pytest.approx(capacity * share, rel=0.002)
    assert {each.code for each in analysis.warnings} & {"not-confirmed", "confirmed-lower"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["policer", "collapse"])
def test_what_a_trial_carries_only_at_first_is_no_throughput(kind: str, seed: int) -> None:
    """A policer's tokens last for part of a trial; what carries less as soon as it is overloaded carried the rest."""
    rng = random.Random(seed)
    capacity, bucket_s, loss = rng.uniform(2e5, 1.1e6), rng.uniform(0.05, 1.0), rng.choice((0.001, 0.005, 0.0))

    class Policed(SimulatedGenerator):
        tokens = 0.0

        def _forward(self, direction: Direction, frames: int, most: float) -> int:
            left = self.tokens + most
            passed = super()._forward(direction, frames, left)
            self.tokens = min(bucket_s * capacity, left - passed)
            return passed

    world = World(capacity, collapse=rng.uniform(0.2, 0.9) if kind == "collapse" else 0.0, noise=0.0, seed=seed)
    changes = {"ramp_s": rng.choice((20.0, 60.0)), "confirm_s": 10.0, "loss_threshold": loss}
    analysis = judged(world, Policed if kind == "policer" else SimulatedGenerator, **changes)
    (one,) = analysis.directions
    assert one.at_least or holds(one, capacity, 0.001 + loss), one
    more = (one.confirmed_pps or 0.0) > 1.003 * capacity / (1 - loss)
    assert ("carried-more" in {each.code for each in analysis.warnings}) >= more and not (more and kind == "collapse")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_search_soaks_out_a_dut_that_slows_down(seed: int) -> None:
    """Hot after 20 to 60 s, or a turbo that lasts so long: the slow rate, or no figure."""
    rng = random.Random(seed)
    capacity, share = rng.uniform(3e5, 9e5), rng.uniform(0.8, 0.93)
    world = slowing(capacity, share, at_s=rng.uniform(20.0, 60.0))
    analysis = judged(world, kind="search", warmup_s=2.0, soak_s=60.0)
    (one,) = analysis.directions
    assert analysis.unanswered or holds(one, capacity * share), one


@pytest.mark.parametrize("seed", SEEDS)
def test_a_generator_that_sends_less_than_asked_is_no_limit_where_it_sends_more_later(seed: int) -> None:
    rng = random.Random(seed)
    capacity, share = rng.uniform(3e5, 7e5), rng.uniform(0.9, 0.985)
    until_s = 5 + 60 * (capacity * 1.15 / 1.443e6)

    class Slack(SimulatedGenerator):
        def _send(self, number: int, seconds: float) -> int:
            return super()._send(number, seconds * (share if self.clock.now_s < until_s else 1.0))

    (one,) = judged(World(capacity), Slack).directions
    assert holds(one, capacity), one
    (held,) = judged(World(tx_limit_pps=capacity), Slack).directions
    assert held.limit is Limit.GENERATOR_TX and held.at_least


def test_a_sender_held_up_late_in_the_hold_was_no_limit() -> None:
    plan = make_plan(hold_s=30.0)
    at_s = plan.warmup_s + plan.length_s(Phase.RAMP) + plan.hold_s - 1.5

    class HeldUp(SimulatedGenerator):
        def _send(self, number: int, seconds: float) -> int:
            return super()._send(number, seconds * (0.9 if abs(self.clock.now_s - at_s) < 1 else 1.0))

    analysis = analyse(plan, simulate(plan, World(), of=HeldUp).samples)
    assert analysis.directions[0].limit is Limit.NONE
    assert {each.code for each in analysis.warnings} == {"generator-gaps"}


@pytest.mark.parametrize("seed", range(scaled(30, 1)))
def test_no_loss_means_none(seed: int) -> None:
    """A router that loses some frames a second far below its limit, too few for one look to show."""
    rng = random.Random(seed)
    capacity, from_pps = rng.uniform(3e5, 9e5), rng.uniform(0.3, 0.6)

    class Dribbles(SimulatedGenerator):
        def _forward(self, direction: Direction, frames: int, most: float) -> int:
            passed = super()._forward(direction, frames, most)
            return passed - min(passed, 5) if self.rates.get(direction.tx, 0.0) > from_pps * capacity else passed

    analysis = judged(World(capacity), Dribbles, kind="search", warmup_s=2.0, goals=(0.0,), loss_threshold=0.0)
    assert "no rate was seen to lose none" in analysis.unanswered and analysis.directions[0].limit is Limit.UNKNOWN
    search: dict[str, Any] = {"kind": "search"}
    for noise, changes in ((0.0, {}), (0.0, search | {"goals": (0.0,)}), (0.003, search)):
        sound = judged(World(capacity, noise=noise, seed=seed), loss_threshold=0.0, **changes)
        (one,) = sound.directions
        assert sound.unanswered if one.confirmed_pps is None else one.maximum_pps == one.confirmed_pps, "RFC 2544"
        assert noise or holds(one, capacity)


class Deaf(SimulatedGenerator):
    """Its receiver loses frames in the first trial."""

    def _deliver(self, direction: Direction, forwarded: int, seconds: float) -> None:
        super()._deliver(direction, forwarded, seconds)
        if forwarded and 72 < self.clock.now_s < 76:
            self._ports[direction.rx].ierrors += 10
            self._ports[direction.rx].ipackets -= 10


def test_what_the_receiver_lost_in_a_trial_lowers_no_rate_without_loss() -> None:
    (one,) = judged(World(6.9e5), Deaf, hold_s=0.0, loss_threshold=0.0).directions
    assert [trial.passed for trial in one.trials] == [False, True]
    (sound,) = judged(World(6.9e5), hold_s=0.0, loss_threshold=0.0).directions
    assert one.limit is Limit.DUT and one.maximum_pps > one.confirmed_pps and holds(one, 6.9e5)
    assert one.confirmed_pps < sound.maximum_pps == sound.confirmed_pps <= one.maximum_pps


class Sloppy(SimulatedGenerator):
    """Its receiver loses some of what arrives: this share, in bursts, from a rate on."""

    share, from_pps = 0.0, 0.0

    def _deliver(self, direction: Direction, forwarded: int, seconds: float) -> None:
        before = self._ports[direction.rx].ipackets
        super()._deliver(direction, forwarded, seconds)
        arrived = self._ports[direction.rx].ipackets - before
        burst = self.share * self._rng.expovariate(1) if arrived > self.from_pps * seconds else 0.0
        self._ports[direction.rx].ierrors += round(burst * arrived)
        self._ports[direction.rx].ipackets -= round(burst * arrived)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["ramp", "search"])
def test_who_lost_more_is_to_blame(kind: str, seed: int) -> None:
    """A receiver that loses little excuses no DUT; one that loses more, from 75 % of its limit on, is to blame."""
    rng = random.Random(seed)
    capacity = rng.uniform(2e5, 1.1e6)

    class Few(Sloppy):
        share, from_pps = rng.uniform(0.0, 2e-4), rng.uniform(0.0, 1.0) * capacity

    class Many(Sloppy):
        share, from_pps = rng.uniform(0.01, 0.1), rng.uniform(0.4, 0.75) * capacity

    (few,) = judged(World(capacity, seed=seed), Few, kind=kind).directions
    (many,) = judged(World(capacity, seed=seed), Many, kind=kind).directions
    assert holds(few, capacity, 0.002) or (few.limit is Limit.GENERATOR_RX and few.maximum_pps <= 1.002 * capacity)
    assert "(ierrors)" in few.reasons[0] or Few.share < 5e-5, "what the receiver lost itself is said"
    assert holds(many, capacity, 0.002) or (many.at_least and many.maximum_pps <= capacity), many.reasons


@pytest.mark.parametrize("seed", SEEDS)
def test_a_receiver_that_is_the_limit_is_no_dut(seed: int) -> None:
    """Both lose frames in the first bad windows of a steep ramp, if their limits lie within its step."""
    rng = random.Random(seed)
    capacity, loss = rng.uniform(2e5, 1.1e6), rng.choice((0.001, 0.005, 0.0))
    world = World(capacity, rx_limit_pps=capacity * rng.uniform(0.6, 1.4), noise=rng.choice((0.0, 0.002)), seed=seed)
    (one,) = judged(world, ramp_s=rng.choice((20.0, 60.0)), loss_threshold=loss).directions
    assert holds(one, capacity, 0.002 + loss) or (one.at_least and one.maximum_pps <= capacity * 1.006), one


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("plan", [{"kind": "search"}, {"ramp_s": 60.0}, {"ramp_s": 600.0}], ids=str)
def test_a_receiver_that_loses_less_than_a_fifth_of_the_goal_excuses_no_dut(plan: dict[str, Any], seed: int) -> None:
    """At every rate, or from one below the DUT's limit on."""
    rng = random.Random(seed)
    capacity, goal = rng.uniform(2e5, 1.1e6), rng.choice((0.001, 0.005))
    share, from_pps = rng.uniform(0.05, 0.2) * goal, rng.choice((0.0, rng.uniform(0.2, 0.9))) * capacity

    class Dropping(SimulatedGenerator):
        owed = 0.0

        def _deliver(self, direction: Direction, forwarded: int, seconds: float) -> None:
            port = self._ports[direction.rx]
            before = port.ipackets
            super()._deliver(direction, forwarded, seconds)
            if port.ipackets - before > from_pps * seconds:
                dropped, self.owed = divmod(self.owed + share * (port.ipackets - before), 1)
                port.ipackets, port.ierrors = port.ipackets - int(dropped), port.ierrors + int(dropped)

    (one,) = judged(World(capacity, seed=seed), Dropping, loss_threshold=goal, **plan).directions
    assert holds(one, capacity, 0.002 + goal), one


class Wandering(SimulatedGenerator):
    """Its router's limit varies by 1 % (a standard deviation), and forgets within ``memory_s``."""

    memory_s = 1.0
    off, at_s = 0.0, -1e9

    def _forward(self, direction: Direction, frames: int, most: float) -> int:
        kept, self.at_s = exp(-(self.clock.now_s - self.at_s) / self.memory_s), self.clock.now_s
        self.off = kept * self.off + (1 - kept**2) ** 0.5 * self._rng.gauss(0, 0.01)
        return super()._forward(direction, frames, most * (1 + self.off))


def covered(memory_s: float, seeds: Iterable[int], truth: float = 1.0, **changes: Any) -> tuple[int, int]:
    """Count the runs whose interval holds this share of the mean limit, and all that the DUT limited."""
    held = count = 0
    for seed in seeds:
        capacity = random.Random(seed).uniform(3e5, 9e5)
        plan = make_plan(sample_s=0.1, **changes)
        kind = type("Drawn", (Wandering,), {"memory_s": memory_s})
        samples = simulate(plan, World(capacity, seed=seed), of=kind).samples
        (one,) = analyse(plan, samples).directions
        if one.limit is Limit.DUT and one.low_pps is not None and one.high_pps is not None:
            count += 1
            held += one.low_pps <= capacity * truth <= one.high_pps
    return held, count


SATURATE: dict[str, Any] = {"kind": "saturate", "hold_s": 30.0, "warmup_s": 2.0}
RAMP: dict[str, Any] = {"ramp_s": 60.0, "hold_s": 30.0, "warmup_s": 5.0, "confirm_s": 0.0}


@pytest.mark.parametrize(
    ("changes", "memory_s", "share", "seed"),
    by_day(
        2,
        [
            (SATURATE, 2.0, 0.9, 0),
            (RAMP, 10.0, 0.85, 10),  # without slow_share two of six do not
            (SATURATE, 0.05, 0.9, 0),
            (SATURATE, 10.0, 0.85, 0),
        ],
    ),
)
def test_the_interval_holds_the_limit(changes: dict[str, Any], memory_s: float, share: float, seed: int) -> None:
    """Saturate: 57, 58 and 55 of 60 runs; by twice the standard error of independent windows 23, 14 and 7 of 24."""
    held, count = covered(memory_s, range(seed, seed + scaled(60, 6)), **changes)
    assert count >= 5 and held >= share * count - 1, (held, count)
