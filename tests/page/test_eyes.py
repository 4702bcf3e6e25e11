"""The report's page in all its states, as an eye, a keyboard, a finger, a screen reader and a printer meet it.

``SEEN`` says what is looked at in which state; pages that are bad on purpose prove that each look can tell.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bad_pages import BAD, page
from browser import Page
from eyes import Eyes
from page_states import STATES

EVERY = ("silent", "axes", "layout", "light", "dark", "reader", "axe", "axe dark", "axe phone")
SEEN = dict.fromkeys(STATES, EVERY) | {
    "one_run": (*EVERY, "tablet", "phone", "finger", "choices", "larger", "paper"),
    "one_night": (*EVERY, "phone", "finger"),
    "change": (*EVERY, "forced", "tablet", "phone", "finger", "choices", "larger", "keyboard", "touch", "paper"),
    "tcp": (*EVERY, "forced", "tablet", "phone", "finger", "choices", "larger", "keyboard", "touch", "paper"),
    "wans": (*EVERY, "phone", "finger", "larger", "keyboard", "touch", "paper"),
    "searches": (*EVERY, "phone", "finger", "paper"),
    "simulated": (*EVERY, "paper"),
    "failed": (*EVERY, "phone", "finger", "larger", "paper"),
    "hostile": (*EVERY, "phone", "finger"),
    "year": ("silent", "axes", "layout", "light", "axe", "phone"),
}
"""State -> what of it is looked at."""
OFTEN = {
    "change": ("silent", "axes", "layout", "light", "dark", "forced", "reader", "axe", "phone", "finger"),
    "tcp": ("silent", "axes", "layout", "axe dark", "axe phone", "phone", "choices"),
    "wans": ("silent", "axes", "layout", "phone", "finger", "larger", "keyboard", "touch", "paper"),
}
"""State -> what of it .ci/run looks at; the rest is for nights, and no other state is made before.

What takes long by the size of the page, as a walk by keyboard does, is for the smallest.
"""
PAGES = [
    pytest.param(
        state, check, id=f"{state}-{check}", marks=() if check in OFTEN.get(state, ()) else pytest.mark.nightly
    )
    for state, checks in SEEN.items()
    for check in checks
]


@pytest.fixture(scope="module")
def eyes(browser: Page) -> Eyes:
    browser.reset()
    return Eyes(browser)


def look(eyes: Eyes, path: Path, check: str, folder: Path) -> list[str]:
    measures: dict[str, Callable[[], list[str]]] = {
        **dict.fromkeys(("light", "dark", "forced"), eyes.contrast),
        **dict.fromkeys(("layout", "tablet", "phone"), eyes.layout),
        **dict.fromkeys(("axe", "axe phone", "axe dark"), eyes.axe),
        "silent": lambda: eyes.noise(path),
        "axes": lambda: eyes.told("axes"),
        "finger": lambda: eyes.told("targets"),
        "choices": eyes.choices,
        "keyboard": eyes.keyboard,
        "reader": eyes.reader,
        "touch": lambda: eyes.touch(path),
        "paper": lambda: eyes.paper(path, folder / "page.pdf"),
        "larger": lambda: eyes.larger_text(path),
    }
    if check not in ("touch", "paper", "larger"):  # which open it themselves
        width = {"phone": 375, "finger": 375, "axe phone": 375, "tablet": 768}.get(check, 1440)
        scheme = "dark" if check in ("dark", "forced", "axe dark") else "light"
        eyes.open(path, width=width, scheme=scheme, forced=check == "forced")
    return measures[check]()


@pytest.mark.parametrize(("state", "check"), PAGES)
def test_nothing_is_wrong_with(
    state: str, check: str, eyes: Eyes, page_of: Callable[[str], Path], tmp_path: Path
) -> None:
    found = look(eyes, page_of(state), check, tmp_path)
    assert found == [], "\n".join(["", *found])


FIRST = {bad.check: wrong for wrong, bad in reversed(BAD.items())}
"""Look -> the bad page that proves it by day."""


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(wrong, marks=() if FIRST[bad.check] == wrong else pytest.mark.nightly, id=wrong.replace(" ", "_"))
        for wrong, bad in BAD.items()
    ],
)
def test_it_is_told_that_a_page_has(wrong: str, eyes: Eyes, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(page(BAD[wrong].body), encoding="utf-8")
    found = look(eyes, path, BAD[wrong].check, tmp_path)
    assert any(BAD[wrong].words in one for one in found), found
