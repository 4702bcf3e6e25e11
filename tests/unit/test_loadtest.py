"""Files of trex-loadtest: our export, by what trex-loadtest-viz needs; our import, of our own and of others' files."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from documents import changed_at
from effort import by_day
from runs import World, make_plan, make_result

from trexbench.core.errors import StoreError
from trexbench.core.history.rows import row_of
from trexbench.core.load.plan import Plan
from trexbench.core.load.sample import Phase
from trexbench.core.result import RunResult, Status
from trexbench.core.run import find_damage
from trexbench.core.strategy.base import LoadStep
from trexbench.core.verdict.parts import Limit
from trexbench.report.run.loadtest import to_loadtest
from trexbench.results.loadtest import run_from_loadtest

NOISY = {"noise": 0.003, "read_s": 1e-3, "late_s": 2e-3, "latency_s": 2e-4}


def exported(result: RunResult) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(to_loadtest(result))
    return document


def seconds(result: RunResult) -> list[dict[str, Any]]:
    return list(exported(result)["stats"].values())


PLANS = [
    make_plan(),
    make_plan(bidir=True),
    make_plan(bidir=True, sample_s=0.1),
    make_plan(sample_s=0.25, ports=(2, 3)),
    make_plan(sample_s=2.0),
    make_plan(ports=range(8), bidir=True),
    make_plan(kind="saturate", hold_s=20.0),
]


@pytest.mark.parametrize("plan", by_day(3, PLANS))
def test_exactly_one_sample_a_second_of_warmup_ramp_and_hold_with_all_that_is_read(plan: Plan) -> None:
    document = exported(make_result(plan, World(capacity_pps=6e5, **NOISY)))
    sending_s = plan.sending_s(LoadStep(Phase.WARMUP, {}, 0.0)) - plan.length_s(Phase.RECHECK)
    assert len(document["stats"]) == round(sending_s)
    ports = {str(number) for number in range(len(plan.ports))}
    for one in document["stats"].values():
        assert one.pop("global") == {} and set(one) == ports
        assert all(type(value) is float for values in one.values() for value in values.values())
        assert all(set(values) == {"tx_pps", "tx_util", "rx_pps", "rx_util"} for values in one.values())
        assert one["0"]["tx_pps"] > 0 and (not plan.bidir or one["1"]["tx_pps"] > 0)
    times = [float(key) for key in document["stats"]]
    assert [round(b - a, 6) for a, b in itertools.pairwise(times)][:-1] == [1.0] * (len(times) - 2)
    assert times[0] == 1772366401.0


def test_a_search_is_refused_as_it_has_neither_the_ramp_nor_the_hold_that_the_program_plots() -> None:
    with pytest.raises(StoreError, match="a search, without a ramp"):
        exported(make_result(make_plan(kind="search", warmup_s=2.0), World(capacity_pps=6e5)))


def test_counters_too_great_for_rates_are_told_in_one_line() -> None:
    result = make_result()
    last = result.samples[-1]
    ports = {port: replace(one, ipackets=10**400) for port, one in last.reading.ports.items()}
    samples = (*result.samples[:5], replace(result.samples[5], reading=replace(last.reading, ports=ports)))
    with pytest.raises(StoreError, match="too great for rates"):
        to_loadtest(replace(result, samples=samples))


def test_a_second_in_which_a_sender_was_silent_is_left_out() -> None:
    result = make_result(make_plan(bidir=True))
    still = result.samples[9].reading.ports[1].opackets
    samples = []
    for i, sample in enumerate(result.samples):
        ports = dict(sample.reading.ports)
        if i in (10, 11):
            ports[1] = replace(ports[1], opackets=still)
        samples.append(replace(sample, reading=replace(sample.reading, ports=ports)))
    assert len(seconds(replace(result, samples=samples))) == len(seconds(result)) - 2


def test_resampled_rates_count_every_frame_once() -> None:
    result = make_result(make_plan(sample_s=0.1), World(capacity_pps=6e5))
    end = next(s for s in reversed(result.samples) if s.phase is Phase.HOLD)
    for name, port, counter in (("tx_pps", 0, "opackets"), ("rx_pps", 1, "ipackets")):
        total = sum(one[str(port)][name] for one in seconds(result))
        assert total == pytest.approx(getattr(end.reading.ports[port], counter), abs=1)


USUAL = {"unidirectional": True, "profile_file": "bench-var2-64b-simulated.py", "simulated": True, "rampup_target": 97}
USUAL |= {"rampup_duration": 60, "hold_duration": 5, "warmup_duration": 5, "warmup_mult": "1000pps"}


@pytest.mark.parametrize(
    ("plan", "changes", "told"),
    [
        ({}, {}, USUAL),
        ({"bidir": True}, {}, {"unidirectional": False}),
        ({"target": 0.975}, {}, {"rampup_target": 97.5}),
        ({"hold_s": 0.5}, {}, {"hold_duration": 0.5}),
        ({"kind": "saturate", "hold_s": 20.0}, {}, {"rampup_duration": 0}),
        ({}, {"simulated": False}, {"profile_file": "bench-var2-64b.py"}),
        ({}, {"command": {"mode": "mine", "profile_file": "/x/mine.py"}}, {"profile_file": "mine-simulated.py"}),
        ({}, {"command": {}, "profiles": {}, "simulated": False}, {"profile_file": "profile.py"}),
    ],
)
def test_vars(plan: dict[str, Any], changes: dict[str, Any], told: dict[str, Any]) -> None:
    found = exported(make_result(make_plan(**plan), **changes))["vars"]
    assert {key: (type(found[key]), found[key]) for key in told} == {key: (type(one), one) for key, one in told.items()}


def test_nothing_after_a_counter_went_back_is_exported() -> None:
    result = make_result()
    samples = list(result.samples)
    ports = {p: replace(c, opackets=0) for p, c in samples[20].reading.ports.items()}
    samples[20] = replace(samples[20], reading=replace(samples[20].reading, ports=ports))
    assert len(seconds(replace(result, samples=samples))) == 19


PLAIN = {"capacity_pps": 6e5}
VARYING = PLAIN | {"noise": 0.003}


def taken(document: Any, dut: str = "theirs", bps: float = 1e9) -> Any:
    return run_from_loadtest(document, dut, bps, "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("plan", "world"),
    by_day(
        3,
        [
            pytest.param(make_plan(bidir=True), VARYING, id="both ways"),
            pytest.param(make_plan(sample_s=0.25), PLAIN, id="a sample every quarter"),
            pytest.param(make_plan(), {}, id="no limit"),
            pytest.param(make_plan(ports=range(8), bidir=True), PLAIN, id="eight ports"),
            pytest.param(make_plan(frame_bytes=1514), {"capacity_pps": 5e4}, id="large frames"),
            pytest.param(make_plan(target=0.5, hold_s=20.0), PLAIN, id="another target"),
            pytest.param(make_plan(kind="saturate", hold_s=20.0), VARYING, id="a filled line"),
        ],
    ),
)
def test_exported_and_imported_its_maximum_is_the_same(plan: Plan, world: dict[str, float]) -> None:
    ours = make_result(plan, World(**world))
    theirs = taken(exported(ours))
    assert find_damage(theirs) is None and theirs.status is Status.COMPLETE
    for one, other in zip(ours.analysis.directions, theirs.analysis.directions, strict=True):
        # The estimate also knows how often the counters were read, which the file does not tell.
        assert other.maximum_pps == pytest.approx(one.maximum_pps, rel=1e-6 if plan.sample_s == 1 else 2e-4, abs=1.0)
        assert (other.last_good_pps or 0.0) == pytest.approx(one.last_good_pps or 0.0, rel=1e-6)
        assert other.limit == one.limit and other.hold_loss == pytest.approx(one.hold_loss, abs=1e-6)
    row, again = row_of(ours, ""), row_of(theirs, "")
    assert again.line_share == pytest.approx(row.line_share, rel=1e-6 if plan.sample_s == 1 else 2e-4)
    assert (again.cell.mode, again.cell.bidir, again.cell.kind) == (row.cell.mode, row.cell.bidir, row.cell.kind)
    assert again.cell.simulated and again.cell.dut == "theirs" and again.started == row.started
    assert theirs.plan.offers[0].mean_frame_bytes == pytest.approx(plan.offers[0].mean_frame_bytes, rel=1e-6)


@pytest.mark.parametrize(
    ("file", "mode"),
    [
        ("netgate-vpp-1flow-64b.py", "1flow-64b"),
        ("lab-linux-var2-1280b.py", "var2-1280b"),
        ("lab-linux-64b.py", "lab-linux-64b"),
        ("var2-64000b.py", "var2-64000b"),
    ],
)
def test_the_mode_is_the_end_of_the_profiles_name(file: str, mode: str) -> None:
    document = exported(make_result())
    document["vars"]["profile_file"] = file
    assert taken(document).command["mode"] == mode


def test_the_file_of_the_other_tool() -> None:
    """Warm-up, ramp and hold of 10 Gbit/s with a router of 5 Mpps, keys that are times, more keys than are read."""
    line, stats = 14_880_952.0, {}
    for second in range(30 + 100 + 10 + 5):
        sent = 1e3 if second < 30 else line * min(1.0, (second - 29) / 100)
        sent = 5e3 if second >= 140 else sent
        port = {"tx_pps": sent, "tx_util": 100 * sent / line, "tx_bps": sent * 512}
        stats[str(1637000000.5 + second * 1.003)] = {
            "0": {**port, "rx_pps": 0.0, "rx_util": 0.0},
            "1": {"tx_pps": 0.0, "tx_util": 0.0, "rx_pps": min(sent, 5e6), "rx_util": 1.0},
            "global": {"cpu_util": 3.0},
        }
    told = {"profile_file": "/opt/bench.py", "warmup_mult": "1kpps", "warmup_duration": 30, "rampup_target": 100}
    told |= {"rampup_duration": 100, "hold_duration": 10, "unidirectional": True, "results_file": "x"}
    run = taken({"vars": told, "stats": stats}, bps=1e10)
    (direction,) = run.analysis.directions
    assert direction.maximum_pps == pytest.approx(5e6, abs=run.plan.step_pps(direction.direction))
    assert run.started == "2021-11-15T18:13:19Z" and not run.simulated
    assert run.command["mode"] == "bench" and run.command["imported"] is True
    assert [
        sum(sample.phase is phase for sample in run.samples) for phase in (Phase.WARMUP, Phase.RAMP, Phase.HOLD)
    ] == [30, 100, 10]
    warned = " ".join(warning.text for warning in run.warnings)
    assert "the last 5 s of the file" in warned and "what the tester itself lost counts as the DUT's loss" in warned
    assert direction.limit is Limit.DUT and "its receiving port reported no loss of its own" in direction.reasons[0]


def test_what_ended_before_its_plan_is_incomplete() -> None:
    document = exported(make_result())
    for key in list(document["stats"])[40:]:
        del document["stats"][key]
    run = taken(document)
    assert run.status is Status.INCOMPLETE and "40 of 70 s" in str(run.reason)


def test_a_port_that_sends_less_than_the_other_was_asked_for_less() -> None:
    document = exported(make_result(make_plan(bidir=True), World(**PLAIN)))
    for second in document["stats"].values():
        second["1"]["tx_pps"] *= 0.9
        second["1"]["tx_util"] *= 0.9
        second["0"]["rx_pps"] = min(second["0"]["rx_pps"], second["1"]["tx_pps"])
    assert [one.limit for one in taken(document).analysis.directions] == [Limit.DUT, Limit.DUT]


DOCUMENT = exported(make_result(make_plan(bidir=True), World(**PLAIN)))
KEY = list(DOCUMENT["stats"])[9]
changed = partial(changed_at, DOCUMENT)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "not a trex-loadtest file"),
        ({"schema": "trexbench/run", "samples": []}, "not a trex-loadtest file"),
        ({"vars": {}, "stats": {}}, "missing required field `profile_file`"),
        (changed("vars", "hold_duration", value=float("nan")), "hold_duration"),
        (changed("vars", "rampup_duration", value=10**400), "rampup_duration"),
        (changed("vars", "warmup_duration", value=0), "cannot be judged"),
        (changed("stats", value={}), "0 seconds"),
        (changed("stats", KEY, value=None), "no object"),
        (changed("stats", KEY, "1", value=None), "Expected `object`"),
        (changed("stats", KEY, "1", "rx_pps", value=-1.0), "rx_pps"),
        (changed("stats", KEY, "2", value={"tx_pps": 1.0, "rx_pps": 1.0}), "number of ports"),
    ],
)
def test_other_files_are_refused(document: Any, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        taken(document)


def test_a_speed_that_cannot_be_is_refused() -> None:
    with pytest.raises(StoreError, match="--speed"):
        taken(DOCUMENT, bps=1e8)


def test_both_directions_are_taken_where_the_file_says_so_or_nothing() -> None:
    for value, bidir in ((False, True), (None, True), (True, False)):
        assert taken(changed("vars", "unidirectional", value=value)).plan.bidir is bidir
