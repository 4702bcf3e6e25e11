"""Changes on a lab's cores during a run: which ones count, what they do to a verdict, and to comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from documents import to_document
from nights import make_row, make_rows, noisy
from runs import HeldClock, Silent, SimulatedGenerator, World, make_plan, make_result

from trexbench.core.errors import StoreError
from trexbench.core.history.compare import compare_sets, find_unlike
from trexbench.core.history.levels import Kind
from trexbench.core.history.regression import judge_rows
from trexbench.core.history.rows import row_of
from trexbench.core.history.series import like_the_last
from trexbench.core.load.conditions import find_changes, round_trip_ns
from trexbench.core.load.sample import Conditions, CoreState, Phase, Reading, Sample, sample_from_dict, sample_to_dict
from trexbench.core.load.windows import measured_windows
from trexbench.core.result import from_document
from trexbench.core.strategy.analysis import analyse
from trexbench.core.verdict.model import Analysis, Limit
from trexbench.lab.conditions import CoreWatch
from trexbench.lab.corepair import PairTimes
from trexbench.report.run.text import format_summary
from trexbench.session.run import run

K = 1e3
GHZ = 1e9
NEAR, FAR = Conditions(85.0), Conditions(415.0)
At = Callable[[float], Any]


@dataclass
class Ground:
    """Reads the conditions of each instant; at ``moves_s`` the router's capacity becomes another one."""

    generator: SimulatedGenerator
    clock: HeldClock
    at: At
    moves_s: float = math.inf
    then_pps: float = 0.0

    def __call__(self) -> Conditions | None:
        if self.clock.now() >= self.moves_s:
            self.generator.world = replace(self.generator.world, capacity_pps=self.then_pps)
        found: Conditions | None = self.at(self.clock.now())
        return found


def measured(at: At, capacity_pps: float, moves_s: float = math.inf, then_pps: float = 0.0, **plan: Any) -> Any:
    """Plan and samples of a ramp from 0 to 1.44 Mpps in 60 s after a warm-up of 5 s: 24 kpps more each second."""
    made, clock = make_plan(**plan), HeldClock()
    generator = SimulatedGenerator(made, World(capacity_pps), clock)
    outcome = run(made, generator, clock, Silent(), Ground(generator, clock, at, moves_s, then_pps))
    assert outcome.error is None
    return made, outcome.samples


def judged(*args: Any, **more: Any) -> Analysis:
    return analyse(*measured(*args, **more))


def texts(analysis: Analysis, code: str) -> list[str]:
    return [warning.text for warning in analysis.warnings if warning.code == code]


def taken(values: Sequence[float | None], clock: Callable[[float], float] = lambda _: 3 * GHZ) -> list[Sample]:
    """A sample a second with these round trips and the router's clock."""
    return [
        Sample(Phase.RAMP, float(t), {}, Reading({}), 0, Conditions(value, {"router": CoreState(0, 0, clock(t))}))
        for t, value in enumerate(values)
    ]


def test_a_step_of_the_round_trip_makes_no_knee() -> None:
    """At 31 s, with 624 kpps offered, the way became slower, and the router carries 371 kpps instead of 700."""
    analysis = judged(lambda t: NEAR if t < 31 else FAR, 700 * K, moves_s=31, then_pps=371 * K)
    (result,) = analysis.directions
    assert (result.limit, result.at_least, result.saturated_at_s, result.trials) == (Limit.NONE, True, None, ())
    assert 590 * K < result.maximum_pps < 630 * K, "what was carried until then was carried"
    assert "until the lab's conditions changed" in result.reasons[0]
    change, loss = texts(analysis, "conditions-changed")
    assert change == (
        "at 31 s the way between the sender's and the router's core became slower: "
        "a cache line's round trip went from 85 to 415 ns"
    )
    assert loss == "0->1: the loss from 31 to 70 s set in with that change and makes no verdict"
    unseen = judged(lambda _: None, 700 * K, moves_s=31, then_pps=371 * K)
    assert unseen.directions[0].limit is Limit.DUT, "without the figure the same run has a knee"


