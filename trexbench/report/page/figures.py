"""One figure of a table: its rate or its costs in words, and how it differs from what was usual."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.history.levels import NEEDED_NIGHTS, Delta
from ...core.history.rows import RunRow
from ...core.units import format_pps, format_scaled
from ..groups import too_few
from ..words import NONE, format_change, format_count, format_figure, format_whole, status_words


@dataclass(frozen=True)
class GridCell:
    """One figure of the table. share: of one direction's line rate, so up to 2 for bidirectional runs; None: unknown.

    state: ``value``, ``failed`` or ``missing``; about: the figure in full, or why there is none. row: the run's; None
    where there is no figure. delta: against the baseline, where one is known. cost: the same of the cycles per packet,
    where the rate is a bound and they are beyond the noise.
    """

    state: str
    about: str
    row: RunRow | None = None
    best: bool = False
    delta: Delta | None = None
    cost: Delta | None = None

    @property
    def share(self) -> float | None:
        """None where the line's rate is not known, as of a virtual one."""
        return self.row.line_share if self.row is not None and self.row.line_rate_bps and self.is_rate else None

    @property
    def at_least(self) -> bool:
        return self.row is not None and self.row.at_least

    @property
    def is_rate(self) -> bool:
        """False where the figure is what packets cost at a given rate."""
        return self.row is not None and self.row.metric.bounded

    @property
    def value(self) -> float | None:
        """The figure in the unit of its metric."""
        return None if self.row is None else self.row.metric.of(self.row)

    @property
    def percent(self) -> str:
        """The rate itself where the line's is not known."""
        return self.rate if self.share is None else f"{'>= ' if self.at_least else ''}{percent_words(self.share)} %"

    @property
    def rate(self) -> str:
        if self.row is None or self.value is None:
            return "failed" if self.state == "failed" else NONE
        return f"{'>= ' * self.at_least}{format_figure(self.value, self.row.metric)}"

    @property
    def detail(self) -> str:
        """The uncertainty and the limit of a rate; of costs the rate that was forwarded."""
        if self.row is None:
            return ""
        if not self.is_rate:
            return f"at {format_pps(self.row.get('total_pps') or 0.0)} forwarded"
        return f"{_apart(self.row, ', ', 2)}limit: {self.row.limit}"

    @property
    def change(self) -> str:
        return change_text(self.delta)

    @property
    def change_words(self) -> str:
        """The baseline of the change, in words."""
        if self.delta is None or self.row is None:
            return ""
        return f"{delta_words(self.delta)} ({format_figure(self.delta.before, self.row.metric)})"


def change_text(delta: Delta | None) -> str:
    """The change against the baseline, signed; with a sign for the worse or the better where it is beyond the noise."""
    if delta is None:
        return ""
    sign = ("\u25bc " if delta.worse else "\u25b2 ") if delta.beyond else ""
    return f"{sign}{format_change(delta.share)}"


def delta_words(delta: Delta) -> str:
    """``worse than the median of 9 nights before``."""
    than = (
        "the level before the change" if delta.found else f"the median of {format_count(delta.nights, 'night')} before"
    )
    if not delta.found and delta.noise is None:
        short = f"; to judge it {too_few(delta.measured)}" if delta.measured < NEEDED_NIGHTS else ""
        return f"against {than}{short}"
    return f"{'worse' if delta.worse else 'better'} than {than}" if delta.beyond else f"within the noise of {than}"


NOT_RUN = GridCell("missing", "not measured")


def figure_of(row: RunRow) -> GridCell:
    """Return the figure that the run found; failed where it is not complete."""
    if not row.complete:
        return GridCell("failed", f"the run of {row.started} is {status_words(row)}")
    words = f"{'at least ' * row.at_least}{format_whole(row.metric.of(row), row.metric)} {_apart(row)}".rstrip()
    return GridCell("value", f"{words}, limit: {row.limit}, {row.started}", row)


def _apart(row: RunRow, end: str = "", digits: int = 4) -> str:
    """``+- 12.3 kpps``; empty where the figure has no uncertainty."""
    uncertainty = row.figure.uncertainty if row.figure is not None else 0.0
    return f"+- {format_scaled(uncertainty * row.metric.scale, row.metric.unit, digits)}{end}" if uncertainty else ""


def percent_words(share: float) -> str:
    """``97``, ``4.4``, ``0.02``."""
    percent = 100 * share
    if percent >= 9.95:
        return f"{percent:.0f}"
    return f"{percent:.1f}" if percent >= 0.95 or not percent else f"{percent:.2f}"
