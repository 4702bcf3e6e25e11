"""Collects what a report shows: rows from the index, nights, changes, and the latest document of every cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path

from ..core.errors import StoreError
from ..core.history.causes import groups_of
from ..core.history.cell import Cell, is_chosen
from ..core.history.compare import differing_facts
from ..core.history.finding import Finding
from ..core.history.night import Night
from ..core.history.regression import judge_rows
from ..core.history.rows import RunRow, cells_of
from ..core.history.series import night_of
from ..core.result import RunResult
from ..core.run import Run
from ..core.tcp.result import TcpResult
from ..report.events import events_of_judgement, first_sentence
from ..report.page.html import render
from ..report.page.overlay import Older, choose_older, with_figures
from ..report.page.report import Report
from ..report.page.templates import LIBRARY, read_static
from ..results.document import naming
from ..results.index import without_collection
from ..results.nights import find_nights, find_pages, load_known, load_ratios
from ..results.remote import fetch_together
from ..results.store import load_document, load_run
from .find import Warn, read_index, require_choice
from .judge import with_differences

MOST_RUNS = 400
"""Most cells whose latest document is read for its curves; tables show all cells."""


@without_collection()
def make_page(report: Report, version: str = "") -> str:
    """Render the report as HTML. version: of a page that is served and renews itself."""
    return render(report, read_static(LIBRARY), version)


@without_collection()
def collect(
    results: Path,
    warn: Warn,
    suite: str | None = None,
    duts: Sequence[str] = (),
    since: str | None = None,
    night: str | None = None,
    only: Sequence[str] = (),
) -> Report:
    """Collect a report on these suites, DUTs and nights.

    since: the first night. night: the one whose table is shown; None: the last. only: patterns of cells; none means
    all. StoreError if there is nothing of the suite or the DUTs, or no such night; ConfigError for patterns that match
    nothing.
    """
    rows, problems = read_index(results, warn, suite=suite)
    stored = find_nights(results, warn, suite=suite, since=None if night else since)
    rows, nights = _select(rows, [one for _, one in stored if suite in (None, one.suite)], duts, only)
    if (suite or duts) and not rows and not any(one.cells or one.error for one in nights):
        names = " or ".join([*([suite] if suite else []), *duts])
        raise StoreError(f"no run in {results} is of {names}", "`trexbench results list` shows what there is")
    ratios = load_ratios(results)
    # a former night is judged by what was known then
    known = [row for row in rows if night is None or night_of(row) <= night]
    then = [one for one in nights if night is None or one.night <= night]
    judgement = with_differences(judge_rows(known, load_known(results), then, ratios=ratios), known, results, warn)
    groups = groups_of(judgement)
    changes = [change for group in groups for finding in group.findings for change in finding.steps]
    nights = [one for one in nights if (one.cells or one.error) and one.night >= (since or "")]
    rows = [row for row in rows if night_of(row) >= (since or "")]
    table = _table_of(nights, night)
    tcp, others = [row for row in rows if row.cell.tcp], [row for row in rows if not row.cell.tcp]
    latest = load_latest(results, others, table, problems) | load_latest(results, tcp, table, problems)
    runs = {cell: run for cell, run in latest.items() if isinstance(run, RunResult)}
    older = load_older(results, rows, runs, changes, problems, warn)
    return Report(
        rows=rows,
        nights=nights,
        table=table,
        runs=runs,
        tcp={cell: run for cell, run in latest.items() if isinstance(run, TcpResult)},
        others={cell: run for cell, run in latest.items() if not isinstance(run, RunResult | TcpResult)},
        older=older,
        changes=changes,
        groups=groups,
        usual=judgement.usual,
        ratios=ratios,
        problems=problems,
        title=f"trexbench: {suite or _suites_words(nights)}",
        made=f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
        judged=first_sentence(judgement),
        events=events_of_judgement(judgement),
        results=str(results),
        remarks=judgement.remarks,
        pages=find_pages(results, stored, suite),
    )


def _select(
    rows: Sequence[RunRow], nights: Sequence[Night], duts: Sequence[str], only: Sequence[str]
) -> tuple[list[RunRow], list[Night]]:
    """Keep the rows and the nights' cells of these DUTs and patterns; ConfigError if patterns match no row."""
    of_duts = [row for row in rows if not duts or row.cell.dut in duts]
    chosen = [row for row in of_duts if is_chosen(row.cell, only)]
    require_choice(only, chosen, of_duts)
    kept = []
    for night in nights:
        cells = tuple(cell for cell in night.cells if (not duts or cell.dut in duts) and is_chosen(cell.cell, only))
        kept.append(replace(night, cells=cells, error=night.error if cells or not night.cells else None))
    return chosen, kept


