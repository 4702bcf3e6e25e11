"""What was read back from the DUTs, and what the runs say against themselves, as rows of text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.history import Cell
from ..core.result import RunResult
from .clean import clean
from .grid import Column, column_of
from .summary import summarise, text_of

DEEPEST = 3
LONGEST = 400


@dataclass(frozen=True)
class DutFacts:
    """What the latest run of a DUT and number of queues read back from it. attested: False where nothing could be."""

    column: Column
    description: str
    attested: bool
    sha256: str
    started: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RunNotes:
    """One run's doubts and findings in words."""

    cell: Cell
    headline: str
    started: str
    doubts: tuple[str, ...]
    spread: tuple[str, ...]
    losses: str | None


def find_facts(runs: Mapping[Cell, RunResult]) -> tuple[DutFacts, ...]:
    latest: dict[Column, RunResult] = {}
    for cell, run in runs.items():
        known = latest.get(column_of(cell))
        if known is None or known.started <= run.started:
            latest[column_of(cell)] = run
    return tuple(_facts_of(column, run) for column, run in latest.items())


def find_notes(runs: Mapping[Cell, RunResult]) -> tuple[RunNotes, ...]:
    return tuple(_notes_of(cell, run) for cell, run in runs.items())


def _facts_of(column: Column, run: RunResult) -> DutFacts:
    facts = run.dut.get("facts")
    read = tuple(_flattened(facts)) if isinstance(facts, Mapping) else ()
    return DutFacts(
        column=column,
        description=text_of(run.dut, "description", ""),
        attested=bool(run.dut.get("facts_sha256")),
        sha256=text_of(run.dut, "facts_sha256", ""),
        started=run.started,
        facts=read,
    )


def _flattened(values: Mapping[str, Any], before: str = "", depth: int = 1) -> Iterator[tuple[str, str]]:
    """Nested facts as ``interfaces / ix0 / mtu``; what lies deeper is JSON."""
    for key, value in values.items():
        name = f"{before}{clean(key, 100)}"
        if isinstance(value, Mapping) and value and depth < DEEPEST:
            yield from _flattened(value, f"{name} / ", depth + 1)
        else:
            text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
            yield name, clean(text, LONGEST)


def _notes_of(cell: Cell, run: RunResult) -> RunNotes:
    summary = summarise(run)
    spread = list(run.spread.sentences) if run.spread is not None else []
    if run.spread_check is not None:
        spread.append(run.spread_check.sentence)
    lost = run.losses.sentence if run.losses is not None and run.losses.lost else None
    return RunNotes(cell, summary.headline, run.started, summary.doubts, tuple(spread), lost)
