"""``trexbench report``: stored runs as one page, as markdown, and as tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from ..core.errors import ConfigError
from .options import DATE, ONLY, complete_duts, complete_suites, formats, results_option
from .output import OutputForm, json_text, make_directory, warn, write
from .verbs import removed, verb

if TYPE_CHECKING:
    from ..report.page.report import Report

ONE_FORM = "a report is written in one form at a time"


@verb(
    epilog="\b\nExamples:\n  trexbench report\n"
    "  trexbench report --suite netgate-6100 --since 2026-01-01 -o morning.html\n"
    "  trexbench report --format md --dut netgate-vpp\n"
    "  trexbench report --format csv -o tables/\n"
    "  trexbench report --watch\n"
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
@ONLY
@formats("html", "md", "json", "csv", short=False)
@removed("--markdown", ONE_FORM, "take --format md -o FILE")
@removed("--csv", ONE_FORM, "take --format csv -o DIRECTORY")
@click.option(
    "--watch",
    "served",
    is_flag=True,
    help="Instead of a file: a page on 127.0.0.1 that renews itself while a night runs, until Ctrl-C.",
)
@click.option("--port", type=click.IntRange(0, 65535), help="With --watch: the port; default: a free one.")
def report(
    results: Path,
    suite: str | None,
    duts: tuple[str, ...],
    since: str | None,
    night: str | None,
    only: tuple[str, ...],
    form: OutputForm,
    served: bool,
    port: int | None,
) -> None:
    """One self-contained HTML page of what was measured: table, ramps, cycles, trends, facts, warnings.

    The page, report.html without -o, needs no network and no other file. Markdown has tables and findings; CSV and JSON
    the tables, as CSV a file each in the directory -o.
    """
    from ..report.page.sheets import sheets_of
    from ..report.page.templates import to_markdown
    from ..report.sheet import to_csv, to_values
    from ..review.report import collect, make_page
    from ..suite.table import published_lines

    def look(below: str | None = None, say: Callable[[str], None] = warn) -> Report:
        """below: address of the results directory, as seen from the page."""
        found = collect(results, say, suite=suite, duts=duts, since=since, night=night, only=only)
        return replace(found, published=published_lines(found.table, results, say), below=below)

    if served:
        if form.is_named or form.name != "html":
            raise ConfigError("--watch writes no file", "leave out -o and --format, or --watch")
        from .watch import Site, watch

        watch(Site(results, lambda version, say: make_page(look("", say), version), warn, suite), port or 0)
        return
    if port is not None:
        raise ConfigError("--port means nothing without --watch", "add --watch, or leave it out")
    folder = Path(form.file)
    if form.name == "csv":
        if form.file == "-" or form.file.endswith(".csv"):
            raise ConfigError("CSV of a report is a file for each table", "name a directory with -o, as in tables/")
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{folder} is not a directory", "name one for the tables")
    found = look()
    if form.name == "html":
        path = form.file if form.is_named else "report.html"
        below = None if path == "-" else _way(Path(path).parent, results)
        write(path, make_page(replace(found, below=below)))
    elif form.name == "md":
        write(form.file, to_markdown(found))
    elif form.name == "json":
        write(form.file, json_text({"title": found.title, "tables": [*map(to_values, sheets_of(found))]}))
    else:
        make_directory(folder)
        for sheet in sheets_of(found):
            write(str(folder / f"{sheet.name}.csv"), to_csv(sheet))


def _way(folder: Path, results: Path) -> str:
    """Return the relative address of the results directory, as seen from a page in this folder."""
    way = os.path.relpath(results.resolve(), folder.resolve())
    return "" if way == "." else f"{quote(way)}/"
