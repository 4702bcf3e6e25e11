"""Rows of the index: one per run, for TCP one per direction and IP version. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import msgspec

from ..dut.cycles import Cost
from ..result import RunResult, Status
from ..run import Run
from ..tcp.limit import TcpLimit
from ..tcp.path import TrafficPath
from ..tcp.plan import Leg, TcpMode, Way
from ..tcp.result import LegSummary, TcpResult
from ..verdict.latency import history_latency
from ..verdict.parts import Limit
from .cell import TCP_KIND, Cell, cell_of, placed, text_of


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A figure of a run; in documents without the keys that are 0 or false."""

    value: float  # in the unit of its column
    uncertainty: float = 0.0  # possible error of the value, either way; 0: not known
    at_least: bool = False  # the value is a lower bound
    apart: float = 0.0  # uncertainty, as a share, that a conversion between testers added; in no document


@dataclass(frozen=True)
class RunRow:
    """The index entry of one run's document (for TCP one for each direction and version): a header and figures."""

    path: str  # relative to the results directory; in documents empty
    id: str  # of the run
    started: str  # UTC, ISO 8601
    status: str  # the run's, or ``no answer``: complete without a verdict
    cell: Cell
    aim: str  # the column of the figure that the run was made for
    figures: Mapping[str, Figure]  # by column, as ``total_pps``; those that the run has
    limit: str  # the limit of the worst direction: ``dut``, ``generator-tx`` ...
    traffic: str | None = None  # digest of the frames sent; for TCP a description
    through: TrafficPath | None = None  # WAN, tunnel and PPPoE in the path
    line_rate_bps: float = 0.0  # L1 speed of one direction; 0: not known
    line_share: float = 0.0  # sum of the directions' shares of their line rates: up to 2 for two; of TCP by payload
    loss_threshold: float | None = None  # share of frames that may be lost; None: of TCP
    facts: str | None = None  # SHA-256 of the facts read back from the DUT
    suite: str | None = None  # its name
    night: str | None = None  # the date of the suite's night
    label: str | None = None  # the user's word
    accelerator: str = ""  # ``kvm``, ``tcg``: what ran the DUT's processor in QEMU; empty: no virtual machine
    tester: str = ""  # the fleet's tester; empty: the machine's own
    nodes: Mapping[str, float] = field(default_factory=dict)
    """Cycles per packet by VPP node, over all workers; without input nodes, which poll."""
    warnings: int = 0  # their number

    def to_dict(self) -> dict[str, Any]:
        """JSON values, with names in place of objects; all figure_columns, None for what is absent."""
        values: dict[str, Any] = {**vars(self), **dict.fromkeys(figure_columns())}
        for name, figure in values.pop("figures").items():
            values[name] = figure.value
            if name in METRICS and METRICS[name].bounded:
                values[f"uncertainty_{METRICS[name].short}"] = figure.uncertainty
        values["at_least"] = any(figure.at_least for figure in self.figures.values())
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
        """True if that figure is a lower bound."""
        return self.figure is not None and self.figure.at_least

    def get(self, column: str) -> float | None:
        figure = self.figures.get(column)
        return None if figure is None else figure.value


@dataclass(frozen=True)
class Metric:
    """A figure that is followed over the nights."""

    column: str
    """Its name in rows, lists and queries, where values have the unit in this name."""
    name: str
    unit: str
    """Unit in which it is shown and judged."""
    better: str
    """``higher`` or ``lower``."""
    rank: int
    """Order among figures that a change moves: the most telling has the lowest."""
    minimum: float
    """Smallest change worth reporting, as a share; absolute: in the figure's unit."""
    absolute: float = 0.0
    scale: float = 1.0
    """Factor from the column's unit to the shown one."""
    bounded: bool = False
    """A rate, which may be a lower bound; followed only in runs that were made for it."""

    @property
    def short(self) -> str:
        """End of its other values' names: ``pps`` for ``total_pps``."""
        return self.column.removeprefix("total_")

    def of(self, row: RunRow) -> float | None:
        """Return the row's figure in this metric's unit; None where it is not followed."""
        value = None if self.bounded and row.aim != self.column else row.get(self.column)
        return None if value is None else self.scale * value


