"""Runs of older nights to draw beside the latest: their choice, curves with few points, costs and latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date

from ...core.dut.cycles import Cost
from ...core.errors import StoreError
from ...core.history.rows import RunRow
from ...core.history.series import difference_words, differences, night_of
from ...core.result import RunResult
from ...core.strategy.table import has_curve
from ..run.costs import known_costs
from .overlay import Curve, LatencyRow, find_curves, find_latency_table
from .trends import TrendChange

MOST_POINTS = 64
"""Points of an older curve, a third of them around its knee."""
REASONS: Mapping[str, str] = {
    "change": "before the change",
    "night": "the night before",
    "month": "a month before",
    "year": "a year before",
}
"""Reasons for showing an older night, each of one night at most."""
_ABOUT_DAYS: Mapping[str, tuple[int, int]] = {"month": (30, 10), "year": (365, 45)}
"""Days before the latest night, and the tolerance."""


@dataclass(frozen=True)
class Older:
    """A run of an earlier night of a cell."""

    row: RunRow
    why: tuple[str, ...]
    """Keys of REASONS."""
    unlike: str = ""
    """Reason why it must not be drawn beside the latest run."""
    otherwise: bool = False
    """True: its DUT was configured differently."""
    curves: tuple[Curve, ...] = ()
    costs: tuple[Cost, ...] = ()
    latencies: tuple[LatencyRow, ...] = ()

    @property
    def night(self) -> str:
        return night_of(self.row)

    @property
    def drawn(self) -> bool:
        """True if any plot shows the run."""
        return bool(self.curves or self.costs or self.latencies)

    @property
    def words(self) -> str:
        return ", ".join(REASONS[key] for key in self.why)


def choose_older(latest: RunRow, runs: Sequence[RunRow], changes: Sequence[TrendChange]) -> tuple[Older, ...]:
    """Choose the runs to draw beside the latest, newest first, without their figures.

    runs: complete ones of the cell, oldest first; changes: of the cell. The last run of a night counts; runs outside
    nights count only if the latest is outside nights, too. A run under other conditions, which would also separate the
    histories of a figure, is chosen only if no other is available: it is named and not drawn.
    """
    before = [row for row in runs if bool(row.night) == bool(latest.night) and night_of(row) < night_of(latest)]
    apart = {id(row): [difference_words(what, of[:1], "") for what, of in differences(row, latest)] for row in before}
    alike = {night_of(row): row for row in before if not apart[id(row)]}
    unlike = {night_of(row): row for row in before if apart[id(row)]}
    at = max((change.at for change in changes), default=None)  # the newest change
    since = None if at is None else next((night_of(row) for row in runs if row.started == at), at[:10])
    chosen: dict[str, tuple[RunRow, list[str]]] = {}
    for key in REASONS:
        row = _pick(key, [*alike.values()], latest, since) or _pick(key, [*unlike.values()], latest, since)
        if row is not None:
            chosen.setdefault(row.path, (row, []))[1].append(key)
    return tuple(
        Older(row, tuple(why), "; ".join(apart[id(row)]), row.facts != latest.facts)
        for row, why in sorted(chosen.values(), key=lambda one: night_of(one[0]), reverse=True)
    )


def _pick(key: str, rows: Sequence[RunRow], latest: RunRow, since: str | None) -> RunRow | None:
    """Choose the row for one of REASONS. since: first night of the newest change."""
    if key in ("night", "change"):
        earlier = [row for row in rows if key == "night" or (since is not None and night_of(row) < since)]
        return earlier[-1] if earlier else None
    days, give = _ABOUT_DAYS[key]
    away: dict[int, RunRow] = {}
    for row in rows:
        with suppress(ValueError):  # a night that is no date
            gap = date.fromisoformat(night_of(latest)) - date.fromisoformat(night_of(row))
            away[abs(gap.days - days)] = row
    nearest = min(away, default=None)
    return None if nearest is None or nearest > give else away[nearest]


def with_figures(one: Older, result: RunResult) -> Older:
    """Add the figures that the row's run measured. StoreError if the document now holds another run."""
    row = one.row
    if (result.started, result.status.value) != (row.started, row.status):
        raise StoreError("another run than the index names", "it was replaced in the meantime: make the report again")
    return replace(
        one,
        curves=find_curves(row.cell, result, MOST_POINTS) if has_curve(row.cell.kind) else (),
        costs=known_costs(result),
        latencies=find_latency_table({row.cell: result}).rows,
    )
