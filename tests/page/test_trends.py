"""The trends on the page, in a real browser: what is drawn, that no two lines are alike, what a night tells."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from browser import Page
from effort import by_day
from nights import changed
from report_cases import make_change, make_night, make_record, make_row

from trexbench.core.history.cell import Cell
from trexbench.core.history.levels import Usual
from trexbench.core.history.rows import RunRow
from trexbench.report.page.report import Report

LAST = date(2026, 11, 20)
CELLS = [
    Cell(dut, mode, bidir, None)
    for dut in ("linux", "pfsense", "vpp")
    for mode in ("64b", "imix")
    for bidir in (False, True)
]
PLOT = "document.getElementById('plot-trends')"
LINES = f"{PLOT}.data.filter(function (one) {{ return one.name !== 'failed'; }})"
TITLE = f"{PLOT}.layout.annotations.slice(-1)[0].text"
LOOK = "[one.xaxis, one.line.color, one.line.dash, [].concat(one.marker.symbol)[0]]"
LOOKS = f"{LINES}.map(function (one) {{ return {LOOK}; }})"
BOX = f"{PLOT}.querySelector('.nsewdrag').getBoundingClientRect()"
RANGE = f"{PLOT}._fullLayout.yaxis.range"


def make_rows(cells: Sequence[Cell], nights: int, slower: Cell | None = None) -> list[RunRow]:
    """A night each with half a percent of noise; one cell is 12 % slower on the last third."""
    noise, rows = random.Random(1), []
    for back in range(nights - 1, -1, -1):
        at = str(LAST - timedelta(days=back))
        for number, cell in enumerate(cells):
            rate = 1e6 * (number + 1) * noise.gauss(1, 0.005) * (0.88 if cell == slower and 3 * back < nights else 1)
            name = f"{cell.mode}-{'bidir' if cell.bidir else 'uni'}"
            path = f"{at}/{cell.dut}/0200{number:02}-{name}.json"
            row = make_row(
                cell.dut, cell.mode, at, bidir=cell.bidir, total_pps=rate, line_share=rate / 14.88e6, path=path
            )
            rows.append(changed(row, started=f"{at}T02:00:{number:02}Z", power_w=19.0))
    return rows


def make_report(cells: Sequence[Cell], nights: int, failed: Sequence[int] = (), **values: Any) -> Report:
    """failed: how many nights ago all cells failed."""
    rows = make_rows(cells, nights, values.pop("slower", None))
    gone = {str(LAST - timedelta(days=back)) for back in failed}
    lost = [row for row in rows if row.night in gone]
    made = [
        make_night(*(make_record(row, f"{row.cell.dut} was off") for row in lost if row.night == at), at=at)
        for at in sorted(gone)
    ]
    return Report([row for row in rows if row.night not in gone], made, **values)


def test_no_two_lines_of_a_panel_are_alike(show: Any) -> None:
    page = show(make_report(CELLS, 8))
    for mode, traffic, lines in (("", "", 12), ("64b", "", 6), ("", "uni", 6), ("imix", "bidir", 3)):
        page.choose(mode=f"{mode}", traffic=f"{traffic}")
        looks = [tuple(one) for one in page.evaluate(LOOKS)]
        assert len(looks) == lines and len(set(looks)) == lines, (mode, traffic)
        assert len({panel for panel, *_ in looks}) == lines, "each has a panel"
    page.evaluate("document.querySelector('input[name=column]').click()")
    looks = [tuple(one) for one in page.evaluate(LOOKS)]
    assert len({look[1:3] for look in looks}) == 2 and len({panel for panel, *_ in looks}) == 1, "two share one"


def test_several_cells_are_drawn_against_their_own_levels_and_one_in_its_unit(show: Any) -> None:
    page = show(make_report(CELLS, 12, slower=CELLS[-1]))
    page.choose(mode="imix", traffic="bidir")
    assert page.evaluate(TITLE) == "maximum rate, % off usual level"
    drawn = page.evaluate(f"{LINES}.map(function (one) {{ return one.y; }})")
    assert all(abs(value) < 2.5 for line in drawn[:-1] for value in line) and drawn[-1][-1] == pytest.approx(
        -12, abs=2.5
    )
    page.choose(relative=False)
    assert page.evaluate(TITLE) == "maximum rate, % of line rate"
    page.choose(relative=True, unit="pps")
    for number in (0, 1):
        page.evaluate(f"document.querySelectorAll('input[name=column]')[{number}].click()")
    assert page.evaluate(TITLE) == "maximum rate, Mpps" and page.evaluate(
        "document.getElementById('relative').disabled"
    )
    low, high = page.evaluate(RANGE)
    assert low < 12 * 0.88 < 12 < high


def test_a_zoom_does_not_outlive_the_unit_it_was_made_in(show: Any) -> None:
    page = show(make_report(CELLS, 12))
    page.choose(mode="64b", traffic="uni")
    page.evaluate("document.querySelector('input[name=column]').click()")
    page.evaluate(f"{PLOT}.scrollIntoView()")
    before = page.evaluate(RANGE)
    for kind, share in (("mousePressed", 0.3), ("mouseMoved", 0.5), ("mouseMoved", 0.6), ("mouseReleased", 0.6)):
        x, y = (
            page.evaluate(f"{BOX}.{side} + {share} * {BOX}.{size}")
            for side, size in (("left", "width"), ("top", "height"))
        )
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
    page.wait(f"{RANGE}[0] > {before[0]}")
    zoomed = page.evaluate(RANGE)
    nights = page.evaluate(f"{PLOT}._fullLayout.xaxis.range")
    page.choose(zero=True)
    page.choose(zero=False)
    assert page.evaluate(RANGE) == zoomed, "the same figures in the same unit"
    page.choose(relative=False)
    low, high = page.evaluate(RANGE)
    assert low < 500e6 / 14.88e6 and high > 900e6 / 14.88e6
    assert page.evaluate(f"{PLOT}._fullLayout.xaxis.range") == nights, "nights are nights in any unit"


def test_failed_nights_stand_at_the_foot_and_break_the_lines(show: Any) -> None:
    page = show(make_report(CELLS, 12, failed=[3]))
    page.choose(mode="64b", traffic="")
    marks = f"{PLOT}.data.filter((one) => one.name === 'failed').map((one) => [one.x, one.xaxis, one.hovertext[0]])"
    failed = page.evaluate(marks)
    assert len(failed) == len({panel for _, panel, _ in failed}) == 6, "at the foot of each panel"
    assert all(nights == ["2026-11-17"] and "was off" in text for nights, _, text in failed)
    assert page.evaluate(f"{LINES}.every(function (one) {{ return one.y[8] === null && one.y[7] !== null; }})")


def test_dates_of_nights_beside_each_other_do_not_overlap(show: Any, chromium: Page) -> None:
    rows = make_rows(CELLS[:1], 60)
    page = show(Report([*rows[:8], rows[-1]]))
    page.choose(mode="64b", traffic="uni")
    assert page.evaluate(f"{PLOT}.layout.xaxis.tickvals") == [rows[at].night for at in (0, 5, -1)]
    chromium.size(375, 900, phone=True)
    page = show(make_report([replace(cell, dut="a-router-whose-name-is-long") for cell in CELLS[:2]], 8))
    page.choose(mode="", traffic="")
    foot = page.evaluate(
        f"Math.max(...Array.from({PLOT}.querySelectorAll('.xtick'), (one) => one.getBoundingClientRect().bottom))"
    )
    assert foot <= page.evaluate(f"{PLOT}.querySelector('.legend').getBoundingClientRect().top"), "nor a phone's legend"


def test_a_night_is_named_with_its_figure_and_its_change(show: Any) -> None:
    slower = CELLS[-1]
    change = make_change(slower, "2026-11-17", 12e6, 10.56e6)
    off = 6e4 * 0.9**0.5  # of ten nights with a standard deviation of 6e4
    usual = Usual(tuple(f"2026-11-{day:02}" for day in range(7, 17)), (12e6 - off, 12e6 + off) * 5, change)
    page = show(make_report(CELLS, 12, slower=slower, changes=[change], usual={(slower, "maximum rate"): usual}))
    page.choose(mode="imix", traffic="bidir")
    text = page.evaluate(f"{LINES}.filter((one) => one.name === 'vpp')[0].hovertext[8]")
    assert text.index("2026-11-17") < text.index("vpp") < text.index(" Mpps, \u22121") < text.index("rate -12.0")
    assert text.count("2026-11-1") == 2, "the night, and the line of its change"
    heads = page.evaluate(f"{PLOT}.layout.annotations.map(function (one) {{ return one.text; }})")
    assert [head for head in heads if "\u25bc -12.0 %" in head and "vpp" in head], "a sign and the size, over the panel"
    rects = f"{PLOT}.layout.shapes.filter(function (one) {{ return one.type === 'rect'; }})"
    bands = page.evaluate(f"{rects}.map(function (one) {{ return [one.x0, one.x1, one.y0, one.y1]; }})")
    assert len(bands) == 4 and ["2026-11-09", "2026-11-17", pytest.approx(-1), pytest.approx(1)] in bands
    page.click("input[name=column]")
    heads = page.evaluate(f"{PLOT}.layout.annotations.map(function (one) {{ return one.text; }})")
    assert "\u25bc -12.0 % vpp" in heads, "whose it is, where two share a panel"


def test_a_night_leads_to_its_documents(show: Any) -> None:
    report = make_report(CELLS, 40, failed=[1])
    odd = replace(report.rows[-1], path="2026-11-20/vpp/another.json")
    page = show(replace(report, rows=[*report.rows[:-1], odd]))
    page.choose(mode="imix", traffic="bidir")

    def of(night: str, what: str) -> list[str]:
        page.choose(night=night)
        texts: list[str] = page.texts(f"#documents-list {what}")
        return texts

    listed = of("2026-11-02", "li")
    assert len(listed) == 3 and listed[0].startswith("2026-11-02, linux imix bidir: ") and "Mpps" in listed[0]
    rows = [row for row in report.rows if row.night == "2026-11-02" and row.cell.mode == "imix" and row.cell.bidir]
    assert of("2026-11-02", "code") == [row.path for row in rows]
    assert of("2026-11-20", "code")[-1] == odd.path
    assert of("2026-11-19", "li")[0] == "2026-11-19, linux imix bidir: failed: linux was off"
    page.evaluate(f"{PLOT}.emit('plotly_click', {{ points: [{{ x: '2026-11-03', data: {{}} }}] }})")
    assert page.values("night") == ["2026-11-03"] and page.evaluate("document.getElementById('documents').open")
    assert page.texts("#documents-list li")[0].startswith("2026-11-03, ")


def test_many_nights_have_shorter_spans(show: Any) -> None:
    page = show(make_report(CELLS[:2], 100))
    page.choose(mode="", traffic="")
    assert page.texts("#nights option") == ["all time", "the last quarter", "the last month"]
    page.choose(nights="30")
    assert page.evaluate(f"{PLOT}._fullLayout.xaxis.range[0]") > "2026-10-19"


@pytest.mark.parametrize("width", by_day(1, [375, 1440]))
def test_panels_have_numbers_titles_and_one_scale_and_are_bounded(show: Any, chromium: Page, width: int) -> None:
    cells = [Cell(f"dut{at}", mode, bidir, None) for at in range(6) for mode in "abcd" for bidir in (False, True)]
    chromium.size(width, 900, phone=width < 500)
    page = show(make_report(cells, 5, failed=[2]))
    page.choose(mode="", traffic="")
    most = 16 if width < 500 else 40
    assert page.evaluate(f"{LINES}.length") == most
    titles = page.evaluate(f"{PLOT}.layout.annotations.map(function (one) {{ return one.text; }})")
    assert titles[-1].endswith(f"and {48 - most} more: choose a mode or DUT") and len(set(titles[:-1])) == most
    assert page.evaluate(f"{PLOT}.querySelectorAll('.xaxislayer-above text').length") > 2
    assert page.evaluate(f"{PLOT}.querySelectorAll('.yaxislayer-above text').length") > 2
    ranges = page.evaluate(
        f"[1, 2, {most}].map(function (at) {{ return {PLOT}._fullLayout['yaxis' + (at > 1 ? at : '')].range.join(); }})"
    )
    assert len(set(ranges)) == 1
    page.choose(mode="a", traffic="uni")
    assert page.evaluate(f"{PLOT}.clientHeight") < 600, "its height follows what is drawn"
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("figure", "equal"), [("power", True), ("maximum rate", False)])
def test_axes_have_numbers_where_values_are_few_or_equal(show: Any, figure: str, equal: bool) -> None:
    page = show(make_report(CELLS[:1], 2))
    page.choose(metric=f"{figure}")
    low, high = page.evaluate(RANGE)
    assert 0 < high - low < 0.1 * high and (not equal or low < 19 < high)
    assert page.count("#plot-trends .ytick text") > 1
    ticks = page.texts("#plot-trends .xtick text")
    assert [tick.removesuffix("2026") for tick in ticks] == ["19 Nov", "20 Nov"], "nights, not clock minutes"
