"""TCP, WANs, frame sizes and published figures on a page in a real browser: drawn, chosen, in silence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bdp_runs import BEHIND, LONG, swept
from browser import Page
from report_cases import Elements, report_of
from runs import sized
from verbs import run_in

from trexbench.core.history.rows import row_of
from trexbench.report.page.report import Report

TICKS = "#plot-{} .{}tick text"
SUITE = """
method: tcp
tcp: {time: 3s, ping: 1}
duts: [{name: vpn-i5-2400, variants: [1gbit-relay]}]
modes: [forward-ipv4, reverse-ipv4]
published: {vpn-i5-2400 1gbit-relay forward-ipv4: {mbps: 931, client_tunnel: 67.6}}
"""
LINES = "#plot-{} .scatterlayer .trace"


def test_each_wan_is_drawn_beside_what_bounds_it(show: Callable[[Report], Page]) -> None:
    page = show(report_of(swept(), swept(replace(BEHIND, wan=replace(LONG, loss=1e-4)))))
    assert page.texts(TICKS.format("wans", "x")) == ["1 MB", "5 MB"] and page.count(TICKS.format("wans", "y")) > 3
    assert page.count(LINES.format("wans")) == 3, "window, line, measured"
    page.choose(wans_run="1")
    assert page.count(LINES.format("wans")) == 4 and "Mathis" in page.texts("#plot-wans .legend")[0]
    assert "Mbit/s" in page.texts("#plot-wans .ytitle")[0]


def test_frame_sizes_are_drawn_with_their_line_rate_and_follow_the_duts(show: Callable[[Report], Page]) -> None:
    runs = [sized(size, command={"verb": "search", "mode": f"var2-{size}b"}) for size in (64, 512, 1518)]
    rows = [row_of(run, f"{at}.json") for at, run in enumerate(runs)]
    page = show(Report(rows, runs={row.cell: run for row, run in zip(rows, runs, strict=True)}))
    assert page.texts(TICKS.format("sizes", "x")) == ["64", "512", "1518"]
    assert all("pps" in tick for tick in page.texts(TICKS.format("sizes", "y")))
    assert page.count(LINES.format("sizes")) == 3, "the line rate, and one for each goal"
    assert "theoretical maximum" in page.texts("#plot-sizes .legend")[0]
    page.evaluate("document.querySelectorAll('input[name=column]').forEach(function (box) { box.click(); })")
    assert page.count(LINES.format("sizes")) == 0


def test_a_suites_page_has_its_published_figures_beside_the_measured(tmp_path: Path) -> None:
    suite, page = tmp_path / "suites" / "mine.yaml", tmp_path / "r.html"
    suite.parent.mkdir()
    suite.write_text(SUITE)
    for command in (("suite", "run", "mine", "--sim"), ("report", "-o", "r.html")):
        run_in(tmp_path, *command)
    text = Elements(page.read_text()).words.partition("Beside published figures")[2]
    assert all(words in text for words in ("vpn-i5-2400 1gbit-relay forward-ipv4", "931", "67.6 %", "link"))
    suite.unlink()
    run_in(tmp_path, "report", "-o", "r.html")
    assert 'id="published"' not in page.read_text(), "a suite that is gone has no published figures"


ROWS = "document.getElementById('plot-tcp').layout.yaxis.ticktext.length"


def test_rows_and_series_follow_what_is_chosen(chromium: Page, page_of: Callable[[str], Path]) -> None:
    chromium.open(page_of("tcp").as_uri())
    title = "document.getElementById('plot-trends').layout.annotations.slice(-1)[0].text"
    assert chromium.evaluate(title) == "TCP rate, % off usual level"
    assert chromium.evaluate(ROWS) == 6 and chromium.count(LINES.format("series")) == 2 * 3, (
        "two DUTs: rate, retransmits, round trip"
    )
    chromium.choose(tcp_mode="bidir-ipv6")
    assert chromium.count(LINES.format("series")) == 2 * 2 * 3
    (legend,) = chromium.texts("#plot-series .legend")
    assert "raspberry-pi, server sends" in legend and "ms idle" in legend
    chromium.click("input[name=tcp-way]")
    assert chromium.evaluate(ROWS) == 4
    chromium.click("input[name=column]")
    assert chromium.evaluate(ROWS) == 2 and chromium.count(LINES.format("series")) == 2 * 3
    assert chromium.said == []
