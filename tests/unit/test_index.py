"""The index: a line per document that is the run's own, whatever happens to the documents, to it, or to its makers."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from effort import by_day, scaled
from runs import World, make_plan, make_result
from seen import kernel, run_of, vpp

from trexbench.core.errors import StoreError
from trexbench.core.history.rows import RunRow, row_of
from trexbench.core.load.sample import Phase
from trexbench.core.result import ANALYSIS_VERSION, RunResult, Status
from trexbench.core.strategy.base import LoadStep
from trexbench.results.document import read_sealed
from trexbench.results.index import INDEX_FILE, open_index
from trexbench.results.store import RunWriter, load_rows, load_run

RUNS = {
    "both ways, noisy, a sample every quarter": make_result(
        make_plan(bidir=True, sample_s=0.25), World(capacity_pps={"0->1": 6e5, "1->0": 8e5}, noise=0.003)
    ),
    "ended early": make_result(
        make_plan(), World(fail_at_s=20.0, failure=StoreError("gone")), status=Status.INCOMPLETE, reason="gone"
    ),
    "just begun": replace(make_result(), samples=(), status=Status.RUNNING, finished=None),
    "of a suite": make_result(
        dut={"name": "lab-linux", "facts_sha256": "f" * 64},
        command={"verb": "ramp", "mode": "var2-64b", "rx_queues": 3, "suite": "nightly", "night": "2026-03-01"},
    ),
    "odd facts": make_result(dut={"facts_sha256": 3}, command={"mode": None, "rx_queues": True, "suite": None}),
    "a kernel that tells": run_of(kernel(66.0), kernel(69.0, power_w=20.0)),
    "VPP": run_of(vpp(), vpp(), bidir=True),
}
RUN = RUNS["VPP"]


def store(results: Path, result: RunResult, **changes: Any) -> Path:
    return RunWriter(results, pytest.fail).end(replace(result, **changes))


def rows(results: Path, **filters: Any) -> list[RunRow]:
    return open_index(results, print).rows(**filters)


def problems(results: Path) -> dict[str, str]:
    return dict(open_index(results, print).problems())


def snapshot(results: Path) -> tuple[list[RunRow], list[tuple[str, str]]]:
    index = open_index(results, print)
    return index.rows(), index.problems()


# A document's line


@pytest.mark.parametrize("name", RUNS)
def test_the_line_of_a_document_is_the_line_of_its_run(tmp_path: Path, name: str) -> None:
    path = store(tmp_path, RUNS[name])
    below = str(path.relative_to(tmp_path))
    wanted = row_of(load_run(path), below)
    assert load_rows(path, below)[0] == wanted
    sealed = read_sealed(path.read_bytes())
    assert (sealed is None) == (RUNS[name].status is Status.RUNNING), "its samples should not be needed"
    assert sealed is None or replace(sealed[0], path=below) == wanted
    assert rows(tmp_path) == [wanted]


def test_runs_of_one_second_stand_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    made = [str(store(tmp_path, RUN, id=str(number)).relative_to(tmp_path)) for number in range(10)]
    assert [row.path for row in rows(tmp_path)] == made


def test_the_lines_of_these_runs_tell_something() -> None:
    row = row_of(RUN, "x")
    assert all(map(row.get, ("cycles_per_packet", "vectors_per_call", "hold_loss")))
    assert set(row.nodes) > {"ip4-lookup <b>"}
    assert row_of(RUNS["a kernel that tells"], "x").get("uj_per_packet")


# Damage


def test_what_no_table_can_hold_is_a_problem(tmp_path: Path) -> None:
    store(tmp_path, RUN, command={"mode": "m", "rx_queues": 1 << 70})
    store(tmp_path, RUN, id="\ud800")
    huge, half = problems(tmp_path).values()
    assert "rx_queues is too large" in huge and "id is not Unicode" in half and rows(tmp_path) == []


def test_odd_names_are_kept_as_they_are(tmp_path: Path) -> None:
    names = ["'; drop table documents; --", "r\u00e4uter 1", '{{7*7}} & "x"', "$x$ %s `id`", "x" * 200]
    for number, name in enumerate(names):
        store(tmp_path, RUN, id=str(number), dut={"name": name})
    assert [row.cell.dut for row in sorted(rows(tmp_path), key=lambda row: row.id)] == names
    assert [row.id for row in rows(tmp_path, dut=names[1])] == ["1"]


@pytest.mark.parametrize(
    "name", by_day(3, ["<script>alert(1)</script>", "../../etc/passwd", 7, "a\0b", "\x1b[31mred", "..", "x" * 10**6])
)
def test_hostile_names_are_refused_by_their_files_name_and_stop_nothing(tmp_path: Path, name: Any) -> None:
    good = store(tmp_path, RUN)
    command = dict(RUN.command)
    hostile = [store(tmp_path, RUN, dut={"name": name})]
    hostile += [store(tmp_path, RUN, command={**command, key: name}) for key in ("mode", "suite", "night", "label")]
    found = problems(tmp_path)
    assert sorted(found) == sorted(str(path.relative_to(tmp_path)) for path in hostile)
    for reason in found.values():
        assert "is not a valid name: " in reason and reason.isprintable() and len(reason) < 200
    assert [row.path for row in rows(tmp_path)] == [str(good.relative_to(tmp_path))]
    with pytest.raises(StoreError, match=f"{re.escape(str(hostile[0]))}: .*dut.name is not a valid name"):
        load_run(hostile[0])


def test_odd_files_are_problems_or_none_of_ours(tmp_path: Path) -> None:
    good = store(tmp_path, RUN)
    folder = good.parent
    os.mkfifo(folder / "fifo.json")
    (folder / "directory.json").mkdir()
    (folder / "nowhere.json").symlink_to(folder / "missing")
    (folder / os.fsdecode(b"no-\xff-unicode.json")).write_text("{}")
    for other in (".hidden.json.1-1.tmp", ".hidden.json", "picture.png", "x.loadtest.json", "notes.txt"):
        (folder / other).write_text("{")
    (tmp_path / "nights").mkdir()
    (tmp_path / "nights" / "x.json").write_text("{")
    (tmp_path / "not-a-date" / "dut").mkdir(parents=True)
    (tmp_path / "not-a-date" / "dut" / "x.json").write_text("{")
    found, refused = snapshot(tmp_path)
    assert [row.path for row in found] == [str(good.relative_to(tmp_path))]
    day, odd = str(folder.relative_to(tmp_path)), ("fifo", "directory", "nowhere", "no-\\udcff-unicode")
    assert {name for name, _ in refused} == {f"{day}/{name}.json" for name in odd}
    before = (tmp_path / INDEX_FILE).stat().st_mtime_ns
    assert snapshot(tmp_path) == (found, refused) and (tmp_path / INDEX_FILE).stat().st_mtime_ns == before


# Up to date


def test_new_changed_and_removed_documents_are_seen(tmp_path: Path) -> None:
    assert snapshot(tmp_path) == ([], [])
    one = store(tmp_path, RUN)
    assert [row.status for row in rows(tmp_path)] == ["complete"]
    two = store(tmp_path, RUN, started="2026-03-02T12:00:00Z", status=Status.RUNNING)
    assert [row.status for row in rows(tmp_path)] == ["complete", "running"]
    RunWriter(tmp_path, print).end(RUN)
    text = two.read_text()
    two.write_text(text.replace('"running"', '"complete"', 1))
    assert [row.status for row in rows(tmp_path)] == ["complete"] * 3
    one.unlink()
    assert len(rows(tmp_path)) == 2
    two.write_text("{")
    assert len(rows(tmp_path)) == 1 and list(problems(tmp_path)) == [str(two.relative_to(tmp_path))]
    shutil.rmtree(tmp_path / "2026-03-02")
    assert problems(tmp_path) == {}


def test_the_journal_of_a_run_that_goes_on_is_followed(tmp_path: Path) -> None:
    begun = replace(RUN, samples=(), status=Status.RUNNING, finished=None, dut_readings=())
    writer = RunWriter(tmp_path, pytest.fail).begin(begun)
    assert writer.path is not None and rows(tmp_path)[0].get("total_pps") == 0.0
    first = snapshot(tmp_path)
    writer.sampled(RUN.samples, LoadStep(Phase.RAMP, {}, 1.0))
    ends_s = time.monotonic() + 60.0
    while len(load_run(writer.path).samples) < len(RUN.samples):
        assert time.monotonic() < ends_s
    assert snapshot(tmp_path) != first and rows(tmp_path)[0].get("total_pps") == RUN.analysis.total_pps
    writer.end(RUN)
    assert [row.status for row in rows(tmp_path)] == ["complete"]


def test_another_version_of_the_analysis_reads_all_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [store(tmp_path, RUN, id=str(number)) for number in range(3)]
    before, warnings = snapshot(tmp_path), list[str]()
    for name in ("document", "index"):
        monkeypatch.setattr(f"trexbench.results.{name}.ANALYSIS_VERSION", ANALYSIS_VERSION + 1)
    for _ in range(2):
        index = open_index(tmp_path, warnings.append)
        assert (index.rows(), index.problems()) == before
    (said,) = warnings
    versions = f"version {ANALYSIS_VERSION} of the analysis, this is version {ANALYSIS_VERSION + 1}"
    assert f"reading {len(wanted)} documents" in said and versions in said
    file = tmp_path / INDEX_FILE
    file.write_bytes(file.read_bytes().replace(b'"var2-64b"', b'"var2-65b"'))
    assert [row.cell.mode for row in rows(tmp_path)] == ["var2-65b"] * len(wanted)
    for name in ("document", "index"):
        monkeypatch.setattr(f"trexbench.results.{name}.ANALYSIS_VERSION", ANALYSIS_VERSION)
    assert snapshot(tmp_path) == before, "back again: nothing of the other version is believed"


@pytest.mark.parametrize("place", ["2026-03-01/loop", "2026-03-02"])
def test_a_link_to_itself_is_named_and_hides_nothing(tmp_path: Path, place: str) -> None:
    store(tmp_path, RUN)
    (tmp_path / place).symlink_to(Path(place).name)
    found, refused = snapshot(tmp_path)
    assert len(found) == 1 and [name for name, _ in refused] == [place] and "symbolic links" in refused[0][1]


def test_nights_that_began_in_one_second_are_in_the_order_of_their_dates(tmp_path: Path) -> None:
    """Whichever was stored first, and whatever its file is called."""
    for order in (("2026-03-01", "2026-03-02"), ("2026-03-02", "2026-03-01")):
        results = tmp_path / order[0]
        for night in order:
            store(results, RUN, command={**RUN.command, "suite": "nightly", "night": night})
        assert [row.night for row in rows(results)] == ["2026-03-01", "2026-03-02"]


def test_filters_and_order(tmp_path: Path) -> None:
    runs = [("a", "m", "s", "03"), ("a", "n", None, "01"), ("b", "m", "s", "02"), ("b", "n", "s", "04")]
    for number, (dut, mode, suite, day) in enumerate(runs):
        what = {"dut": {"name": dut}, "command": {"mode": mode, "suite": suite}}
        store(tmp_path, RUN, id=str(number), started=f"2026-03-{day}T12:00:00Z", **what)
    wanted: list[tuple[dict[str, Any], str]] = [
        ({}, "1203"),
        ({"dut": "a"}, "10"),
        ({"mode": "n"}, "13"),
        ({"suite": "s", "dut": "b"}, "23"),
        ({"since": "2026-03-03"}, "03"),
        ({"limit": 2}, "03"),
        ({"limit": 0}, ""),
        ({"dut": "' or 1 --"}, ""),
        ({"dut": "\ud800"}, ""),
    ]
    for filters, ids in wanted:
        assert "".join(row.id for row in rows(tmp_path, **filters)) == ids


def test_a_directory_that_is_not_there_is_empty_and_stays_away(tmp_path: Path) -> None:
    assert snapshot(tmp_path / "results") == ([], [])
    assert not (tmp_path / "results").exists()


# The index itself


STATES: dict[str, Callable[[bytes], bytes]] = {
    "rubbish": lambda data: b"rubbish" * 1000,
    "torn": lambda data: data[:100] + bytes(len(data) - 100),
    "nested": lambda data: b"[" * 1_000_000,
    "another version's fields": lambda data: data.replace(b'"label"', b'"lable"', 1),
    "another version's rows": lambda data: data.replace(b'"label":', b'"lable":7,"label":"x","total_pps":"', 1),
    "no documents": lambda data: data.replace(b'"documents"', b'"dokuments"', 1),
    "documents that are none": lambda data: data[: data.index(b'"documents"')] + b'"documents":{"x":{}}}',
    "no Unicode": lambda data: data.replace(b'"var2-64b"', b'"\xff"', 1),
}


@pytest.mark.parametrize("what", STATES)
def test_an_index_in_any_state_is_made_anew(tmp_path: Path, what: str) -> None:
    store(tmp_path, RUN)
    (tmp_path / "2026-03-01" / "lab-linux" / "bad.json").write_text("{")
    wanted = snapshot(tmp_path)
    file = tmp_path / INDEX_FILE
    whole = file.read_bytes()
    file.write_bytes(STATES[what](whole))
    (tmp_path / f".{INDEX_FILE}.1-1-1.tmp").write_bytes(b"{")  # its writer was killed
    assert file.read_bytes() != whole
    assert snapshot(tmp_path) == wanted == snapshot(tmp_path)
    assert file.read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2026-03-01", INDEX_FILE], "what the dead left is gone"


def test_where_none_can_be_kept_it_is_made_in_memory_and_said_so(tmp_path: Path) -> None:
    store(tmp_path, RUN)
    (tmp_path / INDEX_FILE).mkdir()
    warnings: list[str] = []
    assert len(open_index(tmp_path, warnings.append).rows()) == 1
    assert len(warnings) == 1 and "in memory" in warnings[0] and INDEX_FILE in warnings[0]


@pytest.mark.portable
def test_many_open_it_at_once(tmp_path: Path) -> None:
    paths = [store(tmp_path, RUN, id=str(number)) for number in range(12)]
    found: list[int] = []
    loops, barrier = scaled(5, 1), Barrier(6)

    def one(number: int) -> None:
        barrier.wait()
        for _ in range(loops):
            store(tmp_path, RUN, id=f"{number}")
            found.append(len(rows(tmp_path)))

    with ThreadPoolExecutor(6) as pool:
        [*pool.map(one, range(6))]
    stored = len(paths) + 6 * loops
    assert len(found) == 6 * loops and max(found) == stored and min(found) > len(paths)
    assert len(rows(tmp_path)) == stored
