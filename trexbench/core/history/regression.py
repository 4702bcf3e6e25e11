"""What got slower, since when and by how much: every cell's figures are judged over the nights. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import median

from .detect import FIRST_NIGHTS, MEDIAN_ERROR, Change, Segmenter, Shape, find_changes
from .differences import Difference
from .explain import explain
from .known import Known, find_note
from .night import Night, State
from .rows import METRICS, TCP_KIND, Cell, Metric, RunRow, cells_of
from .series import Point, Series, night_of, series_of

NEEDED_NIGHTS = FIRST_NIGHTS + 2
"""With fewer, no change can be found: FIRST_NIGHTS show the usual level and its noise, two more that it changed."""
RECENT_NIGHTS = 7
"""Improvements, known changes and changed conditions are reported for so many nights."""
STALE_NIGHTS = 30
"""A cell that was not measured in so many nights is no longer judged."""


class Kind(str, Enum):
    """known: a change that somebody acknowledged."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    KNOWN = "known"
    INSUFFICIENT = "insufficient"


@dataclass(frozen=True)
class Finding:
    """One figure of one cell. before, after: its levels, in the metric's unit; nights: measured since the change.

    since: the first night of the change, None where there is none; told: the night after which it was found. noise: of
    a night, as a standard deviation; score: the difference in standard errors. at_least: the level after it is a lower
    bound. note: of the acknowledgement.
    """

    cell: Cell
    metric: Metric
    kind: Kind
    nights: int
    since: str | None = None
    told: str | None = None
    before: float = 0.0
    after: float = 0.0
    noise: float = 0.0
    score: float = 0.0
    shape: Shape = Shape.STEP
    at_least: bool = False
    explanation: tuple[str, ...] = ()
    note: str | None = None

    @property
    def share(self) -> float | None:
        """The difference as a share of the level before; None where that is 0."""
        return (self.after - self.before) / abs(self.before) if self.before else None

    @property
    def severity(self) -> float:
        """The size of the change as a share, for sorting."""
        return abs(self.share) if self.share is not None else float("inf")

    @property
    def worse(self) -> bool:
        return (self.after < self.before) is (self.metric.better == "higher")


@dataclass(frozen=True)
class Missing:
    """A cell that the last night of its suite did not measure, and why."""

    cell: str
    suite: str
    night: str
    reason: str


@dataclass(frozen=True)
class Judgement:
    """All findings, worst first. judged: how many figures had enough nights; steady: figures (cell, metric) without a
    finding; remarks: what else to know.

    since: regressions that began before this night do not alarm (None: all do until acknowledged or recovered). nights:
    all that have a run, ascending. differences: what differs between the documents of a cell's last run before a night
    and its first run since; only for those (cell, night) that were compared.
    """

    findings: tuple[Finding, ...]
    judged: int
    missing: tuple[Missing, ...] = ()
    remarks: tuple[str, ...] = ()
    since: str | None = None
    steady: tuple[tuple[Cell, str], ...] = ()
    nights: tuple[str, ...] = ()
    differences: Mapping[tuple[Cell, str], tuple[Difference, ...]] = field(default_factory=dict)

    def of(self, kind: Kind) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.kind is kind)

    @property
    def regressions(self) -> tuple[Finding, ...]:
        """Those that alarm."""
        return tuple(one for one in self.of(Kind.REGRESSION) if not self.since or (one.since or "") >= self.since)

    @property
    def older(self) -> tuple[Finding, ...]:
        """Those that do not alarm, because they began before ``since``."""
        return tuple(one for one in self.of(Kind.REGRESSION) if self.since and (one.since or "") < self.since)

    @property
    def exit_code(self) -> int:
        """0: nothing got worse, 3: something did, 4: too few nights to judge any figure."""
        return 3 if self.regressions else 0 if self.judged else 4


def judge_rows(
    rows: Iterable[RunRow],
    segment: Segmenter,
    known: Sequence[Known] = (),
    nights: Sequence[Night] = (),
    since: str | None = None,
    wanted: Callable[[str, str], bool] = lambda dut, mode: True,
) -> Judgement:
    """The verdict on every cell. nights: of all suites, oldest first; wanted: which of their DUTs and modes count."""
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
            new = judge_series(series, segment, known)
            findings += new
            steady += [] if new else [(cell, series.metric.name)]
            judged += len(series.points) >= NEEDED_NIGHTS
    if stale:
        remarks.append(f"{stale} cell{'s' * (stale > 1)} not measured in the last {STALE_NIGHTS} nights, not judged")
    findings.sort(key=lambda one: (list(Kind).index(one.kind), -one.severity, str(one.cell), one.metric.name))
    missing = tuple(find_missing(nights, wanted))
    return Judgement(tuple(findings), judged, missing, tuple(remarks), since, tuple(steady), tuple(dates))


