"""Random numbers that depend on their arguments alone, not on earlier draws."""

from __future__ import annotations

from math import cos, log, pi, sqrt

_MASK = (1 << 64) - 1
SIGMAS = 3.0


def mixed(*parts: int) -> int:
    """Mix these numbers into 64 bits (with the finisher of SplitMix64, Steele et al. 2014)."""
    state = 0
    for part in parts:
        state = (state ^ (part & _MASK)) + 0x9E3779B97F4A7C15 & _MASK
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return state


def normal(*parts: int) -> float:
    """Draw a standard normal deviate, cut off at SIGMAS (Box-Muller)."""
    radius, angle = ((mixed(*parts, half) + 0.5) / 2**64 for half in (0, 1))
    return max(-SIGMAS, min(SIGMAS, sqrt(-2 * log(radius)) * cos(2 * pi * angle)))
