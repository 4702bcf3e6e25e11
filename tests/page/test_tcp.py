"""A night of TCP as a page in a real browser: rows and series drawn, chosen, in silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from browser import Page

LINES = "#plot-series .scatterlayer .trace"
ROWS = "document.getElementById('plot-tcp').layout.yaxis.ticktext.length"


def test_rows_and_series_follow_what_is_chosen(chromium: Page, page_of: Callable[[str], Path]) -> None:
    chromium.open(page_of("tcp").as_uri())
    title = "document.getElementById('plot-trends').layout.annotations.slice(-1)[0].text"
    assert chromium.evaluate(title) == "TCP rate, % off usual level"
    assert chromium.evaluate(ROWS) == 6 and chromium.count(LINES) == 2 * 3, "two DUTs: rate, retransmits, round trip"
    chromium.choose(tcp_mode="bidir-ipv6")
    assert chromium.count(LINES) == 2 * 2 * 3
    (legend,) = chromium.texts("#plot-series .legend")
    assert "raspberry-pi, server sends" in legend and "ms idle" in legend
    chromium.click("input[name=tcp-way]")
    assert chromium.evaluate(ROWS) == 4
    chromium.click("input[name=column]")
    assert chromium.evaluate(ROWS) == 2 and chromium.count(LINES) == 2 * 3
    assert chromium.said == []
