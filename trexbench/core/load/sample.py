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
    """Parts of a run."""

    BASELINE = "baseline"  # the first reading, in silence
    WARMUP = "warmup"  # a low rate, to prove that frames return
    RAMP = "ramp"  # from zero to the target; of a search until frames are lost
    SEARCH = "search"  # looks at rates, or trials of MLRsearch
    HOLD = "hold"  # the target
    RECHECK = "recheck"  # the first bad rate once more
    DRAIN = "drain"  # silence in which frames come back
    ZOOM = "zoom"  # a second, fine ramp of older documents, which a search replaced
    ZOOM_DRAIN = "zoom-drain"  # the silence after it
    CONFIRM = "confirm"  # a trial of the rate found
    CONFIRM_DRAIN = "confirm-drain"  # the silence after it
    LATENCY = "latency"  # a load with tagged frames
    LATENCY_DRAIN = "latency-drain"  # the silence after it


CONFIRM_PHASES = (Phase.CONFIRM, Phase.CONFIRM_DRAIN)
LATENCY_PHASES = (Phase.LATENCY, Phase.LATENCY_DRAIN)


@dataclass(frozen=True)
class PortCounters:
    """One port's totals; None where the generator does not report them."""

    t_s: Number  # when they were read, on the run's clock
    opackets: Count  # frames sent
    obytes: Count  # octets sent, FCS included
    ipackets: Count  # frames received
    ibytes: Count  # octets received, FCS included
    ierrors: Count  # frames that reached the port and were lost by the tester itself (imissed, no buffer)
    oerrors: Count  # frames that could not be sent
    link_up: bool = True  # at that moment
    queue_full: Count | None = None  # how often the transmit queue was full
    cpu_percent: Number | None = None  # load of the cores that send for the port; where not known, of all that send


@dataclass(frozen=True)
class LatencyCounters:
    """A port's tagged frames since this load began: counts, and the generator's statistics of their times.

    Times are None where the generator does not report them.
    """

    sent: Count  # by this port
    received: Count  # of these, on any port
    average_s: Seconds | None = None  # smoothed over the last seconds; TRex truncates it to whole microseconds
    min_s: Seconds | None = None  # shortest time
    max_s: Seconds | None = None  # longest time; TRex leaves the first frames out
    jitter_s: Seconds | None = None  # RFC 3550
    histogram: Mapping[Annotated[int, Meta(ge=0, lt=1 << 40)], Count] = field(default_factory=dict)
    """Frames received, by the lower bound of their bucket in microseconds, of one significant digit: 0 (below 10), 10,
    20 ... 90, 100, 200 ..."""
    out_of_order: Count = 0  # frames that came after a later one
    duplicate: Count = 0  # frames that came again


@dataclass(frozen=True)
class StreamCounters:
    """Frames of each of a port's streams since they were loaded, in the profile's order."""

    t_s: Number  # when they were read, on the run's clock
    sent: tuple[Count, ...]  # by stream
    received: Mapping[int, tuple[Count, ...]] = field(default_factory=dict)  # by receiving port, then by stream

    def received_by(self, port: int) -> tuple[int, ...]:
        return self.received.get(port) or (0,) * len(self.sent)


@dataclass(frozen=True)
class SenderCounters:
    """Totals of what kept a port's sending thread off its core; None where the generator does not report them."""

    waited_ns: Count | None = None  # run delay: it was ready, and others ran
    preempted: Count | None = None  # how often it had to make way
    stolen_ns: Count | None = None  # stolen time of its core: the hypervisor ran others


@dataclass(frozen=True)
class Reading:
    """The generator's counters at one moment."""

    ports: Mapping[int, PortCounters]
    queue_full: Count | None = None  # all ports together; None where the generator does not report it
    latency: Mapping[int, LatencyCounters] = field(default_factory=dict)  # by sending port, where it tags frames
    streams: Mapping[int, StreamCounters] = field(default_factory=dict)  # by sending port, where all are counted
    senders: Mapping[int, SenderCounters] = field(default_factory=dict)  # by port, as far as anything is known


