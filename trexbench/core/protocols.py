"""What the loop needs of the world; adapters live outside of core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from .load.sample import Reading, Sample
from .strategy.base import LoadStep


class Generator(Protocol):
    """Ports that are ours, with the profile's streams loaded. Raises GeneratorError and its kin."""

    def start(self, rates_pps: Mapping[int, float], duration_s: float) -> None:
        """Begin sending on each named port; the generator stops by itself after duration_s, come what may."""

    def update(self, rates_pps: Mapping[int, float]) -> None:
        """Change running rates, without a gap."""

    def stop(self) -> None:
        """Silence every port that is ours; safe to call when nothing runs."""

    def tag(self, rates_pps: Mapping[int, float]) -> None:
        """From the next start on so many of each named port's frames per second are tagged, and timed on their return.

        They are a part of the rate that a start asks for, and count in ``Reading.latency`` from zero. Nothing may run.
        """

    def read(self) -> Reading:
        """Raw counters of every port that is ours, each with the run's time at which it was read."""


class Clock(Protocol):
    """The run's time, in seconds from its beginning."""

    def now(self) -> float: ...

    def sleep_until(self, t_s: float) -> None: ...


class Sink(Protocol):
    """Where samples go as they are taken: the screen, the file."""

    def sampled(self, samples: Sequence[Sample], step: LoadStep) -> None: ...
