"""Ways in which the verdict was once wrong, each with its number; the DUT forwards 700 kpps unless said otherwise.

Case 9, one pair's weak sender that became the other pair's limit, is in test_directions.py.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from documents import to_document
from effort import by_day, scaled
from faulty import compare, random_mixed
from runs import SimulatedGenerator, World, codes, judged, make_plan, make_result, measured

from trexbench.core.dut.telemetry import DropCount, Observation
from trexbench.core.load.plan import Direction
from trexbench.core.load.sample import Phase, Sample
from trexbench.core.result import RunResult, from_document
from trexbench.core.units import format_share
from trexbench.core.verdict.evidence import MAX_RECHECKS
from trexbench.core.verdict.parts import DirectionResult, Limit

CAPACITY = 7e5


def stages(samples: Sequence[Sample]) -> list[tuple[str, int]]:
    return [(phase.value, trial) for (phase, trial), _ in itertools.groupby(samples, key=lambda s: (s.phase, s.trial))]


def is_the_knee(result: DirectionResult, pps: float = CAPACITY) -> bool:
    """It is laid to the DUT, its interval holds the truth, and a trial near it passed."""
    low, high = result.low_pps or 0.0, result.high_pps or 0.0
    confirmed = result.confirmed_pps is not None and abs(result.confirmed_pps - pps) < 0.06 * pps
    return result.limit is Limit.DUT and not result.at_least and low <= pps <= high and confirmed


@pytest.mark.parametrize(("begin_s", "length_s"), [(30.0, 2.5), (30.0, 14.0), (30.0, 47.0), (32.0, 3.5)])
def test_case_1_a_stall_is_no_knee(begin_s: float, length_s: float) -> None:
    """The third goes on in the recheck of its first rate; the last ends above the knee, as only going on can show."""
    world = World(CAPACITY, blips=((begin_s, begin_s + length_s),))
    _, samples, analysis = measured(world)
    assert is_the_knee(analysis.directions[0]) and codes(analysis) == ["stall"]
    (stall,) = analysis.stalls
    seen_s = min(length_s, 40.0)  # until the hold ended
    assert stall.nothing_forwarded and (stall.begin_s, stall.length_s) == pytest.approx((begin_s, seen_s), abs=0.3)
    assert f"0->1: a stall of {stall.length_s:.1f} s at {begin_s:.1f} s: nothing was" in analysis.warnings[0].text
    assert begin_s == 30.0 or ("ramp", 1) in stages(samples)


def test_case_1_saturation_is_no_stall_where_the_first_bad_rate_is_carried_by_chance() -> None:
    """After the first ramp it carries 4 % more, which is enough for the first bad rate and for no later one."""
    _, samples, analysis = measured(World(CAPACITY, speed=lambda t_s: 1.04 if t_s > 70 else 1.0))
    assert ("ramp", 1) in stages(samples), "the first bad rate was carried"
    assert analysis.directions[0].limit is Limit.DUT
    (left_out,) = analysis.stalls
    assert not left_out.nothing_forwarded and codes(analysis) == ["repeated"], "what is left out is said"


def test_case_1_the_ramp_goes_on_from_the_first_bad_rate_to_the_target() -> None:
    """From then on it carries less than is offered, until the hold is over."""
    world = World(2e6, speed=lambda t_s: 0.275 if 30 < t_s <= 71 else 1.0)
    plan, samples, analysis = measured(world)
    assert analysis.directions[0].limit is Limit.NONE
    (direction,) = plan.directions
    assert analysis.directions[0].maximum_pps == pytest.approx(plan.offer(direction).target_pps, rel=1e-3)
    rates = {number: [s.asked_pps[direction] for s in samples if s.phase is Phase.RAMP and s.trial == number]
             for number in (0, 1)}  # fmt: skip
    (held,) = {s.asked_pps[direction] for s in samples if s.phase is Phase.RECHECK}
    assert held in rates[0] and held == rates[1][0], "the rate of the first bad window"
    assert rates[1] == sorted(rates[1]) and rates[1][-1] == plan.offer(direction).target_pps
    assert rates[1][1] - rates[1][0] == pytest.approx(plan.step_pps(direction))
    assert stages(samples)[2:] == [
        *(("ramp", 0), ("hold", 0), ("recheck", 0), ("drain", 0)),
        *(("ramp", 1), ("hold", 1), ("drain", 1)),
    ]


@pytest.mark.parametrize("capacity_pps", [CAPACITY, CAPACITY / 20])
def test_case_1_what_loses_again_is_a_knee(capacity_pps: float) -> None:
    """The second loses over a fifth at its first bad rate, as a step of the ramp is much of what it carries."""
    _, samples, analysis = measured(World(capacity_pps))
    (one,) = analysis.directions
    assert is_the_knee(one) if capacity_pps == CAPACITY else one.low_pps < capacity_pps < one.high_pps
    assert codes(analysis) == [] and analysis.stalls == ()
    assert stages(samples).count(("recheck", 0)) == 1 and ("recheck", 1) not in stages(samples)


def test_case_1_stalls_without_end_cost_a_bounded_time() -> None:
    stalls = tuple((at, at + 3.2) for at in (15.0, 32.0, 49.0, 66.0, 83.0, 100.0, 117.0))
    plan, samples, analysis = measured(World(blips=stalls), ramp_s=120.0)
    rechecks, recheck_s = sum(name == "recheck" for name, _ in stages(samples)), plan.length_s(Phase.RECHECK)
    assert rechecks == MAX_RECHECKS and samples[-1].t_s < plan.duration_s + rechecks * (recheck_s + plan.drain_s)
    (one,) = analysis.directions
    assert len(analysis.stalls) == MAX_RECHECKS and (one.limit, one.at_least) == (Limit.UNKNOWN, True)
    assert one.maximum_pps == one.confirmed_pps and "carried" in one.reasons[0]


def test_case_1_stalls_of_one_direction_leave_the_other_its_knee() -> None:
    class OneStalls(SimulatedGenerator):
        """Its second direction loses half, three times."""

        def _forward(self, direction: Direction, frames: int, most: float) -> int:
            stalls = direction.tx == 1 and any(0 < self.clock.now_s - at < 3.2 for at in (15.0, 32.0, 49.0))
            return super()._forward(direction, frames, frames / 2 if stalls else most)

    analysis = judged(World({"0->1": CAPACITY, "1->0": 9.9e9}), OneStalls, bidir=True, ramp_s=120.0)
    assert [str(stall.direction) for stall in analysis.stalls] == ["1->0"] * MAX_RECHECKS
    assert is_the_knee(analysis.directions[0])


class Rerouted(SimulatedGenerator):
    """From a moment on the path delays frames."""

    at_s, delay_s = 4.0, 0.6

    def _deliver(self, direction: Direction, forwarded: int, seconds: float) -> None:
        if self.clock.now_s > self.at_s:
            self.world = replace(self.world, latency_s=self.delay_s)
        super()._deliver(direction, forwarded, seconds)


@pytest.mark.parametrize("seed", range(scaled(40, 4)))
@pytest.mark.parametrize("kind", ["ramp", "search"])
def test_case_1_a_delay_that_grows_is_no_limit(kind: str, seed: int) -> None:
    """Windows of rising rates then lack what the rise adds to the frames on their way: a share at every rate."""
    rng = random.Random(seed)
    capacity, ramp_s = rng.choice([inf, rng.uniform(8e5, 1.3e6)]), rng.choice([30.0, 60.0, 600.0])

    class Once(Rerouted):
        at_s, delay_s = rng.uniform(3, 30), rng.uniform(0.02, 0.6)

    changes = {"ramp_s": ramp_s} if kind == "ramp" else {"kind": kind}
    (one,) = judged(World(capacity), Once, **changes).directions
    if one.limit is Limit.DUT:
        assert (one.low_pps or 0) <= 1.0011 * capacity and capacity <= (one.high_pps or 0), "0.1 % may be lost"
    else:
        assert one.maximum_pps <= 1.0011 * capacity


def test_case_1_frames_that_come_after_the_traffic_were_not_lost() -> None:
    (one,) = judged(World(1.2e6), Rerouted, kind="search").directions
    assert one.limit is Limit.UNKNOWN and "missing while the traffic went on" in one.reasons[0]


@pytest.mark.parametrize("share", [0.0, 0.005])
@pytest.mark.parametrize("begin_s", [16.0, 24.0, 29.0])
def test_case_1_a_stall_above_the_knee_of_one_direction_only(begin_s: float, share: float) -> None:
    """The ramp has stopped for two losses, one of which was a stall: it goes on for the other direction's sake."""
    world = World({"0->1": 4e5, "1->0": 9.8e5}, back_loss=share, blips=((begin_s, begin_s + 4.0),))
    analysis = judged(world, bidir=True)
    slow, fast = analysis.directions
    assert is_the_knee(slow, 4e5) and is_the_knee(fast, 9.8e5)
    assert [(str(one.direction), round(one.begin_s)) for one in analysis.stalls][-1] == ("1->0", begin_s)


