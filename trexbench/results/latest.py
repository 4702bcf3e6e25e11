"""The last run and the last night at a glance, without an index or a reader of whole documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ..core.names import is_name
from ..core.run import EMULATOR, mark_of
from ..files import written_ns

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_RUN_FILE = re.compile(r"\d{6}-[\w-]+\.json")
_MOST_BYTES = 64 << 20
"""Larger documents are not opened."""
G = TypeVar("G", bound="Glance")


class Glance(msgspec.Struct, kw_only=True):
    """Parts of a document that every version has, or can do without."""

    started: str = ""
    simulated: bool = False


class FigureGlance(msgspec.Struct):
    value: float
    at_least: bool = False


class RowGlance(msgspec.Struct):
    aim: str = ""
    figures: dict[str, FigureGlance] = {}
    cell: dict[str, Any] = {}


class DerivedGlance(msgspec.Struct):
    rows: list[RowGlance] = []


class RunGlance(Glance):
    """A run. derived: None in documents of older versions."""

    status: str = ""
    derived: DerivedGlance | None = None
    dut: dict[str, Any] = {}

    @property
    def mark(self) -> str:
        return mark_of(self.simulated, self.dut.get("accelerator") == EMULATOR)

    @property
    def what(self) -> str:
        """``netgate-vpp var2-64b uni``: DUT, mode and direction of packets; empty for TCP and in older documents."""
        cell = self.derived.rows[0].cell if self.derived is not None and self.derived.rows else {}
        mode = cell.get("mode")
        return f"{cell.get('dut')} {mode} {'bidir' if cell.get('bidir') else 'uni'}" if isinstance(mode, str) else ""

    @property
    def figures(self) -> list[tuple[str, FigureGlance]]:
        """The figures for which the run was made, each with its column."""
        rows = self.derived.rows if self.derived is not None else []
        return [(row.aim, row.figures[row.aim]) for row in rows if row.aim in row.figures]

    def to_dict(self) -> dict[str, Any]:
        figures = [{"column": column, **msgspec.structs.asdict(figure)} for column, figure in self.figures]
        marks = {"simulated": self.simulated, "emulated": self.mark == "emulated"}
        return {"started": self.started, **marks, "status": self.status, "figures": figures}


class NightGlance(Glance):
    """A night; see core.history.night."""

    suite: str
    night: str
    cells: list[dict[str, Any]] = []
    finished: str | None = None
    error: str | None = None
    judged: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a suite that no night can have: its name becomes part of a command."""
        if not is_name(self.suite):
            raise ValueError(f"{self.suite!r} is not a valid name")

    @property
    def states(self) -> Counter[str]:
        """The number of cells in each state."""
        return Counter(str(cell.get("state")) for cell in self.cells)

    def to_dict(self) -> dict[str, Any]:
        return {**msgspec.structs.asdict(self), "cells": dict(self.states)}


def find_latest(results: Path) -> Path | None:
    """Find the document of the run that started last.

    Runs of a fleet's night have the night's start in their names, not their own: so the document that was written last
    on the last two days is opened as well.
    """
    days: list[list[Path]] = []
    for day in sorted(results.glob("*-*-*"), reverse=True):
        if len(days) < 2 and _DAY.fullmatch(day.name):
            paths = [path for path in day.glob("*/*.json") if _RUN_FILE.fullmatch(path.name)]
            days += [paths] if paths else []
    if not days:
        return None
    by_name = max(days[0], key=lambda path: (path.name[:6], written_ns(path)))
    written = max((path for paths in days for path in paths), key=written_ns)
    if written == by_name or (named := _glance(by_name, RunGlance)) is None:
        return by_name
    other = _glance(written, RunGlance)
    return written if other is not None and other.started > named.started else by_name


def glance_at_run(results: Path) -> tuple[Path, RunGlance | None] | None:
    """Find the run that started last, and glance at it; no glance if it cannot be read."""
    path = find_latest(results)
    return None if path is None else (path, _glance(path, RunGlance))


def glance_at_night(results: Path) -> NightGlance | None:
    """Glance at the night that was worked on last, of the last day with a readable one."""
    paths: Iterable[Path] = (path for path in results.glob("nights/*.json") if _DAY.match(path.name))
    newest_first = sorted(paths, key=lambda path: (path.name[:10], written_ns(path)), reverse=True)
    return next((night for path in newest_first if (night := _glance(path, NightGlance)) is not None), None)


def _glance(path: Path, kind: type[G]) -> G | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind) if path.stat().st_size <= _MOST_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
