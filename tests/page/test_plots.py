"""The page's plots in a real browser: told apart, with numbers on every axis, printed, touched, in the address."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from browser import WITHIN_S, Page, find_chromium
from effort import by_day, scaled
from nights import changed
from printed import read_words
from report_cases import make_costs, make_row, make_run

from trexbench.core.dut.cycles import Cost
from trexbench.core.history.cell import EFFICIENCY, Cell
from trexbench.core.history.rows import RunRow, row_of
from trexbench.core.result import RunResult
from trexbench.report.page.overlay import REASONS, Older, with_figures
from trexbench.report.page.report import Report
from trexbench.report.palette import LIGHT, find_look
from trexbench.review.report import make_page

DUTS = ("linux", "vpp")
LINES = """Array.from(document.getElementById('plot-{0}').data).filter(function (one) {{
  return one.line && one.mode !== 'markers' && one.yaxis === 'y'; }})"""


def run_of(cell: Cell, costs: tuple[Cost, ...] = (), **changes: Any) -> tuple[RunRow, RunResult]:
    run = make_run(cell, **changes)
    vars(run)["costs"] = costs  # where the cached property keeps it
    return row_of(run, f"{cell}.json"), run


def report_of(*some: tuple[RunRow, RunResult], **changes: Any) -> Report:
    return Report([row for row, _ in some], runs={row.cell: run for row, run in some}, **changes)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two DUTs, two modes, both directions, with costs, latencies and older nights of every kind."""
    cells = [Cell(dut, mode, bidir, None) for dut in DUTS for mode in ("64b", "imix") for bidir in (False, True)]
    some = [run_of(cell, make_costs(401.0, 430.0), latency_s=3.0, ramp_s=15.0) for cell in cells]
    older = {
        row.cell: tuple(
            with_figures(Older(replace(row, night=f"2026-02-{night:02}"), (why,)), run)
            for night, why in enumerate(REASONS, 1)
        )
        for row, run in some
        if row.cell.bidir
    }
    path = tmp_path_factory.mktemp("plots") / "report.html"
    path.write_text(make_page(report_of(*some, older=older)), encoding="utf-8")
    return path


@pytest.fixture
def opened(chromium: Page, page: Path) -> Iterator[Page]:
    """The page, which stays silent."""
    chromium.open(page.as_uri())
    yield chromium
    assert chromium.said == []


def show_all(chromium: Page) -> None:
    """Every mode, direction, older night, p99 and polling at once."""
    for box in ("input[name=older]", "#p99", "#polling"):
        chromium.evaluate(f"document.querySelectorAll('{box}').forEach(function (one) {{ one.checked = true; }})")
    chromium.choose(mode="", traffic="")


def test_no_two_lines_that_are_drawn_at_once_look_alike(opened: Page) -> None:
    show_all(opened)
    of = "[one.line.color, one.line.dash, one.marker.symbol].join(' ')"
    for plot, least in (("ramps", 2 * 2 * 3 + 4 * 2 * 4), ("rates", 8 * 2 + 16), ("latency", 24 + 32)):
        looks = opened.evaluate(f"{LINES.format(plot)}.map(function (one) {{ return {of}; }})")
        assert len(looks) >= least and len(set(looks)) == len(looks), plot


def test_a_line_looks_on_the_page_as_in_a_picture(opened: Page) -> None:
    opened.choose(mode="64b", traffic="bidir")
    of = "[one.name, one.line.color, one.marker.symbol, one.line.dash, one.marker.size]"
    latest = LINES.format("ramps") + ".filter((one) => one.line.width > 1.5)"
    drawn = opened.evaluate(f"{latest}.map(function (one) {{ return {of}; }})")
    wanted = [find_look(column, place) for column in range(2) for place in (1, 2)]
    assert [one[1:] for one in drawn] == [[look.colour, look.marker, look.dash, look.size] for look in wanted]
    assert [one[0].split("<br>")[0] for one in drawn] == [f"{dut}, {way}" for dut in DUTS for way in ("0→1", "1→0")]


