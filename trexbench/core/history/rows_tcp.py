"""Runs of TCP as rows: one for each way and version. Pure."""

from __future__ import annotations

from ..result import Status
from ..tcp.limit import TcpLimit
from ..tcp.model import Leg, TcpMode, Way
from ..tcp.result import LegSummary, TcpResult
from .cell import TCP_KIND, Cell, placed
from .rows import TCP_RATE, Figure, RunRow, figures_of, header_of


def rows_of_tcp(result: TcpResult, path: str) -> tuple[RunRow, ...]:
    """A row for each kind of leg of the plan; one without a figure is incomplete, whatever the run is."""
    found = {one.kind: one for one in result.summaries}
    kinds = dict.fromkeys([*(leg.kind for leg in result.plan.legs), *found])
    return tuple(_row_of_tcp(result, path, kind, found.get(kind)) for kind in kinds)


def _row_of_tcp(result: TcpResult, path: str, kind: Leg, found: LegSummary | None) -> RunRow:
    header, through, link_bps = header_of(result, path), result.setup.path(kind.version), found and found.link_bps
    rate = Figure(0.0, at_least=True)
    if found is not None:
        rate = Figure(found.rate_bps, found.uncertainty_bps or 0.0, found.at_least)
    elif result.status is Status.COMPLETE:
        header["status"] = Status.INCOMPLETE.value
    names = "power_w", "idle_power_w", "retransmitted", "cores_per_gbps", "ping_idle_s", "ping_loaded_s"
    return RunRow(
        **header,
        cell=placed(Cell("", _tcp_mode(result, kind), kind.way is Way.BIDIR, None, TCP_KIND), result, through),
        aim=TCP_RATE.column,
        figures={TCP_RATE.column: rate, **figures_of(found, *names)},
        limit=(found.limit if found is not None else TcpLimit.UNKNOWN).value,
        traffic=_tcp_traffic(result, kind),
        through=through,
        line_rate_bps=result.setup.line_bps or 0.0,
        line_share=rate.value / link_bps if link_bps else 0.0,
        warnings=len(result.warnings) + len(result.analysis_warnings),
    )


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
