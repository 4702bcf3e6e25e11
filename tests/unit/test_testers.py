"""Histories of cells that several testers measure: apart, or joined by a calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from nights import VPP, date, make_row, noisy
from runs import make_result

from trexbench.core.errors import StoreError
from trexbench.core.history.finding import Kind
from trexbench.core.history.regression import Judgement, judge_rows
from trexbench.core.history.rows import Figure, RunRow, row_of
from trexbench.core.history.testers import FigureRatio, find_ratios, histories_of
from trexbench.report.page.grid import build_grid
from trexbench.results.nights import keep_ratios, load_ratios, ratios_file
from trexbench.results.store import RunWriter
from trexbench.review.judge import judge
from trexbench.review.report import collect

LOW, NIGHTS = 0.97, 33
LOAD = str(VPP.load)


def ratio(value: float = LOW, share: float = 0.002, **changes: Any) -> FigureRatio:
    found = FigureRatio(LOAD, "total_pps", "netgate-vpp", "t2", "t1", value, value * share, 5, "2026-01-01")
    return replace(found, **changes)


def history(drop: float = 1.0, nights: int = NIGHTS, low: float = LOW) -> list[RunRow]:
    """Nights by t1, of which the last three are by t2, which measures low, of a DUT that is then as much slower."""
    first = nights - 3
    return by_turns(slower(nights, first, drop), lambda night: "t1" if night < first else "t2", low)


def slower(nights: int, since: int, drop: float = 0.9, until: int = 999) -> list[float]:
    """So many nights of a DUT that from one of them on, and until another, is as much slower."""
    return [value * (drop if since <= night < until else 1.0) for night, value in enumerate(noisy(nights))]


def by_turns(values: Sequence[float], tester: Callable[[int], str], low: float = LOW) -> list[RunRow]:
    """A night of each value, measured by this tester, of which t2 measures low."""
    testers = [tester(night) for night in range(len(values))]
    return [
        make_row(night, value * (low if name == "t2" else 1.0), tester=name)
        for night, (value, name) in enumerate(zip(values, testers, strict=True))
    ]


def judged(rows: list[RunRow], *ratios: FigureRatio) -> Judgement:
    return judge_rows(rows, ratios=ratios)


def test_a_cell_that_another_tester_measures_is_no_regression_of_the_dut() -> None:
    judgement = judged(history())
    assert judgement.findings == () and [*judgement.few.values()] == [3]
    (remark,) = judgement.remarks
    assert f"tester t1 -> t2 since {date(30)}; its history starts again (`trexbench fleet calibrate`" in remark


def test_nights_in_turns_are_two_histories() -> None:
    rows = by_turns(noisy(40), lambda night: f"t{1 + night % 2}")
    assert judged(rows).findings == () and judged(rows[:-1]).findings == ()


def test_a_calibration_joins_them() -> None:
    assert judged(history(), ratio()).findings == () and judged(history(), ratio()).remarks == ()
    backwards = ratio(1 / LOW, tester="t1", reference="t2")
    assert judged(history(), backwards).findings == ()
    delta = build_grid(history(), None, ratios=[ratio()]).blocks[0].rows[0].cells[0].delta
    assert delta is not None and delta.measured == NIGHTS and not delta.beyond


def test_a_slower_dut_is_found_by_the_other_tester_too() -> None:
    (finding,) = judged(history(0.95), ratio()).findings
    assert finding.kind is Kind.REGRESSION and finding.since == date(30)
    assert finding.share == pytest.approx(-0.05, abs=0.01)
    line = "measured by t2, before by t1, whose figures count times 0.9700, +- 0.200 %, as calibrated on 2026-01-01"
    assert finding.explanation[-1] == line


def test_a_difference_that_the_calibration_leaves_open_is_none_of_the_dut() -> None:
    assert judged(history(0.97), ratio(share=0.001)).findings != ()
    assert judged(history(0.97), ratio(share=0.03)).findings == ()


@pytest.mark.parametrize(
    "changes",
    [{"load": "var2-imix uni"}, {"metric": "latency_s"}, {"simulated": True}, {"tester": "t3"}, {"reference": "t3"}],
    ids=str,
)
def test_a_calibration_of_something_else_joins_nothing(changes: dict[str, Any]) -> None:
    assert [*judged(history(), ratio(**changes)).few.values()] == [3]


def test_testers_are_joined_by_what_both_differ_from() -> None:
    ratios = [ratio(0.5, 0.03, tester="t1", reference="t0"), ratio(0.6, 0.04, reference="t0")]
    rows = [make_row(0, 5e6, tester="t1", uncertainty_pps=1e4), make_row(1, tester="t2")]
    row = histories_of(rows, ratios)[0].rows[0]
    figure = row.figures["total_pps"]
    assert (row.tester, figure.value, figure.apart) == ("t2", pytest.approx(6e6), pytest.approx(0.05))
    assert figure.uncertainty == pytest.approx((1.2e4**2 + 3e5**2) ** 0.5)


def test_testers_without_a_calibration_follow_in_the_order_of_their_last_rows() -> None:
    names = [f"t{number}" for number in range(9)]
    histories = histories_of([make_row(night, 1e6, tester=name) for night, name in enumerate(names)], ())
    assert [one.rows[0].tester for one in histories[1:]] == names[:-1]


def test_the_ratio_of_the_cells_own_dut_counts_and_of_these_the_latest() -> None:
    others = [ratio(0.5, dut="cable", measured="2026-03-01"), ratio(0.9), ratio(LOW, measured="2026-02-01")]
    for ratios in (others, others[::-1]):
        assert judged(history(), *ratios).findings == ()
    assert [*judged(history(), others[0]).few.values()] == [3]


def test_figures_that_were_not_compared_are_as_measured() -> None:
    rows = [replace(row, figures={**row.figures, "hold_loss": Figure(0.02 if row.tester == "t2" else 0.0)})
            for row in history()]  # fmt: skip
    (finding,) = judged(rows, ratio()).findings
    assert (finding.kind, finding.metric.column, finding.after) == (Kind.REGRESSION, "hold_loss", 0.02)
    assert not any("as calibrated" in line for line in finding.explanation)


@pytest.mark.parametrize("nights", [1, 6, 20])
@pytest.mark.parametrize("ratios", [(), (ratio(),)], ids=["apart", "joined"])
def test_a_regression_stands_whoever_measures_then(nights: int, ratios: tuple[FigureRatio, ...]) -> None:
    rows = by_turns(slower(30 + nights, since=20), lambda night: "t2" if night >= 30 else "t1")
    judgement = judged(rows, *ratios)
    (finding,) = judgement.findings
    assert finding.kind is Kind.REGRESSION and finding.since == date(20) and judgement.exit_code == 3
    assert ratios or f"as t1 measured until {date(29)}; t2 has no such history yet" in finding.explanation


@pytest.mark.parametrize("clean", [0, 3, 4, 5, 8])
def test_a_regression_soon_after_another_tester_measures_is_found_once(clean: int) -> None:
    for nights in (3, 8, 20):
        values = slower(30 + clean + nights, since=30 + clean)
        rows = by_turns(values, lambda night: "t1" if night < 30 else "t2", low=1.0)
        assert len(judged(rows, ratio(1.0)).regressions) == 1


def test_a_regression_that_the_new_tester_would_show_itself_ends_with_it() -> None:
    """Both measure in turns; the DUT is mended after t1's last night."""
    values = slower(60, since=30, until=40)
    assert not judged(by_turns(values, lambda night: "t1" if night < 40 and night % 2 else "t2", low=1.0)).regressions


