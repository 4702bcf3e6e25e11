"""Bayesian estimate of a knee, from rates that lost too much and rates that did not.

benchmarks/search.py fixes the numbers: time, error and coverage of a search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np

LAPSE = 0.04
"""Probability that a look, or a window of a ramp, contradicts its rate: a stall, a burst of noise."""
SPREADS = (0.1, 0.5, 1.5)
"""Possible widths of the band of rates that lose only sometimes, in widths asked for. With the middle one alone a
search of a steady DUT takes half as long again (benchmarks/search.py)."""
NEAR = 0.7
"""Probability, given that the knee is inside the bracket, that it lies near the guess. Without it a search takes 2 to
7 s more."""
ABOUT = 3.0
"""Distance that "near" means, in widths asked for: the probability falls by e with each."""
OUTSIDE = 2 * LAPSE
"""Probability that the knee lies outside of the bracket from which the search begins: each end is a look."""
LEAST = 1e-5
"""Share of the target below which no knee is looked for."""


class LookResult(NamedTuple):
    """One look at a rate, as a share of the target. lossy: it lost more than the goal."""

    share: float
    lossy: bool


class Bracket(NamedTuple):
    """Shares of the target between which the knee probably lies, and its most likely place."""

    low: float
    high: float
    guess: float


@dataclass(frozen=True)
class Belief:
    """Probability of each place of the knee. shares: ascending; the last one stands for all above the target."""

    shares: np.ndarray
    weights: np.ndarray

    @property
    def median(self) -> float:
        return self.quantile(0.5)

    def quantile(self, probability: float) -> float:
        """The rate below which the knee lies with this probability."""
        return float(self.shares[np.searchsorted(np.cumsum(self.weights[:-1]), probability)])

    def below(self, share: float) -> float:
        """The probability that the knee lies below this rate."""
        return float(self.weights[self.shares < share].sum())

    def between(self, low: float, high: float) -> float:
        return float(self.weights[(self.shares >= low) & (self.shares <= high)].sum())


def believe(bracket: Bracket, looks: Sequence[LookResult], width: float) -> Belief:
    """Apply Bayes' rule on a grid: across some band a rate's chance to be lossy rises from LAPSE to 1 - LAPSE."""
    places, prior = _prior(bracket, looks, width)
    likelihood = np.zeros((len(SPREADS), len(places)))
    for row, spread in zip(likelihood, SPREADS, strict=True):
        for look in looks:
            lossy = flag_chance((log(look.share) - places) / (spread * width))
            row += np.log(lossy if look.lossy else 1 - lossy)
    weights = prior * np.exp(likelihood - likelihood.max()).sum(axis=0)
    return Belief(np.exp(places), weights / weights.sum())


def _prior(bracket: Bracket, looks: Sequence[LookResult], width: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a grid of log shares, fine where the knee may be, and the probability of each before any look."""
    low, high = log(bracket.low), log(bracket.high)
    tried = [log(look.share) for look in looks]
    fine_from, fine_to = min([low, *tried]) - 4 * width, min(0.0, max([high, *tried]) + 4 * width)
    fine = np.arange(fine_from, fine_to, width / 12)
    coarse = 8 * width
    below = np.arange(log(LEAST), fine_from, coarse)
    above = np.arange(fine_to, 0.0, coarse)
    places = np.concatenate([below, fine, above, [coarse]])
    sizes = np.concatenate([np.full(len(below), coarse), np.full(len(fine), width / 12), np.full(len(above), coarse)])
    inside = (places[:-1] >= low) & (places[:-1] <= high)
    near = np.exp(-np.abs(places[:-1] - log(bracket.guess)) / (ABOUT * width))
    density = np.where(inside, (1 - OUTSIDE) * (1 - NEAR) / max(high - low, width), 0.0)
    density = density + (1 - OUTSIDE) * NEAR * near / (near * sizes).sum()
    weights = density * sizes
    rest = sizes * ~inside
    weights += OUTSIDE / 2 * rest / max(rest.sum(), 1e-12)
    top = 0.5 if bracket.high >= 1 else OUTSIDE / 2
    return places, np.append(weights / weights.sum() * (1 - top), top)


def flag_chance(beyond: np.ndarray) -> np.ndarray:
    """The probability that a look or window shows its side of the knee. beyond: distance past the knee, in spreads."""
    return LAPSE + (1 - 2 * LAPSE) * 0.5 * (1 + np.tanh(beyond / 2))
