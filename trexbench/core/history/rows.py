"""Rows: one run each (of TCP: one way each), as in the index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import msgspec

from ..dut.runtime import WorkerEfficiency
from ..result import RunResult, Status
from ..run import EMULATOR, Run
from ..tcp.limit import TcpLimit
from ..tcp.model import Leg, TcpMode, Way
from ..tcp.path import TrafficPath
from ..tcp.result import LegSummary, TcpResult
from ..verdict.latency import history_latency
from ..verdict.model import Limit
from .cell import TCP_KIND, Cell, cell_of, placed, text_of


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A figure of a run, in the unit that its column names."""

    value: float
    uncertainty: float = 0.0
    """By which it may be more or less; 0: not known."""
    at_least: bool = False
    """The value is only a lower bound."""
    apart: float = 0.0
    """Share of the value that a calibration of testers leaves open, see testers.histories_of; 0: it is as measured."""


@dataclass(frozen=True)
class RunRow:
    """The index entry of one run's document (of TCP one for each way and version): a header and figures."""

    path: str
    """Below the results directory."""
    id: str
    started: str
    """UTC, ISO 8601."""
    status: str
    cell: Cell
    aim: str
    """The column of the figure that the run was made for."""
    figures: Mapping[str, Figure]
    """Figures that the run has, each by its column: that of a metric, or of UNFOLLOWED."""
    limit: str
    """The limit of the worst direction: ``dut``, ``generator-tx`` ..."""
    traffic: str | None = None
    """Digest of what went on the wire; of TCP in words."""
    through: TrafficPath | None = None
    """The path of the traffic besides the DUT."""
    line_rate_bps: float = 0.0
    line_share: float = 0.0
    """The rate in line rates of one direction, so up to 2 in both."""
    loss_threshold: float | None = None
    """None where losses decide nothing."""
    facts: str | None = None
    """SHA-256 of what was read back from the DUT."""
    suite: str | None = None
    night: str | None = None
    """The date of the suite's night."""
    label: str | None = None
    """The user's."""
    accelerator: str = ""
    """QEMU's name of what ran the DUT's processor; empty: the DUT was no virtual machine."""
    tester: str = ""
    """The fleet's tester that measured it; empty: the one of the machine."""
    nodes: Mapping[str, float] = field(default_factory=dict)
    """Cycles per packet by VPP's node, over all workers, so without input nodes, which poll."""
    warnings: int = 0

    def __post_init__(self) -> None:
        """Mark the cell, also of a row that was stored when cells had no such mark."""
        if self.accelerator == EMULATOR and not self.cell.emulated:
            object.__setattr__(self, "cell", replace(self.cell, emulated=True))

    def to_dict(self) -> dict[str, Any]:
        """JSON values, with names in place of what they stand for; all of figure_columns, None for what is absent."""
        values: dict[str, Any] = {**vars(self), **dict.fromkeys(figure_columns())}
        for name, one in values.pop("figures").items():
            values[name] = one.value
            if name in METRICS and METRICS[name].bounded:
                values[f"uncertainty_{METRICS[name].short}"] = one.uncertainty
        values["at_least"] = any(one.at_least for one in self.figures.values())
        return {**values, "cell": self.cell.to_dict(), "through": str(self.through or "")}

    @property
    def complete(self) -> bool:
        return self.status == _COMPLETE

    @property
    def metric(self) -> Metric:
        """The metric of the figure that the run was made for."""
        return METRICS[self.aim]

    @property
    def figure(self) -> Figure | None:
        """The figure that the run was made for."""
        return self.figures.get(self.aim)

    @property
    def at_least(self) -> bool:
        """True if that figure is only a lower bound."""
        return self.figure is not None and self.figure.at_least

    def get(self, column: str) -> float | None:
        figure = self.figures.get(column)
        return None if figure is None else figure.value


@dataclass(frozen=True)
class Metric:
    """A figure that is followed over the nights."""

    column: str
    """Its name in rows, lists and queries, whose unit the values have there."""
    name: str
    unit: str
    """The unit in which it is shown and judged."""
    better: str
    """``higher`` or ``lower``."""
    rank: int
    """Its place among figures that a change moves: the most telling has the lowest."""
    minimum: float
    """Smallest share of a change that is reported, however significant; absolute: the same in the figure's unit."""
    absolute: float = 0.0
    scale: float = 1.0
    """The factor from the column's unit to the one that is shown."""
    bounded: bool = False
    """A rate, which may be a lower bound; it is followed only in runs that were made for it."""

    @property
    def short(self) -> str:
        """``pps`` for ``total_pps``: the end of the names of its other values."""
        return self.column.removeprefix("total_")

    def of(self, row: RunRow) -> float | None:
        """The row's figure in this metric's unit, where it is followed."""
        value = None if self.bounded and row.aim != self.column else row.get(self.column)
        return None if value is None else self.scale * value


