"""A load that is no part of trexbench: one file that adds itself to the tables has documents, lists and histories."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from report_cases import unpacked
from tools import trexbench

NIGHTS = 14


def run(place: Path, *arguments: str, code: int = 0) -> str:
    done = trexbench(place, *arguments, loads=("dns_load",))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two weeks of nights of a simulated resolver."""
    folder = tmp_path_factory.mktemp("dns")
    run(folder, "dns", "--dut", "lab-linux", *began(1), "--nights", str(NIGHTS))
    return folder


def began(day: int) -> tuple[str, ...]:
    return "--seed", str(day), "--date", f"2026-03-{day:02}"


def test_its_runs_are_listed_shown_and_exported(place: Path) -> None:
    listed = json.loads(run(place, "results", "list", "--json"))["runs"]
    assert len(listed) == NIGHTS and {one["cell"]["kind"] for one in listed} == {"dns"}
    assert all(18_900 < one["answered_qps"] < 21_000 and one["total_pps"] is None for one in listed)
    table = run(place, "results", "list")
    assert table.count("lab-linux  a.test dns") == NIGHTS == table.count(" kqueries/s") and "pps" not in table
    assert "queries/s answered" in run(place, "results", "show", "--picture", "dns.png")
    assert (place / "dns.png").read_bytes().startswith(b"\x89PNG")
    document = json.loads(run(place, "results", "show", "--json"))
    assert document["schema"] == "trexbench/dns" and 18_900 < document["answered_qps"] < 21_000


def test_its_nights_are_judged(place: Path, tmp_path: Path) -> None:
    assert "As usual" in run(place, "regress")
    slower = tmp_path / "slower"
    shutil.copytree(place, slower)
    run(slower, "dns", "--dut", "lab-linux", *began(NIGHTS + 1), "--nights", "3", "--capacity", "9000")
    told = run(slower, "regress", code=3)
    assert "slower since 15 March" in told and "answered" in told and "kqueries/s" in told and "pps" not in told


def test_two_of_its_runs_are_compared(place: Path) -> None:
    first, *_, last = sorted(str(path) for path in place.glob("results/*/*/*.json"))
    text = run(place, "results", "compare", first, last)
    assert "lab-linux" in text and text.count(" kqueries/s") == 2 and "pps" not in text
    (cell,) = json.loads(run(place, "results", "compare", first, last, "--json"))["cells"]
    assert 18_900 < cell["first_answered_qps"] < 21_000 and cell["verdict"] == "same", "less than 1 % apart"


def test_the_page_has_its_section_table_and_plot(place: Path) -> None:
    for words in (("page.html",), ("page.md",), ("tables", "--format", "csv")):
        run(place, "report", "-o", *words)
    page = (place / "page.html").read_text()
    table = (place / "tables" / "maximum-rate-absolute.csv").read_text()
    assert "queries/s" in table and "pps" not in table
    assert '<section id="dns">' in page and '<a href="#dns">DNS</a>' in page and "not of packets" not in page
    data = unpacked(page.partition('id="data">')[2].partition("</script>")[0])
    (plot,) = data["figures"]["dns"]
    (line,) = plot["lines"]
    assert len(line["y"]) == 40 and 19_000 < max(line["y"]) < 21_000
    assert "## DNS over UDP" in (place / "page.md").read_text()
    assert "lab-linux a.test" in (place / "tables" / "dns.csv").read_text()


def test_its_suite_is_measured_and_judged_at_night(tmp_path: Path) -> None:
    suite = tmp_path / "dns.yaml"
    suite.write_text("method: dns\nduts: [lab-linux]\nmodes: [a.test]\ndns: {hold: 2s, rates: [10000, 15000, 25000]}\n")
    assert json.loads(run(tmp_path, "suite", "plan", str(suite), "--sim", "--json"))["expected_s"] == 0.1
    said = run(tmp_path, "nightly", str(suite), "--sim")
    assert "15000 queries/s answered" in said and "1 of 1 cells measured" in said
    (one,) = json.loads(run(tmp_path, "results", "list", "--json"))["runs"]
    assert one["suite"] == "dns" and one["cell"]["mode"] == "a.test" and one["cell"]["simulated"]
    assert "a.test" in (tmp_path / "results" / "report.html").read_text()


def test_without_the_load_its_runs_are_problems_and_no_figures(place: Path) -> None:
    found = json.loads(trexbench(place, "results", "list", "--json").stdout)
    assert found["runs"] == [] and len(found["problems"]) == NIGHTS
