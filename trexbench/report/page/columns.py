"""The columns of tables: DUTs with their variants and numbers of queues; their place is their colour in plots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ...core.history.cell import Cell
from ...core.run import mark_of
from ...core.tcp.path import TrafficPath


@dataclass(frozen=True)
class Column:
    """One DUT, in one of its variants or in none, with one number of queues (None: unknown). over: as of Cell."""

    dut: str
    rx_queues: int | None
    simulated: bool
    variant: str | None = None
    over: TrafficPath | None = None
    emulated: bool = field(default=False, compare=False)

    def cell(self, load: Cell) -> Cell:
        """The column's cell with this load."""
        return replace(load, **vars(self))

    @property
    def title(self) -> str:
        """The DUT, its variant, and what its runs went through."""
        return self.cell(Cell("", "", False, None)).dut_words

    @property
    def mark(self) -> str:
        return mark_of(self.simulated, self.emulated)

    @property
    def queues(self) -> str:
        return "" if self.rx_queues is None else f"{self.rx_queues}q"

    def __str__(self) -> str:
        return f"{self.title} {self.queues}".rstrip() + (f" ({self.mark})" if self.mark else "")


def order_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """DUTs, their variants and WANs in their order of appearance, each with its numbers of queues ascending.

    One is emulated if any of its cells is.
    """
    columns = list(columns)
    emulated = {one for one in columns if one.emulated}
    every = [replace(one, emulated=one in emulated) for one in dict.fromkeys(columns)]
    duts = list(dict.fromkeys((column.dut, column.simulated) for column in every))
    names = list(dict.fromkeys((column.variant, column.over) for column in every))
    return tuple(
        sorted(
            every,
            key=lambda one: (
                duts.index((one.dut, one.simulated)),
                names.index((one.variant, one.over)),
                one.rx_queues or 0,
            ),
        )
    )


def column_of(cell: Cell) -> Column:
    return Column(cell.dut, cell.rx_queues, cell.simulated, cell.variant, cell.over, cell.emulated)
