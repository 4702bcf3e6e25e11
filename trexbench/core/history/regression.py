"""Judge every cell's figures over the nights: what got slower, since when and by how much. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .cell import Cell
from .detect import FIRST_NIGHTS, Shape, nights_of_change
from .differences import Difference
from .explain import explain
from .known import NEWS_NIGHTS, Known, day_number
from .levels import NEEDED_NIGHTS, Event, Kind, Usual, follow
from .night import CellState, Night
from .rows import METRICS, Metric, RunRow, cells_of
from .series import OWN_TESTER, FigureSeries, night_of, series_of
from .testers import FigureRatio, histories_of

STALE_NIGHTS = 30
"""A cell that was not measured in so many nights is no longer judged."""
AGAIN_DAYS = 3
"""A night of a part of the cells repeats what failed so many days before; later, the suite has become smaller."""


@dataclass(frozen=True)
class Loss:
    """A regression that ended. first, last: its nights; nights: measured in it; before, after: the levels."""

    first: str
    last: str
    nights: int
    before: float
    after: float


@dataclass(frozen=True)
class Finding:
    """One figure of one cell. before, after: its levels, in the metric's unit; nights: measured since the change.

    since: the first night of the change, None where there is none; between: the nights that it may be as well; told:
    the night after which it was found. noise: of a night of the usual level, as a standard deviation; score: the
    difference in standard errors. at_least: the level after it is a lower bound. note: of the acknowledgement.
    loss: the regression that a recovery ended, or that a relapse repeats. more: so many nights like the last one make
    a suspicion a change.
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
    between: tuple[str, str] | None = None
    loss: Loss | None = None
    more: int = 0
    elsewhere: bool = False
    """It is of another tester's history than the one that is judged."""

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

    @property
    def is_relapse(self) -> bool:
        """True if the figure has been at this worse level before."""
        return self.worse and self.loss is not None


@dataclass(frozen=True)
class MissingCell:
    """A cell that the last night of its suite did not measure, and why."""

    cell: str | None
    """None: the whole night was not run, as its suite could not be read."""
    suite: str
    night: str
    reason: str
    of: int = 0
    """The number of cells of that night, and of those that measured some of them again."""


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
    missing: tuple[MissingCell, ...] = ()
    remarks: tuple[str, ...] = ()
    since: str | None = None
    steady: tuple[tuple[Cell, str], ...] = ()
    nights: tuple[str, ...] = ()
    differences: Mapping[tuple[Cell, str], tuple[Difference, ...]] = field(default_factory=dict)
    resting: frozenset[Cell] = frozenset()
    """Cells with a history that the last night did not measure."""
    usual: Mapping[tuple[Cell, str], Usual] = field(default_factory=dict)
    without: tuple[RunRow, ...] = ()
    """Runs without a figure, in the order of time."""

    def of(self, kind: Kind) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.kind is kind)

    @property
    def regressions(self) -> tuple[Finding, ...]:
        """Regressions that raise the alarm."""
        return tuple(one for one in self.of(Kind.REGRESSION) if not self.since or (one.since or "") >= self.since)

    @property
    def older(self) -> tuple[Finding, ...]:
        """Regressions that raise no alarm, because they began before ``since``."""
        return tuple(one for one in self.of(Kind.REGRESSION) if self.since and (one.since or "") < self.since)

    @property
    def nothing_measured(self) -> bool:
        """True if all cells of the last night failed."""
        last = max((one.night for one in self.missing), default="")
        failed = [one for one in self.missing if one.night == last and one.cell is not None]
        suites = {one.suite: one.of for one in failed}
        return bool(failed) and last > max(self.nights, default="") and len(failed) == sum(suites.values())

    @property
    def now(self) -> str:
        """The last night, also where it measured nothing; empty for none."""
        return max((*self.nights, *(one.night for one in self.missing)), default="")

    @property
    def exit_code(self) -> int:
        """0: nothing got worse, 3: something did, 4: too few nights to judge any figure."""
        return 3 if self.regressions else 0 if self.judged else 4


