"""Every table of the page is a CSV file beside it, and markdown has those that the page does not fold away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from bdp_runs import swept
from browser import Page
from effort import by_day
from nights import VPP, make_rows, noisy
from report_cases import make_run, report_of
from runs import sized
from saved_tables import check_page, rows_of
from tcp_runs import through_a_tunnel

from trexbench.core.history.causes import groups_of
from trexbench.core.history.cell import TCP_KIND, Cell
from trexbench.core.history.night import CellRecord, CellState
from trexbench.core.history.regression import judge_rows
from trexbench.core.history.rows import rows_of_tcp
from trexbench.core.tcp.plan import TcpMode, Way
from trexbench.report.page import html
from trexbench.report.page.html import MOST_ROWS
from trexbench.report.page.report import Report
from trexbench.report.page.sheets import sheets_of
from trexbench.report.page.templates import to_markdown
from trexbench.report.sheet import to_csv
from trexbench.report.tcp.table import PublishedCell
from trexbench.report.words import typeset
from trexbench.review.report import make_page


def with_tcp() -> Report:
    """WANs, a tunnel with its processes, and a published figure beside it."""
    through = through_a_tunnel()
    record = CellRecord(Cell("lab-linux", TcpMode(Way.FORWARD, 4), False, None, TCP_KIND), CellState.DONE)
    line = PublishedCell(
        record, 950.0, rows_of_tcp(through, "x")[0], 1.0, {"client_tunnel": 0.68}, {"client_tunnel": 0.7}
    )
    return report_of(swept(), through, published=[line, PublishedCell(record, None, None)])


def with_sizes() -> Report:
    cells = [Cell("lab-linux", f"var2-{size}b", True, None, "search") for size in (64, 512, 1518)]
    return Report([], runs={cell: sized(size, bidir=True) for cell, size in zip(cells, (64, 512, 1518), strict=True)})


def with_changes() -> Report:
    rows = make_rows([*noisy(30), *noisy(3, 4.5e6, seed=2)])
    judgement = judge_rows(rows)
    return Report(rows, groups=groups_of(judgement), runs={VPP: make_run(VPP)}, judged="1 regression")


REPORTS: Mapping[str, Callable[[], Report]] = {"tcp": with_tcp, "sizes": with_sizes, "changes": with_changes}
IN_MARKDOWN = {"tcp": "tcp wans tunnels published", "sizes": "searches frame-sizes"}
"""Tables that markdown has whole; what is folded away on the page would be long in a chat."""
TOLD = {
    "tcp": "maximum-rate maximum-rate-absolute tcp tcp-legs tcp-pings wans tunnels tunnel-processes published "
    "published-cpu trends",
    "sizes": "searches frame-sizes ramps",
    "changes": "changes maximum-rate maximum-rate-absolute ramps trends facts",
}


@pytest.mark.parametrize("name", REPORTS)
def test_each_table_has_as_many_cells_in_every_row_as_heads(name: str) -> None:
    report = REPORTS[name]()
    sheets = list(sheets_of(report))
    assert [sheet.name for sheet in sheets] == TOLD[name].split()
    for sheet in sheets:
        heads, *lines = rows_of(to_csv(sheet))
        assert lines and all(len(line) == len(heads) for line in lines) and len(set(heads)) == len(heads), sheet.name


def test_figures_are_raw_and_texts_say_what_they_mean() -> None:
    sheets = [sheet for report in (make() for make in REPORTS.values()) for sheet in sheets_of(report)]
    found = {sheet.name: rows_of(to_csv(sheet)) for sheet in sheets}

    def column(name: str, head: str) -> list[str]:
        return [row[found[name][0].index(head)] for row in found[name][1:]]

    assert column("wans", "WAN") == ["lab-linux, WAN of 20 ms, 1 Gbit/s, by netem, BDP 2.50 MB"] * 2
    assert column("wans", "Buffers, B") == ["1000000", "5000000"]
    assert all(rate.startswith(">=") and float(rate[2:]) > 200 for rate in column("wans", "Measured, Mbit/s"))
    assert column("tunnels", "MTU") == ["1400"] or "1400" in column("tunnels", "MTU")
    assert "70" in column("tunnels", "CPU of the client's tunnel, % of a core")
    assert column("published", "Published, Mbit/s") == ["950", ""] and column("published", "Limit")[1] == "done"
    assert column("published-cpu", "CPU of the")[0] == "client's tunnel"
    assert column("published-cpu", "Published, % of a core")[0] == "68"
    assert column("searches", "Goal") == ["NDR, 0 %", "PDR, 1 %"] * 6
    assert column("frame-sizes", "Frame, B") == ["64", "64", "512", "512", "1518", "1518"]
    assert column("frame-sizes", "Loss, %") == ["0", "1"] * 3
    assert [float(change) for change in column("changes", "Change, %")] == [pytest.approx(-10, abs=0.3)]
    assert column("changes", "Figure") == ["maximum rate, pps"] and column("changes", "Which") == ["regression"]


@pytest.mark.parametrize("name", IN_MARKDOWN)
def test_markdown_has_the_same_tables_with_the_same_words(name: str) -> None:
    report = REPORTS[name]()
    text = to_markdown(report).replace("\\", "")
    shown = [sheet for sheet in sheets_of(report) if sheet.name in IN_MARKDOWN[name].split()]
    assert all(f"\n\n## {sheet.caption}\n\n|" in text for sheet in shown) and "Every leg of TCP" not in text
    for sheet in shown:
        table = text.partition(f"## {sheet.caption}\n\n")[2].partition("\n\n")[0].splitlines()
        blocks = len(sheet.parts) if sheet.blocks else 0
        assert len(table) == 2 + blocks + len(sheet.lines)
        assert {line.count("|") for line in table} == {len(sheet.heads) + 1}
        assert all(f"| {typeset(sheet.lines[-1].items[at].text)} |" in table[-1] for at in (0, 1))


@pytest.mark.parametrize("most_rows", by_day(1, [1, MOST_ROWS]))
@pytest.mark.parametrize("name", REPORTS)
def test_each_table_of_the_page_is_a_file_with_the_same_rows(
    chromium: Page, tmp_path: Path, name: str, most_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """most_rows: further ones are packed, also those of a block that has begun."""
    monkeypatch.setattr(html, "MOST_ROWS", most_rows)
    report = REPORTS[name]()
    path = tmp_path / "report.html"
    path.write_text(make_page(report), encoding="utf-8")
    check_page(chromium, path, {f"{sheet.name}.csv": to_csv(sheet) for sheet in sheets_of(report)})


def test_a_head_sorts_the_rows_below_each_wan(show: Callable[[Report], Page]) -> None:
    chromium = show(with_tcp())
    cells = "document.querySelectorAll('table.wans tbody tr:not(.block) td:nth-child(2)')"
    buffers = f"Array.from({cells}).map(function (one) {{ return one.textContent; }})"
    assert chromium.evaluate(buffers) == ["1.00 MB", "5.00 MB"]
    for _ in range(2):
        chromium.evaluate("document.querySelector('table.wans th:nth-child(2) button').click()")
    assert chromium.evaluate(buffers) == ["5.00 MB", "1.00 MB"]
