"""``trexbench results`` and ``compare`` as a user calls them: what they find, what they remove, what they refuse."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nights import changed
from runs import World, make_plan, make_result
from test_nights import NIGHT
from verbs import empty_directory, run  # noqa: F401

from trexbench.cli.run import cost_words
from trexbench.core.errors import BenchError, GeneratorLost
from trexbench.core.history.rows import RunRow
from trexbench.core.result import RunResult
from trexbench.report.listing import run_sheet
from trexbench.report.run.loadtest import to_loadtest
from trexbench.report.sheet import figure, format_sheet, make_sheet, of_count, of_pps, to_values
from trexbench.results.columns import column_names
from trexbench.results.index import INDEX_FILE, open_index
from trexbench.results.nights import NightWriter, find_nights
from trexbench.results.prune import find_old, remove
from trexbench.results.store import RunWriter
from trexbench.session.keep import Measured
from trexbench.session.series import Series

PLAN = make_plan(ramp_s=20.0, confirm_s=0.0)
pytestmark = pytest.mark.usefixtures("empty_directory")
SLOW, FAST = (make_result(PLAN, World(capacity_pps=rate)) for rate in (6e5, 9e5))


def store(day: int, dut: str = "lab-linux", run: RunResult = SLOW, **command: Any) -> Path:
    changes = {"id": f"{day}-{dut}", "started": f"2026-03-{day:02d}T12:00:00Z", "dut": {"name": dut}}
    told = {"verb": "ramp", "mode": "var2-64b", **command}
    return RunWriter(Path("results"), print).end(replace(run, command=told, **changes))  # type: ignore[arg-type]


def said(*arguments: str, code: int = 0) -> tuple[str, str]:
    found = run(*arguments)
    assert found.code == code, found.err
    return found.out, found.err


def test_the_list_is_newest_first_and_names_what_cannot_be_read() -> None:
    for day in (1, 3, 2):
        store(day)
    store(2, dut="odd & '{{7*7}}'")
    bad = Path("results/2026-03-01/lab-linux/bad.json")
    bad.write_text("{")
    out, err = said("results", "list")
    lines = out.splitlines()
    assert [line[:10] for line in lines[1:]] == ["2026-03-03", "2026-03-02", "2026-03-02", "2026-03-01"]
    assert "odd & '{{7*7}}'" in out and "600.9 kpps" in out and "simulated" in lines[1]
    assert err.startswith(f"not read: {bad}: not JSON") and len(err.splitlines()) == 1
    out, _ = said("results", "list", "--dut", "lab-linux", "--mode", "64b", "--since", "2026-03-02", "--limit", "1")
    assert len(out.splitlines()) == 2 and "2026-03-03" in out
    values = json.loads(said("results", "list", "--json")[0])
    assert len(values["runs"]) == 4 and values["runs"][0]["cell"]["mode"] == "var2-64b"
    assert [problem["path"] for problem in values["problems"]] == ["2026-03-01/lab-linux/bad.json"]
    assert "no such run in" in said("results", "list", "--dut", "nobody")[0]
    assert "no such directory" in said("results", "list", "--results", str(bad), code=9)[1]


@pytest.mark.parametrize("width", [80, 140])
def test_list_and_compare_fit_a_terminal_and_leave_out_no_rate(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    store(1, dut="netgate-linux", variant="hugepages-1g"), store(2, dut="netgate-vpp", variant="hugepages-1g", run=FAST)
    monkeypatch.setenv("COLUMNS", str(width))
    listed = said("results", "list")[0]
    sets = said("results", "compare", "netgate-linux", "netgate-vpp")[0]
    runs = said("results", "compare", *(str(Path("results", row.path)) for row in rows()))[0]
    for text in (listed, sets, runs):
        assert max(map(len, text.splitlines())) <= width, text
        assert "600.9 kpps" in text and "901.0 kpps" in text, "rates stay whole"
    for words in ("2026-03-02 12:00", "2026-03-01 12:00", "netgate-linux", "hugepages-1g", "var2-64b", "dut,"):
        assert words in listed
    assert f"left out for want of room: {'of line' if width < 100 else 'document'}" in listed and "document" in listed
    assert listed.count("simulated") == 2 and "faster" in sets and "faster" in runs
    assert "+49.9 %" in sets and "+49.9 %" in runs


def test_a_column_of_text_stays_legible_however_narrow_the_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    store(1, dut="netgate-linux")
    monkeypatch.setenv("COLUMNS", "40")
    assert said("results", "list")[0].splitlines()[1].split()[2:4] == ["netgate-", "var2-64b"]


@pytest.mark.parametrize("columns", ["", "200"])
def test_a_pipe_and_a_wide_terminal_have_every_column(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store(1, variant="v" * 20)
    monkeypatch.setenv("COLUMNS", columns)
    listed = said("results", "list")[0]
    assert len(listed.splitlines()) == 2 and "left out" not in listed
    assert listed.splitlines()[1].endswith(str(path.relative_to("results"))) and "v" * 20 in listed
    for head in ("way", "of line", "loss in the hold", "document"):
        assert head in listed


def test_a_run_that_was_killed_before_it_saw_anything_is_listed_without_a_rate() -> None:
    store(1)
    (whole,) = rows()
    cut = changed(whole, status="running", total_pps=0.0, line_share=0.0, at_least=True)
    (_, found), (_, lost) = (format_sheet(run_sheet([row])) for row in (whole, cut))
    assert "600.9 kpps" in found and "pps" not in lost and "running" in lost
    assert format_sheet(run_sheet([changed(whole, at_least=True)]))[1].count(">= ") == 2, "rate and share"


def test_a_picture_that_cannot_be_written_is_a_failure() -> None:
    path = store(1)
    out, err = said("results", "show", str(path), "--picture", "nowhere/x.png", code=9)
    assert out == "" and "nowhere/x.png: No such file or directory" in err


def test_a_directory_that_is_not_there_is_said_to_be_so() -> None:
    for verb in (["query", "select * from runs"], ["list"], ["prune", "--keep-nights", "1"]):
        out, err = said("results", *verb, "--results", "typo", code=9)
        assert out == "" and err == "trexbench: typo: no such directory: name the results with --results\n"


def test_without_costs_and_without_a_failure_efficiency_has_no_answer() -> None:
    lost = GeneratorLost("trex1 does not answer")
    assert cost_words(Series([Measured(SLOW, lost, None)], [("rate 1 %", lost)]), False, io.StringIO()) == ""
    with pytest.raises(BenchError, match="cost is unknown"):
        cost_words(Series([Measured(SLOW, None, None)], []), False, io.StringIO())


def test_a_query_in_three_forms() -> None:
    store(1, dut='a,"b"')
    sql = "select dut, round(total_pps / 1000) as kpps, night from runs"
    assert said("results", "query", sql)[0].splitlines() == ["dut    kpps   night", 'a,"b"  601.0  -']
    assert said("results", "query", "--csv", sql)[0] == 'dut,kpps,night\n"a,""b""",601.0,\n'
    table = json.loads(said("results", "query", "--json", sql)[0])
    assert table == [{"dut": 'a,"b"', "kpps": 601.0, "night": None}]
    for wrong in ("drop view runs", "", " ; ", "/* nothing */", "select 1; select 2", "select nope from runs"):
        out, err = said("results", "query", wrong, code=2)
        assert out == "" and "SELECT" in err and "query --help` lists" in err and ".:" not in err
        assert len(err.splitlines()) == 1
    assert {*column_names()} <= {*said("results", "query", "--help")[0].replace(";", "").split()}


