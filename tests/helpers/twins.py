"""Routers whose truth is known, behind the real simulating engine, measured by the real loop on a held clock.

twin = Twin(plan=make_plan(), capacity_pps={"0->1": 0.7e6}, ...)
twin.run(), twin.knee_pps(direction)
"""

from __future__ import annotations

import copy
import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from runs import HeldClock, make_plan

from trexbench.config.schema import read_dut
from trexbench.config.twin import TesterSpec, TwinSpec
from trexbench.core.dut.rss import headers_of
from trexbench.core.load.plan import Direction
from trexbench.core.load.sample import PortCounters, Reading
from trexbench.core.strategy.base import Strategy
from trexbench.core.strategy.ramp import Ramp
from trexbench.session import loop as runner
from trexbench.stlserver.engine import StreamSpec
from trexbench.stlserver.state.stats import Stats
from trexbench.twin.latency import Delay
from trexbench.twin.router import TwinRouter
from trexbench.twin.simulated import SimEngine
from trexbench.twin.tester import frame_bytes
from trexbench.twin.world import Arrival, Router

ROOT = Path(__file__).resolve().parents[2]
TRIED_WINDOWS, TRIED_RATES = 201, 40
TRIED_BOX_WINDOWS, SPAN_S = 15, 0.1
UDP = bytes(12) + bytes.fromhex("08004500002e0001000040110000100000013000000104010 00c001a0000".replace(" ", ""))


def shipped_twin(name: str, **changes: Any) -> TwinSpec:
    """The twin of a shipped DUT."""
    twin = read_dut(ROOT / "dut_configs" / f"{name}.yaml").twin
    assert twin is not None
    return replace(twin, **changes)


@dataclass(frozen=True)
class SkewedTester(TesterSpec):
    """A tester whose counters are read up to ``skew_s`` after one another, and claim to be of one moment."""

    skew_s: float = 0.0


@dataclass
class QueueRouter:
    """Receive queues, each with a ring and a capacity of its own (frames/s) that varies about its mean.

    noise: relative standard deviation of the capacity, drawn anew every ``noise_s``. latency_s: on top of the ring's.
    """

    queue_pps: Mapping[int, Sequence[float]]
    ring: float = 512.0
    noise: float = 0.0
    noise_s: float = 1.0
    seed: int = 1
    now_s: float = 0.0
    held: dict[tuple[int, int], dict[int, float]] = field(default_factory=dict)

    def spread(self, port: int, packets: Sequence[bytes]) -> tuple[float, ...]:
        count = len(self.queue_pps[port])
        hits = [zlib.crc32(packet[26:38]) % count for packet in packets]
        return tuple(hits.count(queue) / len(hits) for queue in range(count))

    def carry(self, span_s: float, arrivals: Sequence[Arrival]) -> Sequence[float]:
        out = dict.fromkeys(((one.port, one.tag) for one in arrivals), 0.0)
        instant = int((self.now_s + span_s / 2) / self.noise_s)
        self.now_s += span_s
        for port, capacities in self.queue_pps.items():
            coming = [one for one in arrivals if one.port == port]
            for queue, pps in enumerate(capacities):
                self._serve(port, queue, pps * self._deviation(port, queue, instant) * span_s, coming, out)
        return [out[one.port, one.tag] for one in arrivals]

    def delays(self, port: int, tag: int) -> Sequence[Delay]:
        return (Delay(1.0, 10e-6, 30e-6),)

    def kept(self, port: int, tag: int) -> float:
        return sum(held.get(tag, 0.0) for (at, _), held in self.held.items() if at == port)

    def _serve(
        self, port: int, queue: int, room: float, coming: Sequence[Arrival], out: dict[tuple[int, int], float]
    ) -> None:
        held = self.held.setdefault((port, queue), {})
        for one in coming:
            if one.frames:
                held[one.tag] = held.get(one.tag, 0.0) + one.frames * one.spread[queue]
        total = sum(held.values())
        if total:
            share = min(1.0, room / total)
            kept = min(1.0, self.ring / (total * (1 - share))) * (1 - share) if share < 1 else 0.0
            for tag, frames in held.items():
                out[port, tag] += frames * share
                held[tag] = frames * kept

    def _deviation(self, port: int, queue: int, instant: int) -> float:
        if not self.noise:
            return 1.0
        return max(0.0, 1 + random.Random(f"{self.seed} {port} {queue} {instant}").gauss(0, self.noise))


