"""Runs to draw over one another: curves reduced to a few hundred points, latencies, and runs of older nights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date

from ...core.dut.cycles import Cost
from ...core.errors import StoreError
from ...core.history.cell import Cell
from ...core.history.finding import Finding
from ...core.history.rows import RunRow
from ...core.history.series import differences, night_of
from ...core.load.plan import Direction
from ...core.load.sample import Sample
from ...core.load.windows import build_window, find_spans
from ...core.result import RunResult
from ...core.strategy.kinds import has_curve
from ...core.units import format_pps, format_share
from ...core.verdict.latency import Latency
from ...core.verdict.parts import DirectionResult, Limit
from ..run.costs import known_costs
from ..run.summary import LIMIT_WORDS
from ..words import format_bound, format_limit

MOST_POINTS = 240
AROUND_KNEE = 12
"""Windows to each side of the knee that are kept as measured."""
OLDER_POINTS = 64
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
class Curve:
    """One direction of one run: a point for each offered rate, losses as shares."""

    cell: Cell
    direction: str
    line_rate_pps: float
    loss_threshold: float
    offered_pps: tuple[float, ...]
    received_pps: tuple[float, ...]
    loss: tuple[float, ...]
    result: DirectionResult

    @property
    def knee_pps(self) -> float | None:
        """The last rate within the loss limit; None: the DUT did not saturate."""
        return self.result.maximum_pps if self.result.limit is Limit.DUT and not self.result.at_least else None

    @property
    def bound_pps(self) -> float | None:
        """A rate that was carried, if the DUT's own limit is unknown."""
        return self.result.maximum_pps if self.result.at_least and self.result.maximum_pps else None

    @property
    def words(self) -> str:
        """This direction's result in a sentence."""
        one = self.result
        share = format_share(one.maximum_pps / self.line_rate_pps, one.at_least)
        words = f"{format_bound(one.maximum_pps, one.at_least)} ({share} of line rate), {LIMIT_WORDS[one.limit]}"
        if one.first_bad_pps is not None and self.knee_pps is not None:
            words += f", loss above {format_limit(self.loss_threshold)} from {format_pps(one.first_bad_pps)} on"
        return words


def find_curves(cell: Cell, result: RunResult, most: int = MOST_POINTS) -> tuple[Curve, ...]:
    """Return a curve of about ``most`` points for each direction that has any."""
    plan, samples, curves = result.plan, result.measured.samples, []
    for one in result.directions:
        ways = one.direction, samples
        spans = [span for span in find_spans(plan, samples, one.direction, plan.curve_phases) if _sent_pps(*ways, span)]
        joined = join_spans(spans, [_sent_pps(*ways, span) for span in spans], one.first_bad_pps, most)
        windows = (build_window(one.direction, (samples[first], samples[last])) for first, last in joined)
        # a search goes back
        points = sorted((w.sent_pps, w.received_pps, w.loss or 0.0) for w in windows if w.sent)
        if points:
            line_pps = plan.offer(one.direction).line_rate_pps
            offered, received, loss = zip(*points, strict=True)
            curves.append(Curve(cell, str(one.direction), line_pps, plan.loss_threshold, offered, received, loss, one))
    return tuple(curves)


def _sent_pps(direction: Direction, samples: Sequence[Sample], span: tuple[int, int]) -> float:
    first, last = (samples[at].reading.ports[direction.tx] for at in span)
    return (last.opackets - first.opackets) / (last.t_s - first.t_s)


def join_spans(
    spans: Sequence[tuple[int, int]], sent_pps: Sequence[float], knee_pps: float | None, most: int = MOST_POINTS
) -> list[tuple[int, int]]:
    """Join neighbouring spans of samples, except around the knee, to about ``most``; no window is left out."""
    at = next((i for i, pps in enumerate(sent_pps) if knee_pps is not None and pps >= knee_pps), None)
    kept = range(0) if at is None else range(max(0, at - AROUND_KNEE), min(len(spans), at + AROUND_KNEE + 1))
    size = -(-(len(spans) - len(kept)) // max(1, most - len(kept))) if len(spans) > most else 1
    joined: list[tuple[int, int]] = []
    count = size
    for i, (first, last) in enumerate(spans):
        joins = count < size and i not in kept and i - 1 not in kept and joined[-1][1] == first
        joined[-1:] = [(joined[-1][0], last)] if joins else [*joined[-1:], (first, last)]
        count = count + 1 if joins else 1
    return joined


@dataclass(frozen=True)
class LatencyRow:
    """Latencies of one direction of a run."""

    cell: Cell
    direction: str
    line_rate_pps: float
    loads: tuple[Latency, ...]


def find_latency_rows(cell: Cell, run: RunResult) -> Iterator[LatencyRow]:
    """Yield the run's latencies by direction, if it measured any."""
    for way in dict.fromkeys(one.direction for one in run.latencies):
        loads = tuple(one for one in run.latencies if one.direction == way)
        yield LatencyRow(cell, str(way), run.plan.offer(way).line_rate_pps, loads)


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


def choose_older(latest: RunRow, runs: Sequence[RunRow], changes: Sequence[Finding]) -> tuple[Older, ...]:
    """Choose the runs to draw beside the latest, newest first, without their figures.

    runs: complete ones of the cell, oldest first; changes: of the cell. The last run of a night counts; runs outside
    nights count only if the latest is outside nights, too. A run under other conditions, which would also separate the
    histories of a figure, is chosen only if no other is available: it is named and not drawn.
    """
    before = [row for row in runs if bool(row.night) == bool(latest.night) and night_of(row) < night_of(latest)]
    apart = {id(row): [*differences(row, latest)] for row in before}
    alike = {night_of(row): row for row in before if not apart[id(row)]}
    unlike = {night_of(row): row for row in before if apart[id(row)]}
    since = max((change.since for change in changes), default="")
    chosen: dict[str, tuple[RunRow, list[str]]] = {}
    for key in REASONS:
        row = _pick(key, [*alike.values()], latest, since) or _pick(key, [*unlike.values()], latest, since)
        if row is not None:
            chosen.setdefault(row.path, (row, []))[1].append(key)
    return tuple(
        Older(row, tuple(why), "; ".join(apart[id(row)]), row.facts != latest.facts)
        for row, why in sorted(chosen.values(), key=lambda one: night_of(one[0]), reverse=True)
    )


def _pick(key: str, rows: Sequence[RunRow], latest: RunRow, since: str) -> RunRow | None:
    """Choose the row for one of REASONS. since: first night of the newest change; empty: there is none."""
    if key in ("night", "change"):
        earlier = [row for row in rows if key == "night" or night_of(row) < since]
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
        curves=find_curves(row.cell, result, OLDER_POINTS) if has_curve(row.cell.kind) else (),
        costs=known_costs(result),
        latencies=tuple(find_latency_rows(row.cell, result)),
    )