# Pruning


def prune(results: Path, keep_nights: int, warn: Callable[[str], None] = print) -> list[Path]:
    return remove(results, find_old(results, keep_nights, None, warn), warn)


def files() -> list[str]:
    return sorted(str(path) for path in Path("results").rglob("*") if not path.is_dir() and path.name != INDEX_FILE)


def test_only_what_is_old_goes_with_its_pictures_and_only_when_said() -> None:
    old = store(1)
    # the last one of a run that was killed
    for made in (".png", "-efficiency.png", "-sizes.png", ".loadtest.json", ".samples.jsonl"):
        (old.parent / f"{old.stem}{made}").write_text("x")
    (old.parent / "notes.txt").write_text("x")
    store(2)
    kept = [*files()]
    out, err = said("results", "prune", "--before", "2026-03-02")
    assert "6 files would be removed" in err and files() == kept and len(out.splitlines()) == 6
    out, err = said("results", "prune", "--before", "2026-03-02", "--yes")
    assert "6 files removed" in err
    assert [Path(one).name for one in files()] == ["notes.txt", "120000-var2-64b-uni.json"]
    (old.parent / "notes.txt").unlink()
    assert "0 files removed" in said("results", "prune", "--before", "2026-03-02", "--yes")[1]
    last = store(3)
    last.with_suffix(".png").mkdir()
    err = said("results", "prune", "--before", "2026-03-04", "--yes", code=9)[1]
    assert f"{last.with_suffix('.png')} stays: Is a directory" in err and "2 files removed" in err
    assert err.endswith("results: not all that is old was removed: make it writable, and prune again\n")