RATE = Metric("total_pps", "maximum rate", "pps", "higher", 0, 0.01, bounded=True)
TCP_RATE = Metric("total_bps", "TCP rate", "bit/s", "higher", 0, 0.01, bounded=True)
COST = Metric("cycles_per_packet", "cycles/packet", "cycles", "lower", 1, 0.01)
METRICS: dict[str, Metric] = {
    metric.column: metric
    for metric in (
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
"""Every figure that is followed over the nights, by its column."""
UNFOLLOWED = ("with_polling", "vectors_per_call", "uj_per_packet")
"""Columns of figures that are only stored."""
_COMPLETE = Status.COMPLETE.value  # asked of every row, and slow to find
UNANSWERED = "no answer"
"""The status of a row whose run went to its end without a figure that a history could judge."""
_WORSE = (Limit.DUT, Limit.NONE, Limit.GENERATOR_RX, Limit.GENERATOR_TX, Limit.LINK, Limit.UNKNOWN)
"""The later in this order, the less the rate says about the DUT."""


def figure_columns() -> list[str]:
    """List the columns of all figures, and of the uncertainties of rates."""
    uncertain = [f"uncertainty_{metric.short}" for metric in METRICS.values() if metric.bounded]
    return [*METRICS, *UNFOLLOWED, *uncertain, "at_least"]


def figures_of(values: object, *columns: str) -> dict[str, Figure]:
    """Return the known figures among these attributes of any object."""
    return {name: Figure(value) for name in columns if (value := getattr(values, name, None)) is not None}


def header_of(run: Run, path: str) -> dict[str, Any]:
    """Return the fields of a row that runs of every load have."""
    texts = {name: text_of(run.command.get(name)) for name in ("suite", "night", "label")}
    facts = text_of(run.dut.get("facts_sha256"))
    own = {"id": run.id, "started": run.started, "status": run.status.value, "accelerator": run.accelerator}
    # without a fleet.yaml simulated testers are processes of one machine
    tester = text_of(run.command.get("tester")) if text_of(run.command.get("fleet")) or not run.simulated else None
    return {"path": path, **own, "facts": facts, "tester": tester or "", **texts}


def row_of(result: RunResult, path: str) -> RunRow:
    """Make the row of a packet run."""
    directions, cell, held = result.analysis.directions, cell_of(result), result.held_cost
    uncertainty = sum(part.uncertainty_pps for part in directions)  # a DUT's directions err alike
    figures = {"total_pps": Figure(result.analysis.total_pps, uncertainty, result.analysis.at_least)}
    figures |= figures_of(held, "cycles_per_packet", "with_polling", "vectors_per_call", "power_w", "uj_per_packet")
    lost = max((part.hold_loss for part in directions if part.hold_loss is not None), default=None)
    for name, value in (("hold_loss", lost), ("latency_s", history_latency(result.latencies))):
        figures |= {} if value is None else {name: Figure(value)}
    header = header_of(result, path) | ({"status": UNANSWERED} if result.no_answer else {})
    first, *others = result.profiles.values()
    unlike = [profile for profile in others if profile.get("mix") != first.get("mix")]  # other frame sizes
    digests = [text_of(profile.get("digest")) for profile in (first, *unlike)]
    return RunRow(
        **header,
        cell=cell,
        aim=RATE.column if cell.held_pps is None else COST.column,
        figures=figures,
        limit=max((part.limit for part in directions), key=_WORSE.index, default=Limit.NONE).value,
        traffic="+".join(digest for digest in digests if digest) or None,
        through=result.over,
        line_rate_bps=fmean(offer.line_rate_bps for offer in result.plan.offers),
        line_share=result.plan.line_share({part.direction: part.maximum_pps for part in directions}),
        loss_threshold=result.plan.loss_threshold,
        nodes={} if held is None or held.cycles_per_packet is None else _node_costs(held),
        warnings=len(result.warnings) + len(result.analysis_warnings) + len(result.dut_warnings),
    )


def _node_costs(cost: Cost) -> dict[str, float]:
    """Return cycles per packet by node: the mean over all workers' packets, adding up to cycles_per_packet."""
    packets = sum(worker.packets or 0 for worker in cost.workers)
    by_node: dict[str, float] = {}
    for worker in cost.workers if packets else ():
        for node in (node for node in worker.nodes if not node.is_input):
            share = node.cycles_per_packet * (worker.packets or 0) / packets
            by_node[node.name] = by_node.get(node.name, 0.0) + share
    return by_node


def rows_of_tcp(result: TcpResult, path: str) -> tuple[RunRow, ...]:
    """Make a row for each kind of leg in the plan; one without a figure is incomplete, whatever the run is."""
    summaries = {summary.kind: summary for summary in result.summaries}
    kinds = dict.fromkeys([*(leg.kind for leg in result.plan.legs), *summaries])
    return tuple(_row_of_tcp(result, path, kind, summaries.get(kind)) for kind in kinds)


def _row_of_tcp(result: TcpResult, path: str, kind: Leg, summary: LegSummary | None) -> RunRow:
    header, through, plan = header_of(result, path), result.setup.path(kind.version), result.plan
    monitored = result.command.get("telemetry") is not False
    mode = TcpMode(kind.way, kind.version, plan.streams, monitored, kind.buffer_bytes, kind.congestion, plan.pinned)
    rate, limit, link_bps = Figure(0.0, at_least=True), TcpLimit.UNKNOWN, None
    if summary is not None:
        rate = Figure(summary.rate_bps, summary.uncertainty_bps or 0.0, summary.at_least)
        limit, link_bps = summary.limit, summary.link_bps
    elif result.status is Status.COMPLETE:
        header["status"] = Status.INCOMPLETE.value
    names = "power_w", "idle_power_w", "retransmitted", "cores_per_gbps", "ping_idle_s", "ping_loaded_s"
    # runs by other engines and congestion controls are not comparable
    ends = [end for leg in result.legs if leg.leg.kind == kind for end in leg.program.values()]
    used = {str(name) for end in ends if (name := end.get("congestion")) is not None}
    control = "+".join(sorted(used)) or kind.congestion or plan.congestion or "default"
    marks = {"zerocopy": plan.zerocopy, "pinned": plan.pinned}
    return RunRow(
        **header,
        cell=placed(Cell("", mode, kind.way is Way.BIDIR, None, TCP_KIND), result, through),
        aim=TCP_RATE.column,
        figures={TCP_RATE.column: rate, **figures_of(summary, *names)},
        limit=limit.value,
        traffic=", ".join([f"TCP by {plan.engine}", control, *(name for name, is_on in marks.items() if is_on)]),
        through=through,
        line_rate_bps=result.setup.line_bps or 0.0,
        line_share=rate.value / link_bps if link_bps else 0.0,
        warnings=len(result.warnings) + len(result.analysis_warnings),
    )


def cells_of(rows: Iterable[RunRow]) -> dict[Cell, list[RunRow]]:
    """Group complete runs by cell, marked as its last run is, each in order of time."""
    by_cell: dict[Cell, list[RunRow]] = {}
    for row in sorted((row for row in rows if row.complete), key=lambda row: row.started):
        by_cell.setdefault(row.cell, []).append(row)
    return {runs[-1].cell: runs for runs in by_cell.values()}
