"""The search beside ramps and FD.io's MLRsearch, on the same simulated DUTs whose knees are known.

    python benchmarks/search.py [--runs 60] [--seed 1] [--only search ramp]

DUTs of one queue: 2 to 13 Mpps of 14.88, a ring of 512; the capacity is drawn anew every 100 ms. A dropped frame costs
a share of what a forwarded one does: nothing (plain), half (collapsing past the knee), 90 % (livelock). The knee of a
goal is the rate at which half of the windows of 1 s lose more than the goal; the router itself is asked.

Time is seconds from the first frame to the end; a search's is without its confirmation, which MLRsearch does not have.
A search's and a ramp's error is that of the maximum, that of MLRsearch (1.2.1, with CSIT's settings) the relevant lower
bound's. Of two goals the worse one's errors, and share of intervals that hold its knee, are shown.
--only: columns whose heads begin so. Exit code 0 if the aims hold, else 1.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import Pool
from typing import Any

import numpy as np
from _ratios import SEEDED, leave_out, note, options
from runs import make_plan
from twins import QueueRouter, Twin

from trexbench.core.strategy.analysis import analyse
from trexbench.core.strategy.base import Strategy
from trexbench.twin.world import Arrival

try:
    import MLRsearch as mlr
except ImportError:
    mlr = None

NDR_PDR, SINGLE = (0.0, 0.005), (0.001,)
KINDS = {"plain": 0.0, "collapsing": 0.5, "livelock": 0.9}
"""Cost of a dropped frame, as a share of a forwarded one's."""
NOISES = (0.0, 0.002, 0.01)
NOISE_S, STEP_S, RING = 0.1, 0.05, 512.0
LINE_BPS, LINE_PPS = 1e10, 1e10 / 672
RAMPS_S = (60.0, 120.0, 600.0)
OVERHEAD_S = 0.5
"""Overhead of each of MLRsearch's trials: the traffic is stopped, and the counters are awaited."""
WINDOWS = 1001
"""Number of windows of which the median loss at a rate is taken."""
AIM_ERROR, AIM_TIME = 0.006, {NDR_PDR: 0.5, SINGLE: 0.6}


@dataclass
class CostlyRouter(QueueRouter):
    """A router that a dropped frame costs time, too. cost: as a share of a forwarded frame's."""

    cost: float = 0.0

    def _serve(
        self, port: int, queue: int, room: float, coming: Sequence[Arrival], out: dict[tuple[int, int], float]
    ) -> None:
        held = self.held.setdefault((port, queue), {})
        for one in coming:
            if one.frames:
                held[one.tag] = held.get(one.tag, 0.0) + one.frames * one.spread[queue]
        total = sum(held.values())
        if not total:
            return
        dropped = float(_dropped(np.array(total), np.array(room), self.ring, self.cost))
        left = min(room, total) if not dropped else total - self.ring - dropped
        for tag, frames in held.items():
            out[port, tag] += frames * left / total
            held[tag] = frames * (total - left - dropped) / total


def _dropped(total: np.ndarray, room: np.ndarray, ring: float, cost: float) -> np.ndarray:
    """Frames that do not fit: forwarded + cost * dropped = room, the ring is full."""
    over = np.minimum(total - ring, (total - ring - room) / (1 - cost))
    return np.where(total > room + ring, over, 0.0)


@dataclass(frozen=True)
class Dut(Twin):
    cost: float = 0.0

    def router(self) -> CostlyRouter:
        return CostlyRouter(self.queue_pps, self.ring, self.noise, self.noise_s, self.seed, cost=self.cost)


def knee_of(capacity_pps: float, noise: float, cost: float, goal: float) -> float:
    """The rate at which half of the windows lose more than the goal, after a second at that rate."""
    per_draw = round(NOISE_S / STEP_S)
    deviations = np.random.default_rng(1).normal(1.0, noise, (WINDOWS, 2 * round(1 / NOISE_S)))
    rooms = np.maximum(0.0, deviations).repeat(per_draw, axis=1) * capacity_pps * STEP_S

    def lost(rate: float) -> float:
        held, gone = np.zeros(WINDOWS), np.zeros(WINDOWS)
        for step, room in enumerate(rooms.T):
            total = held + rate * STEP_S
            dropped = _dropped(total, room, RING, cost)
            held = np.where(dropped > 0, RING, np.maximum(0.0, total - room))
            gone += dropped if step >= rooms.shape[1] // 2 else 0.0
        return float(np.median(gone)) / rate

    low, high = 0.5 * capacity_pps, 1.2 * capacity_pps
    for _ in range(16):
        rate = (low + high) / 2
        low, high = (rate, high) if lost(rate) <= goal else (low, rate)
    return low


