"""``trexbench`` alone: where one is, in ten lines."""

from __future__ import annotations

import os
import re
import shlex
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_cases import make_night, make_record
from runs import World, make_plan, make_result
from tcp_runs import make_tcp_result
from verbs import empty_directory, run  # noqa: F401

from trexbench.cli.here import answering
from trexbench.core.history.rows import row_of
from trexbench.core.typed import Status
from trexbench.lab import state
from trexbench.lab.spec import LabSpec
from trexbench.report.words import format_whole
from trexbench.results.nights import NightWriter
from trexbench.results.store import RunWriter
from trexbench.suite.underway import suite_lock

pytestmark = pytest.mark.usefixtures("empty_directory")
RESULTS = Path("results")


def lines() -> dict[str, str]:
    """The rest of each line by its first word; the whole is what fits ten lines of a small terminal."""
    code, out, err = run()
    assert (code, err) == (0, "") and out.count("\n") <= 10 and max(map(len, out.splitlines())) <= 80
    return {line[:10].strip(): line[10:] for line in out.replace("\n  ", " ").splitlines()}


def begin_night(suite: str = "mini", **changes: Any) -> None:
    """Begin a night of one cell that does not finish, unless changed."""
    row = row_of(make_result(), "run.json")
    NightWriter.begin(RESULTS, replace(make_night(make_record(row)), suite=suite, **changes))


def test_an_empty_directory_says_how_to_begin() -> None:
    found = lines()
    assert found["labs"] == "none is up" and found["last run"] == "none in ./results" and "night" not in found
    assert found["DUTs"].startswith("edgerouter-edgeos, ") and found["DUTs"].endswith(" more")
    assert found["next"].startswith("trexbench doctor, trexbench ramp --dut netgate-vpp ")


def test_the_last_run_and_night_are_seen_at_a_glance() -> None:
    result = make_result()
    path = RunWriter(RESULTS, print).end(result)
    row = row_of(result, str(path.relative_to(RESULTS)))
    figure = format_whole(row.figures["total_pps"].value, row.metric)
    assert lines()["last run"].startswith(f"{path.parent.name} {path.stem.partition('-')[2]}: ")
    assert f"{figure}, simulated, 2026-" in lines()["last run"]
    assert lines()["next"] == "trexbench results show, trexbench report, trexbench --help"
    night = make_night(make_record(row, None), make_record(row, "no answer"), at="2026-11-20")
    NightWriter.begin(RESULTS, replace(night, finished=night.started, judged="1 regression in 1 cell"))
    assert lines()["night"] == "2026-11-20 nightly: 1 of 2 cells measured, 1 failed; 1 regression in 1 cell"
    NightWriter.begin(RESULTS, replace(night, night="2026-11-21", finished=None, simulated=True))
    assert lines()["next"] == "trexbench suite run --resume --sim nightly, trexbench --help"
    tcp = RunWriter(RESULTS, print).end(make_tcp_result(started="2030-01-01T00:00:00Z"))
    assert re.search(r": (>= \S+ Mbit/s, ){2}2030-01-01 00:00 UTC$", lines()["last run"])
    tcp.write_text("[" * 100_000)
    assert figure in lines()["last run"], "damage costs no more than its own figures"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (Status.INCOMPLETE, "incomplete"),
        (Status.COMPLETE, "no good rate"),
        (Status.RUNNING, "still running, or was killed"),
    ],
)
def test_a_rate_of_zero_is_no_rate(status: Status, words: str) -> None:
    RunWriter(RESULTS, print).end(make_result(make_plan(), World(capacity_pps=0.0), status=status))
    assert f": {words}, " in lines()["last run"]


def test_a_night_that_runs_is_under_way_and_watched_instead_of_resumed() -> None:
    begin_night()
    with suite_lock("mini", RESULTS):
        assert lines()["night"] == "2026-11-20 mini: 1 of 1 cells measured, under way"
        assert lines()["next"] == "trexbench report --watch, trexbench --help"
    assert "not finished" in lines()["night"] and "--resume" in lines()["next"]
    begin_night("broken", cells=(), error="suites/broken.yaml: broken", finished="x")
    assert lines()["night"] == "2026-11-20 broken: not run, suites/broken.yaml: broken"


@pytest.mark.parametrize("suite", ["-x; rm y", "--help", "$(rm y)", "two words", "it's", "long " * 30 + "end"])
def test_a_command_to_type_is_quoted_and_stands_on_one_line(suite: str) -> None:
    begin_night(suite)
    (command,) = re.findall(r"(?m)(trexbench suite run .*), *(?:trexbench --help)?$", run().out)
    assert shlex.join(shlex.split(command)) == command and shlex.split(command)[-1] == suite
    code, _, err = run(*shlex.split(command)[1:])
    assert code == 2 and f"unknown suite {suite!r}" in err


def test_servers_and_labs_that_are_up_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert answering({port: "RPC", closed.getsockname()[1]: "events"}) == [f"127.0.0.1:{port} (RPC)"]
    of_lab = state.Server("embedded", state.Process.of(os.getpid()), "/log")
    state.update(state.new_state(LabSpec("x"), "persistent"), status="up", server=of_lab)
    assert lines()["labs"].startswith("lab x: up, persistent, ")
    monkeypatch.setenv("COLUMNS", "66")
    assert max(map(len, run().out.splitlines())) <= 66
