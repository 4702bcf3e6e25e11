"""Latency at shares of the throughput: what is sent for it, what is made of the counts, what casts doubt on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from documents import to_document
from effort import by_day
from hypothesis import given
from hypothesis import strategies as st
from runs import SimulatedGenerator, World, asked, make_plan, make_result, simulate, simulate_with

from trexbench.core.errors import GeneratorError
from trexbench.core.history.rows import row_of
from trexbench.core.load.plan import LATENCY_LOADS, Direction, Plan
from trexbench.core.load.sample import LatencyCounters, Phase, Sample
from trexbench.core.result import from_document
from trexbench.core.run import find_damage
from trexbench.core.verdict.latency import (
    bucket_end_us,
    find_latencies,
    find_latency_warnings,
    history_latency,
    quantile_s,
)
from trexbench.generator.trex.streams import count_tagged
from trexbench.report.run.text import format_summary, sheets_of_packets

K = 1e3
PLAN = make_plan(bidir=True, latency_s=5.0)
TINY = make_plan(target=0.01, latency_s=5.0)
SLOW = World(capacity_pps=700 * K)


def loads(samples: Sequence[Sample]) -> list[float]:
    """Return the rate asked for at each load, once."""
    found = {s.trial: asked(s) for s in samples if s.phase is Phase.LATENCY}
    return [found[trial] for trial in sorted(found)]


def with_counters(samples: Sequence[Sample], change: Callable[[LatencyCounters], LatencyCounters]) -> list[Sample]:
    """Return the samples with these changes to what every port counted of tagged frames."""
    return [
        replace(one, reading=replace(one.reading, latency={p: change(c) for p, c in one.reading.latency.items()}))
        for one in samples
    ]


def test_three_loads_follow_the_run_each_with_silence_after_it() -> None:
    outcome, generator, _ = simulate_with(PLAN, SLOW)
    assert outcome.error is None and not outcome.warnings
    throughput = PLAN.throughput(outcome.samples)
    assert throughput == pytest.approx(700 * K, rel=0.03)
    assert loads(outcome.samples) == pytest.approx([share * throughput for share in LATENCY_LOADS])
    tail = [call[0] for call in generator.calls if call[0] != "update"][-10:]
    assert tail == ["tag", "start", "stop"] * 3 + ["stop"]
    assert [call[1] for call in generator.calls if call[0] == "tag"] == [{0: 1000.0, 1: 1000.0}] * 3
    starts = [call[2] for call in generator.calls if call[0] == "start"]
    assert starts[-3:] == [10.0] * 3, "each is bounded: its five seconds and some slack"


@pytest.mark.parametrize(
    ("plan", "world", "expected"),
    [
        pytest.param(replace(PLAN, latency_s=0.0), SLOW, 0, id="not asked for"),
        pytest.param(make_plan(kind="saturate", hold_s=8.0), SLOW, 0, id="a filled line has no throughput"),
        pytest.param(TINY, World(capacity_pps=5 * K), 2, id="a tenth of this is too little to send evenly"),
        pytest.param(PLAN, World(rx_limit_pps=15 * K), 0, id="no rate without loss"),
        pytest.param(PLAN, World(), 3, id="without a limit: of what was carried"),
        pytest.param(replace(PLAN, confirm_s=0.0), SLOW, 3, id="without confirmation"),
        pytest.param(replace(PLAN, hold_s=0.0), SLOW, 3, id="without a hold"),
    ],
)
def test_loads_are_those_that_can_be_sent(plan: Plan, world: World, expected: int) -> None:
    outcome = simulate(plan, world)
    assert outcome.error is None
    assert len(loads(outcome.samples)) == expected
    left_out = {0: "10, 50, 90 %", 2: "10 %"}.get(expected if plan.length_s(Phase.LATENCY) else 3)
    assert [c.text for c in outcome.warnings] == (
        [f"latency was not measured at {left_out} of the throughput, less than 1000 pps"] if left_out else []
    )
    assert len(find_latencies(plan, outcome.samples)) == expected * len(plan.directions)


def test_what_tagged_frames_took_is_told_by_load_and_direction() -> None:
    result = make_result(PLAN, SLOW)
    assert [(str(one.direction), one.share) for one in result.latencies] == [
        (direction, share) for share in LATENCY_LOADS for direction in ("0->1", "1->0")
    ]
    for one in result.latencies:
        assert one.sent == one.received == 5000
        took_s = 20e-6 * (1 + 0.5 * one.offered_pps / (700 * K))
        assert one.mean_s == one.max_s == pytest.approx(took_s)
        longest = pytest.approx(one.max_s + 1e-6, abs=1e-9)  # which the generator cuts to whole microseconds
        assert one.loss == 0 and one.p50_s == one.p99_s == longest, "the bucket's end, but no more than the longest"
    assert not list(find_latency_warnings(result.latencies))
    row = row_of(result, "x.json")
    assert row.get("latency_s") == pytest.approx(20e-6 * 1.25, rel=0.02)
    text = format_summary(result)
    assert " p50 <= " in text and " p99 <= " in text, "a bucket's end is an upper bound"
    assert re.search(r"^0->1 +50 % +348\.9 kpps +25\.0 us +26\.0 us", text, re.MULTILINE)
    directions, latencies = sheets_of_packets(result)
    assert (len(directions.lines), len(latencies.lines)) == (2, 2 * len(LATENCY_LOADS))
    assert [item.text for item in latencies.lines[2].items[:4]] == ["0->1", "50 %", "348.9 kpps", "25.0 us"]


def test_a_document_keeps_all_of_it() -> None:
    result = make_result(PLAN, SLOW)
    document = to_document(result)
    again = from_document(document)
    assert again.latencies == result.latencies and again.samples == result.samples
    assert [one["share"] for one in document["latency"]] == [one.share for one in result.latencies]
    assert row_of(again, "x.json") == row_of(result, "x.json")
    assert row_of(make_result(), "x.json").get("latency_s") is None


@pytest.mark.parametrize("refused", ["tag", "start"])
def test_a_generator_that_refuses_tagged_frames_costs_the_run_nothing_else(refused: str) -> None:
    class Refuses(SimulatedGenerator):
        def tag(self, rates_pps: Mapping[int, float]) -> None:
            super().tag(rates_pps)
            if refused == "tag":
                raise GeneratorError("TRex server x cannot add streams", "no room")

        def start(self, rates_pps: Mapping[int, float], duration_s: float) -> None:
            if any(call[0] == "tag" for call in self.calls):
                raise GeneratorError("TRex server x cannot start", "all counters are used")
            super().start(rates_pps, duration_s)

    outcome, generator, _ = simulate_with(PLAN, SLOW, of=Refuses)
    assert outcome.error is None and [c.code for c in outcome.warnings] == ["no-latency"]
    assert "at 10 % of the throughput and above: TRex server x cannot" in outcome.warnings[0].text
    assert outcome.samples[-1].phase is Phase.CONFIRM_DRAIN and generator.calls[-1] == ("stop",)


@pytest.mark.parametrize("tagging_s", by_day(1, [1.7, 0.3]))
@pytest.mark.parametrize(("sample_s", "latency_s"), [(0.05, 0.1), (1.0, 2.0), (1.0, 10.0)])
def test_a_generator_that_takes_long_to_tag_measures_all_the_same(
    tagging_s: float, sample_s: float, latency_s: float
) -> None:
    class Slow(SimulatedGenerator):
        def tag(self, rates_pps: Mapping[int, float]) -> None:
            super().tag(rates_pps)
            self.clock.now_s += tagging_s

    plan = make_plan(sample_s=sample_s, latency_s=latency_s)
    outcome = simulate(plan, SLOW, of=Slow)
    assert outcome.error is None and not outcome.warnings
    found = find_latencies(plan, outcome.samples)
    assert [one.share for one in found] == list(LATENCY_LOADS)
    least_s = max(sample_s, latency_s - tagging_s - sample_s)
    assert all(one.received == one.sent >= 1000 * least_s - 1 and one.mean_s for one in found)


def test_doubts_are_told() -> None:
    result = make_result(PLAN, SLOW)
    (one, *_) = result.latencies
    doubtful = (
        replace(one, loss=0.01, lossy=True),
        replace(one, received=0, mean_s=None),
        replace(one, out_of_order=3, duplicate=1),
    )
    found = list(find_latency_warnings(doubtful))
    assert [c.code for c in found] == ["latency-under-loss", "no-latency", "reordered"]
    assert "0->1 at 10 % of the throughput" in found[0].text and "full queues" in found[0].text
    assert "3 came out of order, 1 twice" in found[2].text


@pytest.mark.parametrize(
    ("world", "code"),
    [
        pytest.param(replace(SLOW, base_loss=0.0005), None, id="less than the threshold"),
        pytest.param(replace(SLOW, blips=((79.0, 80.0),)), "latency-under-loss", id="a router that stops for a second"),
        pytest.param(replace(SLOW, tx_limit_pps=690 * K), None, id="a generator that sends what is asked of it"),
    ],
)
def test_only_sound_figures_have_a_history(world: World, code: str | None) -> None:
    plan = make_plan(latency_s=5.0, confirm_s=0.0, hold_s=5.0)
    result = make_result(plan, world)
    half = next(one for one in result.latencies if one.share == 0.5)
    assert half.mean_s is not None
    assert [c.code for c in find_latency_warnings([half])] == ([code] if code else [])
    assert row_of(result, "x.json").get("latency_s") == (None if code else half.mean_s)
    assert row_of(from_document(to_document(result)), "x.json") == row_of(result, "x.json")


def test_a_load_that_the_generator_did_not_send_is_not_the_duts() -> None:
    class Tired(SimulatedGenerator):
        def _send(self, number: int, seconds: float) -> int:
            return super()._send(number, seconds * (0.9 if self._tagged else 1.0))

    plan = make_plan(latency_s=5.0)
    outcome = simulate(plan, SLOW, of=Tired)
    found = find_latencies(plan, outcome.samples)
    assert [c.code for c in find_latency_warnings(found)] == ["latency-load"] * 3
    assert all(one.sent_pps == pytest.approx(0.9 * one.offered_pps, rel=0.01) for one in found)
    assert all(one.mean_s is not None and one.history_s is None for one in found)


def test_silence_of_the_tagged_frames_is_no_figure() -> None:
    samples = simulate(PLAN, SLOW).samples
    for one in find_latencies(PLAN, with_counters(samples, lambda counters: LatencyCounters(counters.sent, 0))):
        assert one.mean_s is one.p50_s is one.p99_s is one.min_s is one.max_s is None and one.sent == 5000
    none = [replace(s, reading=replace(s.reading, latency={})) for s in samples]
    assert {one.sent for one in find_latencies(PLAN, none)} == {0}


def test_a_load_that_there_is_not_is_damage() -> None:
    result = make_result(PLAN, SLOW)
    for trial in (0, 4):
        samples = [replace(s, trial=trial) if s.phase is Phase.LATENCY_DRAIN else s for s in result.samples]
        assert f"latency load {trial} of 3" in str(find_damage(replace(result, samples=tuple(samples))))


def test_a_load_that_was_cut_short_is_not_told() -> None:
    samples = [s for s in simulate(PLAN, SLOW).samples if (s.phase, s.trial) != (Phase.LATENCY_DRAIN, 3)]
    assert {one.share for one in find_latencies(PLAN, samples)} == {0.1, 0.5}
    step = PLAN.next_step(samples)
    assert step is not None and step.phase is Phase.LATENCY_DRAIN


@given(st.dictionaries(st.sampled_from([0, 10, 20, 90, 100, 200, 900, 1000, 30000]), st.integers(0, 1000), min_size=1))
def test_quantiles_are_bounds_of_what_was_counted(histogram: dict[int, int]) -> None:
    received = sum(histogram.values())
    counters = LatencyCounters(received, received, histogram=histogram, max_s=1.0)
    if not received:
        assert quantile_s(counters, 0.5) is None
        return
    bounds = [quantile_s(counters, share) for share in (0.01, 0.5, 0.99, 1.0)]
    assert bounds == sorted(bounds)  # type: ignore[type-var]
    median = bounds[1]
    assert median is not None
    inside = sum(count for low, count in histogram.items() if bucket_end_us(low) <= median * 1e6 * (1 + 1e-9))
    assert inside >= received / 2


def test_a_maximum_that_leaves_the_first_frames_out_bounds_none_of_them() -> None:
    counters = LatencyCounters(100, 100, histogram={20: 90, 500: 10}, max_s=25e-6)
    assert quantile_s(counters, 0.5) == pytest.approx(26e-6) and quantile_s(counters, 0.99) == pytest.approx(600e-6)


@pytest.mark.parametrize(("low", "end"), [(0, 10), (10, 20), (90, 100), (100, 200), (900, 1000), (1000, 2000)])
def test_buckets_have_one_digit(low: int, end: int) -> None:
    assert bucket_end_us(low) == end


def lat(average: float, total_min: int, total_max: int, jit: int, histogram: dict[str, int]) -> dict[str, Any]:
    """Return what TRex reports of a group's latency."""
    return {"average": average, "total_min": total_min, "total_max": total_max, "jit": jit, "histogram": histogram}


