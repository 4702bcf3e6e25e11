"""Calibrations of generators and of testers."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nights import make_row
from runs import World, make_plan, make_result

from trexbench.cli.lab import _modes
from trexbench.config.lookup import load_dut
from trexbench.config.model import PlanDefaults
from trexbench.config.suite import AS_IT_IS
from trexbench.core.calibration import Calibration, calibrate, calibration_warnings, floors_of
from trexbench.core.checks import State
from trexbench.core.errors import BenchError
from trexbench.core.history.cell import Cell
from trexbench.core.history.testers import find_ratios
from trexbench.core.result import RunResult
from trexbench.doctor.examine import judge_calibration
from trexbench.fleet.calibrate import RESUMED_S, FleetComparison, _remove_old
from trexbench.fleet.leases import DutLeased
from trexbench.fleet.schedule import FleetNight
from trexbench.fleet.task import NO_FLEET, CellOrder
from trexbench.lock import locked
from trexbench.report.run.summary import summarise
from trexbench.session.calibrate import without_dut
from trexbench.session.keep import Output
from trexbench.session.opening import open_session
from trexbench.session.options import Case, Setup
from trexbench.session.request import make_request
from trexbench.session.testers import load, name_of_tester, save

ROOT = Path(__file__).resolve().parents[2]


def of(result: RunResult) -> Calibration:
    return Calibration("trex1-4501", "2026-11-20T01:02:03Z", "TRex v3.08", False, tuple(calibrate(result)))


KNOWN = of(make_result(make_plan(), World(tx_limit_pps=1e6)))
UNLIMITED = of(make_result(make_plan(), World()))


def test_a_senders_limit_is_told_per_direction() -> None:
    result = make_result(make_plan(bidir=True), World(tx_limit_pps={0: 1e6, 1: 5e5}))
    forth, back = calibrate(result)
    assert (forth.direction, forth.limit, back.limit) == ("0->1", "generator-tx", "generator-tx")
    assert forth.carried_pps == pytest.approx(1e6, rel=0.02) and back.carried_pps == pytest.approx(5e5, rel=0.02)
    assert forth.error < 0.02 and forth.bidir and forth.floor_s is None


@pytest.mark.parametrize(("known", "knee", "said"), [(KNOWN, 9.7e5, 1), (KNOWN, 8e5, 0), (UNLIMITED, 1.4e6, 0)])
def test_a_dut_near_the_testers_own_limit_is_doubted(known: Calibration, knee: float, said: int) -> None:
    result = make_result(make_plan(), World(capacity_pps=knee))
    found = list(calibration_warnings(known, result, result.analysis.directions))
    assert [one.code for one in found] == ["near-testers-limit"] * said
    assert not said or ("97" in found[0].text and "2026-11-20" in found[0].text and "0->1" in found[0].text)


def test_a_defect_in_holding_a_run_against_it_costs_no_sample() -> None:
    class Broken(Calibration):
        def of_run(self, result: RunResult) -> None:
            """Nothing is known of this traffic."""

        def limit_of(self, *_: object) -> Any:
            raise ZeroDivisionError

    wished, setup = PlanDefaults(warmup_s=2.0, hold_s=4.0), Setup(sim=True, speedup=1e6)
    request = make_request("saturate", Case("netgate-vpp", "1514b"), wished, setup)
    with open_session(request, lambda _: None) as session:
        done = replace(session, calibration=Broken("", "", "", False, ())).measure(request, Output())
    assert "ZeroDivisionError" in str(done.error) and len(done.result.samples) == 8


def test_other_traffic_or_another_number_of_directions_is_not_compared() -> None:
    both = make_result(make_plan(bidir=True), World(capacity_pps=9.9e5))
    assert not list(calibration_warnings(KNOWN, both, both.analysis.directions)) and KNOWN.of_run(both) is None
    one = make_result(make_plan(), World(capacity_pps=9.9e5))
    profiles = {direction: {**facts, "digest": "other"} for direction, facts in one.profiles.items()}
    assert KNOWN.of_run(replace(one, profiles=profiles)) is None and KNOWN.of_run(one) is not None


def test_the_floor_stands_beside_latencies_and_a_damaged_one_is_left_out() -> None:
    result = make_result(make_plan(latency_s=5.0), World(capacity_pps=7e5))
    known = of(make_result(make_plan(latency_s=5.0), World(tx_limit_pps=1e6)))
    kept: Any = known.of_run(result)
    assert kept["limits"][0]["floor_s"] is not None
    run = replace(result, generator={**result.generator, "calibration": kept})
    assert floors_of(run) == {"0->1": kept["limits"][0]["floor_s"]}
    assert any(words.startswith("of the tester alone") for _, words in summarise(run).facts)
    for damaged in ("x", 3, {"limits": [1]}, {"measured": 1, "limits": []}, None):
        assert floors_of(replace(result, generator={**result.generator, "calibration": damaged})) == {}


def test_it_is_kept_and_a_file_that_cannot_be_read_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path))
    assert load("trex1-4501") is None
    path = save(KNOWN)
    assert load("trex1-4501") == KNOWN
    path.write_text("{")
    assert load("trex1-4501") is None


def test_doctor_tells_its_age() -> None:
    begun_s = 1_795_136_523.0  # 2026-11-20T01:02:03Z
    assert judge_calibration(None, begun_s).state is State.DOUBTFUL
    assert judge_calibration(KNOWN, begun_s + 86400).state is State.GOOD
    old = judge_calibration(KNOWN, begun_s + 200 * 86400)
    assert old.state is State.DOUBTFUL and "200 days" in old.found and "trexbench lab calibrate" in old.remedy


def test_a_tester_is_the_same_whichever_dut_names_it() -> None:
    netgate, lab = (load_dut(name, ROOT / "dut_configs") for name in ("netgate-vpp", "lab-linux"))
    assert name_of_tester(netgate, Setup()) == name_of_tester(None, Setup()) == "127.0.0.1-4501"
    assert name_of_tester(lab, Setup()) == name_of_tester(without_dut(lab, ()), Setup()) == "lab-tbx"
    assert name_of_tester(lab, Setup(server="trex1", rpc_port=9)) == "trex1-9"


def test_without_a_dut_there_is_a_bypass() -> None:
    lab = without_dut(load_dut("lab-linux", ROOT / "dut_configs"), ())
    assert lab.lab is not None and lab.lab.router == "bypass" and lab.tester_ports == (0, 1) and lab.driver == "none"
    assert without_dut(None, (2, 3)).tester_ports == (2, 3) and without_dut(None, ()).lab is None


def test_equal_modes_are_measured_once() -> None:
    assert _modes("64b, var2-64b,imix,64b") == ("var2-64b", "var2-imix")


def comparison(said: list[str], warned: list[str]) -> FleetComparison:
    """A comparison of six rounds."""
    options: Any = SimpleNamespace(say=said.append, output=SimpleNamespace(warn=warned.append))
    found = FleetComparison(FleetNight("lab", NO_FLEET), (), options, 6)
    found._results, found._runs = Path("results"), []
    return found


def test_a_dut_that_another_has_is_waited_for() -> None:
    said, keys = list[str](), list[str]()

    def submit(*_: object, key: str, **__: object) -> Any:
        keys.append(key)
        raised = DutLeased("a is leased by t9") if len(keys) == 1 else BenchError("no answer")
        return SimpleNamespace(status="error", exception=lambda timeout: raised)

    found, client = comparison(said, []), SimpleNamespace(submit=submit)
    found._await = lambda *_: None  # type: ignore[method-assign]
    order = CellOrder("lab", "lab", Setup(), AS_IT_IS, "a 64b", 0, "", "n-1", "", "x.json", "", 9.0)
    with pytest.raises(BenchError, match="a 64b by t1: no answer"):
        found._measure_cell(client, order, "t1", "a")  # type: ignore[arg-type]
    assert len({*keys}) == 2 and said[-1] == "a 64b waits: a is leased by t9"


def test_figures_without_a_ratio_and_wide_intervals_are_reported() -> None:
    other = Cell("box", "var2-64b", False, 1)
    rounds = [
        {
            tester: [make_row(0, pps), make_row(0, 1e6, other, at_least=True)]
            for tester, pps in (("t1", 5e6), ("t2", low))
        }
        for low in (4e6, 6e6)
    ]
    ratios, warned = find_ratios(rounds, "t1", "2026-01-01"), list[str]()
    comparison([], warned)._judge(ratios, rounds[0])
    unjoined, wide = warned[:2], warned[2:]
    heads = [f"{other} by {name}: maximum rate could not be compared" for name in ("t1", "t2")]
    assert all(line.startswith(head) for line, head in zip(unjoined, heads, strict=True))
    assert len(wide) == 1 and "netgate-vpp var2-64b uni by t2: maximum rate is known to" in wide[0]
    with pytest.raises(BenchError, match="could not be compared"):
        comparison([], [])._judge([], rounds[0])


def test_a_round_with_an_old_document_begins_anew_unless_it_is_under_way(tmp_path: Path) -> None:
    for name, age_s in (("testers-a-1", RESUMED_S + 60), ("testers-a-2", RESUMED_S - 60), ("testers-b-1", 1e6)):
        (tmp_path / name).mkdir()
        for document, at_s in (("old.json", time.time() - age_s), ("new.json", time.time())):
            (tmp_path / name / document).touch()
            os.utime(tmp_path / name / document, (at_s, at_s))
    with locked("testers-b"):
        _remove_old(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["testers-a-2", "testers-b-1"]
