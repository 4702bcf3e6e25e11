"""The night that is under way: what is measured now and since when, what is done, how long the rest takes."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import strptime

from ..core.history.cell import Cell
from ..core.history.night import CellState, Night
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
            yield f"Now {self.cell}, since {(self.since or '')[11:16]} UTC"
        if self.left_s is not None:
            minutes = max(1, round(self.left_s / 60))
            yield f"About {minutes // 60} h {minutes % 60} min left" if minutes >= 100 else f"About {minutes} min left"


def progress_of(night: Night, nights: Sequence[Night], now_s: float) -> NightProgress:
    """The progress of an unfinished night. nights: itself and others, oldest first; now_s: since 1970."""
    took_s = {cell: s for one in nights if one.suite == night.suite for cell, s in _durations(one)}
    usual_s = sum(took_s.values()) / len(took_s) if took_s else None
    at = next((at for at, one in enumerate(night.cells) if one.state is CellState.RUNNING), None)
    cell, since = None, None
    if at is not None:
        cell, since = night.of[at], night.cells[at].attempts[-1].started
    left_s = None
    if usual_s is not None:
        begun_s = seconds_of(since)
        left_s = sum(took_s.get(night.cells[one].cell, usual_s) for one in night.left if one != at)
        if at is not None and begun_s is not None:
            left_s += max(0.0, took_s.get(night.cells[at].cell, usual_s) - (now_s - begun_s))
    return NightProgress(night, cell, since, left_s)


def _durations(night: Night) -> Iterator[tuple[Cell, float]]:
    """Yield the time from the begin of each measured cell to whatever began next."""
    begun = {record.cell: seconds_of(record.attempts[-1].started) for record in night.cells if record.attempts}
    times = sorted(one for one in (*begun.values(), seconds_of(night.finished)) if one is not None)
    for record in night.cells:
        start_s = begun.get(record.cell)
        after = [one for one in times if start_s is not None and one > start_s]
        if record.state is CellState.DONE and start_s is not None and after:
            yield record.cell, after[0] - start_s


def seconds_of(text: str | None) -> float | None:
    """Seconds since 1970 of a time as in documents; None for anything else."""
    if text is None:
        return None
    try:
        return float(timegm(strptime(text, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return None