def judge_series(series: Series, segment: Segmenter, known: Sequence[Known] = ()) -> list[Finding]:
    """At most one finding: the figure is worse than its best level without a note, or it changed recently."""
    points, metric = series.points, series.metric
    if len(points) < NEEDED_NIGHTS:
        return [Finding(series.cell, metric, Kind.INSUFFICIENT, len(points))]
    smallest = series.smallest
    changes = find_changes([point.value for point in points], smallest, segment)
    about = [one for one in known if one.is_about(series.cell, metric.name)]
    nights, places = [point.night for point in points], [change.at for change in changes]
    reference, now = changes[0].before if changes else 0.0, 0.0
    news: tuple[Kind, Change, float, str | None] | None = None  # kind, change, level compared with, note
    for change, end in zip(changes, [*places[1:], len(points)], strict=False):
        first = change.at if change.shape is Shape.STEP else max(change.at, change.told - FIRST_NIGHTS)
        since = points[min(first, end - 1) : end]
        now = median(point.value for point in since)
        better = now - reference if metric.better == "higher" else reference - now
        enough = float(smallest.of(reference))
        # the median of a return's first nights may be short of the level by chance
        returns = (change.after > change.before) is (metric.better == "higher")
        chance = MEDIAN_ERROR * change.noise / len(since) ** 0.5 if returns else 0.0
        if (note := find_note(about, nights, places, change.at)) is not None:
            news, reference = (Kind.KNOWN, change, reference, note), now
        elif better <= -enough - chance:
            if news is None or news[0] is not Kind.REGRESSION:
                news = (Kind.REGRESSION, change, reference, None)
        elif better >= enough:
            bounds = [point.bound for point in points[: change.at]][-FIRST_NIGHTS:]
            proven = 2 * sum(bounds) <= len(bounds)  # the DUT may have carried more than a bound
            news, reference = (Kind.IMPROVEMENT, change, reference, None) if proven else None, now
        else:
            news = None
    if news is None or (news[0] is not Kind.REGRESSION and len(points) - news[1].told >= RECENT_NIGHTS):
        return []
    return [_finding(series, *news, now, since)]


def _finding(
    series: Series, kind: Kind, change: Change, before: float, note: str | None, now: float, latest: Sequence[Point]
) -> Finding:
    """latest: the nights whose level is ``now``."""
    points = series.points
    return Finding(
        cell=series.cell,
        metric=series.metric,
        kind=kind,
        nights=len(points) - change.at,
        since=points[change.at].night,
        told=points[change.told - 1].night,
        before=before,
        after=now,
        noise=change.noise,
        score=change.score,
        shape=change.shape,
        at_least=2 * sum(point.bound for point in points[change.at :]) > len(points) - change.at,
        explanation=tuple(explain(series, change, (before, now), latest)),
        note=note,
    )


def find_missing(nights: Sequence[Night], wanted: Callable[[str, str], bool]) -> Iterable[Missing]:
    """Cells without a result in the last night of each suite."""
    last = {(night.suite, night.simulated): night for night in nights}
    for night in last.values():
        if night.finished is None and night.error is None:
            continue  # still running, or to be resumed
        for cell in night.cells:
            if cell.state is State.DONE or not wanted(cell.dut, cell.mode):
                continue
            errors = [attempt.error for attempt in cell.attempts if attempt.error]
            reason = errors[-1] if errors else night.error or "the night ended before it was measured"
            yield Missing(str(cell), night.suite, night.night, reason)


def _remarks(found: Sequence[Series]) -> Iterable[str]:
    """Of one cell: changed conditions, and figures that the generator limits."""
    for series in found[:1]:
        if series.since and sum(point.night >= series.since for point in series.points) <= RECENT_NIGHTS:
            yield f"{series.cell}: {', '.join(series.changed)} since {series.since}; its history starts again"
    for series in found:
        if limited := series.limited:
            why = "not known to be limited by the DUT" if series.cell.kind == TCP_KIND else "limited by the generator"
            unknown = f"the DUT's own {series.metric.name} is unknown since then"
            yield f"{series.cell}: {why} since {limited[0].night}: {unknown}"
