"""The night that is under way: what is measured now and since when, what is done, how long the rest takes."""

from __future__ import annotations

from collections.abc import Iterator
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
    """Until the last cell is done; None: it is not known, as where a fleet measures several at once."""

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


def progress_of(night: Night, now_s: float) -> NightProgress:
    """The progress of an unfinished night. now_s: since 1970."""
    at = next((at for at, record in enumerate(night.cells) if record.state is CellState.RUNNING), None)
    attempts = night.cells[at].attempts if at is not None else ()
    since = attempts[-1].started if attempts and seconds_of(attempts[-1].started) is not None else None
    if at is None:  # a fleet's night names no cell that is measured
        return NightProgress(night, None, None, None)
    return NightProgress(night, night.of[at], since, night.left_s(now_s))
