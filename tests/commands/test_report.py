"""``trexbench report`` as a whole, and its page in a real browser: silent, drawn, alone, deaf to what names say."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import Page, find_chromium, open_chromium
from report_cases import HOSTILE, ODD, make_night, make_record, make_row, make_run, unpacked

from trexbench.cli.main import main
from trexbench.core.history.rows import Cell, row_of
from trexbench.results.nights import NightWriter
from trexbench.results.store import RunWriter
from trexbench.review.report import load_older

CHROMIUM = find_chromium()
CELLS = [
    Cell(dut, mode, bidir, None) for dut in ("linux", "vpp") for mode in ("64b", "imix") for bidir in (False, True)
]
DRAWN = "document.querySelectorAll('#plot-ramps .scatterlayer .trace').length"
browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: apt install chromium")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nights of eight cells; of the last one, one failed; and files that are nothing of the kind."""
    place = tmp_path_factory.mktemp("report") / "results"
    for at in ("2026-11-18", "2026-11-19", "2026-11-20"):
        store_night(place, at, CELLS, lost=CELLS[0] if at == "2026-11-20" else None)
    (place / "2026-11-20" / "vpp" / "999999-x-uni.json").write_text("{")
    return place


def store_night(
    results: Path, at: str, cells: list[Cell], lost: Cell | None = None, capacity_pps: float = 660e3, **facts: Any
) -> None:
    records = []
    for cell in cells:
        labels = {"mode": cell.mode, "rx_queues": None, "suite": "nightly", "night": at}
        timed_s = 3.0 if cell.dut == "vpp" else 0.0
        started = f"{at}T02:00:00Z"
        run = make_run(cell, command=labels, started=started, ramp_s=15.0, capacity_pps=capacity_pps, latency_s=timed_s)
        run = replace(run, dut={**run.dut, **facts})
        writer = RunWriter(results, print).begin(run)
        row = row_of(run, str(writer.end(run).relative_to(results)))
        records.append(make_record(row, f"{cell.dut} did not answer" if cell == lost else None))
    night = make_night(*records, at=at)
    NightWriter.begin(results, replace(night, finished=night.started))


def elsewhere(chromium: Page, page: Path) -> list[str]:
    """What was asked for besides the page and what is written in it."""
    return [one for one in chromium.asked if one != page.as_uri() and not one.startswith("data:")]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["report", *arguments])
    return int(ended.value.code or 0)


def data_of(page: str) -> Any:
    """Those of the plots."""
    return unpacked(page.partition('id="data">')[2].partition("<")[0])


@pytest.fixture(scope="module")
def page(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    assert run("--results", str(results), "-o", str(path)) == 0
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Page]:
    assert CHROMIUM is not None
    with open_chromium(CHROMIUM) as opened:
        yield opened