def stream(size: int = 64, pps: float = 1.0, flows: int = 1, number: int = 1, **changes: Any) -> StreamSpec:
    """Frames of UDP, their source and destination stepping together over so many values."""
    names = (("src", 26, 0x10000001), ("dst", 30, 0x30000001))
    variables = [
        {"type": "flow_var", "name": name, "size": 4, "op": "inc", "step": 1, "init_value": low, "min_value": low,
         "max_value": low + flows - 1}
        for name, _, low in names
    ]  # fmt: skip
    writes = [
        {"type": "write_flow_var", "name": name, "pkt_offset": offset, "add_value": 0, "is_big_endian": True}
        for name, offset, _ in names
    ]
    program = (*variables, *writes, {"type": "fix_checksum_ipv4", "pkt_offset": 14}) if flows > 1 else ()
    spec = StreamSpec(number, UDP.ljust(size - 4, b"x"), pps, instructions=program)
    return replace(spec, **changes)


IMIX = (stream(64, 28, 251, 1), stream(590, 16, 251, 2), stream(1514, 4, 251, 3))


def mean_bytes(streams: Sequence[StreamSpec]) -> float:
    """Mean frame size, by the streams' rates."""
    return sum(frame_bytes(one) * one.rate_pps for one in streams) / sum(one.rate_pps for one in streams)


class SimGenerator:
    """The harness's generator on the engine itself: no server, no sockets, the server's smoothing of the CPU load."""

    def __init__(self, engine: SimEngine, twin: Twin | Box, clock: HeldClock) -> None:
        self.engine, self.plan, self.streams, self.clock = engine, twin.plan, twin.streams, clock
        self.stats, self.skew_s, self.rng = Stats(engine), twin.tester.skew_s, random.Random(f"{twin.seed} skew")
        self.base_pps = sum(one.rate_pps for one in self.streams)

    def start(self, rates_pps: Mapping[int, float], duration_s: float) -> None:
        for port, pps in rates_pps.items():
            self.engine.start(port, self.streams, pps / self.base_pps, duration_s)

    def update(self, rates_pps: Mapping[int, float]) -> None:
        for port, pps in rates_pps.items():
            self.engine.update(port, pps / self.base_pps)

    def stop(self) -> None:
        for port in self.plan.ports:
            self.engine.stop(port)

    def read(self) -> Reading:
        """Read each port's counters at a moment of its own, the earliest first."""
        now_s, ports = self.clock.now(), {}
        self.stats.forget()
        snapshot = self.stats.read(now_s)
        for late_s, port in sorted((self.skew_s * self.rng.random(), port) for port in self.plan.ports):
            self.clock.now_s = now_s + late_s
            c = self.engine.counters(port)
            ports[port] = PortCounters(
                *(now_s, c.opackets, c.obytes, c.ipackets, c.ibytes, c.ierrors, c.oerrors),
                cpu_percent=float(str(self.stats.port_json(now_s, port, c.opackets > 0)["m_cpu_util"])),
            )
        self.clock.now_s = now_s
        return Reading(dict(sorted(ports.items())), sum(load.queue_full for load in snapshot.load.values()))


def measure(twin: Twin | Box, router: Router) -> runner.Outcome:
    """Run the real loop against this router behind the simulating engine."""
    plan, clock = twin.plan, HeldClock()
    engine = SimEngine(
        router,
        speed_bps=plan.offers[0].line_rate_bps,
        clock=clock.now,
        tester=twin.tester,
        seed=twin.seed,
        step_s=twin.step_s,
    )
    return runner.run(plan, SimGenerator(engine, twin, clock), clock)


