"""Interfaces that the measuring loop needs; they are implemented outside of core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from .load.sample import Reading, Sample
from .strategy.base import LoadStep


class Generator(Protocol):
    """The acquired ports, with the profile's streams loaded. Raises GeneratorError and its subclasses."""

    def start(self, rates_pps: Mapping[int, float], duration_s: float) -> None:
        """Start sending on each named port; the generator stops by itself after duration_s in any case."""

    def update(self, rates_pps: Mapping[int, float]) -> None:
        """Change the rates of running ports without a gap."""

    def stop(self) -> None:
        """Stop sending on every acquired port; safe to call when nothing runs."""

    def tag(self, rates_pps: Mapping[int, float]) -> None:
        """Tag these frames per second of each named port from the next start on, and time them on their return.

        Tagged frames are a part of the rate that ``start`` asks for, and ``Reading.latency`` counts them from zero.
        Call it only when nothing runs.
        """

    def read(self) -> Reading:
        """Read the raw counters of every acquired port, each with the run's time at which it was read."""


class Clock(Protocol):
    """The run's time, in seconds from its beginning."""

    def now(self) -> float: ...

    def sleep_until(self, t_s: float) -> None: ...


class Sink(Protocol):
    """A receiver of samples as they are taken, which shows or stores them."""

    def sampled(self, samples: Sequence[Sample], step: LoadStep) -> None: ...