@dataclass(frozen=True)
class Case:
    """One simulated DUT."""

    kind: str
    noise: float
    seed: int
    capacity_pps: float

    def dut(self, plan: Strategy) -> Dut:
        return Dut(
            plan,
            {0: [self.capacity_pps]},
            ring=RING,
            noise=self.noise,
            noise_s=NOISE_S,
            seed=self.seed,
            step_s=STEP_S,
            cost=KINDS[self.kind],
        )

    def knee_pps(self, goal: float) -> float:
        return knee_of(self.capacity_pps, self.noise, KINDS[self.kind], goal)


Interval = tuple[float, float]
Found = tuple[float, Sequence[float | None], Sequence[Interval | None]]
"""Seconds; the rate found for each goal, None where none was; and its interval, None where none is stated."""


def searched(goals: Sequence[float], case: Case) -> Found:
    plan = _plan("search", goals=goals, loss_threshold=goals[0], warmup_s=2.0, hold_s=0.0, confirm_s=0.0)
    outcome = case.dut(plan).run()
    (result,) = analyse(plan, outcome.samples).directions
    intervals = [_interval(goal.low_pps, goal.high_pps) for goal in result.goals]
    return outcome.samples[-1].t_s, [goal.maximum_pps for goal in result.goals], intervals


def ramped(ramp_s: float, case: Case) -> Found:
    plan = _plan("ramp", ramp_s=ramp_s, loss_threshold=SINGLE[0], warmup_s=10.0, hold_s=30.0, confirm_s=10.0)
    outcome = case.dut(plan).run()
    (result,) = analyse(plan, outcome.samples).directions
    return outcome.samples[-1].t_s, [result.maximum_pps], [_interval(result.low_pps, result.high_pps)]


def _interval(low: float | None, high: float | None) -> Interval | None:
    return None if low is None or high is None else (low, high)


def _plan(kind: str, **changes: Any) -> Strategy:
    plan: Strategy = make_plan(kind=kind, line_rate_bps=LINE_BPS, target=1.0, **changes)
    return plan


class Measurer:
    """MLRsearch's trials: sent for so long, then silence until all frames have left the ring."""

    def __init__(self, router: CostlyRouter) -> None:
        self.router, self.seconds = router, 0.0

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        frames, forwarded = intended_load * STEP_S, 0.0
        for _ in range(round(intended_duration / STEP_S)):
            forwarded += self._carry(frames)
        for _ in range(round(OVERHEAD_S / STEP_S)):
            forwarded += self._carry(0.0)
        self.seconds += intended_duration + OVERHEAD_S
        sent = round(intended_load * intended_duration)
        return mlr.MeasurementResult(intended_duration, intended_load, sent, forwarding_count=round(forwarded))

    def _carry(self, frames: float) -> float:
        return self.router.carry(STEP_S, [Arrival(0, 1, (1.0,), frames, 64.0)])[0]


def by_mlrsearch(goals: Sequence[float], case: Case) -> Found:
    wanted = [
        mlr.SearchGoal(
            loss_ratio=goal,
            exceed_ratio=0.5,
            relative_width=0.005,
            initial_trial_duration=1.0,
            final_trial_duration=1.0,
            duration_sum=21.0,
            preceding_targets=2,
            expansion_coefficient=2,
            fail_fast=False,
        )
        for goal in goals
    ]
    config = mlr.Config(
        goals=wanted, min_load=9001.0, max_load=LINE_PPS, search_duration_max=1200.0, warmup_duration=1.0
    )
    measurer = Measurer(case.dut(_plan("ramp")).router())
    results = mlr.MultipleLossRatioSearch(config).search(measurer, debug=lambda text: None)
    bounds = [results[goal].relevant_lower_bound for goal in wanted]
    return measurer.seconds, [None if bound is None else float(bound) for bound in bounds], [None for _ in wanted]


@dataclass(frozen=True)
class Column:
    head: str
    goals: tuple[float, ...]
    find: Any


COLUMNS = (
    Column("search NDR+PDR", NDR_PDR, partial(searched, NDR_PDR)),
    Column("MLRsearch", NDR_PDR, partial(by_mlrsearch, NDR_PDR)),
    Column("search 0.1 %", SINGLE, partial(searched, SINGLE)),
    Column("MLRsearch", SINGLE, partial(by_mlrsearch, SINGLE)),
    *(Column(f"ramp {length:g} s", SINGLE, partial(ramped, length)) for length in RAMPS_S),
)


