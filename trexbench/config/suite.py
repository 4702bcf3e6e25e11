"""A suite: which cells are measured in a night. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Annotated

from ..core.history.rows import Cell
from ..core.load.profile import resolve_mode
from ..core.strategy.table import STRATEGIES, has_curve
from . import readers as r
from .model import MOST_QUEUES, PlanDefaults
from .yamltree import Value

_NAME = r.pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*", "the name of a DUT", "netgate-vpp, for dut_configs/netgate-vpp.yaml")


METHODS = tuple(kind for kind in STRATEGIES if has_curve(kind))
"""The strategies that seek a knee."""


@dataclass(frozen=True)
class SuiteDut:
    """A DUT of the suite. rx_queues: it is measured with each of these; empty: as its config says."""

    name: Annotated[str, _NAME]
    rx_queues: Annotated[tuple[int, ...], r.integers(1, MOST_QUEUES)] = ()


def _dut(value: Value) -> SuiteDut:
    return SuiteDut(_NAME(value)) if isinstance(value.raw, str) else r.section(SuiteDut, "a DUT")(value)


def _mode(value: Value) -> str:
    return resolve_mode(value.text()).name


def _bidir(value: Value) -> bool:
    return r.choice("uni", "bidir")(value) == "bidir"


@dataclass(frozen=True)
class Suite:
    """One suite file; ``name`` is the file's. method: the strategy by which each cell is measured.

    keep_nights: how many ``nightly`` keeps when it prunes; None: all.
    """

    name: str
    file: Path
    duts: Annotated[tuple[SuiteDut, ...], r.list_of("DUT", _dut, lambda dut: dut.name)]
    modes: Annotated[tuple[str, ...], r.list_of("mode", _mode, str)]
    directions: Annotated[tuple[bool, ...], r.list_of("direction", _bidir, lambda bidir: ("uni", "bidir")[bidir])]
    method: Annotated[str, r.choice(*METHODS)] = "ramp"
    description: Annotated[str, r.text] = ""
    plan: Annotated[PlanDefaults, r.section(PlanDefaults, "plan defaults")] = field(default_factory=PlanDefaults)
    keep_nights: Annotated[int | None, r.integer(1, 100_000)] = None

    @property
    def cells(self) -> tuple[Cell, ...]:
        """One for each run, in the order they are run: the DUT and its queues change as rarely as possible."""
        return tuple(
            Cell(dut.name, mode, bidir, queues, self.method)
            for dut in self.duts
            for queues in (dut.rx_queues or (None,))
            for bidir in self.directions
            for mode in self.modes
        )


def sessions(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Consecutive cells with the same DUT and queues, which share one session."""
    return [list(group) for _, group in groupby(cells, key=lambda cell: (cell.dut, cell.rx_queues))]