def test_groups_of_a_port_are_one_count() -> None:
    """Groups as TRex reports them; one that has sent nothing has no latency."""
    answer: dict[str, Any] = {
        "flow_stats": {
            "7": {"tp": {"0": 100, "1": 0}, "rp": {"0": 0, "1": 100}},
            "8": {"tp": {"0": 301, "1": 0}, "rp": {"0": 0, "1": 300}},
            "9": {"tp": {"0": 0, "1": 0}, "rp": {"0": 0, "1": 0}},
        },
        "latency": {
            "7": {"lat": lat(10.0, 5, 80, 4, {"0": 60, "10": 40})},
            "8": {"lat": lat(30.0, 9, 50, 0, {"10": 300}), "er": {"ooo": 2, "dup": 1}},
            "g": None,
        },
    }
    found = count_tagged(answer, {0: range(7, 9), 1: range(9, 10)})
    assert found[0].average_s == pytest.approx(25e-6) and found[0].jitter_s == pytest.approx(1e-6)
    rest = replace(found[0], average_s=None, jitter_s=None)
    assert rest == LatencyCounters(401, 400, None, 5e-6, 80e-6, None, {0: 60, 10: 340}, 2, 1)
    assert found[1] == LatencyCounters(0, 0)
    assert count_tagged({"flow_stats": None, "latency": {"g": None}}, {0: [7]}) == {0: LatencyCounters(0, 0)}


