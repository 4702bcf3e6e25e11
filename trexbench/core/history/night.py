"""A night of a suite: the cells to measure and the state of each, from which it can be resumed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain
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
    """The state of a cell; one is also RUNNING after its runner was killed."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Attempt:
    """One attempt at a cell."""

    started: str
    path: str | None = None
    """The run's document, relative to the results directory, even if the run ended early."""
    error: str | None = None
    """Reason of a failure; code: that error's exit code."""
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
    """Real seconds that a measurement should take; None in nights of older versions."""

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
        """The document of the last attempt, which counts."""
        return self.attempts[-1].path if self.attempts else None


@dataclass(frozen=True)
class Night:
    """One night of one suite."""

    suite: str
    night: str
    started: str
    """UTC, as is finished."""
    simulated: bool
    cells: tuple[CellRecord, ...]
    finished: str | None = None
    error: str | None = None
    judged: str | None = None
    """The judgement that ``nightly`` printed then, in a line."""

    @property
    def failed(self) -> tuple[CellRecord, ...]:
        return tuple(cell for cell in self.cells if cell.state is CellState.FAILED)

    @property
    def failures(self) -> Mapping[str, Sequence[CellRecord]]:
        """Failed cells by their reason, in the order of the first of each."""
        by_reason: dict[str, list[CellRecord]] = {}
        for cell in self.failed:
            by_reason.setdefault(cell.attempts[-1].error or "" if cell.attempts else "", []).append(cell)
        return by_reason

    @property
    def measured(self) -> str:
        """``3 of 4 cells measured``."""
        return f"{sum(cell.state is CellState.DONE for cell in self.cells)} of {len(self.cells)} cells measured"

    @property
    def left(self) -> tuple[int, ...]:
        """Indexes of the cells still to be measured."""
        return tuple(at for at, cell in enumerate(self.cells) if cell.state in (CellState.WAITING, CellState.RUNNING))

    def left_s(self, now_s: float) -> float | None:
        """Estimate the real seconds until the last cell is done, at the pace of those that are; None: not known.

        now_s: since 1970. Pauses, and the time to open sessions, are not counted. As many testers as now measure one
        cell at a time each; a DUT has one of them.
        """
        took = [(cell.attempts[-1].took_s, cell.expected_s) for cell in self.cells if cell.attempts]
        done = [(took_s, expected_s) for took_s, expected_s in took if took_s is not None and expected_s]
        pace = sum(took_s for took_s, _ in done) / sum(expected_s for _, expected_s in done) if done else 1.0
        left_s = dict[str, float]()
        for cell in (self.cells[at] for at in self.left):
            if cell.expected_s is None:
                return None
            is_begun = cell.state is CellState.RUNNING and cell.attempts
            begun_s = seconds_of(cell.attempts[-1].started) if is_begun else None
            rest_s = max(0.0, pace * cell.expected_s - max(0.0, now_s - begun_s if begun_s is not None else 0.0))
            left_s[cell.dut] = left_s.get(cell.dut, 0.0) + rest_s
        testers = max(1, sum(cell.state is CellState.RUNNING for cell in self.cells))
        return max(sum(left_s.values()) / testers, *left_s.values(), 0.0)

    @property
    def of(self) -> tuple[Cell, ...]:
        """The cells as their runs name them: simulated if the night is."""
        cells = (record.cell for record in self.cells)
        return tuple(c if c.simulated == self.simulated else replace(c, simulated=self.simulated) for c in cells)

    def with_cell(self, at: int, cell: CellRecord) -> Night:
        return replace(self, cells=(*self.cells[:at], cell, *self.cells[at + 1 :]))


def night_to_dict(night: Night) -> dict[str, Any]:
    """JSON values; each cell's also spelled out, for people, beside its state."""
    keys = "dut", "mode", "bidir", "rx_queues", "kind", "variant"
    spelled = [record.cell.to_dict() for record in night.cells]
    cells = [
        {**{key: words[key] for key in keys}, **msgspec.to_builtins(record)}
        for words, record in zip(spelled, night.cells, strict=True)
    ]
    return {"schema": SCHEMA, "version": VERSION, **msgspec.to_builtins(night), "cells": cells}


def night_from_dict(values: Mapping[str, Any]) -> Night:
    """Read a night; StoreError for a newer version, other values and damage."""
    night = read_stored(upgrade_night(values), "night of a suite", SCHEMA, VERSION, Night)
    damaged = "the file is damaged"
    parts = ((one.dut, str(one.mode), one.variant or "none") for one in night.of)
    for name in (night.suite, *chain.from_iterable(parts)):  # pages show them
        if not is_name(name):
            raise StoreError(f"{shown(name)} is not a valid name", damaged)
    if not is_date(night.night):
        raise StoreError(f"{night.night[:40]!r} is not a date", damaged)
    for path in (attempt.path for cell in night.cells for attempt in cell.attempts if attempt.path is not None):
        # readers follow it
        if ".." in path.split("/") or path.startswith("/") or not path.strip("./") or not path.isprintable():
            raise StoreError(f"{path[:80]!r} is not a path below the results directory", damaged)
    return night
