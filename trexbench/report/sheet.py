"""A table as values: the text of each item and its raw figure, for sorting and CSV; and the forms it is written in.

In a terminal columns are left out by their rank and text is wrapped; numbers are never cut.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, zip_longest
from textwrap import wrap

from ..core.history.cell import Cell
from ..core.history.rows import Metric
from ..core.units import format_bits, format_pps, format_scaled, format_share, format_time
from ..core.verdict.parts import Goal, Verdict
from .clean import clean, escape_markdown
from .room import wrapped
from .words import NONE, format_change, format_figure, format_loss

BETWEEN = "  "
NARROWEST = 20
"""Least width of a column of text, unless it needs less or no other column can be left out."""
LEGIBLE = 8
"""Columns of text are never narrower: lines are longer than the room instead."""
REMEDY = "a wider terminal or a pipe shows all columns"
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
    """The text may be wrapped."""

    @property
    def raw(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name


@dataclass(frozen=True)
class Item:
    """An entry of a table."""

    text: str
    raw: str
    """The figure as in CSV."""
    mark: str = ""
    """Class on the page."""
    about: str = ""
    """Explanation on the page."""


@dataclass(frozen=True)
class SheetRow:
    """A row of a table."""

    items: tuple[Item, ...]
    cell: Cell | None = None
    """The page shows the row while this cell is chosen; None: always."""
    metric: str | None = None
    """Name of the metric that the row is about."""
    block: str = ""
    """Name of the block that the row belongs to."""


@dataclass(frozen=True)
class Sheet:
    """A table. name: of its CSV file, without ending."""

    name: str
    caption: str
    heads: tuple[Head, ...]
    lines: tuple[SheetRow, ...]
    blocks: str = ""
    """Head of the blocks' names; empty: the table has no blocks."""

    @property
    def parts(self) -> list[tuple[str, list[SheetRow]]]:
        """The rows of each block, in their order."""
        return [(block, list(lines)) for block, lines in groupby(self.lines, key=lambda line: line.block)]

    @property
    def rows(self) -> list[list[str]]:
        """Heads and raw figures, the block first where there are any."""
        rows = [[self.blocks, *(head.raw for head in self.heads)]]
        rows += [[line.block, *(item.raw for item in line.items)] for line in self.lines]
        return rows if self.blocks else [row[1:] for row in rows]


def format_sheet(sheet: Sheet, room: int | None = None) -> list[str]:
    """The table's lines, and after an empty one the names of columns that were left out, if any."""
    every = [(head, [head.name, *(line.items[at].text for line in sheet.lines)]) for at, head in enumerate(sheet.heads)]
    shown = [*every]
    while (widths := _widths(shown, room)) is None:
        shown.remove(max(shown, key=lambda column: column[0].rank))
    lines = []
    for at in range(len(sheet.lines) + 1):
        parts = [
            (wrap(cells[at], width) or [""]) if head.wraps and len(cells[at]) > width else [cells[at]]
            for (head, cells), width in zip(shown, widths, strict=True)
        ]
        for row in zip_longest(*parts, fillvalue=""):
            aligned = (
                text.ljust(width) if head.words else text.rjust(width)
                for text, width, (head, _) in zip(row, widths, shown, strict=True)
            )
            lines.append(BETWEEN.join(aligned).rstrip())
    left_out = ", ".join(head.name for head, cells in every if (head, cells) not in shown)
    return [*lines, *(["", *wrapped([f"left out for want of room: {left_out} ({REMEDY})"], room)] if left_out else [])]


def _widths(shown: Sequence[tuple[Head, Sequence[str]]], room: int | None) -> list[int] | None:
    """Return each column's width; None where they do not fit and a column can be left out."""
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
    """The table as CSV with heads; text that a spreadsheet would take for a formula is quoted as text."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([*map(harmless, row)] for row in sheet.rows)
    return file.getvalue()


def harmless(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would take it for a formula."""
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") and not _NUMBER.fullmatch(text) else text


def to_values(sheet: Sheet) -> dict[str, object]:
    """The table as JSON values: the columns' heads and the raw figures; null where there is none."""
    columns, *rows = sheet.rows
    is_text = [True, *(head.words for head in sheet.heads)][-len(columns) :]
    values = [[text if words else _value(text) for text, words in zip(row, is_text, strict=True)] for row in rows]
    return {"name": sheet.name, "caption": sheet.caption, "columns": columns, "rows": values}


def _value(raw: str) -> str | float | None:
    """The number that a raw figure is; bounds and intervals stay text."""
    number = float(raw) if _NUMBER.fullmatch(raw) else None
    return raw or None if number is None else int(raw) if raw.lstrip("-").isdecimal() else number


def to_markdown(sheet: Sheet, signs: Callable[[str], str] = str) -> str:
    """A table of markdown; no name in it becomes a link, a tag or a mention. signs: as typeset, for its rows."""

    def row(texts: Iterable[str]) -> str:
        return f"| {' | '.join(NONE if text == NONE else escape_markdown(text) for text in texts)} |\n"

    lines = [f"## {escape_markdown(sheet.caption)}\n\n"] if sheet.caption else []
    lines.append(row(signs(head.name) for head in sheet.heads))
    lines.append(f"|{'|'.join(' --- ' if head.words else ' ---: ' for head in sheet.heads)}|\n")
    for block, rows in sheet.parts:
        name = f"| ***{escape_markdown(signs(block))}*** |{'  |' * (len(sheet.heads) - 1)}\n"
        lines += [*[name] * bool(sheet.blocks), *(row(signs(item.text) for item in line.items) for line in rows)]
    return "".join(lines)