@pytest.mark.parametrize(("sample_s", "end_s"), [(0.5, 26.4), (1.0, 26.5), (1.0, 26.9)])
def test_case_1_a_second_stall_ends_within_the_half_of_the_hold_that_decides(sample_s: float, end_s: float) -> None:
    """So late in a sample's interval that some frames came through in it."""
    world = World(CAPACITY, blips=((20.4, 22.6), (23.6, end_s)))
    analysis = judged(world, sample_s=sample_s)
    assert is_the_knee(analysis.directions[0]) and codes(analysis) == ["stall"]


@pytest.mark.parametrize("noise", [0.0, 0.003])
@pytest.mark.parametrize(
    ("ramp_s", "begin_s", "length_s"),
    [(60.0, 34.1, 3.0), (60.0, 35.1, 3.0), (240.0, 121.9, 3.0), (60.0, 35.1, 0.6), (60.0, 36.0, 3.0)],
)
def test_case_1_a_stall_just_past_the_knee(ramp_s: float, begin_s: float, length_s: float, noise: float) -> None:
    """The last two fill no window."""
    world = World(CAPACITY, noise=noise, blips=((begin_s, begin_s + length_s),))
    analysis = judged(world, ramp_s=ramp_s)
    (one,) = analysis.directions
    assert is_the_knee(one) and one.high_pps < CAPACITY * 1.1 and codes(analysis) == []


