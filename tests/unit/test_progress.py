"""Sentences of a watched page about the night that is under way."""

from __future__ import annotations

from dataclasses import replace

from trexbench.core.history.cell import Cell
from trexbench.core.history.night import Attempt, CellRecord, CellState, Night
from trexbench.core.units import seconds_of
from trexbench.review.progress import progress_lines

CELLS = [Cell("vpp", "64b", False, queues) for queues in (1, 2, 3)]
NOW_S = seconds_of("2026-11-20T02:01:30Z") or 0.0


def night(
    *stands: tuple[CellState, str | None, float | None],
    expected_s: float | None = 60.0,
    duts: tuple[str, str, str] = ("vpp", "vpp", "vpp"),
) -> Night:
    """A night whose cells are in these states, began at these times of the day and took so long."""
    records = [
        CellRecord(
            replace(cell, dut=dut),
            state,
            () if clock is None else (Attempt(f"2026-11-20T{clock}Z", took_s=took_s),),
            expected_s,
        )
        for cell, dut, (state, clock, took_s) in zip(CELLS, duts, stands, strict=True)
    ]
    return Night("nightly", "2026-11-20", "2026-11-20T02:00:00Z", False, tuple(records))


DONE, FAILED, RUNNING, WAITING = CellState.DONE, CellState.FAILED, CellState.RUNNING, CellState.WAITING
WAITS = WAITING, None, None
NOW = RUNNING, "02:01:00", None
"""Began half a minute ago."""


def test_the_rest_takes_what_is_expected_until_a_cell_is_measured() -> None:
    going = night((FAILED, "02:00:00", None), NOW, WAITS)
    assert going.left_s(NOW_S) == 60 - 30 + 60
    assert list(progress_lines(going, NOW_S)) == [
        "Night of 2026-11-20, nightly: 0 of 3 cells measured, 1 failed",
        "Now vpp 64b uni 2q, since 02:01 UTC",
        "About 2 min left",
    ]


def test_then_at_their_pace_whatever_pauses_there_were() -> None:
    """The first cell may have been measured in a session the day before: only its own time counts."""
    going = night((DONE, "02:00:00", 120.0), NOW, WAITS)
    assert going.left_s(NOW_S) == 120 - 30 + 120
    assert going.left_s(NOW_S + 5000) == 120, "late, but not owed time"
    long = night((DONE, "02:00:00", 10_800.0), NOW, WAITS)
    assert list(progress_lines(long, NOW_S))[2] == "About 6 h 0 min left"


def test_a_night_of_an_older_version_does_not_say_what_is_left() -> None:
    older = night((DONE, "02:00:00", None), NOW, WAITS, expected_s=None)
    assert list(progress_lines(older, NOW_S))[2:] == []


def test_a_night_by_a_fleet_names_all_that_is_measured() -> None:
    by_fleet = night(NOW, NOW, WAITS, duts=("vpp", "linux", "bsd"))
    assert by_fleet.left_s(NOW_S) == (30 + 30 + 60) / 2
    one_waits = night(NOW, NOW, WAITS, duts=("vpp", "linux", "linux"))
    assert one_waits.left_s(NOW_S) == 30 + 60, "the DUT's tester measures one cell after the other"
    assert list(progress_lines(by_fleet, NOW_S))[1:] == [
        "Now vpp 64b uni 1q, since 02:01 UTC",
        "Now linux 64b uni 2q, since 02:01 UTC",
        "About 1 min left",
    ]
    assert list(progress_lines(night(WAITS, WAITS, WAITS), NOW_S))[1:] == []


def test_a_cell_that_has_not_begun_is_named_without_a_time() -> None:
    damaged = night((DONE, "02:00:00", 60.0), (RUNNING, None, None), WAITS)
    assert list(progress_lines(damaged, NOW_S))[1] == "Now vpp 64b uni 2q"
