"""The page's first screen, as somebody with ten seconds sees it: the verdict, a card for each event, then the table.

A cell that failed in the newest night is shown with an older run: every place that does so names its night.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from browser import Page
from effort import by_day
from nights import LINUX, VPP, make_rows, noisy
from report_cases import judged_report, make_costs, make_night, make_record, make_row, make_run

from trexbench.core.history.cell import Cell
from trexbench.core.history.rows import RunRow
from trexbench.report.page.html import page_data
from trexbench.report.page.overlay import Older
from trexbench.report.page.report import Report
from trexbench.report.page.sheets import sheets_of
from trexbench.report.page.templates import to_markdown
from trexbench.review.report import make_page

BEFORE = {"change": 164, "failed": 203, "one_night": 153, "simulated": 138, "tcp": 128, "one_run": 113}
"""Words on the first screen of 1440 x 900 pixels before it had a verdict and cards, by the page's state."""
WORDS = """(function () {
  var walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), count = 0, node;
  while ((node = walker.nextNode())) {
    var parent = node.parentElement;
    if (parent.closest("script, style, svg, caption, .unseen, a.skip") || !parent.checkVisibility()) { continue; }
    for (var found, word = /\\S*\\w\\S*/g; (found = word.exec(node.data)); ) {
      var range = document.createRange();
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      var box = range.getBoundingClientRect();
      count += box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    }
  }
  return count;
})()"""


@pytest.mark.parametrize("state", by_day(1, BEFORE))
def test_it_has_half_of_the_words_that_it_had(chromium: Page, page_of: Callable[[str], Path], state: str) -> None:
    chromium.size(1440, 900)
    chromium.open(page_of(state).as_uri())
    assert chromium.evaluate(WORDS) <= BEFORE[state] / 2


def slower() -> Report:
    """Thirty nights of two cells and three slower ones of one; the other failed in the last."""
    vpp = make_rows([*noisy(30), *noisy(3, 4.5e6, seed=2)], cycles_per_packet=400.0)
    linux = make_rows(noisy(32, 2e6, seed=3), LINUX)
    night = make_night(
        make_record(vpp[-1]), make_record(replace(vpp[-1], cell=LINUX), "no link"), at=vpp[-1].night or ""
    )
    return judged_report([*vpp, *linux], [replace(night, finished="x")], below="../results/")


SEEN = """Array.from(document.querySelectorAll('{}')).every(function (one) {{
  var box = one.getBoundingClientRect();
  return box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right <= innerWidth + 1; }})"""


