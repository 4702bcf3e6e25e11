"""What got slower, since when and by how much: every cell's figures over the nights, judged. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from .detect import FIRST_NIGHTS, Change, Segmenter, Shape, Smallest, find_changes
from .history import METRICS, Cell, Metric, RunRow, cells_of
from .known import Known, find_note, is_date
from .night import Night, State
from .series import Point, Series, night_of, series_of

NEEDED_NIGHTS = FIRST_NIGHTS + 2
"""Before that, no change can be told: so many nights say what is usual, and two that it is so no longer."""
RECENT_NIGHTS = 7
"""For so long improvements, known changes and changed conditions are worth a line."""
STALE_NIGHTS = 30
"""A cell that was left out of as many nights is history."""
EXPLAINING_NIGHTS = 10
CAUSES = 3


class Kind(str, Enum):
    """known: a change that somebody acknowledged."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    KNOWN = "known"
    INSUFFICIENT = "insufficient"


@dataclass(frozen=True)
class Finding:
    """One figure of one cell. before, after: its levels, in the metric's unit; nights: since the change, measured ones.

    since: the first night of the change, None where there is none; told: the night after which it could be known.
    spread: of a night, as a standard deviation; score: how many standard errors the difference comes to.
    at_least: the value after it is a bound. note: of the acknowledgement.
    """

    cell: Cell
    metric: Metric
    kind: Kind
    nights: int
    since: str | None = None
    told: str | None = None
    before: float = 0.0
    after: float = 0.0
    spread: float = 0.0
    score: float = 0.0
    shape: Shape = Shape.STEP
    at_least: bool = False
    explanation: tuple[str, ...] = ()
    note: str | None = None

    @property
    def share(self) -> float | None:
        """The difference as a share of the level before; None where that is nothing."""
        return (self.after - self.before) / abs(self.before) if self.before else None

    @property
    def severity(self) -> float:
        """For sorting: how much worse, as a share."""
        return abs(self.share) if self.share is not None else float("inf")


@dataclass(frozen=True)
class Missing:
    """A cell that the last night of its suite did not measure, and why."""

    cell: str
    suite: str
    night: str
    reason: str


@dataclass(frozen=True)
class Judgement:
    """All findings, worst first. judged: how many figures had nights enough; steady: those of them (cell, metric) of
    which there is nothing to tell; remarks: what else one should know.

    since: regressions that began before this night do not alarm (None: all do until acknowledged or recovered).
    """

    findings: tuple[Finding, ...]
    judged: int
    missing: tuple[Missing, ...] = ()
    remarks: tuple[str, ...] = ()
    since: str | None = None
    steady: tuple[tuple[Cell, str], ...] = ()

    def of(self, kind: Kind) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.kind is kind)

    @property
    def regressions(self) -> tuple[Finding, ...]:
        """Those that alarm."""
        return tuple(one for one in self.of(Kind.REGRESSION) if not self.since or (one.since or "") >= self.since)

    @property
    def older(self) -> tuple[Finding, ...]:
        """Those that do not, because they began too long ago."""
        return tuple(one for one in self.of(Kind.REGRESSION) if self.since and (one.since or "") < self.since)

    @property
    def exit_code(self) -> int:
        """0: nothing got worse, 3: something did, 4: no figure has nights enough."""
        return 3 if self.regressions else 0 if self.judged else 4