@pytest.mark.parametrize(
    ("at", "capacity", "moves_s", "then", "knee"),
    [
        pytest.param(lambda t: NEAR if t < 15 else FAR, 700, 15, 371, 371, id="before the knee of the slower way"),
        pytest.param(lambda t: NEAR if t < 45 else FAR, 700, 45, 371, 700, id="after the knee"),
        pytest.param(lambda t: FAR if t < 31 else NEAR, 620, 31, 500, 620, id="for the better, it explains no loss"),
        pytest.param(lambda t: FAR if t in (33, 34) else NEAR, 700, 90, 0, 700, id="two readings are no change"),
        pytest.param(lambda t: None if t % 3 else NEAR, 700, 90, 0, 700, id="a reading every third sample"),
    ],
)
def test_other_changes_leave_the_knee(at: At, capacity: float, moves_s: float, then: float, knee: float) -> None:
    (result,) = judged(at, capacity * K, moves_s=moves_s, then_pps=then * K).directions
    assert result.limit is Limit.DUT
    assert result.maximum_pps == pytest.approx(knee * K, abs=result.uncertainty_pps + 1)


def test_loss_counts_again_once_it_has_ended() -> None:
    """The way is slow from 25 s to 35 s only, with more offered than the router then carries."""
    made, clock = make_plan(), HeldClock()
    generator = SimulatedGenerator(made, World(900 * K), clock)

    def watch() -> Conditions:
        slow = 25 <= clock.now() < 35
        generator.world = replace(generator.world, capacity_pps=(371 if slow else 900) * K)
        return FAR if slow else NEAR

    analysis = analyse(made, run(made, generator, clock, Silent(), watch).samples)
    (result,) = analysis.directions
    assert result.limit is Limit.DUT
    assert result.maximum_pps == pytest.approx(900 * K, abs=result.uncertainty_pps + 1)
    assert ", with 1 more change until 35 s" in texts(analysis, "conditions-changed")[0]


def test_a_slower_clock_is_a_change_and_its_noise_is_none() -> None:
    def at(hertz: float) -> Conditions:
        return Conditions(None, {"router": CoreState(0.0, 0.0, hertz), "sender": CoreState(0.0, 0.0, 3 * GHZ)})

    analysis = judged(lambda t: at(3.08 * GHZ if t < 31 else 2.68 * GHZ), 700 * K, moves_s=31, then_pps=600 * K)
    assert analysis.directions[0].limit is Limit.NONE
    text = "at 31 s the clock of the router's core went from 3.08 GHz to 2.68 GHz"
    assert texts(analysis, "conditions-changed")[0] == text
    assert not find_changes(taken([85.0] * 40, lambda t: (3.0 if t % 9 else 2.4) * GHZ)), "single readings"
    to_and_fro = taken([85.0] * 60, lambda t: (3.0 if t < 9 or t // 7 % 2 else 2.6) * GHZ)
    assert not find_changes(to_and_fro), "several seconds at a time"
    assert not find_changes(taken([85.0] * 40, lambda t: (3.0 + 0.05 * (t % 2)) * GHZ)), "less than 3 %"


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ([85] * 10 + [415] * 3, [(9, 10, 85, 415)]),
        ([85] * 10 + [415] * 2, []),
        ([85] * 10 + [415] * 3 + [85] * 5, [(9, 10, 85, 415), (12, 13, 415, 85)]),
        ([85] * 10 + [None, None] + [415] * 3, [(9, 12, 85, 415)]),
        ([85] * 10 + [127] * 20, []),  # within the factor
        ([85] * 10 + [415, 30, 415, 30, 415] * 2 + [85] * 5, []),  # to and fro: no level
        ([None] * 20, []),
        ([], []),
    ],
)
def test_a_change_lasts(values: list[float | None], steps: list[tuple[float, ...]]) -> None:
    found = [(one.begin_s, one.end_s, one.before, one.after) for one in find_changes(taken(values))]
    assert found == steps