def test_case_1_a_rate_that_loses_whenever_it_is_held_is_a_knee_though_more_was_carried_later() -> None:
    """The loss of a band of rates: the ramp gets past it, and the hold of the first bad rate does not."""
    analysis = judged(World(base_loss=lambda pps: 0.02 * (4e5 < pps < 5.5e5)))
    (result,) = analysis.directions
    assert result.limit is Limit.DUT and result.first_bad_pps == pytest.approx(4e5, rel=0.07)
    assert codes(analysis) == ["recovered"] and analysis.stalls == ()
    assert "from 409.0 kpps on, yet later up to 1.443 Mpps were carried with loss <= 0.1 %" in analysis.warnings[0].text


def test_case_8_only_the_direction_that_failed_is_tried_at_less() -> None:
    class Tired(SimulatedGenerator):
        """After the ramp one direction forwards 4 % less than before."""

        def _forward(self, direction: Direction, frames: int, most: float) -> int:
            weak = direction == Direction(1, 0) and self.clock.now_s > 76
            return super()._forward(direction, frames, most * (0.96 if weak else 1.0))

    world = World({"0->1": 1e6, "1->0": 4e5})
    analysis = judged(world, Tired, bidir=True)
    steady, tired = analysis.directions
    assert all(t.passed and t.offered_pps == steady.confirmed_pps for t in steady.trials[-2:])
    assert [t.passed for t in tired.trials] == [False, False, True]
    assert tired.confirmed_pps == pytest.approx(0.97 * tired.trials[1].offered_pps)
    assert tired.low_pps == tired.confirmed_pps and tired.maximum_pps == pytest.approx(0.96 * 4e5, rel=0.002)
    assert [c.code for c in analysis.warnings] == ["confirmed-lower"] and "1->0" in analysis.warnings[0].text


def test_case_8_a_direction_without_a_limit_is_held_at_what_it_carried() -> None:
    plan, _, analysis = measured(World({"0->1": 4e5}), bidir=True)
    forth, back = analysis.directions
    assert is_the_knee(forth, 4e5) and back.limit is Limit.NONE
    assert back.confirmed_pps == pytest.approx(plan.offer(back.direction).target_pps, rel=1e-3)


FAST = 1.3e6
"""Frames per second that the DUT forwards where the tester's receiver ends first."""


@pytest.mark.parametrize("capacity", [FAST, 9.2e5], ids=["far above", "little above"])
def test_case_2_a_receiver_that_loses_silently_is_found_by_counters_of_the_dut(capacity: float) -> None:
    world = World(capacity, rx_limit_pps=9e5, rx_silent=True)
    result = make_result(make_plan(), world, observed=True)
    (one,) = result.analysis.directions
    assert (one.limit, one.at_least) == (Limit.GENERATOR_RX, True)
    assert one.low_pps is None and one.high_pps is None and one.maximum_pps <= 9.01e5
    (sent,) = [port.tx_packets for port in result.dut_readings[1].observation.ports if port.port == 1]
    assert f"counts {sent} sent to port 1, the tester {one.received} received" in one.reasons[0]
    again = from_document(to_document(result))
    assert again.analysis == result.analysis
    assert to_document(again)["analysis"][0]["limit"] == "generator-rx"