@pytest.mark.parametrize(
    ("what", "costs", "over_rates"),
    by_day(
        2,
        [
            ("one point", make_costs(401.0), False),
            ("two that are near", make_costs(401.0, 403.0), True),
            ("two at one rate", (*make_costs(401.0), *make_costs(403.0)), False),
            ("of a slow DUT", make_costs(401.0, pps=3.2), False),
        ],
    ),
)
def test_all_axes_have_numbers_whatever_is_drawn(
    show: Callable[[Report], Page], what: str, costs: tuple[Cost, ...], over_rates: bool
) -> None:
    chromium = show(report_of(run_of(Cell("vpp", "64b", False, None), costs)))
    ticks = "new Set(Array.from(document.querySelectorAll('#plot-{} .{}tick'), (one) => one.textContent)).size"
    assert chromium.evaluate(ticks.format("costs", "x")) >= 2, what
    assert chromium.evaluate("document.getElementById('plot-rates') !== null") is over_rates, what
    if over_rates:
        assert all(chromium.evaluate(ticks.format("rates", side)) >= 2 for side in "xy"), what
        low, high = chromium.evaluate("document.getElementById('plot-rates')._fullLayout.yaxis.range")
        assert high - low >= 0.2 * 401, "two cycles are no slope"


def test_a_cost_stands_beside_its_usual_level_and_says_by_how_much_it_differs(show: Callable[[Report], Page]) -> None:
    cell = Cell("vpp", "64b", False, None)
    row, run = run_of(cell, make_costs(440.0), started="2026-11-20T02:00:00Z")
    usual = changed(row, cycles_per_packet=400.0)
    rows = [replace(usual, started=f"2026-11-{day:02}T02:00:00Z") for day in range(10, 20)]
    chromium = show(Report([*rows, row], runs={cell: run}))
    drawn = "document.getElementById('plot-costs').data.map((one) => [one.mode, one.x, [].concat(one.marker?.symbol)])"
    costs, off = (one for one in chromium.evaluate(drawn) if one[0] != "text")
    assert costs[1] == [400, 440] and costs[2] == ["circle-open", "circle"], "hollow: before, filled: now"
    assert off[1] == [0, pytest.approx(10)]
    words = "document.getElementById('plot-costs').data.flatMap((one) => one.text || [])"
    assert chromium.evaluate(words) == ["400 \u2192 440", "+10.0 %"]


def test_runs_at_given_rates_are_one_line_of_the_costs(show: Callable[[Report], Page]) -> None:
    runs = {}
    for rate in (1, 2, 4):
        cell = Cell("vpp", "64b", False, None, EFFICIENCY, held_pps=rate * 1e6)
        _, runs[cell] = run_of(
            Cell("vpp", "64b", False, None, "saturate"),
            make_costs(800 / rate, pps=rate * 1e6),
            started="2026-11-20T02:00:00Z",
        )
    rows = [make_row("vpp", "64b", kind=cell.kind) for cell in runs]
    chromium = show(Report(rows, runs=runs))
    (line,) = chromium.evaluate(f"{LINES.format('rates')}.map(function (one) {{ return [one.name, one.x, one.y]; }})")
    assert line == ["vpp 64b uni efficiency", [1, 2, 4], [800, 400, 200]]


def test_a_choice_without_a_run_says_so(opened: Page) -> None:
    words = "'no run of this choice has this figure'"
    said = f"document.querySelector('#plot-ramps .infolayer').textContent.includes({words})"
    axes = "['ramps', 'costs'].map((one) => document.querySelectorAll('#plot-' + one + ' .xtick').length > 0)"
    assert not opened.evaluate(said) and opened.evaluate(axes) == [True, True]
    opened.evaluate("document.querySelectorAll('input[name=direction]').forEach(function (box) { box.click(); })")
    assert opened.evaluate(said) and opened.evaluate(axes) == [False, True]
    opened.evaluate("document.querySelectorAll('input[name=column]').forEach(function (box) { box.click(); })")
    assert opened.evaluate(axes) == [False, False], "no numbers where nothing is drawn"


VIEW = "['mode', 'traffic', 'unit'].map(function (name) { return document.getElementById(name).value; }).concat("
VIEW += "document.getElementById('log').checked, document.querySelectorAll('input[name=column]:checked').length)"


