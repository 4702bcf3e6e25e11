"""Raw counters, as they were read: the only thing a number may be derived from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

COUNTS = ("opackets", "obytes", "ipackets", "ibytes", "ierrors", "oerrors")
"""Names of a port's totals."""


class Phase(str, Enum):
    """Where a run stands."""

    BASELINE = "baseline"
    WARMUP = "warmup"
    RAMP = "ramp"
    HOLD = "hold"
    DRAIN = "drain"
    CONFIRM = "confirm"
    CONFIRM_DRAIN = "confirm-drain"
    LATENCY = "latency"
    LATENCY_DRAIN = "latency-drain"


CONFIRM_PHASES = (Phase.CONFIRM, Phase.CONFIRM_DRAIN)
LATENCY_PHASES = (Phase.LATENCY, Phase.LATENCY_DRAIN)


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
class LatencyCounters:
    """A port's tagged frames since they were put on it: their counts, and the generator's statistics of their times.

    sent: by this port; received: on whichever. average_s: smoothed over the last seconds, as TRex does (which cuts it
    to whole microseconds). histogram: received frames by the lower bound of their bucket in microseconds, of one
    significant digit: 0 (below 10), 10, 20 ... 90, 100, 200 ... None means it did not say.
    """

    sent: int
    received: int
    average_s: float | None = None
    min_s: float | None = None
    max_s: float | None = None
    jitter_s: float | None = None
    histogram: Mapping[int, int] = field(default_factory=dict)
    out_of_order: int = 0
    duplicate: int = 0


@dataclass(frozen=True)
class Reading:
    """One look at the generator. None means it did not say, never zero. latency: by sending port, where it tags."""

    ports: Mapping[int, PortCounters]
    queue_full: int | None
    cpu_percent: float | None
    latency: Mapping[int, LatencyCounters] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """A reading, with what was asked of every sending port since the sample before it (frames per second).

    ``trial`` numbers the confirmation trials from 1, and so the loads of the latency; it is 0 outside of both.
    """

    phase: Phase
    t_s: float
    asked_pps: float
    reading: Reading
    trial: int = 0


def find_setback(before: Sample, after: Sample, ports: Iterable[int]) -> str | None:
    """What these ports' counters cannot have done between two samples, in a few words; None when all is well.

    Counters only ever grow: one that shrinks was cleared, or belongs to another process.
    """
    for port in ports:
        then, now = before.reading.ports.get(port), after.reading.ports.get(port)
        if then is None or now is None:
            return f"the counters of port {port} are missing"
        if now.t_s < then.t_s or (now.t_s == then.t_s and after.t_s > before.t_s):
            return f"the clock of port {port} went from {then.t_s:g} to {now.t_s:g} s"
        if (
            now.opackets < then.opackets
            or now.ipackets < then.ipackets
            or now.obytes < then.obytes
            or now.ibytes < then.ibytes
            or now.ierrors < then.ierrors
            or now.oerrors < then.oerrors
        ):
            name = next(n for n in COUNTS if getattr(now, n) < getattr(then, n))
            return f"{name} of port {port} went back from {getattr(then, name)} to {getattr(now, name)}"
    full, fuller = before.reading.queue_full, after.reading.queue_full
    if full is not None and fuller is not None and fuller < full:
        return f"queue_full went back from {full} to {fuller}"
    return None


def stands_still(before: Sample, after: Sample, port: int) -> bool:
    """Frames were asked of this port between the two samples, and it counted none."""
    then, now = before.reading.ports.get(port), after.reading.ports.get(port)
    return after.asked_pps > 0 and then is not None and now is not None and now.opackets == then.opackets


def find_standstill(samples: Sequence[Sample], ports: Iterable[int], for_s: float) -> str | None:
    """Which of these sending ports has counted no frame for so long, in a few words; None when all is well."""
    for port in ports:
        first = len(samples) - 1
        while first > 0 and stands_still(samples[first - 1], samples[first], port):
            first -= 1
        still_s = samples[-1].t_s - samples[first].t_s
        if still_s >= for_s - 1e-6:
            return f"port {port} has counted no frame for {still_s:.1f} s, asked for {samples[-1].asked_pps:.0f} pps"
    return None
