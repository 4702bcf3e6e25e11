"""Two runs, or two sets of runs, side by side; unlike ones are refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..core.errors import ConfigError, StoreError
from ..core.history.compare import SetComparison, compare_sets, differing_facts, find_unlike
from ..core.history.rows import RunRow
from ..core.result import RunResult
from ..results.document import read_object
from ..results.store import load_run
from .find import Warn, find_document, find_rows


@dataclass(frozen=True)
class RunComparison:
    """unlike: why a difference between the runs would not be one between their DUTs; empty where it would."""

    first: RunResult
    second: RunResult
    unlike: tuple[str, ...]


def compare(first: str, second: str, results: Path, anyway: bool, warn: Warn) -> RunComparison | SetComparison:
    """What the names mean (see find.py): two documents direction by direction, anything else cell by cell.

    ConfigError for unlike runs, unless ``anyway``.
    """
    one, other = find_document(first, results), find_document(second, results)
    if one is not None and other is not None:
        runs = load_run(one), load_run(other)
        compared = RunComparison(*runs, tuple(find_unlike(*runs)))
        _refuse(f"{one} and {other}", [] if anyway else ["; ".join(compared.unlike)] * bool(compared.unlike))
        return compared
    sets = compare_sets(
        find_rows(first, results, warn),
        find_rows(second, results, warn),
        lambda one, other: _differing(results, one, other),
    )
    if not sets.pairs:
        raise ConfigError(
            f"{first} and {second} have no cell in common", "`trexbench results list` shows what there is"
        )
    unlike = [f"{pair.cell}: {'; '.join(pair.unlike)}" for pair in sets.pairs if pair.unlike]
    _refuse(f"{first} and {second}", [] if anyway else unlike)
    return sets


def _refuse(names: str, unlike: list[str]) -> None:
    if unlike:
        more = f", and {len(unlike) - 3} more cells" if len(unlike) > 3 else ""
        raise ConfigError(f"{names} are not comparable: {' | '.join(unlike[:3])}{more}", "or say --anyway")


def _differing(results: Path, one: RunRow, other: RunRow) -> str:
    """In which facts two runs differ, in words; nothing where that is not known."""
    facts = []
    for row in (one, other):
        place = Path(row.path) if Path(row.path).is_file() else results / row.path
        try:
            dut = read_object(place).get("dut")
        except StoreError:
            return ""
        facts.append(dut.get("facts") if isinstance(dut, dict) else None)
    return differing_facts(*facts)
