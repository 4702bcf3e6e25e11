"""Two runs compared, as text and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.compare import Pair, Verdict, find_pairs
from ..core.result import RunResult
from ..core.units import format_pps, format_share
from ..core.verdict import DirectionResult
from .summary import name_of

WORDS = {
    Verdict.SAME: "the same, as far as can be told",
    Verdict.FASTER: "faster",
    Verdict.SLOWER: "slower",
    Verdict.UNKNOWN: "unknown: the DUT was not the limit",
}
HEAD = ("direction", "first", "second", "difference", "noise", "second is")


def format_comparison(first: RunResult, second: RunResult, unlike: Sequence[str]) -> str:
    """Who is compared, what makes them unlike, and a line per direction."""
    lines = [f"first   {name_of(first)}, {first.started}", f"second  {name_of(second)}, {second.started}"]
    lines += [f"*** UNLIKE: {reason} ***" for reason in unlike]
    rows = [HEAD, *(_row(pair) for pair in find_pairs(first, second))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=False)),
        ]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return "\n".join([*lines[: 2 + len(unlike)], "", *lines[2 + len(unlike) :]])


def comparison_values(first: RunResult, second: RunResult, unlike: Sequence[str]) -> dict[str, Any]:
    """The same for machines; rates in frames per second, shares as fractions."""
    return {
        "first": {"id": first.id, "simulated": first.simulated},
        "second": {"id": second.id, "simulated": second.simulated},
        "unlike": list(unlike),
        "directions": [
            {
                "direction": str(pair.direction),
                "first_pps": pair.first.maximum_pps,
                "first_at_least": pair.first.at_least,
                "second_pps": pair.second.maximum_pps,
                "second_at_least": pair.second.at_least,
                "difference_pps": pair.difference_pps,
                "difference": pair.share,
                "noise_pps": pair.noise_pps,
                "verdict": pair.verdict.value,
            }
            for pair in find_pairs(first, second)
        ],
    }


def _row(pair: Pair) -> tuple[str, ...]:
    share = "-" if pair.share is None else f"{'+' if pair.share >= 0 else '-'}{format_share(abs(pair.share))}"
    noise = f"+- {format_pps(pair.noise_pps)}" if pair.noise_pps else "-"
    return str(pair.direction), _rate(pair.first), _rate(pair.second), share, noise, WORDS[pair.verdict]


def _rate(one: DirectionResult) -> str:
    return f"{'>= ' if one.at_least else ''}{format_pps(one.maximum_pps)}"
