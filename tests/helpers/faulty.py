"""Twins beside which something else goes wrong: their router stalls, a cable loses frames, a switch doubles them.

result = measure_with(twin, Faults(stalls=((20.0, 22.5),)))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs import make_result
from twins import Box, Twin, measure

from trexbench.core.dut.telemetry import DutReading, Moment, Observation, PortCount
from trexbench.core.result import RunResult
from trexbench.twin.delay import Delay
from trexbench.twin.ports import Arrival, Router
from trexbench.twin.router import TwinRouter


@dataclass(frozen=True)
class Faults:
    """stalls: begin and end (s, after the baseline) of times in which nothing is forwarded. The others are shares.

    cable_loss: lost behind the router, at any rate. duplicated: of what it forwards, comes twice.
    """

    stalls: Sequence[tuple[float, float]] = ()
    cable_loss: float = 0.0
    duplicated: float = 0.0


class FaultyRouter:
    """A router with faults around it, which counts the frames of its interfaces itself."""

    def __init__(self, router: Router, faults: Faults) -> None:
        self.router, self.faults, self.now_s = router, faults, 0.0
        self.got: dict[int, float] = {}
        self.gone: dict[int, float] = {}

    def spread(self, port: int, packets: Sequence[bytes]) -> tuple[float, ...]:
        return self.router.spread(port, packets)

    def carry(self, span_s: float, arrivals: Sequence[Arrival]) -> Sequence[float]:
        begin_s, self.now_s = self.now_s, self.now_s + span_s
        down_s = sum(max(0.0, min(self.now_s, end) - max(begin_s, begin)) for begin, end in self.faults.stalls)
        share = 1 - min(1.0, down_s / span_s) if span_s else 1.0
        left = [count * share for count in self.router.carry(span_s, arrivals)]
        for arrival, count in zip(arrivals, left, strict=True):
            self.got[arrival.port] = self.got.get(arrival.port, 0.0) + arrival.frames
            self.gone[arrival.port] = self.gone.get(arrival.port, 0.0) + count
        after = (1 - self.faults.cable_loss) * (1 + self.faults.duplicated)
        return [count * after for count in left]

    def delays(self, port: int, tag: int) -> Sequence[Delay]:
        return self.router.delays(port, tag)

    def kept(self, port: int, tag: int) -> float:
        return self.router.kept(port, tag)


def measure_with(twin: Twin | Box, faults: Faults = Faults()) -> RunResult:
    """The result of measuring this twin, whose counters are read in silence before and after."""
    router = FaultyRouter(TwinRouter(twin.spec, seed=twin.seed) if isinstance(twin, Box) else twin.router(), faults)
    outcome = measure(twin, router)
    assert outcome.error is None, outcome.error
    partner = {direction.tx: direction.rx for direction in twin.plan.directions}
    gone = {partner[port]: count for port, count in router.gone.items() if port in partner}
    counts = [PortCount(port, round(router.got.get(port, 0)), round(gone.get(port, 0))) for port in twin.plan.ports]
    seen = (
        Observation(ports=tuple(PortCount(port, 0, 0) for port in twin.plan.ports)),
        Observation(ports=tuple(counts)),
    )
    readings = (
        DutReading(Moment.START, 0.0, 0.0, seen[0]),
        DutReading(Moment.FINISH, outcome.samples[-1].t_s, 0.0, seen[1]),
    )
    return make_result(twin.plan, samples=tuple(outcome.samples), dut_readings=readings, telemetry="hold")
