"""``trexbench nightly`` as cron runs it: what is measured, judged, reported, kept, told; with which exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tools import ROOT, folder_with, succeed, trexbench

from suites import ONE, TWO, chat, without_twin
from trexbench.config.suite import Instead
from trexbench.core.errors import ConfigError
from trexbench.core.history.night import CellState
from trexbench.results.nights import load_nights
from trexbench.session.keep import Output
from trexbench.session.options import Setup
from trexbench.suite.night import NightOptions
from trexbench.suite.nightly import Nightly


def relabelled(folder: Path, suite: str | None) -> Path:
    """A run of the night once more, as another suite's, or as nobody's."""
    found = min(folder.glob("results/*/netgate-vpp/*.json"))
    run = json.loads(found.read_text())
    del run["command"]["suite"], run["command"]["night"]
    if suite is not None:
        run["command"] |= {"suite": suite, "night": "2026-11-01"}
    path = found.with_name(f"010000-{suite}.json")
    path.write_text(json.dumps({**run, "id": f"{suite}"}))
    return path


def test_a_night_leaves_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_with(tmp_path, tiny=ONE + "keep_nights: 2\n")
    with chat() as (url, told):
        monkeypatch.setenv("TREXBENCH_WEBHOOK", url)
        for date in ("2026-11-01", "2026-11-02", "2026-11-03"):
            done = trexbench(tmp_path, "nightly", "tiny", "--sim", "--date", date, "--prometheus", "out/x.prom")
            assert done.returncode == (9 if date == "2026-11-01" else 0), done.stderr
            (tmp_path / "out").mkdir(exist_ok=True)
            if date == "2026-11-01":
                others = [relabelled(tmp_path, "other"), relabelled(tmp_path, None)]
            assert "T0psecret" not in done.stdout + done.stderr
    assert [body["text"].splitlines()[1] for body in told] == [
        f"tiny, night of 2026-11-0{day} (simulated): 1 of 1 cells measured" for day in (1, 2, 3)
    ]
    assert [night.night for night in load_nights(tmp_path / "results", pytest.fail)] == ["2026-11-02", "2026-11-03"]
    assert len(list(tmp_path.glob("results/*/netgate-vpp/*.json"))) == 2 + len(others)
    assert all(path.exists() for path in others), "as old as those that went, and another suite's, or nobody's"
    page = (tmp_path / "results" / "report.html").read_text()
    assert "netgate-vpp" in page and "2026-11-03" in page
    pages = {path.name for path in (tmp_path / "results").glob("report-*.html")}
    assert pages == {"report-2026-11-02-tiny.html", "report-2026-11-03-tiny.html"}
    linked = re.findall(r'href="(report-[^"]+|2026[^"]+json)"', page)
    assert "report-2026-11-02-tiny.html" in linked and "report-2026-11-03-tiny.html" not in linked
    assert len(linked) > 1 and all((tmp_path / "results" / one).is_file() for one in linked)
    gauges = (tmp_path / "out" / "x.prom").read_text()
    assert len(re.findall(r"^trexbench_maximum_pps{", gauges, re.MULTILINE)) == 1
    assert done.stdout.startswith("1 cell measured; too early to judge: needs 7 nights, has 3")
    strict = trexbench(tmp_path, "nightly", "tiny", "--sim", "--date", "2026-11-01", "-q", "--strict", "--json")
    values = json.loads(strict.stdout)
    assert values["exit_code"] == values["judgement"]["exit_code"] == 4 and len(values["night"]["cells"]) == 1
    assert strict.returncode == 4 and "the webhook failed" in strict.stderr and "T0psecret" not in strict.stderr
    assert "the night of 2026-11-03, which is judged here, is later than this one" in strict.stderr


def test_a_night_that_cannot_be_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_with(tmp_path, broken=ONE.replace("64b", "64bb"))
    with chat() as (url, told):
        monkeypatch.setenv("TREXBENCH_WEBHOOK", url)
        done = trexbench(tmp_path, "nightly", "broken", "--sim", "--prometheus", "x.prom", "--json")
    assert (
        done.returncode == 2 and "broken.yaml:3: modes[0]" in done.stderr and not json.loads(done.stdout)["judgement"]
    )
    (night,) = load_nights(tmp_path / "results", pytest.fail)
    assert night.suite == "broken" and night.cells == () and "modes[0]" in str(night.error) and night.finished
    assert "unknown mode" in told[0]["text"]
    page = (tmp_path / "results" / "report.html").read_text()
    assert re.search(r"<h1>The night of [^<]* was not run: [^<]*broken\.yaml:3: modes\[0\]", page)
    assert 'trexbench_night_exit_code{simulated="true",suite="broken"} 2.0' in (tmp_path / "x.prom").read_text()


def test_failed_cells_decide_the_exit_code_and_the_rest_is_reported(tmp_path: Path) -> None:
    without_twin(tmp_path)
    folder_with(tmp_path, odd=ONE.replace("[{", "[bare, {"))
    done = trexbench(tmp_path, "nightly", "odd", "--sim", "-q")
    assert done.returncode == 2, done.stderr
    assert "describes no twin" in done.stderr and "failed" in done.stdout
    assert "netgate-vpp" in (tmp_path / "results" / "report.html").read_text()


def test_an_unfinished_night_is_gone_on_with(tmp_path: Path) -> None:
    folder_with(tmp_path, tiny=TWO)
    trexbench(tmp_path, "suite", "run", "tiny", "--sim", "-q")
    (path,) = tmp_path.glob("results/nights/*.json")
    night = json.loads(path.read_text())
    night["finished"], night["cells"][1] = None, {**night["cells"][1], "state": "waiting", "attempts": []}
    path.write_text(json.dumps(night))
    done = succeed(tmp_path, "nightly", "tiny", "--sim")
    assert "cell 2 of 2" in done.stderr and "cell 1 of 2" not in done.stderr
    (resumed,) = load_nights(tmp_path / "results", pytest.fail)
    assert [cell.state for cell in resumed.cells] == [CellState.DONE] * 2 and resumed.started == night["started"]


@pytest.mark.parametrize(
    ("webhook", "gauges", "words"),
    [("gopher://T0psecret", "x.prom", "is not an HTTP address"), ("", "gauges.txt", "end in .prom")],
)
def test_what_cannot_be_told_to_others_is_refused_before_anything_runs(
    webhook: str, gauges: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_with(tmp_path, tiny=TWO)
    monkeypatch.setenv("TREXBENCH_WEBHOOK", webhook)
    done = trexbench(tmp_path, "nightly", "tiny", "--sim", "--prometheus", gauges)
    assert done.returncode == 2 and words in done.stderr and "T0psecret" not in done.stderr
    assert not (tmp_path / "results").exists()


def test_where_no_night_can_be_kept_the_webhook_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_with(tmp_path, tiny=TWO)
    (tmp_path / "results").write_text("a file")
    with chat() as (url, told):
        monkeypatch.setenv("TREXBENCH_WEBHOOK", url)
        done = trexbench(tmp_path, "nightly", "tiny", "--sim", "-q")
    assert done.returncode == 9 and "results/nights cannot be written" in done.stderr
    assert len(told) == 1 and "results/nights cannot be written" in told[0]["text"]


@pytest.mark.parametrize(
    ("name", "only", "dut", "suite"),
    [
        ("lab-v1.2", (), (), "lab-v1.2"),
        ("suites/x.yaml", ("nosuch",), (), "x"),
        ("tiny", (), ("./box.yaml",), "tiny"),
        ("tiny", (), ("./nosuch.yaml",), None),
        ("nosuch", (), (), None),
        ("suites/nosuch.yaml", (), (), None),
        ("tiny", ("nosuch",), (), None),
        ("a<b", (), (), None),
        ("", (), (), None),
    ],
)
def test_a_night_that_cannot_be_is_kept_under_its_suites_name_unless_that_is_mistyped(
    name: str, only: tuple[str, ...], dut: tuple[str, ...], suite: str | None, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    broken = TWO.replace("64b", "64bb")
    (tmp_path / "box.yaml").write_text("driver: nosuch\n")
    folder_with(tmp_path, tiny=TWO, x=broken, **{"lab-v1.2": broken})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREXBENCH_SUITES", str(tmp_path / "suites"))
    options = NightOptions(tmp_path, Setup(sim=True), Output(), lambda _: None, instead=Instead(dut=dut))
    end = Nightly(name, options, only=only)
    if suite is None:
        with pytest.raises(ConfigError, match=r"suite|no cell of tiny matches nosuch|nosuch\.yaml"):
            end.run()
    else:
        end.run()
        assert end.code == 2
    kept = [night.suite for night in load_nights(tmp_path, pytest.fail)]
    assert kept == ([] if suite is None else [suite])


def test_a_step_that_fails_unforeseen_stops_no_other() -> None:
    warnings: list[str] = []
    end = Nightly("any", NightOptions(Path("results"), Setup(sim=True), Output(warn=warnings.append), warnings.append))

    def break_down() -> None:
        raise ZeroDivisionError("of nothing")

    end.step("judge", break_down)
    assert end.code == 1 and len(end.findings) == 1 and end.findings[0].startswith("judge: ZeroDivisionError")
    assert warnings == end.findings


def test_the_suite_of_the_document(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "nightly.md").read_text(encoding="utf-8")
    (suite,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    folder_with(tmp_path, shown=suite)
    planned = succeed(tmp_path, "suite", "plan", "shown")
    assert planned.stdout.startswith("shown: 32 cells"), planned.stderr
