"""Commands to suggest to the user: show a run, compare two, measure a cell again, acknowledge a change."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from glob import escape

from ..core.history.causes import FindingGroup
from ..core.history.cell import Cell
from ..core.history.rows import RunRow

FLEET = "fleet.yaml"
"""The usual name of the file that describes a fleet, which results do not record."""
REASON = "WHY"
"""Placeholder of the reason for a change, which only the user knows."""


def show(row: RunRow, results: str) -> str:
    """Show a run. results: the directory of the results as typed, here and below."""
    return _line("results", "show", f"{results}/{row.path}")


def compare(before: RunRow, after: RunRow, results: str) -> str:
    return _line("results", "compare", f"{results}/{before.path}", f"{results}/{after.path}")


def acknowledge(group: FindingGroup, results: str) -> Iterator[str]:
    """Yield the commands that acknowledge exactly the group's changes; the user fills in the reason."""
    metrics: dict[tuple[Cell, ...], list[str]] = {}
    for metric, findings in group.by_metric().items():
        metrics.setdefault(tuple(dict.fromkeys(finding.cell for finding in findings)), []).append(metric)
    for cells, names in metrics.items():
        which = [word for cell in cells for word in ("--acknowledge", escape(str(cell)))]
        which += [word for name in names for word in ("--metric", name)]
        yield _line("regress", *_results(results), *which, "--note", REASON)


def doctor(cell: Cell) -> str:
    return _line("doctor", "--dut", cell.dut)


def run_again(suite: str, results: str, cell: Cell | None = None, by_fleet: bool = False) -> str:
    """Run the suite again, or only this cell of it. by_fleet: a fleet's testers measured it."""
    only = ["--only", escape(str(cell.unmarked)), *["--sim"] * cell.simulated] if cell is not None else []
    return _line("suite", "run", suite, *only, *["--fleet", FLEET] * by_fleet, *_results(results))


def _results(results: str) -> Sequence[str]:
    return () if results == "results" else ("--results", results)


def _line(*words: str) -> str:
    return shlex.join(("trexbench", *words))
