"""The width of what is written to, and lines of text that fit into it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import wrap
from typing import TextIO


def room_of(stream: TextIO) -> int | None:
    """Columns of text for a table: those of the terminal, or the variable COLUMNS; None, without limit, elsewhere."""
    if stream.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return get_terminal_size().columns
    return None


def wrapped(lines: Sequence[str], room: int | None) -> list[str]:
    """Lines of text, none longer than the room unless it is a single word, such as a path."""
    return [part for line in lines for part in _parts(line, room)] if room else [*lines]


def _parts(line: str, room: int) -> list[str]:
    """A line's parts, each number with its unit, and a file's line with its key; those after the first stand two
    columns further to the right."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    whole = re.sub(r"(?<=\d) (?=[%A-Za-z])", "\u00a0", line)
    whole = re.sub(r"(?<=:)([0-9]+:) (?=[^\s:]+:)", "\\1\u00a0", whole)
    parts = wrap(whole, room, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [part.replace("\u00a0", " ") for part in parts] or [""]
