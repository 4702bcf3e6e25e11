"""Curves, which older nights' lie beside the latest and why, and the trend of every night."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from documents import to_document
from hypothesis import given
from hypothesis import strategies as st
from report_cases import make_change, make_costs, make_night, make_record, make_row, make_run
from runs import World, make_plan, make_result
from seen import kernel, run_of, vpp
from test_stream_losses import run as counted_run

from trexbench.core.errors import StoreError
from trexbench.core.history.cell import Cell
from trexbench.core.history.finding import Finding
from trexbench.core.history.night import CellState
from trexbench.core.history.rows import RATE, Figure, RunRow, row_of
from trexbench.core.load.sample import Sample
from trexbench.core.load.windows import measured_windows
from trexbench.core.result import RunResult, from_document
from trexbench.report.page.overlay import (
    AROUND_KNEE,
    MOST_POINTS,
    OLDER_POINTS,
    REASONS,
    Curve,
    Older,
    choose_older,
    find_curves,
    with_figures,
)
from trexbench.report.page.report import Report
from trexbench.report.page.trends import find_trends, instant_of
from trexbench.results.document import seal
from trexbench.results.store import RunWriter, load_run
from trexbench.review.report import collect

CELL = Cell("vpp", "64b", True, None)
YEAR = [f"{year}-{month:02}-{day:02}" for year, month in ((2025, 11), (2026, 10), (2026, 11)) for day in range(1, 21)]


def chosen_of(rows: list[RunRow], *changes: Finding) -> list[tuple[str, str]]:
    return [(one.night, " ".join(one.why)) for one in choose_older(rows[-1], rows, changes)]


@pytest.mark.parametrize(
    ("what", "nights", "changes", "wanted"),
    [
        ("nothing but the latest", ["2026-11-20"], "", ""),
        ("one night before", ["2026-11-18", "2026-11-20"], "", "2026-11-18 night"),
        ("all four", YEAR, "2026-11-10T02:00:00Z",
         "2026-11-19 night, 2026-11-09 change, 2026-10-20 month, 2025-11-20 year"),
        ("the newest change counts", YEAR[-15:], "2026-11-10T02:00:00Z 2026-11-15T02:00:00Z",
         "2026-11-19 night, 2026-11-14 change"),
        ("one night for two reasons", YEAR[-5:], "2026-11-20T02:00:00Z", "2026-11-19 change night"),
        ("a change named by its night", YEAR[-5:], "2026-11-18", "2026-11-19 night, 2026-11-17 change"),
        ("a change before all runs", YEAR[-2:], "2026-01-01", "2026-11-19 night"),
        ("three weeks are a month, two are none", ["2026-10-31", "2026-11-06", "2026-11-20"], "",
         "2026-11-06 night, 2026-10-31 month"),
    ],
)  # fmt: skip
def test_nights_that_explain_something(what: str, nights: list[str], changes: str, wanted: str) -> None:
    chosen = chosen_of([make_row(at=at) for at in nights], *(make_change(CELL, at) for at in changes.split()))
    assert ", ".join(f"{at} {why}" for at, why in chosen) == wanted, what


def test_the_last_run_of_a_night_counts_and_a_nightless_one_only_among_its_like() -> None:
    twice = [make_row(at="2026-11-19", started=f"2026-11-19T0{hour}:00:00Z", path=f"{hour}") for hour in (1, 3)]
    by_hand = make_row(at="2026-11-19", started="2026-11-19T09:00:00Z", night=None)
    rows = [*twice, by_hand, make_row()]
    assert [one.row.path for one in choose_older(rows[-1], rows, ())] == ["3"]
    alone = make_row(night=None)
    assert [one.row for one in choose_older(alone, [*twice, by_hand, alone], ())] == [by_hand]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"line_rate_bps": 1e9}, "line rate 1"),
        ({"traffic": "1"}, "other traffic"),
        ({"loss_threshold": 0.01}, "loss threshold 1"),
    ],
)
def test_unlike_runs_are_named_only_where_no_like_one_is(changes: dict[str, Any], words: str) -> None:
    latest, like, unlike = make_row(), make_row(at="2026-11-15"), make_row(at="2026-11-19", **changes)
    assert [(one.row, one.unlike) for one in choose_older(latest, [like, unlike, latest], ())] == [(like, "")]
    (only,) = choose_older(latest, [unlike, latest], ())
    assert only.row == unlike and only.unlike.startswith(words)


def test_another_configuration_is_told_and_laid_over_all_the_same() -> None:
    latest, before = make_row(facts="b"), make_row(at="2026-11-19", facts="a")
    (one,) = choose_older(latest, [before, latest], ())
    assert one.otherwise and not one.unlike
    assert not choose_older(before, [make_row(at="2026-11-18", facts="a"), before], ())[0].otherwise


@pytest.mark.parametrize("mtu", [1500, 9000])
def test_facts_that_only_a_newer_version_reads_are_no_other_configuration(tmp_path: Path, mtu: int) -> None:
    for day, port in enumerate(({"mtu": 1500}, {"mtu": mtu, "rings": {"now": {"rx": 512}}}), 1):
        dut = {"name": "vpp", "facts_sha256": str(port), "facts": {"interfaces": {"ix0": port}}}
        RunWriter(tmp_path, print).end(replace(RUN, dut=dut, started=f"2026-03-0{day}T12:00:00Z"))
    ((older,),) = collect(tmp_path, pytest.fail).older.values()
    assert older.otherwise == (mtu == 9000)


@given(st.lists(st.dates().map(str), min_size=1, max_size=40, unique=True), st.dates().map(str))
def test_they_are_few_older_and_named_once(nights: list[str], change: str) -> None:
    rows = [make_row(at=at) for at in sorted(nights)]
    chosen = chosen_of(rows, make_change(CELL, change))
    assert len(chosen) <= len(REASONS) and all(night < rows[-1].night for night, _ in chosen if rows[-1].night)
    assert chosen == sorted(set(chosen), reverse=True)
    keys = " ".join(why for _, why in chosen).split()
    assert len(keys) == len(set(keys)) and set(keys) <= set(REASONS)


RUN = make_run(CELL, ramp_s=200.0)
ROW = row_of(RUN, "x.json")
TEXT = json.dumps(to_document(RUN))


def older_curves(row: RunRow, result: RunResult) -> tuple[Curve, ...]:
    return with_figures(Older(row, ("night",)), result).curves


def test_a_document_has_the_curve_of_its_run_in_few_points() -> None:
    for older, latest in zip(older_curves(ROW, from_document(json.loads(TEXT))), find_curves(CELL, RUN), strict=True):
        assert (older.direction, older.knee_pps, older.words) == (latest.direction, latest.knee_pps, latest.words)
        assert older.result.confirmed_pps == latest.result.confirmed_pps
        assert len(older.offered_pps) <= OLDER_POINTS + 2 < len(latest.offered_pps)
        assert set(older.offered_pps) & set(latest.offered_pps)
        assert older.offered_pps[-1] == pytest.approx(latest.offered_pps[-1], rel=0.05)


def test_another_run_than_the_row_names_is_refused() -> None:
    with pytest.raises(StoreError, match="another run than the index names"):
        older_curves(ROW, replace(RUN, started="2020-01-01T00:00:00Z"))


def test_a_stored_verdict_is_the_derived_one(tmp_path: Path) -> None:
    path = RunWriter(tmp_path, pytest.fail).end(RUN)
    stored = load_run(path)
    assert vars(stored)["analysis"] == RUN.analysis
    assert older_curves(ROW, stored) == older_curves(ROW, RUN)
    path.write_text(path.read_text().replace('"limit": "dut"', '"limit": "link"'))
    assert older_curves(ROW, load_run(path)) == older_curves(ROW, RUN), "edited by hand: derived anew"


def without_tags(sample: Sample) -> Sample:
    """The sample of a tester that got none of its tagged frames back."""
    tagged = sample.reading.latency.items()
    none = {port: replace(one, received=0, average_s=None, histogram={}) for port, one in tagged}
    return replace(sample, reading=replace(sample.reading, latency=none))


def without_any_tag() -> RunResult:
    run = make_run(CELL, latency_s=3.0)
    return replace(run, samples=[without_tags(one) for one in run.samples])


@pytest.mark.parametrize(
    ("make", "code"),
    [
        pytest.param(lambda: make_run(CELL, latency_s=3.0), None, id="latency"),
        pytest.param(lambda: run_of(vpp(), vpp(), bidir=True), None, id="of both directions"),
        pytest.param(lambda: run_of(kernel(0.0), kernel(60.0)), None, id="of a kernel"),
        pytest.param(counted_run, "streams", id="counted streams"),
        pytest.param(lambda: counted_run(marked=0.0), "unmarked", id="frames without their marks"),
        pytest.param(without_any_tag, "no-latency", id="no tagged frame came back"),
        pytest.param(lambda: make_result(make_plan(), World(700e3, blips=((20.0, 26.0),))), "stalls", id="a stall"),
    ],
)
def test_what_is_stored_of_an_analysis_is_all_of_it(
    tmp_path: Path, make: Callable[[], RunResult], code: str | None
) -> None:
    run = make()
    found = {"streams": run.streams, "stalls": run.analysis.stalls}
    assert code is None or found.get(code) or code in {one.code for one in run.analysis_warnings}
    stored = load_run(RunWriter(tmp_path, pytest.fail).end(run))
    for name in ("analysis", "losses", "streams"):
        assert vars(stored)[name] == getattr(run, name)
    assert [*stored.derived_warnings()] == [*run.derived_warnings()]


@pytest.mark.parametrize(("name", "value"), [("stalls", None), ("losses", "x"), ("analysis", [1])])
def test_figures_of_a_sealed_document_that_are_none_are_derived_anew(tmp_path: Path, name: str, value: object) -> None:
    path = tmp_path / "x.json"
    changed = json.dumps(json.loads(TEXT) | {name: value}).encode()
    path.write_bytes(seal(changed[:-1], [ROW]))
    stored = load_run(path)
    assert (stored.analysis, stored.losses) == (RUN.analysis, RUN.losses)


def test_costs_and_latencies_of_an_older_night_come_along() -> None:
    run = make_run(CELL, latency_s=3.0)
    vars(run)["costs"] = known = make_costs(401.0, 2100.0)
    one = with_figures(Older(row_of(run, "x.json"), ("night",)), run)
    assert one.costs == known and [row.direction for row in one.latencies] == ["0->1", "1->0"]
    assert all(row.loads for row in one.latencies)


def test_a_run_without_a_ramp_has_no_curve_and_yet_its_costs() -> None:
    cell = replace(CELL, kind="saturate")
    run = make_run(cell)
    vars(run)["costs"] = make_costs(401.0)
    one = with_figures(Older(row_of(run, "x.json"), ("night",)), run)
    assert one.curves == () and len(one.costs) == 1


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
    change = make_change(rows[0].cell, rows[1].started, 5e6, 6e6)
    (trend,) = find_trends([*rows, cut], nights, [change])
    assert [row.night for row in trend.runs] == ["2026-11-17", "2026-11-18", "2026-11-20"]
    assert [(at[:10], why) for at, why in trend.failed] == [
        ("2026-11-19", "no route to host"),
        ("2026-11-21", "the run is incomplete"),
        ("2026-11-22", "not measured: the tester was off"),
    ]
    assert trend.changes == (change,) and trend.metrics == (RATE,) and trend.middle(RATE) == Figure(18e5)


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
