"""Raw counters as they were read, from which every figure is derived; and their form in documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Annotated, Any

from msgspec import Meta, Struct, convert

from ..typed import Count, Number, Seconds
from .plan import LATENCY_LOADS, Direction, Plan


class Phase(str, Enum):
    """A part of a run."""

    BASELINE = "baseline"
    WARMUP = "warmup"
    RAMP = "ramp"
    SEARCH = "search"
    HOLD = "hold"
    RECHECK = "recheck"
    DRAIN = "drain"
    ZOOM = "zoom"
    """A second, fine ramp, of documents that are older than searches in its place."""
    ZOOM_DRAIN = "zoom-drain"
    CONFIRM = "confirm"
    CONFIRM_DRAIN = "confirm-drain"
    LATENCY = "latency"
    LATENCY_DRAIN = "latency-drain"


CONFIRM_PHASES = (Phase.CONFIRM, Phase.CONFIRM_DRAIN)
LATENCY_PHASES = (Phase.LATENCY, Phase.LATENCY_DRAIN)


@dataclass(frozen=True)
class PortCounters:
    """One port's totals; t_s: when they were read, on the run's clock. Bytes include the FCS.

    ierrors: frames that reached the port and were lost by the tester itself (imissed, no buffer). queue_full: how often
    its transmit queue was full; cpu_percent: of the cores that send for it. None where the generator does not say.
    """

    t_s: Number
    opackets: Count
    obytes: Count
    ipackets: Count
    ibytes: Count
    ierrors: Count
    oerrors: Count
    link_up: bool = True
    queue_full: Count | None = None
    cpu_percent: Number | None = None


@dataclass(frozen=True)
class LatencyCounters:
    """A port's tagged frames since tagging began: their counts, and the generator's statistics of their times.

    sent: by this port; received: on any. average_s: smoothed over the last seconds, as by TRex (which truncates it to
    whole microseconds). histogram: received frames by the lower bound of their bucket in microseconds, of one
    significant digit: 0 (below 10), 10, 20 ... 90, 100, 200 ... None: the generator does not say.
    """

    sent: Count
    received: Count
    average_s: Seconds | None = None
    min_s: Seconds | None = None
    max_s: Seconds | None = None
    jitter_s: Seconds | None = None
    histogram: Mapping[Annotated[int, Meta(ge=0, lt=1 << 40)], Count] = field(default_factory=dict)
    out_of_order: Count = 0
    duplicate: Count = 0


@dataclass(frozen=True)
class StreamCounters:
    """The frames of a port's streams, each stream counted by itself, in the profile's order, since they were loaded.

    t_s: when they were read, on the run's clock. received: by the port where they came back; a port that is not named
    received none.
    """

    t_s: Number
    sent: tuple[Count, ...]
    received: Mapping[int, tuple[Count, ...]] = field(default_factory=dict)

    def received_by(self, port: int) -> tuple[int, ...]:
        return self.received.get(port) or (0,) * len(self.sent)


@dataclass(frozen=True)
class SenderCounters:
    """Totals of what kept the thread that sends for a port from its core; None where the generator does not say."""

    waited_ns: Count | None = None
    """It was ready, and others ran."""
    preempted: Count | None = None
    """It was put aside for others so often."""
    stolen_ns: Count | None = None
    """The machine's host ran others."""


@dataclass(frozen=True)
class Reading:
    """The generator's counters at one moment. queue_full: of all ports together, None where it does not say.

    latency: by sending port, where it tags frames. streams: by sending port, where it counts every stream of it.
    senders: by port, where anything is known of them.
    """

    ports: Mapping[int, PortCounters]
    queue_full: Count | None = None
    latency: Mapping[int, LatencyCounters] = field(default_factory=dict)
    streams: Mapping[int, StreamCounters] = field(default_factory=dict)
    senders: Mapping[int, SenderCounters] = field(default_factory=dict)


@dataclass(frozen=True)
class CoreState:
    """Times of a core of the tester's host since it booted; the mean of several cores of one role."""

    stolen_s: Number
    """The hypervisor let others run."""
    foreign_s: Number
    """Programs ran that have no part in the test."""


@dataclass(frozen=True)
class Conditions:
    """Conditions that a lab's result depends on besides its router."""

    cores: Mapping[str, CoreState] = field(default_factory=dict)
    """By role, ``sender`` and ``router``."""


@dataclass(frozen=True)
class Sample:
    """A reading, with the rate asked of every direction since the sample before it (frames per second; {}: silence).

    trial: number of the confirmation trial, the latency load, or the look of a search, from 1. In a ramp's
    other phases how often the first bad rate had been held before (Phase.RECHECK). conditions: about once a second,
    in a lab.
    """

    phase: Phase
    t_s: float
    asked_pps: Mapping[Direction, float]
    reading: Reading
    trial: int = 0
    conditions: Conditions | None = None

    def asked_of_port(self, tx: int) -> float:
        """Frames per second that this port was asked to send."""
        return sum(pps for direction, pps in self.asked_pps.items() if direction.tx == tx)