@pytest.mark.parametrize("width", by_day(2, [375, 1440, 768]))
def test_the_verdict_and_the_worst_event_are_seen_at_once(show: Callable[[Report], Page], width: int) -> None:
    page = show(slower())
    page.size(width, 900, phone=width < 500)
    page.open(page.evaluate("location.href"))
    verdict = page.evaluate("document.querySelector('h1').textContent").replace("\u00a0", " ")
    assert verdict == "netgate-vpp is 10 % slower since 3 February; 1 cell failed"
    kinds = page.evaluate(
        "Array.from(document.querySelectorAll('.card h3'), one => one.textContent.split(':')[0].trim())"
    )
    assert kinds == ["\u25bc regression", "\u2715 failed"]
    assert page.evaluate(SEEN.format("h1, .card:first-child h3, .card:first-child .size, .card:first-child .trend"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    abreast = page.evaluate("new Set(Array.from(document.querySelectorAll('.card'), one => one.offsetLeft)).size")
    assert abreast == (1 if width == 375 else 2)
    level, change = (page.evaluate(f"document.querySelector('.trend .{one}') !== null") for one in ("usual", "change"))
    assert level and change


def test_a_command_is_copied_by_its_button(show: Callable[[Report], Page]) -> None:
    page = show(slower())
    page.evaluate("document.querySelector('.card details').open = true")
    page.evaluate("window.taken = []; navigator.clipboard.writeText = async text => { taken.push(text); }")
    page.evaluate("document.querySelectorAll('.card:first-child .steps button').forEach(one => one.click())")
    page.wait("document.querySelector('.steps button').textContent === 'copied'")
    words = [command.split()[1] for command in page.evaluate("taken")]
    assert words == ["results", "results", "suite", "regress"]
    colour = "getComputedStyle(document.querySelector('.card .wide')).getPropertyValue('--{}')"
    assert page.evaluate(colour.format("ground")) == page.evaluate(colour.format("panel")), "no strip beside the table"
    assert (
        page.evaluate("Array.from(document.querySelectorAll('.steps a'), one => one.getAttribute('href')).length") == 2
    )


def test_many_events_are_folded_and_a_warning_stands_once(show: Callable[[Report], Page]) -> None:
    rows: list[RunRow] = []
    for number in range(12):
        cell = replace(VPP, dut=f"dut{number}", simulated=True)
        rows += make_rows([*noisy(30, seed=number), *noisy(3, 4.5e6 - 1e5 * number, seed=number + 50)], cell)
    page = show(judged_report(sorted(rows, key=lambda row: row.started)))
    assert page.evaluate("document.querySelectorAll('.card').length") == 12
    assert page.evaluate("document.querySelectorAll('#changes > .cards > .card').length") == 9
    assert page.evaluate("document.querySelector('#changes > details > summary').textContent") == "3 more: regression"
    text = page.evaluate("document.querySelector('#changes').innerText + document.querySelector('#table').innerText")
    assert "simulated" not in text.lower(), "the banner says it once"


def test_a_bound_tells_what_its_packets_cost(show: Callable[[Report], Page]) -> None:
    cycles = [*noisy(30, 400.0), *noisy(3, 452.0)]
    rows = [
        make_row(at=row.night or "", at_least=True, total_pps=14e6, line_share=0.97, cycles_per_packet=one)
        for row, one in zip(make_rows(cycles), cycles, strict=True)
    ]
    page = show(judged_report(rows))
    cell = page.evaluate("document.querySelector('[data-name=maximum-rate] td.bound').innerText").split()
    assert cell[:2] == ["\u2265", "97"] and cell[-1] == "cycles" and "\u25bc" in cell
    assert "1 dearer" in page.evaluate("document.querySelector('[data-name=maximum-rate] thead').innerText")
    assert "cycles/packet" in page.evaluate("document.querySelector('h1').textContent")


EARLIER, NEWEST = "2026-11-20", "2026-11-21"
WELL, FAILED = Cell("linux", "64b", False, None), Cell("vpp", "64b", False, None)
NAMED = f"{FAILED}, {EARLIER}"


def make_report(failed: bool = True) -> Report:
    """Two nights of two cells; in the newer one of them failed."""
    rows = [make_row(cell.dut, cell.mode, at, latency_s=1e-5) for at in (EARLIER, NEWEST) for cell in (WELL, FAILED)]
    records = [make_record(rows[2]), make_record(rows[3], "vpp did not answer" if failed else None)]
    rows = rows[:3] if failed else rows
    runs = {}
    for row in rows[1:]:
        run = make_run(row.cell, started=row.started, latency_s=3.0, ramp_s=15.0)
        vars(run)["costs"] = make_costs(401.0, 430.0)  # where the cached property keeps it
        runs[row.cell] = run
    night = make_night(*records, at=NEWEST)
    return Report(rows, [make_night(at=EARLIER), night], night, runs, made=NEWEST)


def test_tables_name_it_and_only_there() -> None:
    report = make_report()
    sheets = {sheet.name: sheet for sheet in sheets_of(report)}
    for name in ("ramps", "cycles", "latency"):
        assert {line.items[0].text for line in sheets[name].lines} == {str(WELL), NAMED}, name
        assert {line.items[0].raw for line in sheets[name].lines} == {str(WELL), NAMED}, "in CSV as well"
    latest = {(line.items[0].text, line.items[1].text): line.items[2].text for line in sheets["trends"].lines}
    assert latest[str(FAILED), "maximum rate"] == f"5.000 Mpps ({EARLIER})"
    assert latest[str(WELL), "maximum rate"] == "5.000 Mpps"


def test_an_older_nights_costs_have_that_night_alone() -> None:
    report = make_report()
    (latest,) = (row for row in report.rows if row.cell == FAILED)
    older = Older(latest, ("night",), costs=make_costs(399.0))
    sheets = {sheet.name: sheet for sheet in sheets_of(replace(report, older={FAILED: (older,)}))}
    assert {line.items[0].text for line in sheets["cycles"].lines} == {str(WELL), NAMED}


def test_markdown_and_page_say_which_cells() -> None:
    report = make_report()
    words = f"For 1 cell the latest run is not from the night of {NEWEST}: it is shown with its own night"
    text, page = to_markdown(report), make_page(report)
    page = page.replace('<span class="whole">', "").replace("</span>", "")
    rows = re.findall(rf"^\| {re.escape(NAMED)} \|", text, re.MULTILINE)
    assert f"\n{words}.\n" in text and len(rows) == 4, "three loads of latency, a trend"
    assert f"<summary>{words}</summary>" in page and f"<li>{FAILED}: {EARLIER}</li>" in page


def test_nothing_is_dated_where_the_newest_night_has_all() -> None:
    report = make_report(failed=False)
    assert report.dated == {} and "own night" not in to_markdown(report) + make_page(report)
    lines = [line for some in page_data(report, ())["figures"].values() for one in some for line in one["lines"]]
    assert lines and all("night" not in line or line["beside"] for line in lines), "beside older nights only"


def test_legends_name_it(show: Callable[[Report], Page]) -> None:
    chromium = show(make_report())
    for plot in ("ramps", "rates", "latency"):
        names = chromium.evaluate(
            f"document.getElementById('plot-{plot}').data.map(function (one) {{ return one.name || ''; }})"
        )
        of = {name.partition("<br>")[2] for name in names if name.startswith("vpp")}
        assert len(of) == 1 and of.pop().startswith(EARLIER), plot
        assert not [name for name in names if name.startswith("linux") and "<br>" in name], plot
