"""Twins beside which something else goes wrong: their router stalls, a cable loses frames, a switch doubles them.

result = measure_with(twin, Faults(stalls=((20.0, 22.5),)))
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf

from runs import around, make_result
from twins import SkewedTester, Twin, measure, random_twin

from trexbench.core.dut.telemetry import Observation, PortCount
from trexbench.core.load.plan import Direction
from trexbench.core.load.sample import Phase
from trexbench.core.result import RunResult
from trexbench.core.strategy.ramp import Ramp
from trexbench.core.verdict.parts import DirectionResult, Limit
from trexbench.twin.latency import Delay
from trexbench.twin.world import Arrival, Router

FAR = 0.05
"""A knee that lies above its interval by this share was not found."""


@dataclass(frozen=True)
class Faults:
    """stalls: begin and end (s, after the baseline) of times in which nothing is forwarded. The others are shares.

    cable_loss: lost behind the router, at any rate. duplicated: of what it forwards, comes twice.
    """

    stalls: Sequence[tuple[float, float]] = ()
    cable_loss: float = 0.0
    duplicated: float = 0.0

    @property
    def after(self) -> float:
        """Number of frames that arrive for each that the router forwards."""
        return (1 - self.cable_loss) * (1 + self.duplicated)


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
        return [count * self.faults.after for count in left]

    def delays(self, port: int, tag: int) -> Sequence[Delay]:
        return self.router.delays(port, tag)

    def kept(self, port: int, tag: int) -> float:
        return self.router.kept(port, tag)


def measure_with(twin: Twin, faults: Faults) -> RunResult:
    """The result of measuring this twin, whose counters are read in silence before and after."""
    router = FaultyRouter(twin.router(), faults)
    outcome = measure(twin, router)
    assert outcome.error is None, outcome.error
    partner = {direction.tx: direction.rx for direction in twin.plan.directions}
    gone = {partner[port]: count for port, count in router.gone.items() if port in partner}
    counts = (PortCount(port, round(router.got.get(port, 0)), round(gone.get(port, 0))) for port in twin.plan.ports)
    looks = around(Observation(ports=tuple(counts)), outcome.samples[-1].t_s)
    return make_result(twin.plan, samples=tuple(outcome.samples), dut_readings=looks, telemetry="hold")


@dataclass(frozen=True)
class Mixed:
    """A twin with several faults at once; receiver_pps: what the tester's port receives without counting the rest."""

    twin: Twin
    faults: Faults
    sender_pps: float | None = None
    receiver_pps: Mapping[int, float] = field(default_factory=dict)

    def limit_of(self, direction: Direction) -> tuple[Limit, float]:
        """Return what ends this direction first, and at which rate (for the DUT: its knee)."""
        knee = self.twin.knee_pps(direction)
        ends = {Limit.DUT: knee, Limit.GENERATOR_RX: self.receiver_pps.get(direction.rx, inf) / self.faults.after}
        ends[Limit.GENERATOR_TX] = inf if self.sender_pps is None else self.sender_pps
        first = min(ends, key=lambda limit: ends[limit])
        return (first, ends[first]) if ends[first] < self.twin.plan.offer(direction).target_pps else (Limit.NONE, inf)

    def measure(self) -> RunResult:
        return measure_with(self.twin, self.faults)


def random_mixed(rng: random.Random, seed: int, noise: float = 0.01) -> Mixed:
    """A random twin in which each fault happens to one in three: stalls, cable, duplicates, tester, skew."""
    twin = random_twin(rng, seed, noise)
    assert isinstance(twin.plan, Ramp)
    plan = replace(twin.plan, confirm_s=5.0)
    knees = {direction: twin.knee_pps(direction) for direction in plan.directions}
    often = partial(_happens, rng)
    stalls = []
    for _ in range(2):
        begin_s = rng.uniform(plan.warmup_s, plan.warmup_s + plan.length_s(Phase.RAMP))
        stalls += [(begin_s, begin_s + rng.uniform(0.2, 5.0))] if often() else []
    lossy, twice = 10 ** rng.uniform(-3.3, -1.3), 10 ** rng.uniform(-3, -2)
    faults = Faults(stalls, lossy if often() else 0.0, twice if often() else 0.0)
    shares = {d.rx: rng.choice([rng.uniform(0.4, 0.93), rng.uniform(1.2, 2)]) for d in knees}
    receiver = {d.rx: shares[d.rx] * knee * faults.after for d, knee in knees.items()}
    receiver = receiver if often() else {}
    sender = rng.uniform(0.3, 2.0) * min(knees.values()) if often() and often() else None
    if sender is not None and any(0.75 < sender / knee < 1.35 for knee in knees.values()):
        sender = None  # too near to say which comes first
    tester = SkewedTester(
        tx_limit_pps=sender,
        rx_limit_pps=receiver or None,
        rx_overload="silent",
        overload=rng.choice(["stretch", "queue-full"]),
        skew_s=rng.uniform(0, plan.loss_threshold * plan.window_s) if often() else 0.0,
    )
    return Mixed(replace(twin, plan=plan, tester=tester), faults, sender, receiver)


def compare(one: DirectionResult, limit: Limit, pps: float) -> str:
    """Compare a verdict to what ended the direction, and at which rate (for the DUT: its knee).

    right; a bound: ended by the DUT, but not laid to it; outside: of its interval. WRONG: laid to the DUT though
    something else ended it, or so far below the knee that something else was taken for it.
    """
    if one.limit is not Limit.DUT:
        return "right" if limit is not Limit.DUT else "a bound"
    if limit is not Limit.DUT:
        return "WRONG"
    low, high = one.low_pps or 0.0, one.high_pps or 0.0
    if low - 2 <= pps <= high + 2:  # frames are whole
        return "right"
    return "WRONG" if high < pps * (1 - FAR) else "outside"


def _happens(rng: random.Random) -> bool:
    return rng.random() < 1 / 3