def test_the_last_nights_are_kept_though_a_run_began_after_midnight() -> None:
    for day in range(1, 6):
        NightWriter.begin(Path("results"), replace(NIGHT, night=f"2026-03-{day:02d}", cells=()))
        store(day, suite="forty", night=f"2026-03-{day:02d}")
    late = store(4, dut="late", suite="forty", night="2026-03-03")
    by_hand = store(2, dut="by-hand")
    gone = {str(path) for path in prune(Path("results"), 3)}
    assert late.exists() and not by_hand.exists() and len(gone) == 5
    assert not Path("results/2026-03-01").exists(), "what it leaves empty goes, too"
    left = [night.night for _, night in find_nights(Path("results"), print)]
    assert left == ["2026-03-03", "2026-03-04", "2026-03-05"]
    assert prune(Path("results"), 3) == [] and prune(Path("results"), 99) == []


def test_what_cannot_be_read_stays() -> None:
    store(1).write_text('{"schema": "trexbench/run", "version": 99}')
    store(2)
    Path("results/nights").mkdir()
    Path("results/nights/2020-01-01-x.json").write_text("{")
    before = files()
    assert prune(Path("results"), 1) == [] and files() == before


def test_no_path_leads_out_of_the_results(tmp_path: Path) -> None:
    store(1)
    victim = Path("victim.json")
    victim.write_text("x")
    warnings: list[str] = []
    assert remove(Path("results"), [Path("../victim.json"), victim.absolute()], warnings.append) == []
    assert victim.exists() and len(warnings) == 2


# Importing


def loadtest(name: str, run: RunResult = SLOW, dut: str | None = None) -> str:
    """Write a run as others do: without the DUT's name, unless one is given."""
    document = json.loads(to_loadtest(run))
    document["vars"] |= {"dut": dut}
    Path(name).write_text(json.dumps(document))
    return name


def rows(results: str = "results") -> list[RunRow]:
    index = open_index(Path(results), print)
    return index.rows()


def test_files_of_others_become_runs_once() -> None:
    one, two = loadtest("pf.loadtest.json"), loadtest("linux.json", FAST)
    out, err = said("results", "import", "--speed", "1gbit", one, two)
    assert [row.cell.dut for row in sorted(rows(), key=lambda row: row.path)] == ["linux", "pf"]
    assert len(out.splitlines()) == 2 and err == ""
    out, err = said("results", "import", "--speed", "1gbit", one, two)
    assert out == "" and err.count(": remove that to import it with other options") == 2 and len(rows()) == 2
    out, _ = said("results", "show", str(Path("results", rows()[0].path)))
    assert "added up from rates" in out and "what was asked is not in the file" in out
    out, _ = said("results", "compare", "pf", "linux")
    assert "faster" in out


def test_what_others_sent_can_be_said_so_that_it_stands_beside_ours() -> None:
    store(1, mode="1flow-64b")
    one = loadtest("theirs.json", FAST)
    assert "unknown mode" in said("results", "import", "--mode", "65bytes", one, code=2)[1] and len(rows()) == 1
    said("results", "import", "--speed", "1gbit", "--dut", "lab-linux", "--mode", "1flow", one)
    assert {row.cell.mode for row in rows()} == {"1flow-64b"}
    out, _ = said("results", "compare", "--anyway", "2026-03-01", "latest")
    assert "1flow-64b" in out


def test_a_file_whose_frames_are_not_those_of_the_mode_is_refused() -> None:
    one = loadtest("theirs.json")
    for mode, code in (("1514b", 9), ("64b-v6", 9), ("imix", 0), ("70b", 9), ("66b", 0)):
        out, err = said("results", "import", "--speed", "1gbit", "--results", mode, "--mode", mode, one, code=code)
        assert bool(out) == (code == 0) and ("frames of 64 B at 1.000 Gbit/s, not those of var2-" in err) == bool(code)


