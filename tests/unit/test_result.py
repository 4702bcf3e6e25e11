"""A run document gives back the run it was made of, or says in one line why it cannot."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from documents import to_document
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from runs import World, make_plan, make_result
from seen import kernel, run_of

from trexbench.core.dut.telemetry import DutReading, Moment, Observation
from trexbench.core.errors import StoreError
from trexbench.core.load.sample import Phase, PortCounters, Reading, Sample
from trexbench.core.result import RunResult, Status, from_document
from trexbench.core.run import find_damage
from trexbench.core.verdict.parts import RunWarning

counts = st.integers(0, 2**63)
times = st.floats(0, 1e6)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
facts = st.dictionaries(st.text(max_size=8), plain, max_size=3)
counters = st.builds(
    PortCounters, times, *([counts] * 6), st.booleans(), st.none() | counts, st.none() | st.floats(0, 100)
)


@st.composite
def results(draw: st.DrawFn) -> RunResult:
    pairs = draw(st.sampled_from([(0, 1), (3, 2), (0, 1, 2, 3)]))
    plan = make_plan(
        bidir=draw(st.booleans()),
        ports=pairs,
        frame_bytes=draw(st.floats(64, 9000)),
        target=draw(st.floats(0.5, 1.0)),
        windows=draw(st.integers(1, 4)),
        warmup_pps=100.0,
        **draw(st.sampled_from([{}, {"kind": "saturate"}])),
    )
    moments = sorted(draw(st.lists(times, max_size=6, unique=True)))
    samples = [
        Sample(
            Phase.BASELINE if i == 0 else draw(st.sampled_from([Phase.WARMUP, Phase.RAMP, Phase.HOLD])),
            t_s,
            dict.fromkeys(plan.directions, draw(st.floats(0, 1e9))),
            Reading({p: draw(counters) for p in plan.ports}, draw(st.none() | counts)),
        )
        for i, t_s in enumerate(moments)
    ]
    return RunResult(
        id=draw(st.text()),
        started="2026-03-01T12:00:00Z",
        finished=draw(st.none() | st.text()),
        status=draw(st.sampled_from(Status)),
        reason=draw(st.none() | st.text()),
        simulated=draw(st.booleans()),
        command=draw(facts),
        dut=draw(facts),
        profiles={direction: draw(facts) for direction in plan.directions},
        generator=draw(facts),
        host=draw(facts),
        plan=plan,
        samples=tuple(samples),
        warnings=tuple(draw(st.lists(st.builds(RunWarning, st.text(), st.text()), max_size=2))),
    )


@examples(120)
@given(results())
def test_what_was_written_is_read_back(result: RunResult) -> None:
    document = to_document(result)
    again = from_document(json.loads(json.dumps(document, allow_nan=True)))
    assert again == result
    assert again.analysis == result.analysis


@pytest.mark.portable
@pytest.mark.parametrize("kind", ["ramp", "saturate"])
def test_a_run_and_its_verdict_survive_the_document(kind: str) -> None:
    world = World(0.7e6, noise=0.01, read_s=0.001, late_s=0.01, blips=((20.0, 25.0),))
    result = make_result(make_plan(kind=kind, bidir=True, hold_s=10.0), world)
    text = json.dumps(to_document(result), allow_nan=False)
    told = [(stall["direction"], stall["lost"]) for stall in json.loads(text)["stalls"]]
    assert told == [(str(one.direction), one.lost) for one in result.analysis.stalls] and bool(told) is (kind == "ramp")
    again = from_document(json.loads(text))
    assert (again, again.analysis) == (result, result.analysis)
    assert json.dumps(to_document(again)) == text
    assert find_damage(again) is None


def test_analysis_is_not_read_but_derived_anew() -> None:
    document = to_document(make_result(world=World(0.69e6)))
    document["analysis"], document["total_pps"], document["at_least"] = [], 9e9, True
    document["warnings"] = [{"source": "analysis", "code": "transient-loss", "text": "of an older version"}]
    again = from_document(document)
    assert again.analysis == make_result(world=World(0.69e6)).analysis and again.warnings == ()


def test_a_document_of_a_ramp_with_a_zoom_says_what_its_ramp_found() -> None:
    result = make_result(world=World(0.69e6))
    document = to_document(result)
    document["plan"]["zoom_s"] = 60.0
    for one in document["samples"]:
        one["phase"] = one["phase"].replace("confirm", "zoom")
    again = from_document(json.loads(json.dumps(document)))
    (found,), (ramp,) = again.analysis.directions, result.analysis.directions
    assert (found.limit, found.maximum_pps, found.trials) == (ramp.limit, ramp.maximum_pps, ()) and ramp.trials


DOCUMENT = json.loads(json.dumps(to_document(make_result(make_plan(bidir=True, latency_s=3.0), World(0.7e6)))))
DOCUMENT["samples"] = DOCUMENT["samples"][:12] + DOCUMENT["samples"][-3:]


@pytest.mark.portable
def test_nesting_without_end_is_carried_or_refused() -> None:
    deep: dict[str, Any] = {}
    node = deep
    for _ in range(100_000):
        node["d"] = node = {}
    for name in ("dut", "command"):
        assert from_document({**DOCUMENT, name: deep}).id == DOCUMENT["id"]
    assert from_document({**DOCUMENT, "profiles": {"0->1": deep}}).id == DOCUMENT["id"]
    for name in ("plan", "samples", "warnings"):
        with pytest.raises(StoreError):
            from_document({**DOCUMENT, name: deep})


def test_the_verdict_is_derived_once() -> None:
    result = make_result()
    assert result.analysis is result.analysis
    assert replace(result, samples=()).analysis.directions[0].sent == 0


def test_losses_are_not_told_across_counters_that_went_back() -> None:
    result, seen = make_result(), Observation()
    readings = tuple(DutReading(moment, 0.0, 0.0, seen) for moment in (Moment.START, Moment.FINISH))
    whole = replace(result, dut_readings=readings)
    assert whole.losses is not None
    ports = {port: PortCounters(1e6, 0, 0, 0, 0, 0, 0) for port in result.plan.ports}
    cleared = Sample(Phase.DRAIN, 1e6, {}, Reading(ports, 0))
    cut = replace(whole, samples=(*result.samples, cleared))
    assert cut.losses is None and "loss-foreign" not in {one.code for one in cut.dut_warnings}


def test_a_warning_that_only_some_phases_have_names_them() -> None:
    run = run_of(kernel(0.0), kernel(3.0))
    later = [replace(one, phase=Phase.CONFIRM, observation=Observation()) for one in run.dut_readings]
    both = replace(run, dut_readings=(*run.dut_readings, *later))
    assert next(one.text.partition(":")[0] for one in run.dut_warnings) == "drops"
    assert [one.text.partition(":")[0] for one in both.dut_warnings][:2] == ["hold", "confirm"]


@pytest.mark.parametrize(("name", "value"), [("t_s", -1.0), ("t_s", None), ("trial", 1.5), ("moment", "noon")])
def test_what_no_look_at_the_dut_can_be_is_refused(name: str, value: Any) -> None:
    document = json.loads(json.dumps(to_document(run_of(kernel(0.0), kernel(60.0)))))
    document["telemetry"]["readings"][0][name] = value
    with pytest.raises(StoreError, match="wrong kind"):
        from_document(document)
