"""The report's page in all its states, as an eye, a keyboard, a finger, a screen reader and a printer meet it.

Below ``SEEN`` stands what is looked at in which state; the measures themselves are proved by pages that are bad on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import find_chromium, open_chromium
from eyes import Eyes
from page_states import STATES

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt install chromium")

EVERY = ("silent", "axes", "layout", "light", "dark", "reader")
SEEN = {name: EVERY for name in STATES} | {
    "one_run": (*EVERY, "tablet", "phone", "choices", "larger", "paper"),
    "one_night": (*EVERY, "phone", "choices"),
    "change": (*EVERY, "tablet", "phone", "choices", "larger", "keyboard", "touch", "paper"),
    "tcp": (*EVERY, "tablet", "phone", "choices", "larger", "keyboard", "touch", "paper"),
    "wans": (*EVERY, "phone", "paper"),
    "searches": (*EVERY, "phone", "paper"),
    "simulated": (*EVERY, "choices", "keyboard", "paper"),
    "failed": (*EVERY, "phone", "paper"),
    "year": ("silent", "axes", "layout", "light", "phone"),
}
"""State -> what of it is looked at."""
PAGES = [(state, check) for state, checks in SEEN.items() for check in checks]


@pytest.fixture(scope="module")
def eyes() -> Iterator[Eyes]:
    assert CHROMIUM is not None
    with open_chromium(CHROMIUM) as page:
        yield Eyes(page)


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A state's page, made when it is asked for first."""
    made: dict[str, Path] = {}

    def of(state: str) -> Path:
        if state not in made:
            made[state] = STATES[state](tmp_path_factory.mktemp(state))
        return made[state]

    return of


def look(eyes: Eyes, path: Path, check: str, folder: Path) -> list[str]:
    if check == "touch":
        return eyes.touch(path)
    if check == "paper":
        return eyes.paper(path, folder / "page.pdf")
    if check == "larger":
        return eyes.larger_text(path)
    eyes.open(path, width={"phone": 375, "tablet": 768}.get(check, 1440), scheme="dark" if check == "dark" else "light")
    if check in ("light", "dark"):
        return eyes.contrast()
    if check in ("layout", "tablet", "phone"):
        return eyes.layout()
    measures: dict[str, Callable[[], list[str]]] = {
        "silent": lambda: eyes.noise(path),
        "axes": lambda: eyes.told("axes"),
        "choices": eyes.choices,
        "keyboard": eyes.keyboard,
        "reader": eyes.reader,
    }
    return measures[check]()


@pytest.mark.parametrize(("state", "check"), PAGES, ids=lambda one: one)
def test_nothing_is_wrong_with(
    state: str, check: str, eyes: Eyes, page_of: Callable[[str], Path], tmp_path: Path
) -> None:
    found = look(eyes, page_of(state), check, tmp_path)
    assert found == [], "\n".join(["", *found])


