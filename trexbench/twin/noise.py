"""Random numbers that depend on what they are for, not on earlier draws."""

from __future__ import annotations

from random import Random

SIGMAS = 3.0


def drawn(*parts: object) -> Random:
    """Make a generator whose numbers depend on these parts alone."""
    return Random(repr(parts))


def normal(rng: Random) -> float:
    """Draw a standard normal deviate, cut off at SIGMAS."""
    return max(-SIGMAS, min(SIGMAS, rng.gauss(0, 1)))
