"""A suite's latest night beside what others have published of the same tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from ..config.catalogue import SUITES
from ..config.lookup import read_suite
from ..config.suite import Published, Suite
from ..core.errors import BenchError, StoreError
from ..core.history.night import CellRecord, Night
from ..core.history.rows import RunRow
from ..core.tcp.cpu import mean_columns
from ..report.tcp.table import ProcessShares, PublishedCell
from ..results.nights import find_nights
from ..results.store import load_rows, load_tcp


def published_table(
    name: str, results: Path, configs_dir: Path | None, date: str | None, warn: Callable[[str], None]
) -> tuple[Night, list[PublishedCell]]:
    """The night and a line for each of its cells. date: of the night; None: the latest. StoreError without one."""
    suite = read_suite(SUITES.find(name), configs_dir)
    nights = [one for _, one in find_nights(results, warn) if one.suite == suite.name and date in (None, one.night)]
    if not nights:
        dated = f" of {date}" if date else ""
        raise StoreError(f"no night{dated} of {suite.name} in {results}", f"measure one: trexbench suite run {name}")
    return nights[-1], _lines(nights[-1], suite, results, warn)


def published_lines(night: Night | None, results: Path, warn: Callable[[str], None]) -> list[PublishedCell]:
    """The cells of a night of which others have published figures; none where its suite is not known any more."""
    try:
        suite = read_suite(SUITES.find(night.suite), None) if night is not None else None
    except BenchError:
        suite = None
    if night is None or suite is None or not suite.published:
        return []
    return [one for one in _lines(night, suite, results, warn) if one.published is not None]


def _lines(night: Night, suite: Suite, results: Path, warn: Callable[[str], None]) -> list[PublishedCell]:
    published = dict(suite.published)
    rows = [next(_rows(results, cell.path, warn), None) for cell in night.cells]
    return [
        _line(results, cell, published.get(cell.known_by), row, warn)
        for cell, row in zip(night.cells, rows, strict=True)
    ]


def _line(
    results: Path, cell: CellRecord, published: Published | None, row: RunRow | None, warn: Callable[[str], None]
) -> PublishedCell:
    line = (
        PublishedCell(cell, None, row)
        if published is None
        else PublishedCell(cell, published.mbps, row, 1.0, published.cpu)
    )
    if row is None or cell.path is None:
        return line
    try:
        run = load_tcp(results / cell.path)
    except StoreError as error:
        warn(str(error))
        return line
    bits = run.flows[0].bits_per_cpu_second if run.flows else None
    processes = ProcessShares(mean_columns([one.shares for one in run.flows]), bits)
    return replace(line, scale=run.setup.scale, processes=processes)


def _rows(results: Path, path: str | None, warn: Callable[[str], None]) -> Iterator[RunRow]:
    try:
        yield from load_rows(results / path, path) if path is not None else ()
    except StoreError as error:
        warn(str(error))
