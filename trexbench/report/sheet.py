"""A table as values: what stands in each cell, and the raw figure behind it for sorting and for CSV; and its forms.

In a terminal columns are left out by their rank and text is wrapped; numbers are never cut.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from textwrap import wrap

from ..core.history.cell import Cell
from ..core.units import format_bits, format_pps, format_scaled, format_time
from ..core.verdict.model import Goal, Verdict
from .clean import clean, escape_markdown
from .room import wrapped
from .words import NONE, format_change, format_loss

BETWEEN = "  "
NARROWEST = 20
"""A column of text gets at least so many characters, unless it needs fewer, or no other can be left out."""
LEGIBLE = 8
"""Narrower columns of text are no help: where the room asks for that, the lines are longer than it."""
REMEDY = "a wider terminal, or a pipe, has all columns"
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


@dataclass(frozen=True)
class Head:
    """A column's head."""

    name: str
    unit: str = ""
    """Unit of the raw figures."""
    words: bool = False
    """The column is text, aligned to the left."""
    rank: int = 0
    """Columns of a higher rank are left out sooner where there is no room; 0: never."""
    wraps: bool = False
    """Text that may be cut into lines."""

    @property
    def raw(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name


@dataclass(frozen=True)
class Item:
    """text: as it is shown; raw: as CSV has it. mark: its class on the page; about: what more is told of it there."""

    text: str
    raw: str
    mark: str = ""
    about: str = ""


@dataclass(frozen=True)
class SheetRow:
    """One row. cell: whose choice among the plots it follows, None: none; metric: its name, where the row tells of one.

    block: what the row stands below, with those beside it.
    """

    items: tuple[Item, ...]
    cell: Cell | None = None
    metric: str | None = None
    block: str = ""


@dataclass(frozen=True)
class Sheet:
    """name: of its CSV file, without ending; caption: what it shows. blocks: the head of what its rows stand below;
    empty: it has no blocks.
    """

    name: str
    caption: str
    heads: tuple[Head, ...]
    lines: tuple[SheetRow, ...]
    blocks: str = ""

    @property
    def parts(self) -> list[tuple[str, list[SheetRow]]]:
        """The rows below each block, in their order."""
        return [(block, list(lines)) for block, lines in groupby(self.lines, key=lambda line: line.block)]

    @property
    def rows(self) -> list[list[str]]:
        """Heads and raw figures, the block first where there are any."""
        lines = [(line.block, [item.raw for item in line.items]) for line in self.lines]
        rows = [(self.blocks, [head.raw for head in self.heads]), *lines]
        return [[*([block] if self.blocks else []), *row] for block, row in rows]


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
            lines.append(BETWEEN.join(aligned).rstrip())
    left_out = ", ".join(head.name for head, cells in every if (head, cells) not in shown)
    return [*lines, *(["", *wrapped([f"left out for want of room: {left_out} ({REMEDY})"], room)] if left_out else [])]


def _widths(shown: Sequence[tuple[Head, Sequence[str]]], room: int | None) -> list[int] | None:
    """Return each column's width; None where they do not fit and another one can be left out."""
    widths = [max(1, max(map(len, cells))) for _, cells in shown]
    most = max((width for (head, _), width in zip(shown, widths, strict=True) if head.wraps), default=0)
    while room is not None and sum(widths) + len(BETWEEN) * (len(widths) - 1) > room:
        most -= 1
        if most < NARROWEST and any(head.rank for head, _ in shown):
            return None
        if most < LEGIBLE:
            return widths
        widths = [min(width, most) if head.wraps else width for (head, _), width in zip(shown, widths, strict=True)]
    return widths


def to_csv(sheet: Sheet) -> str:
    """With heads; text that a spreadsheet would take for a formula is quoted as text."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([*map(harmless, row)] for row in sheet.rows)
    return file.getvalue()


def harmless(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would take it for a formula."""
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") and not _NUMBER.fullmatch(text) else text


def to_values(sheet: Sheet) -> dict[str, object]:
    """JSON values: the columns' heads and the raw figures."""
    columns, *rows = sheet.rows
    return {"name": sheet.name, "caption": sheet.caption, "columns": columns, "rows": rows}


def to_markdown(sheet: Sheet) -> str:
    """A table of markdown; no name in it becomes a link, a tag or a mention."""
    rows = [[head.name for head in sheet.heads], *([item.text for item in line.items] for line in sheet.lines)]
    head, *lines = (
        f"| {' | '.join(NONE if text == NONE else escape_markdown(text) for text in row)} |\n" for row in rows
    )
    title = f"## {escape_markdown(sheet.caption)}\n\n" if sheet.caption else ""
    return "".join([title, head, f"|{'|'.join(' --- ' if one.words else ' ---: ' for one in sheet.heads)}|\n", *lines])


def heads_of(names: str) -> tuple[Head, ...]:
    """Separated by semicolons; a unit stands in brackets, and a colon before a name whose column is text.

    Two colons: the text may be wrapped; a rank stands behind a caret: ``noise [%]^1``.
    """
    found = (re.fullmatch(r"(:{0,2})(.*?)(?: \[(.*)\])?(?:\^(\d+))?", name.strip()) for name in names.split(";"))
    return tuple(
        Head(one[2], one[3] or "", bool(one[1]), int(one[4] or 0), one[1] == "::") for one in found if one is not None
    )


def make_sheet(
    heads: str | Sequence[Head],
    rows: Iterable[SheetRow | Iterable[Item | str]],
    name: str = "",
    caption: str = "",
    blocks: str = "",
) -> Sheet:
    """Table of these rows; those that are no SheetRow: as of row_of. heads: as of heads_of."""
    lines = tuple(row if isinstance(row, SheetRow) else row_of(row) for row in rows)
    return Sheet(name, caption, heads_of(heads) if isinstance(heads, str) else tuple(heads), lines, blocks)


def row_of(
    items: Iterable[Item | str], cell: Cell | None = None, metric: str | None = None, block: str = ""
) -> SheetRow:
    """A row of items, or of texts where there is no raw figure; the rest: as of SheetRow."""
    return SheetRow(tuple(of_text(one) if isinstance(one, str) else one for one in items), cell, metric, block)


def with_columns(sheet: Sheet, heads: str, columns: Iterable[Sequence[str]]) -> Sheet:
    """The table with columns of text before its own. columns: their texts, for each row."""
    pairs = zip(sheet.lines, columns, strict=False)
    lines = tuple(replace(line, items=(*map(of_text, texts), *line.items)) for line, texts in pairs)
    return replace(sheet, heads=(*heads_of(heads), *sheet.heads), lines=lines)


def of_text(value: object, about: Sequence[str] = ()) -> Item:
    """Text as it is; a dash, which stands for nothing, is an empty field of CSV."""
    text = clean(value)
    return Item(text, "" if text == NONE else text, about="; ".join(map(clean, about)))


def named(name: str, mark: str) -> Item:
    """Name whose figures these are, by another name than a cell's."""
    return of_text(f"{name} {mark}".rstrip())


def raw_of(value: float, bound: bool = False) -> str:
    return f"{'>=' if bound else ''}{value:.8g}"


def figure(
    value: float | None, form: Callable[[float], str] = "{:.4g}".format, scale: float = 1.0, bound: bool = False
) -> Item:
    """Return the value as shown, and raw times ``scale``; a dash for None. bound: it is a lower bound."""
    return Item(NONE, "") if value is None else Item(f"{'>= ' * bound}{form(value)}", raw_of(scale * value, bound))


of_count = partial(figure, form=str)
of_pps = partial(figure, form=format_pps)
of_bits = partial(figure, form=format_bits)
of_share = partial(figure, form=format_loss)
"""A share as it is raw, shown in percent."""
of_change = partial(figure, form=format_change, scale=100)
"""A share, raw in percent, with its sign."""
of_time = partial(figure, form=format_time, scale=1e6)
"""Raw in microseconds."""


def of_apart(value: float | None) -> Item:
    """Half of an interval of bit/s."""
    return figure(value, lambda bps: f"+- {format_scaled(bps, 'bit/s', 2)}")


def of_interval(of: Verdict | Goal | None) -> Item:
    """The interval in which a verdict's rate lies, in frames per second; a dash where only a bound is known."""
    low, high = (None, None) if of is None else (of.low_pps, of.high_pps)
    if low is None or high is None:
        return Item(NONE, "")
    return Item(f"{format_pps(low)} to {format_pps(high)}", f"{raw_of(low)} to {raw_of(high)}")
