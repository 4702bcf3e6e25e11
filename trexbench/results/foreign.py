"""A run of TCP that another tool has measured: how it is named, who says so, and what nobody knows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import StoreError
from ..core.history.rows import RunRow
from ..core.names import REMEDY, is_name, shown
from ..core.tcp.model import LegReadings, TcpEnvironment, TcpPlan
from ..core.tcp.result import TcpResult
from ..core.typed import Status
from ..core.verdict.model import RunWarning
from .document import checked_rows

_UNKNOWN = "nothing is known of the router, nor of the endpoints' cores and what they carry without it"


@dataclass(frozen=True)
class Given:
    """Facts given about a file besides its content. dut: the DUT's name. line_bps: of the slowest line on the way.

    written: when the file was, UTC. digest: of its content.
    """

    dut: str
    written: str
    digest: str
    label: str | None = None
    line_bps: float | None = None


def imported_run(
    given: Given,
    tool: str,
    started: str,
    plan: TcpPlan,
    leg: LegReadings,
    warnings: Sequence[RunWarning] = (),
    endpoints: Mapping[str, Any] | None = None,
    reason: str | None = None,
) -> TcpResult:
    """The run of one leg that ``tool`` measured. reason: why it is incomplete.

    StoreError where the DUT cannot have such a name, or for figures that no run can have.
    """
    if not is_name(given.dut):
        raise StoreError(f"the DUT's name cannot be {shown(given.dut)}", f"it takes {REMEDY}; say it with --dut")
    result = TcpResult(
        id=f"{started}-{given.dut}-tcp-{given.digest}-imported",
        started=started,
        status=Status.COMPLETE if reason is None else Status.INCOMPLETE,
        reason=reason,
        command={
            "verb": "tcp",
            "ways": [leg.leg.way.value],
            "imported": True,
            "source": tool,
            "telemetry": False,
            "label": given.label,
        },
        plan=plan,
        setup=TcpEnvironment(line_bps=given.line_bps),
        dut={"name": given.dut, "description": f"{given.dut}, imported from a file of {tool}"},
        endpoints=endpoints or {},
        host={},
        legs=(leg,),
        warnings=(RunWarning("imported", f"imported from {tool}: {_UNKNOWN}"), *warnings),
    )
    _check(checked_rows(result))
    return result


def _check(rows: Sequence[RunRow]) -> None:
    if not any(row.total_bps for row in rows):
        raise StoreError("no payload was measured in it", "it takes a test in which something was sent")
