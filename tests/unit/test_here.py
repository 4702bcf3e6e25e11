"""``trexbench`` alone: where one is, in ten lines, without what takes long to load."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_cases import make_night, make_record
from runs import make_result
from verbs import empty_directory, python, run  # noqa: F401

from trexbench.cli.here import answering
from trexbench.core.history.rows import COST, row_of
from trexbench.lab import state
from trexbench.lab.spec import LabSpec
from trexbench.results.nights import NightWriter
from trexbench.results.store import RunWriter
from trexbench.suite.underway import suite_lock

pytestmark = pytest.mark.usefixtures("empty_directory")
RESULTS = Path("results")


def lines() -> dict[str, str]:
    """The rest of each line by its first word; the whole is what fits ten lines of a small terminal."""
    code, out, err = run()
    assert (code, err) == (0, "") and out.count("\n") <= 10 and max(map(len, out.splitlines())) <= 80
    return {line[:10].strip(): line[10:] for line in out.replace("\n" + " " * 10, " ").splitlines()}


def begin_night(suite: str = "mini", **changes: Any) -> None:
    """Begin a night of one cell that does not finish, unless changed."""
    row = row_of(make_result(), "run.json")
    NightWriter.begin(RESULTS, replace(make_night(make_record(row)), suite=suite, **changes))


def run_stored(**changes: Any) -> None:
    """Store a run whose document has these changes."""
    path = RunWriter(RESULTS, print).end(make_result())
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_an_empty_directory_says_how_to_begin() -> None:
    found = lines()
    assert found["labs"] == "none is up" and found["last run"] == "none in ./results" and "night" not in found
    assert found["DUTs"].startswith("edgerouter-edgeos, ") and found["DUTs"].endswith(" more")
    assert found["next"].startswith("trexbench doctor, trexbench ramp --dut netgate-vpp ")


def test_the_last_run_and_night_are_seen_at_a_glance() -> None:
    result = make_result()
    path = RunWriter(RESULTS, print).end(result)
    figure = row_of(result, "").figures["total_pps"]
    assert lines()["last run"].startswith("lab-linux var2-64b uni: ")
    assert lines()["next"] == "trexbench results show, trexbench report, trexbench --help"
    row = row_of(result, str(path.relative_to(RESULTS)))
    night = make_night(make_record(row, None), make_record(row, "no answer"), at="2026-11-20")
    NightWriter.begin(RESULTS, replace(night, finished=night.started, judged="1 regression in 1 cell"))
    assert lines()["night"] == "2026-11-20 nightly: 1 of 2 cells measured, 1 failed; 1 regression in 1 cell"
    NightWriter.begin(RESULTS, replace(night, night="2026-11-21", finished=None))
    assert lines()["next"] == "trexbench suite run --resume nightly, trexbench --help"
    values = json.loads(run("--json").out)
    assert values["run"]["path"] == str(path) and values["run"]["status"] == "complete"
    assert values["run"]["figures"] == [
        {"column": "total_pps", "value": pytest.approx(figure.value), "at_least": figure.at_least}
    ]
    assert values["night"]["cells"] == {"done": 1, "failed": 1} and values["night"]["finished"] is None


@pytest.mark.parametrize(
    ("status", "words"), [("incomplete", "incomplete"), ("complete", "no good rate"), ("running", "not finished")]
)
def test_a_rate_of_zero_is_no_rate(status: str, words: str) -> None:
    figures = {"figures": {"total_bps": {"value": 0.0, "at_least": True}}, "aim": "total_bps"}
    run_stored(status=status, derived={"rows": [figures]})
    assert f": {words}, " in lines()["last run"]


def test_a_run_of_a_clock_that_was_ahead_is_not_of_now() -> None:
    run_stored(started="2126-11-21T02:00:00Z")
    assert lines()["last run"].endswith(", begun in the future: check the clock")


def test_a_simulated_night_is_marked_and_resumed_as_it_was_started() -> None:
    begin_night(simulated=True)
    assert lines()["night"] == "2026-11-20 mini: 1 of 1 cells measured, simulated, not finished"
    assert lines()["next"] == "trexbench suite run --resume --sim mini, trexbench --help"


def test_a_night_that_could_not_be_run_says_why() -> None:
    begin_night("nightly", cells=(), error="suites/nightly.yaml: broken", finished="x")
    assert lines()["night"] == "2026-11-20 nightly: not run, suites/nightly.yaml: broken"


def test_a_night_that_runs_is_under_way_and_watched_instead_of_resumed() -> None:
    begin_night()
    with suite_lock("mini", RESULTS):
        assert lines()["night"] == "2026-11-20 mini: 1 of 1 cells measured, under way"
        assert lines()["next"] == "trexbench report --watch, trexbench --help"
        assert json.loads(run("--json").out)["night"]["under_way"]
    assert "not finished" in lines()["night"] and "--resume" in lines()["next"]


@pytest.mark.parametrize("suite", ["-x; rm y", "--help", "$(rm y)", "two words", "it's", "long " * 30 + "end"])
def test_a_command_to_type_is_quoted_and_stands_on_one_line(suite: str) -> None:
    begin_night(suite)
    out = run().out
    (command,) = re.findall(r"(?m)(trexbench suite run .*), *(?:trexbench --help)?$", out)
    assert shlex.join(shlex.split(command)) == command and shlex.split(command)[-1] == suite
    assert command == json.loads(run("--json").out)["next"]
    code, _, err = run(*shlex.split(command)[1:])
    assert code == 2 and f"unknown suite {suite!r}" in err


@pytest.mark.parametrize("suite", ["../up", "line\nbreak", "<b>", ""])
def test_a_night_of_a_suite_that_cannot_be_is_not_seen(suite: str) -> None:
    begin_night()
    (path,) = RESULTS.glob("nights/*.json")
    assert "night" in lines()
    path.write_text(json.dumps({**json.loads(path.read_text()), "suite": suite}))
    assert "night" not in lines()


def test_a_cost_has_its_unit() -> None:
    run_stored(derived={"rows": [{"aim": COST.column, "figures": {COST.column: {"value": 1081.2}}}]})
    assert f": 1081 {COST.name}, " in lines()["last run"]


def test_damage_and_documents_of_before_cost_no_more_than_their_figures() -> None:
    path = RunWriter(RESULTS, print).end(make_result())
    document = json.loads(path.read_text())
    del document["derived"]
    path.write_text(json.dumps(document))
    assert ": complete, " in lines()["last run"]
    (RESULTS / "nights").mkdir()
    (RESULTS / "nights" / "2026-11-20-x.json").write_text('{"suite": 7}')
    path.write_text("[" * 100_000)
    assert "cannot be read" in lines()["last run"] and "night" not in lines()


def test_servers_and_labs_that_are_up_are_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert answering({port: "RPC", closed.getsockname()[1]: "events"}) == [f"127.0.0.1:{port} (RPC)"]
    of_lab = state.Server("embedded", state.Process.of(os.getpid()), "/log")
    state.update(state.new_state(LabSpec("x"), "persistent"), status="up", server=of_lab)
    assert lines()["labs"].startswith("lab x: up, persistent, ")


def test_nothing_heavy_is_loaded_for_it(tmp_path: Path) -> None:
    RunWriter(RESULTS, print).end(make_result())
    begin_night()
    loaded = "import atexit, sys; atexit.register(lambda: print(*sys.modules))"
    begin = f"{loaded}; from trexbench.cli import main; main([])"
    done = python(begin, TREXBENCH_RUN_DIR=str(tmp_path / "run"))
    assert done.returncode == 0 and done.stdout.startswith("labs "), done.stderr
    assert not {"numpy", "matplotlib", "pyroute2", "scapy", "sqlite3"} & set(done.stdout.split())


def test_a_narrow_terminal_gets_narrow_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "66")
    assert max(map(len, run().out.splitlines())) <= 66
