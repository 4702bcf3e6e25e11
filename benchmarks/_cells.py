"""Nights of cells as ``regress`` judges them: recoveries, and DUTs far slower than the plan they are measured with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, replace

import _ratios  # noqa: F401  # for the path to the tests' helpers
import numpy as np
from nights import make_row
from runs import make_plan, make_result
from twins import Twin, stream

from trexbench.core.history.regression import judge_rows
from trexbench.core.history.rows import RATE, RunRow, row_of
from trexbench.core.strategy.ramp import Ramp

BEFORE, WITHIN, LONGEST = 60, 3, 40
LEVEL, DROP = 5e6, 0.05
SLOW, CHANGES = (0.6e6, 0.7e6), (0.0, 0.01, 0.02, 0.03, 0.05)
RUN_NOISES = (0.003, 0.01)
"""Noise of the router within a run, drawn anew every NOISE_S; the first as in the twins of Linux and pfSense."""
NOISE_S = 0.1


def regressed(rows: Sequence[RunRow]) -> bool:
    """Test whether ``regress`` reports a regression of these nights with its exit code."""
    return judge_rows(rows).exit_code == 3


def recoveries(nights: int, noise: float, count: int, seed: int) -> tuple[list[int], int]:
    """-5 % for so many nights, then exactly back: the nights until no regression is told any more, LONGEST + 1 for
    never; and how many drops were not told at all, which are left out."""
    rng, delays, untold = np.random.default_rng(seed), [], 0
    for _ in range(count):
        values = LEVEL * (1 + noise * rng.standard_normal(BEFORE + nights + LONGEST))
        values[BEFORE : BEFORE + nights] *= 1 - DROP
        rows, back = [make_row(number, float(value)) for number, value in enumerate(values)], BEFORE + nights
        if regressed(rows[:back]):
            told = (end for end in range(1, LONGEST + 1) if not regressed(rows[: back + end]))
            delays.append(next(told, LONGEST + 1))
        else:
            untold += 1
    return delays, untold


@dataclass(frozen=True)
class Ramps:
    """Runs as a suite makes them by default, at 10 Gbit/s, against routers of known capacity, ascending."""

    capacities: np.ndarray
    rows: Sequence[RunRow]

    def night(self, number: int, capacity_pps: float) -> RunRow:
        """Return the row of such a run at this capacity: the nearest one's, scaled to it."""
        at = int(np.argmin(np.abs(self.capacities - capacity_pps)))
        rate, scale = self.rows[at].figures[RATE.column], capacity_pps / self.capacities[at]
        bound, apart = rate.at_least, rate.uncertainty
        return make_row(number, rate.value * scale, at_least=bound, uncertainty_pps=apart, limit=self.rows[at].limit)

    @property
    def errors(self) -> str:
        rates = [row.figures[RATE.column] for row in self.rows]
        errors = np.array([rate.value for rate in rates]) / self.capacities - 1
        size, stated = np.abs(errors), np.median([rate.uncertainty for rate in rates] / self.capacities)
        bounds = sum(rate.at_least for rate in rates)
        return (
            f"error of a ramp: mean {errors.mean():+.2%}, median {np.median(size):.2%}, 95 % "
            f"{np.quantile(size, 0.95):.2%}; it states {stated:.2%}; {bounds} are only bounds"
        )


def exact(number: int, capacity_pps: float) -> RunRow:
    return make_row(number, capacity_pps)


def ramps(count: int, noise: float) -> Ramps:
    """Run ``count`` real ramps through the simulating engine, over all capacities of slow cells."""
    defaults = {one.name: one.default for one in fields(Ramp) if one.default is not MISSING}
    plan: Ramp = make_plan(line_rate_bps=10e9, **defaults)
    template = make_result()
    capacities = np.linspace(SLOW[0] * (1 - max(CHANGES) - 0.03), SLOW[1] * 1.03, count)
    rows = []
    for number, capacity in enumerate(capacities):
        twin = Twin(plan, {0: [capacity]}, (stream(),), noise=noise, noise_s=NOISE_S, seed=number)
        rows.append(row_of(replace(template, plan=plan, samples=tuple(twin.run().samples)), ""))
    return Ramps(capacities, rows)


def found(night: Callable[[int, float], RunRow], change: float, noise: float, count: int, seed: int) -> float:
    """The share of histories in which this change is told within three nights, its first included."""
    rng, told = np.random.default_rng(seed), 0
    for _ in range(count):
        level = rng.uniform(*SLOW)
        values = level * (1 + noise * rng.standard_normal(BEFORE + WITHIN))
        values[BEFORE:] *= 1 - change
        rows = [night(number, value) for number, value in enumerate(values)]
        told += regressed(rows) and not regressed(rows[:BEFORE])
    return told / count