READY = "<script>document.documentElement.dataset.ready = '1'</script>"
PLOT = "<div class='plot' id='plot-x' role='img' aria-label='A plot' aria-description='Of figures'>{}</div>"
HEAD = "<!doctype html><html lang='en'><title>x</title><body><main><h1>Figures</h1>"
BAD = {
    "overlapping labels": (
        "layout",
        PLOT.format("<svg width='200' height='99'><text x='9' y='30'>10 Mpps</text><text x='25' y='34'>20 Mpps</text></svg>"),
        '"10 Mpps" and "20 Mpps" share',
    ),
    "a cell under another": ("layout", "<p>one two</p><p style='margin-top:-30px'>three</p>", '"one two" and "three" share'),
    "a page too wide": ("layout", "<table style='width:3000px'><caption>c</caption><tr><td>x</table>", "wider than the screen"),
    "text cut off": ("layout", "<p style='width:40px;overflow:hidden;white-space:nowrap'>a long name</p>", "is cut by"),
    "a label outside its drawing": ("layout", "<svg width='60' height='40'><text x='30' y='20'>10 Mpps</text></svg>", "is cut"),
    "pale text": ("light", "<p style='color:#aaa'>figures</p>", '"figures" is 2.3 : 1, #aaaaaa on #ffffff'),
    "faded text": ("light", "<p style='opacity:.5;color:#333'>figures</p>", '"figures" is'),
    "a pale line": (
        "light",
        PLOT.format("<svg width='99' height='99'><path d='M0,0L90,90' style='stroke:#e69f00;fill:none'/></svg>"),
        "a line is 2.3 : 1, #e69f00 on #ffffff",
    ),
    "dark text on a dark ground": ("dark", "<p style='background:#14171a;color:#3a4149'>figures</p>", '"figures" is 1.7'),
    "an axis without numbers": (
        "axes",
        PLOT.format("<svg width='300' height='200'><text x='100' y='190'>1</text><text x='200' y='190'>2</text></svg>"),
        "its y axis has no number",
    ),
    "an empty plot": ("axes", PLOT.format(""), "#plot-x: nothing is drawn"),
    "a control that Tab cannot reach": ("keyboard", "<button tabindex='-1'>a</button><button>b</button>", 'not reach page button "a"'),
    "a focus that cannot be seen": ("keyboard", "<button style='outline:none'>a</button>", 'button "a": its focus cannot be seen'),
    "a focus behind a bar": (
        "keyboard",
        "<button>a</button><div style='position:fixed;inset:0;background:#fff'>bar</div>",
        'button "a": focused behind',
    ),
    "a trap": (
        "keyboard",
        "<button>a</button><button id='trap'>b</button><script>document.getElementById('trap').onkeydown = "
        "function (event) { event.preventDefault(); }</script><button>c</button>",
        'not reach page button "c"',
    ),
    "a fold that stays shut": (
        "keyboard",
        "<details><summary onkeydown='event.preventDefault()' onkeyup='event.preventDefault()'>more</summary>x</details>",
        "does not open or close",
    ),
    "a menu deaf to Escape": (
        "keyboard",
        "<details class='pick'><summary>DUTs</summary><label><input type='checkbox'> a</label></details>",
        "Escape does not close",
    ),
    "a control without a name": ("reader", "<input type='checkbox'>", "a checkbox has no name"),
    "a heading left out": ("reader", "<h3>deep</h3>", "heading 'deep' is of level 3 after one of level 1"),
    "a table without a name": ("reader", "<table><tr><th>a<tr><td>1</table>", "neither caption nor label"),
    "a plot without a description": ("reader", "<div class='plot' role='img' aria-label='A plot'>x</div>", "no description"),
    "buttons in a picture": ("reader", PLOT.format("<button>zoom</button>"), "1 controls stand inside a picture"),
    "a plot that eats swipes": (
        "touch",
        PLOT.format("<svg width='300' height='300' style='touch-action:none'><text x='9' y='9'>1</text></svg>")
        + "<p style='height:3000px'>far</p>",
        "a swipe over #plot-x does not scroll",
    ),
    "text that does not grow": ("larger", "<style>body { font-size: 16px }</style><p>figures</p>", "stays at 16 px"),
    "text that grows out of its box": (
        "larger",
        "<p style='height:1.2rem;width:20rem;overflow:hidden'>first line<br>second</p><style>html{font-size:16px} body{font-size:medium}</style>",
        '"first line" is cut',
    ),
    "pale print": ("paper", "<p style='color:#ccc'>figures</p>", "'figures' is printed pale"),
    "a dark sheet": ("paper", "<style>body{background:#000;color:#fff;height:900px}</style><p>figures</p>", "is not white"),
    "a warning that is not printed": ("paper", "<p>x</p><p class='doubt' hidden>lost frames</p>", "the warning 'lost frames' is not"),
    "words printed over others": ("paper", "<p>one two</p><p style='margin-top:-36px'>three</p>", "are printed over each other"),
}  # fmt: skip
"""What is wrong -> by which look it is told, a page that has it, and words of the sentence that tells it."""


@pytest.mark.parametrize("wrong", BAD, ids=lambda one: one.replace(" ", "_"))
def test_it_is_told_that_a_page_has(wrong: str, eyes: Eyes, tmp_path: Path) -> None:
    check, body, words = BAD[wrong]
    path = tmp_path / "bad.html"
    path.write_text(f"{HEAD}{body}</main>{READY}", encoding="utf-8")
    found = look(eyes, path, check, tmp_path)
    assert any(words in one for one in found), found


def test_a_console_that_speaks_and_a_request_are_told(eyes: Eyes, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(f"{HEAD}<img src='other.png' alt='x'><script>console.log('here')</script></main>{READY}")
    found = look(eyes, path, "silent", tmp_path)
    assert "the console said: here" in found and any("it asked for" in one and "other.png" in one for one in found)


@pytest.mark.parametrize("check", ["axes", "layout", "light", "keyboard", "reader", "larger", "paper"])
def test_a_good_page_passes(check: str, eyes: Eyes, tmp_path: Path) -> None:
    ticks = "".join(
        f"<text x='{x}' y='{y}' style='font-size:1em'>{x}</text>"
        for x, y in ((150, 290), (350, 290), (10, 40), (9, 200))
    )
    line = "<path d='M100,20L400,250' style='stroke:#0072b2;fill:none'/>"
    plot = PLOT.format(f"<svg width='500' height='300'>{ticks}{line}</svg>")
    table = "<table><caption>Rates</caption><tr><th scope='col'>DUT<tr><td>10</table>"
    body = f"<h2>Plot</h2>{plot}{table}<details><summary>more</summary><p>text</p></details><button>go</button>"
    path = tmp_path / "good.html"
    path.write_text(f"{HEAD}{body}</main>{READY}", encoding="utf-8")
    assert look(eyes, path, check, tmp_path) == []
