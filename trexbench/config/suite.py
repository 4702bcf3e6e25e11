"""A suite: which cells are measured in a night, as data. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .model import PlanDefaults


@dataclass(frozen=True)
class SuiteDut:
    """A DUT of the suite. rx_queues: measured with each of these; empty: as its own config says."""

    name: str
    rx_queues: tuple[int, ...] = ()


@dataclass(frozen=True)
class SuiteCell:
    """One run of a suite."""

    dut: str
    mode: str
    bidir: bool
    rx_queues: int | None
    plan: PlanDefaults = field(default_factory=PlanDefaults)

    def __str__(self) -> str:
        queues = f" {self.rx_queues}q" if self.rx_queues is not None else ""
        return f"{self.dut} {self.mode} {'bidir' if self.bidir else 'uni'}{queues}"


@dataclass(frozen=True)
class Suite:
    """One suite file; ``name`` is the file's. keep_nights: what ``nightly`` leaves when it prunes; None: everything."""

    name: str
    file: Path
    description: str
    duts: tuple[SuiteDut, ...]
    modes: tuple[str, ...]
    directions: tuple[bool, ...]
    plan: PlanDefaults = field(default_factory=PlanDefaults)
    keep_nights: int | None = None

    @property
    def cells(self) -> tuple[SuiteCell, ...]:
        """All of them, in the order in which they are run: the DUT and its queues change as rarely as can be."""
        return tuple(
            SuiteCell(dut.name, mode, bidir, queues, self.plan)
            for dut in self.duts
            for queues in (dut.rx_queues or (None,))
            for bidir in self.directions
            for mode in self.modes
        )


def sessions(cells: Sequence[SuiteCell]) -> list[list[SuiteCell]]:
    """Neighbours with the same DUT and queues, which share one session with DUT and tester."""
    found: list[list[SuiteCell]] = []
    for cell in cells:
        if found and (found[-1][0].dut, found[-1][0].rx_queues) == (cell.dut, cell.rx_queues):
            found[-1].append(cell)
        else:
            found.append([cell])
    return found
