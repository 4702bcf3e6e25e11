"""``trexbench suite`` as a user runs it: whole nights, nights with a failure in them, nights that were killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from effort import scaled
from tools import await_line, begin, folder_with, succeed, trexbench

from suites import TINY, TWO, without_twin
from trexbench.core.history.night import CellState
from trexbench.results.index import open_index
from trexbench.results.nights import load_nights
from trexbench.results.store import load_run


def night_at(path: Path) -> Any:
    return json.loads(path.read_text())


def figures(folder: Path) -> dict[str, float]:
    """Cell -> packets received, of every complete run that the nights name."""
    found = {}
    for night in load_nights(folder / "results", pytest.fail):
        for cell in night.cells:
            run = load_run(folder / "results" / str(cell.path))
            found[f"{night.night} {cell}"] = run.analysis.total_pps
    return found


def test_suites_are_listed_and_planned(tmp_path: Path) -> None:
    folder_with(tmp_path, tiny=TINY, broken="duts: 7\nmodes: [64b]\ndirections: [uni]\n")
    listed = succeed(tmp_path, "suite", "list")
    assert re.search(r"\nbroken +- +cannot be read: suites/broken.yaml:1: duts", listed.stdout)
    assert re.search(r"^netgate-6100 +40  ", listed.stdout, re.MULTILINE)
    told = {one["name"]: one for one in json.loads(trexbench(tmp_path, "suite", "list", "--json").stdout)}
    assert told["tiny"]["cells"] == 4 and told["tiny"]["error"] is None and "duts" in told["broken"]["error"]
    planned = trexbench(tmp_path, "suite", "plan", "tiny")
    lines = planned.stdout.splitlines()
    assert lines[0] == "tiny: 4 cells, about 2:24 min plus setup"
    assert [line for line in lines if not line.startswith("  ")][1:] == [
        "netgate-vpp is configured with 1 receive queue per port",
        "netgate-vpp is configured with 3 receive queues per port",
    ]
    values = json.loads(trexbench(tmp_path, "suite", "plan", "tiny", "--json", "--only", "*3q").stdout)
    assert [(cell["direction"], cell["rx_queues"], cell["session"]) for cell in values["cells"]] == [
        ("uni", 3, 1),
        ("bidir", 3, 1),
    ]


def test_a_plan_of_a_simulation_refuses_what_running_it_would(tmp_path: Path) -> None:
    without_twin(tmp_path)
    folder_with(tmp_path, odd=TINY.replace("[{", "[bare, {"))
    planned = trexbench(tmp_path, "suite", "plan", "odd", "--sim")
    assert planned.returncode == 2 and "bare.yaml describes no twin" in planned.stderr and planned.stdout == ""
    succeed(tmp_path, "suite", "plan", "odd")


def test_a_whole_night_and_another(tmp_path: Path) -> None:
    folder_with(tmp_path, tiny=TWO)
    done = succeed(tmp_path, "suite", "run", "tiny", "--sim", "--date", "2026-11-20")
    assert [line for line in done.stderr.splitlines() if line.startswith("cell 2 of 2, ")]
    again = succeed(tmp_path, "suite", "run", "suites/tiny.yaml", "--sim", "--date", "2026-11-20", "-q", "--json")
    assert again.stderr == ""
    night = json.loads(again.stdout)
    assert [cell["state"] for cell in night["cells"]] == ["done"] * 2 and night["simulated"] is True
    assert night == night_at(tmp_path / "results/nights/2026-11-20-tiny-2.json")
    assert night_at(tmp_path / "results/nights/2026-11-20-tiny.json")["finished"] is not None
    rows = open_index(tmp_path / "results", pytest.fail).rows(suite="tiny")
    assert len(rows) == 4 and {row.night for row in rows} == {"2026-11-20"} and all(row.complete for row in rows)


def test_one_night_at_a_time_and_ctrl_c_then_resume_comes_to_what_an_undisturbed_one_does(tmp_path: Path) -> None:
    one, other = folder_with(tmp_path / "one", tiny=TWO), folder_with(tmp_path / "other", tiny=TWO)
    options = ("suite", "run", "tiny", "--sim", "--date", "2026-11-20")
    run = begin(one, *options, "--speedup", "10")
    await_line(run, "cell 1 of 2")
    second = trexbench(one, "suite", "run", "tiny", "--sim")
    assert second.returncode == 8 and "a night of tiny is under way in results" in second.stderr
    await_line(run, "cell 2 of 2")
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130 and "interrupted by Ctrl-C" in err, err
    (night,) = load_nights(one / "results", pytest.fail)
    assert night.finished is None and night.left == (1,)
    refused = trexbench(one, *options, "--resume", "--only", "*1q")
    assert refused.returncode == 2 and "other cells" in refused.stderr
    other_night = trexbench(one, *options[:-1], "2026-11-19", "--resume")
    assert other_night.returncode == 2 and "with the date 2026-11-19 in results is unfinished" in other_night.stderr
    resumed = succeed(one, *options, "--resume")
    assert "cell 1 of 2" not in resumed.stderr, resumed.stderr
    succeed(other, *options)
    assert figures(one) == figures(other)


KILLS = scaled(20, 5)
FIVE = TINY.replace("[64b]", "[64b, 1flow]").replace("[uni, bidir]", "[uni]")
PRELOADED = [
    "trexbench.suite.cells",
    "trexbench.session.simulate",
    "trexbench.generator.trex.ports",
    "trexbench.cli.suite",
]


def in_a_child(folder: str, arguments: Sequence[str]) -> None:
    """The command, in a process that has loaded everything already."""
    from trexbench.cli import main

    os.chdir(folder)
    os.environ["TREXBENCH_RUN_DIR"] = f"{folder}/run"
    with open("log", "a") as log:
        os.dup2(log.fileno(), 2)
        os.dup2(log.fileno(), 1)
        sys.exit(main(arguments))


def test_killed_at_any_moment_a_night_goes_on_and_no_document_is_torn(tmp_path: Path) -> None:
    folder_with(tmp_path, five=FIVE)
    spawn = multiprocessing.get_context("forkserver")
    spawn.set_forkserver_preload(PRELOADED)
    moments = random.Random(11)
    kills, results = 0, tmp_path / "results"
    while kills < KILLS:
        unfinished = any(night.finished is None for night in load_nights(results, pytest.fail))
        arguments = ["suite", "run", "five", "--sim", *(["--resume"] if unfinished else [])]
        child = spawn.Process(target=in_a_child, args=(str(tmp_path), arguments))
        child.start()
        child.join(moments.uniform(0.0, 1.0))
        if child.is_alive():
            child.kill()
            kills += 1
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL), (tmp_path / "log").read_text()
        look_at(results)
    done = trexbench(tmp_path, "suite", "run", "five", "--sim", "--resume")
    assert done.returncode == (2 if "is unfinished" in done.stderr else 0), done.stderr
    nights = load_nights(results, pytest.fail)
    assert all(cell.state is CellState.DONE for night in nights for cell in night.cells)
    paths = [cell.path for night in nights for cell in night.cells]
    index = open_index(results, pytest.fail)
    assert sorted(row.path for row in index.rows() if row.complete) == sorted(map(str, paths))
    assert index.problems() == []


def look_at(results: Path) -> None:
    """Every document can be read, and those that a night calls done are complete."""
    documents = {path.relative_to(results).as_posix(): load_run(path) for path in results.glob("*/*/*.json")}
    for night in load_nights(results, pytest.fail):
        for cell in night.cells:
            if cell.state is CellState.DONE:
                assert documents[str(cell.path)].status.value == "complete"
