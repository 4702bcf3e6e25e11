"""Raw counters, as they were read: the only thing a number may be derived from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Phase(str, Enum):
    """Where a run stands."""

    BASELINE = "baseline"
    WARMUP = "warmup"
    RAMP = "ramp"
    HOLD = "hold"
    DRAIN = "drain"
    CONFIRM = "confirm"
    CONFIRM_DRAIN = "confirm-drain"


@dataclass(frozen=True)
class PortCounters:
    """One port's totals; t_s is the run's clock at the moment they were read. Bytes include the FCS.

    ierrors counts frames that reached the port and were lost by the tester itself (imissed, no buffer).
    """

    t_s: float
    opackets: int
    obytes: int
    ipackets: int
    ibytes: int
    ierrors: int
    oerrors: int
    link_up: bool = True


@dataclass(frozen=True)
class Reading:
    """One look at the generator. None means it did not say, never zero."""

    ports: Mapping[int, PortCounters]
    queue_full: int | None
    cpu_percent: float | None


@dataclass(frozen=True)
class Sample:
    """A reading, with what was asked of every sending port since the sample before it (frames per second).

    ``trial`` numbers the confirmation trials from 1; it is 0 outside of them.
    """

    phase: Phase
    t_s: float
    asked_pps: float
    reading: Reading
    trial: int = 0