def test_the_page_is_one_file_of_bearable_size(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert 500_000 < len(text) < 1_500_000
    assert "nightly, night of 2026-11-20" in text and "linux did not answer" in text
    assert "999999-x-uni.json" in text and "Bidirectional" in text
    assert [one.name for one in page.parent.iterdir()] == ["report.html"]


def test_markdown_goes_to_standard_output(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--results", str(results), "--markdown", "-", "--dut", "vpp") == 0
    said = capsys.readouterr().out
    assert said.startswith("# trexbench") and "| 64b |" in said and "linux" not in said


def test_pictures_go_into_their_directory(results: Path, tmp_path: Path) -> None:
    assert run("--results", str(results), "--pictures", str(tmp_path / "new"), "--dut", "vpp") == 0
    assert len(list((tmp_path / "new").glob("ramps-*.svg"))) == 4 == len(list((tmp_path / "new").glob("trend-*.png")))


def test_tables_go_into_their_directory_as_csv(results: Path, tmp_path: Path) -> None:
    assert run("--results", str(results), "--csv", str(tmp_path / "new"), "--dut", "vpp") == 0
    names = {one.name for one in (tmp_path / "new").iterdir()}
    assert {"maximum-rate.csv", "ramps.csv", "latency.csv", "trends.csv"} <= names
    assert (tmp_path / "new" / "maximum-rate.csv").read_text().startswith("Direction,Traffic,")


def test_another_night_can_be_the_tables(results: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.md"
    assert run("--results", str(results), "--night", "2026-11-19", "--markdown", str(path)) == 0
    assert "night of 2026-11-19" in path.read_text() and "did not answer" not in path.read_text()


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve nights, a third slower on the last three."""
    results = tmp_path_factory.mktemp("slower") / "results"
    for day in range(1, 13):
        cell = Cell("vpp", "64b", False, None)
        store_night(results, f"2026-11-{day:02}", [cell], capacity_pps=(660e3 if day < 10 else 440e3) + 500 * (day % 3))
    return results


def test_a_regression_is_told_in_every_form(slower: Path, tmp_path: Path) -> None:
    assert run("--results", str(slower), "-o", str(tmp_path / "r.html"), "--markdown", str(tmp_path / "r.md")) == 0
    text = (tmp_path / "r.md").read_text()
    assert "**worse**: vpp 32.5 % slower since 10 November (1 cell)" in text
    assert "1 regression in 1 cell (2 figures)" in text and "nothing that was read back differs" in text
    page = (tmp_path / "r.html").read_text()
    assert '<article class="cause bad">' in page
    change = next(one["changes"] for one in data_of(page)["trends"] if one["changes"])[0]
    assert (change["metric"], change["x"]) == ("maximum rate", 9)


@browser
def test_a_findings_link_shows_its_cell(slower: Path, tmp_path: Path, chromium: Page) -> None:
    path = tmp_path / "r.html"
    assert run("--results", str(slower), "-o", str(path)) == 0
    chromium.said.clear()
    chromium.open(path.as_uri())
    chromium.evaluate("document.getElementById('mode').value = ''")
    chromium.evaluate("document.querySelector('input[name=older][value=change]').checked = false")
    chromium.evaluate("document.querySelector('[data-show]').click()")
    assert chromium.evaluate("document.querySelector('input[name=older][value=change]').checked")
    assert chromium.evaluate("document.getElementById('mode').value") == "64b"
    assert chromium.evaluate("document.querySelectorAll('#plot-trends .shapelayer path').length") == 5
    assert chromium.said == []


@browser
def test_figures_of_a_change_are_folded_and_printed_unfolded(slower: Path, tmp_path: Path, chromium: Page) -> None:
    path = tmp_path / "r.html"
    assert run("--results", str(slower), "-o", str(path)) == 0
    chromium.open(path.as_uri())
    content = "getComputedStyle(document.querySelector('#changes details'), '::details-content').contentVisibility"
    assert chromium.evaluate(content) == "hidden"
    chromium.call("Emulation.setEmulatedMedia", media="print")
    printed = chromium.evaluate(content)
    chromium.call("Emulation.setEmulatedMedia", media="")
    assert printed == "visible", "without our script, too"


LEGEND = "document.querySelector('#plot-ramps .legend').textContent"


@browser
def test_older_nights_are_laid_over_the_latest_and_taken_away(slower: Path, tmp_path: Path, chromium: Page) -> None:
    path = tmp_path / "r.html"
    assert run("--results", str(slower), "-o", str(path)) == 0
    chromium.said.clear()
    chromium.open(path.as_uri())
    assert "2026-11-12, latest" in chromium.evaluate(LEGEND)
    assert "2026-11-09, before the change" in chromium.evaluate(LEGEND)  # from the first, for there is a change
    assert "2026-11-11" not in chromium.evaluate(LEGEND)
    box = "document.querySelector('input[name=older][value={}]')"
    chromium.evaluate(box.format("night") + ".closest('details').open = true")
    chromium.evaluate(box.format("night") + ".focus()")
    for event in ("keyDown", "keyUp"):
        chromium.call(
            "Input.dispatchKeyEvent", type=event, key=" ", code="Space", text=" " if event == "keyDown" else ""
        )
    assert "2026-11-11, the night before" in chromium.evaluate(LEGEND)
    for which in ("night", "change"):
        chromium.evaluate(box.format(which) + ".click()")
    assert "2026-11" not in chromium.evaluate(LEGEND)
    assert chromium.said == []


def test_an_older_night_whose_document_is_damaged_is_left_out_and_named(
    slower: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    shutil.copytree(slower, results)
    document = next((results / "2026-11-09").glob("*/*.json"))
    document.write_text(document.read_text().replace('"opackets":', '"opakets":', 1))
    assert run("--results", str(results), "-o", str(tmp_path / "r.html")) == 0
    said, page = capsys.readouterr().err, (tmp_path / "r.html").read_text()
    assert said.count("\n") == 1 and str(document) in said and "wrong kind" in said
    kept = data_of(page)["older"]
    assert document.name in page and ["night"] in [one["why"] for one in kept]
    assert "2026-11-09" not in [one["night"] for one in kept]


def test_verdicts_of_an_older_night_that_were_edited_are_derived_anew(slower: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(slower, results)
    document = next((results / "2026-11-09").glob("*/*.json"))
    document.write_text(document.read_text().replace('"trials": [', '"trails": [', 1).replace('"dut"', '"link"'))
    for place in (slower, results):
        assert run("--results", str(place), "-o", str(tmp_path / f"{place.name}.html")) == 0
    one, other = ((tmp_path / f"{place.name}.html").read_text() for place in (slower, results))
    assert re.sub(r"made [0-9:\- ]+UTC", "", one) == re.sub(r"made [0-9:\- ]+UTC", "", other)


def test_an_older_night_whose_document_went_meanwhile_is_left_out_and_named(tmp_path: Path) -> None:
    latest, gone = make_row(), make_row(at="2026-11-19")
    problems: list[tuple[str, str]] = []
    said: list[str] = []
    runs = {latest.cell: make_run(latest.cell, started=latest.started)}
    assert load_older(tmp_path, [gone, latest], runs, [], problems, said.append) == {}
    assert [path for path, _ in problems] == [gone.path] and gone.path in said[0] and "No such file" in said[0]
    assert problems[0][1].startswith("No such file"), "the page has the path before it"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--results", "/nowhere"), "/nowhere: no such directory"),
        (("--night", "2020-01-01"), "no night of 2020-01-01"),
        (("--night", "last"), "'last' is not a date"),
        (("--since", "2026-3-1"), "'2026-3-1' is not a date"),
        (("--suite", "nightlie"), "is of nightlie: `trexbench results list`"),
        (("--dut", "nobody"), "is of nobody"),
        (("-o", "/proc/report.html"), "/proc/report.html"),
        (("--pictures", "/dev/null"), "/dev/null is not a directory: name one for the pictures"),
        (("--csv", "/dev/null"), "/dev/null is not a directory: name one for the tables"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    results: Path, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = arguments if "--results" in arguments else ("--results", str(results), *arguments)
    assert run(*given) != 0
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert words in said and "Traceback" not in said


@browser
def test_the_page_draws_its_plots_in_silence_and_asks_for_nothing(chromium: Page, page: Path) -> None:
    chromium.said.clear()
    chromium.asked.clear()
    chromium.open(page.as_uri())
    assert chromium.evaluate(DRAWN) > 2
    assert chromium.evaluate("document.querySelectorAll('#plot-trends .scatterlayer .trace').length") > 1
    assert chromium.evaluate("getComputedStyle(document.getElementById('plain')).display") == "none"
    assert chromium.said == [] and elsewhere(chromium, page) == []


@browser
def test_latencies_are_drawn_and_have_a_trend(chromium: Page, page: Path) -> None:
    chromium.said.clear()
    chromium.open(page.as_uri())
    lines = "document.querySelectorAll('#plot-latency .scatterlayer .trace').length"
    both = chromium.evaluate(lines)
    assert both == 2 * chromium.evaluate("document.querySelectorAll('#plot-latency .legend .traces').length") > 0
    chromium.evaluate("document.getElementById('p99').click()")
    assert chromium.evaluate(lines) == both / 2
    choose = "(function (one) { one.value = 'latency'; one.dispatchEvent(new Event('change', { bubbles: true })); })"
    chromium.evaluate(f"{choose}(document.getElementById('metric'))")
    assert chromium.evaluate("document.querySelector('#plot-trends .ytitle').textContent") == "latency, \u00b5s"
    assert chromium.said == []


@browser
def test_choices_redraw_and_a_change_of_ground_does_too(chromium: Page, page: Path) -> None:
    chromium.said.clear()
    chromium.prefer("light")
    chromium.open(page.as_uri())
    few = chromium.evaluate(DRAWN)
    choose = "(function (id, value) { var one = document.getElementById(id); one.value = value;"
    choose += " one.dispatchEvent(new Event('change', { bubbles: true })); })"
    chromium.evaluate(f"{choose}('mode', '')")
    chromium.evaluate(f"{choose}('traffic', '')")
    assert chromium.evaluate(DRAWN) > few
    chromium.evaluate(f"{choose}('unit', 'pps')")
    assert chromium.evaluate("document.querySelector('#plot-ramps .xtitle').textContent") == "offered, Mpps"
    chromium.evaluate("document.querySelector('input[name=column]').click()")
    assert "linux" not in chromium.evaluate("document.querySelector('#plot-ramps .legend').textContent")
    colour = "getComputedStyle(document.querySelector('#plot-ramps .xtitle')).fill"
    before = chromium.evaluate(colour)
    chromium.prefer("dark")
    chromium.wait(f"{colour} !== '{before}'")
    chromium.prefer("light")
    assert chromium.said == []


@browser
def test_the_pointer_is_told_what_it_rests_on(chromium: Page, page: Path) -> None:
    chromium.said.clear()
    chromium.size(1280, 900)
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


@browser
@pytest.mark.parametrize("width", [390, 800, 1600])
def test_nothing_sticks_out_of_the_screen(chromium: Page, page: Path, width: int) -> None:
    chromium.size(width, 900, phone=width < 500)
    chromium.open(page.as_uri())
    assert chromium.evaluate("document.documentElement.scrollWidth") <= width
    chromium.size(1280, 900)


@browser
def test_it_prints(chromium: Page, page: Path) -> None:
    chromium.said.clear()
    chromium.open(page.as_uri())
    pdf = base64.b64decode(chromium.call("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF") and chromium.said == []


@browser
def test_names_cannot_run(chromium: Page, tmp_path: Path) -> None:
    results, path = tmp_path / "results", tmp_path / "report.html"
    cells = [Cell(ODD, ODD, bidir, None) for bidir in (False, True)]
    store_night(results, "2026-11-20", cells, description=HOSTILE, facts={HOSTILE: HOSTILE})
    bad = RunWriter(results, print).end(make_run(Cell(HOSTILE, HOSTILE, False, None), started="2026-11-20T03:00:00Z"))
    assert run("--results", str(results), "-o", str(path)) == 0
    assert bad.name in path.read_text(), "a name that is none is refused by its file's"
    chromium.said.clear()
    chromium.asked.clear()
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


@browser
def test_if_escaping_failed_the_policy_would_still_hold(chromium: Page, page: Path, tmp_path: Path) -> None:
    """A page into which a script was put after all: it does not run, and Chromium says so."""
    broken = tmp_path / "broken.html"
    planted = "<main><script>window.canary = 1</script><img src='http://192.0.2.1/x.png' onerror='window.canary = 2'>"
    broken.write_text(page.read_text(encoding="utf-8").replace("<main>", planted, 1), encoding="utf-8")
    chromium.said.clear()
    chromium.asked.clear()
    chromium.open(broken.as_uri())
    assert chromium.evaluate("typeof window.canary") == "undefined"
    assert any("Content Security Policy" in one for one in chromium.said)
    assert chromium.evaluate(DRAWN) > 1
