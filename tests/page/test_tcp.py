"""A night of TCP as a page in a real browser: rows and series drawn, chosen, on a phone, in silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browser import Page
from tools import succeed

LINES = "document.querySelectorAll('#plot-series .scatterlayer .trace').length"
ROWS = "document.getElementById('plot-tcp').layout.yaxis.ticktext.length"


@pytest.fixture
def page(page_of: Callable[[str], Path]) -> Path:
    return page_of("tcp")


def test_markdown_has_the_night(page: Path) -> None:
    succeed(page.parent, "report", "--markdown", "r.md")
    text = (page.parent / "r.md").read_text()
    assert "**SIMULATED**" in text and "## TCP through the router" in text and "raspberry-pi forward-ipv4" in text


def test_rows_and_series_follow_what_is_chosen(chromium: Page, page: Path) -> None:
    chromium.open(page.as_uri())
    assert chromium.evaluate(ROWS) == 6 and chromium.evaluate(LINES) == 2 * 3, "two DUTs: rate, retransmits, round trip"
    chromium.choose(tcp_mode="bidir-ipv6")
    assert chromium.evaluate(LINES) == 2 * 2 * 3
    legend = chromium.evaluate("document.querySelector('#plot-series .legend').textContent")
    assert "raspberry-pi, server sends" in legend and "ms idle" in legend
    chromium.evaluate("document.querySelector('input[name=tcp-way]').click()")
    assert chromium.evaluate(ROWS) == 4
    chromium.evaluate("document.querySelector('input[name=column]').click()")
    assert chromium.evaluate(ROWS) == 2 and chromium.evaluate(LINES) == 2 * 3
    assert chromium.said == []


def test_the_first_figure_of_trends_is_the_rate(chromium: Page, page: Path) -> None:
    chromium.open(page.as_uri())
    title = "document.getElementById('plot-trends').layout.annotations.slice(-1)[0].text"
    assert chromium.evaluate(title) == "TCP rate, % off usual level"


def test_on_paper_rows_and_series_are_as_wide_as_it_and_come_back(chromium: Page, page: Path) -> None:
    chromium.prefer("dark")
    chromium.open(page.as_uri())
    width = "Math.round(document.querySelector('#plot-{} .main-svg').getBoundingClientRect().width)"
    before = [chromium.evaluate(width.format(name)) for name in ("tcp", "series")]
    ink = "getComputedStyle(document.querySelector('#plot-series .xtitle')).fill"
    dark = chromium.evaluate(ink)
    chromium.call("Emulation.setEmulatedMedia", media="print")
    chromium.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert [chromium.evaluate(width.format(name)) for name in ("tcp", "series")] == [680, 680]
    assert chromium.evaluate(ink) == "rgb(0, 0, 0)" != dark
    chromium.call("Emulation.setEmulatedMedia", media="")
    chromium.evaluate("window.dispatchEvent(new Event('afterprint'))")
    chromium.wait(f"{width.format('tcp')} === {before[0]} && {width.format('series')} === {before[1]}")
    assert chromium.said == []
