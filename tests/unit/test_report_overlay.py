"""Curves keep their windows at the knee, and everything else as pools that lose no frame; trends keep every night."""

from __future__ import annotations

import pytest
from report_cases import make_change, make_night, make_record, make_row, make_run
from runs import World, make_plan, make_result

from trexbench.core.history.cell import Cell
from trexbench.core.history.night import CellState
from trexbench.core.history.rows import RATE
from trexbench.core.load.windows import measured_windows
from trexbench.report.page.overlay import AROUND_KNEE, MOST_POINTS, find_curves
from trexbench.report.page.report import Report
from trexbench.report.page.trends import find_trends, instant_of

CELL = Cell("vpp", "64b", True, None)


def test_a_run_has_a_curve_for_each_direction() -> None:
    curves = find_curves(CELL, make_run(CELL))
    assert [curve.direction for curve in curves] == ["0->1", "1->0"]
    for curve in curves:
        assert curve.knee_pps == pytest.approx(660e3, rel=0.08) and curve.bound_pps is None
        assert len(curve.offered_pps) == len(curve.received_pps) == len(curve.loss) > 20
        assert max(curve.loss) > 0.1 > min(curve.loss) and "the DUT saturated" in curve.words


def test_a_run_that_the_generator_limits_has_a_bound_and_no_knee() -> None:
    (curve,) = find_curves(Cell("vpp", "64b", False, None), make_result(make_plan(), World()))
    assert curve.knee_pps is None and curve.bound_pps and curve.words.startswith(">= ")


def test_runs_cut_short_have_the_curve_that_they_have() -> None:
    run = make_run(CELL)
    assert find_curves(CELL, make_run(CELL, samples=run.samples[:2])) == ()
    assert len(find_curves(CELL, make_run(CELL, samples=run.samples[:20]))[0].offered_pps) < 20


def test_the_curve_of_a_search_goes_by_the_offered_rate_not_by_time() -> None:
    run = make_result(make_plan(kind="search", goals=(0.0, 0.01)), World(capacity_pps=660e3, noise=0.01))
    windows = measured_windows(run.plan, run.samples, run.plan.directions[0], run.plan.curve_phases)
    asked = [window.sent_pps for window in windows]
    (curve,) = find_curves(Cell("vpp", "64b", False, None, kind="search"), run)
    assert asked != sorted(asked) and list(curve.offered_pps) == sorted(curve.offered_pps)


def test_a_line_filled_at_once_is_points_at_its_one_rate() -> None:
    cell = Cell("vpp", "64b", False, None, kind="saturate")
    (curve,) = find_curves(cell, make_result(make_plan(kind="saturate", hold_s=10.0), World(capacity_pps=660e3)))
    assert max(curve.offered_pps) == pytest.approx(min(curve.offered_pps), rel=0.02)


@pytest.mark.parametrize("most", [60, 100, MOST_POINTS])
def test_reduced_windows_are_few_and_whole_at_the_knee(most: int) -> None:
    run = make_result(make_plan(ramp_s=600.0), World(capacity_pps=660e3))
    one = run.analysis.directions[0]
    windows = measured_windows(run.plan, run.samples, one.direction, run.plan.curve_phases)
    (curve,) = find_curves(CELL, run, most)
    assert len(curve.offered_pps) <= most + 2
    assert list(curve.offered_pps) == sorted(curve.offered_pps)
    at = next(i for i, w in enumerate(windows) if w.sent_pps >= (one.first_bad_pps or 0))
    kept = {window.sent_pps for window in windows[at - AROUND_KNEE : at + AROUND_KNEE + 1]}
    assert kept <= {*curve.offered_pps}
    assert max(curve.loss) == pytest.approx(max(w.loss or 0 for w in windows), rel=0.05)


def test_a_trend_has_every_run_and_every_night_without_one() -> None:
    rows = [make_row(at=f"2026-11-{day}", total_pps=day * 1e5) for day in (17, 18, 20)]
    lost = make_row(at="2026-11-19")
    cut = make_row(at="2026-11-21", status="incomplete")
    nights = [
        make_night(make_record(lost, "no route to host"), at="2026-11-19"),
        make_night(make_record(cut, state=CellState.WAITING), at="2026-11-22", error="the tester was off"),
    ]
    change = make_change(rows[0].cell, rows[1].started, "better", 5e6, 6e6)
    (trend,) = find_trends([*rows, cut], nights, [change])
    assert [row.night for row in trend.runs] == ["2026-11-17", "2026-11-18", "2026-11-20"]
    assert [(at[:10], why) for at, why in trend.failed] == [
        ("2026-11-19", "no route to host"),
        ("2026-11-21", "the run is incomplete"),
        ("2026-11-22", "not measured: the tester was off"),
    ]
    assert trend.changes == (change,) and trend.metrics == (RATE,) and trend.middle(RATE) == 18e5


@pytest.mark.parametrize(
    ("started", "night", "stands"),
    [
        pytest.param("2026-11-20T22:00:00Z", "2026-11-20", "2026-11-20", id="in its night"),
        pytest.param("2026-11-21T04:00:00Z", "2026-11-20", "2026-11-20", id="after midnight"),
        pytest.param("2026-11-21T04:00:00Z", "2026-03-01", "2026-03-01", id="a night dated otherwise"),
        pytest.param("2026-11-21T04:00:00Z", None, "2026-11-21T04:00:00Z", id="by hand"),
        pytest.param("2026-11-21T04:00:00Z", "<b>", "2026-11-21T04:00:00Z", id="no date"),
    ],
)
def test_a_run_stands_at_its_night_or_where_it_began_without_one(started: str, night: str | None, stands: str) -> None:
    row = make_row(started=started, night=night)
    (trend,) = find_trends([row], [], [])
    assert instant_of(started, night) == stands and [*trend.instants.values()] == [stands]


def test_nights_whose_runs_began_at_once_are_two() -> None:
    """A merged or simulated history: the index has them by their nights."""
    rows = [make_row(started="2026-11-21T04:00:00Z", night=night, path=night) for night in ("2026-11-19", "2026-11-20")]
    (trend,) = find_trends(rows, [], [])
    assert [*trend.instants.values()] == ["2026-11-19", "2026-11-20"]
    assert Report(rows).trend_nights == 2


def test_a_trend_holds_runs_like_the_last_only() -> None:
    rows = [make_row(at=f"2026-11-1{day}", traffic=traffic) for day, traffic in enumerate(["imix", "64b", "64b"], 7)]
    (trend,) = find_trends(rows, [], [])
    assert [row.night for row in trend.runs] == ["2026-11-18", "2026-11-19"]


def test_a_cell_that_only_ever_failed_has_a_trend() -> None:
    night = make_night(make_record(make_row(), "no licence"))
    (trend,) = find_trends([], [night], [])
    assert trend.runs == () and trend.failed[0][1] == "no licence" and trend.middle(RATE) is None


def test_a_night_that_knew_no_cells_is_seen_in_every_trend_of_its_suite() -> None:
    """Its suite could not be read: a gap would look as if nobody had wanted to measure."""
    rows = [make_row(dut, at="2026-11-18") for dut in ("vpp", "linux")]
    rows.append(make_row("other", at="2026-11-18", suite="b"))
    night = make_night(at="2026-11-19", error="suites/nightly.yaml: not YAML")
    failed = {str(trend.cell): trend.failed for trend in find_trends(rows, [night], [])}
    told = (("2026-11-19", "suites/nightly.yaml: not YAML"),)
    assert failed == {"vpp 64b uni": told, "linux 64b uni": told, "other 64b uni": ()}
