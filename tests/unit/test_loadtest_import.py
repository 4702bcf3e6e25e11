"""trex-loadtest files of others: what comes back of our own export, and what is refused."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from documents import changed_at
from runs import World, make_plan, make_result

from trexbench.core.errors import StoreError
from trexbench.core.history.rows import row_of
from trexbench.core.load.plan import Plan
from trexbench.core.load.sample import Phase
from trexbench.core.result import Status
from trexbench.core.run import find_damage
from trexbench.core.verdict.parts import Limit
from trexbench.report.run.loadtest import to_loadtest
from trexbench.report.run.summary import summarise
from trexbench.results.loadtest import run_from_loadtest
from trexbench.results.store import RunWriter, load_run

PLAIN = {"capacity_pps": 6e5}
NOISY = PLAIN | {"noise": 0.003}


def exported(plan: Plan | None = None, **world: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(to_loadtest(make_result(plan, World(**world))))
    return found


def taken(document: Any, dut: str = "theirs", bps: float = 1e9) -> Any:
    return run_from_loadtest(document, dut, bps, "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("plan", "world"),
    [
        pytest.param(make_plan(), PLAIN, id="one way"),
        pytest.param(make_plan(bidir=True), NOISY, id="both ways"),
        pytest.param(make_plan(bidir=True, sample_s=0.25), PLAIN, id="a sample every quarter"),
        pytest.param(make_plan(), {}, id="no limit"),
        pytest.param(make_plan(ports=range(8), bidir=True), PLAIN, id="eight ports"),
        pytest.param(make_plan(frame_bytes=1514), {"capacity_pps": 5e4}, id="large frames"),
        pytest.param(make_plan(target=0.5, hold_s=20.0), PLAIN, id="another target"),
        pytest.param(make_plan(kind="saturate", hold_s=20.0), NOISY, id="a filled line"),
    ],
)
def test_exported_and_imported_its_maximum_is_the_same(plan: Plan, world: dict[str, float]) -> None:
    ours = make_result(plan, World(**world))
    theirs = taken(json.loads(to_loadtest(ours)))
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


def test_imported_and_exported_it_is_the_same_file_but_for_rounding() -> None:
    document = exported(make_plan(bidir=True), **NOISY)
    again = json.loads(to_loadtest(taken(document)))
    assert len(again["stats"]) == len(document["stats"])
    for one, other in zip(document["stats"].values(), again["stats"].values(), strict=True):
        for port in ("0", "1"):
            assert other[port]["rx_pps"] == pytest.approx(one[port]["rx_pps"], abs=1.0)
    same = ("rampup_target", "rampup_duration", "hold_duration", "warmup_duration", "unidirectional")
    assert {k: again["vars"][k] for k in same} == pytest.approx({k: document["vars"][k] for k in same})


def test_it_says_that_it_is_imported_and_what_is_not_known() -> None:
    run = taken(exported())
    assert run.command["imported"] is True
    doubts = " ".join(summarise(run).warnings)
    assert "added up from rates" in doubts and "what was asked is not in the file" in doubts


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
    document = exported()
    document["vars"]["profile_file"] = file
    assert taken(document).command["mode"] == mode


def test_stored_it_is_a_run_like_any_other(tmp_path: Path) -> None:
    run = taken(exported(**PLAIN))
    path = RunWriter(tmp_path, print).end(run)
    assert load_run(path).analysis == run.analysis and load_run(path).command["imported"] is True


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
    assert run.started == "2021-11-15T18:13:19Z" and run.command["mode"] == "bench" and not run.simulated
    assert [
        sum(sample.phase is phase for sample in run.samples) for phase in (Phase.WARMUP, Phase.RAMP, Phase.HOLD)
    ] == [30, 100, 10]
    assert "the last 5 s of the file" in " ".join(warning.text for warning in run.warnings)


def test_what_ended_before_its_plan_is_incomplete() -> None:
    document = exported()
    for key in list(document["stats"])[40:]:
        del document["stats"][key]
    run = taken(document)
    assert run.status is Status.INCOMPLETE and "40 of 70 s" in str(run.reason)


def test_a_port_that_sends_less_than_the_other_was_asked_for_less() -> None:
    document = exported(make_plan(bidir=True), **PLAIN)
    for second in document["stats"].values():
        second["1"]["tx_pps"] *= 0.9
        second["1"]["tx_util"] *= 0.9
        second["0"]["rx_pps"] = min(second["0"]["rx_pps"], second["1"]["tx_pps"])
    assert [one.limit for one in taken(document).analysis.directions] == [Limit.DUT, Limit.DUT]


DOCUMENT = exported(make_plan(bidir=True), **PLAIN)
KEY = list(DOCUMENT["stats"])[9]


changed = partial(changed_at, DOCUMENT)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "not a trex-loadtest file"),
        ({}, "not a trex-loadtest file"),
        ({"schema": "trexbench/run", "samples": []}, "not a trex-loadtest file"),
        ({"vars": {}, "stats": {}}, "missing required field `profile_file`"),
        (changed("vars", "profile_file", value=3), "profile_file"),
        (changed("vars", "rampup_target", value="full"), "rampup_target"),
        (changed("vars", "hold_duration", value=-1), "hold_duration"),
        (changed("vars", "hold_duration", value=float("nan")), "hold_duration"),
        (changed("vars", "rampup_duration", value=10**400), "rampup_duration"),
        (changed("vars", "warmup_duration", value=0), "cannot be judged"),
        (changed("vars", "unidirectional", value="false"), "unidirectional"),
        (changed("stats", value={}), "0 seconds"),
        (changed("stats", KEY, value=None), "no object"),
        (changed("stats", KEY, "1", value=None), "Expected `object`"),
        (changed("stats", KEY, "1", "rx_pps", value=-1.0), "rx_pps"),
        (changed("stats", KEY, "0", "tx_pps", value=float("inf")), "tx_pps"),
        (changed("stats", KEY, "2", value={"tx_pps": 1.0, "rx_pps": 1.0}), "number of ports"),
        (changed("stats", KEY, value={}), "number of ports"),
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
