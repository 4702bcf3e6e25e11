"""Choice of the cells of a night that are given to Dask, by which testers are there and idle."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from drives import ONE_CELL, make_order

from trexbench.config.fleet import Fleet
from trexbench.config.suite import AS_IT_IS, Instead
from trexbench.core.errors import FleetError
from trexbench.core.fleet.roster import choose_testers
from trexbench.core.history.cell import Cell
from trexbench.core.history.night import CellRecord, CellState, Night
from trexbench.fleet import schedule as nights
from trexbench.fleet.leases import DutLeased
from trexbench.fleet.schedule import DEATHS, LEASED_S, UNPLACED_S, FleetNight
from trexbench.fleet.task import CellOrder, CellOutcome, _job_of
from trexbench.session.keep import Output
from trexbench.session.options import Setup
from trexbench.suite.night import NightOptions


@pytest.mark.parametrize(
    ("wiring", "left", "idle", "chosen"),
    [
        ({"t1": "ab", "t2": "ab"}, {"a": 1, "b": 2}, ["t1", "t2"], {"b": "t1", "a": "t2"}),
        ({"t1": "ab", "t2": "a"}, {"a": 2, "b": 1}, ["t1", "t2"], {"b": "t1", "a": "t2"}),
        ({"t1": "ab", "t2": "a"}, {"a": 2, "b": 1}, ["t2"], {"a": "t2"}),
        ({"t1": "ab"}, {"a": 1, "b": 1}, [], {}),
        ({"t1": "b", "t2": "ab"}, {"a": 1}, ["t1"], {}),
        ({"t1": "ab"}, {"a": 0, "b": 1}, ["t1"], {"b": "t1"}),
    ],
    ids=[
        "the DUT with more cells first", "a tester is kept for the DUT that only it reaches",
        "that tester is busy", "nobody is idle", "the idle one does not reach it", "nothing is left of one",
    ],
)  # fmt: skip
def test_an_idle_tester_gets_the_cell_that_needs_it_most(
    wiring: dict[str, str], left: dict[str, int], idle: list[str], chosen: dict[str, str]
) -> None:
    able = {dut: {tester for tester, duts in wiring.items() if dut in duts} for dut in "ab"}
    assert choose_testers(left, idle, able, {}) == chosen


def test_a_dut_keeps_its_tester_until_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(nights.time, "monotonic", lambda: clock[0])
    night, client, orders = night_of("abc", [])
    night._own = {"a": "t1", "b": "t2", "c": "t1"}
    night._give(client, "a", night._chosen({"t1": [], "t2": []})["a"], orders)
    assert night._chosen({"t1": [], "t2": []}) == {"b": "t2"}, "c waits for t1"
    night._running.pop(client.tasks[0].key)
    night._waiting["b"].clear()
    for later_s, chosen in ((0.0, {}), (night.fleet.lease_s, {}), (1.0, {"c": "t2"})):
        clock[0] += later_s
        assert night._chosen({"t2": []}) == chosen


@dataclass
class Task:
    """A future of Dask."""

    key: str
    workers: list[str]
    status: str = "pending"
    raised: Exception | None = None
    outcome: CellOutcome | None = None

    def add_done_callback(self, _call: object) -> None: ...

    def cancel(self) -> None:
        self.status = "cancelled"

    def exception(self, timeout: float) -> Exception | None:
        if self.status not in ("error", "finished"):
            raise AssertionError(f"waits {timeout} s for what does not come")
        return self.raised

    def result(self, timeout: float) -> CellOutcome | None:
        return self.outcome if timeout else None


@dataclass
class Given:
    """A client that keeps what it is given."""

    tasks: list[Task] = field(default_factory=list)

    def submit(self, _work: object, _order: object, key: str, workers: list[str], **_: object) -> Task:
        self.tasks.append(Task(key, workers))
        return self.tasks[-1]


class KilledWorker(Exception):
    """An exception like Dask's."""


def night_of(duts: str, notes: list[str]) -> tuple[FleetNight, Any, list[CellOrder]]:
    """A night of one cell for each DUT, a letter each, by the testers t1 and t2 that reach all."""
    night = FleetNight("lab", Fleet((), (), ()))
    night._able = {dut: {"t1", "t2"} for dut in duts}
    night._waiting = {dut: deque([at]) for at, dut in enumerate(duts)}
    jobs: Any = [SimpleNamespace(cell=SimpleNamespace(dut=dut)) for dut in duts]
    options: Any = SimpleNamespace(say=notes.append)
    night._jobs, night._options = jobs, options
    records = tuple(CellRecord(Cell(dut, "64b", False, 1)) for dut in duts)
    stored = Night("lab", "2026-11-21", "2026-11-21T02:00:00Z", False, records)
    writer: Any = SimpleNamespace(night=stored)
    writer.write = lambda latest: setattr(writer, "night", latest)
    night._writer = writer
    orders = [CellOrder("lab", "lab", Setup(), AS_IT_IS, dut, 0, "", "n", "", "", "", 9.0) for dut in duts]
    return night, Given(), orders


def test_an_order_has_the_number_of_its_own_cell(tmp_path: Path) -> None:
    """One DUT in place of two: cells with its own number of queues, and with the same one stated, are one run."""
    text = ONE_CELL.replace("linux]", "linux, {name: netgate-vpp, rx_queues: [1, 2]}]")
    order = make_order(suite := tmp_path / "mine.yaml", tmp_path, text)
    options = NightOptions(tmp_path, order.setup, Output(), print, instead=Instead(dut=("netgate-vpp",)))
    common, numbers, _ = FleetNight(str(suite), Fleet((), (), ())).common_order(options, "2026-11-21", "n")
    found = {cell: str(_job_of(replace(common, number=at)).cell) for cell, at in numbers.items()}
    assert len(found) == 2 and all(cell == own for cell, own in found.items()), found


