"""A fleet's parts: leases in a store, the guard that ends a tester in time, the one place of a cell's document."""

from __future__ import annotations

import signal
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest
from children import start_child

from trexbench import files
from trexbench.core import errors
from trexbench.core.fleet.lease import LeaseRecord
from trexbench.core.history.cell import Cell
from trexbench.fleet.guard import now
from trexbench.fleet.leases import KEPT, LeaseFolder, leased
from trexbench.fleet.task import CellOrder, measure_cell, place_of, plain, setup_of
from trexbench.session.options import Setup

LENGTH_S = 60.0
GUARDED = """
import pickle, sys, time
from trexbench.fleet.guard import LeaseGuard, now
guard, plan = LeaseGuard(), pickle.load(sys.stdin.buffer)
for after_s in plan:
    guard.kill_at(None if after_s is None else now() + after_s)
print("guarded", flush=True)
time.sleep(60 if plan[-1] is not None else 0)
"""


@dataclass
class Noted:
    """A guard that notes what it is asked for."""

    asked: list[float | None] = field(default_factory=list)

    def kill_at(self, when_s: float | None) -> None:
        self.asked.append(when_s)


class Waited(Exception):
    """The taker waits."""


def no_waiting(_s: float) -> None:
    raise Waited


def test_a_dut_is_leased_to_one_at_a_time(tmp_path: Path) -> None:
    guard, first, second = Noted(), LeaseFolder(tmp_path, "r1"), LeaseFolder(tmp_path, "r1")
    with leased(first, "t1-a", LENGTH_S, guard) as lease:
        lease.require()
        with pytest.raises(Waited), leased(second, "t2-b", LENGTH_S, guard, no_waiting):
            pass
        with leased(LeaseFolder(tmp_path, "r2"), "t2-b", LENGTH_S, Noted(), no_waiting):
            pass
    assert guard.asked == [lease.holding.stop_s, None]
    with leased(second, "t2-b", LENGTH_S, guard, no_waiting) as lease:
        assert lease.holding.record.holder == "t2-b" and lease.holding.record.number == 3


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


def test_of_two_records_with_one_number_the_first_counts(tmp_path: Path) -> None:
    folder = LeaseFolder(tmp_path, "r1")
    with leased(folder, "t1-a", LENGTH_S, Noted()) as lease:
        assert not folder.append(lease.holding.record)
        assert folder.append(lease.holding.renewal(""))
        assert folder.append(lease.holding.renewed(lease.holding.renewal(""), 0.0, 0.0).renewal(""))


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


def test_the_guard_ends_even_a_stopped_process() -> None:
    child = start_child(GUARDED, (1.0,))
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"guarded\n"
        child.send_signal(signal.SIGSTOP)
        assert child.wait(30) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


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
    suite = tmp_path / "mine.yaml"
    suite.write_text("duts: [netgate-linux]\nmodes: [64b]\ndirections: [uni]\n")
    setup = Setup(sim=True, configs_dir=Path(__file__).parents[2] / "dut_configs")
    order = CellOrder(
        str(suite), "mine", plain(setup), {}, "", 0, "2026-11-21", "2026-11-21-mine", str(tmp_path), "x.json", "0", 9.0
    )
    with pytest.raises(errors.ConfigError, match="are others at tester"):
        measure_cell(asdict(order))
    assert list(tmp_path.iterdir()) == [suite]


def test_options_travel_as_plain_values() -> None:
    setup = Setup(sim=True, configs_dir=Path("/a"), seed=3, label="x")
    values = plain(setup)
    assert setup_of(values) == setup
    assert all(value is None or isinstance(value, (str, int, float, bool)) for value in values.values())