def test_case_2_a_stall_before_it_explains_nothing() -> None:
    world = World(FAST, rx_limit_pps=9e5, rx_silent=True, blips=((40.5, 43.0),))
    analysis = make_result(make_plan(), world, observed=True).analysis
    assert analysis.directions[0].limit is Limit.GENERATOR_RX and "stall" in codes(analysis)


def test_case_2_each_receiver_for_itself() -> None:
    world = World({"0->1": FAST, "1->0": CAPACITY}, rx_limit_pps={1: 9e5}, rx_silent=True)
    there, back = make_result(make_plan(bidir=True), world, observed=True).analysis.directions
    assert (there.limit, back.limit) == (Limit.GENERATOR_RX, Limit.DUT) and is_the_knee(back)


def test_case_2_a_full_line_too() -> None:
    world = World(FAST, rx_limit_pps=9e5, rx_silent=True)
    (one,) = make_result(make_plan(kind="saturate", hold_s=10.0), world, observed=True).analysis.directions
    assert (one.limit, one.at_least) == (Limit.GENERATOR_RX, True)


def test_case_2_frames_that_the_dut_counts_as_sent_and_drops_are_its_own() -> None:
    """VPP counts a frame as sent before it finds no room for it: the drop counter of that port tells."""
    result = make_result(make_plan(), World(FAST, rx_limit_pps=CAPACITY, rx_silent=True), observed=True)
    (one,) = result.analysis.directions
    start, finish = result.dut_readings
    drops = (DropCount("tx-error", one.sent - one.received, 1),)
    honest = replace(finish, observation=replace(finish.observation, drops=drops))
    assert one.limit is Limit.GENERATOR_RX
    assert is_the_knee(replace(result, dut_readings=(start, honest)).analysis.directions[0])


def own_duplicates(result: RunResult, share: float) -> RunResult:
    """Return the result as if the DUT itself sent this share of its frames twice, and counted them so."""
    start, finish = result.dut_readings
    ports = [replace(one, tx_packets=round((one.tx_packets or 0) * (1 + share))) for one in finish.observation.ports]
    return replace(result, dut_readings=(start, replace(finish, observation=Observation(ports=tuple(ports)))))


@pytest.mark.parametrize(("capacity", "share"), [(9.2e5, 0.009), (9.05e5, 0.009), (9.05e5, 0.005)])
def test_case_2_frames_that_come_twice_do_not_hide_what_the_receiver_loses(capacity: float, share: float) -> None:
    world = World(capacity, rx_limit_pps=9e5, rx_silent=True, duplicated=share)
    result = make_result(make_plan(target_pps=9.5e5, hold_s=0.0), world, observed=True)
    (one,) = result.analysis.directions
    (sent,) = [port.tx_packets for port in result.dut_readings[1].observation.ports if port.port == 1]
    assert one.received > sent + 10, "more came back than the DUT sent, and yet frames were lost on the way"
    assert (one.limit, one.at_least, one.low_pps) == (Limit.GENERATOR_RX, True, None)
    words = r"counts (\d+) sent to port 1, the tester (\d+) received there, of which (\d+) came"
    counts = re.search(words, *one.reasons)
    assert counts is not None and [int(count) for count in counts.groups()[:2]] == [sent, one.received]
    assert 0.85 * share * sent < int(counts[3]) < share * sent
    assert [c.code for c in (*result.analysis_warnings, *result.dut_warnings)] == ["duplicates"]


@pytest.mark.parametrize("share", scaled([0.0012, 0.005, 0.009, 0.03], [0.0012]))
@pytest.mark.parametrize("more", [{}, {"noise": 0.01}, {"read_s": 0.002}, {"rx_limit_pps": 8e5, "rx_silent": True}])
def test_case_2_frames_that_come_twice_excuse_no_dut(more: dict[str, Any], share: float) -> None:
    """Wherever they are doubled: behind the DUT, or in it."""
    world = World(CAPACITY, duplicated=share, **more)
    behind = make_result(make_plan(), world, observed=True)
    for result in (behind, own_duplicates(behind, share)):
        (one,) = result.analysis.directions
        carried = CAPACITY / (1 - result.plan.loss_threshold)  # a trial confirms up to this rate
        assert (one.limit, one.at_least) == (Limit.DUT, False)
        assert one.low_pps <= carried and one.high_pps >= CAPACITY