def test_each_cell_is_blamed_for_its_own_tester_only() -> None:
    """Both kill their testers again and again: neither ever waits at a tester that the other kills."""
    notes, failed = list[str](), list[tuple[int, str]]()
    night, client, orders = night_of("ab", notes)
    night._note = lambda at, _since, outcome, _took_s: failed.append((at, str(outcome.error)))  # type: ignore[method-assign]
    for death in range(DEATHS):
        for dut, tester in night._chosen({"t1": [], "t2": []}).items():
            night._give(client, dut, tester, orders)
        assert night._chosen({"t1": [], "t2": []}) == {} and len({one.workers[0] for one in client.tasks[-2:]}) == 2
        assert night._deaths.total() == 2 * death
        for task in client.tasks[-2:]:
            task.status, task.raised = "error", KilledWorker()
            night._end(night._running.pop(task.key))
    assert sorted(failed) == [(at, f"{DEATHS} testers died while they measured it") for at in (0, 1)]
    assert len({task.key for task in client.tasks}) == 2 * DEATHS and len(notes) == 2 * (DEATHS - 1)


def test_a_dut_that_another_has_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    notes, failed, clock = list[str](), list[str](), [100.0]
    monkeypatch.setattr(nights.time, "monotonic", lambda: clock[0])
    night, client, orders = night_of("a", notes)
    night._note = lambda _at, _since, outcome, _took_s: failed.append(str(outcome.error))  # type: ignore[method-assign]
    for later_s in (0.0, LEASED_S - 1, 1.0):
        assert not failed
        clock[0] += later_s
        night._give(client, "a", "t1", orders)
        task = client.tasks[-1]
        task.status, task.raised = "error", DutLeased("a is leased by t9", "wait for it to end")
        night._end(night._running.pop(task.key))
    assert failed == ["a is leased by t9: wait for it to end"] and len(notes) == 2 and not night._waiting["a"]


def test_an_answer_that_was_lost_is_not_waited_for() -> None:
    night, client, orders = night_of("a", [])
    night._give(client, "a", "t1", orders)
    (task,) = client.tasks
    (given,) = night._writer.night.cells
    assert given.state is CellState.RUNNING and [one.error for one in given.attempts] == [None]
    task.status = "lost"
    night._end(night._running.pop(task.key))
    (given,) = night._writer.night.cells
    assert list(night._waiting["a"]) == [0] and given == CellRecord(given.cell)


@pytest.mark.parametrize(("answer", "took_s"), [("5 Mpps", 30.0), ("", None)])
def test_only_what_was_measured_now_has_taken_its_time(
    answer: str, took_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    night, client, orders = night_of("a", [])
    night._give(client, "a", "t1", orders)
    (task,) = client.tasks
    task.status, task.outcome = "finished", CellOutcome("t1", "x.json", answer)
    given = night._running.pop(task.key)
    monkeypatch.setattr(nights.time, "monotonic", lambda: given.begun_s + 30.0)
    night._end(given)
    (noted,) = night._writer.night.cells
    assert noted.state is CellState.DONE and [one.took_s for one in noted.attempts] == [took_s]


def test_a_cell_at_no_tester_for_long_is_given_again_while_one_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    night, client, orders = night_of("a", [])
    clock = [100.0]
    monkeypatch.setattr(nights.time, "monotonic", lambda: clock[0])
    night._give(client, "a", "t1", orders)
    (task,) = client.tasks
    for seen, later_s in (([task.key], UNPLACED_S + 1), ([], UNPLACED_S - 1)):
        clock[0] += later_s
        night._take_back_unplaced({"t1": seen})
        assert task.status == "pending" and not night._waiting["a"]
    clock[0] += 2.0
    night._take_back_unplaced({"t1": []})
    assert task.status == "cancelled" and list(night._waiting["a"]) == [0] and not night._running
    assert night._chosen({"t2": []}) == {"a": "t2"}
    night._give_up_unreached((), {"a": clock[0] - 5 * night.fleet.lease_s})
    (given_up,) = night._writer.night.cells
    assert [one.code for one in given_up.attempts] == [FleetError.exit_code]


def test_each_fault_of_a_store_is_reported_once() -> None:
    said, warned = list[str](), list[str]()
    night, _, _ = night_of("aaa", said)
    cell = Cell("a", "var2-64b", False, 1)
    stored = Night("lab", "2026-11-21", "2026-11-21T03:00:00Z", True, (CellRecord(cell),) * 3)
    night._writer = SimpleNamespace(night=stored, write=lambda _night: None)  # type: ignore[assignment]
    night._options = SimpleNamespace(say=said.append, output=SimpleNamespace(warn=warned.append))  # type: ignore[assignment]
    faults = [*(f"s3://lab cannot be reached: no way to s3://lab/{at}.json" for at in range(2)), "s3://lab: forbidden"]
    for at, unsent in enumerate(faults):
        night._note(at, "2026-11-21T03:00:00Z", CellOutcome("t1", "x.json", "5 Mpps", unsent=unsent))
    assert warned == [faults[0], faults[2]]
    assert len(said) == 3 and not night._writer.night.failed