RATE = Metric("total_pps", "maximum rate", "pps", "higher", 0, 0.01, bounded=True)
TCP_RATE = Metric("total_bps", "TCP rate", "bit/s", "higher", 0, 0.01, bounded=True)
COST = Metric("cycles_per_packet", "cycles/packet", "cycles", "lower", 1, 0.01)
METRICS: dict[str, Metric] = {
    one.column: one
    for one in (
        RATE,
        COST,
        Metric("hold_loss", "loss in the hold", "share", "lower", 8, 0.02, absolute=0.001),
        Metric("latency_s", "latency", "us", "lower", 3, 0.05, absolute=1.0, scale=1e6),
        Metric("power_w", "power", "W", "lower", 6, 0.02),
        TCP_RATE,
        Metric("cores_per_gbps", "CPU per Gbit/s", "cores", "lower", 2, 0.02, absolute=0.01),
        Metric("retransmitted", "retransmitted", "share", "lower", 9, 0.05, absolute=0.0005),
        Metric("idle_power_w", "idle power", "W", "lower", 7, 0.02),
        Metric("ping_idle_s", "ping idle", "us", "lower", 5, 0.05, absolute=20.0, scale=1e6),
        Metric("ping_loaded_s", "ping loaded", "us", "lower", 4, 0.05, absolute=50.0, scale=1e6),
    )
}
"""Every figure that is followed, by its column."""
UNFOLLOWED = ("with_polling", "vectors_per_call", "uj_per_packet")
"""Columns of figures that are only stored."""


def figure_columns() -> list[str]:
    """The columns of all figures, and of the uncertainties of rates."""
    uncertain = [f"uncertainty_{one.short}" for one in METRICS.values() if one.bounded]
    return [*METRICS, *UNFOLLOWED, *uncertain, "at_least"]


def figures_of(values: object, *columns: str) -> dict[str, Figure]:
    """The figures among these attributes that are known."""
    return {name: Figure(value) for name in columns if (value := getattr(values, name, None)) is not None}


def header_of(run: Run, path: str) -> dict[str, Any]:
    """The fields of a row that every load's runs have."""
    texts = {name: text_of(run.command.get(name)) for name in ("suite", "night", "label")}
    facts = text_of(run.dut.get("facts_sha256"))
    own = {"id": run.id, "started": run.started, "status": run.status.value, "accelerator": run.accelerator}
    # without a fleet.yaml simulated testers are processes of one machine
    tester = text_of(run.command.get("tester")) if text_of(run.command.get("fleet")) or not run.simulated else None
    return {"path": path, **own, "facts": facts, "tester": tester or "", **texts}


def row_of(result: RunResult, path: str) -> RunRow:
    directions, cell, held = result.analysis.directions, cell_of(result), result.held_cost
    apart = sum(one.uncertainty_pps for one in directions)  # a DUT's directions err alike
    figures = {"total_pps": Figure(result.analysis.total_pps, apart, result.analysis.at_least)}
    figures |= figures_of(held, "cycles_per_packet", "with_polling", "vectors_per_call", "power_w", "uj_per_packet")
    lost = max((one.hold_loss for one in directions if one.hold_loss is not None), default=None)
    for name, value in (("hold_loss", lost), ("latency_s", history_latency(result.latencies))):
        figures |= {} if value is None else {name: Figure(value)}
    header = header_of(result, path) | ({"status": UNANSWERED} if result.no_answer else {})
    return RunRow(
        **header,
        cell=cell,
        aim=RATE.column if cell.held_pps is None else COST.column,
        figures=figures,
        limit=max((one.limit for one in directions), key=_WORSE.index, default=Limit.NONE).value,
        traffic=_traffic(result),
        through=result.over,
        line_rate_bps=fmean(offer.line_rate_bps for offer in result.plan.offers),
        line_share=result.plan.line_share({one.direction: one.maximum_pps for one in directions}),
        loss_threshold=result.plan.loss_threshold,
        nodes=_nodes(held.workers) if held is not None and held.cycles_per_packet is not None else {},
        warnings=len(result.warnings) + len(result.analysis_warnings) + len(result.dut_warnings),
    )


