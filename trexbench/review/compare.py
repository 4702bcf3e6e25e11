"""Compares two runs, or two sets of runs; refuses unlike ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ..core.errors import ConfigError, StoreError
from ..core.history.compare import SetComparison, compare_sets, differing_facts, find_unlike
from ..core.history.rows import RunRow
from ..core.result import ANALYSIS_VERSION, RunResult
from ..core.units import format_pps
from ..results.document import read_object
from ..results.store import load_document
from .find import Warn, find_document, find_rows

MOVED = 1e-3
"""A figure that the rules of today put elsewhere by this share, or less, is the same."""


@dataclass(frozen=True)
class RunComparison:
    """unlike: why a difference between the runs would not be one between their DUTs; empty where it would."""

    first: RunResult
    second: RunResult
    unlike: tuple[str, ...]


def compare(first: str, second: str, results: Path, anyway: bool, warn: Warn) -> RunComparison | SetComparison:
    """Two documents of packets direction by direction, of TCP and any other names (see find.py) cell by cell.

    ConfigError for unlike runs, unless ``anyway``.
    """
    documents = find_document(first, results), find_document(second, results)
    runs = [load_document(one) for one in documents if one is not None] if None not in documents else []
    if len(runs) == 2 and isinstance(runs[0], RunResult) and isinstance(runs[1], RunResult):
        for path, run in zip(documents, runs, strict=True):
            if path is not None and isinstance(run, RunResult) and (moved := _moved(path, run)):
                warn(moved)
        compared = RunComparison(runs[0], runs[1], tuple(find_unlike(runs[0], runs[1])))
        if compared.unlike and not anyway:
            _refuse(f"{documents[0]} and {documents[1]}", ["; ".join(compared.unlike)])
        return compared
    rows = find_rows(first, results, warn), find_rows(second, results, warn)
    sets = compare_sets(*rows, lambda one, other: _differing(results, one, other))
    if not sets.pairs:
        raise ConfigError(
            f"{first} and {second} have no cell in common", "`trexbench results list` shows what there is"
        )
    unlike = [f"{pair.cell}: {'; '.join(pair.unlike)}" for pair in sets.pairs if pair.unlike]
    if unlike and not anyway:
        _refuse(f"{first} and {second}", unlike)
    return sets


def _moved(path: Path, run: RunResult) -> str:
    """That the figure in a document, which an earlier version found, is another by the rules of today; or nothing."""
    document = read_object(path)
    before, now = document.get("total_pps"), run.analysis.total_pps
    if not isinstance(before, (int, float)) or abs(before - now) <= MOVED * max(before, now):
        return ""
    derived = document.get("derived")
    version = derived.get("analysis_version") if isinstance(derived, dict) else None
    analysis = run.analysis
    why = [one.text for one in analysis.warnings] or [reason for one in analysis.directions for reason in one.reasons]
    rules = f"version {version if isinstance(version, int) else 'unknown'} of the analysis"
    return f"{path}: {format_pps(before)} by {rules}, {format_pps(now)} by {ANALYSIS_VERSION}: {'; '.join(why)}"


def _refuse(names: str, unlike: list[str]) -> NoReturn:
    more = f", and {len(unlike) - 3} more cells" if len(unlike) > 3 else ""
    raise ConfigError(f"{names} are not comparable: {' | '.join(unlike[:3])}{more}", "compare them with --anyway")


def _differing(results: Path, one: RunRow, other: RunRow) -> str | None:
    """Return the runs' differing_facts; empty where a document cannot be read."""
    facts = []
    for row in (one, other):
        place = Path(row.path) if Path(row.path).is_file() else results / row.path
        try:
            dut = read_object(place).get("dut")
        except StoreError:
            return ""
        facts.append(dut.get("facts") if isinstance(dut, dict) else None)
    return differing_facts(*facts)