def judge_rows(
    rows: Iterable[RunRow],
    segment: Segmenter,
    known: Sequence[Known] = (),
    nights: Sequence[Night] = (),
    since: str | None = None,
    wanted: Callable[[str, str], bool] = lambda dut, mode: True,
) -> Judgement:
    """The verdict on every cell; ``nights``: of all suites, oldest first; wanted: which of their DUTs and modes."""
    cells = cells_of(rows)
    dates = sorted({night_of(row) for found in cells.values() for row in found})
    horizon = dates[-STALE_NIGHTS - 1] if len(dates) > STALE_NIGHTS else ""
    findings: list[Finding] = []
    remarks: list[str] = []
    steady: list[tuple[Cell, str]] = []
    judged = stale = 0
    for cell in sorted(cells, key=str):
        if night_of(cells[cell][-1]) <= horizon:
            stale += 1
            continue
        found = [one for one in series_of(cell, cells[cell], METRICS) if one.points]
        remarks += _remarks(found)
        for series in found:
            told = judge_series(series, segment, known)
            findings += told
            steady += [] if told else [(cell, series.metric.name)]
            judged += len(series.points) >= NEEDED_NIGHTS
    if stale:
        remarks.append(f"{stale} cell{'s' * (stale > 1)} not measured in the last {STALE_NIGHTS} nights, not judged")
    missing = tuple(find_missing(nights, wanted))
    return Judgement(tuple(sorted(findings, key=_order)), judged, missing, tuple(remarks), since, tuple(steady))


def judge_series(series: Series, segment: Segmenter, known: Sequence[Known] = ()) -> list[Finding]:
    """At most one finding, of what stands now: worse than the best level that was not explained away, or else news."""
    points, metric = series.points, series.metric
    if len(points) < NEEDED_NIGHTS:
        return [Finding(series.cell, metric, Kind.INSUFFICIENT, len(points))]
    smallest = series.smallest
    changes = find_changes([point.value for point in points], smallest, segment)
    about = [one for one in known if one.is_about(series.cell, metric.name)]
    standing = _Standing(series, smallest)
    nights, places = [point.night for point in points], [change.at for change in changes]
    for at, change in enumerate(changes):
        end = changes[at + 1].at if at + 1 < len(changes) else len(points)
        standing.take(change, end, find_note(about, nights, places, change.at))
    finding = standing.finding()
    return [] if finding is None else [finding]


class _Standing:
    """The level that a figure is held against, and what it has to say for itself since it left that."""

    def __init__(self, series: Series, smallest: Smallest) -> None:
        self._series, self._smallest = series, smallest
        self._reference: float | None = None
        self._now = 0.0
        self._news: tuple[Kind, Change, float, str | None] | None = None

    def take(self, change: Change, end: int, note: str | None) -> None:
        """One more change, whose level lasts until ``end``; note: of who knows about it."""
        if self._reference is None:
            self._reference = change.before
        first = change.at if change.shape is Shape.STEP else max(change.at, change.told - FIRST_NIGHTS)
        self._now = median(point.value for point in self._series.points[min(first, end - 1) : end])
        better = self._now - self._reference if self._series.metric.better == "higher" else self._reference - self._now
        enough = self._smallest.at(self._reference)
        if note is not None:
            self._news = (Kind.KNOWN, change, self._reference, note)
            self._reference = self._now
        elif better <= -enough:
            if self._news is None or self._news[0] is not Kind.REGRESSION:
                self._news = (Kind.REGRESSION, change, self._reference, None)
        elif better >= enough:
            bounds = [point.bound for point in self._series.points[: change.at]][-FIRST_NIGHTS:]
            proven = 2 * sum(bounds) <= len(bounds)  # a bound says nothing of how much more it was
            self._news = (Kind.IMPROVEMENT, change, self._reference, None) if proven else None
            self._reference = self._now
        else:
            self._news = None

    def finding(self) -> Finding | None:
        if self._news is None:
            return None
        kind, change, before, note = self._news
        points = self._series.points
        recent = len(points) - change.told < RECENT_NIGHTS
        if kind is not Kind.REGRESSION and not recent:
            return None
        return Finding(
            cell=self._series.cell,
            metric=self._series.metric,
            kind=kind,
            nights=len(points) - change.at,
            since=points[change.at].night,
            told=points[change.told - 1].night,
            before=before,
            after=self._now,
            spread=change.spread,
            score=change.score,
            shape=change.shape,
            at_least=2 * sum(point.bound for point in points[change.at :]) > len(points) - change.at,
            explanation=tuple(explain(points, change)),
            note=note,
        )


