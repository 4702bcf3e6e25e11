"""A cluster whose results are at an address: leases, journals and documents of its testers are in the store.

Machines are state directories, each with a mirror of its own.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from drives import ONE_CELL, PLACE, Noted, Waited, broken, make_order, measured, no_waiting, unneeded

from trexbench.core.errors import StoreError
from trexbench.core.fleet.lease import LeaseRecord
from trexbench.core.verdict.parts import RunWarning
from trexbench.dut.journal import Entry, FileJournal
from trexbench.dut.settings import Change, Command
from trexbench.fleet import leases, stored, task
from trexbench.fleet.guard import now
from trexbench.fleet.leases import LeaseFolder, leased
from trexbench.fleet.stored import UNSENT, put_unsent, remove_staging
from trexbench.fleet.task import CellOrder, OwnSettings, measure_cell
from trexbench.results.nights import is_sent
from trexbench.results.remote import mirror_of
from trexbench.session.keep import Measured, Output, envelope_of
from trexbench.suite.jobs import Job

ADDRESS = "memory://lab/results"
THERE = f"/lab/results/{PLACE}"
LENGTH_S = 60.0


Machine = Callable[[str], Path]


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for package in ("distributed", "pyarrow"):
        pytest.importorskip(package)
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "mine.yaml").write_text(ONE_CELL)
    monkeypatch.setenv("TREXBENCH_SUITES", str(folder))
    monkeypatch.setattr(task, "_GUARD", Noted())
    yield (memory := pytest.importorskip("fsspec").filesystem("memory"))
    memory.store.clear()


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make this process the tester of this name, on a machine of its own, and return its mirror."""

    def at(name: str) -> Path:
        monkeypatch.setenv("TREXBENCH_STATE_DIR", str(tmp_path / name))
        mirror = mirror_of(ADDRESS)
        monkeypatch.setattr(task, "OWN", OwnSettings(name, str(mirror), {}, ("netgate-linux",), "wiring"))
        monkeypatch.setattr(task, "_tester_name", lambda: name)
        return mirror

    return at


def an_order() -> CellOrder:
    suite = task.SUITES.find("mine")
    return make_order(suite, Path("/their/mirror"), suite="mine", fleet="wiring", store=ADDRESS)


def test_a_dut_is_leased_to_one_machine_at_a_time(memory: Any, at: Machine) -> None:
    ours = LeaseFolder(at("t1") / ".fleet" / "leases", "r1")
    with leased(ours, "t1-a", LENGTH_S, Noted()) as lease:
        lease.require()
        mirror = at("t2")
        theirs = LeaseFolder(mirror / ".fleet" / "leases", "r1")
        assert theirs.latest() == lease.holding.record and not (mirror / ".fleet").exists()
        with pytest.raises(Waited), leased(theirs, "t2-b", LENGTH_S, Noted(), no_waiting):
            pass
        at("t1")
    at("t2")
    with leased(theirs, "t2-b", LENGTH_S, Noted(), no_waiting) as lease:
        assert lease.holding.record.number == 3
    assert sorted(memory.ls("/lab/results/.fleet/leases/r1", detail=False))[-1].endswith("/4")


def test_a_record_is_written_once_though_its_answer_may_be_lost(memory: Any, at: Machine) -> None:
    folder = LeaseFolder(at("t1") / ".fleet" / "leases", "r1")
    record = LeaseRecord(1, "t1-a", LENGTH_S)
    assert folder.append(record)
    assert folder.append(record), "as by a library that tries again"
    assert not folder.append(replace(record, holder="t2-b")) and folder.latest() == record


