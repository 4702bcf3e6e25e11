"""A suite's night beside the figures that others have published of the same tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..config.catalogue import SUITES
from ..config.lookup import read_suite
from ..config.suite import Suite
from ..core.errors import BenchError, ConfigError, StoreError
from ..core.history.cell import TCP_KIND
from ..core.history.night import Night
from ..core.history.rows import RunRow
from ..core.tcp.cpu import mean_columns
from ..report.tcp.table import PublishedCell
from ..results.nights import find_nights
from ..results.store import load_rows, load_tcp


def published_table(
    name: str, results: Path, configs_dir: Path | None, date: str | None, warn: Callable[[str], None]
) -> tuple[Night, list[PublishedCell]]:
    """The suite's latest night, or that of the date, and a line for each cell. StoreError if there is no such night."""
    suite = read_suite(SUITES.find(name), configs_dir)
    found = [night for _, night in find_nights(results, warn) if night.suite == suite.name]
    nights = [night for night in found if date in (None, night.night)]
    if not nights:
        dated = f" of {date}" if date else ""
        raise StoreError(f"no night{dated} of {suite.name} in {results}", f"measure one: trexbench suite run {name}")
    if suite.method != TCP_KIND:
        raise ConfigError(f"{suite.name} sends no TCP", f"see its runs: trexbench report --suite {suite.name}")
    return nights[-1], _lines(nights[-1], suite, results, warn)


def published_lines(night: Night | None, results: Path, warn: Callable[[str], None]) -> list[PublishedCell]:
    """The cells of a night of which others have published figures; none if its suite is not known any more."""
    if night is None:
        return []
    try:
        suite = read_suite(SUITES.find(night.suite), None)
    except BenchError:
        return []
    lines = _lines(night, suite, results, warn) if suite.published else []
    return [line for line in lines if line.published is not None]


def _lines(night: Night, suite: Suite, results: Path, warn: Callable[[str], None]) -> list[PublishedCell]:
    lines, published = list[PublishedCell](), dict(suite.published)
    for cell in night.cells:
        row: RunRow | None = None
        scale, cpu, bits = 1.0, {}, None
        try:
            if cell.path is not None:
                row = next(iter(load_rows(results / cell.path, cell.path)), None)
                run = load_tcp(results / cell.path)
                scale, cpu = run.setup.scale, mean_columns([flow.shares for flow in run.flows])
                bits = run.flows[0].bits_per_cpu_second if run.flows else None
        except StoreError as error:
            warn(str(error))
        of_others = published.get(cell.known_by)
        mbps, their_cpu = (None, {}) if of_others is None else (of_others.mbps, of_others.cpu)
        lines.append(PublishedCell(cell, mbps, row, scale, their_cpu, cpu, bits))
    return lines