def test_a_calibration_hides_nothing_once_a_tester_has_its_own_history() -> None:
    rows = by_turns(slower(60, since=50), lambda night: "t1" if night < 30 else "t2", low=1.0)
    (finding,) = judged(rows, ratio(1.0, share=1.2)).findings
    assert finding.kind is Kind.REGRESSION and finding.since == date(50)


def test_no_calibration_is_asked_for_with_the_tester_of_the_machine() -> None:
    rows = [replace(row, tester="" if row.tester == "t1" else "t1") for row in history()]
    (remark,) = judged(rows).remarks
    assert "tester that of the machine -> t1" in remark and "calibrate" not in remark


def test_ratios_of_rounds() -> None:
    rounds = [
        {"t1": [make_row(0, 5e6 + at, latency_s=2e-5)], "t2": [make_row(0, (5e6 + at) * low, latency_s=2e-5)]}
        for at, low in enumerate((0.96, 0.97, 0.98))
    ]
    latency, rate = find_ratios(rounds, "t1", "2026-01-01")
    assert (latency.metric, latency.ratio, latency.uncertainty) == ("latency_s", 1.0, 0.0)
    assert (rate.load, rate.dut, rate.tester, rate.reference, rate.count) == (LOAD, "netgate-vpp", "t2", "t1", 3)
    assert rate.ratio == pytest.approx(0.97, abs=1e-3) and rate.uncertainty == pytest.approx(0.0249, abs=1e-3)


