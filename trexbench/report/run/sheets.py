"""A run's directions as a table."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.result import RunResult
from ...core.verdict.model import DirectionResult
from ..sheet import Item, Sheet, make_sheet, of_interval, of_pps, of_share, of_text
from .summary import limit_words

HEADS = (
    ":Direction; Rate [pps]; 95 % interval [pps]; First bad [pps]; Confirmed [pps]; Max received [pps]; "
    "Loss in the hold [share]; :Limit"
)


def direction_sheet(run: RunResult) -> Sheet:
    """Table of the run's directions."""
    found = run.analysis.directions
    rows = ((*direction_items(one), of_text(limit_words(run, one))) for one in found)
    return make_sheet(HEADS, rows, "directions", "Directions")


def direction_items(of: DirectionResult) -> Iterator[Item]:
    """All of HEADS but the limit."""
    yield of_text(of.direction)
    yield of_pps(of.maximum_pps, of.at_least)
    yield of_interval(of.low_pps, of.high_pps)
    yield from map(of_pps, (of.first_bad_pps, of.confirmed_pps, of.max_received_pps))
    yield of_share(of.hold_loss)