def by_trial(samples: Sequence[Sample], *phases: Phase) -> dict[int, list[int]]:
    """Indexes of the samples of these phases, by the number of their trial, ascending."""
    found: dict[int, list[int]] = {}
    for at, sample in enumerate(samples):
        if sample.phase in phases:
            found.setdefault(sample.trial, []).append(at)
    return found


def find_setback(before: Sample, after: Sample, ports: Iterable[int]) -> str | None:
    """Which counter of these ports went back between two samples, in a few words; None when none did.

    Counters only grow: one that shrank was cleared, or belongs to another process.
    """
    for port in ports:
        then, now = before.reading.ports.get(port), after.reading.ports.get(port)
        if then is None or now is None:
            return f"the counters of port {port} are missing"
        if now.t_s < then.t_s or (now.t_s == then.t_s and after.t_s > before.t_s):
            return f"the clock of port {port} went from {then.t_s:g} to {now.t_s:g} s"
        # Written out for speed: this runs for every port after every sample.
        if (
            now.opackets < then.opackets
            or now.ipackets < then.ipackets
            or now.obytes < then.obytes
            or now.ibytes < then.ibytes
            or now.ierrors < then.ierrors
            or now.oerrors < then.oerrors
            or (now.queue_full or 0) < (then.queue_full or 0)
        ):
            names = ("opackets", "obytes", "ipackets", "ibytes", "ierrors", "oerrors", "queue_full")
            name = next(n for n in names if (getattr(now, n) or 0) < (getattr(then, n) or 0))
            return f"{name} of port {port} went back from {getattr(then, name)} to {getattr(now, name)}"
    full, fuller = before.reading.queue_full, after.reading.queue_full
    if full is not None and fuller is not None and fuller < full:
        return f"queue_full went back from {full} to {fuller}"
    return None


def find_standstill(samples: Sequence[Sample], ports: Iterable[int], for_s: float) -> str | None:
    """Which of these ports was asked to send and counted no frame for ``for_s``, in a few words; None if none."""
    for port in ports:
        first = len(samples) - 1
        while first > 0 and samples[first].asked_of_port(port) > 0:
            then, now = (samples[at].reading.ports.get(port) for at in (first - 1, first))
            if then is None or now is None or then.opackets != now.opackets:
                break
            first -= 1
        still_s = samples[-1].t_s - samples[first].t_s
        if still_s >= for_s - 1e-6:
            asked = samples[-1].asked_of_port(port)
            return f"port {port} has counted no frame for {still_s:.1f} s, asked for {asked:.0f} pps"
    return None


class StoredSample(Struct, omit_defaults=True):
    """A sample's form in documents: the parts of its reading, and directions by name."""

    phase: Phase
    trial: Count
    t_s: Number
    asked_pps: Mapping[str, Seconds]
    queue_full: Count | None
    ports: Mapping[int, PortCounters]
    latency: Mapping[int, LatencyCounters] = {}
    conditions: Conditions | None = None
    streams: Mapping[int, StreamCounters] = {}
    senders: Mapping[int, SenderCounters] = {}


def stored(sample: Sample) -> StoredSample:
    reading, asked = sample.reading, {str(direction): pps for direction, pps in sample.asked_pps.items()}
    place = sample.phase, sample.trial, sample.t_s
    read = reading.queue_full, reading.ports, reading.latency
    return StoredSample(*place, asked, *read, sample.conditions, reading.streams, reading.senders)


def sample_from_dict(values: Any) -> Sample:
    """The sample; ValueError for anything else. Whether it fits its run is for find_damage to decide."""
    one = values if isinstance(values, StoredSample) else convert(values, StoredSample, str_keys=True)
    asked = {Direction.parse(name): pps for name, pps in one.asked_pps.items()}
    reading = Reading(one.ports, one.queue_full, one.latency, one.streams, one.senders)
    return Sample(one.phase, one.t_s, asked, reading, one.trial, one.conditions)


def odd_samples(plan: Plan, samples: Sequence[Sample]) -> Iterator[str]:
    """Yield in a few words what no run of this plan can have read."""
    directions, ports, before_s = set(plan.directions), plan.ports, -inf
    for number, sample in enumerate(samples):
        if not sample.asked_pps.keys() <= directions:
            yield f"sample {number}: a direction that the plan does not have"
        if sample.t_s < before_s:
            yield f"sample {number}: time goes back to {sample.t_s:g} s"
        if sample.phase in LATENCY_PHASES and not 1 <= sample.trial <= len(LATENCY_LOADS):
            yield f"sample {number}: latency load {sample.trial} of {len(LATENCY_LOADS)}"
        for port in ports:
            if port not in sample.reading.ports:
                yield f"sample {number}: port {port} is missing"
        before_s = sample.t_s
