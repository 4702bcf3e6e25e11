"""One Chromium for all tests of the report's page, and the pages that more than one file looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from browser import Page, find_chromium, open_chromium
from page_states import STATES

from trexbench.report.page.report import Report
from trexbench.review.report import make_page


@pytest.fixture(scope="session")
def browser() -> Iterator[Page]:
    program = find_chromium()
    if program is None:
        pytest.skip("no chromium here: apt install chromium")
    with open_chromium(program) as page:
        yield page


@pytest.fixture
def chromium(browser: Page) -> Page:
    """The browser, with nothing left of what another test did to it."""
    browser.reset()
    return browser


@pytest.fixture
def show(chromium: Page, tmp_path: Path) -> Iterator[Callable[[Report], Page]]:
    """Opens a report's page, which stays silent."""

    def opened(report: Report) -> Page:
        path = tmp_path / "report.html"
        path.write_text(make_page(report), encoding="utf-8")
        chromium.open(path.as_uri())
        return chromium

    yield opened
    assert chromium.said == []


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The page of a state, made when it is asked for first."""
    return cache(lambda state: STATES[state](tmp_path_factory.mktemp(state)))
