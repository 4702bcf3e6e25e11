"""The page's tables in a real browser: sorted, filtered, saved, read by keyboard, on a phone and with large text."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import WITHIN_S, Page
from nights import changed
from report_cases import make_change, make_night, make_record, make_row, make_run
from saved_tables import check_page

from trexbench.core.history.cell import EFFICIENCY, Cell
from trexbench.core.history.levels import Usual
from trexbench.core.history.night import CellState
from trexbench.report.page.report import Report
from trexbench.report.page.sheets import sheets_of
from trexbench.report.sheet import harmless, to_csv
from trexbench.review.report import make_page

LONG = "a-router-with-a-name-that-is-far-too-long-for-a-phone"
FORMULA = "=1+1"
ODD = '@a, "b"'


def make_report() -> Report:
    """Seven nights of eight cells; the last is 8 % slower in one; others have warnings, failed, or a hostile name."""
    cells = [
        Cell(dut, mode, bidir, None) for dut in ("linux", LONG) for mode in ("64b", "imix") for bidir in (False, True)
    ]
    cells += [Cell("linux", FORMULA, False, None), Cell("linux", ODD, False, None)]
    rows = []
    for night in range(1, 8):
        for at, cell in enumerate(cells):
            pps = 1e6 * (at + 2) * (0.92 if night == 7 and at == 2 else 1 + 0.001 * (night % 3))
            figures = {"total_pps": pps, "line_share": pps / 15e6}
            row = make_row(cell.dut, cell.mode, f"2026-11-{night:02}", bidir=cell.bidir, **figures)
            rows.append(changed(row, at_least=at == 3, warnings=2 * (at == 1 and night == 7), hold_loss=0.0))
    last = rows[-len(cells) :]
    table = [make_record(row) for row in last]
    table[4] = make_record(last[4], f"{LONG} did not answer")
    table[5] = make_record(last[5], state=CellState.WAITING)
    night = make_night(*table, at="2026-11-07", error="power cut")
    runs = {row.cell: make_run(row.cell, started=row.started, ramp_s=15.0, latency_s=3.0) for row in last[:3]}
    held = make_row("linux", "64b", "2026-11-07", kind=EFFICIENCY, held_pps=1e6, cycles_per_packet=584.1, night=None)
    change = make_change(cells[2], "2026-11-07", 4e6, 3.68e6)
    nights = tuple(f"2026-11-{day:02}" for day in range(1, 7))
    usual = {(cells[2], "maximum rate"): Usual(nights, (4e6,) * 6, change)}
    return Report([*rows, held], [night], night, runs, changes=[change], usual=usual, made="2026-11-07")


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report()


@pytest.fixture(scope="module")
def path(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "report.html"
    path.write_text(make_page(report), encoding="utf-8")
    return path


@pytest.fixture
def page(chromium: Page, path: Path) -> Iterator[Page]:
    chromium.open(path.as_uri())
    yield chromium
    assert chromium.said == []


def test_csv_has_raw_figures_and_text_that_is_no_formula(report: Report) -> None:
    tables = {sheet.name: list(csv.reader(io.StringIO(to_csv(sheet)))) for sheet in sheets_of(report)}
    names = "maximum-rate maximum-rate-absolute cycles-at-rates ramps latency trends facts"
    assert list(tables) == names.split()
    first = tables["maximum-rate-absolute"]
    assert first[0] == ["Direction", "Traffic", "linux, pps", "linux, change, %", f"{LONG}, pps", f"{LONG}, change, %"]
    assert ["Unidirectional", "64b", "2002000", "0", "failed", ""] in first
    assert ["Unidirectional", "imix", "3680000", "-8", "8008000", "0"] in first
    assert {("Unidirectional", f"'{FORMULA}"), ("Unidirectional", f"'{ODD}")} <= {(row[0], row[1]) for row in first}
    assert [row[2] for row in first if row[:2] == ["Bidirectional", "imix"]] == [">=5005000"], "a bound is no figure"
    assert tables["cycles-at-rates"][1][1:3] == ["64b at 1 Mpps", "584.1"]
    assert {len(row) for row in tables["trends"]} == {len(tables["trends"][0])}
    assert [harmless(one) for one in ("-8.1", "-1e-05", "-x", "+1", "")] == ["-8.1", "-1e-05", "'-x", "'+1", ""]


def test_simulated_is_told_in_csv() -> None:
    for sheet in sheets_of(Report([make_row(simulated=True)]), ()):
        assert "simulated" in to_csv(sheet), sheet.name


WHOLE = "document.querySelectorAll('button.whole:not([hidden])').forEach(function (one) { one.click(); })"


def test_the_page_saves_the_same_csv_as_the_command(page: Page, path: Path, report: Report) -> None:
    check_page(page, path, {f"{sheet.name}.csv": to_csv(sheet) for sheet in sheets_of(report)})


def test_csv_is_downloaded_under_the_pages_policy(page: Page, tmp_path: Path) -> None:
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.click("[data-name=maximum-rate] a.csv")
    saved = tmp_path / "maximum-rate.csv"
    deadline = time.monotonic() + WITHIN_S
    while not (saved.is_file() and saved.read_bytes()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert saved.read_text().startswith("Direction,Traffic,")


FIGURES = """Array.from(document.querySelectorAll("[data-name=trends] tbody tr:not(.off)")).map(function (row) {
  return row.cells[2].dataset.v; })"""


def test_a_head_sorts_by_value_there_and_back_by_keyboard_too(page: Page) -> None:
    page.evaluate(f"document.querySelector('#trends > details').open = true; {WHOLE}")
    before = page.evaluate(FIGURES)
    head = "document.querySelector('[data-name=trends] th:nth-child(3)')"
    figures = sorted(float(one.removeprefix(">=")) for one in before)
    for state, order in (("ascending", figures), ("descending", figures[::-1])):
        page.evaluate(f"{head}.querySelector('button').focus()")
        page.press("Enter")
        assert page.evaluate(f"{head}.getAttribute('aria-sort')") == state
        assert [float(one.removeprefix(">=")) for one in page.evaluate(FIGURES)] == order
    page.click("[data-name=trends] th:nth-child(3) button")
    assert page.evaluate(f"{head}.getAttribute('aria-sort')") == "none" and page.evaluate(FIGURES) == before


ROWS = "[data-name={}] tbody tr:not(.block):not(.off)"


def test_tables_follow_the_choice_and_say_how_many_rows_they_show(page: Page) -> None:
    rates, trends, heads = (
        ROWS.format("maximum-rate"),
        ROWS.format("trends"),
        "[data-name=maximum-rate] th[data-column]",
    )
    assert page.count(rates) == 6, "whole until somebody chooses"
    page.choose(mode="imix")
    page.choose(traffic="")
    page.choose(metric="maximum rate")
    assert (page.count(rates), page.count(trends)) == (2, 4)
    assert page.texts("[data-name=maximum-rate] .rows") == ["2 of 6 rows, by the choice above the plots"]
    page.click("input[name=column]")
    assert (page.count(trends), page.count(f"{heads}:not(.off)")) == (2, 1)
    page.click("[data-name=maximum-rate] .whole")
    assert (page.count(rates), page.count(f"{heads}:not(.off)")) == (6, 2)
    assert page.texts("[data-name=maximum-rate] .rows") == [""]


def test_a_figure_leads_to_its_trend_and_its_change_has_words(page: Page) -> None:
    changed = "[data-name=maximum-rate] td:has(small.delta.bad)"
    assert page.texts(changed)[0].split() == ["25", "%\u25bc", "-8.0", "%", "worse"]
    page.click(f"{changed} a.figure")
    assert page.values("mode", "traffic") == ["imix", "uni"]
    page.wait(f"document.querySelectorAll('{ROWS.format('trends')}').length === 2")
    assert page.count(ROWS.format("maximum-rate")) == 6
    assert page.evaluate("location.hash").endswith("at=trends")
    assert "1 slower" in page.texts("[data-name=maximum-rate] th[data-column]")[0]


def test_warnings_lead_to_those_of_the_run(page: Page) -> None:
    warned = "[data-name=maximum-rate] a.warned"
    assert page.texts(warned)[0] == "\u26a02 warnings" and page.count("td sup") == 0
    page.click(warned)
    target = f"document.getElementById(document.querySelector('{warned}').hash.slice(1))"
    assert page.evaluate(f"[{target}.open, {target}.querySelector('summary').textContent]") == [True, "linux 64b bidir"]


def test_reasons_of_failures_stand_in_the_text(page: Page) -> None:
    assert f"{LONG} did not answer" in page.texts("[data-name=maximum-rate-absolute] td.failed")[0]
    assert page.texts("[data-name=maximum-rate] td.failed")[0] == "failed", "where all would fail for one reason"
    assert "Not measured: power cut (1 cell)." in page.texts("#table")[0]
    assert f"{LONG} did not answer" in page.texts("#trends")[0]


EVERY = "Array.from(document.querySelectorAll('{}')).every(function (one) {{ return {}; }})"
"""Expression that tests whether a condition holds for all elements of a selector."""
HIDDEN = """Array.from(document.querySelectorAll('tr.off')).filter(function (one) {
  return !one.checkVisibility() && !one.closest('details:not([open])'); }).length"""
SIZE = "parseFloat(getComputedStyle(document.querySelector('td')).fontSize)"
WIDEST = """Math.max.apply(null, Array.from(document.querySelectorAll(
  '.wide tbody th[scope=row], .wide thead th:first-child')).filter(
  function (one) { return one.checkVisibility(); }).map(
  function (one) { return one.getBoundingClientRect().width; }))"""


def test_on_a_phone_with_large_text_nothing_is_wider_than_the_screen(page: Page, path: Path) -> None:
    page.size(375, 812, phone=True)
    page.open(path.as_uri())
    page.evaluate("document.querySelectorAll('details:not(.pick)').forEach(function (one) { one.open = true; })")
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    page.evaluate(WHOLE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert page.evaluate(SIZE) >= 28 and page.evaluate(WIDEST) <= 0.4 * 375


def test_paper_has_every_row_and_the_warnings(page: Page) -> None:
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(EVERY.format("details.doubtful, #table details", "one.open"))
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.count("tr.off") > 0 and page.evaluate(HIDDEN) == 0


def test_after_printing_what_the_reader_had_unfolded_is_unfolded_and_no_more(page: Page) -> None:
    unfolded = EVERY.format("#table details, #notes details.doubtful", "one.open").replace(".every(", ".map(")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.evaluate(unfolded.replace("return one.open", "one.open = false"))
    page.evaluate("document.querySelector('#table details').open = true")
    before = page.evaluate(unfolded)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(unfolded) == before and len(before) > 1 and before.count(True) == 1


def test_given_rates_are_sorted_by_their_numbers(show: Callable[[Report], Page]) -> None:
    rates = (10e6, 148.8e3, 1e3, 1e6)
    rows = [make_row(kind=EFFICIENCY, held_pps=rate, cycles_per_packet=584.1, night=None) for rate in rates]
    chromium, names = show(Report(rows)), "table.trends tbody th"
    told = chromium.texts(names)
    assert [one.partition(" at ")[2] for one in told] == ["1 kpps", "148.8 kpps", "1 Mpps", "10 Mpps"]
    for expected in (told, told[::-1]):
        chromium.click("table.trends th button")
        assert chromium.texts(names) == expected
