"""A tester's limits without a DUT: measured with its ports back to back, and compared with later runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import msgspec

from .load.windows import measured_windows
from .result import RunResult
from .units import format_pps, format_share
from .verdict.parts import DirectionResult, Limit, RunWarning

NEAR_SHARE = 0.9
"""A DUT that carries more than this share of what its tester can may not have been the limit alone."""
STEADY_SHARE = 0.5
"""Share of the limit up to which the accuracy of a sent rate is judged: near it a generator falls behind."""


@dataclass(frozen=True)
class TesterLimit:
    """Limit of one direction of a tester, with one traffic."""

    mode: str
    frames: str  # digest of the traffic
    direction: str
    bidir: bool
    carried_pps: float  # the most without a DUT
    limit: str  # why no more
    sent_pps: float  # the most in a window
    error: float  # median deviation of the rate sent from that asked for, as a share
    floor_s: float | None  # mean latency at the lowest load; None where frames were not timed


@dataclass(frozen=True)
class Calibration:
    """A tester's limits."""

    tester: str
    measured: str  # time, in UTC
    server: str  # its version
    simulated: bool  # no real frame was sent
    limits: tuple[TesterLimit, ...]

    def limit_of(self, result: RunResult, direction: Any) -> TesterLimit | None:
        """Return the limit for the run's frames, ports and number of directions; None where it was not measured."""
        wanted = (result.profiles[direction].get("digest"), str(direction), result.command["direction"] == "bidir")
        return next((limit for limit in self.limits if (limit.frames, limit.direction, limit.bidir) == wanted), None)

    def of_run(self, result: RunResult) -> dict[str, Any] | None:
        """Return the part that a run's document keeps; None where no limit is about this run's traffic."""
        limits = [asdict(limit) for d in result.plan.directions if (limit := self.limit_of(result, d)) is not None]
        return {"measured": self.measured, "limits": limits} if limits else None

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=1)

    @classmethod
    def from_json(cls, data: bytes) -> Calibration:
        """Read a calibration; ValueError where it is none."""
        return msgspec.json.decode(data, type=cls)


def calibrate(result: RunResult) -> Iterator[TesterLimit]:
    """Yield the limits that a run without a DUT has shown."""
    floors = {latency.direction: latency.mean_s for latency in reversed(result.latencies)}
    for verdict in result.analysis.directions:
        windows = [w for w in measured_windows(result.plan, result.samples, verdict.direction) if w.sent]
        steady = [w for w in windows if w.asked_pps <= STEADY_SHARE * verdict.maximum_pps] or windows
        yield TesterLimit(
            mode=str(result.command["mode"]),
            frames=str(result.profiles[verdict.direction].get("digest")),
            direction=str(verdict.direction),
            bidir=result.command["direction"] == "bidir",
            carried_pps=verdict.maximum_pps,
            limit=verdict.limit.value,
            sent_pps=max((w.sent_pps for w in windows), default=0.0),
            error=median(abs(w.sent_pps / w.asked_pps - 1) for w in steady) if steady else 0.0,
            floor_s=floors.get(verdict.direction),
        )


def floors_of(result: RunResult) -> dict[str, float]:
    """The tester's own latency by direction, in seconds, from the run's document; empty where it has none."""
    known = result.generator.get("calibration")
    try:
        limits = msgspec.convert(known["limits"] if known else (), tuple[TesterLimit, ...])
    except (msgspec.ValidationError, LookupError, TypeError):
        return {}
    return {limit.direction: limit.floor_s for limit in limits if limit.floor_s is not None}


def calibration_warnings(
    calibration: Calibration, result: RunResult, directions: Sequence[DirectionResult]
) -> Iterator[RunWarning]:
    """Report directions laid to the DUT at a rate that the tester itself hardly carries."""
    for verdict in directions:
        limit = calibration.limit_of(result, verdict.direction)
        if limit is None or verdict.limit is not Limit.DUT or not limit.carried_pps or limit.limit == Limit.NONE.value:
            continue  # a calibration that found no limit knows of none nearby
        share = verdict.maximum_pps / limit.carried_pps
        if share > NEAR_SHARE:
            most = f"{format_pps(limit.carried_pps)}, calibrated {calibration.measured[:10]}"
            text = f"{verdict.direction}: {format_share(share)} of what the tester carries without a DUT ({most})"
            yield RunWarning("near-testers-limit", f"{text}: part of the limit may be the tester's")