_COMPLETE = Status.COMPLETE.value  # asked of every row, and slow to find
UNANSWERED = "no answer"
"""The status of a row whose run went to its end and found nothing that a history could judge."""
_WORSE = (Limit.DUT, Limit.NONE, Limit.GENERATOR_RX, Limit.GENERATOR_TX, Limit.LINK, Limit.UNKNOWN)
"""In order: the later, the less the rate says about the DUT."""


def _traffic(result: RunResult) -> str | None:
    """The first direction's digest; joined with those of directions that send another mix of frame sizes."""
    first, *others = result.profiles.values()
    unlike = [one for one in others if one.get("mix") != first.get("mix")]
    digests = [text_of(one.get("digest")) for one in (first, *unlike)]
    return "+".join(digest for digest in digests if digest) or None


def _nodes(workers: Sequence[WorkerEfficiency]) -> dict[str, float]:
    """Cycles per packet by node: the mean over the packets of all workers. They add up to Cost.cycles_per_packet."""
    packets = sum(worker.packets or 0 for worker in workers)
    found: dict[str, float] = {}
    for worker in workers if packets else ():
        for node in (node for node in worker.nodes if not node.is_input):
            share = node.cycles_per_packet * (worker.packets or 0) / packets
            found[node.name] = found.get(node.name, 0.0) + share
    return found


def rows_of_tcp(result: TcpResult, path: str) -> tuple[RunRow, ...]:
    """A row for each kind of leg of the plan; one without a figure is incomplete, whatever the run is."""
    found = {one.kind: one for one in result.summaries}
    kinds = dict.fromkeys([*(leg.kind for leg in result.plan.legs), *found])
    return tuple(_row_of_tcp(result, path, kind, found.get(kind)) for kind in kinds)


def _row_of_tcp(result: TcpResult, path: str, kind: Leg, found: LegSummary | None) -> RunRow:
    header, through, link_bps = header_of(result, path), result.setup.path(kind.version), found and found.link_bps
    monitored, plan = result.command.get("telemetry") is not False, result.plan
    mode = TcpMode(kind.way, kind.version, plan.streams, monitored, kind.buffer_bytes, kind.congestion, plan.pinned)
    rate = Figure(0.0, at_least=True)
    if found is not None:
        rate = Figure(found.rate_bps, found.uncertainty_bps or 0.0, found.at_least)
    elif result.status is Status.COMPLETE:
        header["status"] = Status.INCOMPLETE.value
    names = "power_w", "idle_power_w", "retransmitted", "cores_per_gbps", "ping_idle_s", "ping_loaded_s"
    return RunRow(
        **header,
        cell=placed(Cell("", mode, kind.way is Way.BIDIR, None, TCP_KIND), result, through),
        aim=TCP_RATE.column,
        figures={TCP_RATE.column: rate, **figures_of(found, *names)},
        limit=(found.limit if found is not None else TcpLimit.UNKNOWN).value,
        traffic=_tcp_traffic(result, kind),
        through=through,
        line_rate_bps=result.setup.line_bps or 0.0,
        line_share=rate.value / link_bps if link_bps else 0.0,
        warnings=len(result.warnings) + len(result.analysis_warnings),
    )


def _tcp_traffic(result: TcpResult, kind: Leg) -> str:
    """Describe how the payload was sent: other engines and congestion controls do not compare."""
    plan = result.plan
    legs = [leg for leg in result.legs if leg.leg.kind == kind]
    told = {str(name) for leg in legs for one in leg.program.values() if (name := one.get("congestion")) is not None}
    control = "+".join(sorted(told)) or kind.congestion or plan.congestion or "default"
    marks = {"zerocopy": plan.zerocopy, "pinned": plan.pinned}
    return ", ".join([f"TCP by {plan.engine}", control, *(name for name, on in marks.items() if on)])


def cells_of(rows: Iterable[RunRow]) -> dict[Cell, list[RunRow]]:
    """Complete runs by cell, marked as its last one, each in the order of time."""
    found: dict[Cell, list[RunRow]] = {}
    for row in sorted((row for row in rows if row.complete), key=lambda row: row.started):
        found.setdefault(row.cell, []).append(row)
    return {of[-1].cell: of for of in found.values()}
