"""Rows: one run each (of TCP: one way each), as in the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ..dut.runtime import WorkerEfficiency
from ..result import RunResult, Status
from ..tcp.path import TrafficPath
from ..verdict.latency import history_latency
from ..verdict.model import Limit
from .cell import Cell, cell_of, text_of


@dataclass(frozen=True)
class RunRow:
    """The index entry of one run's document. None: absent.

    path: below the results directory. started: UTC, ISO 8601. traffic: digest of what went on the wire; through: what
    it passed besides the DUT. facts: SHA-256 of what was read back from the DUT. suite, night: of a suite's run
    (night: a date); label: the user's. total_pps: of all directions, a lower bound where at_least;
    uncertainty_pps: of that sum; line_share: total in line rates of one direction, so up to 2 in both. limit: of the
    worst direction (``dut``, ``generator-tx`` ...). hold_loss, latency_s: the worst direction's; latency_s is the mean
    at half of the throughput. cycles_per_packet and the like: of RunResult.held_cost. nodes: cycles_per_packet by VPP's
    node, over all workers, so without input nodes, which poll.

    A run of TCP has a row for each way and version. Its rate is total_bps, of payload as it was received, and
    uncertainty_bps; total_pps is 0. retransmitted: segments sent again, as a share. cores_per_gbps: of the DUT, per
    Gbit/s. idle_power_w: of the DUT, with nothing but echo requests passing. ping_idle_s, ping_loaded_s: mean round
    trips while nothing else was sent, and while the leg ran.
    """

    path: str
    id: str
    started: str
    status: str
    cell: Cell
    traffic: str | None
    through: TrafficPath | None
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
    latency_s: float | None = None
    cycles_per_packet: float | None = None
    with_polling: float | None = None
    vectors_per_call: float | None = None
    power_w: float | None = None
    uj_per_packet: float | None = None
    nodes: Mapping[str, float] = field(default_factory=dict)
    warnings: int = 0
    label: str | None = None
    total_bps: float | None = None
    uncertainty_bps: float = 0.0
    retransmitted: float | None = None
    cores_per_gbps: float | None = None
    ping_idle_s: float | None = None
    ping_loaded_s: float | None = None
    idle_power_w: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON values, with names in place of what they stand for."""
        return {**vars(self), "cell": self.cell.to_dict(), "through": str(self.through or "")}

    @property
    def complete(self) -> bool:
        return self.status == Status.COMPLETE.value

    @property
    def rate(self) -> float:
        """The run's figure, in rate_unit."""
        return self.total_pps if self.total_bps is None else self.total_bps

    @property
    def rate_unit(self) -> str:
        return "pps" if self.total_bps is None else "bit/s"

    @property
    def packet_rate(self) -> float | None:
        """total_pps; None for TCP, and where the rate was given, since such a run does not look for a maximum."""
        return self.total_pps if self.total_bps is None and self.cell.held_pps is None else None

    @property
    def uncertainty(self) -> float:
        """Uncertainty of the rate, in rate_unit."""
        return self.uncertainty_pps if self.total_bps is None else self.uncertainty_bps


@dataclass(frozen=True)
class Metric:
    """A figure that is followed over the nights."""

    name: str
    unit: str
    better: str
    """``higher`` or ``lower``."""
    rank: int
    """Its place among figures that a change moves: the most telling has the lowest."""
    of: Callable[[RunRow], float | None]
    minimum: float
    """Smallest share of a change that is reported, however significant; absolute: the same in the figure's unit."""
    absolute: float = 0.0
    bounded: bool = False
    """The value is only a bound where the run's rate is (RunRow.at_least)."""


RATE = Metric("maximum rate", "pps", "higher", 0, lambda row: row.packet_rate, 0.01, bounded=True)
TCP_RATE = Metric("TCP rate", "bit/s", "higher", 0, lambda row: row.total_bps, 0.01, bounded=True)
COST = Metric("cycles/packet", "cycles", "lower", 1, lambda row: row.cycles_per_packet, 0.01)
METRICS: tuple[Metric, ...] = (
    RATE,
    COST,
    Metric("loss in the hold", "share", "lower", 8, lambda row: row.hold_loss, 0.02, absolute=0.001),
    Metric("latency", "us", "lower", 3, lambda row: row.latency_s and 1e6 * row.latency_s, 0.05, absolute=1.0),
    Metric("power", "W", "lower", 6, lambda row: row.power_w, 0.02),
    TCP_RATE,
    Metric("CPU per Gbit/s", "cores", "lower", 2, lambda row: row.cores_per_gbps, 0.02, absolute=0.01),
    Metric("retransmitted", "share", "lower", 9, lambda row: row.retransmitted, 0.05, absolute=0.0005),
    Metric("idle power", "W", "lower", 7, lambda row: row.idle_power_w, 0.02),
    Metric("ping idle", "us", "lower", 5, lambda row: row.ping_idle_s and 1e6 * row.ping_idle_s, 0.05, absolute=20.0),
    Metric(
        "ping loaded", "us", "lower", 4, lambda row: row.ping_loaded_s and 1e6 * row.ping_loaded_s, 0.05, absolute=50.0
    ),
)
"""Every figure that is followed."""


def row_of(result: RunResult, path: str) -> RunRow:
    """The row of one run."""
    command, directions, total_pps = result.command, result.analysis.directions, result.analysis.total_pps
    figures: dict[str, Any] = {}
    if (held := result.held_cost) is not None:
        nodes = _nodes(held.workers) if held.cycles_per_packet is not None else {}
        figures = {name: getattr(held, name) for name in _FIGURES} | {"nodes": nodes}
    return RunRow(
        path=path,
        id=result.id,
        started=result.started,
        status=UNANSWERED if result.no_answer else result.status.value,
        cell=cell_of(result),
        traffic=_traffic(result),
        through=result.over,
        line_rate_bps=fmean(offer.line_rate_bps for offer in result.plan.offers),
        loss_threshold=result.plan.loss_threshold,
        facts=text_of(result.dut.get("facts_sha256")),
        suite=text_of(command.get("suite")),
        night=text_of(command.get("night")),
        label=text_of(command.get("label")),
        total_pps=total_pps,
        at_least=result.analysis.at_least,
        uncertainty_pps=sum(one.uncertainty_pps for one in directions),  # a DUT's directions err alike
        line_share=result.plan.line_share({one.direction: one.maximum_pps for one in directions}),
        limit=max((one.limit for one in directions), key=_WORSE.index, default=Limit.NONE).value,
        hold_loss=max((one.hold_loss for one in directions if one.hold_loss is not None), default=None),
        latency_s=history_latency(result.latencies),
        warnings=len(result.warnings) + len(result.analysis_warnings) + len(result.dut_warnings),
        **figures,
    )


UNANSWERED = "no answer"
"""The status of a row whose run went to its end and found nothing that a history could judge."""


_FIGURES = ("cycles_per_packet", "with_polling", "vectors_per_call", "power_w", "uj_per_packet")
"""Fields that a Cost and a RunRow share."""
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


def cells_of(rows: Iterable[RunRow]) -> dict[Cell, list[RunRow]]:
    """Complete runs by cell, each in the order of time."""
    found: dict[Cell, list[RunRow]] = {}
    for row in sorted((row for row in rows if row.complete), key=lambda row: row.started):
        found.setdefault(row.cell, []).append(row)
    return found
