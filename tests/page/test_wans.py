"""WANs, tunnels, searches and frame sizes on a page in a real browser: drawn with numbers, chosen, in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Page
from tcp_runs import through_a_tunnel
from tools import succeed, trexbench

from trexbench.results.store import RunWriter

TICKS = (
    "Array.from(document.querySelectorAll('#plot-{} .{}tick text')).map(function (one) {{ return one.textContent; }})"
)
SUITE = """
method: tcp
tcp: {time: 3s, ping: 1}
duts: [{name: vpn-i5-2400, variants: [1gbit-relay]}]
modes: [forward-ipv4, reverse-ipv4]
published: {vpn-i5-2400 1gbit-relay forward-ipv4: {mbps: 931, client_tunnel: 67.6}}
"""
LINES = "document.querySelectorAll('#plot-{} .scatterlayer .trace').length"
LEGEND = "document.querySelector('#plot-{} .legend').textContent"
QUICK = ("--sim", "-q", "--no-picture")
FAST = (*QUICK, "--speedup", "1000")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wans")


@pytest.fixture(scope="module")
def page(place: Path) -> Path:
    wans = ("20ms,10gbit", "--buffers", "6mb", "--buffers", "50mb"), ("50ms,1gbit,loss=0.01%", "--sweep")
    runs = [("tcp", "--bdp", "--dut", "mininet-lab8", "--wan", *wan, "--time", "3s", *QUICK) for wan in wans]
    runs += [("tcp", "--dut", "vpn-i5-6500", "--variant", "1gbit-relay", "--forward", "--time", "3s", *QUICK)]
    RunWriter(place / "results", print).end(through_a_tunnel())
    for size in (64, 512, 1518):
        runs.append(("search", "--dut", "netgate-linux", "--mode", f"var2-{size}b", "--loss", "0,0.5%", *FAST))
    for run in (*runs, ("report", "-o", "r.html")):
        succeed(place, *run)
    return place / "r.html"


def test_each_wan_is_drawn_beside_what_bounds_it(chromium: Page, page: Path) -> None:
    chromium.open(page.as_uri())
    assert chromium.evaluate(TICKS.format("wans", "x")) == ["6 MB", "16.8 MB", "50 MB"], "one as found"
    assert len(chromium.evaluate(TICKS.format("wans", "y"))) > 3
    assert chromium.evaluate(LINES.format("wans")) == 3, "window, line, measured"
    chromium.choose(wans_run="1")
    assert chromium.evaluate(LINES.format("wans")) == 4 and "Mathis" in chromium.evaluate(LEGEND.format("wans"))
    assert "Mbit/s" in chromium.evaluate("document.querySelector('#plot-wans .ytitle').textContent")
    assert chromium.said == []


def test_frame_sizes_are_drawn_with_their_line_rate_and_follow_the_duts(chromium: Page, page: Path) -> None:
    chromium.open(page.as_uri())
    assert chromium.evaluate(TICKS.format("sizes", "x")) == ["64", "512", "1518"]
    assert all("pps" in tick for tick in chromium.evaluate(TICKS.format("sizes", "y")))
    assert chromium.evaluate(LINES.format("sizes")) == 3, "the line rate, and one for each goal"
    assert "theoretical maximum" in chromium.evaluate(LEGEND.format("sizes"))
    chromium.evaluate("document.querySelectorAll('input[name=column]').forEach(function (box) { box.click(); })")
    assert chromium.evaluate(LINES.format("sizes")) == 0 and chromium.said == []


def test_a_suites_page_has_its_published_figures_beside_the_measured(
    chromium: Page, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("published")
    (place / "suites").mkdir()
    (place / "suites" / "mine.yaml").write_text(SUITE)
    for command in (("suite", "run", "mine", "--sim"), ("report", "-o", "r.html")):
        succeed(place, *command)
    chromium.open((place / "r.html").as_uri())
    table = (
        "Array.from(document.querySelectorAll('#published tbody tr')).map(function (row) { return row.textContent; })"
    )
    (row,) = chromium.evaluate(table)
    assert "vpn-i5-2400 1gbit-relay forward-ipv4" in row and "931" in row and "67.6 %" in row and "line was full" in row
    (place / "suites" / "mine.yaml").unlink()
    assert trexbench(place, "report", "-o", "r.html").returncode == 0, "a suite that is gone has no published figures"
    assert 'id="published"' not in (place / "r.html").read_text()