def test_no_window_lies_across_a_change() -> None:
    plan, samples = measured(lambda t: NEAR if t < 15 else FAR, 700 * K)
    result = replace(make_result(plan), samples=tuple(samples))
    ends = [window.end_s for window in measured_windows(plan, samples, plan.directions[0])]
    assert 14.0 in ends and 15.0 not in ends and 16.0 in ends
    assert result.round_trip_ns == 415.0 and round_trip_ns(samples, 10.0) == 85.0


def lost(stolen: float, foreign: float, begin_s: float, end_s: float) -> At:
    """Return conditions under which these shares of each second are lost between these times."""

    def at(t_s: float) -> Conditions:
        passed_s = min(max(0.0, t_s - begin_s), end_s - begin_s)
        return Conditions(85.0, {"router": CoreState(7.0 + stolen * passed_s, 9.0 + foreign * passed_s, 3 * GHZ)})

    return at


@pytest.mark.parametrize(
    ("at", "codes"),
    [
        pytest.param(lost(0.1, 0.0, 30, 45), ["stolen-time"], id="stolen where the loss set in"),
        pytest.param(lost(0.0, 0.2, 30, 45), ["foreign-load"], id="used by others there"),
        pytest.param(lost(0.1, 0.2, 5, 25), [], id="both, long before"),
        pytest.param(lost(0.1, 0.2, 50, 70), [], id="both, long after"),
        pytest.param(lost(0.02, 0.04, 0, 70), [], id="a little all the time"),
        pytest.param(lambda _: Conditions(85.0), [], id="not known"),
    ],
)
def test_lost_time_counts_where_it_decides(at: At, codes: list[str]) -> None:
    analysis = judged(at, 700 * K)
    assert [warning.code for warning in analysis.warnings] == codes
    for warning in analysis.warnings:
        assert "0->1: " in warning.text and "of the router's core from 33 to 37 s" in warning.text


def test_lost_time_of_a_saturated_hold() -> None:
    analysis = judged(lost(0.1, 0.0, 6, 10), 700 * K, kind="saturate")
    assert [warning.code for warning in analysis.warnings] == ["stolen-time"]


def test_documents_keep_conditions_and_older_ones_have_none() -> None:
    plan, samples = measured(lost(0.1, 0.0, 30, 45), 700 * K)
    lab = {"sender_cpu": 0, "router_cpus": [1], "harness_cpu": 0}
    result = replace(make_result(plan), samples=tuple(samples), generator={"kind": "embedded", "lab": lab})
    document = to_document(result)
    again = from_document(document)
    assert again.samples == result.samples and document["round_trip_ns"] == again.round_trip_ns == 85.0
    assert "a cache line's round trip of 85 ns between cores 0 and 1" in format_summary(again)
    for sample in document["samples"]:
        del sample["conditions"]
    older = from_document(document)
    assert older.round_trip_ns is None and "round trip" not in format_summary(older)
    broken = sample_to_dict(samples[3])
    broken["conditions"]["round_trip_ns"] = 0
    with pytest.raises(ValueError, match="conditions"):
        sample_from_dict(broken)
    with pytest.raises(StoreError):
        from_document(document | {"samples": [broken]})


def test_runs_on_unlike_ways_are_not_compared() -> None:
    plan, near = measured(lambda _: NEAR, 700 * K)
    _, far = measured(lambda _: FAR, 371 * K)
    runs = [replace(make_result(plan), samples=tuple(samples)) for samples in (near, far)]
    reason = "a cache line's round trip between the lab's cores 85 ns and 415 ns"
    assert list(find_unlike(*runs)) == [reason] and not list(find_unlike(runs[0], runs[0]))
    rows = [[row_of(one, "x.json")] for one in runs]
    assert compare_sets(*rows).pairs[0].unlike == (reason,)
    unknown = [replace(rows[1][0], round_trip_ns=None)]
    assert compare_sets(rows[0], unknown).pairs[0].unlike == ()


