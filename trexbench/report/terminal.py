"""A run on a terminal: progress in place, and the summary in colours. Everything that draws with rich."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live as RichLive
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..core.ramp import Step
from ..core.result import RunResult
from ..core.sample import Sample
from ..core.units import format_duration, format_pps
from .live import Follower, Progress, asked_words, format_loss
from .summary import Summary, name_of

DRAW_S = 0.5
"""At most two pictures a second: more cannot be read, and each costs CPU that the sender may need."""


class TerminalLive:
    """Progress that is drawn over itself, and gone when the run is over."""

    def __init__(self, result: RunResult, stream: TextIO, speedup: float = 1.0) -> None:
        self._plan, self._name = result.plan, name_of(result)
        self._follower = Follower(result.plan, speedup)
        console = Console(file=stream, highlight=False)
        # No refresh thread: it is drawn when there is something new, in the loop's own time.
        self._live = RichLive(console=console, auto_refresh=False, transient=True)
        self._next_s, self._every_s = 0.0, DRAW_S * speedup

    def __enter__(self) -> TerminalLive:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def sampled(self, samples: Sequence[Sample], step: Step) -> None:
        changed, now_s = self._follower.follow(samples), samples[-1].t_s
        if changed or now_s >= self._next_s:
            self._next_s = now_s + self._every_s - self._plan.sample_s / 2
            self._live.update(self._picture(self._follower.progress(samples)), refresh=True)

    def _picture(self, progress: Progress) -> RenderableType:
        plan = self._plan
        bar = Table.grid(padding=(0, 1), expand=False)
        bar.add_row(
            Text(f"{progress.phase_words:<11}", "bold"),
            ProgressBar(total=1.0, completed=progress.share, width=36),
            f"{format_duration(progress.elapsed_s)}, {progress.left_words}",
        )
        return Group(Text(self._name), bar, Text(asked_words(plan, progress)), self._lanes(progress))

    def _lanes(self, progress: Progress) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in ("", "sent", "received", "loss"):
            table.add_column(name, justify="right", min_width=5 if not name else 12)
        for direction, window in zip(self._plan.directions, progress.windows, strict=False):
            bad = window.is_bad(self._plan.loss_threshold)
            loss = Text(f"{'! ' if bad else ''}{format_loss(window)}", "bold red" if bad else "green")
            table.add_row(str(direction), format_pps(window.sent_pps), format_pps(window.received_pps), loss)
        return table


def print_rich_summary(summary: Summary, stream: TextIO) -> None:
    """The summary as text.py has it, laid out for this terminal."""
    Console(file=stream, highlight=False).print(draw_summary(summary))


def draw_summary(summary: Summary) -> RenderableType:
    name, _, answer = summary.headline.partition(": ")
    parts: list[RenderableType] = [Text(f" {banner} ", "bold white on red") for banner in summary.banners]
    parts.append(Padding(Text.assemble((f"{name}: ", "bold"), (answer, "bold green")), (1, 0)))
    parts.extend(_figures(*rows) for rows in summary.tables)
    parts.append(_pairs(summary.verdicts, "bold"))
    if summary.doubts:
        parts.append(_pairs([("doubt", text) for text in summary.doubts], "bold yellow"))
    parts.append(_pairs(summary.facts, "dim"))
    return Group(*parts)


def _figures(head: tuple[str, ...], *rows: tuple[str, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in head:
        table.add_column(name, justify="right" if name else "left")
    for number, row in enumerate(rows):
        table.add_row(*(Text(cell) for cell in row), style="bold" if number == 0 else "")
    return table


def _pairs(pairs: Sequence[tuple[str, str]], style: str) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=9, no_wrap=True)
    grid.add_column()
    for label, text in pairs:
        grid.add_row(Text(label, style), Text(text))
    return Padding(grid, (0, 0, 1, 0))
