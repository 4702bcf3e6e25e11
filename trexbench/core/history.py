"""Runs in a line each, and cells: what is measured again and again, night after night."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .cycles import Cost
from .result import RunResult, Status
from .sample import Phase


@dataclass(frozen=True, order=True)
class Cell:
    """What is measured again and again: runs of one cell may be compared over time. rx_queues: None where unknown."""

    dut: str
    mode: str
    bidir: bool
    rx_queues: int | None
    kind: str = "ramp"
    simulated: bool = False

    def __str__(self) -> str:
        queues = f" {self.rx_queues}q" if self.rx_queues is not None else ""
        kind = "" if self.kind == "ramp" else f" {self.kind}"
        simulated = " simulated" if self.simulated else ""
        return f"{self.dut} {self.mode} {'bidir' if self.bidir else 'uni'}{queues}{kind}{simulated}"


@dataclass(frozen=True)
class RunRow:
    """What an index keeps of one run's document. Absent is None.

    path: below the results directory. started: UTC, ISO 8601. traffic: digest of what went on the wire. facts: SHA-256
    of what was read back from the DUT. suite, night: where a suite's run belongs (night: a date). total_pps: of all
    directions, a lower bound where at_least; uncertainty_pps: of that sum; line_share: of one direction's line rate, so
    up to 2 both ways. limit: of the direction that is worst off (``dut``, ``generator-tx`` ...). hold_loss: the worst
    direction's. cycles_per_packet and the like: of the hold. nodes: cycles per packet by VPP's node, over all workers.
    """

    path: str
    id: str
    started: str
    status: str
    cell: Cell
    traffic: str | None
    line_rate_bps: float
    loss_threshold: float
    facts: str | None
    suite: str | None
    night: str | None
    total_pps: float
    at_least: bool
    uncertainty_pps: float
    line_share: float
    limit: str
    hold_loss: float | None = None
    cycles_per_packet: float | None = None
    with_polling: float | None = None
    vectors_per_call: float | None = None
    power_w: float | None = None
    uj_per_packet: float | None = None
    nodes: Mapping[str, float] = field(default_factory=dict)
    warnings: int = 0

    @property
    def complete(self) -> bool:
        return self.status == Status.COMPLETE.value


@dataclass(frozen=True)
class Metric:
    """A figure of a run that has a history. better: ``higher`` or ``lower``. minimum: changes below this share of the
    value are too small to be told, whatever their significance; ``absolute`` adds a floor in the figure's own unit.
    bounded: the value is only a bound where the run's is (RunRow.at_least).
    """

    name: str
    unit: str
    better: str
    of: Callable[[RunRow], float | None]
    minimum: float
    absolute: float = 0.0
    bounded: bool = False


METRICS: tuple[Metric, ...] = (
    Metric("maximum rate", "pps", "higher", lambda row: row.total_pps, 0.01, bounded=True),
    Metric("cycles/packet", "cycles", "lower", lambda row: row.cycles_per_packet, 0.01),
    Metric("loss in the hold", "share", "lower", lambda row: row.hold_loss, 0.02, absolute=0.001),
    Metric("power", "W", "lower", lambda row: row.power_w, 0.02),
)


def row_of(result: RunResult, path: str) -> RunRow:
    """The line of one run."""
    analysis, command = result.analysis, result.command
    held = next((cost for cost in result.costs if cost.phase is Phase.HOLD), None)
    losses = [one.hold_loss for one in analysis.directions if one.hold_loss is not None]
    limits = [one.limit.value for one in analysis.directions]
    queues = command.get("rx_queues")
    return RunRow(
        path=path,
        id=result.id,
        started=result.started,
        status=result.status.value,
        cell=Cell(
            dut=str(result.dut.get("name", "")),
            mode=str(command.get("mode", "")),
            bidir=result.plan.bidir,
            rx_queues=queues if isinstance(queues, int) else None,
            kind=result.plan.kind,
            simulated=result.simulated,
        ),
        traffic=_text(result.profile.get("digest")),
        line_rate_bps=result.plan.line_rate_bps,
        loss_threshold=result.plan.loss_threshold,
        facts=_text(result.dut.get("facts_sha256")),
        suite=_text(command.get("suite")),
        night=_text(command.get("night")),
        total_pps=analysis.total_pps,
        at_least=analysis.at_least,
        uncertainty_pps=sum(one.uncertainty_pps**2 for one in analysis.directions) ** 0.5,
        line_share=result.plan.line_share(analysis.total_pps),
        limit=max(limits, key=_badness, default="none"),
        hold_loss=max(losses, default=None),
        warnings=len(result.caveats) + len(analysis.caveats) + len(result.dut_caveats),
        **_cost_figures(held),
    )


def _cost_figures(cost: Cost | None) -> dict[str, Any]:
    if cost is None:
        return {}
    packets = sum(worker.packets or 0 for worker in cost.workers)
    nodes: dict[str, float] = {}
    for worker in cost.workers:
        for node in worker.nodes if packets else ():
            share = node.cycles_per_packet * (worker.packets or 0) / packets
            nodes[node.name] = nodes.get(node.name, 0.0) + share
    names = ("cycles_per_packet", "with_polling", "vectors_per_call", "power_w", "uj_per_packet")
    return {name: getattr(cost, name) for name in names} | {"nodes": nodes}


def cells_of(rows: Iterable[RunRow]) -> dict[Cell, list[RunRow]]:
    """Complete runs by cell, each in the order of time."""
    found: dict[Cell, list[RunRow]] = {}
    for row in sorted((row for row in rows if row.complete), key=lambda row: row.started):
        found.setdefault(row.cell, []).append(row)
    return found


def _badness(limit: str) -> int:
    order = ("dut", "none", "generator-rx", "generator-tx", "link")
    return order.index(limit) if limit in order else len(order)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