def test_an_average_of_zero_is_none_yet() -> None:
    """TRex computes it twice a second; before that it tells 0, which would draw every mean down."""
    latency = {"7": {"lat": lat(0.0, 12, 0, 0, {"10": 5})}}
    answer = {"flow_stats": {"7": {"tp": {"0": 5}, "rp": {"1": 5}}}, "latency": latency}
    assert count_tagged(answer, {0: [7]})[0] == LatencyCounters(5, 5, None, 12e-6, None, 0.0, {10: 5})


def test_frames_that_came_back_without_an_average_are_not_told_as_lost() -> None:
    early = with_counters(simulate(PLAN, SLOW).samples, lambda counters: replace(counters, average_s=None))
    found = find_latencies(PLAN, early)
    assert all(one.mean_s is None and one.received for one in found)
    assert {c.text.split(": ")[1] for c in find_latency_warnings(found)} == {
        "5000 tagged frames came back, but the generator reports no average of their times"
    }


def test_directions_are_kept_apart() -> None:
    result = make_result(PLAN, World(capacity_pps={"0->1": 700 * K, "1->0": 900 * K}))
    half = {one.direction: one.mean_s for one in result.latencies if one.share == 0.5}
    slow, fast = half[Direction(0, 1)], half[Direction(1, 0)]
    assert slow is not None and fast is not None and slow > fast
    assert row_of(result, "x.json").get("latency_s") == slow, "the worst direction has the history"
    told = result.latencies
    assert history_latency(told) == slow
    assert history_latency([replace(one, lossy=True) if str(one.direction) == "0->1" else one for one in told]) is None
    assert history_latency([]) is None
