"""Tables that fit a terminal: columns are left out by their rank and text is wrapped; numbers are never cut."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from .room import wrapped
from .sheet import Head, Sheet

_BETWEEN = 2
NARROWEST = 20
"""A column of text gets at least so many characters, unless it needs fewer, or no other can be left out."""
LEGIBLE = 8
"""Narrower columns of text are no help: where the room asks for that, the lines are longer than it."""
REMEDY = "a wider terminal, or a pipe, has all columns"


def format_sheet(sheet: Sheet, room: int | None = None) -> list[str]:
    """The table's lines, and behind an empty one the names of the columns that were left out, if any."""
    every = [(head, [head.name, *(line.items[at].text for line in sheet.lines)]) for at, head in enumerate(sheet.heads)]
    shown = [*every]
    while (widths := _widths(shown, room)) is None:
        shown.remove(max(shown, key=lambda one: one[0].rank))
    lines = []
    for at in range(len(sheet.lines) + 1):
        parts = [
            (wrap(cells[at], width) or [""]) if head.wraps and len(cells[at]) > width else [cells[at]]
            for (head, cells), width in zip(shown, widths, strict=True)
        ]
        for number in range(max(map(len, parts))):
            row = [part[number] if number < len(part) else "" for part in parts]
            aligned = (
                text.ljust(width) if head.words else text.rjust(width)
                for text, width, (head, _) in zip(row, widths, shown, strict=True)
            )
            lines.append((" " * _BETWEEN).join(aligned).rstrip())
    left_out = ", ".join(head.name for head, cells in every if (head, cells) not in shown)
    return [*lines, *(["", *wrapped([f"left out for want of room: {left_out} ({REMEDY})"], room)] if left_out else [])]


def _widths(shown: Sequence[tuple[Head, Sequence[str]]], room: int | None) -> list[int] | None:
    """Return each column's width; None where they do not fit and another one can be left out."""
    widths = [max(1, max(map(len, cells))) for _, cells in shown]
    most = max((width for (head, _), width in zip(shown, widths, strict=True) if head.wraps), default=0)
    while room is not None and sum(widths) + _BETWEEN * (len(widths) - 1) > room:
        most -= 1
        if most < NARROWEST and any(head.rank for head, _ in shown):
            return None
        if most < LEGIBLE:
            return widths
        widths = [min(width, most) if head.wraps else width for (head, _), width in zip(shown, widths, strict=True)]
    return widths
