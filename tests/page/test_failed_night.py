"""A cell that failed in the newest night is shown with an older run: every place that does so names its night."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from browser import Page
from report_cases import make_costs, make_night, make_record, make_row, make_run

from trexbench.core.history.cell import Cell
from trexbench.report.page.html import page_data
from trexbench.report.page.overlay import Older
from trexbench.report.page.report import Report
from trexbench.report.page.sheets import sheets_of
from trexbench.report.page.templates import to_markdown
from trexbench.review.report import make_page

BEFORE, NEWEST = "2026-11-20", "2026-11-21"
WELL, FAILED = Cell("linux", "64b", False, None), Cell("vpp", "64b", False, None)
NAMED = f"{FAILED}, {BEFORE}"


def make_report(failed: bool = True) -> Report:
    """Two nights of two cells; in the newer one of them failed."""
    rows = [make_row(cell.dut, cell.mode, at, latency_s=1e-5) for at in (BEFORE, NEWEST) for cell in (WELL, FAILED)]
    records = [make_record(rows[2]), make_record(rows[3], "vpp did not answer" if failed else None)]
    rows = rows[:3] if failed else rows
    runs = {}
    for row in rows[1:]:
        run = make_run(row.cell, started=row.started, latency_s=3.0, ramp_s=15.0)
        vars(run)["costs"] = make_costs(401.0, 430.0)  # where the cached property keeps it
        runs[row.cell] = run
    night = make_night(*records, at=NEWEST)
    return Report(rows, [make_night(at=BEFORE), night], night, runs, made=NEWEST)


def test_tables_name_it_and_only_there() -> None:
    report = make_report()
    sheets = {sheet.name: sheet for sheet in sheets_of(report)}
    for name in ("ramps", "cycles", "latency"):
        assert {line.items[0].text for line in sheets[name].lines} == {str(WELL), NAMED}, name
        assert {line.items[0].raw for line in sheets[name].lines} == {str(WELL), NAMED}, "in CSV as well"
    latest = {(line.items[0].text, line.items[1].text): line.items[2].text for line in sheets["trends"].lines}
    assert latest[str(FAILED), "maximum rate"] == f"5.000 Mpps ({BEFORE})"
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
    assert f"\n{words}.\n" in text and len(re.findall(rf"^\| {re.escape(NAMED)} \|", text, re.MULTILINE)) == 2
    assert f"<summary>{words}</summary>" in page and f"<li>{FAILED}: {BEFORE}</li>" in page


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
        assert len(of) == 1 and of.pop().startswith(BEFORE), plot
        assert not [name for name in names if name.startswith("linux") and "<br>" in name], plot
