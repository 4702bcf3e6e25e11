"""A run as plain text, and the choice between that and a terminal's."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TextIO

from ..core.result import RunResult
from .summary import summarise

WIDTH = 100


def print_summary(result: RunResult, stream: TextIO) -> None:
    """To a terminal in its colours and width, to anything else as plain text."""
    if stream.isatty():
        from .terminal import print_rich_summary  # rich: only where it draws

        print_rich_summary(summarise(result), stream)
    else:
        stream.write(format_summary(result))


def format_summary(result: RunResult) -> str:
    """Answer first: headline, a table, who was the limit, doubts, what was sent and how."""
    summary = summarise(result)
    blocks = [
        [f"*** {banner} ***" for banner in summary.banners],
        [summary.headline],
        *(_aligned(rows) for rows in summary.tables),
        [_wrapped(direction, text) for direction, text in summary.verdicts],
        [_wrapped("doubt", text) for text in summary.doubts],
        [_wrapped(label, text) for label, text in summary.facts],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def _wrapped(label: str, text: str) -> str:
    indent = " " * 11
    return textwrap.fill(text, WIDTH, initial_indent=f"{label:<10} ", subsequent_indent=indent)
