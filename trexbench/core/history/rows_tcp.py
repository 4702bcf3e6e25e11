"""Runs of TCP as rows: one for each way and version. Pure."""

from __future__ import annotations

from typing import Any

from ..result import Status
from ..tcp.limit import TcpLimit
from ..tcp.model import Leg, TcpMode, Way
from ..tcp.result import LegSummary, TcpResult
from .cell import TCP_KIND, Cell, placed, text_of
from .rows import RunRow


def rows_of_tcp(result: TcpResult, path: str) -> tuple[RunRow, ...]:
    """A row for each kind of leg of the plan; one without a figure is incomplete, whatever the run is."""
    found = {one.kind: one for one in result.summaries}
    kinds = dict.fromkeys([*(leg.kind for leg in result.plan.legs), *found])
    return tuple(_row_of_tcp(result, path, kind, found.get(kind)) for kind in kinds)


def _row_of_tcp(result: TcpResult, path: str, kind: Leg, found: LegSummary | None) -> RunRow:
    command = result.command
    figures: dict[str, Any] = {name: getattr(found, name, None) for name in _TCP_FIGURES}
    link_bps = (found and found.link_bps) or 0.0
    rate_bps = found.rate_bps if found is not None else 0.0
    status = result.status
    through = result.setup.path(kind.version)
    return RunRow(
        path=path,
        id=result.id,
        started=result.started,
        status=(Status.INCOMPLETE if status is Status.COMPLETE and found is None else status).value,
        cell=placed(Cell("", _tcp_mode(result, kind), kind.way is Way.BIDIR, None, TCP_KIND), result, through),
        traffic=_tcp_traffic(result, kind),
        through=through,
        line_rate_bps=result.setup.line_bps or 0.0,
        loss_threshold=0.0,
        facts=text_of(result.dut.get("facts_sha256")),
        suite=text_of(command.get("suite")),
        night=text_of(command.get("night")),
        label=text_of(command.get("label")),
        total_pps=0.0,
        at_least=found.at_least if found is not None else True,
        uncertainty_pps=0.0,
        line_share=rate_bps / link_bps if link_bps else 0.0,
        limit=(found.limit if found is not None else TcpLimit.UNKNOWN).value,
        warnings=len(result.warnings) + len(result.analysis_warnings),
        total_bps=rate_bps,
        uncertainty_bps=(found and found.uncertainty_bps) or 0.0,
        **figures,
    )


_TCP_FIGURES = ("power_w", "idle_power_w", "retransmitted", "cores_per_gbps", "ping_idle_s", "ping_loaded_s")
"""Fields that a Summary and a RunRow share."""


def _tcp_mode(result: TcpResult, kind: Leg) -> TcpMode:
    monitored = result.command.get("telemetry") is not False
    plan = result.plan
    return TcpMode(kind.way, kind.version, plan.streams, monitored, kind.buffer_bytes, kind.congestion, plan.pinned)


def _tcp_traffic(result: TcpResult, kind: Leg) -> str:
    """Describe how the payload was sent: other engines and congestion controls do not compare."""
    plan = result.plan
    legs = [leg for leg in result.legs if leg.leg.kind == kind]
    told = {str(name) for leg in legs for one in leg.program.values() if (name := one.get("congestion")) is not None}
    control = "+".join(sorted(told)) or kind.congestion or plan.congestion or "default"
    marks = {"zerocopy": plan.zerocopy, "pinned": plan.pinned}
    return ", ".join([f"TCP by {plan.engine}", control, *(name for name, on in marks.items() if on)])
