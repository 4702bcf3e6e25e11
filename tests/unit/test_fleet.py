"""A fleet's parts: leases in a store, the guard that ends a tester in time, the one place of a cell's document."""

from __future__ import annotations

import errno
import os
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from children import start_child
from drives import ONE_CELL, Noted, Waited, make_order, measured, no_waiting
from tools import ROOT

from trexbench import files
from trexbench.config import firewall
from trexbench.config.lookup import read_suite
from trexbench.core import errors
from trexbench.core.fleet.lease import LeaseRecord
from trexbench.core.history.cell import Cell
from trexbench.fleet import guard as guards
from trexbench.fleet import task
from trexbench.fleet.guard import guard as watch
from trexbench.fleet.guard import now
from trexbench.fleet.leases import KEPT, LeaseFolder, leased
from trexbench.fleet.task import digest_of, measure_cell, place_of
from trexbench.results.store import load_document
from trexbench.session.keep import Measured, Output
from trexbench.session.options import Setup

LENGTH_S = 60.0
GUARDED = """
import pickle, sys, time
from trexbench.fleet.guard import LeaseGuard, now
guard, plan = LeaseGuard(), pickle.load(sys.stdin.buffer)
for after_s in plan:
    guard.kill_at(None if after_s is None else now() + after_s, None)
print("guarded", flush=True)
time.sleep(60 if plan[-1] is not None else 0)
"""


def test_what_was_measured_under_a_lost_lease_is_refused(tmp_path: Path) -> None:
    folder = LeaseFolder(tmp_path, "r1")
    with leased(folder, "t1-a", LENGTH_S, Noted()) as lease:
        lease._lost = True
        with pytest.raises(errors.TesterBusy, match="the lease of r1 was lost"):
            lease.require()
    with pytest.raises(Waited), leased(folder, "t1-b", LENGTH_S, Noted(), no_waiting):
        pass  # it was not given back by who may not have it


def test_a_lease_that_cannot_be_renewed_ends_and_the_guard_is_not_put_off(tmp_path: Path) -> None:
    class Lost(LeaseFolder):
        def append(self, record: LeaseRecord) -> bool:
            if record.number > 1:
                tried.append(record)
                raise OSError("the store is lost")
            return super().append(record)

    tried, guard = list[LeaseRecord](), Noted()
    with leased(Lost(tmp_path, "r1"), "t1-a", 0.2, guard) as lease:
        while not lease.holding.is_over(now()):
            time.sleep(0.01)
        with pytest.raises(errors.TesterBusy):
            lease.require()
    assert tried and guard.asked == [lease.holding.stop_s, None]


def test_a_renewal_whose_answer_was_lost_counts_from_its_first_try(tmp_path: Path) -> None:
    class Deaf(LeaseFolder):
        def append(self, record: LeaseRecord) -> bool:
            done = super().append(record)
            if record.number == 2 and not tried:
                tried.append(now())
                raise OSError("the answer is lost")
            return done

    tried = list[float]()
    with leased(Deaf(tmp_path, "r1"), "t1-a", 3.0, Noted()) as lease:
        while lease.holding.record.number == 1 and not lease._lost:
            time.sleep(0.01)
        lease.require()
        assert lease.holding.asked_s <= tried[0]


def test_another_record_under_the_number_of_a_renewal_loses_the_lease(tmp_path: Path) -> None:
    folder = LeaseFolder(tmp_path, "r1")
    with leased(folder, "t1-a", LENGTH_S, Noted()) as lease:
        assert folder.append(LeaseRecord(2, "t2-b", LENGTH_S)) and not lease._is_mine(2)


def test_a_lease_much_longer_than_mine_is_waited_for(tmp_path: Path) -> None:
    def sleep(_s: float) -> None:
        slept.append(now())
        while now() < slept[0] + 10 * length_s:
            pass  # the patience of one's own length is over
        if len(slept) > 2:
            raise Waited

    slept, length_s = list[float](), 0.001
    with (
        leased(LeaseFolder(tmp_path, "r1"), "t1-a", LENGTH_S, Noted()),
        pytest.raises(Waited),
        leased(LeaseFolder(tmp_path, "r1"), "t2-b", length_s, Noted(), sleep),
    ):
        pass


def test_a_store_without_hard_links_holds_no_leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with (
        pytest.raises(errors.StoreError, match="must be on a file system with hard links: look at --results"),
        leased(LeaseFolder(tmp_path, "r1"), "t1-a", LENGTH_S, Noted()),
    ):
        pass
    (tmp_path / "one").write_text("one")
    with pytest.raises(OSError, match="hard links"):
        files.link_new(tmp_path / "one", tmp_path / "kept")
    files.replace_file(tmp_path / "kept", b"", exclusive=True)


def test_old_records_go_and_a_late_one_among_them_is_no_lease(tmp_path: Path) -> None:
    folder = LeaseFolder(tmp_path, "r1")
    for _ in range(KEPT):
        with leased(folder, "t1-a", LENGTH_S, Noted()) as lease:
            pass
    names = sorted(int(path.name) for path in (tmp_path / "r1").iterdir())
    assert names[-1] == 2 * KEPT and names[0] > 2 * KEPT - KEPT - 2
    assert not folder.append(lease.holding.record) and not folder.append(LeaseRecord(1, "t9", 60.0))


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "r1").mkdir()
    (tmp_path / "r1" / "1").write_text("{")
    with (
        pytest.raises(errors.StoreError, match="r1/1 is no lease"),
        leased(LeaseFolder(tmp_path, "r1"), "t1", LENGTH_S, Noted()),
    ):
        pass


