"""Judge every cell's figures over the nights: what got slower, since when and by how much. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .cell import Cell
from .detect import FIRST_NIGHTS
from .differences import Difference
from .explain import explain
from .finding import Finding, Kind
from .known import NEWS_NIGHTS, Known, day_number
from .levels import NEEDED_NIGHTS, Usual, follow
from .night import CellState, Night
from .rows import METRICS, RunRow, cells_of
from .series import OWN_TESTER, FigureSeries, night_of, series_of
from .testers import FigureRatio, histories_of

STALE_NIGHTS = 30
"""A cell that was last measured, or failed, more than so many nights ago is no longer reported."""
AGAIN_DAYS = 3
"""A night of some of the cells within so many days repeats what failed; later, the suite has become smaller."""


@dataclass(frozen=True)
class MissingCell:
    """A cell that the last night of its suite did not measure, and why."""

    cell: str | None
    """None: the whole night was not run, as its suite could not be read."""
    suite: str
    night: str
    reason: str
    of: int = 0
    """Number of cells in that night and in those that repeated some of them."""
    failed: bool = True
    """False: the night ended before it was measured, or while it was."""


@dataclass(frozen=True)
class Judgement:
    """All findings, worst first."""

    findings: tuple[Finding, ...]
    judged: int
    """Number of figures with enough nights."""
    missing: tuple[MissingCell, ...] = ()
    remarks: tuple[str, ...] = ()
    since: str | None = None
    """Regressions that began before this night do not alarm; None: all do until acknowledged or recovered."""
    steady: tuple[tuple[Cell, str], ...] = ()
    """Figures (cell, metric) without a finding."""
    nights: tuple[str, ...] = ()
    """All nights with a run, ascending."""
    differences: Mapping[tuple[Cell, str], tuple[Difference, ...]] = field(default_factory=dict)
    """By cell and night, where compared: between documents of the last run before that night and of the first since."""
    resting: frozenset[Cell] = frozenset()
    """Cells with a history that the last night did not measure."""
    usual: Mapping[tuple[Cell, str], Usual] = field(default_factory=dict)
    few: Mapping[tuple[Cell, str], int] = field(default_factory=dict)
    """Nights of the figures (cell, metric) that have too few to judge."""
    without: tuple[RunRow, ...] = ()
    """Runs without a figure, in order of time."""

    def of(self, kind: Kind) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.kind is kind)

    @property
    def regressions(self) -> tuple[Finding, ...]:
        """Regressions that raise the alarm."""
        return self.of(Kind.REGRESSION)

    @property
    def nothing_measured(self) -> bool:
        """True if all cells of the last night failed."""
        last = max((cell.night for cell in self.missing), default="")
        failed = [cell for cell in self.missing if cell.night == last and cell.cell is not None]
        suites = {cell.suite: cell.of for cell in failed}
        return bool(failed) and last > max(self.nights, default="") and len(failed) == sum(suites.values())

    @property
    def now(self) -> str:
        """The last night, even if it measured nothing; empty if there is none."""
        return max((*self.nights, *(cell.night for cell in self.missing)), default="")

    @property
    def exit_code(self) -> int:
        """0: nothing got worse; 3: something did; 4: too few nights, or nothing was measured in the last one."""
        not_run = self.now > max(self.nights, default="") and any(
            cell.cell is None and cell.night == self.now for cell in self.missing
        )
        return 3 if self.regressions else 4 if not_run or self.nothing_measured or not self.judged else 0


def judge_rows(
    rows: Iterable[RunRow],
    known: Sequence[Known] = (),
    nights: Sequence[Night] = (),
    since: str | None = None,
    wanted: Callable[[Cell], bool] = lambda cell: True,
    ratios: Sequence[FigureRatio] = (),
) -> Judgement:
    """Judge the figures of every cell.

    nights: of all suites, oldest first. wanted: selects the cells that may be missing. ratios: between testers.
    """
    rows = sorted(rows, key=lambda row: row.started)
    cells = cells_of(rows)
    dates = sorted({night_of(row) for runs in cells.values() for row in runs})
    horizon = dates[-STALE_NIGHTS - 1] if len(dates) > STALE_NIGHTS else ""
    stale = {cell for cell, runs in cells.items() if night_of(runs[-1]) <= horizon}
    begun = (one.night for one in nights if not one.finished and any(wanted(record.cell) for record in one.cells))
    measured = (row.night for runs in cells.values() for row in runs if row.night)
    last = max((*measured, *begun), default="".join(dates[-1:]))
    findings: list[Finding] = []
    remarks: list[str] = []
    noted: dict[tuple[str, str], list[Cell]] = {}
    usual: dict[tuple[Cell, str], Usual] = {}
    few: dict[tuple[Cell, str], int] = {}
    for cell in sorted(cells.keys() - stale, key=str):
        histories = [(series_of(cell, own.rows, METRICS.values()), own) for own in histories_of(cells[cell], ratios)]
        for text in _remarks([series for series in histories[0][0] if series.points]):
            noted.setdefault((cell.dut_marked, text), []).append(cell)
        for at, metric in enumerate(METRICS.values()):
            figures = [(some[at], own.lines.get(metric.column, "")) for some, own in histories if some[at].points]
            if not figures:
                continue
            new, level = _judge_testers(figures, known)
            findings += new
            if level is not None:
                usual[cell, metric.name] = level
            elif not new:
                few[cell, metric.name] = len(figures[0][0].points)
    for (dut, text), alike in noted.items():
        remarks.append(f"{alike[0] if len(alike) == 1 else f'{dut} ({len(alike)} cells)'}: {text}")
    if stale:
        count = f"{len(stale)} cell{'s' * (len(stale) > 1)}"
        remarks.append(f"{count} not measured in the last {STALE_NIGHTS} nights, not judged")
    for at, one in enumerate(findings):
        if one.kind is Kind.REGRESSION and one.since < (since or ""):
            findings[at] = replace(one, kind=Kind.OLDER)
    kinds, changed = list(Kind), {(one.cell, one.metric.name) for one in findings}
    findings.sort(key=lambda new: (kinds.index(new.kind), -new.severity, str(new.cell), new.metric.name))
    return Judgement(
        findings=tuple(findings),
        judged=len(usual),
        missing=tuple(cell for cell in find_missing(nights, wanted) if cell.night > horizon),
        remarks=tuple(remarks),
        since=since,
        steady=tuple(figure for figure in usual if figure not in changed),
        nights=tuple(dates),
        usual=usual,
        few=few,
        resting=frozenset(cell for cell in cells.keys() - stale if night_of(cells[cell][-1]) < last),
        without=tuple(row for row in rows if not row.complete and wanted(row.cell)),
    )


def _judge_testers(
    figures: Sequence[tuple[FigureSeries, str]], known: Sequence[Known]
) -> tuple[list[Finding], Usual | None]:
    """Judge the first of a figure's histories, each with a line; add others' regressions that it is too young for."""
    (series, line), *others = figures
    new, level = _judge_series(series, known, line)

    def is_older(finding: Finding) -> bool:
        """Test whether it is a regression that began before the first history could show one, or at its very start."""
        nights = sum(point.night < finding.since for point in series.points)
        return finding.kind is Kind.REGRESSION and nights < FIRST_NIGHTS

    if not any(map(is_older, new)):
        for other, words in others:
            findings, _ = _judge_series(other, known, words)
            if older := [replace(finding, elsewhere=True) for finding in findings if is_older(finding)]:
                return [*new, *older], level
    return new, level


def _judge_series(series: FigureSeries, known: Sequence[Known], line: str) -> tuple[list[Finding], Usual | None]:
    """Return standing and recent changes, with the line, and the usual level; that is None for too few nights."""
    points, lines = series.points, tuple(filter(None, [line]))
    if len(points) < NEEDED_NIGHTS:
        return [], None
    changes, standing, usual = follow(series, known)
    latest, recent = max((loss.start for loss in standing), default=0), points[-NEWS_NIGHTS:][0].night
    shown = [
        one
        for one in changes
        if one in standing or (one.reported >= recent and (one.kind is not Kind.RECOVERY or one.start > latest))
    ]
    if usual.noise is not None:  # one noise, of one level, for all that is said of the figure
        shown = [replace(one, noise=usual.noise, usual=usual.level) for one in shown]
    unexplained = Kind.RECOVERY, Kind.SUSPICION
    whys = (() if one.kind in unexplained else explain(series, one) for one in shown)
    return [replace(one, explanation=(*why, *lines)) for one, why in zip(shown, whys, strict=True)], usual


def find_missing(nights: Sequence[Night], wanted: Callable[[Cell], bool]) -> Iterable[MissingCell]:
    """Yield the cells without a result in the last night of each suite; while it runs only those that have failed.

    If a cell was measured again, its last record counts; one that any suite has measured since is not missing.
    """
    last_nights = _last_nights(nights)
    begin = min((at for places in last_nights for at in places), default=0)
    done = {
        (record.cell, night.simulated): at
        for at, night in enumerate(nights[begin:], begin)
        for record in night.cells
        if record.state is CellState.DONE
    }
    for places in last_nights:
        night = nights[places[0]]
        if night.error and not night.cells:
            yield MissingCell(None, night.suite, night.night, night.error)
        latest = {record.cell: (at, record) for at in places for record in nights[at].cells if wanted(record.cell)}
        for at, record in latest.values():
            night = nights[at]
            is_running = night.finished is None and night.error is None and record.state is not CellState.FAILED
            if is_running or at <= done.get((record.cell, night.simulated), -1):
                continue
            errors = [attempt.error for attempt in record.attempts if attempt.error]
            reason = errors[-1] if errors else night.error or "the night ended before it was measured"
            failed = record.state is CellState.FAILED
            yield MissingCell(str(record), night.suite, night.night, reason, len(latest), failed)


def _last_nights(nights: Sequence[Night]) -> list[list[int]]:
    """Find the places of each suite's last night, and of those that soon repeated some of its cells."""
    last: dict[tuple[str, bool | None], list[int]] = {}
    for at, night in enumerate(nights):
        if night.cells:  # it is unknown whether one that was not run would have been simulated
            last.pop((night.suite, None), None)
        places = last.setdefault((night.suite, night.simulated if night.cells else None), [])
        if places:
            whole = nights[places[0]]
            is_soon = day_number(night.night) - day_number(whole.night) <= AGAIN_DAYS
            if not is_soon or not set() < {record.cell for record in night.cells} < {one.cell for one in whole.cells}:
                places.clear()
        places.append(at)
    return [*last.values()]


def _remarks(histories: Sequence[FigureSeries]) -> Iterable[str]:
    """Yield words for one cell's changed conditions, and figures that the generator limits."""
    for series in histories[:1]:
        if series.since and sum(point.night >= series.since for point in series.points) <= NEWS_NIGHTS:
            others = any(words.startswith("tester ") and OWN_TESTER not in words for words in series.changed)
            remedy = " (`trexbench fleet calibrate` joins testers' histories)" if others else ""
            changes, is_back = ", ".join(series.changed), series.points[0].night < series.since
            history = "its former history goes on" if is_back else f"its history starts again{remedy}"
            yield f"{changes} since {series.since}; {history}"
    for series in histories:
        if limited := series.limited:
            why = "not known to be limited by the DUT" if series.cell.tcp else "limited by the generator"
            unknown = f"the DUT's own {series.metric.name} is unknown since then"
            yield f"{why} since {limited[0].night}: {unknown}"