def explain(points: Sequence[Point], change: Change) -> Iterable[str]:
    """What else changed with a figure, in sentences; nodes: those that cost most of the difference."""
    at = change.at if change.shape is Shape.STEP else min(change.told - 1, len(points) - 1)
    since = _spoken(points[change.at].night, points[-1].night)
    if change.shape is Shape.DRIFT:
        yield f"a slow drift since about {since}, not a step"
    before, after = points[max(0, at - EXPLAINING_NIGHTS) : at], points[at:][-EXPLAINING_NIGHTS:]
    costs = _node_costs(before, after)
    cycles = [
        median(known) if (known := [p.cycles for p in part if p.cycles is not None]) else None
        for part in (before, after)
    ]
    if costs:
        yield f"{', '.join(f'{name} {cost:+.0f}' for name, cost in costs)} cycles/packet since {since}"
    elif cycles[0] and cycles[1] and abs(cycles[1] / cycles[0] - 1) >= 0.01:
        yield f"{cycles[0]:.0f} -> {cycles[1]:.0f} cycles/packet since {since}"
    if change.at and change.shape is Shape.STEP and points[change.at].facts != points[change.at - 1].facts:
        yield "the DUT's facts changed the same night"


def _node_costs(before: Sequence[Point], after: Sequence[Point]) -> list[tuple[str, float]]:
    """Nodes by what they add to a packet's cycles, the largest first, where that is at least one cycle."""
    if not any(point.nodes for point in before) or not any(point.nodes for point in after):
        return []
    names = sorted({name for point in (*before, *after) for name in point.nodes})
    was, is_now = ([p for p in part if p.nodes] for part in (before, after))
    costs = {
        name: median(p.nodes.get(name, 0.0) for p in is_now) - median(p.nodes.get(name, 0.0) for p in was)
        for name in names
    }
    total = sum(costs.values())
    told = [(name, cost) for name, cost in costs.items() if cost * total > 0 and abs(cost) >= max(1.0, abs(total) / 10)]
    return sorted(told, key=lambda one: (-abs(one[1]), one[0]))[:CAUSES]


def find_missing(nights: Sequence[Night], wanted: Callable[[str, str], bool]) -> Iterable[Missing]:
    """Cells without a result in the last night of each suite."""
    last = {(night.suite, night.simulated): night for night in nights}
    for night in last.values():
        if night.finished is None and night.error is None:
            continue  # it goes on, or will be resumed
        for cell in night.cells:
            if cell.state is State.DONE or not wanted(cell.dut, cell.mode):
                continue
            errors = [attempt.error for attempt in cell.attempts if attempt.error]
            queues = f" {cell.rx_queues}q" if cell.rx_queues is not None else ""
            name = f"{cell.dut} {cell.mode} {'bidir' if cell.bidir else 'uni'}{queues}"
            reason = errors[-1] if errors else night.error or "it was not reached"
            yield Missing(name, night.suite, night.night, reason)


def _remarks(found: Sequence[Series]) -> Iterable[str]:
    """Of one cell: what its figures do not show, or no longer."""
    for series in found[:1]:
        if series.since and sum(point.night >= series.since for point in series.points) <= RECENT_NIGHTS:
            yield f"{series.cell}: {', '.join(series.changed)} since {series.since}; its history starts anew"
    for series in found:
        if limited := series.limited:
            yield (
                f"{series.cell}: the generator is its limit since {limited[0].night}, so that nothing is known of the "
                f"DUT's own {series.metric.name}"
            )


def _order(finding: Finding) -> tuple[int, float, str, str]:
    return list(Kind).index(finding.kind), -finding.severity, str(finding.cell), finding.metric.name


_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def _spoken(night: str, now: str) -> str:
    """``12 November``, with its year if it is not this one; what is no date stays as it is."""
    if not is_date(night) or not 1 <= int(night[5:7]) <= 12:
        return night
    year = "" if now.startswith(night[:4]) else f" {night[:4]}"
    return f"{int(night[8:])} {_MONTHS[int(night[5:7]) - 1]}{year}"