def test_a_store_that_lists_late_is_waited_for(memory: Any, at: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, find, late = LeaseFolder(at("t1") / ".fleet" / "leases", "r1"), type(memory).find, [{}, {}]
    monkeypatch.setattr(leases, "WAIT_S", 0.5)
    monkeypatch.setattr(type(memory), "find", lambda *given, **how: late.pop() if late else find(*given, **how))
    assert folder.append(LeaseRecord(1, "t1-a", LENGTH_S)) and not late
    monkeypatch.setattr(type(memory), "find", lambda *_, **__: {})
    with pytest.raises(StoreError, match=r"r1/2 was written, and is not listed after 0\.5 s: use a store that lists"):
        folder.append(LeaseRecord(2, "t1-a", LENGTH_S))


def test_eight_who_take_a_lease_at_once(memory: Any, at: Machine) -> None:
    folder, begun = at("t1") / ".fleet" / "leases", threading.Barrier(8)
    done = list[bool]()

    def take(number: int) -> None:
        begun.wait(60)
        done.append(LeaseFolder(folder, "r1").append(LeaseRecord(1, f"t{number}", LENGTH_S)))

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == [False] * 7 + [True]


def test_without_the_store_no_lease_is_taken_or_renewed(
    memory: Any, at: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, guard = LeaseFolder(at("t1") / ".fleet" / "leases", "r1"), Noted()
    with leased(folder, "t1-a", 0.2, guard) as lease:
        with monkeypatch.context() as patched:
            patched.setattr(type(memory), "pipe_file", broken)
            while not lease.holding.is_over(now()):
                time.sleep(0.01)
        assert lease.is_lost and guard.asked[-1] == lease.holding.stop_s
    with monkeypatch.context() as patched:
        patched.setattr(type(memory), "find", broken)
        with pytest.raises(StoreError, match="no such host"), leased(folder, "t1-b", LENGTH_S, guard, patience=0.0):
            pass
    over = threading.Event()
    monkeypatch.setattr(leases, "WAIT_S", 0.01)
    monkeypatch.setattr(type(memory), "find", lambda *_, **__: over.wait(60) and {})
    with pytest.raises(StoreError, match="does not answer within"):
        LeaseFolder(at("t1") / ".fleet" / "leases", "r1").latest()
    over.set()


def test_a_dead_testers_journal_is_found_by_the_next(memory: Any, at: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry("boot", "here", Change("x", "1", "2", (Command(("set", "x"), "it"),), ()))
    FileJournal("r1", at("t1") / ".fleet").add(entry)
    mirror = at("t2")
    theirs = FileJournal("r1", mirror / ".fleet")
    assert [*theirs.entries()] == [entry] and not (mirror / ".fleet").exists()
    with monkeypatch.context() as patched:
        patched.setattr(type(memory), "pipe_file", broken)
        with pytest.raises(StoreError, match="no such host"):
            theirs.add(entry)
    theirs.remove(entry)
    assert not theirs.entries() and not memory.exists("/lab/results/.fleet/changes/r1.json")


def test_a_document_that_could_not_be_put_fails_its_cell_and_is_put_next(
    memory: Any, at: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, real = at("t1"), memory.pipe_file
    order = an_order()

    def leases_only(self: object, path: str, *words: object, **more: object) -> None:
        real(path, *words, **more) if "/.fleet/" in path else broken()

    with monkeypatch.context() as patched:
        patched.setattr(task, "PATIENCE", 0.0)
        patched.setattr(type(memory), "pipe_file", leases_only)
        done = measure_cell(order, measured("first"))
        assert done.place is None and done.code == StoreError.exit_code
        assert done.error.startswith("memory://lab/results cannot be reached: OSError: no such host")
        assert done.error.endswith("the document stays at tester t1, which puts it before its next cell")
        with pytest.raises(StoreError, match="no such host"):
            put_unsent(ours, 9.0)
    assert (ours / PLACE).exists() and not memory.exists(THERE)
    put_unsent(ours, 9.0)
    assert memory.cat_file(THERE) == (ours / PLACE).read_bytes() and is_sent(ours / PLACE)
    assert not [*(ours / ".fleet" / UNSENT).iterdir()]
    theirs = at("t2")
    assert measure_cell(order, unneeded).place == PLACE, "--resume, by another tester"
    assert (theirs / PLACE).read_bytes() == memory.cat_file(THERE)


@pytest.mark.parametrize("what", ["/.fleet/", ".json"])
def test_a_store_that_is_full_for_a_while_costs_no_cell(
    memory: Any, at: Machine, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    at("t1")
    real, faults = memory.pipe_file, [OSError("no space left")] * 5

    def full_at_first(self: object, path: str, *words: object, **more: object) -> None:
        if what in path and faults:
            raise faults.pop()
        real(path, *words, **more)

    monkeypatch.setattr(stored, "AGAIN_S", 0.01)
    monkeypatch.setattr(type(memory), "pipe_file", full_at_first)
    assert measure_cell(an_order(), measured("first")).error is None
    assert memory.exists(THERE) and not faults


def test_what_a_killed_tester_left_is_removed_at_its_start(memory: Any, at: Machine) -> None:
    mirror, order = at("t1"), an_order()

    def drive(_job: object, output: Output) -> Measured[Any]:
        assert output.results is not None
        shutil.copytree(output.results, output.results.with_name("t1-abcdef01"))
        shutil.copytree(output.results, output.results.with_name("t1-b-abcdef01"))
        raise ValueError("killed")

    with pytest.raises(ValueError, match="killed"):
        measure_cell(order, drive)
    remove_staging(mirror, "t1")
    assert [path.name for path in (mirror / ".fleet" / "2026-11-21-mine").iterdir()] == ["t1-b-abcdef01"]


def test_each_run_of_an_insecure_fleet_has_its_warning(
    memory: Any, at: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    at("t1")
    monkeypatch.setattr(task, "OWN", replace(task.OWN, doubt="no certificates"))
    begun = list[RunWarning]()

    def drive(job: Job, output: Output) -> Measured[Any]:
        begun.extend(envelope_of(job.request, "64b", {}, [RunWarning("lab", "busy")])["warnings"])
        raise StoreError("enough")

    assert measure_cell(an_order(), drive).error == "enough"
    assert begun == [RunWarning("fleet", "no certificates"), RunWarning("lab", "busy")]


def test_who_comes_second_takes_what_stands(memory: Any, at: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first could not put its document, and another tester measured the cell meanwhile."""
    ours, order = at("t1"), an_order()
    with monkeypatch.context() as patched:
        patched.setattr(task, "put_document", lambda *_: broken_store())
        assert measure_cell(order, measured("first")).error
    at("t2")
    assert measure_cell(order, measured("second")).place == PLACE
    at("t1")
    put_unsent(ours, 9.0)
    assert memory.cat_file(THERE) == (ours / PLACE).read_bytes() and b"second" in memory.cat_file(THERE)
    assert not [*(ours / ".fleet" / UNSENT).iterdir()]


def broken_store() -> None:
    raise StoreError("it is away")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"fleet": "x"}, " has another fleet.yaml"),
        ({"suite": "nosuch"}, ": unknown suite"),
        ({"digest": "x"}, " has another suite mine, or other configs of its DUTs"),
        ({"store": "s3://other"}, " has other results: its --results are not s3://other"),
        ({"store": ""}, " has other results: 2026-11-21-mine is not in its --results"),
    ],
    ids=str,
)
def test_a_tester_says_how_it_differs(memory: Any, at: Machine, changes: dict[str, Any], words: str | None) -> None:
    at("t1")
    order, version = an_order(), str(task.versions()["trexbench"])
    said, _ = task.find_difference(replace(order, **changes), version)
    assert said is words or str(said).startswith(f"tester t1{words}")
    assert task.find_difference(order, "9.9")[0] == f"tester t1 has trexbench {version}, the night 9.9"
