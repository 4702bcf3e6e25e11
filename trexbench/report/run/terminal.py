"""A run on a terminal: progress drawn in place, and coloured lines. Only this module imports rich."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ...core.units import format_duration, format_pps, format_share
from ..words import name_of, or_dash
from .live import Live, LiveProgress, asked_words

NARROW = 50
"""Columns below which the rate sent is left out: the rate asked stands above it."""
DRAW_S = 0.5
"""Seconds between drawings: more cannot be read, and each costs CPU time that the sender may need."""


class TerminalLive(Live):
    """Draws progress in place, and erases it at the end of the run."""

    every_s = DRAW_S

    def start(self) -> None:
        console = Console(file=self.stream, highlight=False)
        # No refresh thread: the run's loop draws when there is something new.
        self._screen = RichLive(console=console, auto_refresh=False, transient=True)
        self._screen.start()

    def stop(self) -> None:
        self._screen.stop()

    def draw(self, progress: LiveProgress) -> None:
        plan, bar = self.result.plan, Table.grid(padding=(0, 1), expand=False)
        phase, width = f"{progress.phase_words:<11}", self._screen.console.width
        times = f"{format_duration(progress.elapsed_s)}, {progress.left_words}"
        length = max(4, min(36, width - len(phase) - len(times) - 3))
        bar.add_row(Text(phase, "bold"), ProgressBar(total=1.0, completed=progress.share, width=length), times)
        table = Table(box=None, pad_edge=False, header_style="dim")
        wide = width >= NARROW
        for name in ("", *(("sent",) if wide else ()), "received", "loss"):
            table.add_column(name, justify="right", min_width=5 if not name else 12)
        for direction, window in zip(plan.directions, progress.windows, strict=False):
            bad = window.is_bad(plan.loss_threshold)
            loss = Text(f"{'! ' if bad else ''}{or_dash(window.loss, format_share)}", "bold red" if bad else "green")
            sent = (format_pps(window.sent_pps),) if wide else ()
            table.add_row(str(direction), *sent, format_pps(window.received_pps), loss)
        asked = Text(asked_words(plan, progress))
        self._screen.update(Group(Text(name_of(self.result)), bar, asked, table), refresh=True)


def print_lines(lines: Iterable[Sequence[tuple[str, str]]], stream: TextIO) -> None:
    """Print lines of parts, each part with its style."""
    console = Console(file=stream, highlight=False)
    for line in lines:
        console.print(Text.assemble(*line))
