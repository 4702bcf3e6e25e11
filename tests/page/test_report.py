"""The page that ``trexbench report`` makes and serves, in a real browser: silent, drawn, alone, deaf to names."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from browser import Page
from report_cases import HOSTILE, ODD, make_run
from report_nights import CELLS, store_night, store_slower_nights, store_three_nights
from tools import begin
from verbs import run

from trexbench.core.history.cell import Cell
from trexbench.results.store import RunWriter

DRAWN = "document.querySelectorAll('#plot-ramps .scatterlayer .trace').length"
LEGEND = "document.querySelector('#plot-ramps .legend').textContent"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    results = store_three_nights(path.parent / "results")
    assert run("report", "--results", results, "-o", path).code == 0
    return path


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slower") / "report.html"
    results = store_slower_nights(path.parent / "results")
    assert run("report", "--results", results, "-o", path).code == 0
    return path


def elsewhere(chromium: Page, page: Path) -> list[str]:
    """Return the requests for anything but the page and the data written in it."""
    return [one for one in chromium.asked if one != page.as_uri() and not one.startswith("data:")]


def test_a_findings_link_shows_its_cell(slower: Path, chromium: Page) -> None:
    chromium.open(slower.as_uri())
    chromium.evaluate("document.getElementById('mode').value = ''")
    chromium.evaluate("document.querySelector('input[name=older][value=change]').checked = false")
    chromium.evaluate("document.querySelector('[data-show]').click()")
    assert chromium.evaluate("document.querySelector('input[name=older][value=change]').checked")
    assert chromium.evaluate("document.getElementById('mode').value") == "64b"
    assert chromium.evaluate("document.querySelectorAll('#plot-trends .shapelayer path').length") == 5
    assert chromium.said == []


def test_figures_of_a_change_are_folded_and_printed_unfolded(slower: Path, chromium: Page) -> None:
    chromium.open(slower.as_uri())
    content = "getComputedStyle(document.querySelector('#changes details'), '::details-content').contentVisibility"
    assert chromium.evaluate(content) == "hidden"
    chromium.call("Emulation.setEmulatedMedia", media="print")
    assert chromium.evaluate(content) == "visible", "without our script, too"


def test_older_nights_are_laid_over_the_latest_and_taken_away(slower: Path, chromium: Page) -> None:
    chromium.open(slower.as_uri())
    assert "2026-11-12, latest" in chromium.evaluate(LEGEND)
    assert "2026-11-09, before the change" in chromium.evaluate(LEGEND)  # from the first, for there is a change
    assert "2026-11-11" not in chromium.evaluate(LEGEND)
    box = "document.querySelector('input[name=older][value={}]')"
    chromium.evaluate(box.format("night") + ".closest('details').open = true")
    chromium.evaluate(box.format("night") + ".focus()")
    chromium.press(" ")
    assert "2026-11-11, the night before" in chromium.evaluate(LEGEND)
    for which in ("night", "change"):
        chromium.evaluate(box.format(which) + ".click()")
    assert "2026-11" not in chromium.evaluate(LEGEND)
    assert chromium.said == []


def test_latencies_are_drawn_and_have_a_trend(chromium: Page, page: Path) -> None:
    chromium.open(page.as_uri())
    assert chromium.evaluate("getComputedStyle(document.getElementById('plain')).display") == "none"
    lines = "document.getElementById('plot-latency').data.filter((one) => one.meta !== undefined).length"
    both = chromium.evaluate(lines)
    legend = "document.querySelector('#plot-latency .legend').textContent"
    assert both > 1 and all(words in chromium.evaluate(legend) for words in ("filled: mean", "with a dot: p99"))
    chromium.evaluate("document.getElementById('p99').click()")
    assert chromium.evaluate(lines) == both / 2 and "p99" not in chromium.evaluate(legend)
    chromium.choose(metric="latency")
    title = "document.getElementById('plot-trends').layout.annotations.slice(-1)[0].text"
    assert chromium.evaluate(title) == "latency, \u00b5s"
    assert chromium.said == []


def test_the_pointer_is_told_what_it_rests_on(chromium: Page, page: Path) -> None:
    chromium.open(page.as_uri())
    chromium.evaluate("document.getElementById('plot-ramps').scrollIntoView()")
    mark = "document.querySelector('#plot-ramps .scatterlayer .points path').getBoundingClientRect()"

    def point() -> None:
        """Again until it is told: the page may still move."""
        x, y = (chromium.evaluate(f"{mark}.{a} + {mark}.{b} / 2") for a, b in (("x", "width"), ("y", "height")))
        chromium.call("Input.dispatchMouseEvent", type="mouseMoved", x=x - 1, y=y)
        chromium.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    chromium.wait("document.querySelector('#plot-ramps .hoverlayer').textContent.includes('of line rate')", point)
    assert chromium.said == []


def test_names_cannot_run(chromium: Page, tmp_path: Path) -> None:
    results, path = tmp_path / "results", tmp_path / "report.html"
    cells = [Cell(ODD, ODD, bidir, None) for bidir in (False, True)]
    store_night(results, "2026-11-20", cells, description=HOSTILE, facts={HOSTILE: HOSTILE})
    bad = RunWriter(results, print).end(make_run(Cell(HOSTILE, HOSTILE, False, None), started="2026-11-20T03:00:00Z"))
    assert run("report", "--results", results, "-o", path).code == 0
    assert bad.name in path.read_text(), "a name that is none is refused by its file's"
    chromium.open(path.as_uri())
    assert chromium.evaluate(DRAWN) > 1
    assert chromium.evaluate("typeof window.canary") == "undefined"
    assert (
        chromium.evaluate("document.querySelectorAll('main img, main script, svg script, svg image, svg a').length")
        == 0
    )
    assert "&lt;script&gt;" in chromium.evaluate("document.querySelector('#plot-ramps .legend').textContent")
    assert "<script>" in chromium.evaluate("document.body.textContent")
    assert chromium.said == [] and elsewhere(chromium, path) == []


def test_if_escaping_failed_the_policy_would_still_hold(chromium: Page, page: Path, tmp_path: Path) -> None:
    """A page into which a script was put after all: it does not run, and Chromium says so."""
    broken = tmp_path / "broken.html"
    planted = "<main><script>window.canary = 1</script><img src='http://192.0.2.1/x.png' onerror='window.canary = 2'>"
    broken.write_text(page.read_text(encoding="utf-8").replace("<main>", planted, 1), encoding="utf-8")
    chromium.open(broken.as_uri())
    assert chromium.evaluate("typeof window.canary") == "undefined"
    assert any("Content Security Policy" in one for one in chromium.said)
    assert chromium.evaluate(DRAWN) > 1


def test_it_renews_itself_and_keeps_the_choice(chromium: Page, tmp_path: Path) -> None:
    results = tmp_path / "results"
    store_night(results, "2026-11-19", CELLS)
    process = begin(tmp_path, "report", "--watch")
    assert process.stderr is not None
    try:
        found = re.search(r"http://\S+/", process.stderr.readline())
        assert found is not None
        chromium.open(found[0])
        chromium.choose(mode="imix", traffic="bidir")
        version = chromium.evaluate("document.getElementById('now').dataset.version")
        assert chromium.evaluate("document.getElementById('now').hidden"), "no night is under way"
        store_night(results, "2026-11-20", CELLS)
        now = "document.getElementById('now') && document.documentElement.dataset.ready"
        chromium.wait(f"{now} && document.getElementById('now').dataset.version !== '{version}'")
        assert chromium.evaluate("document.body.textContent.includes('2026-11-20')")
        assert chromium.evaluate("document.getElementById('mode').value") == "imix"
        assert chromium.said == []
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        chromium.wait("document.getElementById('now').textContent.startsWith('No answer from trexbench')")
        assert {one for one in chromium.asked if not one.startswith((found[0], "data:"))} == set()
    finally:
        process.kill()
        process.communicate()
