"""Every direction by itself: its sender, its receiver, its profile and its line; and samples that are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from documents import to_document
from runs import HeldClock, SimulatedGenerator, World, make_plan, make_result, simulate
from test_request import Frames64, request

from trexbench.config.model import PlanDefaults
from trexbench.core.history.rows import row_of
from trexbench.core.load.plan import Direction
from trexbench.core.load.sample import Phase
from trexbench.core.load.windows import RunWindows
from trexbench.core.result import from_document
from trexbench.core.strategy.analysis import analyse
from trexbench.core.strategy.base import Strategy
from trexbench.core.units import line_rate_pps
from trexbench.core.verdict.parts import Limit
from trexbench.session.loop import run
from trexbench.session.request import build_plan

WEAK, STRONG, TX = Direction(0, 1), Direction(2, 3), Limit.GENERATOR_TX


@pytest.mark.parametrize("bidir", [False, True])
@pytest.mark.parametrize(
    ("world", "limit"),
    [
        pytest.param(World(7e5, tx_limit_pps={0: 5e5}, queue_full_by_port=True), TX, id="it says whose queue was full"),
        pytest.param(World(7e5, tx_limit_pps={0: 5e5}), TX, id="only the sum of all queues is known, as with TRex"),
        pytest.param(World({"0->1": 5e5, "2->3": 7e5}, cpu_at_full_percent={0: 300.0}), TX, id="its CPU is busy"),
        pytest.param(World(7e5, rx_limit_pps={1: 5e5}), Limit.GENERATOR_RX, id="errors of one receiver"),
    ],
)
def test_case_9_a_weak_end_of_one_pair_is_no_limit_of_the_other(world: World, limit: Limit, bidir: bool) -> None:
    found = {r.direction: r for r in make_result(make_plan(bidir, (0, 1, 2, 3)), world).analysis.directions}
    assert (found[WEAK].limit, found[WEAK].at_least) == (limit, True)
    assert (found[STRONG].limit, found[STRONG].at_least) == (Limit.DUT, False)
    assert found[WEAK].maximum_pps == pytest.approx(5e5, rel=0.06)
    assert found[STRONG].maximum_pps == pytest.approx(7e5, rel=0.06)


class Frames1514(Frames64):
    mean_frame_bytes = 1514.0

    def line_rate_pps(self, speed_bps: float) -> float:
        return line_rate_pps(1514, speed_bps)


PROFILES: Mapping[int, Any] = {0: Frames64(), 1: Frames1514(), 2: Frames64()}


def planned(speeds_bps: Mapping[int, float], ports: tuple[int, ...] = (0, 1), bidir: bool = True) -> Strategy:
    wished = PlanDefaults(ramp_s=60.0, warmup_s=5.0, hold_s=5.0, confirm_s=0.0)
    dut = replace(request().dut, speed_bps=None)
    return build_plan(request(dut=dut, wished=wished, bidir=bidir, ports=ports), PROFILES, speeds_bps)


def test_each_direction_has_the_line_rate_of_its_own_frames() -> None:
    plan = planned({0: 1e9, 1: 1e9})
    small, large = plan.offers
    assert small.line_rate_pps == pytest.approx(1e9 / 672) and large.line_rate_pps == pytest.approx(1e9 / 12272)
    for offer in plan.offers:
        assert offer.target_pps == pytest.approx(0.97 * offer.line_rate_pps)
    assert plan.line_share({small.direction: small.target_pps, large.direction: large.target_pps / 2}) == pytest.approx(
        0.97 * 1.5
    )
    samples = simulate(plan).samples
    ramp = [s.asked_pps for s in samples if s.phase is Phase.RAMP]
    for rates in ramp[5:]:
        shares = [plan.offer(direction).line_share(pps) for direction, pps in rates.items()]
        assert len(shares) == 2 and shares[0] == pytest.approx(shares[1]), "they rise side by side"


def test_both_profiles_are_stored() -> None:
    plan = planned({0: 1e9, 1: 1e9})
    profiles = {
        direction: {"digest": digest, "mix": mix}
        for direction, digest, mix in zip(plan.directions, ("aa", "bb"), ("64 B", "1514 B"), strict=True)
    }
    result = make_result(plan, profiles=profiles)
    document = to_document(result)
    assert {name: one["digest"] for name, one in document["profiles"].items()} == {"0->1": "aa", "1->0": "bb"}
    assert from_document(document).profiles == profiles
    assert row_of(result, "x.json").traffic == "aa+bb"
    assert row_of(result, "x.json").line_share == pytest.approx(2 * 0.97, rel=0.01)


def test_pairs_of_different_speed() -> None:
    plan = planned({0: 1e9, 1: 1e9, 2: 10e9, 3: 10e9}, (0, 1, 2, 3), bidir=False)
    assert [offer.line_rate_bps for offer in plan.offers] == [1e9, 10e9] == list(plan.line_rates_bps)
    slow, fast = make_result(plan, World({"0->1": 1e6, "2->3": 10e6})).analysis.directions
    assert (slow.limit, fast.limit) == (Limit.DUT, Limit.DUT)
    assert fast.maximum_pps == pytest.approx(10 * slow.maximum_pps, rel=0.02)
    for one in (slow, fast):
        assert 0 < one.uncertainty_pps < plan.step_pps(one.direction)


@pytest.mark.parametrize(("stalls_at_s", "where"), [(20.0, "before the knee"), (28.0, "across it")])
def test_a_gap_in_the_samples_is_in_no_window(stalls_at_s: float, where: str) -> None:
    class Stalls(HeldClock):
        def sleep_until(self, t_s: float) -> None:
            super().sleep_until(t_s + (20.0 if stalls_at_s <= self.now_s < stalls_at_s + 1 else 0.0))

    plan, world, clock = make_plan(confirm_s=0.0), World(7e5), Stalls()
    samples = run(plan, SimulatedGenerator(plan, world, clock), clock).samples
    gap = (stalls_at_s, stalls_at_s + 21.0)
    (direction,) = plan.directions
    windows = RunWindows(plan, samples).judged(direction)
    assert windows and all(w.end_s <= gap[0] or w.begin_s >= gap[1] for w in windows), where
    analysis = analyse(plan, samples)
    (text,) = [c.text for c in analysis.warnings if c.code == "gap"]
    assert f"from {gap[0]:.1f} to {gap[1]:.1f} s" in text
    (verdict,) = analysis.directions
    good = [w.sent_pps for w in windows if not w.is_bad(plan.loss_threshold)]
    bad = [w for w in windows if w.is_bad(plan.loss_threshold)]
    assert verdict.limit is Limit.DUT and verdict.last_good_pps == max(good), where
    assert (verdict.first_bad_pps, verdict.saturated_at_s) == (bad[0].sent_pps, bad[0].begin_s)
    assert abs(7e5 - verdict.maximum_pps) <= verdict.uncertainty_pps