def test_other_files_are_refused_by_name_and_stop_no_other() -> None:
    bad = ["bad.json", "worse.json", "missing.json", "text.json"]
    Path("text.json").write_text("Connecting to host ::1, port 5201\n[ ID] Interval           Transfer     Bitrate\n")
    Path("bad.json").write_text("{}")
    Path("worse.json").write_text("[")
    out, err = said("results", "import", "--speed", "1gbit", *bad, loadtest("good.json"), code=9)
    assert len(out.splitlines()) == 1 and len(rows()) == 1
    assert [name for name in bad if f"trexbench: {name}: " in err] == bad
    assert "text.json: iperf3's plain text" in err and "import what `iperf3 -J` prints" in err


def test_exports_of_several_duts_do_not_overwrite_one_another_and_know_whose_they_are() -> None:
    paths = [str(store(1)), str(store(1, dut="other", variant="nat")), str(store(2))]
    mixed = ["no.json", paths[0], "nor.json", *paths[1:]]
    out, err = said("results", "export", "--loadtest", *mixed, "-o", "out/", code=9)
    assert [line.split(":")[1] for line in err.splitlines()] == [" no.json", " nor.json"], "they stop no other"
    first, second, other = sorted(os.listdir("out"))
    assert len(set(out.splitlines())) == 3 and other.startswith("other-nat-2026-03-01-120000-var2-64b")
    assert [first, second] == [f"lab-linux-2026-03-0{day}-120000-var2-64b-uni.loadtest.json" for day in (1, 2)]
    said("results", "export", "--loadtest", paths[0], paths[0], "-o", "same/", code=2)
    said("results", "import", "--speed", "1gbit", "--results", "theirs", f"out/{other}")
    assert [row.cell.dut for row in rows("theirs")] == ["other"]


def test_a_file_whose_dut_has_no_name_is_called_as_the_file() -> None:
    said("results", "import", "--speed", "1gbit", loadtest("pf.loadtest.json", dut="../pf"))
    assert [row.cell.dut for row in rows()] == ["pf"]


# Comparing


def test_two_files_stand_side_by_side_per_direction() -> None:
    one, two = store(1), store(2, run=FAST)
    assert "0->1" in said("results", "compare", str(one), str(two))[0]
    assert "0->1" in said("results", "compare", str(one), "latest")[0]
    assert said("results", "compare", "missing.json", str(two), code=9)[0] == ""


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("2026-03-01", "2026-03-02", ["lab-linux var2-64b uni simulated", "1:1", "faster"]),
        ("nightly@2026-03-01", "nightly@2026-03-02", ["faster"]),
        ("lab-linux", "other", ["| other", "2:1"]),
        ("results/2026-03-0[12]/*/*.json", "latest", ["left out, incomplete"]),
        ("2026-03-01/*/*.json", "results/2026-03-02", ["faster"]),
        ("results/2026-03-01/lab-linux/120000-var2-64b-uni.json", "2026-03-02", ["faster"]),
    ],
)
def test_sets_by_date_label_glob_and_file(first: str, second: str, words: list[str]) -> None:
    from trexbench.core.result import Status

    store(1, suite="nightly", night="2026-03-01")
    store(2, run=FAST, suite="nightly", night="2026-03-02")
    if "left out, incomplete" in words:
        store(2, run=replace(SLOW, status=Status.INCOMPLETE, reason="x"))
    store(5, dut="lab-linux" if second == "latest" else "other", run=FAST)
    out, _ = said("results", "compare", first, second)
    assert all(word in out for word in words), out
    values = json.loads(said("results", "compare", first, second, "--json")[0])
    assert values["cells"][0]["second_pps"] >= values["cells"][0]["first_pps"]


def test_a_date_means_a_night_and_not_the_runs_after_midnight_of_the_one_before() -> None:
    for day, night, result in ((1, 1, SLOW), (2, 1, SLOW), (2, 2, FAST)):
        store(day, run=result, suite="nightly", night=f"2026-03-0{night}")
    assert "2:1" in said("results", "compare", "2026-03-01", "2026-03-02")[0]


def test_unlike_sets_are_refused_until_told_to_and_then_marked() -> None:
    store(1)
    store(2, run=replace(SLOW, simulated=False))
    out, err = said("results", "compare", "2026-03-01", "2026-03-02", code=2)
    assert out == "" and "one is simulated, the other measured" in err and "--anyway" in err
    out, _ = said("results", "compare", "2026-03-01", "2026-03-02", "--anyway")
    assert "*** [1] UNLIKE: one is simulated, the other measured ***" in out


