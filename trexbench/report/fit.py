"""Tables that fit a terminal: columns are left out by their rank and text is wrapped; numbers are never cut."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from shutil import get_terminal_size
from textwrap import wrap
from typing import Generic, TextIO, TypeVar

from .words import lay_out

T = TypeVar("T")
_BETWEEN = 2
NARROWEST = 20
"""A column of text gets at least so many characters, unless it needs fewer, or no other can be left out."""
REMEDY = "a wider terminal, or a pipe, has all columns"


@dataclass(frozen=True)
class TableColumn(Generic[T]):
    """side: l or r. rank: columns of a higher rank are left out sooner; 0: never. wraps: it is text, and may be cut
    into lines."""

    head: str
    side: str
    cell: Callable[[T], str]
    rank: int = 0
    wraps: bool = False


def room_of(stream: TextIO) -> int | None:
    """Columns of text for a table: those of the terminal, or the variable COLUMNS; None, without limit, elsewhere."""
    if stream.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return get_terminal_size().columns
    return None


def format_fitting(columns: Sequence[TableColumn[T]], rows: Sequence[T], room: int | None) -> list[str]:
    """The table's lines, and behind an empty one the names of the columns that were left out, if any."""
    cells = {one: [one.head, *map(one.cell, rows)] for one in columns}
    shown = list(columns)
    while (widths := _widths(shown, cells, room)) is None:
        shown.remove(max(shown, key=lambda one: one.rank))
    lines = []
    for at in range(len(rows) + 1):
        parts = [wrap(cells[one][at], width) or [""] for one, width in zip(shown, widths, strict=True)]
        lines += [[part[line] if line < len(part) else "" for part in parts] for line in range(max(map(len, parts)))]
    left_out = ", ".join(one.head for one in columns if one not in shown)
    told = ["", *wrap(f"left out for want of room: {left_out} ({REMEDY})", room or 0)] if left_out else []
    return [*lay_out(lines, "".join(one.side for one in shown)), *told]


def wrapped(lines: Sequence[str], room: int | None) -> list[str]:
    """Lines of text, none longer than the room."""
    return [part for line in lines for part in (wrap(line, room, subsequent_indent="  ") or [""])] if room else [*lines]


def _widths(
    shown: Sequence[TableColumn[T]], cells: dict[TableColumn[T], list[str]], room: int | None
) -> list[int] | None:
    """Return each column's width; None where they do not fit and another one can be left out."""
    widths = [max(1, max(map(len, cells[one]))) for one in shown]
    most = max((width for one, width in zip(shown, widths, strict=True) if one.wraps), default=0)
    while room is not None and sum(widths) + _BETWEEN * (len(widths) - 1) > room:
        most -= 1
        if most < NARROWEST and any(one.rank for one in shown):
            return None
        if most < 1:
            return widths
        widths = [min(width, most) if one.wraps else width for one, width in zip(shown, widths, strict=True)]
    return widths
