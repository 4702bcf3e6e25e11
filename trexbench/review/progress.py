"""The night that is under way: what is measured now and since when, what is done, how long the rest takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.history.cell import Cell
from ..core.history.night import CellState, Night
from ..core.units import seconds_of
from ..report.words import format_count


@dataclass(frozen=True)
class NightProgress:
    """A night as it stands."""

    night: Night
    cell: Cell | None
    """The cell that is measured now; None between two."""
    since: str | None
    """The time, UTC, at which that began."""
    left_s: float | None
    """Until the last cell is done; None where no cell's duration is known."""

    def sentences(self) -> Iterator[str]:
        """Words for the page; they change once a minute at most while one cell is measured."""
        done = sum(record.state is CellState.DONE for record in self.night.cells)
        failed = f", {len(self.night.failed)} failed" if self.night.failed else ""
        of = format_count(len(self.night.cells), "cell")
        yield f"Night of {self.night.night}, {self.night.suite}: {done} of {of} measured{failed}"
        if self.cell is not None:
            yield f"Now {self.cell}" + (f", since {self.since[11:16]} UTC" if self.since else "")
        if self.left_s is not None:
            minutes = max(1, round(self.left_s / 60))
            yield f"About {minutes // 60} h {minutes % 60} min left" if minutes >= 100 else f"About {minutes} min left"


def progress_of(night: Night, nights: Sequence[Night], now_s: float) -> NightProgress:
    """The progress of an unfinished night. nights: itself and others, oldest first; now_s: since 1970."""
    took_s = {cell: s for one in _alike(night, nights) for cell, s in _durations(one)}
    usual_s = sum(took_s.values()) / len(took_s) if took_s else None
    at = next((at for at, one in enumerate(night.cells) if one.state is CellState.RUNNING), None)
    cell, since = None, None
    if at is not None:
        cell, attempts = night.of[at], night.cells[at].attempts
        since = attempts[-1].started if attempts else None
    left_s = None
    if usual_s is not None:
        begun_s = seconds_of(since)
        left_s = sum(took_s.get(night.cells[one].cell, usual_s) for one in night.left if one != at)
        if at is not None and begun_s is not None:
            left_s += max(0.0, took_s.get(night.cells[at].cell, usual_s) - (now_s - begun_s))
    return NightProgress(night, cell, since, left_s)


def _alike(night: Night, nights: Sequence[Night]) -> list[Night]:
    """Nights whose cells take as long: the simulated clock may be faster than a real one."""
    return [one for one in nights if (one.suite, one.simulated) == (night.suite, night.simulated)]


def _durations(night: Night) -> Iterator[tuple[Cell, float]]:
    """Yield the time from the begin of each measured cell to whatever began next, be it an attempt that failed."""
    begun = [one.started for record in night.cells for one in record.attempts]
    times = sorted(one for one in map(seconds_of, (*begun, night.finished)) if one is not None)
    for record in night.cells:
        start_s = seconds_of(record.attempts[-1].started) if record.attempts else None
        after = [one for one in times if start_s is not None and one > start_s]
        if record.state is CellState.DONE and start_s is not None and after:
            yield record.cell, after[0] - start_s
