"""The error of the reported maximum over random simulated routers whose limit is known.

    python benchmarks/truth.py [--runs 200] [--seed 1]

Each run is a whole measurement through the simulating engine on a held clock, with hold and confirmation as shipped. Of
a class it prints the error and half of the stated interval as shares of the truth, how many intervals hold it (aim: 95
%), and in how many of these it lies above the maximum (aim: 40 to 60 %), and how many rates a trial confirmed; of runs
that the generator limits, how many were laid to the DUT (aim: none).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from _ratios import SEEDED, note, options
from faulty import Faults, FaultyRouter
from test_twin_truth import all_verdicts, beside, limited, verdicts
from twins import Box, Twin, random_box, random_twin

from trexbench.core.strategy.ramp import Ramp
from trexbench.core.verdict.parts import DirectionResult, Limit

AIM = 0.95
Make = Callable[[random.Random, int, float], Twin | Box]


class BrieflyDown(Twin):
    """A twin that loses about twenty frames, once, while the tester warms up."""

    def router(self) -> FaultyRouter:  # type: ignore[override]
        return FaultyRouter(super().router(), Faults(stalls=((2.0, 2.02),)))


def random_briefly_down(rng: random.Random, seed: int, noise: float) -> Twin:
    return BrieflyDown(**vars(random_twin(rng, seed, noise)))


@dataclass(frozen=True)
class TwinClass:
    """Random twins. skew: at most, as a share of what the threshold takes."""

    name: str
    make: Make
    noise: float = 0.0
    """At most."""
    skew: float = 0.0
    noise_s: float | None = None
    """The time over which it is correlated; None: any up to a second."""
    ramp_s: float | None = None
    """None: of many lengths."""


CLASSES = (
    TwinClass("queues of fixed capacity, steady", random_twin),
    TwinClass("  counters of different instants", random_twin, 0.0, 1.0),
    TwinClass("  noise up to 1 %", random_twin, 0.01),
    TwinClass("  noise up to 3 %", random_twin, 0.03),
    TwinClass("  both", random_twin, 0.03, 1.0),
    TwinClass("  noise up to 2 %, ramps of 60 s", random_twin, 0.02, ramp_s=60.0),
    TwinClass("    correlated over 2 s", random_twin, 0.02, noise_s=2.0, ramp_s=60.0),
    TwinClass("    correlated over 10 s", random_twin, 0.02, noise_s=10.0, ramp_s=60.0),
    TwinClass("    20 frames lost in the warm-up", random_briefly_down, 0.02, ramp_s=60.0),
    TwinClass("  noise up to 2 %, ramps of 600 s", random_twin, 0.02, ramp_s=600.0),
    TwinClass("routers as in DUT files, steady", random_box),
    TwinClass("  noise up to 2 %, different instants", random_box, 0.02, 1.0),
)


@dataclass(frozen=True)
class Judged:
    """One direction's result beside its truth; errors as a share of the truth."""

    twin: Twin | Box
    result: DirectionResult
    knee_pps: float

    @property
    def error(self) -> float:
        return (self.result.maximum_pps - self.knee_pps) / self.knee_pps

    @property
    def covered(self) -> bool:
        low, high = self.result.low_pps, self.result.high_pps
        if self.result.limit is not Limit.DUT or low is None or high is None:
            return False
        return low - 2 <= self.knee_pps <= high + 2

    @property
    def half_pps(self) -> float:
        """Half of the interval."""
        return ((self.result.high_pps or 0.0) - (self.result.low_pps or 0.0)) / 2


def judged(one: TwinClass, runs: int, seed: int) -> Iterator[Judged]:
    """Twins of this class that the DUT limits."""
    rng, twins = random.Random(seed), []
    for number in range(runs // 2 if one.make is random_box else runs):
        twin = one.make(rng, number, one.noise)
        plan = twin.plan
        assert isinstance(plan, Ramp)
        plan = replace(plan, ramp_s=one.ramp_s or plan.ramp_s, hold_s=Ramp.hold_s, confirm_s=Ramp.confirm_s)
        twin = replace(twin, plan=plan)
        if isinstance(twin, Twin):
            twin = replace(twin, noise_s=one.noise_s or twin.noise_s)
        twins.append(replace(twin, tester=beside(twin, rng, one.skew)))
    return (Judged(twin, result, knee_pps) for twin, result, knee_pps in all_verdicts(twins))


def row(name: str, found: list[Judged]) -> str:
    errors = np.abs([one.error for one in found])
    stated = np.array([one.half_pps / one.knee_pps for one in found])
    held = [one for one in found if one.covered]
    above = sum(one.error < 0 for one in held) / max(1, len(held))
    confirmed = sum(one.result.confirmed_pps is not None for one in found) / len(found)
    error, worst = np.quantile(errors, (0.5, 0.95))
    figures = error, worst, np.median(stated), len(held) / len(found), above, confirmed
    return f"{name:48}{len(found):6}" + "".join(f"{100 * one:11.2f} %" for one in figures)


def blamed(runs: int, seed: int, kind: str, noisy: bool) -> tuple[int, int]:
    """Directions of runs limited by the generator: how many, and how many of them were laid to the DUT."""
    rng = random.Random(seed)
    results = [result for number in range(runs) for result in verdicts(limited(rng, number, kind, noisy)[0])]
    return len(results), sum(result.limit is Limit.DUT or not result.at_least for result in results)


def main() -> int:
    args = options(__doc__, runs=200, seed=1)
    heads = ("median err", "95 % err", "stated +-", "covered", "of it above", "confirmed")
    print(f"{'limited by the DUT':48}{'n':>6}" + "".join(f"{head:>13}" for head in heads))
    everything: list[Judged] = []
    for one in CLASSES:
        found = list(judged(one, args.runs, args.seed))
        everything += found
        print(row(one.name, found), flush=True)
    for share in (1e-4, 1e-3, 1e-2):
        chosen = [one for one in everything if one.twin.plan.loss_threshold == share]
        print(row(f"of all these, loss threshold {100 * share:g} %", chosen))
    print(row("all", everything))
    wrong = 0
    print(f"\n{'limited by the generator':44}{'n':>6}{'laid to DUT':>13}")
    for kind in ("stretch", "queue-full", "rx"):
        for noisy in (False, True):
            count, mistaken = blamed(args.runs // 5, args.seed, kind, noisy)
            wrong += mistaken
            print(f"{kind + (', a noisy router little above' if noisy else ''):44}{count:6}{mistaken:13}", flush=True)
    note(
        "truth within the interval",
        sum(one.covered for one in everything) / len(everything),
        noise=SEEDED,
        better="higher",
    )
    note("error, median", float(np.median([abs(one.error) for one in everything])), noise=SEEDED)
    note(
        "interval / truth, median", float(np.median([one.half_pps / one.knee_pps for one in everything])), noise=SEEDED
    )
    note("laid to the DUT and the generator's", wrong, noise=0)
    return 0 if sum(one.covered for one in everything) >= AIM * len(everything) and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