@dataclass(frozen=True)
class Twin:
    """One simulated measurement: queue_pps by sending port; the engine's grid has lines every ``step_s``."""

    plan: Strategy
    queue_pps: Mapping[int, Sequence[float]]
    streams: Sequence[StreamSpec] = (stream(flows=251),)
    ring: float = 512.0
    noise: float = 0.0
    noise_s: float = 1.0
    tester: SkewedTester = field(default_factory=SkewedTester)
    seed: int = 1
    step_s: float = 0.25

    def router(self) -> QueueRouter:
        return QueueRouter(self.queue_pps, self.ring, self.noise, self.noise_s, self.seed)

    def run(self) -> runner.Outcome:
        return measure(self, self.router())

    def knee_pps(self, direction: Direction) -> float:
        """The rate at which a typical window of the plan's length loses the threshold's share: half of them lose more.

        From the queues' shares, capacities and rings, by trying rates on windows with noise of their own. Where the
        capacity varies within a window, short lacks of it lose frames at rates that the mean would carry, unless the
        rings hold them until the next moment of plenty.
        """
        router, capacities = self.router(), np.array(self.queue_pps[direction.tx])
        total = sum(one.rate_pps for one in self.streams)
        spreads = [
            np.array(router.spread(direction.tx, headers_of(one.packet, one.instructions))) * one.rate_pps / total
            for one in self.streams
        ]
        shares = np.sum(spreads, axis=0)
        low, high = 0.0, 2 * float(capacities.sum() / shares.max())
        for _ in range(4):
            rates = np.linspace(low, high, TRIED_RATES)
            lossy = np.median(self._lost(rates, shares, capacities), axis=0) > self.plan.loss_threshold * rates
            at = int(np.argmax(lossy))
            low, high = float(rates[at - 1]), float(rates[at])
        return low

    def _lost(self, rates: NDArray[Any], shares: NDArray[Any], capacities: NDArray[Any]) -> NDArray[Any]:
        """Frames per second lost in each window (rows) at each of these steady rates; the rings are full at first."""
        draws = max(1, round(self.plan.window_s / self.noise_s)) if self.noise else 1
        span_s = self.plan.window_s / draws
        windows = TRIED_WINDOWS if self.noise else 1
        rng = np.random.default_rng(1)
        held = np.full((len(rates), len(shares)), self.ring)
        lost = np.zeros((windows, len(rates)))
        for window in range(windows):
            for _ in range(draws):
                room = np.maximum(0.0, capacities * (1 + self.noise * rng.standard_normal(len(shares)))) * span_s
                waiting = np.maximum(0.0, held + rates[:, None] * shares * span_s - room)
                held = np.minimum(self.ring, waiting)
                lost[window] += (waiting - held).sum(axis=1) / self.plan.window_s
        return lost

    def with_knee(self, direction: Direction, pps: float) -> Twin:
        """Return the same twin, with its queues made faster or slower so that the direction's knee is there."""
        scale, tx = pps / self.knee_pps(direction), direction.tx
        return replace(self, queue_pps={**self.queue_pps, tx: [one * scale for one in self.queue_pps[tx]]})


@dataclass(frozen=True)
class Box:
    """One simulated measurement of a router as DUT files describe them."""

    plan: Strategy
    spec: TwinSpec
    streams: Sequence[StreamSpec]
    tester: SkewedTester = field(default_factory=SkewedTester)
    seed: int = 1
    step_s: float = 0.25

    def run(self) -> runner.Outcome:
        return measure(self, TwinRouter(self.spec, seed=self.seed))

    def knee_pps(self, direction: Direction) -> float:
        """The rate of all directions at which this one loses the threshold's share: half of the windows lose more.

        The router is asked itself. What it does not forward at once it loses when its rings are full; discarding that
        costs something slows it down by and by.
        """
        steady = TwinRouter(replace(self.spec, noise=0.0))
        spreads = {
            (d.tx, one.stream_id): steady.spread(d.tx, headers_of(one.packet, one.instructions))
            for d in self.plan.directions
            for one in self.streams
        }
        low, high = 0.0, 2 * self.spec.workers * self.spec.clock_hz / self.spec.packet_cycles
        for _ in range(17):
            rate = (low + high) / 2
            lost = self._losses(steady, direction, rate, spreads, 6 if self.spec.drop_cycles else 1)[-1]
            low, high = (rate, high) if lost <= self.plan.loss_threshold else (low, rate)
        if self.spec.noise:
            noisy, a_window = TwinRouter(self.spec), round(self.plan.window_s / SPAN_S)
            low, high = low * (1 - 4 * self.spec.noise), low * (1 + 4 * self.spec.noise)
            for _ in range(7):
                rate = (low + high) / 2
                losses = self._losses(noisy, direction, rate, spreads, TRIED_BOX_WINDOWS * a_window)
                lost = float(np.median(losses.reshape(-1, a_window).mean(axis=1)))
                low, high = (rate, high) if lost <= self.plan.loss_threshold else (low, rate)
        return low

    def _losses(
        self,
        router: TwinRouter,
        direction: Direction,
        pps: float,
        spreads: Mapping[tuple[int, int], tuple[float, ...]],
        spans: int,
    ) -> NDArray[Any]:
        """The shares of so many spans' frames that did not leave within them, at a steady rate."""
        router, total = copy.deepcopy(router), sum(one.rate_pps for one in self.streams)
        arrivals = [
            Arrival(d.tx, one.stream_id, spreads[d.tx, one.stream_id], pps * SPAN_S * one.rate_pps / total,
                    frame_bytes(one))
            for d in self.plan.directions
            for one in self.streams
        ]  # fmt: skip
        mine = np.array([one.port == direction.tx for one in arrivals])
        gone = np.array([router.carry(SPAN_S, arrivals) for _ in range(spans)])
        losses: NDArray[Any] = 1 - gone[:, mine].sum(axis=1) / (pps * SPAN_S)
        return losses


