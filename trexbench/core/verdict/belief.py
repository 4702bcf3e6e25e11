"""Where a knee may lie: the probability of every rate, from windows and looks that lost too much and that did not.

Ramps and searches share it; benchmarks/search.py fixes the numbers: time, error and coverage of a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LAPSE = 0.04
"""Probability that a look, or a window of a ramp, contradicts its rate: a stall, a burst of noise."""
SPREADS = np.array([0.1, 0.5, 1.5])
"""Possible widths of the band of rates that lose only sometimes, in widths asked for. With the middle one alone a
search of a steady DUT takes half as long again (benchmarks/search.py)."""
OUTSIDE = 2 * LAPSE
"""Probability that the knee does not lie where the ramp saw it: each side is a look."""
LEAST = 1e-5
"""Share of the target below which no knee is looked for."""
FLAT = 40.0
"""Widths from a rate beyond which the hyperbolic tangent of half of them is 1, so that nothing need be computed."""


class Flag(NamedTuple):
    """One window or look: its rate, and whether that lost more than it may. weight: of what it says."""

    rate: float
    lossy: bool
    weight: float = 1.0


@dataclass(frozen=True)
class Belief:
    """The probability that a knee lies between each two of some rates."""

    rates: Array  # ascending
    weights: Array  # one fewer

    @cached_property
    def sums(self) -> Array:
        """The probability that the knee lies below each of the rates."""
        sums: Array = np.concatenate([[0.0], np.cumsum(self.weights / self.weights.sum())])
        return sums

    def quantile(self, probability: float) -> float:
        """The rate below which the knee lies with this probability."""
        return float(np.interp(probability, self.sums, self.rates))

    def below(self, rate: float) -> float:
        """The probability that the knee lies below this rate."""
        return float(np.interp(rate, self.rates, self.sums))

    @classmethod
    def of_lowest(cls, beliefs: Sequence[Belief]) -> Belief:
        """The lowest of several knees, which one router has in common."""
        rates = np.unique(np.concatenate([belief.rates for belief in beliefs]))
        below = np.max([np.interp(rates, belief.rates, belief.sums) for belief in beliefs], axis=0)
        return cls(rates, np.diff(below))


def chance(flags: Iterable[Flag], places: Array, widths: Array) -> Array:
    """The chance of these flags if the knee lies at each of these places, for each width: shape (widths, places).

    Across that width a rate's chance to be lossy rises from LAPSE to 1 - LAPSE. The largest is 1. Places ascend.
    """

    chances = np.zeros((len(widths), len(places)))
    certain, reach = np.log([LAPSE + (1 - 2 * LAPSE), LAPSE]), FLAT * widths.max()
    for rate, lossy, weight in flags:
        low, high = np.searchsorted(places, (rate - reach, rate + reach))
        below, above = certain if lossy else certain[::-1]
        beyond = (rate - places[low:high] if lossy else places[low:high] - rate) / widths[:, None]
        chances[:, :low] += weight * below
        chances[:, low:high] += weight * np.log(LAPSE + (1 - 2 * LAPSE) * 0.5 * (1 + np.tanh(beyond / 2)))
        chances[:, high:] += weight * above
    likely: Array = np.exp(chances - chances.max())
    return likely


def believe(seen: Belief, looks: Iterable[Flag], width: float) -> Belief:
    """Apply Bayes' rule to looks. seen: by the ramp; all rates are shares of the target, and the last cell is above it.

    The grid is of logarithms, and fine where the knee may be.
    """
    flags = [Flag(log(look.rate), look.lossy) for look in looks]
    near = [log(max(seen.quantile(share), LEAST)) for share in (0.01, 0.99)] + [flag.rate for flag in flags]
    fine_from, fine_to = min(near) - 4 * width, min(0.0, max(near) + 4 * width)
    top, fine = 8 * width, np.arange(fine_from, fine_to, width / 12)
    edges = np.concatenate([np.arange(log(LEAST), fine_from, top), fine, np.arange(fine_to, 0.0, top), [0.0, top]])
    sums = np.append(np.interp(np.exp(edges[:-1]), seen.rates, seen.sums), 1.0)
    weights = (1 - OUTSIDE) * np.diff(sums) + OUTSIDE / 2 * np.diff(edges) / np.ptp(edges)
    weights[-1] += OUTSIDE / 2
    likely = chance(flags, (edges[1:] + edges[:-1]) / 2, SPREADS * width)
    return Belief(np.exp(edges), weights * likely.sum(axis=0))
