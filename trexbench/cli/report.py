"""``trexbench report``: stored runs as one page, as markdown, and as pictures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.errors import BenchError, ConfigError, StoreError
from ..report.clean import clean
from .params import complete_duts, complete_suites

if TYPE_CHECKING:
    from ..core.history import Cell, RunRow
    from ..core.night import Night
    from ..core.regression import Finding
    from ..core.result import RunResult
    from ..report.older import Older
    from ..report.report import Report
    from ..report.trends import Change

Say = Callable[[str], None]
MOST_RUNS = 400
"""Cells whose latest document is read for its curves; a page with more has tables of them all the same."""


@click.command(
    epilog="\b\nExamples:\n  trexbench report\n"
    "  trexbench report --suite netgate-6100 --since 2026-01-01 -o morning.html\n"
    "  trexbench report --markdown - --dut netgate-vpp\n"
)
@click.option("--results", type=click.Path(path_type=Path), default=Path("results"), show_default=True)
@click.option(
    "--suite",
    shell_complete=complete_suites,
    help="Only the runs and nights of this suite; default: all, the table is the latest night's.",
)
@click.option(
    "--dut", "duts", multiple=True, shell_complete=complete_duts, help="Only these DUTs (repeat for several)."
)
@click.option("--since", metavar="DATE", help="Only this night and later ones, as in 2026-11-21.")
@click.option("--night", metavar="DATE", help="The night of the table; default: the latest.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The page (report.html).")
@click.option("--markdown", metavar="FILE", help="Tables and findings as markdown to this file, - for standard output.")
@click.option(
    "--pictures", type=click.Path(path_type=Path, file_okay=False), help="Curves and trends as PNG and SVG, in here."
)
def report(
    results: Path,
    suite: str | None,
    duts: tuple[str, ...],
    since: str | None,
    night: str | None,
    output: Path | None,
    markdown: str | None,
    pictures: Path | None,
) -> None:
    """One self-contained HTML page of what was measured: table, ramps, cycles, trends, facts, warnings.

    It needs no network and no other file. --markdown and --pictures are made in its place unless -o is given, too.
    """
    from ..core.known import is_date

    for date in (since, night):
        if date is not None and not is_date(date):
            raise ConfigError(f"{date!r} is no date", "write it as 2026-11-21")
    warn = _warner()
    made = collect(results, warn, suite=suite, duts=duts, since=since, night=night)
    if markdown is not None:
        from ..report.markdown import to_markdown

        _write(markdown, to_markdown(made))
    if pictures is not None:
        from ..report.picture_report import draw_pictures

        for name, data in draw_pictures(made):
            _write(str(pictures / name), data)
    if output is not None or (markdown is None and pictures is None):
        _write(str(output or Path("report.html")), make_page(made))


def make_page(made: Report) -> str:
    """The HTML of a report."""
    from ..report.html import render

    return render(made, load_library())


def collect(
    results: Path,
    warn: Say,
    suite: str | None = None,
    duts: Sequence[str] = (),
    since: str | None = None,
    night: str | None = None,
) -> Report:
    """All that a report is about: rows from the index, nights, and the latest document of every cell."""
    from ..core.series import night_of
    from ..index import open_index
    from ..nights import load_nights
    from ..report.report import Report

    if not results.is_dir():
        raise StoreError(f"{results}: no such directory", "name the results with --results")
    with open_index(results, warn) as index:
        rows, problems = index.rows(suite=suite), index.problems()
    nights = [_only(one, duts) for one in load_nights(results, warn) if suite in (None, one.suite)]
    rows = [row for row in rows if not duts or row.cell.dut in duts]
    if (suite or duts) and not rows and not any(one.cells or one.error for one in nights):
        raise StoreError(
            f"nothing in {results} is of {' or '.join([*([suite] if suite else []), *duts])}",
            "`trexbench results list` shows what there is",
        )
    changes, judged, remarks = find_changes(results, rows, nights)  # in all of the history, whatever is shown of it
    nights = [one for one in nights if (one.cells or one.error) and one.night >= (since or "")]
    remarks = (*remarks, *_not_run(nights))
    rows = [row for row in rows if night_of(row) >= (since or "")]
    table = _table_of(nights, night)
    runs = load_runs(results, rows, table, problems)
    older = load_older(results, rows, runs, changes, problems, warn)
    return Report(
        rows=rows,
        nights=nights,
        table=table,
        runs=runs,
        older=older,
        changes=changes,
        problems=problems,
        title=f"trexbench: {suite or (table.suite if table else 'stored runs')}",
        made=f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
        judged=judged,
        remarks=remarks,
    )


def find_changes(
    results: Path, rows: Sequence[RunRow], nights: Sequence[Night]
) -> tuple[list[Change], str, tuple[str, ...]]:
    """What the search for regressions finds in these histories, what it says in one line, and what else."""
    from ..core.regression import Kind, judge_rows
    from ..judge.jumps import levels
    from ..judge.known_file import load_known
    from ..report.regress import finding_line, summary_line

    judgement = judge_rows(rows, levels, load_known(results), nights)
    found = [one for one in judgement.findings if one.kind is not Kind.INSUFFICIENT and one.since is not None]
    return [_change_of(one, finding_line(one), rows) for one in found], summary_line(judgement), judgement.remarks


def _change_of(finding: Finding, text: str, rows: Sequence[RunRow]) -> Change:
    """In the terms of the report: it stands at the first run of its first night."""
    from ..report.trends import Change

    since = finding.since or ""
    at = next((r.started for r in rows if r.cell == finding.cell and (r.night or r.started) >= since), since)
    bad = (finding.after < finding.before) == (finding.metric.better == "higher")
    return Change(
        cell=finding.cell,
        metric=finding.metric.name,
        at=at,
        text=text,
        bad=bad,
        before=finding.before,
        after=finding.after,
        note=finding.note,
        reasons=finding.explanation,
    )


def load_library() -> str:
    """The plotting library's JavaScript, out of its installed package."""
    package = util.find_spec("plotly")  # not imported: that takes longer than the whole page
    for place in package.submodule_search_locations or () if package else ():
        path = Path(place) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise BenchError("plotly's JavaScript is not installed", "install it with: pip install 'plotly>=6'")


