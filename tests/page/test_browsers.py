"""The page in Firefox and WebKit: drawn, silent, as wide as the screen, restored from its address."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drivers import Driven, missing, open_firefox, open_webkit

pytestmark = pytest.mark.nightly
OPENED = {"firefox": open_firefox, "webkit": open_webkit}
READY = "document.readyState === 'complete' && Boolean(document.documentElement.dataset.ready)"
DRAWN = "Array.from(document.querySelectorAll('.plot')).every(function (one) { return one.querySelector('svg'); })"
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module", params=sorted(OPENED))
def browser(request: pytest.FixtureRequest) -> Iterator[Driven]:
    if reason := missing(request.param):
        pytest.skip(reason)
    with OPENED[request.param]() as driven:
        yield driven


@pytest.mark.parametrize("state", ["change", "failed", "tcp", "mixed"])
def test_another_browser_shows_the_page(browser: Driven, state: str, page_of: Callable[[str], Path]) -> None:
    address, said = page_of(state).as_uri(), len(browser.said())
    browser.resize(1440, 900)
    browser.open("about:blank")
    browser.open(address)
    browser.wait(READY)
    browser.wait(f"document.querySelectorAll('.plot').length > 0 && {DRAWN}")
    assert browser.ask("document.querySelectorAll('main table').length") > 2
    assert browser.ask("document.querySelector('h1').getBoundingClientRect().height") > 10
    browser.resize(375, 800)
    browser.wait("window.innerWidth < 520")
    browser.wait(f"{WIDER} <= 0")  # plots follow a tenth of a second later
    assert browser.said()[said:] == []


def test_another_browser_restores_a_choice(browser: Driven, page_of: Callable[[str], Path]) -> None:
    choice = "mode=var2-imix&traffic=bidir&unit=pps&metric=cycles+per+packet&at=trends"
    browser.open("about:blank")
    browser.open(f"{page_of('change').as_uri()}#{choice}")
    browser.wait(READY)
    shown = "['mode', 'traffic', 'unit'].map(function (name) { return document.getElementById(name).value; })"
    assert browser.ask(shown) == ["var2-imix", "bidir", "pps"]
    assert browser.ask("window.scrollY") > 500