@dataclass(frozen=True)
class CoreState:
    """Times of a core of the tester's host since it booted; the mean of several cores of one role."""

    stolen_s: Number  # stolen time: the hypervisor ran others
    foreign_s: Number  # foreign time: programs ran that have no part in the test


@dataclass(frozen=True)
class Conditions:
    """Conditions besides its router that a lab's result depends on."""

    cores: Mapping[str, CoreState] = field(default_factory=dict)  # by role, ``sender`` and ``router``


@dataclass(frozen=True)
class Sample:
    """A reading, with the rates asked for since the sample before it.

    trial: number of the confirmation trial, the latency load, or the look of a search, from 1. In a ramp's other phases
    it counts how often the first bad rate had been held before (Phase.RECHECK).
    """

    phase: Phase
    t_s: float
    asked_pps: Mapping[Direction, float]  # frames per second; empty: silence
    reading: Reading
    trial: int = 0
    conditions: Conditions | None = None  # about once a second, in a lab

    def asked_of_port(self, tx: int) -> float:
        """Frames per second that this port was asked to send."""
        return sum(pps for direction, pps in self.asked_pps.items() if direction.tx == tx)


def by_trial(samples: Sequence[Sample], *phases: Phase) -> dict[int, list[int]]:
    """Indexes of the samples of these phases, by the number of their trial, ascending."""
    trials: dict[int, list[int]] = {}
    for at, sample in enumerate(samples):
        if sample.phase in phases:
            trials.setdefault(sample.trial, []).append(at)
    return trials


def find_setback(before: Sample, after: Sample, ports: Iterable[int]) -> str | None:
    """Name in a few words a counter of these ports that went back between two samples; None when none did.

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
    """Name in a few words a port that was asked to send and counted no frame for ``for_s``; None if none."""
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
    """One reading of the tester's counters, as stored in documents, where parts that it lacks are left out."""

    phase: Phase  # part of the run to which the time since the sample before belongs
    trial: Count  # number of the trial, latency load or look, from 1; in a ramp's other phases, rechecks so far
    t_s: Number  # the run's clock at the reading
    asked_pps: Mapping[str, Seconds]  # rates asked for since the sample before, by direction; empty: silence
    queue_full: Count | None  # how often a transmit queue was full, of all ports; None: not reported
    ports: Mapping[int, PortCounters]  # by the tester's port
    latency: Mapping[int, LatencyCounters] = {}  # tagged frames, by sending port
    conditions: Conditions | None = None  # of a lab's cores, about once a second
    streams: Mapping[int, StreamCounters] = {}  # frames of each stream, by sending port
    senders: Mapping[int, SenderCounters] = {}  # what kept senders off their cores, by sending port


def stored(sample: Sample) -> StoredSample:
    reading, asked = sample.reading, {str(direction): pps for direction, pps in sample.asked_pps.items()}
    place = sample.phase, sample.trial, sample.t_s
    read = reading.queue_full, reading.ports, reading.latency
    return StoredSample(*place, asked, *read, sample.conditions, reading.streams, reading.senders)


def sample_from_dict(values: Any) -> Sample:
    """Read a stored sample; ValueError for anything else. find_damage decides whether it fits its run."""
    kept = values if isinstance(values, StoredSample) else convert(values, StoredSample, str_keys=True)
    asked = {Direction.parse(name): pps for name, pps in kept.asked_pps.items()}
    reading = Reading(kept.ports, kept.queue_full, kept.latency, kept.streams, kept.senders)
    return Sample(kept.phase, kept.t_s, asked, reading, kept.trial, kept.conditions)


def odd_samples(plan: Plan, samples: Sequence[Sample]) -> Iterator[str]:
    """Yield in a few words each value that no run of this plan can have read."""
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
