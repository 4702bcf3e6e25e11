"""The night in progress: what is measured now and since when, what is done, and how long the rest takes."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.history.night import CellState, Night
from ..core.units import seconds_of
from ..report.words import format_count


def progress_lines(night: Night, now_s: float) -> Iterator[str]:
    """Yield sentences for the page, which change at most once a minute while a cell is measured. now_s: since 1970."""
    done = sum(record.state is CellState.DONE for record in night.cells)
    failed = f", {len(night.failed)} failed" if night.failed else ""
    of = format_count(len(night.cells), "cell")
    yield f"Night of {night.night}, {night.suite}: {done} of {of} measured{failed}"
    running = [at for at, record in enumerate(night.cells) if record.state is CellState.RUNNING]
    if not running:  # between two cells
        return
    for at in running:
        started = night.cells[at].attempts[-1].started if night.cells[at].attempts else ""
        yield f"Now {night.of[at]}" + (f", since {started[11:16]} UTC" if seconds_of(started) is not None else "")
    if (left_s := night.left_s(now_s)) is not None:
        minutes = max(1, round(left_s / 60))
        yield f"About {minutes // 60} h {minutes % 60} min left" if minutes >= 100 else f"About {minutes} min left"
