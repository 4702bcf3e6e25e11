"""Rows of text, laid out in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def lay_out(rows: Sequence[Sequence[str]], sides: str) -> Iterator[str]:
    """A line per row; ``sides`` has an l or r for each column: to which side its cells are put."""
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(len(sides))]
    for row in rows:
        cells = (
            cell.ljust(width) if side == "l" else cell.rjust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        )
        yield "  ".join(cells).rstrip()
