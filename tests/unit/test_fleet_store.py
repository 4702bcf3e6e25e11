"""A cell's document in the store that the results mirror: there before its task returns, and not lost without it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from drives import PLACE, Noted, broken, make_order, measured, unneeded
from runs import make_result

from suites import TWO
from trexbench.core.errors import StoreError
from trexbench.fleet import stored, task
from trexbench.fleet.stored import OtherStored, put_document
from trexbench.fleet.task import measure_cell
from trexbench.results.document import encode
from trexbench.results.nights import is_sent, read_night
from trexbench.results.remote import mirror_of, store_of
from trexbench.session.keep import Output
from trexbench.session.options import Setup
from trexbench.suite.night import NightOptions, run_suite

THERE = f"/lab/results/{PLACE}"


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for package in ("distributed", "pyarrow"):
        pytest.importorskip(package)
    monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(task, "_GUARD", Noted())
    yield (memory := pytest.importorskip("fsspec").filesystem("memory"))
    memory.store.clear()


def test_a_document_is_in_the_store_before_its_task_returns_by_two_requests(
    tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, asked = mirror_of("memory://lab/results"), list[str]()
    within = list[str]()

    def counted(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def ask(_: object, path: str, *words: object, **more: object) -> object:
            if not within:  # else the memory asks itself
                asked.append(name)
            within.append(name)
            try:
                return real(path, *words, **more)
            finally:
                within.pop()

        return ask

    for name in ("pipe_file", "cat_file", "info", "exists", "ls", "find", "makedirs"):
        monkeypatch.setattr(type(memory), name, counted(name, getattr(memory, name)))
    order = make_order(tmp_path / "mine.yaml", results)
    assert measure_cell(order, measured("first")).unsent is None
    assert asked == ["cat_file", "makedirs", "pipe_file"], "looked for, then created; S3 has no directories to make"
    monkeypatch.undo()
    assert memory.cat_file(THERE) == (results / PLACE).read_bytes() and is_sent(results / PLACE)


def test_a_store_that_is_away_loses_nothing(tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    results = mirror_of("memory://lab/results")
    order = make_order(tmp_path / "mine.yaml", results)
    with monkeypatch.context() as patched:
        for name in ("pipe_file", "cat_file"):
            patched.setattr(type(memory), name, broken)
        done = measure_cell(order, measured("first"))
    assert done.place == PLACE and done.error is None
    assert done.unsent.startswith("memory://lab/results cannot be reached: OSError: no such host")
    assert done.unsent.endswith("; what is not there is put when the night ends")
    assert not memory.exists(THERE) and not is_sent(results / PLACE)
    assert measure_cell(order, unneeded).unsent is None, "the next that looks puts it"
    assert memory.cat_file(THERE) == (results / PLACE).read_bytes()


def test_a_store_that_hangs_is_not_waited_for(tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    results, over = mirror_of("memory://lab/results"), threading.Event()
    path, real = results / PLACE, memory.pipe_file
    path.parent.mkdir(parents=True)
    path.write_text("whole")
    monkeypatch.setattr(stored, "WAIT_S", 0.01)
    monkeypatch.setattr(type(memory), "pipe_file", lambda _, *a, **k: (over.wait(60), real(*a, **k)))
    with pytest.raises(StoreError, match=r"memory://lab/results does not answer within 0\.01 s"):
        put_document(results, PLACE, 9.0)
    over.set()
    (late,) = [one for one in threading.enumerate() if one.name == "store"]
    late.join(60)
    assert memory.cat_file(THERE) == b"whole" and put_document(results, PLACE, 9.0) is None


def test_a_connection_that_was_lost_is_not_used_again(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    results = mirror_of("memory://lab/results")
    first, second = store_of(results), store_of(results)
    assert first is not None and second is not None and first._system is second._system
    with monkeypatch.context() as patched:
        patched.setattr(type(memory), "cat_file", broken)
        with pytest.raises(StoreError, match="no such host"):
            first.read(PLACE)
    again = store_of(results)
    assert again is not None and again._system is not first._system and again.read(PLACE) is None


def test_another_document_in_its_place_is_reported_and_stays(memory: Any) -> None:
    results = mirror_of("memory://lab/results")
    memory.pipe_file(THERE, b"theirs")
    (results / PLACE).parent.mkdir(parents=True)
    (results / PLACE).write_text("ours")
    with pytest.raises(OtherStored, match=f"is there already, and another one: remove that, or {results / PLACE}"):
        put_document(results, PLACE, 9.0)
    assert memory.cat_file(THERE) == b"theirs" and not is_sent(results / PLACE)


def test_a_complete_document_that_was_there_stands(
    tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the store did not answer when it was asked for it."""
    results = mirror_of("memory://lab/results")
    memory.pipe_file(THERE, theirs := encode(make_result(id="theirs")))
    monkeypatch.setattr(task, "fetch_document", lambda *_: False)
    order = make_order(tmp_path / "mine.yaml", results)
    assert measure_cell(order, measured("ours")).unsent == f"{PLACE} was in the store already: that one stands"
    assert (results / PLACE).read_bytes() == memory.cat_file(THERE) == theirs
    assert put_document(results, PLACE, 9.0) is None


def test_a_night_that_is_only_not_in_the_store_is_put_by_resume(
    tmp_path: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = tmp_path / "two.yaml"
    suite.write_text(TWO)
    results, said = mirror_of("memory://lab/results"), list[str]()
    options = NightOptions(results, Setup(sim=True), Output(warn=said.append), lambda _: None, "2026-11-21")
    with monkeypatch.context() as patched:
        patched.setattr(type(memory), "pipe_file", broken)
        with pytest.raises(StoreError, match="no such host"):
            run_suite(str(suite), options)
        patched.setattr(type(memory), "find", broken)
        with pytest.raises(StoreError, match="no such host"):
            run_suite(str(suite), options, resume=True)
    before = (path := results / "nights" / "2026-11-21-two.json").read_bytes()
    first = str(read_night(path).cells[0].path)
    memory.pipe_file(there := f"/lab/results/{first}", encode(make_result(id="theirs")))
    with pytest.raises(StoreError, match=f"another one: remove that, or {results / first}"):
        run_suite(str(suite), options, resume=True)
    (results / first).unlink()
    writer = run_suite(str(suite), replace(options, by_fleet=unneeded), resume=True)  # type: ignore[arg-type]
    assert memory.cat_file("/lab/results/nights/2026-11-21-two.json") == before == writer.path.read_bytes()
    assert all(memory.exists(f"/lab/results/{cell.path}") for cell in writer.night.cells)
    assert (results / first).read_bytes() == memory.cat_file(there)
    assert json.loads(before)["finished"] and not said
    with pytest.raises(Exception, match="is unfinished"):
        run_suite(str(suite), options, resume=True)