def _table_of(nights: Sequence[Night], date: str | None) -> Night | None:
    chosen = [one for one in nights if one.cells and date in (None, one.night)]
    if date is not None and not chosen:
        known = ", ".join(sorted({one.night for one in nights})[-3:]) or "none"
        raise StoreError(f"no night of {date}", f"the latest are: {known}")
    return max(chosen, key=lambda one: (one.night, one.started), default=None)


def _not_run(nights: Sequence[Night]) -> list[str]:
    """The last night, if there was nothing that it could have measured."""
    last = max(nights, key=lambda one: (one.night, one.started), default=None)
    if last is None or last.cells:
        return []
    return [f"the night of {last.night} was not run ({last.suite}): {last.error}"]


def _only(night: Night, duts: Sequence[str]) -> Night:
    return replace(night, cells=tuple(cell for cell in night.cells if not duts or cell.dut in duts))


def load_runs(
    results: Path, rows: Sequence[RunRow], table: Night | None, problems: list[tuple[str, str]]
) -> dict[Cell, RunResult]:
    """The latest complete run of every cell, of the table's suite where there is one."""
    from ..store import load_run

    latest = {row.cell: row for row in rows if row.complete and (table is None or row.suite == table.suite)}
    found: dict[Cell, RunResult] = {}
    for cell, row in list(latest.items())[:MOST_RUNS]:
        try:
            found[cell] = load_run(results / row.path)
        except StoreError as error:
            problems.append((row.path, str(error)))
    return found


def load_older(
    results: Path,
    rows: Sequence[RunRow],
    runs: Mapping[Cell, RunResult],
    changes: Sequence[Change],
    problems: list[tuple[str, str]],
    warn: Say,
) -> dict[Cell, tuple[Older, ...]]:
    """Of every cell's ramps those of older nights that explain something; only their documents are read.

    One that cannot be read is left out, which is told twice: now, and on the page.
    """
    from ..core.history import cells_of
    from ..report.older import choose_older

    found: dict[Cell, tuple[Older, ...]] = {}
    for cell, history in cells_of(rows).items():
        latest = next((row for row in history if cell in runs and row.started == runs[cell].started), None)
        if latest is None or cell.kind != "ramp":
            continue
        chosen = choose_older(latest, history, [change for change in changes if change.cell == cell])
        read = (one if one.unlike else _with_curves(results, one, problems, warn) for one in chosen)
        found[cell] = tuple(one for one in read if one is not None)
    return {cell: older for cell, older in found.items() if older}


def _with_curves(results: Path, one: Older, problems: list[tuple[str, str]], warn: Say) -> Older | None:
    from ..report.older import older_curves
    from ..store import read_object

    path = results / one.row.path
    try:
        document = read_object(path)
        try:
            return replace(one, curves=older_curves(one.row, document))
        except StoreError as error:
            raise StoreError(f"{path}: {error}") from error
    except StoreError as error:
        problems.append((one.row.path, str(error)))
        warn(f"{error}; the night of {one.night} is not laid over the latest of {one.row.cell}")
        return None


def _warner() -> Say:
    def warn(text: str) -> None:
        click.echo(f"trexbench: {clean(text)}", err=True)

    return warn


def _write(name: str, data: str | bytes) -> None:
    """To the file, at once, and its name to standard output; ``-`` is standard output itself."""
    raw = data.encode() if isinstance(data, str) else data
    if name == "-":
        click.echo(raw, nl=False)
        return
    path = Path(name)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(raw)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise BenchError(f"{path}: {error.strerror}", "name a place that can be written") from error
    click.echo(path)