def test_the_address_has_the_view_and_opens_it_again(opened: Page, page: Path) -> None:
    opened.choose(mode="imix", unit="pps")
    opened.evaluate("document.getElementById('log').click()")
    opened.evaluate("document.querySelector('input[name=column]').click()")
    opened.evaluate("location.hash = 'trends'")
    opened.wait("location.hash.includes('at=trends')")
    address, view = opened.evaluate("location.href"), opened.evaluate(VIEW)
    assert view[0] == "imix" and view[2:] == ["pps", False, 1] and "dut=vpp" in address
    opened.call("Page.navigate", url="about:blank")
    opened.open(address)
    assert opened.evaluate(VIEW) == view and opened.evaluate("window.scrollY") > 500
    assert "linux" not in opened.evaluate("document.querySelector('#plot-ramps .legend').textContent")


def test_only_directions_that_the_choice_has_are_offered(opened: Page) -> None:
    boxes = "Array.from(document.querySelectorAll('input[name=direction]'))"
    shown = f"{boxes}.map(function (box) {{ return box.checkVisibility(); }})"
    opened.choose(traffic="bidir")
    assert opened.evaluate(shown) == [True, True]
    opened.choose(traffic="uni")
    assert opened.evaluate(shown).count(True) == 1


def test_back_takes_a_choice_back(opened: Page) -> None:
    opened.call("Page.resetNavigationHistory")  # other tests' pages
    views = [opened.evaluate(VIEW)]
    opened.choose(unit="pps")
    views.append(opened.evaluate(VIEW))
    opened.evaluate("document.querySelector('input[name=column]').click()")
    for to, view in (("back", views[1]), ("back", views[0]), ("forward", views[1])):
        opened.evaluate(f"history.{to}()")
        opened.wait(f"JSON.stringify({VIEW}) === {json.dumps(view, separators=(',', ':'))!r}")


HOSTILE = (
    "mode=<img src=x onerror=alert(1)>&unit=furlongs&dut=nobody&log=maybe&older=ever",
    "__proto__=1&constructor=2&at=<script>&data=1&plot-ramps=1",
    "%E0%A4%A",
    "at=controls&metric=" + "x" * 4000,
    '"]},section,',
)


def test_hostile_addresses_change_nothing(opened: Page, page: Path) -> None:
    before = opened.evaluate(VIEW)
    for hostile in HOSTILE[: scaled(len(HOSTILE), 2)]:
        opened.call("Page.navigate", url="about:blank")
        opened.open(f"{page.as_uri()}#{quote(hostile, safe='=&%+')}")
        assert opened.evaluate(VIEW) == before and opened.evaluate("window.scrollY") == 0, hostile
        opened.evaluate(f"location.hash = {hostile!r}")
        assert opened.evaluate(VIEW) == before, hostile


def test_a_plots_buttons_can_be_reached_and_its_drawing_is_not_read_out(opened: Page) -> None:
    """The keyboard of test_eyes reaches each of them and sees its focus."""
    assert opened.count("#plot-ramps .modebar button[aria-label]") > 3
    assert opened.count(".modebar button[tabindex='-1'], .plot svg.main-svg:not([aria-hidden=true])") == 0


def test_a_menu_closes_on_escape_and_on_a_click_elsewhere(opened: Page) -> None:
    menus = "document.querySelectorAll('details.pick')"
    is_open = f"Array.from({menus}).some(function (one) {{ return one.open; }})"
    opened.evaluate(f"{menus}[0].open = true; {menus}[0].querySelector('input').focus()")
    opened.evaluate(f"{menus}[0].querySelector('label').click()")
    assert opened.evaluate(is_open), "a click within leaves it"
    opened.press("Escape")
    assert not opened.evaluate(is_open) and opened.evaluate("document.activeElement.textContent") == "DUTs"
    opened.evaluate(f"{menus}[0].open = true; document.querySelector('h1').click()")
    assert not opened.evaluate(is_open)


