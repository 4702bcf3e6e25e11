"""Findings and judgements made by hand, as a search for changes would make them."""

from __future__ import annotations

from typing import Any

from trexbench.core.history.cell import Cell
from trexbench.core.history.finding import Finding, Kind
from trexbench.core.history.regression import Judgement
from trexbench.core.history.rows import METRICS

BY_NAME = {metric.name: metric for metric in METRICS.values()}
NIGHTS = tuple(f"2026-11-{day:02}" for day in (13, 16, 17, 18, 19, 20))
"""Without a weekend: the 13th and the 16th are neighbours."""


def found(
    metric: str = "maximum rate", share: float = -0.1, since: str = "2026-11-17", mode: str = "64b", **more: Any
) -> Finding:
    cell = Cell(more.pop("dut", "netgate-vpp"), mode, False, 1, **more.pop("cell", {}))
    kind = more.pop("kind", Kind.REGRESSION)
    return Finding(cell, BY_NAME[metric], kind, 3, since, "2026-11-19", 100.0, 100.0 * (1 + share), **more)


def judgement_of(*findings: Finding, **more: Any) -> Judgement:
    return Judgement(findings, 99, nights=NIGHTS, **more)
