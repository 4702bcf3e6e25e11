"""Width of an output stream, and lines of text that fit into it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import wrap
from typing import TextIO


def room_of(stream: TextIO) -> int | None:
    """Columns of text for a table: the terminal's, or those of the variable COLUMNS; None: no limit."""
    if stream.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return get_terminal_size().columns
    return None


def wrapped(lines: Sequence[str], room: int | None) -> list[str]:
    """Lines of text, none longer than the room unless it is a single word, such as a path.

    A number keeps its unit, and a file's line number its key; continuation lines are indented by two more columns.
    """
    if not room:
        return [*lines]
    parts: list[str] = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        whole = re.sub(r"(?<=\d) (?=[%A-Za-z])", "\u00a0", line)
        whole = re.sub(r"(?<=:)([0-9]+:) (?=[^\s:]+:)", "\\1\u00a0", whole)
        cut = wrap(whole, room, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        parts += [part.replace("\u00a0", " ") for part in cut] or [""]
    return parts
