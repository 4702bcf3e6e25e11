"""Searches and throughput by frame size for the report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ...core.history.cell import Cell
from ...core.load.sample import Phase
from ...core.result import RunResult
from ...core.verdict.model import DirectionResult, Goal
from ..run.sizes import Throughput, throughputs
from ..words import format_limit

FEWEST_SIZES = 3
"""Fewest frame sizes of one DUT that make a plot over the frame size."""
_SIZE = re.compile(r"(.+)-\d+b")


@dataclass(frozen=True)
class SearchRow:
    """One goal of one direction of a search. looks: rates that were looked at, some several times."""

    cell: Cell
    direction: str
    goal: Goal
    verdict: DirectionResult
    line_rate_pps: float
    looks: int
    length_s: float

    @property
    def goal_words(self) -> str:
        """``NDR, 0 %``; ``PDR, 0.5 %``."""
        return f"{'PDR' if self.goal.loss else 'NDR'}, {format_limit(self.goal.loss)}"

    @property
    def at_least(self) -> bool:
        """True if the loss never exceeded this goal's: the rate is only a lower bound."""
        return self.verdict.at_least or self.goal.high_pps is None


def find_searches(runs: Mapping[Cell, RunResult]) -> tuple[SearchRow, ...]:
    """A row for each direction and goal of every run that sought any."""
    return tuple(row for cell, run in runs.items() for one in run.directions for row in _rows(cell, run, one))


def _rows(cell: Cell, run: RunResult, one: DirectionResult) -> Iterator[SearchRow]:
    looks = {sample.trial for sample in run.samples if sample.phase is Phase.SEARCH}
    length_s = run.samples[-1].t_s - run.samples[0].t_s if run.samples else 0.0
    line_pps = run.plan.offer(one.direction).line_rate_pps
    for goal in one.goals:
        yield SearchRow(cell, str(one.direction), goal, one, line_pps, len(looks), length_s)


@dataclass(frozen=True)
class SizedDut:
    """Runs of one DUT that differ in nothing but their frame size, smaller frames first. cell: of the first."""

    cell: Cell
    results: tuple[RunResult, ...]

    @property
    def rows(self) -> list[Throughput]:
        return throughputs(self.results)

    @property
    def name(self) -> str:
        """The DUT and how it was measured: a cell's name without the size."""
        mode = _SIZE.fullmatch(str(self.cell.mode))
        return str(replace(self.cell, mode=mode[1]) if mode else self.cell)


def find_sized(runs: Mapping[Cell, RunResult]) -> tuple[SizedDut, ...]:
    """Find the runs of every DUT with at least FEWEST_SIZES of one mode, method and direction."""
    groups: dict[tuple[object, ...], dict[Cell, RunResult]] = {}
    for cell, run in runs.items():
        mode = _SIZE.fullmatch(str(cell.mode))
        if mode is not None:
            key = (cell.dut_words, mode[1], cell.bidir, cell.rx_queues, cell.kind, cell.mark)
            groups.setdefault(key, {})[cell] = run
    return tuple(
        SizedDut(next(iter(some)), tuple(sorted(some.values(), key=_frame_bytes)))
        for some in groups.values()
        if len({*map(_frame_bytes, some.values())}) >= FEWEST_SIZES
    )


def _frame_bytes(run: RunResult) -> float:
    return run.plan.offers[0].mean_frame_bytes