def test_bounds_and_single_pairs_tell_no_ratio() -> None:
    pair = {"t1": [make_row(0)], "t2": [make_row(0, at_least=True)]}
    assert find_ratios([pair, pair], "t1", "") == []
    assert find_ratios([{"t1": [make_row(0)], "t2": [make_row(0)]}], "t1", "") == []


def test_simulated_testers_of_one_machine_are_not_told_apart() -> None:
    """Clusters of earlier versions gave no digest of their fleet.yaml."""
    by_name = {"tester": "t1", "mode": "64b", "direction": "uni"}
    result = replace(make_result(), command=by_name, simulated=True)
    assert row_of(result, "").tester == "" and row_of(replace(result, simulated=False), "").tester == "t1"
    assert row_of(replace(result, command=by_name | {"fleet": "abc"}), "").tester == "t1"


def test_calibrations_at_once_lose_nothing(tmp_path: Path) -> None:
    new, begin = [ratio(tester=f"t{number}") for number in range(2, 18)], Barrier(16)
    with ThreadPoolExecutor(16) as pool:
        [*pool.map(lambda one: (begin.wait(60), keep_ratios(tmp_path, [one])), new)]
    assert sorted(one.tester for one in load_ratios(tmp_path)) == sorted(one.tester for one in new)


def test_ratios_are_kept_and_the_judgement_takes_them_into_account(tmp_path: Path) -> None:
    assert load_ratios(tmp_path) == []
    keep_ratios(tmp_path, [ratio(0.5), ratio(0.9, dut="cable")])
    keep_ratios(tmp_path, [ratio(), ratio(tester="t3")])
    keep_ratios(tmp_path, [ratio()])
    assert load_ratios(tmp_path) == [ratio(0.9, dut="cable"), ratio(tester="t3"), ratio()]
    for text in ("{", "{}", '{"schema": "trexbench/testers", "version": 2, "ratios": []}'):
        ratios_file(tmp_path).write_text(text)
        with pytest.raises(StoreError, match=r"testers\.json"):
            load_ratios(tmp_path)


def test_regress_reads_who_measured_and_the_calibration(tmp_path: Path) -> None:
    result = make_result()
    for night in range(2):
        command = dict(result.command) | {"tester": f"t{night + 1}", "fleet": "abc", "suite": "s", "night": date(night)}
        RunWriter(tmp_path, pytest.fail).end(replace(result, started=f"{date(night)}T03:00:00Z", command=command))
    apart = judge(tmp_path, pytest.fail)
    assert apart.remarks == collect(tmp_path, pytest.fail).remarks
    assert any("tester t1 -> t2" in remark for remark in apart.remarks)
    row = row_of(result, "")
    keep_ratios(tmp_path, [ratio(load=str(row.cell.load), dut=row.cell.dut, simulated=row.cell.simulated)])
    joined, page = judge(tmp_path, pytest.fail), collect(tmp_path, pytest.fail)
    assert not page.remarks and [one.tester for one in page.rows] == ["t1", "t2"], "as measured"
    assert not joined.remarks and [few for (_, metric), few in joined.few.items() if metric == "maximum rate"] == [2]
