"""Sentences of a watched page about the night that is under way."""

from __future__ import annotations

from dataclasses import replace

from trexbench.core.history.cell import Cell
from trexbench.core.history.night import Attempt, CellRecord, CellState, Night
from trexbench.core.units import seconds_of
from trexbench.review.progress import progress_of

CELLS = [Cell("vpp", "64b", False, queues) for queues in (1, 2, 3)]
NOW_S = seconds_of("2026-11-20T02:01:30Z") or 0.0


def night(day: int, *stands: tuple[CellState, str | None], finished: str | None = None) -> Night:
    """A night whose cells are in these states and began at these times of the day."""
    records = [
        CellRecord(cell, state, () if clock is None else (Attempt(f"2026-11-{day}T{clock}Z"),))
        for cell, (state, clock) in zip(CELLS, stands, strict=True)
    ]
    date = f"2026-11-{day}"
    return Night("nightly", date, f"{date}T02:00:00Z", False, tuple(records), finished and f"{date}T{finished}Z")


DONE, FAILED, RUNNING, WAITING = CellState.DONE, CellState.FAILED, CellState.RUNNING, CellState.WAITING
EARLIER = night(19, (DONE, "02:00:00"), (DONE, "02:02:00"), (DONE, "02:12:00"), finished="02:15:00")
GOING = night(20, (FAILED, "02:00:00"), (RUNNING, "02:01:00"), (WAITING, None))


def test_the_rest_takes_what_it_took_in_earlier_nights() -> None:
    progress = progress_of(GOING, [EARLIER, GOING], NOW_S)
    assert progress.left_s == 600 - 30 + 180
    assert list(progress.sentences()) == [
        "Night of 2026-11-20, nightly: 0 of 3 cells measured, 1 failed",
        "Now vpp 64b uni 2q, since 02:01 UTC",
        "About 12 min left",
    ]
    assert progress_of(GOING, [EARLIER, GOING], NOW_S + 5000).left_s == 180, "late, but not owed time"


def test_a_cell_that_was_never_measured_takes_the_mean_of_the_others() -> None:
    first = night(20, (DONE, "02:00:00"), (RUNNING, "02:01:00"), (WAITING, None))
    assert progress_of(first, [first], NOW_S).left_s == 60 - 30 + 60
    assert list(progress_of(replace(first, suite="other"), [EARLIER], NOW_S).sentences())[2:] == []


def test_hours_are_told_as_such() -> None:
    long = night(19, (DONE, "02:00:00"), (DONE, "03:00:00"), (DONE, "06:00:00"), finished="09:00:00")
    assert list(progress_of(GOING, [long, GOING], NOW_S).sentences())[2] == "About 6 h 0 min left"


def test_simulated_nights_say_nothing_of_a_real_one() -> None:
    fast = night(19, (DONE, "02:00:00"), (DONE, "02:00:01"), (DONE, "02:00:02"), finished="02:00:03")
    assert progress_of(GOING, [EARLIER, replace(fast, simulated=True), GOING], NOW_S).left_s == 600 - 30 + 180


def test_the_time_until_a_cell_is_tried_again_is_not_that_of_the_cell_before() -> None:
    """The second cell was interrupted, and measured when the night was resumed four hours later."""
    first, second, third = night(20, (DONE, "02:00:00"), (DONE, "06:00:00"), (RUNNING, "06:01:00")).cells
    retried = replace(second, attempts=(Attempt("2026-11-20T02:01:00Z", error="interrupted"), *second.attempts))
    resumed = replace(GOING, cells=(first, retried, third))
    assert progress_of(resumed, [resumed], NOW_S + 4 * 3600).left_s == 60 - 30


def test_a_cell_that_has_not_begun_is_named_without_a_time() -> None:
    damaged = night(20, (DONE, "02:00:00"), (RUNNING, None), (WAITING, None))
    assert list(progress_of(damaged, [EARLIER, damaged], NOW_S).sentences())[1] == "Now vpp 64b uni 2q"
