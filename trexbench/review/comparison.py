"""Compares two runs, or two sets of runs; refuses runs that are not comparable."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn

from ..core.errors import ConfigError, StoreError
from ..core.history.compare import SetComparison, compare_sets, differing_facts, find_unlike
from ..core.history.rows import RunRow
from ..core.result import ANALYSIS_VERSION, RunResult
from ..core.units import format_pps
from ..report.words import format_count
from ..results.document import read_object
from ..results.store import load_document
from .find import Warn, find_document, find_rows

MOVED = 1e-3
"""Largest share by which two versions' figures of a document may differ and count as the same."""


@dataclass(frozen=True)
class RunComparison:
    """Two runs of packets."""

    first: RunResult
    second: RunResult
    unlike: tuple[str, ...]
    """Reasons other than the DUTs that could explain a difference."""


def compare(first: str, second: str, results: Path, anyway: bool, warn: Warn) -> RunComparison | SetComparison:
    """Compare two documents of packets direction by direction, of TCP and any other names (see find.py) cell by cell.

    ConfigError for runs that are not comparable, unless ``anyway``.
    """
    documents = find_document(first, results), find_document(second, results)
    runs = [(path, load_document(path)) for path in documents if path is not None] if None not in documents else []
    packets = [(path, run) for path, run in runs if isinstance(run, RunResult)]
    if len(packets) == 2:
        for path, run in packets:
            if words := _explain_change(path, run):
                warn(words)
        ours, theirs = packets[0][1], packets[1][1]
        compared = RunComparison(ours, theirs, tuple(find_unlike(ours, theirs)))
        if compared.unlike and not anyway:
            _refuse(f"{documents[0]} and {documents[1]}", ["; ".join(compared.unlike)])
        return compared
    once = cache(warn)  # both may read the same documents
    rows = find_rows(first, results, once), find_rows(second, results, once)
    sets = compare_sets(*rows, lambda row, other: _differing(results, row, other))
    if not sets.pairs:
        remedy = "`trexbench results list` shows what there is"
        raise ConfigError(f"{first} and {second} have no cell in common", remedy)
    unlike = [f"{pair.cell}: {'; '.join(pair.unlike)}" for pair in sets.pairs if pair.unlike]
    if unlike and not anyway:
        _refuse(f"{first} and {second}", unlike)
    return sets


def _explain_change(path: Path, run: RunResult) -> str | None:
    """Explain why today's rules give another figure than the stored one; None if they agree."""
    document, analysis = read_object(path), run.analysis
    before, now = document.get("total_pps"), analysis.total_pps
    if not isinstance(before, (int, float)) or abs(before - now) <= MOVED * max(before, now):
        return None
    derived = document.get("derived")
    version = derived.get("analysis_version") if isinstance(derived, dict) else None
    why = [note.text for note in analysis.warnings] or [why for part in analysis.directions for why in part.reasons]
    rules = f"version {version if isinstance(version, int) else 'unknown'} of the analysis"
    return f"{path}: {format_pps(before)} by {rules}, {format_pps(now)} by {ANALYSIS_VERSION}: {'; '.join(why)}"


def _refuse(names: str, unlike: list[str]) -> NoReturn:
    more = f", and {format_count(len(unlike) - 3, 'more cell')}" if len(unlike) > 3 else ""
    raise ConfigError(f"{names} are not comparable: {' | '.join(unlike[:3])}{more}", "compare them with --anyway")


def _differing(results: Path, first: RunRow, second: RunRow) -> str | None:
    """Name the facts in which two runs differ, as differing_facts; empty if a document cannot be read."""
    facts = []
    for row in (first, second):
        place = Path(row.path) if Path(row.path).is_file() else results / row.path
        try:
            dut = read_object(place).get("dut")
        except StoreError:
            return ""
        facts.append(dut.get("facts") if isinstance(dut, dict) else None)
    return differing_facts(*facts)
