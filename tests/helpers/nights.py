"""Lines of runs as an index gives them, night by night, without a run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from trexbench.core.history.cell import Cell
from trexbench.core.history.rows import METRICS, UNFOLLOWED, Figure, RunRow
from trexbench.core.tcp.path import TrafficPath
from trexbench.core.tcp.wan import parse_wan

VPP = Cell("netgate-vpp", "var2-64b", False, 1)
LINUX = Cell("netgate-linux", "var2-64b", False, None)


def date(number: int) -> str:
    """The nights of 2026, from 1 January on, in months of 28 nights."""
    return f"2026-{number // 28 + 1:02}-{number % 28 + 1:02}"


def make_row(number: int = 0, total_pps: float = 5e6, cell: Cell = VPP, **changes: Any) -> RunRow:
    """The run of one night; ``changes`` as of ``changed``."""
    night = date(number)
    row = RunRow(
        path=f"{night}/{cell.dut}/030000-{cell.mode}.json",
        id=f"{night}-{cell}",
        started=f"{night}T03:00:00Z",
        status="complete",
        cell=replace(cell, emulated=changes.get("accelerator") == "tcg"),
        aim="total_pps" if cell.held_pps is None else "cycles_per_packet",
        figures={"total_pps": Figure(total_pps)},
        traffic="0" * 64,
        through=None,
        line_rate_bps=10e9,
        loss_threshold=0.001,
        facts="f" * 64,
        suite="nightly",
        night=night,
        line_share=0.3,
        limit="dut",
    )
    return changed(row, **changes)


def changed(row: RunRow, **changes: Any) -> RunRow:
    """The row with other fields; with other figures by their columns, or uncertainty_pps and at_least of the rate."""
    figures = dict(row.figures)
    for name in (name for name in (*METRICS, *UNFOLLOWED) if name in changes):
        former, value = figures.pop(name, Figure(0.0)), changes.pop(name)
        figures |= {} if value is None else {name: msgspec.structs.replace(former, value=value)}
    of_rate = {"uncertainty_pps": "uncertainty", "at_least": "at_least"}
    rate = {field: changes.pop(name) for name, field in of_rate.items() if name in changes}
    figures |= {"total_pps": msgspec.structs.replace(figures["total_pps"], **rate)} if rate else {}
    return replace(row, **{"figures": figures, **changes})


def over_wan(asked: str) -> TrafficPath:
    return TrafficPath(parse_wan(asked), "netem")


def passing(row: RunRow, through: TrafficPath | None) -> RunRow:
    """The row of a run that went through this WAN or tunnel."""
    return replace(row, through=through, cell=replace(row.cell, over=None if row.suite else through))


def make_rows(values: Sequence[float], cell: Cell = VPP, **changes: Any) -> list[RunRow]:
    """A night each."""
    return [make_row(number, value, cell, **changes) for number, value in enumerate(values)]


def noisy(count: int, level: float = 5e6, noise: float = 0.003, seed: int = 1) -> list[float]:
    rng = random.Random(seed)
    return [level * (1 + rng.gauss(0, noise)) for _ in range(count)]