def judge_rows(
    rows: Iterable[RunRow],
    known: Sequence[Known] = (),
    nights: Sequence[Night] = (),
    since: str | None = None,
    wanted: Callable[[Cell], bool] = lambda cell: True,
    ratios: Sequence[FigureRatio] = (),
) -> Judgement:
    """The verdict on every cell. nights: of all suites, oldest first; wanted: which of their cells count.

    ratios: by how much testers differ.
    """
    rows = sorted(rows, key=lambda row: row.started)
    cells = cells_of(rows)
    dates = sorted({night_of(row) for found in cells.values() for row in found})
    horizon = dates[-STALE_NIGHTS - 1] if len(dates) > STALE_NIGHTS else ""
    stale = {cell for cell, found in cells.items() if night_of(found[-1]) <= horizon}
    last = max((row.night for found in cells.values() for row in found if row.night), default="".join(dates[-1:]))
    findings: list[Finding] = []
    remarks: list[str] = []
    steady: list[tuple[Cell, str]] = []
    usual: dict[tuple[Cell, str], Usual] = {}
    for cell in sorted(cells.keys() - stale, key=str):
        histories = [(series_of(cell, one.rows, METRICS.values()), one) for one in histories_of(cells[cell], ratios)]
        remarks += _remarks([one for one in histories[0][0] if one.points])
        for at, metric in enumerate(METRICS.values()):
            figures = [(some[at], one.lines.get(metric.column, "")) for some, one in histories if some[at].points]
            if not figures:
                continue
            new, level = _judge_testers(figures, known)
            findings += new
            usual |= {} if level is None else {(cell, metric.name): level}
            steady += [] if new else [(cell, metric.name)]
    if stale:
        remarks.append(
            f"{len(stale)} cell{'s' * (len(stale) > 1)} not measured in the last {STALE_NIGHTS} nights, not judged"
        )
    findings.sort(key=lambda one: (list(Kind).index(one.kind), -one.severity, str(one.cell), one.metric.name))
    return Judgement(
        findings=tuple(findings),
        judged=len(usual),
        missing=tuple(find_missing(nights, wanted)),
        remarks=tuple(remarks),
        since=since,
        steady=tuple(steady),
        nights=tuple(dates),
        usual=usual,
        resting=frozenset(cell for cell in cells.keys() - stale if night_of(cells[cell][-1]) < last),
        without=tuple(row for row in rows if not row.complete and wanted(row.cell)),
    )


def _judge_testers(
    figures: Sequence[tuple[FigureSeries, str]], known: Sequence[Known]
) -> tuple[list[Finding], Usual | None]:
    """The judgement of the first of a figure's histories, and of others the regressions that it is too young to show.

    Each comes with a line for its findings.
    """
    (series, line), *others = figures
    new, level = _judge_series(series, known, line)

    def is_older(one: Finding) -> bool:
        """Test whether it is a regression that began before the first history shows one, or at its very begin."""
        nights = sum(point.night < (one.since or "") for point in series.points)
        return one.kind is Kind.REGRESSION and nights < FIRST_NIGHTS

    for other, words in others:
        findings, _ = _judge_series(other, known, words)
        older = [replace(one, elsewhere=True) for one in findings if is_older(one)]
        if older and not any(is_older(one) for one in new):
            return [*(one for one in new if one.kind is not Kind.INSUFFICIENT), *older], level
    return new, level


def _judge_series(series: FigureSeries, known: Sequence[Known], line: str) -> tuple[list[Finding], Usual | None]:
    """A finding for each event that stands or is recent, and the usual level; with too few nights only that finding.

    line: added to each finding's explanation, if it is not empty.
    """
    points, lines = series.points, tuple(filter(None, [line]))
    if len(points) < NEEDED_NIGHTS:
        return [Finding(series.cell, series.metric, Kind.INSUFFICIENT, len(points), explanation=lines)], None
    events, standing, usual = follow(series, known)
    latest = max((event.start for event in standing), default=0)
    shown = [
        event
        for event in events
        if event in standing
        or (len(points) - event.change.told < NEWS_NIGHTS and (event.kind is not Kind.RECOVERY or event.start > latest))
    ]
    return [_finding(series, event, usual.noise, lines) for event in shown], usual


