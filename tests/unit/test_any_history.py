"""Any history of samples has a verdict and a report: random worlds, a loop that wakes at any time, a cut anywhere."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from effort import scaled
from runs import HeldClock, SimulatedGenerator, World, make_plan, make_result

from trexbench.core.result import RunResult, Status
from trexbench.report.run.text import format_brief, format_summary
from trexbench.session.loop import Outcome, run

SEEDS = range(scaled(400, 8))
CUTS = scaled(6, 3)
LINE_PPS = 1.488e6


class Dozing(HeldClock):
    """Wakes late now and then, by up to half of what the whole run takes."""

    def sleep_until(self, t_s: float) -> None:
        late_s = self.rng.choice((0.3, 3.0, 30.0)) * self.rng.random() if self.rng.random() < self.late_s else 0.0
        self.now_s = max(self.now_s, t_s + late_s)


def random_world(rng: random.Random) -> World:
    """Every thing that a world knows, each with a probability of its own, at any size."""

    def maybe(value: float, otherwise: float = 0.0, probability: float = 0.25) -> float:
        return value if rng.random() < probability else otherwise

    begin_s = rng.uniform(0, 90)
    limit_pps = LINE_PPS * 10 ** rng.uniform(-4, 0)
    return World(
        capacity_pps=maybe(limit_pps, math.inf, 0.7),
        shared_capacity_pps=maybe(1.5 * limit_pps, math.inf),
        collapse=maybe(rng.uniform(0, 3)),
        base_loss=maybe(10 ** rng.uniform(-5, 0)),
        back_loss=maybe(10 ** rng.uniform(-5, 0)),
        duplicated=maybe(10 ** rng.uniform(-4, 0.5)),
        noise=maybe(10 ** rng.uniform(-3, -0.5)),
        latency_s=maybe(10 ** rng.uniform(-4, 1)),
        tx_limit_pps=maybe(LINE_PPS * 10 ** rng.uniform(-4, 0), math.inf),
        rx_limit_pps=maybe(LINE_PPS * 10 ** rng.uniform(-4, 0), math.inf),
        rx_silent=rng.random() < 0.5,
        foreign_pps=maybe(10 ** rng.uniform(0, 5)),
        blips=[(begin_s, begin_s + maybe(10 ** rng.uniform(-1, 1), 1e9, 0.5))] if rng.random() < 0.5 else (),
        dead_ports=[rng.randrange(2)] if rng.random() < 0.03 else (),
        link_down_at_s=maybe(begin_s + 10 ** rng.uniform(-1, 1), math.inf),
        reports_queue_full=rng.random() < 0.5,
        queue_full_by_port=rng.random() < 0.5,
        cpu_at_full_percent=rng.choice((None, 0.0, 40.0, 100.0)),
        read_s=maybe(10 ** rng.uniform(-4, -1)),
        frame_s=10 ** rng.uniform(-6, 0),
        seed=rng.randrange(1000),
    )


def random_outcome(rng: random.Random) -> tuple[RunResult, Outcome]:
    kind = rng.choice(("ramp", "ramp", "search", "saturate"))
    more = {"latency_s": 2.0 * rng.randrange(2), "ramp_s": rng.uniform(9, 90)}
    plan = make_plan(
        bidir=rng.random() < 0.5,
        kind=kind,
        warmup_s=rng.uniform(2, 9),
        loss_threshold=rng.choice((0.0, 1e-4, 1e-3, 0.05)),
        **(more if kind == "ramp" else {}),
    )
    clock = Dozing(late_s=rng.choice((0.0, 0.02, 0.2)), rng=rng)
    outcome = run(plan, SimulatedGenerator(plan, random_world(rng), clock), clock)
    return replace(make_result(plan, World(dead_ports=[0])), samples=tuple(outcome.samples)), outcome


@pytest.mark.parametrize("seed", SEEDS)
def test_it_has_a_verdict_and_a_report(seed: int) -> None:
    rng = random.Random(f"any history {seed}")
    whole, outcome = random_outcome(rng)
    assert outcome.error is None or "defect" not in str(outcome.error), outcome.error
    count = len(whole.samples)
    for end in {count, *(rng.randrange(count + 1) for _ in range(CUTS))}:
        result = replace(whole, samples=whole.samples[:end], status=Status.INCOMPLETE, reason="cut", finished=None)
        assert format_summary(result) and format_brief(result, None, 100)
        for one in result.analysis.directions:
            ends = [one.low_pps, one.maximum_pps, one.high_pps]
            known = [pps for pps in ends if pps is not None]
            assert known == sorted(known) and all(0 <= pps <= 4 * LINE_PPS for pps in known), one
            assert one.reasons and one.sent >= 0 and one.received >= 0