def test_case_2_a_link_that_went_down_is_the_link() -> None:
    result = make_result(make_plan(), World(FAST, rx_limit_pps=9e5, rx_silent=True), observed=True)
    last = result.samples[-1]
    ports = {port: replace(one, link_up=False) for port, one in last.reading.ports.items()}
    samples = (*result.samples[:-1], replace(last, reading=replace(last.reading, ports=ports)))
    assert replace(result, samples=samples).analysis.directions[0].limit is Limit.LINK


@pytest.mark.parametrize("ramp_s", [60.0, pytest.param(600.0, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("share", [0.0011, 0.002, 0.05])
def test_case_5_a_path_that_loses_is_no_limit(share: float, ramp_s: float) -> None:
    plan, _, analysis = measured(World(base_loss=share), ramp_s=ramp_s)
    (one,) = analysis.directions
    assert one.limit is Limit.NONE and one.trials == ()
    assert one.maximum_pps == pytest.approx(plan.offers[0].target_pps, rel=1e-3)
    assert codes(analysis) == ["lossy-path"]
    text = analysis.warnings[0].text
    assert f"0->1: {format_share(share)} of the frames were lost at every rate from " in text
    assert "to 1.443 Mpps: a lossy path, not a limit" in text and "by RFC 2544" in text


@pytest.mark.parametrize(
    ("share", "capacity", "ramp_s"),
    [
        *((share, capacity, 60.0) for share in (0.0008, 0.0011, 0.05) for capacity in (CAPACITY, 2.5e5)),
        pytest.param(0.005, 1.4e5, 240.0, id="in the lowest tenth of the target"),
    ],
)
def test_case_5_a_knee_behind_a_path_that_loses(share: float, capacity: float, ramp_s: float) -> None:
    for world in (World(capacity, back_loss=share), World(capacity, back_loss=share, noise=0.003)):
        analysis = judged(world, ramp_s=ramp_s)
        assert is_the_knee(analysis.directions[0], capacity), world
        assert set(codes(analysis)) - {"confirmed-lower"} == {"lossy-path"}, world
        assert ("RFC 2544" in analysis.warnings[0].text) is (share > 0.001)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_knee_below_the_first_window_follows_from_those_above(share: float) -> None:
    plan = make_plan(ramp_s=30.0)
    capacity = share * plan.step_pps(plan.directions[0])
    analysis = judged(World(capacity, noise=0.005), ramp_s=30.0)
    (one,) = analysis.directions
    assert one.limit is Limit.DUT and 0 < (one.low_pps or 0) <= capacity <= (one.high_pps or 0)
    assert one.maximum_pps == pytest.approx(capacity, rel=0.1) and (one.confirmed_pps or 0) >= one.low_pps
    assert codes(analysis) == ["bad-from-start"]


@pytest.mark.parametrize("capacity", by_day(2, [1.37e3, 1e4, 600.0, 3e3]))
def test_a_dut_that_forwards_hardly_anything_is_no_path_that_loses(capacity: float) -> None:
    """It loses more than 90 % at most rates of the ramp; what is left is far from a constant share."""
    analysis = judged(World(capacity, noise=0.002), warmup_pps=capacity)
    (one,) = analysis.directions
    assert one.limit is Limit.DUT and (one.low_pps or 0) <= capacity <= (one.high_pps or 0)
    assert "lossy-path" not in codes(analysis)


@pytest.mark.parametrize("capacity", [1.6e5, 2.2e5])
@pytest.mark.parametrize("share", [0.0012, 0.0016, 0.003])
def test_case_5_few_windows_show_a_path_that_loses(share: float, capacity: float) -> None:
    """A ramp so short, of a DUT so slow, that three or four windows lie below its knee: often too few to show the same
    share at every rate. Then no rate was carried, and the verdict is unknown.
    """
    world = World(capacity, back_loss=share)
    analysis = judged(world, ramp_s=30.0, loss_threshold=1e-4)
    (one,) = analysis.directions
    if one.limit is Limit.UNKNOWN:
        assert one.maximum_pps == 0 and capacity < 2e5
    else:
        assert one.limit is Limit.DUT and (one.low_pps or 0) <= capacity <= (one.high_pps or 0)
        assert "lossy-path" in codes(analysis)


@pytest.mark.parametrize("capacity", [1.6e5, 2.2e5])
def test_case_5_where_the_dut_stood_still_below_its_knee_few_windows_show_it(capacity: float) -> None:
    """Rates that were held show a loss, too: of one rate only, which is no share at every rate."""
    world = World(capacity, back_loss=0.005, blips=((5.6, 9.5),))
    analysis = judged(world)
    (one,) = analysis.directions
    if capacity < 2e5:
        assert one.limit is Limit.UNKNOWN and one.maximum_pps == 0 and codes(analysis) == ["not-confirmed"]
        assert "no more at" in one.reasons[0], "the loss is no larger at far higher rates"
    else:
        assert is_the_knee(one, capacity) and codes(analysis) == ["stall", "lossy-path"]


@pytest.mark.parametrize("reports_queue_full", [True, False])
def test_case_5_a_sender_at_its_limit_shows_no_path_that_loses(reports_queue_full: bool) -> None:
    """From the third window of so short a ramp on, all windows have the same rate, and so the same loss."""
    world = World(3e5, tx_limit_pps=3.6e5, noise=0.003, reports_queue_full=reports_queue_full)
    analysis = judged(world, ramp_s=9.0)
    assert "lossy-path" not in codes(analysis) and analysis.directions[0].maximum_pps <= 3.1e5


@pytest.mark.parametrize("latency_s", [0.0, 0.001])
@pytest.mark.parametrize("most", [0.001, 0.004, 0.016])
def test_case_5_few_frames_lost_by_chance_ever_more_often_show_no_path(most: float, latency_s: float) -> None:
    class Growing(SimulatedGenerator):
        def _forward(self, direction: Direction, frames: int, _: float) -> int:
            mean = frames * most * (self.rates.get(direction.tx, 0) / 3e5) ** 2
            return frames - min(frames, max(0, round(self._rng.gauss(mean, mean**0.5))))

    for seed in range(scaled(6, 2)):
        world = World(latency_s=latency_s, seed=seed)
        analysis = judged(world, Growing, ramp_s=30.0, target_pps=3e5, loss_threshold=1e-4)
        assert "lossy-path" not in codes(analysis), seed


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("most", scaled([0.005, 0.02, 0.05, 0.2], [0.2]))
@pytest.mark.parametrize("ramp_s", [30.0, 60.0, 600.0])
def test_case_5_loss_that_grows_with_the_rate_is_a_limit(ramp_s: float, most: float, power: int) -> None:
    world = World(base_loss=lambda pps: most * (pps / 1.44e6) ** power)
    plan, _, analysis = measured(world, ramp_s=ramp_s)
    (one,) = analysis.directions
    limit_pps = 1.44e6 * (plan.loss_threshold / most) ** (1 / power)
    assert one.limit is Limit.DUT and "lossy-path" not in codes(analysis)
    assert abs(one.maximum_pps - limit_pps) <= one.uncertainty_pps + 0.02 * limit_pps


@pytest.mark.parametrize("limit_pps", [2.1e5, 4.3e5])
@pytest.mark.parametrize("power", [1, 2])
def test_case_5_slowly_growing_loss_that_skew_hides_costs_the_figure_its_lower_end(
    power: int, limit_pps: float
) -> None:
    """The knee is found too high, as frames that skew may hide do not count, and trials little below it fail."""
    world = World(base_loss=lambda pps: 1e-3 * (pps / limit_pps) ** power, read_s=1e-3)
    (one,) = measured(world, ramp_s=60.0)[2].directions
    assert one.limit is Limit.DUT and one.confirmed_pps == one.low_pps is not None
    assert one.low_pps <= limit_pps <= (one.high_pps or 0.0)


@pytest.mark.parametrize("seed", range(scaled(40, 5)))
@pytest.mark.parametrize("changes", [{"ramp_s": 60.0}, {"ramp_s": 600.0}, {"kind": "search"}])
def test_case_5_a_share_lost_at_low_rates_only_is_no_path_that_loses(changes: dict[str, Any], seed: int) -> None:
    """As of a NIC that sleeps between few frames: to take it for the path's puts the knee too high."""
    rng = random.Random(seed)
    capacity, share = rng.uniform(3e5, 1.1e6), rng.uniform(0.003, 0.05)
    most = capacity * rng.uniform(0.2, 0.5)
    analysis = judged(World(capacity, base_loss=lambda pps: share * (pps < most)), **changes)
    (one,) = analysis.directions
    if one.limit is Limit.DUT:
        assert (one.low_pps or 0) <= 1.002 * capacity and capacity <= (one.high_pps or 0)
    else:
        assert one.limit is Limit.UNKNOWN and one.maximum_pps <= 1.002 * capacity
    assert "lossy-path" not in codes(analysis)


def test_case_5_one_direction_loses_and_the_other_is_sound() -> None:
    class Half(SimulatedGenerator):
        def _forward(self, direction: Direction, frames: int, most: float) -> int:
            found = super()._forward(direction, frames, most)
            return found - round(found * 0.002) if direction == Direction(0, 1) else found

    world = World({"0->1": CAPACITY, "1->0": 4e5})
    analysis = judged(world, Half, bidir=True)
    there, back = analysis.directions
    assert is_the_knee(there) and is_the_knee(back, 4e5)
    assert [c.text[:4] for c in analysis.warnings if c.code == "lossy-path"] == ["0->1"]


@pytest.mark.parametrize("latency_s", [0.0005, 0.005, 0.02])
@pytest.mark.parametrize("share", [0.0, 0.002])
def test_case_5_frames_on_their_way_are_no_loss_of_the_path(latency_s: float, share: float) -> None:
    analysis = judged(World(CAPACITY, latency_s=latency_s, back_loss=share))
    assert is_the_knee(analysis.directions[0]) and codes(analysis) == ["lossy-path"] * (share > 0)


@pytest.mark.parametrize("latency_s", by_day(2, [0.03495, 0.3375, 0.0071, 0.0123]))
def test_part_of_a_frame_on_its_way_is_no_lost_frame(latency_s: float) -> None:
    assert is_the_knee(judged(World(CAPACITY, latency_s=latency_s), loss_threshold=0.0).directions[0])


@pytest.mark.parametrize(
    ("seed", "number", "expected"),
    by_day(
        4,
        [
            pytest.param(40404, 155, ["right"] * 2, id="a ramp that was resumed where the loss before it was a stall"),
            pytest.param(40404, 49, ["right"] * 2, id="a stall above the knee of the other direction, held only once"),
            pytest.param(40404, 83, ["a bound"], id="a path whose loss a first good window hides"),
            pytest.param(828282, 69, ["right"] * 2, id="a generator at its limit, which sends one rate for long"),
            pytest.param(717171, 88, ["right"] * 2, id="more frames come twice than are lost"),
            pytest.param(51515, 48, ["a bound"], id="a path whose loss no window below the stall shows"),
            pytest.param(81177, 61, ["right"], id="a path behind the DUT that loses less than the threshold"),
            pytest.param(1, 902, ["right"] * 2, id="a stall that fills no window past the knee"),
            pytest.param(26260, 275, ["right"] * 2, id="a ramp that sees its path's loss before it can tell it"),
            pytest.param(26260, 51, ["right"] * 2, id="a stall in the first windows on a path that loses"),
            pytest.param(26260, 106, ["right"] * 2, id="a second stall below the other direction's knee"),
            pytest.param(1, 862, ["right", "a bound"], id="a stall in two of the few windows on a path that loses"),
            pytest.param(26260, 209, ["right"] * 2, id="frames that come twice, and a receiver that loses silently"),
        ],
    ),
)
def test_several_faults_at_once(seed: int, number: int, expected: list[str]) -> None:
    """Mix faults as benchmarks/verdicts.py does. Where it is a bound, the few windows below the knee show no path."""
    mixed = random_mixed(random.Random(f"{seed} {number}"), number)
    found = mixed.measure().analysis.directions
    assert [compare(one, *mixed.limit_of(one.direction)) for one in found] == expected


def test_case_5_latency_behind_a_path_that_loses_is_not_that_of_full_queues() -> None:
    result = make_result(make_plan(latency_s=5.0), World(CAPACITY, back_loss=0.002))
    assert [c.code for c in result.analysis_warnings] == ["lossy-path"]
    assert all(one.loss == pytest.approx(0.002, rel=0.1) and not one.lossy for one in result.latencies)


@pytest.mark.parametrize("share", scaled([0.0003, 0.0012, 0.005, 0.009, 0.03], [0.009]))
def test_case_7_frames_that_come_twice_count_once(share: float) -> None:
    plain = judged(World(CAPACITY), ramp_s=600.0)
    analysis = judged(World(CAPACITY, duplicated=share), ramp_s=600.0)
    (one,) = analysis.directions
    assert one.limit is Limit.DUT and one.low_pps is not None and plain.directions[0].low_pps is not None
    assert one.low_pps <= CAPACITY / (1 - make_plan().loss_threshold) and one.high_pps >= CAPACITY
    assert one.uncertainty_pps == pytest.approx(plain.directions[0].uncertainty_pps, rel=0.25)
    assert codes(analysis)[0] == "duplicates" and "foreign-frames" not in codes(analysis)
    assert f"{format_share(share)} more frames came back than were sent at every rate" in analysis.warnings[0].text


@pytest.mark.parametrize("changes", [{}, {"kind": "search"}])
def test_case_7_a_knee_below_the_next_window_is_no_smaller_share_of_frames_that_come_twice(
    changes: dict[str, Any],
) -> None:
    """The window at the knee lacks a few percent, and so the share of all windows together would be too small."""
    analysis = judged(World(335_380.0, duplicated=0.5), **changes)
    assert is_the_knee(analysis.directions[0], 335_380.0) and codes(analysis) == ["duplicates"]


@pytest.mark.parametrize("kind", ["ramp", "search"])
@pytest.mark.parametrize("seed", range(scaled(60, 3)))
def test_case_7_what_strangers_send_hides_no_loss(kind: str, seed: int) -> None:
    """Either all the time, which is left out, or from a moment on, when nothing is known of the loss."""
    rng = random.Random(seed)
    capacity, most, from_s = rng.uniform(2e5, 1.1e6), 10 ** rng.uniform(2, 5), rng.choice([0.0, rng.uniform(3, 60)])

    class Stranger(SimulatedGenerator):
        def _deliver(self, direction: Direction, forwarded: int, seconds: float) -> None:
            self.world = replace(self.world, foreign_pps=most if self.clock.now_s > from_s else 0.0)
            super()._deliver(direction, forwarded, seconds)

    (one,) = judged(World(capacity), Stranger, kind=kind).directions
    if one.limit is Limit.DUT:
        assert (one.low_pps or 0) <= 1.003 * capacity and capacity <= 1.002 * (one.high_pps or 0)
    else:
        assert one.limit is Limit.UNKNOWN and one.maximum_pps <= 1.003 * capacity
    assert from_s or kind == "search" or one.limit is Limit.DUT, (
        "a search's ramp may be too short to see them below the knee"
    )


def test_case_1_frames_of_the_overload_that_come_in_the_trial_confirm_nothing() -> None:
    class Detour(SimulatedGenerator):
        """A seventh of the frames comes 1.5 s later."""

        late: Sequence[tuple[float, int]] = ()

        def _deliver(self, direction: Direction, forwarded: int, seconds: float) -> None:
            now_s, later = self.clock.now_s, forwarded // 7
            came = sum(frames for at_s, frames in self.late if at_s <= now_s)
            self.late = (*(one for one in self.late if one[0] > now_s), (now_s + 1.5, later))
            super()._deliver(direction, forwarded - later + came, seconds)

    (one,) = judged(World(9.7e5), Detour).directions
    assert one.limit is Limit.UNKNOWN and "more frames came back than were sent" in one.reasons[0]


@pytest.mark.parametrize("seed", range(scaled(40, 2)))
def test_case_1_a_delay_that_varies_is_no_loss_that_lasts(seed: int) -> None:
    rng = random.Random(seed)
    capacity, delay_s, part = rng.uniform(2e5, 1.1e6), 10 ** rng.uniform(-3, -1), rng.uniform(0.02, 0.3)

    class Varying(SimulatedGenerator):
        def _deliver(self, direction: Direction, forwarded: int, seconds: float) -> None:
            delay = max(0.0, delay_s * (1 + part * self._rng.gauss(0, 1)))
            self.world = replace(self.world, latency_s=delay)
            super()._deliver(direction, forwarded, seconds)

    (one,) = judged(World(capacity), Varying, ramp_s=600.0, loss_threshold=0.0).directions
    assert (one.low_pps or 0) <= 1.002 * capacity and capacity <= 1.002 * (one.high_pps or 0)


def test_case_7_counters_of_different_instants_are_no_finding() -> None:
    analysis = judged(World(CAPACITY, read_s=0.003), loss_threshold=0.01)
    assert codes(analysis) == []