def test_a_history_holds_nights_on_the_same_way() -> None:
    """Twenty nights, then three on the slower way: no regression of the DUT, but another history, which is told."""
    near = make_rows(noisy(20), round_trip_ns=90.0)
    far = [make_row(number, 2.6e6, round_trip_ns=410.0) for number in range(20, 23)]
    told = judge_rows(near + [replace(row, round_trip_ns=100.0) for row in far])
    assert told.of(Kind.REGRESSION), "the same figures on the same way are one"
    judgement = judge_rows(near + far)
    assert not judgement.of(Kind.REGRESSION)
    (remark,) = [text for text in judgement.remarks if "round trip" in text]
    assert "between the lab's cores 90 ns -> 410 ns since 2026-01-21; its history starts again" in remark
    back = [*near, *far, make_row(23, 5e6, round_trip_ns=95.0)]
    assert like_the_last(back) == [*near, back[-1]]
    assert like_the_last([*far, make_row(23)]) == [*far, make_row(23)], "an unknown way may be the same"


def test_conditions_are_read_once_a_second() -> None:
    class Pair:
        asked = 0

        def measure(self) -> PairTimes:
            self.asked += 1
            return PairTimes(85.0, (3.1e9, 3.0e9))

    pair, now = Pair(), [0.0]
    watch = CoreWatch({"sender": (0,), "router": (0,)}, {}, pair, lambda: now[0])  # type: ignore[arg-type]
    first = watch.read()
    assert first is not None and first.round_trip_ns == 85.0
    assert (first.cores["router"].clock_hz, first.cores["sender"].clock_hz) == (3.1e9, 3.0e9)
    assert first.cores["sender"].stolen_s >= 0.0
    now[0] = 0.5
    assert watch.read() is None and pair.asked == 1
    now[0] = 1.0
    assert watch.read() is not None and pair.asked == 2


@pytest.mark.parametrize("moves_s", [3.0, 6.0, 9.0, 10.5, 12.5, 15.5])
def test_a_search_counts_no_look_from_before_the_way_became_slower(moves_s: float) -> None:
    """The verdict is that of the way as it was at last: looks before the change were good at rates above."""
    plan, samples = measured(
        lambda t: NEAR if t < moves_s else FAR, 700 * K, moves_s, 371 * K, kind="search", warmup_s=2.0
    )
    analysis = analyse(plan, samples)
    (result,) = analysis.directions
    assert result.limit is Limit.DUT and result.maximum_pps == pytest.approx(371 * K, rel=0.005)
    assert result.low_pps <= 371.4 * K and result.high_pps >= 371 * K and result.saturated_at_s >= moves_s
    assert "became slower" in texts(analysis, "conditions-changed")[0]
    assert round_trip_ns(samples, result.saturated_at_s) == FAR.round_trip_ns


def test_a_search_that_had_found_its_knee_keeps_it_when_the_way_becomes_slower() -> None:
    plan, samples = measured(lambda t: NEAR if t < 21 else FAR, 700 * K, 21, 371 * K, kind="search", warmup_s=2.0)
    assert next(s.t_s for s in samples if s.phase is Phase.DRAIN) < 21
    (result,) = analyse(plan, samples).directions
    assert result.maximum_pps == pytest.approx(700 * K, rel=0.004) and result.confirmed_pps is None


def test_a_search_counts_no_look_from_before_the_way_became_faster() -> None:
    plan, samples = measured(lambda t: FAR if t < 11 else NEAR, 371 * K, 11, 700 * K, kind="search", warmup_s=2.0)
    (result,) = analyse(plan, samples).directions
    assert result.maximum_pps == pytest.approx(700 * K, rel=0.005)
