"""``trexbench report``: stored runs as one page, as markdown, or as tables."""

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
    metavar="NAME",
    help="Only runs and nights of this suite. Default: all, with the table of the latest night.",
)
@click.option(
    "--dut", "duts", metavar="NAME", multiple=True, shell_complete=complete_duts, help="Only this DUT; may be repeated."
)
@click.option("--since", type=DATE, help="Only this night and later ones, as 2026-11-21.")
@click.option("--night", type=DATE, help="Night to show in the table. Default: the latest.")
@ONLY
@formats("html", "md", "json", "csv")
@removed("--markdown", "a report is written in one form at a time", "use --format md -o FILE")
@click.option(
    "--watch",
    "served",
    is_flag=True,
    help="Instead of writing a file, serve a page on 127.0.0.1 that updates itself while a night runs, until Ctrl-C.",
)
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), help="With --watch: port to serve it on. Default: a free one."
)
def report(
    results: Path, suite: str | None, duts: tuple[str, ...], since: str | None, night: str | None,
    only: tuple[str, ...], form: OutputForm, served: bool, port: int | None,
) -> None:  # fmt: skip
    """Write one self-contained HTML page of the results: table, ramps, cycles, trends, facts, warnings.

    The page (report.html without -o) needs no network and no other file. Markdown has tables and findings, CSV and JSON
    only the tables; CSV is one file per table in the directory -o.
    """
    from ..report.page.sheets import sheets_of
    from ..report.page.templates import to_markdown
    from ..report.sheet import to_csv, to_values
    from ..review.report import collect, make_page
    from ..suite.table import published_lines

    def look(below: str | None = None, say: Callable[[str], None] = warn) -> Report:
        """Collect the report. below: address of the results directory, as seen from the page."""
        collected = collect(results, say, suite=suite, duts=duts, since=since, night=night, only=only)
        return replace(collected, published=published_lines(collected.table, results, say), below=below)

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
            raise ConfigError("a report as CSV has a file for each table", "name a directory with -o, as in tables/")
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{folder} is not a directory", "name one for the tables")
    collected = look()
    if form.name == "html":
        path = form.file if form.is_named else "report.html"
        way = os.path.relpath(results.resolve(), Path(path).parent.resolve())
        below = None if path == "-" else "" if way == "." else f"{quote(way)}/"
        write(path, make_page(replace(collected, below=below)))
    elif form.name == "md":
        write(form.file, to_markdown(collected))
    elif form.name == "json":
        write(form.file, json_text({"title": collected.title, "tables": [*map(to_values, sheets_of(collected))]}))
    else:
        make_directory(folder)
        for sheet in sheets_of(collected):
            write(str(folder / f"{sheet.name}.csv"), to_csv(sheet))
