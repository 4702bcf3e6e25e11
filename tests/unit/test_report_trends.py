"""Trends apart from a browser: usual levels and noise, the page's data of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from nights import VPP, changed, date, make_row, make_rows, noisy
from report_cases import figures, lines_of, make_change, make_night, make_record

from trexbench.core.history.finding import Finding
from trexbench.core.history.levels import Usual
from trexbench.core.history.regression import judge_rows
from trexbench.core.history.rows import METRICS, RunRow
from trexbench.core.history.series import night_of
from trexbench.core.history.testers import FigureRatio
from trexbench.report.page.cards import EDGE, HEIGHT, THINNEST, draw_trend
from trexbench.report.page.html import page_data
from trexbench.report.page.report import Report
from trexbench.report.page.sheets_nights import trend_sheet
from trexbench.report.page.trends import Trend, find_trends
from trexbench.report.words import NONE

RATE, POWER = METRICS["total_pps"], METRICS["power_w"]
CALIBRATED = FigureRatio(str(VPP.load), RATE.column, VPP.dut, "t2", "t1", 1.1, 0.0, 5, "2026-01-01")


def slower_at(row: RunRow, before: float, after: float) -> Finding:
    return make_change(row.cell, night_of(row), before, after)


def trend_of(rows: Sequence[RunRow], *changes: Finding, usual: Usual | None = None) -> Trend:
    (trend,) = find_trends(rows, [], changes, {(rows[0].cell, RATE.name): usual} if usual else {})
    return trend


def test_the_usual_level_and_noise_are_those_of_the_judgement_or_of_all_nights() -> None:
    rows = make_rows(noisy(6))
    judged = Usual(("2026-01-01", "2026-01-02"), (5.1e6, 5.1e6))
    assert trend_of(rows, usual=judged).usual(RATE) == judged
    few = trend_of(rows).usual(RATE)
    assert few is not None and few.values == tuple(noisy(6)) and trend_of(rows).usual(POWER) is None


def test_a_cards_band_is_two_deviations_but_never_a_hair() -> None:
    trend = trend_of(rows := make_rows([*noisy(20), *noisy(6, 4e6)]))
    finding = next(one for one in judge_rows(rows).findings if one.metric is RATE)

    def height(values: Sequence[float]) -> float:
        usual = replace(trend, levels={(trend.cell, RATE.name): Usual(("a",) * len(values), tuple(values))})
        found = re.search(r'class="noise".* height="([0-9.]+)"', draw_trend([usual], finding, 0.3))
        return float(found[1]) if found else 0.0

    wide = Usual(("a",) * 20, tuple(noisy(20)))
    assert wide.noise is not None
    assert height(wide.values) == pytest.approx((HEIGHT - 2 * EDGE) * 2 * wide.noise / wide.level / 0.3, abs=0.1)
    assert height([5e6]) == pytest.approx((HEIGHT - 2 * EDGE) * THINNEST / 0.3, abs=0.1)
    assert draw_trend([], finding, 0.3) == "" and height([0.0]) == 0.0


def test_the_data_are_small_whole_numbers_that_come_back_within_a_hundred_thousandth() -> None:
    values = noisy(40)
    rows = make_rows(values)
    data = page_data(Report(rows), ())
    (line,) = lines_of(data, "trends", RATE.name)
    assert figures(data, RATE.name) == pytest.approx([value / 1e6 for value in values], rel=1e-5)
    assert all(type(one) is int for one in line["y"])
    assert data["nights"] == [row.night for row in rows] and line["x"] == data["trends"][0]["x"] == [*range(40)]


def test_bounds_failures_and_runs_by_hand_have_their_places() -> None:
    rows = make_rows([5e6] * 4)
    rows[1] = changed(rows[1], at_least=True)
    by_hand = replace(rows[3], started=f"{date(3)}T14:05:09Z", night=None, path="x.json")
    report = Report([*rows[:3], by_hand], [make_night(make_record(make_row(5), "no licence"), at=date(5))])
    data = page_data(report, ())
    (line,) = lines_of(data, "trends", RATE.name)
    assert data["nights"] == [*map(date, range(3)), f"{date(3)} 14:05", date(5)]
    assert (line["x"], line["bounds"], line["y"][4]) == ([0, 1, 2, 3, 4], [0, 1, 0, 0, 0], None)
    failed = data["trends"][0]["failed"]
    assert [(data["nights"][at], why) for at, why in failed] == [(date(5), "no licence")]


def test_a_trend_has_its_levels_their_noise_and_changes_with_a_sign_and_a_word() -> None:
    rows = make_rows([*noisy(9), *noisy(3, 4e6), *noisy(3)])
    (recovery,) = judge_rows(rows).findings
    data = page_data(Report(rows, changes=recovery.steps), ())
    (line,) = lines_of(data, "trends", RATE.name)
    assert [(one["x"], one["words"], one["colour"]) for one in line["marks"]] == [
        (9, "\u25bc -19.7 %, ended", "--soft"),
        (12, "\u25b2 recovered", "--good"),
    ]
    factor, level = line["scales"]["own"]
    levels = [(one["begin"], one["end"], factor * one["y"] + level) for one in line["levels"]]
    expected = ((0, 9, 5), (9, 12, 4), (12, 14, 5))
    assert levels == [(begin, end, pytest.approx(level, rel=0.01)) for begin, end, level in expected]
    assert all(0.002 < factor * one["noise"] / 2 < 0.1 and one["drawn"] for one in line["levels"])


def test_of_many_nights_only_what_no_line_would_show_has_a_marker() -> None:
    rows = make_rows([5e6] * 40)
    rows[5:8] = [changed(row, at_least=True) for row in rows[5:8]]
    nights = [make_night(make_record(rows[at], "off"), at=date(at)) for at in (19, 21)]
    data = page_data(Report([row for at, row in enumerate(rows) if at not in (19, 21)], nights), ())
    line, alone = lines_of(data, "trends", RATE.name)
    assert "marker" not in line and (alone["x"], alone["bounds"]) == ([5, 7, 20], [1, 1, 0]) and alone["size"] >= 8


def test_every_run_has_its_document_without_the_night_that_it_lies_in() -> None:
    rows = make_rows([5e6] * 100)
    elsewhere = {0: "elsewhere/a.json", 50: f"{rows[50].night}-2/b.json", 99: "c.json"}
    rows = [replace(row, path=elsewhere.get(number, row.path)) for number, row in enumerate(rows)]
    found = page_data(Report(rows), ())["trends"][0]["documents"]
    assert {at: path for at, path in enumerate(found) if path != "/netgate-vpp/030000-var2-64b.json"} == elsewhere


def by_testers(values: Sequence[float], own: int, slow: float = 1.0) -> list[RunRow]:
    """The nights of t1, and the last ones of t2, which measures a tenth more; slow: from night 20 on."""
    values = [value * (slow if night >= 20 else 1.0) for night, value in enumerate(values)]
    first = len(values) - own
    rows = [make_row(night, value, tester="t1") for night, value in enumerate(values[:first])]
    return [*rows, *(make_row(night, 1.1 * values[night], tester="t2") for night in range(first, len(values)))]


def report_of(rows: list[RunRow], *ratios: FigureRatio) -> Report:
    judged = judge_rows(rows, ratios=ratios)
    changes = judged.regressions
    return Report(rows, changes=changes, usual=judged.usual, ratios=ratios)


def test_runs_of_a_calibrated_tester_are_drawn_as_they_are_judged() -> None:
    rows = by_testers(noisy(33), own=3, slow=0.9)
    report = report_of(rows, CALIBRATED)
    data = page_data(report, ())
    (line,), (mark,) = lines_of(data, "trends", RATE.name), report.changes
    assert figures(data, RATE.name) == pytest.approx([
        1.1e-6 * value * (0.9 if night >= 20 else 1.0) for night, value in enumerate(noisy(33))
    ], rel=1e-5)  # fmt: skip
    factor, level = line["scales"]["own"]
    assert [factor * one["y"] + level for one in line["levels"]] == pytest.approx(
        [mark.before / 1e6, mark.after / 1e6], rel=1e-5
    )
    row = next(row for row in trend_sheet(report).lines if row.items[1].text == RATE.name)
    assert row.items[6].text == "33" and row.items[5].text != NONE, "the table has the noise of the same runs"


def test_a_changed_share_and_its_noise_are_told_in_points_and_small_noise_has_its_digits() -> None:
    losses = [0.652, 0.6521, 0.6519, 0.652, 0.6521, 0.6519, 0.674]
    rows = [make_row(night, 5e6 + 200 * (night % 2), hold_loss=loss) for night, loss in enumerate(losses)]
    rate, loss = ([item.text for item in row.items[2:6]] for row in trend_sheet(report_of(rows)).lines)
    assert loss == ["67.4 %", "\u25bc +2.2 points", "65.2 %", "0.0089 points"]
    assert rate[3] == "0.0022 %"


@pytest.mark.parametrize(("own", "ratios"), [(3, ()), (8, ()), (8, (CALIBRATED,))])
def test_another_testers_regression_is_marked_and_sets_no_level(own: int, ratios: tuple[FigureRatio, ...]) -> None:
    rows = by_testers(noisy(30 + own), own, slow=0.9)
    report = report_of(rows, *ratios)
    data = page_data(report, ())
    (line,) = lines_of(data, "trends", RATE.name)
    (mark,), (one,) = line["marks"], line["levels"]
    assert data["nights"][mark["x"]] == date(20) and mark["words"].startswith("\u25bc")
    assert (one["begin"], one["end"]) == (line["x"][0], line["x"][-1]) and len(line["x"]) == own
    factor, level = line["scales"]["own"]
    assert factor * one["y"] + level == pytest.approx(4.95, rel=0.01)


def test_a_level_of_no_length_is_not_drawn() -> None:
    rows = make_rows([5e6] * 9)
    data = page_data(Report(rows, changes=[slower_at(rows[-1], 5e6, 4e6)]), ())
    (line,) = lines_of(data, "trends", RATE.name)
    assert [(one["begin"], one["end"]) for one in line["levels"]] == [(0, 8)]
    assert lines_of(page_data(Report(rows[:1]), ()), "trends", RATE.name)[0]["levels"], "but that of a single night"


def test_a_run_by_hand_under_other_conditions_leaves_the_nights_in_their_trend() -> None:
    rows = make_rows([5e6] * 3)
    assert trend_of([*rows, replace(make_row(3, night=None, suite=None), line_rate_bps=1e9)]).runs == tuple(rows)