def test_paper_is_light_and_the_screen_is_afterwards_as_it_was(opened: Page) -> None:
    widths = "Array.from(document.querySelectorAll('.plot .main-svg:first-child'), (one) => one.clientWidth)"
    opened.prefer("dark")
    colours = "[getComputedStyle(document.querySelector('#plot-ramps .xtitle')).fill,"
    colours += " document.getElementById('plot-ramps').data[0].line.color]"
    opened.wait(f"{colours}[1] !== '{LIGHT[0]}'")
    dark, wide = opened.evaluate(colours), opened.evaluate(widths)
    opened.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    ink, line = opened.evaluate(colours)
    red, green, blue = (int(one) for one in ink[4:-1].split(","))
    assert max(red, green, blue) < 90 and line in LIGHT and [ink, line] != dark
    assert {*opened.evaluate(widths)} == {680}
    opened.evaluate("window.dispatchEvent(new Event('afterprint'))")
    opened.wait(f"JSON.stringify({widths}) === {str(wide).replace(' ', '')!r}")
    assert opened.evaluate(colours) == dark


def bare(text: str) -> str:
    """Kerning may cut a word of a PDF anywhere."""
    return "".join(text.split())


def test_a_page_printed_unseen_has_every_plot(opened: Page, tmp_path: Path) -> None:
    titles = "Array.from(document.querySelectorAll('.plot .xtitle, .plot .ytitle'))"
    titles += ".map(function (one) { return one.textContent; })"
    wanted, pdf = opened.evaluate(titles), tmp_path / "page.pdf"
    program, address = find_chromium() or "", opened.evaluate("location.href")
    command = [
        program,
        "--headless=new",
        "--no-sandbox",
        f"--user-data-dir={tmp_path}",
        f"--print-to-pdf={pdf}",
        address,
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=WITHIN_S)
    printed = bare("".join(one.text for one in read_words(pdf)))
    assert len(wanted) >= 3 and all(printed.count(bare(title)) >= wanted.count(title) for title in wanted)


def test_a_page_has_loaded_when_the_plots_in_sight_are_drawn(opened: Page) -> None:
    loaded = opened.evaluate("performance.getEntriesByType('navigation')[0].loadEventStart")
    assert 0 < loaded <= float(opened.evaluate("document.documentElement.dataset.ready"))
    assert opened.evaluate("document.querySelectorAll('iframe').length") == 0


def test_a_choice_is_drawn_first_where_the_reader_is(opened: Page) -> None:
    opened.size(1440, 500)
    opened.evaluate("document.getElementById('trends').scrollIntoView()")
    still = "Array.from(document.querySelectorAll('.plot[aria-busy=true]')).map(function (one) { return one.id; })"
    choose = "(function (one) { one.value = 'pps'; one.dispatchEvent(new Event('change', { bubbles: true })); })"
    waiting = opened.evaluate(f"{choose}(document.getElementById('unit')); {still}")
    assert "plot-latency" in waiting and "plot-trends" not in waiting
    assert opened.evaluate(still) == []


CROSSED = """Array.from(document.querySelectorAll('#plot-costs .textpoint text')).filter(function (word) {
  var a = word.getBoundingClientRect();
  return Array.from(document.querySelectorAll('#plot-costs path.point')).some(function (mark) {
    var b = mark.getBoundingClientRect();
    return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  });
}).map(function (word) { return word.textContent; })"""
"""Figures beside the plot of costs on which a mark lies."""


@pytest.mark.parametrize("width", [375, 768])
def test_figures_beside_the_costs_lie_on_no_mark(chromium: Page, page_of: Callable[[str], Path], width: int) -> None:
    chromium.size(width, 900, phone=width == 375)
    chromium.open(page_of("change").as_uri())
    assert len(chromium.evaluate(CROSSED.replace("#plot-costs path.point", "#plot-costs text"))) > 4
    assert chromium.evaluate(CROSSED) == []


def test_the_trends_open_on_the_figure_that_changed(chromium: Page, page_of: Callable[[str], Path]) -> None:
    chromium.open(page_of("bounded").as_uri())
    assert chromium.evaluate("document.getElementById('metric').value") == "cycles/packet"


def test_a_phone_names_the_modes_of_tcp_not_their_dut_again(chromium: Page, page_of: Callable[[str], Path]) -> None:
    chromium.size(375, 900, phone=True)
    chromium.open(page_of("wans").as_uri())
    names = chromium.evaluate("document.getElementById('plot-tcp').layout.yaxis.ticktext")
    assert names[:2] == ["forward IPv4", "forward IPv4, buffers\u2026"] and not any("lab-linux" in one for one in names)
