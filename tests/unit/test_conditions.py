"""Time of a lab's cores that others took during a run: when it counts, and how documents keep it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from documents import to_document
from runs import HeldClock, SimulatedGenerator, World, make_plan, make_result

from trexbench.core.errors import StoreError
from trexbench.core.load.sample import Conditions, CoreState, Sample, SenderCounters, sample_from_dict, stored
from trexbench.core.result import from_document
from trexbench.core.strategy.analysis import analyse
from trexbench.core.verdict.parts import Analysis, Limit
from trexbench.lab.conditions import CoreWatch
from trexbench.session.loop import run

K = 1e3
At = Callable[[float], Conditions]


def measured(at: At, capacity_pps: float, **plan: Any) -> Any:
    """Plan and samples of a ramp from 0 to 1.44 Mpps in 60 s after a warm-up of 5 s: 24 kpps more each second."""
    made, clock = make_plan(**plan), HeldClock()
    outcome = run(made, SimulatedGenerator(made, World(capacity_pps), clock), clock, watch=lambda: at(clock.now()))
    assert outcome.error is None
    return made, outcome.samples


def judged(*args: Any, **more: Any) -> Analysis:
    return analyse(*measured(*args, **more))


def lost(stolen: float, foreign: float, begin_s: float, end_s: float) -> At:
    """Return conditions under which these shares of each second are lost between these times."""

    def at(t_s: float) -> Conditions:
        passed_s = min(max(0.0, t_s - begin_s), end_s - begin_s)
        return Conditions({"router": CoreState(7.0 + stolen * passed_s, 9.0 + foreign * passed_s)})

    return at


@pytest.mark.parametrize(
    ("at", "codes"),
    [
        pytest.param(lost(0.1, 0.0, 30, 45), ["stolen-time"], id="stolen where the loss set in"),
        pytest.param(lost(0.0, 0.2, 30, 45), ["foreign-load"], id="used by others there"),
        pytest.param(lost(0.1, 0.2, 5, 25), [], id="both, long before"),
        pytest.param(lost(0.1, 0.2, 50, 70), [], id="both, long after"),
        pytest.param(lost(0.02, 0.04, 0, 70), [], id="a little all the time"),
        pytest.param(lambda _: Conditions(), [], id="not known"),
    ],
)
def test_lost_time_counts_where_it_decides(at: At, codes: list[str]) -> None:
    analysis = judged(at, 700 * K)
    assert [warning.code for warning in analysis.warnings] == codes
    for warning in analysis.warnings:
        assert "0->1: " in warning.text and "of the router's core from 33 to 37 s" in warning.text


def test_lost_time_is_reported_in_the_order_of_the_cores() -> None:
    roles = [f"core-{number}" for number in range(8)]
    warnings = judged(lambda t_s: Conditions({role: CoreState(t_s / 2, 0.0) for role in roles}), 700 * K).warnings
    assert [role for warning in warnings for role in roles if role in warning.text] == roles


def test_lost_time_of_a_saturated_hold() -> None:
    analysis = judged(lost(0.1, 0.0, 6, 10), 700 * K, kind="saturate")
    assert [warning.code for warning in analysis.warnings] == ["stolen-time"]


def test_documents_keep_conditions_and_other_versions_have_more_or_none() -> None:
    plan, samples = measured(lost(0.1, 0.0, 30, 45), 700 * K)
    result = replace(make_result(plan), samples=tuple(samples))
    document = to_document(result)
    assert from_document(document).samples == result.samples
    for sample in document["samples"]:
        sample["conditions"] |= {"round_trip_ns": 85.0}
        sample["conditions"]["cores"]["router"] |= {"clock_hz": 3e9}
    earlier = from_document(document | {"round_trip_ns": 85.0})
    assert earlier.samples == result.samples and earlier.analysis == result.analysis
    for sample in document["samples"]:
        del sample["conditions"]
    assert all(sample.conditions is None for sample in from_document(document).samples)
    broken = msgspec.to_builtins(stored(samples[3]), str_keys=True)
    broken["conditions"]["cores"]["router"]["stolen_s"] = "much"
    with pytest.raises(ValueError, match="conditions"):
        sample_from_dict(broken)
    with pytest.raises(StoreError):
        from_document(document | {"samples": [broken]})


def test_conditions_are_read_once_a_second() -> None:
    now = [0.0]
    watch = CoreWatch({"sender": (0,), "router": (0,)}, {}, lambda: now[0])
    first = watch.read()
    assert first is not None and first.cores["sender"].stolen_s >= 0.0
    now[0] = 0.5
    assert watch.read() is None
    now[0] = 1.0
    assert watch.read() is not None


def held_up(sample: Sample, frames: int, taken: SenderCounters, caught_up: int = 0) -> Sample:
    """Return the sample as if from 30 s on port 0 had sent so many frames fewer, while others had its sender's core.

    caught_up: so many of these it sent in the next second.
    """
    late, reading = sample.t_s >= 30, sample.reading
    frames -= caught_up if sample.t_s >= 31 else 0
    counters = dict(reading.ports)
    if late:
        counters[0] = replace(counters[0], opackets=counters[0].opackets - frames)
        counters[1] = replace(counters[1], ipackets=counters[1].ipackets - frames)
    senders = {0: taken if late else replace(taken, waited_ns=0, stolen_ns=0, preempted=0)}
    return replace(sample, reading=replace(reading, ports=counters, senders=senders))


BY_OTHERS = SenderCounters(waited_ns=30_000_000, preempted=40, stolen_ns=0)
BY_THE_HOST = SenderCounters(waited_ns=0, preempted=0, stolen_ns=30_000_000)
HARDLY = SenderCounters(waited_ns=1_000_000, preempted=40, stolen_ns=None)


@pytest.mark.parametrize(
    ("frames", "caught_up", "taken", "windows"),
    [
        pytest.param(20_000, 0, BY_OTHERS, 1, id="others waited for"),
        pytest.param(20_000, 0, BY_THE_HOST, 1, id="the machine's host"),
        pytest.param(20_000, 20_000, BY_OTHERS, 2, id="sent too much later"),
        pytest.param(100, 20_000, BY_OTHERS, 1, id="only sent too much later"),
        pytest.param(100, 0, BY_OTHERS, 0, id="caught up with"),
        pytest.param(20_000, 0, HARDLY, 0, id="something else"),
    ],
)
def test_a_held_up_sender_is_said_and_the_dut_not_blamed(
    frames: int, caught_up: int, taken: SenderCounters, windows: int
) -> None:
    plan, samples = measured(lambda _: Conditions(), 3000 * K)
    analysis = analyse(plan, [held_up(sample, frames, taken, caught_up) for sample in samples])
    said = [one.text for one in analysis.warnings if one.code == "sender-held-up"]
    assert len(said) == (1 if windows else 0)
    assert all(f"in {windows} of " in text and "(up to 30 ms)" in text for text in said)
    assert analysis.directions[0].limit is not Limit.DUT
    sample = held_up(samples[-1], frames, taken)
    assert sample_from_dict(msgspec.to_builtins(stored(sample), str_keys=True)) == sample