@pytest.mark.parametrize(
    ("plan", "code"),
    [((0.0,), -signal.SIGKILL), ((60.0, 0.0), -signal.SIGKILL), ((60.0,), None), ((60.0, None), 0)],
    ids=["over", "the last line counts", "not yet", "given back"],
)
def test_the_guard_ends_a_process_at_the_end_of_its_lease(plan: tuple[float | None, ...], code: int | None) -> None:
    child = start_child(GUARDED, plan)
    assert child.stdout is not None
    try:
        if code is None:
            assert child.stdout.readline() == b"guarded\n" and child.poll() is None
        else:
            assert child.wait(30) == code
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_the_guard_ends_even_a_stopped_process_in_a_directory_with_a_file_named_like_a_module(tmp_path: Path) -> None:
    (tmp_path / "subprocess.py").write_text("raise SystemExit(9)\n")
    child = start_child(f"import os, pickle, trexbench.fleet.guard\nos.chdir({str(tmp_path)!r})\n{GUARDED}", (1.0,))
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"guarded\n"
        child.send_signal(signal.SIGSTOP)
        assert child.wait(30) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_the_guard_of_a_process_that_has_ended_ends() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert watch(child.pid) == 0


def test_a_guard_looks_at_the_clock_again_before_it_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a wait of a second, the lease's clock has gone on by what the machine slept."""
    clock, waits = iter([100.0, 160.0]), list[float | None]()

    def wait(lines: list[int], _w: object, _x: object, wait_s: float | None) -> tuple[list[int], object, object]:
        waits.append(wait_s)
        return (lines if len(waits) == 1 else []), [], []

    child, (reading, writing) = subprocess.Popen(["sleep", "60"]), os.pipe()
    os.write(writing, b"150.0\n")
    monkeypatch.setattr(guards, "now", lambda: next(clock))
    monkeypatch.setattr(select, "select", wait)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert watch(child.pid, reading) == 1 and child.wait() == -signal.SIGKILL
    assert waits == [None, 1.0, 0.0]


def test_a_document_is_committed_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    files.link_new(tmp_path / "one", tmp_path / "kept")
    with pytest.raises(FileExistsError):
        files.link_new(tmp_path / "two", tmp_path / "kept")
    assert (tmp_path / "kept").read_text() == "one"


def test_a_cell_of_a_night_has_one_place() -> None:
    started, night, cell = "2026-11-21T23:00:59Z", "2026-11-21-lab", Cell("r1", "var2-64b", True, None)
    place = place_of(started, night, cell)
    assert place.startswith("2026-11-21/r1/230059-var2-64b-ramp-") and place == place_of(started, night, cell)
    others = {place_of(started, f"{night}-2", cell), place_of(started, night, Cell("r1", "var2-64b", True, 1))}
    assert len(others | {place}) == 3


def test_a_tester_with_another_suite_refuses_the_cell(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    order = make_order(suite := tmp_path / "mine.yaml", tmp_path, digest="0")
    with pytest.raises(errors.ConfigError, match="are others at tester"):
        measure_cell(order)
    assert list(tmp_path.iterdir()) == [suite]


def test_the_digest_is_of_files_that_a_config_names_too(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    config = (ROOT / "dut_configs" / "netgate-linux.yaml").read_text()
    rules, suite = tmp_path / "own.nft", tmp_path / "mine.yaml"
    shipped = Path(firewall.__file__).with_name("firewalls") / f"{firewall.shipped()[0]}.nft"
    rules.write_text(shipped.read_text())
    config = re.sub(r"(?m)^variants:\n(?: .*\n|\n)*", "", config)
    (tmp_path / "box.yaml").write_text(f"{config}\nvariants: {{own: {{firewall: own.nft}}}}\n")
    order = make_order(suite, tmp_path, ONE_CELL.replace("netgate-linux", "box"), tmp_path)
    task._job_of(order)
    rules.write_text(f"{shipped.read_text()}\n# another\n")
    assert digest_of(read_suite(suite, tmp_path), Setup(sim=True, configs_dir=tmp_path)) != order.digest
    with pytest.raises(errors.ConfigError, match="are others at tester"):
        task._job_of(order)
    rules.write_text(shipped.read_text())
    task._job_of(order)
    rules.unlink()
    with pytest.raises(errors.ConfigError, match=r"own\.nft: No such file"):
        task._job_of(order)


def test_a_document_that_cannot_be_placed_stays_and_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    order = make_order(tmp_path / "mine.yaml", tmp_path, place="day/x.json")

    def drive(job: object, output: Output) -> Measured[Any]:
        monkeypatch.setattr(task, "link_new", full)
        return measured("whole")(job, output)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(task, "_GUARD", Noted())
    said = measure_cell(order, drive).error
    assert "day/x.json: No space left on device" in said
    assert load_document(Path(said.rpartition("the result is in ")[2])).id == "whole"