@pytest.mark.parametrize(("mtu", "code"), [(1500, 0), (9000, 2)])
def test_facts_that_only_a_newer_version_reads_make_no_other_dut(mtu: int, code: int) -> None:
    names, ports = [], ({"mtu": 1500}, {"mtu": mtu, "rings": {"now": {"rx": 512}}})
    for day, port in enumerate(ports, 1):
        dut = {"name": "x", "facts_sha256": str(port), "facts": {"interfaces": {"ix0": port}}}
        path = RunWriter(Path("results"), print).end(replace(SLOW, dut=dut, started=f"2026-03-0{day}T12:00:00Z"))
        names.append(str(path))
    for first, second in (names, ("2026-03-01", "2026-03-02")):
        out, err = said("results", "compare", first, second, code=code)
        assert ("x was not configured alike (interfaces)" in err) == (code == 2) and "alike" not in out


def test_what_means_no_run_is_said_so() -> None:
    store(1)
    for name in ("2025-01-01", "nobody", "nobody@2026-03-01", "results/*/*/x*.json"):
        out, err = said("results", "compare", name, "2026-03-01", code=2)
        assert out == "" and repr(name) in err and len(err.splitlines()) == 1
    assert "no run in" in said("results", "compare", "latest", "latest", "--results", "nowhere", code=9)[1]
    assert "an empty name" in said("results", "compare", "", "latest", code=2)[1]
    store(2, mode="var2-imix")
    assert "no cell in common" in said("results", "compare", "2026-03-01", "2026-03-02", code=2)[1]


def test_a_night_without_tcp_has_no_table_of_tcp() -> None:
    NightWriter.begin(Path("results"), replace(NIGHT, suite="lab"))
    out, err = said("suite", "table", "lab", code=2)
    assert (out, err) == ("", "trexbench: lab sends no TCP: see its runs: trexbench report --suite lab\n")


def test_what_no_run_is_of_is_not_taken_for_nothing_measured() -> None:
    store(1)
    store(2, dut="other", suite="ours")
    lines = {
        ("--suite", "nosuch", "--dut", "lab-linux"): "no run in results is of suite nosuch: it has ours",
        ("--dut", "nosuch"): "no run in results is of DUT nosuch: it has lab-linux, other",
        ("--suite", "ours", "--dut", "lab-linux"): "no run in results is of DUT lab-linux, suite ours at once: see",
    }
    for words, line in lines.items():
        out, err = said("regress", *words, code=2)
        assert out == "" and err.startswith(f"trexbench: {line}") and err.count("\n") == 1, err
    assert said("regress", "--mode", "var2-64b", code=4)[1] == ""


def test_of_a_directory_its_runs_are_compared_and_nothing_is_said_of_nights() -> None:
    store(1)
    NightWriter.begin(Path("results"), NIGHT)
    Path("results/acknowledged.json").write_text("{}")
    out, err = said("results", "compare", "results", "2026-03-01")
    assert "the same" in out and err == ""
    store(2).with_suffix(".loadtest.json").write_text("{}")
    for everything in ("results", "results/**/*.json"):
        assert said("results", "compare", everything, "2026-03-01")[1] == "", "nothing is said of exports either"


def test_of_a_glob_what_can_be_read_is_compared() -> None:
    store(1).with_name("bad.json").write_text("{")
    out, err = said("results", "compare", "results/2026-03-01/*/*.json", "2026-03-01")
    assert "the same" in out and err.startswith("not read: results/2026-03-01/lab-linux/bad.json: ")
    assert said("results", "compare", "2026-03-01", "2026-03-01")[1].count("not read: ") == 1


@pytest.mark.parametrize(
    "verb", ["results list", "regress", "report --format md", "results compare 2026-03-01 2026-03-01"]
)
def test_every_verb_names_what_it_cannot_look_into(verb: str) -> None:
    store(1)
    Path("results/2026-03-02").symlink_to("2026-03-02")
    _, out, err = run(*verb.split(), "--results", "results")
    assert "results/2026-03-02" in out + err and "symbolic links" in out + err


def test_figures_in_json_are_numbers() -> None:
    rows = [
        [of_pps(6e5), of_count(4_850_947_188), "2026", figure(None)],
        [of_pps(2.5, bound=True), figure(-0.25), "", figure(1e-9)],
    ]
    assert to_values(make_sheet("rate [pps]; count; :year; loss", rows))["rows"] == [
        [600000, 4_850_947_188, "2026", None],
        [">=2.5", -0.25, "", 1e-09],
    ]
    store(1)
    tables = json.loads(said("report", "--format", "json")[0])["tables"]
    assert any(isinstance(value, (int, float)) for table in tables for row in table["rows"] for value in row)