def _finding(series: FigureSeries, event: Event, noise: float | None, lines: Sequence[str]) -> Finding:
    """noise: of the usual level. lines: to be added to the explanation."""
    why = () if event.kind in (Kind.RECOVERY, Kind.SUSPICION) else explain(series, event)
    points, change, nights = series.points, event.change, series.points[event.start :]
    return Finding(
        cell=series.cell,
        metric=series.metric,
        kind=event.kind,
        nights=len(nights),
        since=points[event.start].night,
        told=points[min(change.told, len(points)) - 1].night,
        before=event.before,
        after=event.after,
        noise=change.noise if noise is None else noise,
        score=change.score,
        shape=change.shape,
        at_least=2 * sum(point.bound for point in nights) > len(nights),
        explanation=(*why, *lines),
        note=event.note,
        between=_between(series, event),
        loss=_loss(series, event.loss),
        more=event.more,
    )


def _between(series: FigureSeries, event: Event) -> tuple[str, str] | None:
    """The nights in which a step may have begun; None of a drift, and of a single night."""
    change, points = event.change, series.points
    if change.shape is Shape.DRIFT or event.kind is Kind.SUSPICION:
        return None
    values = [point.value for point in points[event.begin : event.end]]
    first, last = nights_of_change(values, event.start - event.begin, change.before, event.after, change.noise)
    return points[event.begin + first].night, points[event.begin + last].night


def _loss(series: FigureSeries, event: Event | None) -> Loss | None:
    if event is None:
        return None
    nights = [point.night for point in series.points[event.start : event.end]]
    return Loss(nights[0], nights[-1], len(nights), event.before, event.after)


def find_missing(nights: Sequence[Night], wanted: Callable[[Cell], bool]) -> Iterable[MissingCell]:
    """Cells without a result in the last night of each suite; while it runs only those that have failed.

    Of a cell that was measured again, its last record counts; one that any suite has measured since is not missing.
    """
    lasting = _last_nights(nights)
    begin = min((at for some in lasting for at in some), default=0)
    done = {
        (record.cell, night.simulated): at
        for at, night in enumerate(nights[begin:], begin)
        for record in night.cells
        if record.state is CellState.DONE
    }
    for some in lasting:
        night = nights[some[0]]
        if night.error and not night.cells:
            yield MissingCell(None, night.suite, night.night, night.error)
        latest = {one.cell: (at, one) for at in some for one in nights[at].cells if wanted(one.cell)}
        for at, record in latest.values():
            night = nights[at]
            under_way = night.finished is None and night.error is None
            if at <= done.get((record.cell, night.simulated), -1) or (
                under_way and record.state is not CellState.FAILED
            ):
                continue
            errors = [attempt.error for attempt in record.attempts if attempt.error]
            reason = errors[-1] if errors else night.error or "the night ended before it was measured"
            yield MissingCell(str(record), night.suite, night.night, reason, len(latest))


def _last_nights(nights: Sequence[Night]) -> list[list[int]]:
    """Each suite's last night, by its place, and those that measured a part of its cells again soon afterwards."""
    found: dict[tuple[str, bool | None], list[int]] = {}
    for at, night in enumerate(nights):
        if night.cells:  # of one that was not run it is not known whether it was to be simulated
            found.pop((night.suite, None), None)
        some = found.setdefault((night.suite, night.simulated if night.cells else None), [])
        if some and not _is_part(night, nights[some[0]]):
            some.clear()
        some.append(at)
    return [*found.values()]


def _is_part(night: Night, whole: Night) -> bool:
    soon = day_number(night.night) - day_number(whole.night) <= AGAIN_DAYS
    return soon and set() < {one.cell for one in night.cells} < {one.cell for one in whole.cells}


def _remarks(found: Sequence[FigureSeries]) -> Iterable[str]:
    """Report one cell's changed conditions, and figures that the generator limits."""
    for series in found[:1]:
        if series.since and sum(point.night >= series.since for point in series.points) <= NEWS_NIGHTS:
            others = any(one.startswith("tester ") and OWN_TESTER not in one for one in series.changed)
            remedy = " (`trexbench fleet calibrate` joins testers' histories)" if others else ""
            changes = ", ".join(series.changed)
            yield f"{series.cell}: {changes} since {series.since}; its history starts again{remedy}"
    for series in found:
        if limited := series.limited:
            why = "not known to be limited by the DUT" if series.cell.tcp else "limited by the generator"
            unknown = f"the DUT's own {series.metric.name} is unknown since then"
            yield f"{series.cell}: {why} since {limited[0].night}: {unknown}"
