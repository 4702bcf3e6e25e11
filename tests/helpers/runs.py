"""Plausible runs without a packet: ``runner.run`` against a router that is a few lines of arithmetic, on a held clock.

    outcome = simulate(make_plan(bidir=True), World(capacity_pps=0.66e6))
    result = make_result(make_plan(), World(tx_limit_pps=1e6))

Everything is deterministic for a seed, and nothing sleeps.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from trexbench.core.dut.telemetry import DutReading, Moment, Observation, PortCount
from trexbench.core.load.plan import MIN_OFFERED_PPS, Direction, Offer, pair_directions
from trexbench.core.load.sample import LatencyCounters, PortCounters, Reading, Sample
from trexbench.core.protocols import Sink
from trexbench.core.result import RunResult, Status
from trexbench.core.strategy.analysis import analyse
from trexbench.core.strategy.base import Strategy
from trexbench.core.strategy.kinds import STRATEGIES
from trexbench.core.units import line_rate_pps
from trexbench.core.verdict.parts import Analysis
from trexbench.session import loop as runner
from trexbench.stlserver.engine import bucket_us

GIGABIT = 1e9


@dataclass(frozen=True)
class World:
    """The router, the cables and the generator of a simulated run. Rates in frames per second.

    capacity_pps: what one direction forwards at most (or by direction's name, "0->1"); shared_capacity_pps: all
    directions together. collapse: how many forwarded frames each frame above the capacity costs (livelock).
    speed: factor of the capacity at a time. base_loss: share lost at any load, or at each rate asked for.
    noise: relative deviation of the capacity per interval. latency_s: in flight.
    back_loss, duplicated: shares of the forwarded frames that are lost behind the router, or come twice.
    tx_limit_pps, rx_limit_pps: of a port of the generator, as is cpu_at_full_percent; rx_silent: no ierrors tell of it.
    queue_full_by_port: not only the sum is told. foreign_pps: frames of others that reach every port.
    blips: (begin_s, end_s) in which nothing is forwarded. read_s: between the readings of two ports.
    late_s: how late the loop wakes at most. fail_at_s: from when on reading raises ``failure``. frame_s: what tagged
    frames take when idle; half as much again at the capacity.
    """

    capacity_pps: float | Mapping[str, float] = math.inf
    shared_capacity_pps: float = math.inf
    speed: Callable[[float], float] | None = None
    collapse: float = 0.0
    base_loss: float | Callable[[float], float] = 0.0
    back_loss: float = 0.0
    duplicated: float = 0.0
    noise: float = 0.0
    latency_s: float = 0.0
    tx_limit_pps: float | Mapping[int, float] = math.inf
    rx_limit_pps: float | Mapping[int, float] = math.inf
    rx_silent: bool = False
    foreign_pps: float = 0.0
    blips: Sequence[tuple[float, float]] = ()
    dead_ports: Sequence[int] = ()
    link_down_at_s: float = math.inf
    reports_queue_full: bool = True
    queue_full_by_port: bool = False
    cpu_at_full_percent: float | Mapping[int, float] | None = 40.0
    read_s: float = 0.0
    late_s: float = 0.0
    fail_at_s: float = math.inf
    failure: BaseException | None = None
    frame_s: float = 20e-6
    seed: int = 1

    def capacity(self, direction: Direction) -> float:
        return _value_of(self.capacity_pps, str(direction))


def _value_of(figure: float | Mapping[Any, float], key: Any, otherwise: float = math.inf) -> float:
    """A figure of a World for one direction or port, if it is not the same for all."""
    return figure.get(key, otherwise) if isinstance(figure, Mapping) else figure


@dataclass
class HeldClock:
    """The run's time, which passes only when somebody asks to sleep."""

    now_s: float = 0.0
    late_s: float = 0.0
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def now(self) -> float:
        return self.now_s

    def sleep_until(self, t_s: float) -> None:
        self.now_s = max(self.now_s, t_s + (self.rng.uniform(0, self.late_s) if self.late_s else 0.0))


@dataclass
class _Port:
    opackets: int = 0
    ipackets: int = 0
    ierrors: int = 0
    owed: float = 0.0  # the fraction of a frame that is not sent yet


class SimulatedGenerator:
    """A generator wired to the World's router; ``calls`` records what it was told, in order."""

    def __init__(self, plan: Strategy, world: World, clock: HeldClock) -> None:
        self.plan, self.world, self.clock = plan, world, clock
        self.calls: list[tuple[Any, ...]] = []
        self.rates: dict[int, float] = {}
        self.deadline_s = 0.0
        self._rng = random.Random(world.seed)
        self._ports = {p: _Port() for p in plan.ports}
        self._flying = dict.fromkeys(plan.directions, 0)
        self.passed = dict.fromkeys(plan.directions, 0)
        self._tagged: dict[Direction, tuple[float, float, float]] = {}
        self._load_pps: dict[int, float] = {}
        self._queue_full = dict.fromkeys(plan.ports, 0)
        self._then_s = clock.now_s

    def start(self, rates_pps: Mapping[int, float], duration_s: float) -> None:
        self._pass_time()
        self.calls.append(("start", dict(rates_pps), duration_s))
        self.rates, self.deadline_s = dict(rates_pps), self.clock.now_s + duration_s
        self._load_pps = dict(rates_pps)

    def update(self, rates_pps: Mapping[int, float]) -> None:
        self._pass_time()
        self.calls.append(("update", dict(rates_pps)))
        self.rates.update(rates_pps)

    def stop(self) -> None:
        self._pass_time()
        self.calls.append(("stop",))
        self.rates = {}

    def tag(self, rates_pps: Mapping[int, float]) -> None:
        self.calls.append(("tag", dict(rates_pps)))
        assert not self.rates
        self._tagged = {d: (rates_pps[d.tx], 0.0, 0.0) for d in self.plan.directions}

    def read(self) -> Reading:
        if self.clock.now_s >= self.world.fail_at_s and self.world.failure is not None:
            raise self.world.failure
        ports = {}
        for number in self._ports:
            self.clock.now_s += self.world.read_s
            self._pass_time()
            ports[number] = self._counters(number)
        full = sum(self._queue_full.values())
        latency = {d.tx: self._timed(d) for d in self._tagged}
        return Reading(ports, full if self.world.reports_queue_full else None, latency)

    def observe(self) -> Observation:
        """Return what the router counts on its interfaces."""
        got = {d.tx: self._ports[d.tx].opackets for d in self.plan.directions}
        gone = {d.rx: passed for d, passed in self.passed.items()}
        return Observation(ports=tuple(PortCount(port, got.get(port, 0), gone.get(port, 0)) for port in self._ports))

    def _timed(self, direction: Direction) -> LatencyCounters:
        _, sent, received = self._tagged[direction]
        took_s = self.world.frame_s * (1 + 0.5 * self._load_pps.get(direction.tx, 0.0) / self.world.capacity(direction))
        histogram = {bucket_us(took_s): int(received)} if received >= 1 else {}
        twice = int(received * self.world.duplicated)
        return LatencyCounters(
            int(sent), int(received) + twice, took_s, took_s, took_s, 0.0, histogram, duplicate=twice
        )

    def _counters(self, number: int) -> PortCounters:
        port, cpu = self._ports[number], self.world.cpu_at_full_percent
        offer = next((one for one in self.plan.offers if number == one.direction.tx), self.plan.offers[0])
        size = offer.mean_frame_bytes
        at_full = None if cpu is None else _value_of(cpu, number, 40.0)
        return PortCounters(
            t_s=self.clock.now_s,
            opackets=port.opackets,
            obytes=round(port.opackets * size),
            ipackets=port.ipackets,
            ibytes=round(port.ipackets * size),
            ierrors=port.ierrors,
            oerrors=0,
            link_up=self.clock.now_s < self.world.link_down_at_s,
            queue_full=self._queue_full[number] if self.world.queue_full_by_port else None,
            cpu_percent=None if at_full is None else at_full * self.rates.get(number, 0.0) / offer.line_rate_pps,
        )

    def _pass_time(self) -> None:
        begin, end = self._then_s, self.clock.now_s
        self._then_s = end
        if end <= begin:
            return
        sending_s = max(0.0, min(end, self.deadline_s) - begin)
        sent = {d: self._send(d.tx, sending_s) for d in self.plan.directions}
        share = self._up_share(begin, end)
        shared = self.world.shared_capacity_pps * sending_s * share
        total = sum(sent.values())
        for direction, frames in sent.items():
            if direction in self._tagged:
                pps, tagged, returned = self._tagged[direction]
                tagged += pps * sending_s if self.rates else 0.0
                self._tagged[direction] = pps, tagged, tagged if share else returned
            alone = self.world.capacity(direction) * sending_s * share
            forwarded = self._forward(direction, frames, min(alone, shared * frames / total if total else alone))
            self._deliver(direction, forwarded if share else 0, end - begin)

    def _send(self, number: int, seconds: float) -> int:
        port = self._ports[number]
        wanted = self.rates.get(number, 0.0) * seconds + port.owed
        most = _value_of(self.world.tx_limit_pps, number) * seconds
        if wanted > most:
            self._queue_full[number] += int(wanted - most)
            wanted = most
        frames = int(wanted)
        port.owed = wanted - frames if self.rates else 0.0
        port.opackets += frames
        return frames

    def _forward(self, direction: Direction, frames: int, most: float) -> int:
        if direction.tx in self.world.dead_ports:
            return 0
        most *= 1 + self._rng.gauss(0, self.world.noise) if self.world.noise else 1
        most *= self.world.speed(self.clock.now_s) if self.world.speed else 1
        if frames > most:
            return max(0, int(most - self.world.collapse * (frames - most)))
        loss = self.world.base_loss
        return frames - round(frames * (loss(self.rates.get(direction.tx, 0.0)) if callable(loss) else loss))

    def _deliver(self, direction: Direction, forwarded: int, seconds: float) -> None:
        port = self._ports[direction.rx]
        stays = min(forwarded, int(forwarded / seconds * self.world.latency_s))
        self.passed[direction] += forwarded
        arrived = self._flying[direction] + forwarded - stays
        arrived += round(arrived * self.world.duplicated) - round(arrived * self.world.back_loss)
        self._flying[direction] = stays
        most = _value_of(self.world.rx_limit_pps, direction.rx) * seconds
        if arrived > most:
            port.ierrors += 0 if self.world.rx_silent else arrived - int(most)
            arrived = int(most)
        port.ipackets += arrived + round(self.world.foreign_pps * seconds)

    def _up_share(self, begin: float, end: float) -> float:
        """The share of this interval in which the router forwards at all."""
        down = sum(max(0.0, min(end, b) - max(begin, a)) for a, b in self.world.blips)
        return 1 - min(1.0, down / (end - begin))


def make_plan(
    bidir: bool = False,
    ports: Sequence[int] = (0, 1),
    frame_bytes: float = 64.0,
    line_rate_bps: float = GIGABIT,
    target: float = 0.97,
    kind: str = "ramp",
    **changes: Any,
) -> Any:
    """A plan of a minute on gigabit ports; ``target`` is a share of line rate, ``changes`` are fields of it.

    target_pps and warmup_pps are every direction's.
    """
    line = line_rate_pps(frame_bytes, line_rate_bps)
    target_pps = changes.pop("target_pps", target * line)
    rates = (target_pps, changes.pop("warmup_pps", MIN_OFFERED_PPS))
    offers = tuple(Offer(one, line_rate_bps, frame_bytes, line, *rates) for one in pair_directions(ports, bidir))
    values = {"warmup_s": 5.0, "hold_s": 5.0}
    if kind == "ramp":
        values |= {"ramp_s": 60.0, "confirm_s": 5.0}
    return STRATEGIES[kind](offers, **(values | changes))


def asked(sample: Sample) -> float:
    """Return the rate asked of every direction alike; 0 in silence."""
    rates = set(sample.asked_pps.values()) or {0.0}
    assert len(rates) == 1
    return rates.pop()


def simulate(
    plan: Strategy, world: World | None = None, sink: Sink | None = None, of: type[SimulatedGenerator] | None = None
) -> runner.Outcome:
    """Run the real loop with this plan in this world; of: a generator of another kind."""
    return simulate_with(plan, world or World(), sink, of)[0]


def simulate_with(
    plan: Strategy, world: World, sink: Sink | None = None, of: type[SimulatedGenerator] | None = None
) -> tuple[runner.Outcome, SimulatedGenerator, HeldClock]:
    """The outcome, and the generator and the clock to ask what happened to them."""
    clock = HeldClock(late_s=world.late_s, rng=random.Random(world.seed))
    generator = (of or SimulatedGenerator)(plan, world, clock)
    return runner.run(plan, generator, clock, [sink] if sink is not None else []), generator, clock


@lru_cache(16)
def _simulated_once(plan: Strategy, world: World) -> tuple[runner.Outcome, SimulatedGenerator, HeldClock]:
    return simulate_with(plan, world)


def measured(
    world: World, of: type[SimulatedGenerator] | None = None, **plan: Any
) -> tuple[Any, Sequence[Sample], Analysis]:
    """Such a plan, and the samples and analysis of its run in this world, which only a lost link may end early."""
    made = make_plan(**plan)
    outcome = simulate(made, world, of=of)
    assert outcome.error is None or world.link_down_at_s < math.inf, outcome.error
    return made, outcome.samples, analyse(made, outcome.samples)


def judged(world: World, of: type[SimulatedGenerator] | None = None, **plan: Any) -> Analysis:
    return measured(world, of, **plan)[2]


def codes(analysis: Analysis) -> list[str]:
    """Codes of its warnings, in order."""
    return [one.code for one in analysis.warnings]


def is_hashable(*those: object) -> bool:
    try:
        return isinstance(hash(those), int)
    except TypeError:  # of a mapping in one of them
        return False


def around(seen: Observation, end_s: float) -> tuple[DutReading, ...]:
    """Two looks at a router, whose ports had counted nothing before the run."""
    none = Observation(ports=tuple(PortCount(one.port, 0, 0) for one in seen.ports))
    return DutReading(Moment.START, 0.0, 0.0, none), DutReading(Moment.FINISH, end_s, 0.0, seen)


def make_result(
    plan: Strategy | None = None, world: World | None = None, observed: bool = False, **changes: Any
) -> RunResult:
    """The stored form of a simulated run; observed: its router is read before and after; ``changes``: its fields."""
    plan, world = plan or make_plan(), world or World()
    outcome, generator, clock = (_simulated_once if is_hashable(plan, world) else simulate_with)(plan, world)
    if observed:
        changes = {"telemetry": "hold", "dut_readings": around(generator.observe(), clock.now())} | changes
    result = RunResult(
        id="20260301T120000Z-test",
        started="2026-03-01T12:00:00Z",
        finished="2026-03-01T12:02:00Z",
        status=Status.COMPLETE if outcome.error is None else Status.INCOMPLETE,
        reason=None if outcome.error is None else str(outcome.error),
        command={"verb": plan.kind, "mode": "var2-64b", "direction": "bidir" if plan.bidir else "unidir"},
        plan=plan,
        profiles={
            direction: PROFILE | {"port": direction.tx, "mean_frame_bytes": plan.offer(direction).mean_frame_bytes}
            for direction in plan.directions
        },
        dut={"name": "lab-linux", "driver": "linux", "description": "Linux kernel router in a network namespace"},
        generator={"kind": "simulated", "version": "0", "ports": list(plan.ports)},
        host={"hostname": "tester", "kernel": "6.18", "python": "3.11"},
        samples=tuple(outcome.samples),
        simulated=True,
    )
    return replace(result, **changes)


PROFILE: dict[str, Any] = {
    "name": "bench.py",
    "tunables": {"size": "64", "vm": "var2"},
    "port": 0,
    "mix": "64 B frames",
    "mean_frame_bytes": 64.0,
    "flows": 251,
    "flows_exact": True,
    "varied": ["IP.src 16.0.0.4 to 16.0.0.254, inc", "IP.dst 48.0.0.4 to 48.0.0.254, inc"],
    "digest": "0" * 64,
    "streams": [{"frame_bytes": 64, "share": 1.0, "flows": 251, "varied": []}],
}
"""Result of ``core.profile.Profile.to_dict`` for var2-64b."""


SIZED_PPS = 400e3


def sized(frame_bytes: int, goals: tuple[float, ...] = (0.0, 0.01), bidir: bool = False, **changes: Any) -> RunResult:
    """A search of a line of 1 Gbit/s through a router of 400 kpps per direction, whatever the size."""
    plan = make_plan(kind="search", warmup_s=2.0, hold_s=0.0, goals=goals, bidir=bidir, frame_bytes=frame_bytes)
    return make_result(plan, World(capacity_pps=SIZED_PPS), **changes)
