"""A night of a suite: the cells to be measured and the state of each, from which it can be resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import msgspec

from ..errors import StoreError
from ..names import is_name, shown
from ..typed import Amount, read_stored
from ..units import seconds_of
from ..upgrade import upgrade_night
from .cell import Cell
from .known import is_date

SCHEMA, VERSION = "trexbench/night", 1


class CellState(str, Enum):
    """The state of a cell. RUNNING: or its runner was killed."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Attempt:
    """One attempt at a cell. path: its run document below the results directory, also of a run that ended early.

    error: why it failed; code: the exit code of that error. took_s: real seconds of one that was measured.
    """

    started: str
    path: str | None = None
    error: str | None = None
    code: int = 0
    took_s: Amount | None = None


@dataclass(frozen=True)
class CellRecord:
    """One cell of the night, its state and its attempts."""

    cell: Cell
    """The cell as its suite names it, never simulated."""
    state: CellState = CellState.WAITING
    attempts: tuple[Attempt, ...] = ()
    expected_s: Amount | None = None
    """Real seconds that a measurement of it should take; None in nights of older versions."""

    def __str__(self) -> str:
        return str(self.cell)

    @property
    def dut(self) -> str:
        return self.cell.dut

    @property
    def mode(self) -> str:
        return str(self.cell.mode)

    @property
    def known_by(self) -> str:
        return self.cell.known_by

    @property
    def path(self) -> str | None:
        """The run document of the last attempt, which counts."""
        return self.attempts[-1].path if self.attempts else None


@dataclass(frozen=True)
class Night:
    """One night of one suite. night: its date; started, finished: UTC. error: why it ended early.

    judged: the judgement of ``nightly`` in a line, as it was then.
    """

    suite: str
    night: str
    started: str
    simulated: bool
    cells: tuple[CellRecord, ...]
    finished: str | None = None
    error: str | None = None
    judged: str | None = None

    @property
    def failed(self) -> tuple[CellRecord, ...]:
        return tuple(cell for cell in self.cells if cell.state is CellState.FAILED)

    @property
    def failures(self) -> Mapping[str, Sequence[CellRecord]]:
        """The cells that failed, by their reasons, in the order of the first of each."""
        found: dict[str, list[CellRecord]] = {}
        for cell in self.failed:
            found.setdefault(cell.attempts[-1].error or "" if cell.attempts else "", []).append(cell)
        return found

    @property
    def measured(self) -> str:
        """``3 of 4 cells measured``."""
        return f"{sum(cell.state is CellState.DONE for cell in self.cells)} of {len(self.cells)} cells measured"

    @property
    def left(self) -> tuple[int, ...]:
        """Indexes of the cells that are still to be measured."""
        return tuple(at for at, cell in enumerate(self.cells) if cell.state in (CellState.WAITING, CellState.RUNNING))

    def left_s(self, now_s: float) -> float | None:
        """Real seconds until the last cell is done, at the pace of those that are; None: it is not known.

        now_s: since 1970. Pauses, and what opening a session takes, are not counted. Of as many testers as now, each
        measures one cell at a time; a DUT has one of them.
        """
        took = [(one.attempts[-1].took_s, one.expected_s) for one in self.cells if one.attempts]
        done = [(took_s, asked_s) for took_s, asked_s in took if took_s is not None and asked_s]
        pace = sum(took_s for took_s, _ in done) / sum(asked_s for _, asked_s in done) if done else 1.0
        left_s = dict[str, float]()
        for cell in (self.cells[at] for at in self.left):
            if cell.expected_s is None:
                return None
            is_begun = cell.state is CellState.RUNNING and cell.attempts
            begun_s = seconds_of(cell.attempts[-1].started) if is_begun else None
            rest_s = max(0.0, pace * cell.expected_s - (now_s - begun_s if begun_s is not None else 0.0))
            left_s[cell.dut] = left_s.get(cell.dut, 0.0) + rest_s
        testers = max(1, sum(cell.state is CellState.RUNNING for cell in self.cells))
        return max(sum(left_s.values()) / testers, *left_s.values(), 0.0)

    @property
    def of(self) -> tuple[Cell, ...]:
        """The cells as those of its runs."""
        cells = (record.cell for record in self.cells)
        return tuple(c if c.simulated == self.simulated else replace(c, simulated=self.simulated) for c in cells)

    def with_cell(self, at: int, cell: CellRecord) -> Night:
        return replace(self, cells=(*self.cells[:at], cell, *self.cells[at + 1 :]))


def night_to_dict(night: Night) -> dict[str, Any]:
    """JSON values; each cell's stand beside its state."""
    parts = [record.cell.to_dict() for record in night.cells]  # for people
    named = [{name: one[name] for name in ("dut", "mode", "bidir", "rx_queues", "kind", "variant")} for one in parts]
    cells = [{**words, **msgspec.to_builtins(record)} for words, record in zip(named, night.cells, strict=True)]
    return {"schema": SCHEMA, "version": VERSION, **msgspec.to_builtins(night), "cells": cells}


def night_from_dict(values: Mapping[str, Any]) -> Night:
    """The night of these JSON values; StoreError for other ones, for a newer version and for damage."""
    night = read_stored(upgrade_night(values), "night of a suite", SCHEMA, VERSION, Night)
    for problem in _problems(night):
        raise StoreError(problem, "the file is damaged")
    return night


def _problems(night: Night) -> Iterator[str]:
    """Yield what is wrong with its names, its date and its paths, which pages show and readers follow."""
    for name in (
        night.suite,
        *(name for record in night.cells for name in (record.dut, record.mode, record.cell.variant or "none")),
    ):
        if not is_name(name):
            yield f"{shown(name)} is not a valid name"
    if not is_date(night.night):
        yield f"{night.night[:40]!r} is not a date"
    for path in (attempt.path for cell in night.cells for attempt in cell.attempts):
        if path is None:
            continue
        if ".." in path.split("/") or path.startswith("/") or not path.strip("./") or not path.isprintable():
            yield f"{path[:80]!r} is not a path below the results directory"