@dataclass(frozen=True)
class Figures:
    """Seconds, and by goal the errors as shares of the truth, and whether the interval holds it (NaN: none)."""

    seconds: np.ndarray
    errors: np.ndarray
    held: np.ndarray

    @property
    def time_s(self) -> float:
        return float(np.median(self.seconds))

    @property
    def median(self) -> float:
        return float(np.median(self.errors, axis=0).max())

    @property
    def p95(self) -> float:
        return float(np.quantile(self.errors, 0.95, axis=0).max())

    @property
    def covered(self) -> float:
        """The share of the stated intervals that hold the truth, of the worst goal; NaN where none is stated."""
        shares = [float(np.nanmean(one)) for one in self.held.T if not np.isnan(one).all()]
        return min(shares, default=float("nan"))

    def __str__(self) -> str:
        share = "" if np.isnan(self.covered) else f" / {100 * self.covered:.0f}"
        return f"{self.time_s:.0f} / {100 * self.median:.2f} / {100 * self.p95:.2f}{share}"


def one_case(case: Case, columns: Sequence[int]) -> list[tuple[float, list[float], list[float]]]:
    """The time of each of these columns, its error for each of its goals, and whether its interval holds the truth."""
    knee, found = cache(case.knee_pps), []
    for column in (COLUMNS[at] for at in columns):
        seconds, rates, intervals = column.find(case)
        errors = [
            1.0 if rate is None else abs(rate / knee(goal) - 1) for goal, rate in zip(column.goals, rates, strict=True)
        ]
        held = [
            float("nan") if one is None else float(one[0] <= knee(goal) <= one[1])
            for goal, one in zip(column.goals, intervals, strict=True)
        ]
        found.append((seconds, errors, held))
    return found


def rows(runs: int, seed: int, columns: Sequence[int]) -> Iterator[tuple[str, Mapping[int, Figures]]]:
    with Pool(os.cpu_count()) as pool:
        for kind in KINDS:
            for noise in NOISES:
                rng = random.Random(seed)
                cases = [Case(kind, noise, number, rng.uniform(2e6, 13e6)) for number in range(runs)]
                found = pool.map(partial(one_case, columns=columns), cases, chunksize=1)
                figures = {
                    at: Figures(*(np.array([one[place][part] for one in found]) for part in range(3)))
                    for place, at in enumerate(columns)
                }
                yield f"{kind}, noise {100 * noise:g} %", figures


def missed(name: str, figures: Mapping[int, Figures]) -> Iterator[str]:
    """The aims that this row misses."""
    for at, column in enumerate(COLUMNS):
        if at not in figures or not column.head.startswith("search"):
            continue
        if figures[at].p95 >= AIM_ERROR:
            yield f"{name}: {column.head}: p95 of the error is {figures[at].p95:.2%}, not below {AIM_ERROR:.1%}"
        if at + 1 in figures and COLUMNS[at + 1].head == "MLRsearch":
            share = figures[at].time_s / figures[at + 1].time_s
            if share > AIM_TIME[column.goals]:
                yield f"{name}: {column.head}: takes {share:.0%} of MLRsearch's time, over {AIM_TIME[column.goals]:.0%}"


def ratios(figures: Mapping[int, Figures]) -> Iterator[tuple[str, float]]:
    """A row's ratios: p95 of each column's error, and what part of MLRsearch's time a search takes."""
    for at, found in figures.items():
        head = COLUMNS[at].head
        if head != "MLRsearch":
            yield f"{head}: p95 of the error", found.p95
            yield f"{head}: intervals without the truth", 1 - found.covered
        if head.startswith("search") and at + 1 in figures:
            yield f"{head}: time / MLRsearch's", found.time_s / figures[at + 1].time_s


def main() -> int:
    args = options(__doc__, runs=60, seed=1, only=[str])
    columns = [
        at
        for at, column in enumerate(COLUMNS)
        if column.head.startswith(tuple(args.only or [""])) and (mlr is not None or column.head != "MLRsearch")
    ]
    if mlr is None:
        print("MLRsearch is not installed (pip install MLRsearch): its columns are '-', its times are not compared")
    print(f"{args.runs} DUTs each: seconds (median) / error, median / 95 % / intervals with the truth, %")
    print(f"{'':25}" + "".join(f"{column.head:>21}" for column in COLUMNS))
    problems: list[str] = []
    worst: dict[str, float] = {}
    for name, figures in rows(args.runs, args.seed, columns):
        print(f"{name:25}" + "".join(f"{figures.get(at, '-')!s:>21}" for at in range(len(COLUMNS))), flush=True)
        problems += missed(name, figures)
        for ratio, value in ratios(figures):
            worst[ratio] = max(worst.get(ratio, 0.0), value)
    for ratio, value in worst.items():
        note(f"{ratio}, worst row", value, noise=SEEDED)
    if mlr is None:
        for column in (COLUMNS[0], COLUMNS[2]):
            leave_out(f"{column.head}: time / MLRsearch's, worst row", "MLRsearch is not installed")
    print("\n".join(problems) or "all aims hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