def heads_of(names: str) -> tuple[Head, ...]:
    """Heads from a text such as ``:cell; ::limit; noise [%]^1``, separated by semicolons.

    A colon before the name makes a column of text, two one that may be wrapped; the unit stands in brackets, and the
    rank behind a caret.
    """
    parts = (re.fullmatch(r"(:{0,2})(.*?)(?: \[(.*)\])?(?:\^(\d+))?", name.strip()) for name in names.split(";"))
    return tuple(Head(one[2], one[3] or "", bool(one[1]), int(one[4] or 0), one[1] == "::") for one in parts if one)


def make_sheet(
    heads: str | Sequence[Head],
    rows: Iterable[SheetRow | Iterable[Item | str]],
    name: str = "",
    caption: str = "",
    blocks: str = "",
) -> Sheet:
    """Make a table; rows of items become SheetRows as by row_of, and a text of heads Heads as by heads_of."""
    lines = tuple(row if isinstance(row, SheetRow) else row_of(row) for row in rows)
    return Sheet(name, caption, heads_of(heads) if isinstance(heads, str) else tuple(heads), lines, blocks)


def row_of(
    items: Iterable[Item | str], cell: Cell | None = None, metric: str | None = None, block: str = ""
) -> SheetRow:
    """Make a row of items, or of texts where there is no raw figure."""
    return SheetRow(tuple(of_text(item) if isinstance(item, str) else item for item in items), cell, metric, block)


def with_columns(sheet: Sheet, heads: str, columns: Iterable[Sequence[Item | str]]) -> Sheet:
    """Put columns of text before the table's own. columns: their items or texts, for each row."""
    pairs = zip(sheet.lines, columns, strict=False)
    lines = tuple(replace(line, items=(*row_of(items).items, *line.items)) for line, items in pairs)
    return replace(sheet, heads=(*heads_of(heads), *sheet.heads), lines=lines)


def turned(sheet: Sheet, width: int) -> Iterator[Sheet]:
    """Yield the sheet with a column for each of its rows, as many side by side as fit into the width.

    The first column's texts become heads; columns without any figure are left out.
    """
    rows = [[head.name, *(line.items[at].text for line in sheet.lines)] for at, head in enumerate(sheet.heads)]
    names, *rows = [row for at, row in enumerate(rows) if not at or {*row[1:]} != {NONE}]
    labels, widest = max(len(row[0]) for row in rows), max((len(text) for row in rows for text in row[1:]), default=1)
    columns = max(1, (width - labels) // (len(BETWEEN) + widest))
    for start in range(1, len(names), columns):
        chosen = slice(start, start + columns)
        heads = Head("", words=True), *(Head(name) for name in names[chosen])
        yield make_sheet(heads, ([row[0], *row[chosen]] for row in rows))


def of_text(value: object, about: Sequence[str] = ()) -> Item:
    """Make an item of text; a dash, which stands for nothing, is an empty field of CSV."""
    text = clean(value)
    return Item(text, "" if text == NONE else text, about="; ".join(map(clean, about)))


def named(name: str, mark: str) -> Item:
    """Make an item of a name and its mark, if any."""
    return of_text(f"{name} {mark}".rstrip())


def raw_of(value: float, bound: bool = False) -> str:
    """Format a raw figure: a count exactly, others with 8 digits."""
    return f"{'>=' if bound else ''}{value:{'d' if isinstance(value, int) else '.8g'}}"


def figure(
    value: float | None, form: Callable[[float], str] = "{:.4g}".format, scale: float = 1, bound: bool = False
) -> Item:
    """Make an item of a value, whose raw figure is multiplied by ``scale``; a dash for None. bound: a lower bound."""
    return Item(NONE, "") if value is None else Item(f"{'>= ' * bound}{form(value)}", raw_of(scale * value, bound))


of_count = partial(figure, form=str)
of_pps = partial(figure, form=format_pps)
of_bits = partial(figure, form=format_bits)
of_share = partial(figure, form=format_loss, scale=100)
"""Shares are raw figures in percent, too."""
of_change = partial(figure, form=format_change, scale=100)
"""Shown with its sign."""
of_time = partial(figure, form=format_time, scale=1e6)
"""Raw figure in microseconds."""
UNITS = {"us": "\u00b5s", "share": "%"}
"""Unit of a metric -> unit of its raw figures, where that is another."""
of_apart = partial(figure, form=lambda bps: f"+- {format_scaled(bps, 'bit/s', 2)}")
"""Half the width of an interval, in bit/s."""


def of_line_share(share: float | None, bound: bool = False) -> Item:
    """Make an item of a share of line rate. bound: a lower bound."""
    return Item(NONE, "") if share is None else Item(format_share(share, bound), raw_of(100 * share, bound))


def of_metric(value: float | None, metric: Metric, bound: bool = False) -> Item:
    """Make an item of a metric's value, whose raw figure is in its unit by UNITS."""
    return figure(value, partial(format_figure, metric=metric), 100 if metric.unit == "share" else 1, bound)


def of_interval(verdict: Verdict | Goal | None) -> Item:
    """Interval of a verdict's rate, in frames per second; a dash where only a bound is known."""
    low, high = (None, None) if verdict is None else (verdict.low_pps, verdict.high_pps)
    if low is None or high is None:
        return Item(NONE, "")
    return Item(f"{format_pps(low)} to {format_pps(high)}", f"{raw_of(low)} to {raw_of(high)}")
