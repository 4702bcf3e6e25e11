"""A night of a suite: the cells that were to be measured, and what became of each; it can be resumed from this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from .errors import StoreError
from .names import is_name, shown

SCHEMA, VERSION = "trexbench/night", 1


class State(str, Enum):
    """Of a cell: waiting, running (or its runner was killed), done, failed."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Attempt:
    """One try at a cell. path: its run document below the results directory, also of one that ended early.

    error: why it failed, None where it did not; code: the exit code of that error.
    """

    started: str
    path: str | None = None
    error: str | None = None
    code: int = 0


@dataclass(frozen=True)
class CellRecord:
    """One cell of the night; the first four say which."""

    dut: str
    mode: str
    bidir: bool
    rx_queues: int | None
    state: State = State.WAITING
    attempts: tuple[Attempt, ...] = ()

    @property
    def path(self) -> str | None:
        """The document that counts: of the last attempt."""
        return self.attempts[-1].path if self.attempts else None


@dataclass(frozen=True)
class Night:
    """One night of one suite. night: its date; started, finished: UTC. error: what ended it before its cells did."""

    suite: str
    night: str
    started: str
    simulated: bool
    cells: tuple[CellRecord, ...]
    finished: str | None = None
    error: str | None = None

    @property
    def failed(self) -> tuple[CellRecord, ...]:
        return tuple(cell for cell in self.cells if cell.state is State.FAILED)

    @property
    def left(self) -> tuple[int, ...]:
        """Places of the cells that are still to be measured."""
        return tuple(at for at, cell in enumerate(self.cells) if cell.state in (State.WAITING, State.RUNNING))

    def with_cell(self, at: int, cell: CellRecord) -> Night:
        return replace(self, cells=(*self.cells[:at], cell, *self.cells[at + 1 :]))


def night_to_dict(night: Night) -> dict[str, Any]:
    """JSON values."""
    cells = [{**asdict(cell), "state": cell.state.value} for cell in night.cells]
    return {"schema": SCHEMA, "version": VERSION, **asdict(night), "cells": cells}


def night_from_dict(values: Mapping[str, Any]) -> Night:
    """StoreError for what is no night, or a newer one."""
    if not isinstance(values, Mapping) or values.get("schema") != SCHEMA:
        raise StoreError("not a night of a suite", f"expected schema {SCHEMA!r}")
    version = values.get("version")
    if type(version) is not int or version > VERSION or version < 1:
        raise StoreError(f"night of version {version!r}, this trexbench reads up to {VERSION}", "upgrade trexbench")
    try:
        return Night(
            suite=_name(values["suite"]),
            night=_text(values["night"]),
            started=_text(values["started"]),
            simulated=bool(values["simulated"]),
            cells=tuple(_cell(one) for one in values["cells"]),
            finished=None if values["finished"] is None else _text(values["finished"]),
            error=None if values["error"] is None else _text(values["error"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"night with a part missing or of the wrong kind ({error})", "the file is damaged") from None


def _cell(values: Mapping[str, Any]) -> CellRecord:
    queues = values["rx_queues"]
    if queues is not None and type(queues) is not int:
        raise ValueError(f"rx_queues is {queues!r}")
    attempts = tuple(
        Attempt(
            _text(one["started"]),
            None if one["path"] is None else _text(one["path"]),
            None if one["error"] is None else _text(one["error"]),
            int(one["code"]),
        )
        for one in values["attempts"]
    )
    state = State(values["state"])
    return CellRecord(_name(values["dut"]), _name(values["mode"]), bool(values["bidir"]), queues, state, attempts)


def _name(value: Any) -> str:
    if not is_name(value):
        raise ValueError(f"{shown(value)} is no name")
    return str(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value
