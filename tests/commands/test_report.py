"""``trexbench report`` as a whole: its forms, what it says of regressions, of damaged documents and of bad requests."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from report_cases import Elements, make_row, make_run, unpacked
from report_nights import CELLS, store_night, store_slower_nights, store_three_nights
from verbs import run

from trexbench.review.report import load_older


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_three_nights(tmp_path_factory.mktemp("report") / "results")


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_slower_nights(tmp_path_factory.mktemp("slower") / "results")


def data_of(page: str) -> Any:
    """Return the data of the plots."""
    return unpacked(page.partition('id="data">')[2].partition("<")[0])


def test_the_page_is_one_file_of_bearable_size(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run("report", "--results", results, "-o", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert 500_000 < len(text) < 1_500_000
    assert "nightly, night of 2026-11-20" in text and "linux did not answer" in text
    assert "999999-x-uni.json" in text and "Bidirectional" in text
    assert [one.name for one in page.parent.iterdir()] == ["report.html"]


def test_several_suites_are_on_one_page_with_the_table_of_the_last(tmp_path: Path) -> None:
    for day, (suite, cell) in enumerate(zip(("first", "second"), CELLS[::4], strict=True), 19):
        store_night(tmp_path / "results", f"2026-11-{day}", [cell], suite=suite)
    assert run("report", "--results", tmp_path / "results", "-o", tmp_path / "report.html").code == 0
    words = Elements((tmp_path / "report.html").read_text()).words
    assert "first, second \u00b7 2026-11-20 \u00b7 2 cells, 2 nights" in words and "Details of 2 runs" in words
    assert "Not in this table: first (1 cell);" in words


def test_another_night_can_be_the_tables(results: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.md"
    assert run("report", "--results", results, "--night", "2026-11-19", "-o", path).code == 0
    text = path.read_text()
    assert "night of 2026-11-19" in text and "did not answer" not in text
    assert text.startswith("# 8 cells measured; too early to judge: needs 7 nights, has 2\n"), "as it was then"


def test_a_regression_is_told_in_every_form(slower: Path, tmp_path: Path) -> None:
    assert all(run("report", "--results", slower, "-o", tmp_path / f"r.{form}").code == 0 for form in ("html", "md"))
    text = (tmp_path / "r.md").read_text()
    (share,) = re.findall(r"\*\*regression\*\*: vpp (33\.\d) % slower since 10 November \(1 cell\)", text)
    assert text.startswith("# vpp is 33 % slower since 10 November\n") and "nothing that was read back differs" in text
    page = (tmp_path / "r.html").read_text()
    assert '<article class="card bad">' in page
    documents = [tmp_path / unquote(one) for one in re.findall(r'<a href="(\./[^"]*\.json)"', page)]
    assert len(documents) == 2 and all(one.is_file() for one in documents), "before and now"
    (mark,) = data_of(page)["figures"]["trends"][0]["lines"][0]["marks"]
    assert (mark["words"], mark["x"]) == (f"▼ -{share} %", 9) and f"maximum rate -{share} %" in mark["text"]


def test_an_older_night_whose_document_is_damaged_is_left_out_and_named(slower: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(slower, results)
    document = next((results / "2026-11-09").glob("*/*.json"))
    document.write_text(document.read_text().replace('"opackets":', '"opakets":', 1))
    code, _, said = run("report", "--results", results, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert code == 0 and said.count("\n") == 1 and str(document) in said and "wrong kind" in said
    kept = {line["night"] for line in data_of(page)["figures"]["ramps"][0]["lines"] if "older" in line["tags"]}
    assert document.name in page and kept == {"2026-11-11, the night before", "2026-11-08, before the change"}


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
        (("--suite", "nightlie"), "is of nightlie: `trexbench results list`"),
        (("--dut", "nobody"), "is of nobody"),
        (("-o", "/proc/report.html"), "/proc/report.html"),
        (("--format", "csv", "-o", "/dev/null"), "/dev/null is not a directory: name one for the tables"),
    ],
)
def test_what_cannot_be_done_is_one_line(results: Path, arguments: tuple[str, ...], words: str) -> None:
    code, _, said = run("report", "--results", results, *arguments)
    assert code != 0 and words in said.splitlines()[-1]
