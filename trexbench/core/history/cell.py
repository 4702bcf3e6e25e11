"""Cells, the identities of measurements that are repeated every night: runs of one cell compare over time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from ..result import RunResult
from ..run import mark_of
from ..strategy.kinds import suffix_of
from ..tcp.path import TrafficPath
from ..tcp.plan import TcpMode
from ..tcp.result import TcpResult
from ..units import format_pps

TCP_KIND, EFFICIENCY = "tcp", "efficiency"
"""Kinds of cells besides the strategies: TCP between two hosts, and what packets cost at a given rate."""


@dataclass(frozen=True)
class Cell:
    """A measurement that is repeated every night."""

    dut: str  # its name
    mode: str | TcpMode  # the packets' mode, or the parts of TCP's
    bidir: bool  # both ways at once
    rx_queues: int | None  # receive queues per port of the DUT; None where unknown
    kind: str = "ramp"  # strategy of packets; ``efficiency``: their cost at a given rate; or ``tcp``
    simulated: bool = False  # no real packet was sent
    variant: str | None = None  # variant of the DUT; None: without any
    over: TrafficPath | None = None
    """Path besides the DUT, of a run by hand; None for a suite's run, since a suite has variants for that."""
    held_pps: float | None = None  # given rate of ``efficiency``, in frames per second and direction
    emulated: bool = field(default=False, compare=False)
    """The DUT's processor was emulated.

    A mark only, as a suite cannot know it beforehand; histories go by their rows, see series.differences.
    """

    @property
    def mark(self) -> str:
        return mark_of(self.simulated, self.emulated)

    @property
    def unmarked(self) -> Cell:
        return replace(self, simulated=False, emulated=False)

    @property
    def tcp(self) -> TcpMode | None:
        """The mode of TCP; None for packets."""
        return self.mode if isinstance(self.mode, TcpMode) else None

    @property
    def load(self) -> Cell:
        """The traffic alone, as a cell without a DUT."""
        return Cell("", self.mode, self.bidir, None, self.kind, held_pps=self.held_pps)

    @property
    def dut_words(self) -> str:
        """The DUT, its variant, and the path of its runs."""
        return " ".join(filter(None, (self.dut, self.variant, self._over_words)))

    @property
    def dut_marked(self) -> str:
        """``dut_words``, and the mark of its figures in brackets."""
        return f"{self.dut_words}{f' ({self.mark})' if self.mark else ''}"

    @property
    def _over_words(self) -> str:
        return f"over {self.over}" if self.over else ""

    @property
    def kind_words(self) -> str:
        """Suffix that distinguishes runs from ramps: ``saturate``, ``efficiency at 1 Mpps``; empty for ramps."""
        return (
            suffix_of(self.kind)
            if self.held_pps is None
            else f"{self.kind} at {format_pps(self.held_pps, chosen=True)}"
        )

    @property
    def known_by(self) -> str:
        """``DUT [variant] mode``."""
        return " ".join(filter(None, (self.dut, self.variant, str(self.mode))))

    def to_dict(self) -> dict[str, Any]:
        """JSON values, with names in place of objects."""
        return {**vars(self), "mode": str(self.mode), "over": str(self.over or "")}

    def __str__(self) -> str:
        queues = f"{self.rx_queues}q" if self.rx_queues is not None else ""
        way = "bidir" if self.bidir else "uni"
        return " ".join(filter(None, (self.known_by, way, queues, self.kind_words, self._over_words, self.mark)))


def is_chosen(cell: Cell, only: Sequence[str]) -> bool:
    """Test whether the cell, with or without its mark, matches a pattern of ``--only``; no pattern means all."""
    if not only:  # as nearly always, of very many rows
        return True
    names = str(cell), str(cell.unmarked)
    return any(is_like(name, pattern) for name in names for pattern in only)


def is_like(name: str, pattern: str) -> bool:
    """Test whether a cell's name matches the pattern; it always matches itself, even with glob characters."""
    return name == pattern or fnmatchcase(name, pattern)


def by_given_rate(cells: Iterable[Cell]) -> list[Cell]:
    """Keep the order of cells, but bring those together that differ only in their given rate, the lowest rate first."""
    families: dict[Cell, dict[Cell, float]] = {}
    for cell in cells:
        families.setdefault(replace(cell, held_pps=None), {})[cell] = cell.held_pps or 0.0
    return [cell for family in families.values() for cell in sorted(family, key=family.__getitem__)]


def cell_of(result: RunResult) -> Cell:
    """Return the cell of a packet run."""
    mode, queues, held = result.command.get("mode", ""), result.command.get("rx_queues"), result.held_pps
    kind = result.plan.kind if held is None else EFFICIENCY
    cell = Cell("", str(mode), result.plan.bidir, queues if type(queues) is int else None, kind, held_pps=held)
    return placed(cell, result, result.over)


def placed(cell: Cell, result: RunResult | TcpResult, over: TrafficPath | None) -> Cell:
    """Add a run's DUT, variant and path to the cell; a router dialling in is the same cell as without PPPoE."""
    name, variant = str(result.dut.get("name", "")), text_of(result.command.get("variant"))
    over = replace(over, pppoe=False) if over is not None and not text_of(result.command.get("suite")) else None
    over = over if over != TrafficPath() else None
    cell = replace(cell, simulated=result.simulated, emulated=result.emulated)
    return replace(cell, dut=name, variant=variant, over=over)


def text_of(value: object) -> str | None:
    """Return a document's text; None for empty text and other values."""
    return value if isinstance(value, str) and value else None
