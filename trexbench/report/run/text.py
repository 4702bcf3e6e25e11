"""A run's summary and progress as text: plain, or on a terminal in colours and drawn in place."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from typing import TextIO

from ...core.result import RunResult
from ..clean import clean
from ..fit import format_sheet
from ..room import room_of, wrapped
from ..sheet import Head, make_sheet
from .live import Live
from .summary import RunSummary, summarise

WIDTH = 100
Line = Sequence[tuple[str, str]]
"""Parts of a line, each with its style on a terminal."""


def open_live(result: RunResult, stream: TextIO, speedup: float = 1.0) -> Live:
    """Progress: drawn in place on a terminal, in lines elsewhere. speedup: simulated seconds per real second."""
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        from .terminal import TerminalLive  # rich: only where it draws

        return TerminalLive(result, stream, speedup)
    return Live(result, stream, speedup)


def print_summary(result: RunResult, stream: TextIO) -> None:
    """On a terminal in colours and in its width, elsewhere as plain text."""
    if stream.isatty():
        from .terminal import print_lines  # rich: only where it draws

        print_lines(_lines(summarise(result), width_of(stream)), stream)
    else:
        stream.write(format_summary(result, room_of(stream)))


def width_of(stream: TextIO) -> int:
    """Columns of text there, as room_of says; WIDTH where there is no limit."""
    return room_of(stream) or WIDTH


def format_summary(result: RunResult, room: int | None = None) -> str:
    """Answer first: headline, a table, who was the limit, warnings, what was sent and how. room: columns, as of fit."""
    lines = ("".join(text for text, _ in line) for line in _lines(summarise(result), room or WIDTH))
    return "".join(f"{line}\n" for line in wrapped([*lines], room))


def _lines(summary: RunSummary, width: int) -> Iterator[Line]:
    name, _, answer = clean(summary.headline).partition(": ")
    blocks: list[list[Line]] = [
        [[(f"*** {clean(banner)} ***", "bold white on red")] for banner in summary.banners],
        [[(f"{name}: ", "bold"), (answer, "bold green")]],
        *(_table(rows) for rows in summary.tables(width)),
        _pairs(summary.verdicts, "bold", width),
        _pairs([("warning", text) for text in summary.warnings], "bold yellow", width),
        _pairs(summary.facts, "dim", width),
    ]
    for number, block in enumerate(filter(None, blocks)):
        if number:
            yield []
        yield from block


def _table(rows: Sequence[Sequence[str]]) -> list[Line]:
    """Its head and its first row, which has the answer, are bold."""
    lines = format_sheet(make_sheet([Head(name, words=not at) for at, name in enumerate(rows[0])], rows[1:]))
    return [[(line, "bold" if number < 2 else "")] for number, line in enumerate(lines)]


def _pairs(pairs: Sequence[tuple[str, str]], style: str, width: int) -> list[Line]:
    texts = [textwrap.fill(clean(f"{label:<10} {text}"), width, subsequent_indent=" " * 11) for label, text in pairs]
    return [[(text[:10], style), (text[10:], "")] for text in texts]
