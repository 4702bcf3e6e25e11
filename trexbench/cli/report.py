"""``trexbench report``: stored runs as one page, as markdown, and as tables."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import click

from ..core.errors import ConfigError
from .options import DATE, complete_duts, complete_suites, results_option
from .output import make_directory, warn, write
from .verbs import verb


@verb(
    epilog="\b\nExamples:\n  trexbench report\n"
    "  trexbench report --suite netgate-6100 --since 2026-01-01 -o morning.html\n"
    "  trexbench report --markdown - --dut netgate-vpp\n"
    "  trexbench report -o morning.html --csv tables/\n"
)
@results_option()
@click.option(
    "--suite",
    shell_complete=complete_suites,
    help="Only the runs and nights of this suite; default: all, with the table of the latest night.",
)
@click.option("--dut", "duts", multiple=True, shell_complete=complete_duts, help="Only this DUT; may be repeated.")
@click.option("--since", type=DATE, help="Only this night and later ones, as in 2026-11-21.")
@click.option("--night", type=DATE, help="The night that the table shows; default: the latest.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The page's file (report.html).")
@click.option(
    "--markdown", metavar="FILE", help="Write tables and findings as markdown to this file, - for standard output."
)
@click.option(
    "--csv",
    "tables",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write each of the page's tables as CSV into this directory.",
)
def report(
    results: Path,
    suite: str | None,
    duts: tuple[str, ...],
    since: str | None,
    night: str | None,
    output: Path | None,
    markdown: str | None,
    tables: Path | None,
) -> None:
    """One self-contained HTML page of what was measured: table, ramps, cycles, trends, facts, warnings.

    The page needs no network and no other file. With --markdown or --csv it is made only if -o is given, too.
    """
    if tables is not None and tables.exists() and not tables.is_dir():
        raise ConfigError(f"{tables} is not a directory", "name one for the tables after --csv")
    from ..review.report import collect, make_page
    from ..suite.table import published_lines

    found = collect(results, warn, suite=suite, duts=duts, since=since, night=night)
    found = replace(found, published=published_lines(found.table, results, warn))
    if markdown is not None:
        from ..report.page.markdown import to_markdown

        write(markdown, to_markdown(found))
    if tables is not None:
        from ..report.page.parts import parts_of
        from ..report.page.sheet import to_csv
        from ..report.page.sheets import sheets_of

        make_directory(tables)
        for sheet in sheets_of(found, parts_of(found)):
            write(str(tables / f"{sheet.name}.csv"), to_csv(sheet))
    if output is not None or (markdown is None and tables is None):
        path = output or Path("report.html")
        write(str(path), make_page(replace(found, below=_way(path.parent, results))))


def _way(folder: Path, results: Path) -> str:
    """Return the relative address of the results directory, as seen from a page in this folder."""
    way = os.path.relpath(results.resolve(), folder.resolve())
    return "" if way == "." else f"{quote(way)}/"