def random_box(rng: random.Random, seed: int, noise: float = 0.0) -> Box:
    """A router of any kind whose knees, in all directions, but for noise, lie between 0.12 and 0.88 of the target."""
    while True:
        streams = rng.choice(PROFILES)
        plan = random_plan(rng, streams)
        spec = TwinSpec(
            workers=rng.choice([1, 1, 2, 3, 4]),
            clock_hz=1e9,
            packet_cycles=rng.uniform(200, 3000),
            vector_cycles=rng.choice([0.0, rng.uniform(0, 5000)]),
            byte_cycles=rng.uniform(0, 0.5),
            drop_cycles=rng.choice([0.0, rng.uniform(0, 500)]),
            vector=rng.choice([32, 64, 256]),
            ring=rng.choice([256, 512, 4096]),
            noise=rng.uniform(0, noise),
            queues=rng.choice([1, 1, 2, 3, 4]),
            placement=rng.choice(["round-robin", "per-port"]),
        )
        steady = Box(plan, replace(spec, noise=0.0), streams, seed=seed)  # its knees take a sixth of the time
        wanted = rng.uniform(0.15, 0.85) * plan.offers[0].target_pps
        clock_hz = 1e9 * wanted / steady.knee_pps(plan.directions[0])
        steady = replace(steady, spec=replace(steady.spec, clock_hz=clock_hz))
        if all(0.12 < steady.knee_pps(d) / plan.offers[0].target_pps < 0.88 for d in plan.directions):
            return replace(steady, spec=replace(spec, clock_hz=clock_hz))


def random_plan(rng: random.Random, streams: Sequence[StreamSpec]) -> Ramp:
    """A ramp of these streams on gigabit ports."""
    plan = make_plan(
        bidir=rng.random() < 0.5,
        frame_bytes=mean_bytes(streams),
        ramp_s=rng.choice([30.0, 60.0, 60.0, 120.0, 240.0]),
        sample_s=rng.choice([0.5, 1.0, 1.0]),
        loss_threshold=rng.choice([1e-4, 1e-3, 1e-3, 1e-2]),
        confirm_s=0.0,
    )
    rng.random()  # drew an option that is gone: worlds that tests name by their number stay as they are
    return plan


PROFILES = ((stream(flows=251),), (stream(flows=16),), (stream(),), IMIX)


def random_twin(rng: random.Random, seed: int, noise: float = 0.0, knee: float | None = None, **changes: Any) -> Twin:
    """A twin of any kind: profile, directions, ramp, sampling, threshold, queues, rings, noise up to ``noise``.

    knee: of all directions, as a share of the target; by default anywhere from 0.15 to 0.85, for each its own.
    changes: fields of Twin.
    """
    streams = rng.choice(PROFILES)
    plan = random_plan(rng, streams)
    twin = Twin(
        plan,
        {port: [rng.uniform(0.7, 1.3) for _ in range(rng.choice([1, 1, 2, 3]))] for port in (0, 1)},
        streams,
        ring=rng.choice([0.0, 128.0, 1024.0, 4096.0]),
        noise=rng.uniform(0, noise),
        noise_s=rng.choice([0.25, 1.0]),
        seed=seed,
    )
    for direction in plan.directions:
        share = rng.uniform(0.15, 0.85) if knee is None else knee
        twin = twin.with_knee(direction, share * plan.offers[0].target_pps)
    return replace(twin, **changes)