def _suites_words(nights: Sequence[Night]) -> str:
    suites = dict.fromkeys(night.suite for night in nights)
    return ", ".join(suites) or "stored runs" if len(suites) < 4 else f"{len(suites)} suites"


def _table_of(nights: Sequence[Night], date: str | None) -> Night | None:
    chosen = [night for night in nights if night.cells and date in (None, night.night)]
    if date is not None and not chosen:
        known = ", ".join(sorted({night.night for night in nights})[-3:]) or "none"
        raise StoreError(f"no night of {date}", f"the latest are: {known}")
    return max(chosen, key=lambda night: (night.night, night.started), default=None)


def load_latest(
    results: Path, rows: Sequence[RunRow], table: Night | None, problems: list[tuple[str, str]]
) -> dict[Cell, Run]:
    """Load the latest complete run of every cell, of the table's suite if that has any of the cell.

    Each document is read once for all of its cells.
    """
    complete = [row for row in rows if row.complete]
    of_suite = {row.cell: row for row in complete if table is not None and row.suite == table.suite}
    latest = of_suite | {row.cell: row for row in complete if row.cell not in of_suite}
    cells: dict[str, list[Cell]] = {}
    for cell, row in islice(latest.items(), MOST_RUNS):
        cells.setdefault(row.path, []).append(cell)
    fetch_together(results, cells)
    runs: dict[Cell, Run] = {}
    for path, some in cells.items():
        try:
            run = load_document(results / path)
        except StoreError as error:
            problems.append((path, str(error).removeprefix(f"{results / path}: ")))
        else:
            runs |= dict.fromkeys(some, run)
    return runs


def load_older(
    results: Path,
    rows: Sequence[RunRow],
    runs: Mapping[Cell, RunResult],
    changes: Sequence[Finding],
    problems: list[tuple[str, str]],
    warn: Warn,
) -> dict[Cell, tuple[Older, ...]]:
    """Load the older nights of every cell that are drawn beside its latest run.

    One that cannot be read is left out, with a warning and a line on the page.
    """
    chosen: dict[Cell, tuple[Older, ...]] = {}
    for cell, history in cells_of(rows).items():
        latest = next((row for row in history if cell in runs and row.started == runs[cell].started), None)
        if latest is not None:
            own = [change for change in changes if change.cell == cell]
            chosen[cell] = choose_older(latest, history, own)
    fetch_together(results, [older.row.path for some in chosen.values() for older in some if not older.unlike])
    drawn: dict[Cell, tuple[Older, ...]] = {}
    for cell, some in chosen.items():
        facts = runs[cell].dut.get("facts")
        read = [older if older.unlike else _read_older(results, older, facts, problems, warn) for older in some]
        if any(read):
            drawn[cell] = tuple(filter(None, read))
    return drawn


def _read_older(
    results: Path, older: Older, facts: object, problems: list[tuple[str, str]], warn: Warn
) -> Older | None:
    """Read an older night's figures. facts: of the DUT in the latest run."""
    path = results / older.row.path
    try:
        result = load_run(path)
        otherwise = older.otherwise and differing_facts(result.dut.get("facts"), facts) is not None
        with naming(path):
            return with_figures(replace(older, otherwise=otherwise), result)
    except StoreError as error:
        problems.append((older.row.path, str(error).removeprefix(f"{path}: ")))
        warn(f"{error}; the night of {older.night} is not drawn beside the latest of {older.row.cell}")
        return None
